"""The external weights of a model in parsed form: its FileConstants, and the files and bytes that they name."""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gevar.compile.var_mem_assign_util_ops import var_op_of
from gevar.errors import LoadError
from gevar.graph import Node
from gevar.om import GeModel, GeRootModel, StreamedBytes
from gevar.om.node import FILECONSTANT
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import digest_of
from gevar.om.weight_digests import DIGESTS_FILE, RegionDigest, read_digests
from gevar.om.weight_list import MAX_LIST_BYTES, META_FILE, WeightList
from gevar.status import FAILED
from gevar.weights import FileConstantInfo, WeightDirectory, WeightFile, file_constant_info

EXTERNAL_ATTRS = ("location", "offset", "length", "file_path", "file_id")
"""Attributes of a FileConstant that say where its bytes are."""


@dataclass(frozen=True, slots=True)
class ExternalNode:
    """A FileConstant of a model: its node, what that says, and its file; `is_part` is of a model that has others."""

    model: GeModel
    is_part: bool
    node: Node
    info: FileConstantInfo
    file: WeightFile

    @property
    def content(self) -> StreamedBytes:
        """Its bytes; the file is open only while they are read."""
        source = ByteSource.of_known_file(self.file.path, self.file.state)
        return StreamedBytes.of_source(source, self.info.offset, self.info.needed_bytes, f"weight {self.info.name}")


def nodes_of(model: GeModel) -> Iterator[Node]:
    """Yield the nodes of a model, those of its subgraphs too."""
    graph = model.model.graph
    yield from () if graph is None else graph.all_nodes()


def external_nodes(
    root: GeRootModel, folder: WeightDirectory, paths_by_id: Mapping[str, str]
) -> Iterator[ExternalNode]:
    """Yield the FileConstants of a file and of the files inside it, once for each graph that has them.

    Raises
    ------
    VariableError
        A node does not say where its bytes are.
    LoadError
        A file is not there, ends before its weight, or leads out of its directory.
    """
    for model in root.models:
        for node in nodes_of(model):
            if node.type == FILECONSTANT:
                info = file_constant_info(var_op_of(node), paths_by_id)
                file = folder.find(info)
                info.check_room(file.path, file.size_bytes)
                yield ExternalNode(model, len(root.models) > 1, node, info, file)
    for nested in root.nested:
        if nested.root is not None:
            yield from external_nodes(nested.root, folder, paths_by_id)


class SideFiles:
    """What the lists beside files say of them; each list is read once.

    Thread safety: none; one object belongs to one thread.
    """

    def __init__(self) -> None:
        self._regions: dict[Path, dict[str, list[RegionDigest]]] = {}
        self._contents: dict[Path, dict[str, list[tuple[str, int | None]]]] = {}

    def check_digests(self, file: WeightFile, source: ByteSource) -> list[RegionDigest]:
        """Compare a file with the digests that lie beside it, and return them; none where there are none.

        Raises
        ------
        ModelFileError
            The digests cannot be read.
        LoadError
            A region ends behind the file, or has another digest.
        """
        folder = file.path.parent
        if folder not in self._regions:
            self._regions[folder] = _regions_of(folder)
        found = self._regions[folder].get(file.path.name, [])
        for one in found:
            got = max(0, min(one.length, source.size_bytes - one.offset))
            if got < one.length:
                raise LoadError(file.path, one.offset, one.length, got, "its digest is listed, the file is too short")
            digest = digest_of(StreamedBytes.of_source(source, one.offset, one.length, "region")).hex()
            if digest != one.digest:
                reason = f"has xxh3 {digest}, {one.digest} is listed: the bytes are damaged"
                raise LoadError(file.path, one.offset, one.length, got, reason, status=FAILED)
        return found

    def contents(self, file: WeightFile) -> list[tuple[str, int | None]]:
        """Return hash and offset of each content that the list beside a file says it has.

        Raises
        ------
        ModelFileError
            The list cannot be read.
        """
        folder = file.path.parent
        if folder not in self._contents:
            self._contents[folder] = _contents_of(folder)
        return self._contents[folder].get(file.path.name, [])


def _regions_of(folder: Path) -> dict[str, list[RegionDigest]]:
    """Return the regions whose digests are listed in a folder, by file."""
    side, found = folder / DIGESTS_FILE, defaultdict(list)
    for one in read_digests(side, folder) if os.path.lexists(side) else ():
        found[one.file].append(one)
    return found


def _contents_of(folder: Path) -> dict[str, list[tuple[str, int | None]]]:
    """Return hash and offset of each content that is listed in a folder, by file."""
    path, found = folder / META_FILE, defaultdict(list)
    if os.path.lexists(path):
        source = ByteSource.of_file_in(folder, path)
        try:
            listed = WeightList.parse(source.read(0, min(source.size_bytes, MAX_LIST_BYTES), META_FILE))
        finally:
            source.close()
        for sha256 in listed.files:
            found[listed.name(sha256)].append((sha256, listed.offsets.get(sha256)))
    return found
