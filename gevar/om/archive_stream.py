"""A source as a stream for the reader of ZIP archives, which takes a list of files of any length into memory."""

import errno
import io
import struct
import zipfile
import zlib
from typing import Final

from gevar.om.source import ByteSource

DIRECTORY_BYTES: Final = 8 << 20
"""Longest list of files of an archive that is read: some ten thousand of them."""

ARCHIVE_ERRORS: Final = (
    *(zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, RuntimeError, ValueError, EOFError, OSError),
)
"""What the reader of archives raises for damaged ones."""


class ArchiveStream(io.RawIOBase):
    """A source as a stream that can be read and searched, so many bytes at once.

    Parameters
    ----------
    source
        The archive.

    Attributes
    ----------
    source : ByteSource
        The archive; another source of the same bytes may take its place.
    most_bytes : int
        Most bytes that one call reads; `DIRECTORY_BYTES` at first, for the list of files.

    Thread safety: one thread at a time reads.
    """

    def __init__(self, source: ByteSource) -> None:
        super().__init__()
        self.source = source
        self._at = 0
        self.most_bytes = DIRECTORY_BYTES

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the offset in bytes that is read next."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the offset in bytes that is read next, and return it; raises `OSError` before the start."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.source.size_bytes}[whence]
        if start + offset < 0:
            raise OSError(errno.EINVAL, f"a place before the start: {start + offset}")  # as zipfile expects of a file
        self._at = start + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Return so many bytes, fewer at the end; all that are left where the number is negative.

        Raises
        ------
        ModelFileError
            There are more than `most_bytes`, or the file became shorter.
        """
        left = max(0, self.source.size_bytes - self._at)
        size = left if size is None or size < 0 else min(size, left)
        if size > self.most_bytes:
            raise self.source.error(self._at, "archive", f"a list of files of {size} B, {self.most_bytes} B are read")
        data = self.source.read(self._at, size, "archive") if size else b""
        self._at += size
        return data
