"""Moving a model with its external weights: to another folder, or their bytes back into the model.

Source: GE source, base/common/file_constant_utils, RefreshRelativePath and the conversion back to Const.
Differs: rows relocated-copy and back-to-const of docs/differences.md.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from gevar.errors import LoadError
from gevar.om import GeRootModel, StreamedBytes, open_om
from gevar.om.atomic_file import write_atomically
from gevar.om.om_file import Kind
from gevar.om.root_model_writer import root_model_blob
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import chunks_of
from gevar.om.weight_folder import WeightFolder
from gevar.om.weight_list import FolderLists, is_own_name
from gevar.session.back_conversion import convert_file_constants
from gevar.session.external_weight_files import EXTERNAL_ATTRS, ExternalNode, SideFiles, external_nodes
from gevar.weights import WeightDirectory, WeightFile
from gevar.weights.weight_directory import WEIGHT_FOLDER

ExternalWeightKind = Literal["file", "const", "constant"]
"""What external weights become: files in another folder, or nodes that have their bytes in the model."""
KINDS: Final[tuple[ExternalWeightKind, ...]] = ("file", "const", "constant")
_NO_PATHS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Relocation:
    """What was moved: how many FileConstants, and the files that they have now; `size_bytes` is that of all files."""

    nodes: int
    files: tuple[Path, ...]
    size_bytes: int


def relocate_model(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    weight_dir: str | os.PathLike[str] | None = None,
    target_weight_dir: str | os.PathLike[str] | None = None,
    kind: ExternalWeightKind = "file",
    paths_by_id: Mapping[str, str] = _NO_PATHS,
    as_bundle: bool = False,
) -> Relocation:
    """Write a model to another path, with its external weights beside it or inside.

    With `kind` "file" every file that it names is copied under its name, and every FileConstant says where: `location`
    is that name, also where it named its file by path or id. The bytes are compared with the digests that lie beside
    them; files, lists and digests go along. What lies in the target folder already must be equal. With "const" or
    "constant" see `convert_file_constants`. Nothing of the source is changed or removed.

    Parameters
    ----------
    source
        The model.
    target
        The file to write; one that exists is replaced, also the source itself.
    weight_dir
        Folder of its external weights; by default `weight` beside it.
    target_weight_dir
        Folder for them; by default `weight` beside the target, which must be no link then.
    kind
        What the external weights become.
    paths_by_id
        Files by `file_id`, see `gevar.weights.value_bins`.
    as_bundle
        Whether the source is a bundle of models.

    Raises
    ------
    ModelFileError, GraphError
        The source cannot be read or written anew; a file changed meanwhile.
    VariableError, LoadError
        A FileConstant does not say where its bytes are; a file is missing, too short, damaged, leads out of its
        directory, or has the name of another one, or one that gevar uses itself in a folder of weights.
    ValueError
        A FileConstant cannot become a constant of that kind; a reader would refuse the file; or the target is one of
        the files of the target folder.
    OSError
        Something cannot be written, or the target folder has other bytes under the name of a file.

    After failure: the target and its folder are as they were before.
    Thread safety: may be called from several threads and processes, also for one folder.

    Source, Differs: as the module.
    """
    path = Path(target)
    form: Kind = "bundle" if as_bundle else "model"
    with open_om(source, kind=form) as om:
        root = GeRootModel.from_om(om)
        nodes = list(external_nodes(root, WeightDirectory(weight_dir, Path(source)), paths_by_id))
        if kind != "file":
            convert_file_constants(nodes, kind)
        if kind != "file" or not nodes:
            write_atomically(path, root_model_blob(root).write_to)
            return Relocation(len(nodes), (), 0)
        files = _files_by_name(nodes)
        folder = WeightFolder(
            path.parent / WEIGHT_FOLDER if target_weight_dir is None else Path(target_weight_dir),
            follow_link=target_weight_dir is not None,
        )
        folder.open()
        try:
            folder.check_apart(path, files)
            lists, side = FolderLists(folder), SideFiles()
            for name, file in files.items():
                _copy(name, file, folder, lists, side)
            for one in nodes:
                _point(one)
            blob = root_model_blob(root)
            write_atomically(path, blob.write_to, before_naming=lists.write, after_naming=folder.commit)
        finally:
            folder.close()
        paths = tuple(folder.path / name for name in files)
        return Relocation(len(nodes), paths, sum(file.size_bytes for file in files.values()))


def _files_by_name(nodes: Sequence[ExternalNode]) -> dict[str, WeightFile]:
    """Return the files that nodes name, each by the name that it will have."""
    found: dict[str, WeightFile] = {}
    for one in nodes:
        known = found.setdefault(one.info.base_name, one.file)
        if is_own_name(one.info.base_name):
            reason = f"weight {one.info.name} is in a file with a name that gevar uses itself; give it another"
            raise LoadError(known.path, one.info.offset, one.info.needed_bytes, 0, reason)
        if known != one.file:
            reason = f"weight {one.info.name} has a file of the same name in {one.file.path.parent}; rename one of them"
            raise LoadError(known.path, one.info.offset, one.info.needed_bytes, 0, reason)
    return found


def _copy(name: str, file: WeightFile, folder: WeightFolder, lists: FolderLists, side: SideFiles) -> None:
    """Bring a file to a folder under a name, and what the lists beside it say of it."""
    source = ByteSource.of_file(file.path, file.state)
    try:
        regions = side.check_digests(file, source)
        content = StreamedBytes.of_source(source, 0, source.size_bytes, "external weights")
        digest = hashlib.sha256()
        for chunk in chunks_of(content):
            digest.update(chunk)
        is_new = not folder.holds(name, 0, source.size_bytes, digest.digest(), whole=True)
        if is_new:
            folder.write_new(name, content)
            lists.begin(name)
    finally:
        source.close()
    ByteSource.of_file(file.path, file.state).close()  # nobody wrote to it meanwhile
    for region in regions:
        lists.add_digest(replace(region, file=name))
    for sha256, offset in side.contents(file):
        known = lists.contents.name(sha256)
        if not known or (is_new and known == name):
            lists.add(sha256, name, offset)


def _point(one: ExternalNode) -> None:
    """Let a FileConstant say that its file lies in the weight directory."""
    attrs = one.node.op_desc.attrs
    for name in EXTERNAL_ATTRS:
        if name in attrs:
            del attrs[name]
    attrs["location"], attrs["offset"], attrs["length"] = one.info.base_name, one.info.offset, one.info.length
