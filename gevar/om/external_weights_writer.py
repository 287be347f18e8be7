"""Constants in files of their own (`ge.externalWeight`): names, places, and the list of what a folder holds.

A constant becomes a FileConstant named `<name>_<SHA-256 of its bytes>`. Mode 1 puts each content in a file
`weight_<SHA-256>`, mode 2 all of them behind each other in `<prefix>_weight_combined`, each padded with zeros to a
multiple of 512 bytes, in the order of names. `meta.json` in the folder says which content lies where, so another model
with the same content adds nothing::

    {"hash_to_weight_file": {hash: path}, "hash_to_weight_offset": {hash: offset, mode 2 only}}

Nothing is taken from that list but what the rules above name themselves, so no path in it leads out of the folder; and
what it lists must be there with the right size, else it is written again.

Source: GE source, base/common/file_constant_utils.
"""

import fcntl
import hashlib
import json
import os
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, Literal, Self, TypeVar

from gevar.align import SESSION_MEM_ALIGN_BYTES, align_up
from gevar.om.atomic_file import write_atomically
from gevar.om.model_spec import ExternalWeight, NodeSpec, OmModelSpec
from gevar.om.node import CONST_TYPES, FILECONSTANT
from gevar.om.stored_bytes import Content, SparseBytes, chunks_of

T = TypeVar("T")
ExternalWeightMode = Literal[0, 1, 2]
"""Values of `ge.externalWeight`: 0 constants stay in the model, 1 a file for each content, 2 one file."""
INDIVIDUAL: Final = 1
META_FILE: Final = "meta.json"
_FILES, _OFFSETS = "hash_to_weight_file", "hash_to_weight_offset"


def movable_nodes(model: OmModelSpec) -> list[NodeSpec]:
    """Return the constants of a model that have bytes."""
    return [node for node in model.nodes if node.type in CONST_TYPES and node.data]


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

    Raises
    ------
    ValueError
        The mode is another one, or the prefix is no part of a file name.
    OSError
        The folder or its list cannot be opened.

    Thread safety: one object belongs to one thread; other writers of the folder, in other processes too, wait.
    """

    def __init__(self, folder: Path, mode: int, *, prefix: str) -> None:
        if mode not in (1, 2):
            raise ValueError(f"external weight mode is {mode!r}; give 0, 1 or 2")
        if "/" in prefix or "\0" in prefix:
            raise ValueError(f"{prefix!r} is no part of a file name")
        self._folder = folder
        self._mode = mode
        self._combined = folder / (f"{prefix}_weight_combined" if prefix else "weight_combined")
        self._undo = ExitStack()
        self._lock = ExitStack()
        self._files: dict[str, str] = {}
        self._offsets: dict[str, int] = {}
        self._changed = False
        self._sound_bytes = 0  # of the file in mode 2: what the list says of bytes beyond does not count
        self._appended: set[str] = set()

    def __enter__(self) -> Self:
        try:
            self._take_lock()
            self._read_meta()
            self._sound_bytes = _size(self._combined)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._undo.close()
        finally:
            self._lock.close()

    def move_out(self, model: OmModelSpec) -> OmModelSpec:
        """Write the constants of a model to the folder and return the model that finds them there.

        Raises
        ------
        ValueError
            The data of a constant are sparse.
        OSError, ModelFileError
            A file cannot be written, or data cannot be read.
        """
        moved: dict[str, NodeSpec] = {}
        for node in sorted(movable_nodes(model), key=lambda node: node.name):
            if node.data is None or isinstance(node.data, SparseBytes):
                raise ValueError(f"{node.type} {node.name} has sparse data, which cannot be external; give it an array")
            digest = _sha256(node.data)
            place = self._individual(digest, node.data) if self._mode == INDIVIDUAL else self._append(digest, node.data)
            name = f"{node.name}_{digest}"
            moved[node.name] = replace(node, name=name, type=FILECONSTANT, data=None, external=place)
        nodes = []
        for node in model.nodes:
            inputs = tuple((moved[name].name if name in moved else name, index) for name, index in node.inputs)
            nodes.append(replace(moved.get(node.name, node), inputs=inputs))
        return replace(model, nodes=tuple(nodes))

    def write_meta(self) -> None:
        """Write the list; it is taken back like the weights."""
        path = self._folder / META_FILE
        before = path.read_bytes()
        if self._changed or not before:
            meta = {_FILES: self._files, _OFFSETS: self._offsets}
            _put(path, json.dumps(meta, indent=4, sort_keys=True).encode())
            if before:
                self._undo.callback(_put, path, before)

    def commit(self) -> None:
        """Keep everything."""
        self._undo.pop_all()

    def _individual(self, digest: str, data: Content) -> ExternalWeight:
        path = self._folder / f"weight_{digest}"
        if Path(self._files.get(digest, "")).name != path.name or _size(path) != data.nbytes:
            if not path.exists():
                self._undo.callback(path.unlink, missing_ok=True)
            write_atomically(path, partial(_write_content, data))
            self._files[digest] = str(path)
            self._offsets.pop(digest, None)
            self._changed = True
        return ExternalWeight(path.name, 0, data.nbytes)

    def _append(self, digest: str, data: Content) -> ExternalWeight:
        path = self._combined
        offset = self._offsets.get(digest, -1)
        is_here = Path(self._files.get(digest, "")).name == path.name
        if digest not in self._appended and not (is_here and 0 <= offset <= self._sound_bytes - data.nbytes):
            size_bytes = _size(path)
            offset = align_up(size_bytes, SESSION_MEM_ALIGN_BYTES)
            if path.exists():
                self._undo.callback(os.truncate, path, size_bytes)
            else:
                self._undo.callback(path.unlink, missing_ok=True)
            with path.open("ab") as file:
                file.truncate(offset)
                _write_content(data, file)
                file.truncate(align_up(offset + data.nbytes, SESSION_MEM_ALIGN_BYTES))
                file.flush()
                os.fsync(file.fileno())
            self._files[digest] = str(path)
            self._offsets[digest] = offset
            self._appended.add(digest)
            self._changed = True
        return ExternalWeight(path.name, offset, data.nbytes)

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir()
        except FileExistsError:  # it was there, or another writer was quicker
            return
        self._undo.callback(_remove_if_empty, self._folder)

    def _take_lock(self) -> None:
        """Lock the list; it may be replaced or removed while we wait, and the folder too, then a new one counts."""
        path = self._folder / META_FILE
        while True:
            self._make_folder()
            is_new = not path.exists()
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                if _is_open_as(path, fd):
                    break
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
        self._lock.callback(os.close, fd)
        if is_new:
            self._undo.callback(path.unlink, missing_ok=True)

    def _read_meta(self) -> None:
        """Take the entries of the list that have the right form; one that an interrupted run left empty has none."""
        try:
            meta = json.loads((self._folder / META_FILE).read_bytes())
        except ValueError:
            return
        if isinstance(meta, dict):
            self._files = _entries(meta.get(_FILES), str)
            self._offsets = _entries(meta.get(_OFFSETS), int)


def _entries(found: object, cls: type[T]) -> dict[str, T]:
    """Return the entries of a JSON object whose values are of one type."""
    items = found.items() if isinstance(found, dict) else ()
    return {str(key): value for key, value in items if type(value) is cls}


def _sha256(data: Content) -> str:
    digest = hashlib.sha256()
    for chunk in chunks_of(data):
        digest.update(chunk)
    return digest.hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _is_open_as(path: Path, fd: int) -> bool:
    """Tell whether a path names the file that is open."""
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:
        return False


def _remove_if_empty(folder: Path) -> None:
    """Remove a folder, unless another writer has put something into it."""
    with suppress(OSError):
        folder.rmdir()


def _put(path: Path, data: bytes) -> None:
    write_atomically(path, partial(_write_content, memoryview(data)), mode=0o600)


def _write_content(data: Content, file: BinaryIO) -> None:
    for chunk in chunks_of(data):
        file.write(chunk)
