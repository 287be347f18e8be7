"""Where the bytes of a model come from: a file or a buffer, and ranges of either.

The reader's own reading goes through `pread`, never through the map: a file that becomes shorter while it is read gives
a `ModelFileError` with numbers, not a bus error. The map exists for `view` alone, the zero-copy way to the bytes of
weights. `view` compares the size of the file again before it hands out; a file cut after that is a bus error on the
first touch, so whoever copies weights uses the file offset and `pread`.
"""

import mmap
import os
import threading
import weakref
from os import PathLike
from pathlib import Path
from typing import Protocol

from gevar.errors import ModelFileError, StateError
from gevar.om.regular_file import FileState, file_state, named_file, open_inside
from gevar.status import ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID as _PATH_INVALID


class _Storage(Protocol):
    name: str
    size_bytes: int
    state: FileState | None

    def read(self, offset: int, size_bytes: int) -> bytes: ...
    def view(self, offset: int, size_bytes: int) -> memoryview: ...
    def close(self) -> None: ...


class _Buffer:
    """Bytes in memory, not copied."""

    state: FileState | None = None

    def __init__(self, data: bytes | bytearray | memoryview, name: str) -> None:
        self._data = memoryview(data).cast("B").toreadonly()
        self.name = name
        self.size_bytes = self._data.nbytes

    def read(self, offset: int, size_bytes: int) -> bytes:
        return bytes(self._data[offset : offset + size_bytes])

    def view(self, offset: int, size_bytes: int) -> memoryview:
        return self._data[offset : offset + size_bytes]

    def close(self) -> None:
        pass


class _File:
    """A regular file, opened once; mapped read-only when the first view is asked for."""

    def __init__(self, path: str | PathLike[str], folder: Path | None = None) -> None:
        self.name = os.fspath(path)
        try:
            fd = named_file(path) if folder is None else open_inside(folder, Path(path))
        except OSError as error:
            reason = f"cannot be opened: {error.strerror}"
            raise ModelFileError(self.name, 0, "file", reason, status=_PATH_INVALID) from error
        self._close = weakref.finalize(self, os.close, fd)
        self._fd = fd
        self._map: mmap.mmap | None = None
        self._lock = threading.Lock()
        found = os.fstat(fd)
        self.size_bytes = found.st_size
        self.state: FileState | None = file_state(found)

    def read(self, offset: int, size_bytes: int) -> bytes:
        self._check_open()
        pieces = []
        while size_bytes:
            try:
                piece = os.pread(self._fd, size_bytes, offset)
            except OSError as error:
                raise ModelFileError(self.name, offset, "file", f"cannot be read: {error}") from error
            if not piece:
                self._refuse_cut(offset, size_bytes)
            pieces.append(piece)
            offset += len(piece)
            size_bytes -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def view(self, offset: int, size_bytes: int) -> memoryview:
        self._check_open()
        if os.fstat(self._fd).st_size < self.size_bytes:
            self._refuse_cut(offset, size_bytes)
        with self._lock:
            if self._map is None:
                try:
                    self._map = mmap.mmap(self._fd, self.size_bytes, prot=mmap.PROT_READ)
                except (OSError, ValueError) as error:
                    raise ModelFileError(self.name, offset, "file", f"cannot be mapped: {error}") from error
            return memoryview(self._map)[offset : offset + size_bytes]

    def close(self) -> None:
        self._close()
        self._map = None

    def _check_open(self) -> None:
        if not self._close.alive:
            raise StateError(f"{self.name} was closed; open it again to read from it")

    def _refuse_cut(self, offset: int, size_bytes: int) -> None:
        present = os.fstat(self._fd).st_size
        reason = f"the file was cut from {self.size_bytes} B to {present} B while {size_bytes} B were read"
        raise ModelFileError(self.name, offset, "file", reason)


def _open_as(path: str | PathLike[str], state: FileState | None) -> _File:
    """Open a file that must be what it was, where that is known."""
    file = _File(path)
    if state not in (None, file.state):
        file.close()
        raise ModelFileError(file.name, 0, "file", "changed since it was looked at; try again")
    return file


class _ClosedFile:
    """A regular file that is opened for each read."""

    def __init__(self, path: str | PathLike[str], state: FileState) -> None:
        self.name = os.fspath(path)
        self.state: FileState | None = state
        self.size_bytes = state.size_bytes

    def read(self, offset: int, size_bytes: int) -> bytes:
        file = _open_as(self.name, self.state)
        try:
            return file.read(offset, size_bytes)
        finally:
            file.close()

    def view(self, offset: int, size_bytes: int) -> memoryview:
        file = _open_as(self.name, self.state)
        try:
            return file.view(offset, size_bytes)
        finally:
            file.close()

    def close(self) -> None:
        pass


class ByteSource:
    """A range of a file or buffer: all offsets count from its start, all errors name the place in the whole file.

    Thread safety: reading and viewing may happen from several threads; `close` from one, when the others are done.
    """

    def __init__(self, storage: _Storage, base: int = 0, size_bytes: int | None = None) -> None:
        self._storage = storage
        self.base = base
        self.size_bytes = storage.size_bytes if size_bytes is None else size_bytes

    @classmethod
    def of_file(cls, path: str | PathLike[str], state: FileState | None = None) -> "ByteSource":
        """Open a regular file for reading; `state` is what it must be, where somebody has looked at it before.

        Raises
        ------
        ModelFileError
            The path cannot be opened, is not a regular file, or is another one by now. Nothing stays open.
        """
        return cls(_open_as(path, state))

    @classmethod
    def of_known_file(cls, path: str | PathLike[str], state: FileState) -> "ByteSource":
        """Take a regular file that somebody has looked at, and open it only while it is read: any number may be known.

        Reading raises `ModelFileError` where the file cannot be opened, or is another one by now.
        """
        return cls(_ClosedFile(path, state))

    @classmethod
    def of_file_in(cls, folder: Path, path: Path) -> "ByteSource":
        """Open a regular file below a folder, as `gevar.om.regular_file.open_inside`: no link leads out of it.

        Raises
        ------
        ModelFileError
            The file cannot be opened so. Nothing stays open.
        """
        return cls(_File(path, folder))

    @classmethod
    def of_bytes(cls, data: bytes | bytearray | memoryview, name: str) -> "ByteSource":
        """Take a buffer, without a copy; `name` stands for the file in errors."""
        return cls(_Buffer(data, name))

    @property
    def name(self) -> str:
        """Path of the file, or the name given for the buffer."""
        return self._storage.name

    @property
    def state(self) -> FileState | None:
        """What the file was when it was opened, for who opens it again; None for a buffer."""
        return self._storage.state

    def range(self, offset: int, size_bytes: int, field: str) -> "ByteSource":
        """Return a part of this range as a source of its own.

        Raises
        ------
        ModelFileError
            The part does not lie inside the range.
        """
        self._check(offset, size_bytes, field)
        return ByteSource(self._storage, self.base + offset, size_bytes)

    def read(self, offset: int, size_bytes: int, field: str) -> bytes:
        """Return a copy of some bytes; `field` names them in errors.

        Raises
        ------
        ModelFileError
            They do not lie inside the range, or the file became shorter.
        StateError
            The source was closed.
        """
        self._check(offset, size_bytes, field)
        return self._storage.read(self.base + offset, size_bytes)

    def view(self, offset: int, size_bytes: int, field: str) -> memoryview:
        """Return some bytes without a copy, read-only; the view stays valid after `close`.

        Raises
        ------
        ModelFileError
            They do not lie inside the range, or the file became shorter.
        StateError
            The source was closed.
        """
        self._check(offset, size_bytes, field)
        return self._storage.view(self.base + offset, size_bytes)

    def error(self, offset: int, field: str, reason: str, *, status: int | None = None) -> ModelFileError:
        """Return the error for a fault at an offset of this range; `status` is GE's number for it."""
        return ModelFileError(self.name, self.base + offset, field, reason, status=status)

    def close(self) -> None:
        """Close the whole file, which ends every range of it; a second call does nothing."""
        self._storage.close()

    def _check(self, offset: int, size_bytes: int, field: str) -> None:
        if offset < 0 or size_bytes < 0 or offset + size_bytes > self.size_bytes:
            reason = f"{size_bytes} B at {offset} do not lie inside the {self.size_bytes} B there are"
            raise self.error(max(offset, 0), field, reason)
