"""Constants in files of their own (`ge.externalWeight`): names and places.

A constant becomes a FileConstant named `<name>_<SHA-256 of its bytes>`; see `gevar.om.sha256_text` for its spelling.
Mode 1 puts each content in a file `weight_<SHA-256>`, mode 2 all of them behind each other in
`<prefix>_weight_combined`, each padded with zeros to a multiple of 512 bytes, in the order of names. `meta.json` in the
folder says which content lies where, so another model with the same content adds nothing; see `gevar.om.weight_list`.

Nothing is taken from that list but names that the rules above give, so no path in it leads out of the folder; and what
it lists is read and must have its hash, else it is written again. No link is followed on the way.

Beside the list, `digests.json` says the xxh3 digest of each region; see `gevar.om.weight_digests`.

A process that is killed leaves a list that can be read, and every region that it names is whole; a file of mode 2 may
have bytes behind them that no list names.

Source: GE source, base/common/file_constant_utils.
"""

import hashlib
from bisect import bisect_left, insort
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, Self

import xxhash

from gevar.align import SESSION_MEM_ALIGN_BYTES
from gevar.om.model_spec import ExternalWeight, NodeSpec, OmModelSpec
from gevar.om.node import CONST_TYPES, FILECONSTANT
from gevar.om.sha256_text import sha256_text
from gevar.om.stored_bytes import Content, SparseBytes, chunks_of
from gevar.om.weight_digests import RegionDigest
from gevar.om.weight_folder import WeightFolder
from gevar.om.weight_list import COMBINED, FolderLists, is_combined_file

ExternalWeightMode = Literal[0, 1, 2]
"""Values of `ge.externalWeight`: 0 constants stay in the model, 1 a file for each content, 2 one file."""
INDIVIDUAL: Final = 1


def movable_nodes(model: OmModelSpec) -> list[NodeSpec]:
    """Return the constants of a model that have bytes."""
    return [node for node in model.nodes if node.type in CONST_TYPES and node.data is not None and node.data.nbytes]


class ExternalWeightsWriter:
    """A folder of external weights, held under an exclusive lock while a model is written; use it with `with`.

    What is written is taken back at the end of the `with` block unless `commit` was called.

    Parameters
    ----------
    folder
        The folder; made if it is not there, its parent must be.
    mode
        1 or 2.
    prefix
        First part of the name of the file in mode 2.
    follow_link
        Whether the folder may be a link.
    padded_sha256
        Whether a byte of a SHA-256 has two digits, whatever it is.

    Raises
    ------
    ValueError
        The mode is another one, or the prefix is no part of a file name that a model can tell.
    OSError
        The folder or its list cannot be opened.

    Thread safety: one object belongs to one thread; other writers of the folder, in other processes too, wait.
    """

    def __init__(
        self, folder: Path, mode: int, *, prefix: str, follow_link: bool = True, padded_sha256: bool = True
    ) -> None:
        if mode not in (1, 2):
            raise ValueError(f"external weight mode is {mode!r}; give 0, 1 or 2")
        self._combined = f"{prefix}_{COMBINED}" if prefix else COMBINED
        if mode != INDIVIDUAL and not is_combined_file(self._combined):
            raise ValueError(f"{prefix!r} is no part of a file name that a model can tell; give UTF-8 without a slash")
        self._folder = WeightFolder(folder, follow_link=follow_link)
        self._mode = mode
        self._pieces: dict[str, list[tuple[int, int]]] = defaultdict(list)  # starts and ends in order, by file
        self._padded = padded_sha256
        self._sound: dict[bytes, ExternalWeight] = {}  # by hash, where bytes are known to be in their place
        self._digests: dict[str, bytes] = {}  # by text, of which two may be one without padding

    def __enter__(self) -> Self:
        self._folder.open()
        try:
            self._lists = FolderLists(self._folder)
        except BaseException:
            self._folder.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.close()

    def move_out(self, model: OmModelSpec) -> OmModelSpec:
        """Write the constants of a model to the folder and return the model that finds them there.

        Raises
        ------
        ValueError
            The data of a constant are sparse; another node has the name that it would get; or as `place`.
        OSError, ModelFileError
            A file cannot be written, or data cannot be read.
        """
        moved: dict[str, NodeSpec] = {}
        for node in sorted(movable_nodes(model), key=lambda node: node.name):
            if node.data is None or isinstance(node.data, SparseBytes):
                raise ValueError(f"{node.type} {node.name!r} has sparse data, it cannot be external; give it an array")
            digest, place = self.place(node.data)
            name = f"{node.name}_{digest}"
            moved[node.name] = replace(node, name=name, type=FILECONSTANT, data=None, external=place)
        names = {node.name for node in model.nodes if node.name not in moved}
        for name, node in moved.items():
            if node.name in names:
                raise ValueError(f"constant {name!r} would be named {node.name!r}, and another node is; rename one")
        nodes = []
        for node in model.nodes:
            inputs = tuple((moved[name].name if name in moved else name, index) for name, index in node.inputs)
            nodes.append(replace(moved.get(node.name, node), inputs=inputs))
        return replace(model, nodes=tuple(nodes))

    def place(self, data: Content) -> tuple[str, ExternalWeight]:
        """Write bytes to the folder, unless they are there, and return the text of their SHA-256 and their place.

        Raises
        ------
        ValueError
            The text is that of other bytes of the model.
        OSError, ModelFileError
            As `move_out`.
        """
        digest, xxh3 = _digests_of(data)
        text = sha256_text(digest, padded=self._padded)
        if self._digests.setdefault(text, digest) != digest:
            raise ValueError(f"two contents have the digest {text} where it is not padded; write it padded")
        place = self._sound.get(digest)
        if place is None:
            place = (self._individual if self._mode == INDIVIDUAL else self._append)(text, digest, data)
            self._sound[digest] = place
            self._lists.add_digest(RegionDigest(place.location, place.offset, place.length, xxh3))
        return text, place

    def check_apart(self, path: Path) -> None:
        """Refuse a path to write to that is one of the lists of the folder, or a file of a weight that was placed.

        Raises
        ------
        ValueError
            It is.
        """
        self._folder.check_apart(path, {place.location for place in self._sound.values()})

    def write_meta(self) -> None:
        """Write the list and the digests; they are taken back like the weights.

        Raises
        ------
        OSError
            One of them cannot be read or written, or is no regular file.
        """
        self._lists.write()

    def commit(self) -> None:
        """Keep everything."""
        self._folder.commit()

    def _individual(self, text: str, digest: bytes, data: Content) -> ExternalWeight:
        name = f"weight_{text}"
        is_listed = self._lists.contents.name(text) == name
        if not is_listed or not self._folder.holds(name, 0, data.nbytes, digest, whole=True):
            self._folder.write(name, data)
            self._lists.begin(name)
            self._lists.add(text, name)
        return ExternalWeight(name, 0, data.nbytes)

    def _append(self, text: str, digest: bytes, data: Content) -> ExternalWeight:
        known = self._lists.contents
        name, offset = known.name(text), known.offsets.get(text, -1)
        is_piece = is_combined_file(name) and offset >= 0 and offset % SESSION_MEM_ALIGN_BYTES == 0
        is_listed = is_piece and self._is_apart(name, offset, data.nbytes)
        if not is_listed or not self._folder.holds(name, offset, data.nbytes, digest):
            name = self._combined
            offset = self._folder.append(name, data)
            self._lists.begin(name, offset)
            self._lists.add(text, name, offset)
        insort(self._pieces[name], (offset, offset + data.nbytes))
        return ExternalWeight(name, offset, data.nbytes)

    def _is_apart(self, name: str, offset: int, size_bytes: int) -> bool:
        """Tell whether a place runs into none that was given before; what a list says may."""
        pieces = self._pieces[name]
        at = bisect_left(pieces, (offset, 0))
        is_behind = at == 0 or pieces[at - 1][1] <= offset
        return is_behind and (at == len(pieces) or offset + size_bytes <= pieces[at][0])


def _digests_of(data: Content) -> tuple[bytes, str]:
    """Return SHA-256 and xxh3 of 128 bits."""
    digest, xxh3 = hashlib.sha256(), xxhash.xxh3_128()
    for chunk in chunks_of(data):
        digest.update(chunk)
        xxh3.update(chunk)
    return digest.digest(), xxh3.hexdigest()
