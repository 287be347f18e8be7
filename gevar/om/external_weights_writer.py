"""Constants in files of their own (`ge.externalWeight`): names, places, and the list of what a folder holds.

A constant becomes a FileConstant named `<name>_<SHA-256 of its bytes>`. Mode 1 puts each content in a file
`weight_<SHA-256>`, mode 2 all of them behind each other in `<prefix>_weight_combined`, each padded with zeros to a
multiple of 512 bytes, in the order of names. `meta.json` in the folder says which content lies where, so another model
with the same content adds nothing::

    {"hash_to_weight_file": {hash: path}, "hash_to_weight_offset": {hash: offset, mode 2 only}}

Nothing is taken from that list but what the rules above name themselves, so no path in it leads out of the folder; and
what it lists is read and must have its hash, else it is written again. No link is followed on the way.

Beside the list, `digests.json` says the xxh3 digest of each region; see `gevar.om.weight_digests`.

A process that is killed leaves a list that can be read, and every region that it names is whole; a file of mode 2 may
have bytes behind them that no list names.

Source: GE source, base/common/file_constant_utils.
"""

import fcntl
import hashlib
import json
import os
import secrets
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, Literal, Self, TypeVar

import xxhash

from gevar.align import SESSION_MEM_ALIGN_BYTES, align_up
from gevar.om.atomic_file import write_atomically
from gevar.om.model_spec import ExternalWeight, NodeSpec, OmModelSpec
from gevar.om.node import CONST_TYPES, FILECONSTANT
from gevar.om.regular_file import cut_file, file_size, has_hash, is_open_as, open_regular, remove_if_empty
from gevar.om.stored_bytes import Content, SparseBytes, chunks_of
from gevar.om.weight_digests import DIGESTS_FILE, RegionDigest, digests_text, parse_digests

T = TypeVar("T")
ExternalWeightMode = Literal[0, 1, 2]
"""Values of `ge.externalWeight`: 0 constants stay in the model, 1 a file for each content, 2 one file."""
INDIVIDUAL: Final = 1
META_FILE: Final = "meta.json"
_FILES, _OFFSETS = "hash_to_weight_file", "hash_to_weight_offset"
_DRAFT: Final = ".gevar-weights"
"""How names of files that are being written begin; whoever holds the lock removes what a killed process left."""


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
        self._sound: set[str] = set()  # hashes whose bytes are known to be in their place
        self._digests: dict[tuple[str, int], RegionDigest] = {}

    def __enter__(self) -> Self:
        try:
            self._take_lock()
            for draft in self._folder.glob(f"{_DRAFT}*.tmp"):
                draft.unlink(missing_ok=True)
            self._read_meta()
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
            digest, xxh3 = _digests_of(node.data)
            place = self._individual(digest, node.data) if self._mode == INDIVIDUAL else self._append(digest, node.data)
            self._digests[place.location, place.offset] = RegionDigest(place.location, place.offset, place.length, xxh3)
            name = f"{node.name}_{digest}"
            moved[node.name] = replace(node, name=name, type=FILECONSTANT, data=None, external=place)
        nodes = []
        for node in model.nodes:
            inputs = tuple((moved[name].name if name in moved else name, index) for name, index in node.inputs)
            nodes.append(replace(moved.get(node.name, node), inputs=inputs))
        return replace(model, nodes=tuple(nodes))

    def write_meta(self) -> None:
        """Write the list and the digests; they are taken back like the weights.

        Raises
        ------
        OSError
            One of them cannot be read or written, or is no regular file.
        """
        meta = _meta_text(self._files, self._offsets)
        if self._changed:
            self._replace(META_FILE, meta)
        before = self._read(DIGESTS_FILE)
        known = {(one.file, one.offset): one for one in parse_digests(before)}
        if not self._digests.items() <= known.items():
            self._replace(DIGESTS_FILE, digests_text([*(known | self._digests).values()]))

    def _read(self, name: str) -> bytes:
        """Return the bytes of a file in the folder; none where it is not there."""
        try:
            fd = open_regular(self._folder / name, os.O_RDONLY)
        except FileNotFoundError:
            return b""
        with os.fdopen(fd, "rb") as file:
            return file.read()

    def _replace(self, name: str, data: bytes) -> None:
        """Replace a file in the folder, until it is taken back."""
        before = self._read(name)
        self._put(name, data)
        if before:
            self._undo.callback(self._put, name, before)
        else:
            self._undo.callback((self._folder / name).unlink, missing_ok=True)

    def _put(self, name: str, data: bytes) -> None:
        """Give a file new bytes. A new list is locked before it has its name, so that the lock is never without one."""

        def write(file: BinaryIO) -> None:
            file.write(data)
            if name == META_FILE:
                fd = os.dup(file.fileno())
                self._lock.callback(os.close, fd)
                fcntl.flock(fd, fcntl.LOCK_EX)

        write_atomically(self._folder / name, write, mode=0o600, draft_name=f"{_DRAFT}.tmp")

    def commit(self) -> None:
        """Keep everything."""
        self._undo.pop_all()

    def _individual(self, digest: str, data: Content) -> ExternalWeight:
        path = self._folder / f"weight_{digest}"
        if digest in self._sound:
            return ExternalWeight(path.name, 0, data.nbytes)
        is_listed = Path(self._files.get(digest, "")).name == path.name
        if not is_listed or file_size(path) != data.nbytes or not has_hash(path, 0, data.nbytes, digest):
            if not os.path.lexists(path):
                self._undo.callback(path.unlink, missing_ok=True)
            write_atomically(path, partial(_write_content, data), mode=0o600, draft_name=f"{_DRAFT}.tmp")
            self._files[digest] = str(path)
            self._offsets.pop(digest, None)
            self._changed = True
        self._sound.add(digest)
        return ExternalWeight(path.name, 0, data.nbytes)

    def _append(self, digest: str, data: Content) -> ExternalWeight:
        path = self._combined
        offset = self._offsets.get(digest, -1)
        if digest in self._sound:
            return ExternalWeight(path.name, offset, data.nbytes)
        is_here = Path(self._files.get(digest, "")).name == path.name and offset >= 0
        if not is_here or not has_hash(path, offset, data.nbytes, digest):
            offset = self._write_behind(data)
            self._files[digest] = str(path)
            self._offsets[digest] = offset
            self._changed = True
        self._sound.add(digest)
        return ExternalWeight(path.name, offset, data.nbytes)

    def _write_behind(self, data: Content) -> int:
        """Append to the file of mode 2 and return the offset."""
        if not os.path.lexists(self._combined):
            self._undo.callback(self._combined.unlink, missing_ok=True)
        with os.fdopen(open_regular(self._combined, os.O_RDWR | os.O_CREAT | os.O_APPEND, is_own=True), "ab") as file:
            size_bytes = os.fstat(file.fileno()).st_size
            self._undo.callback(cut_file, self._combined, size_bytes)
            offset = align_up(size_bytes, SESSION_MEM_ALIGN_BYTES)
            file.truncate(offset)
            _write_content(data, file)
            file.truncate(align_up(offset + data.nbytes, SESSION_MEM_ALIGN_BYTES))
            file.flush()
            os.fsync(file.fileno())
        return offset

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir()
        except FileExistsError:  # it was there, or another writer was quicker
            return
        self._undo.callback(remove_if_empty, self._folder)

    def _take_lock(self) -> None:
        """Lock the list; it may be replaced or removed while we wait, and the folder too, then a new one counts."""
        path = self._folder / META_FILE
        while True:
            self._make_folder()
            is_new = _make_list(path)
            try:
                fd = open_regular(path, os.O_RDWR)
            except FileNotFoundError:
                continue
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                if is_open_as(path, fd):
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
            meta = json.loads(self._read(META_FILE))
        except (ValueError, RecursionError):
            self._changed = True
            return
        if isinstance(meta, dict):
            self._files = _entries(meta.get(_FILES), str)
            self._offsets = _entries(meta.get(_OFFSETS), int)


def _entries(found: object, cls: type[T]) -> dict[str, T]:
    """Return the entries of a JSON object whose values are of one type."""
    items = found.items() if isinstance(found, dict) else ()
    return {str(key): value for key, value in items if type(value) is cls}


def _meta_text(files: dict[str, str], offsets: dict[str, int]) -> bytes:
    return json.dumps({_FILES: files, _OFFSETS: offsets}, indent=4, sort_keys=True).encode()


def _make_list(path: Path) -> bool:
    """Make an empty list unless one is there, and tell whether that was done; it has its name only with its bytes."""
    if os.path.lexists(path):
        return False
    draft = path.with_name(f"{_DRAFT}-{secrets.token_hex(8)}.tmp")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(_meta_text({}, {}))
        os.link(draft, path)
    except (FileExistsError, FileNotFoundError):  # another writer was quicker, or has taken folder or draft away
        return False
    finally:
        draft.unlink(missing_ok=True)
    return True


def _digests_of(data: Content) -> tuple[str, str]:
    """Return SHA-256 and xxh3 of 128 bits."""
    digest, xxh3 = hashlib.sha256(), xxhash.xxh3_128()
    for chunk in chunks_of(data):
        digest.update(chunk)
        xxh3.update(chunk)
    return digest.hexdigest(), xxh3.hexdigest()


def _write_content(data: Content, file: BinaryIO) -> None:
    for chunk in chunks_of(data):
        file.write(chunk)
