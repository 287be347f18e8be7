"""Files in a folder that others may write to: opened without following links, and only if they are regular."""

import errno
import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path

from gevar.om.stored_bytes import CHUNK_BYTES


def open_regular(path: Path, flags: int, *, is_own: bool = False) -> int:
    """Open a regular file that is no link; `is_own` refuses one that has another name, too, which would change with it.

    What is looked at is the file that was opened, so another in its place makes no difference.

    Returns
    -------
    int
        The descriptor, for the caller to close.

    Raises
    ------
    OSError
        There is no such file, it is a link (ELOOP), no regular file, or has other names (EINVAL).
    """
    fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode) and not (is_own and found.st_nlink > 1):
        return fd
    os.close(fd)
    reason = "has other names, hard links" if stat.S_ISREG(found.st_mode) else "is no regular file"
    raise OSError(errno.EINVAL, f"a file of external weights {reason}; remove it", str(path))


def has_hash(path: Path, offset: int, size_bytes: int, wanted: str) -> bool:
    """Tell whether a file has bytes of this SHA-256 in a place; a link or device has none."""
    digest = hashlib.sha256()
    try:
        fd = open_regular(path, os.O_RDONLY)
    except OSError:
        return False
    with os.fdopen(fd, "rb") as file:
        if offset + size_bytes > os.fstat(fd).st_size:
            return False
        file.seek(offset)
        while chunk := file.read(min(CHUNK_BYTES, size_bytes)):
            digest.update(chunk)
            size_bytes -= len(chunk)
    return not size_bytes and digest.hexdigest() == wanted


def cut_file(path: Path, size_bytes: int) -> None:
    """Take back what was appended to a file."""
    with suppress(FileNotFoundError), os.fdopen(open_regular(path, os.O_RDWR), "r+b") as file:
        file.truncate(size_bytes)


def file_size(path: Path) -> int:
    """Return the size of a file that is no link; 0 where there is none."""
    with suppress(FileNotFoundError):
        return path.lstat().st_size
    return 0


def is_open_as(path: Path, fd: int) -> bool:
    """Tell whether a path names the file that is open."""
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:
        return False


def remove_if_empty(folder: Path) -> None:
    """Remove a folder, unless another writer has put something into it."""
    with suppress(OSError):
        folder.rmdir()
