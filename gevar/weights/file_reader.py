"""Reading files of weights: ``pread``, through the page cache or past it.

A reader past the page cache (``O_DIRECT``) takes places, sizes and memory at multiples of a page. Where the file system
refuses that, the file is read through the cache, and the reader says why.
"""

import errno
import fcntl
import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from gevar.errors import LoadError
from gevar.om.regular_file import FileState, file_state, named_file
from gevar.weights.file_region import FileRegion

PAGE_BYTES: Final = 4096
"""Places, sizes and memory of reads past the page cache are multiples of this."""


_DIRECT_REFUSED: Final = (errno.EINVAL, errno.EOPNOTSUPP)  # by file systems that took the flag when it was opened


class FileReader(Protocol):
    """What an upload needs of a file."""

    @property
    def align_bytes(self) -> int:
        """Offsets and sizes of reads are multiples of this; it divides `PAGE_BYTES`."""

    @property
    def mode(self) -> str:
        """Say how it reads, for the report."""

    @property
    def descriptor(self) -> int | None:
        """Open file that may be read by its number instead; None where every read must come here."""

    @property
    def state(self) -> FileState:
        """Return what the file was when it was opened."""

    def read_into(self, offset: int, view: memoryview) -> int:
        """Read up to as many bytes as `view` has and return how many came; 0 at the end. Raises `OSError`.

        It may keep no view of `view`, nor write to it afterwards.
        """

    def change(self) -> str:
        """Say what happened to the file since it was opened; "" for nothing."""

    def close(self) -> None:
        """Close the file."""


OpenFile = Callable[[Path, bool], FileReader]
"""Opens a file, past the page cache where asked. Raises `OSError`."""


def os_reason(error: OSError) -> str:
    """Say why a call failed, in words that are never empty."""
    return error.strerror or str(error) or type(error).__name__


class PreadReader:
    """Read one open file with ``pread``.

    Parameters
    ----------
    path
        The file.
    past_cache
        Whether to read past the page cache where that is possible.

    Raises
    ------
    OSError
        The file cannot be opened.

    Thread safety: any thread may read; one closes when the others are done.
    """

    def __init__(self, path: Path, past_cache: bool = False) -> None:
        self._path = path
        self.align_bytes, self.mode = 1, "page cache"
        self._file = -1
        if past_cache:
            try:
                self._file = named_file(path, os.O_DIRECT)
                self.align_bytes, self.mode = PAGE_BYTES, "O_DIRECT"
            except OSError as error:
                self.mode = f"page cache, O_DIRECT refused: {os_reason(error)}"
        if self._file < 0:
            self._file = named_file(path)
        try:
            self.state = file_state(os.fstat(self._file))
        except BaseException:
            os.close(self._file)
            raise

    @property
    def descriptor(self) -> int | None:
        """The open file, unless it is read past the page cache."""
        return self._file if self.align_bytes == 1 else None

    def read_into(self, offset: int, view: memoryview) -> int:
        """Read as `FileReader` says; through the page cache from here on where the file system refuses another way."""
        try:
            return os.preadv(self._file, [view], offset)
        except OSError as error:
            if self.align_bytes == 1 or error.errno not in _DIRECT_REFUSED:
                raise
            fcntl.fcntl(self._file, fcntl.F_SETFL, fcntl.fcntl(self._file, fcntl.F_GETFL) & ~os.O_DIRECT)
            self.mode = f"page cache, O_DIRECT refused: {os_reason(error)}"
        return os.preadv(self._file, [view], offset)

    def change(self) -> str:
        """Compare the file, and what its name leads to now, with what was opened."""
        try:
            now, named = file_state(os.fstat(self._file)), file_state(self._path.stat())
        except OSError as error:
            return f"the file went away while it was read: {os_reason(error)}"
        before = self.state
        if now.size_bytes != before.size_bytes:
            how = "grew" if now.size_bytes > before.size_bytes else "was cut"
            return f"the file {how} from {before.size_bytes} B to {now.size_bytes} B while it was read"
        if named[:2] != before[:2]:
            return "another file took its place while it was read"
        return "" if now == before else "the file was written while it was read"

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class ReopeningReader:
    """Read a file that is open only while it is read, for loads of more files than a process may have open.

    Parameters
    ----------
    path
        The file.
    past_cache
        Whether to read past the page cache where that is possible.
    open_file
        Opens it, each time anew.

    Raises
    ------
    OSError
        The file cannot be opened.

    Thread safety: any thread may read.
    """

    descriptor: int | None = None

    def __init__(self, path: Path, past_cache: bool, open_file: OpenFile) -> None:
        self._open = partial(open_file, path, past_cache)
        reader = self._open()
        self.align_bytes, self.mode, self.state = reader.align_bytes, reader.mode, reader.state
        reader.close()

    def read_into(self, offset: int, view: memoryview) -> int:
        """Read as `FileReader` says; raise `OSError` (ESTALE) where the file is another one by now."""
        reader = self._open()
        try:
            if reader.state != self.state:
                raise OSError(errno.ESTALE, "the file changed while it was read")
            return reader.read_into(offset, view)
        finally:
            reader.close()

    def change(self) -> str:
        """Compare the file that has the name now with what was opened."""
        try:
            reader = self._open()
        except OSError as error:
            return f"the file went away while it was read: {os_reason(error)}"
        reader.close()
        return "" if reader.state == self.state else "the file changed while it was read"

    def close(self) -> None:
        """Do nothing: the file is closed."""


def open_region(region: FileRegion, stack: ExitStack) -> int:
    """Open the file of a region for `read_region`; the stack closes it.

    Raises
    ------
    LoadError
        The file cannot be opened, or is another one than when it was looked at.
    """
    try:
        file = named_file(region.path)
    except OSError as error:
        raise LoadError(region.path, region.offset, region.size_bytes, 0, os_reason(error)) from error
    stack.callback(os.close, file)
    if region.state not in (None, file_state(os.fstat(file))):
        reason = "the file changed since it was looked at; load again"
        raise LoadError(region.path, region.offset, region.size_bytes, 0, reason)
    return file


def read_region(file: int, path: Path, offset: int, view: memoryview) -> None:
    """Fill ``view`` from ``offset`` of an open file.

    Raises
    ------
    LoadError
        The file cannot be read or ends early; carries how many bytes were wanted and got.
    """
    got = 0
    while got < view.nbytes:
        try:
            with view[got:] as rest:
                step = os.preadv(file, [rest], offset + got)
        except OSError as error:
            raise LoadError(path, offset, view.nbytes, got, os_reason(error)) from error
        if step == 0:
            raise LoadError(path, offset, view.nbytes, got, "the file ends here")
        got += step
