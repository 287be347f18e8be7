"""Files in folders that others may write to: opened without following links, and only if they are regular.

A name is looked at and then used; between the two it may come to name another file. So every file is opened once, each
folder on the way by its descriptor and none through a link, and what is looked at is the file that was opened.
"""

import errno
import os
import stat
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

FOLDER_FLAGS: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
"""How a folder is opened that others are opened in."""
_FILE_FLAGS: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe in the place of a file must not block


class FileState(NamedTuple):
    """What a file was when it was looked at; another state is another file, or other bytes.

    The time of the last change of anything about the file counts, too: nobody can set it, while a new file may get the
    number and the time of writing of one that was removed.
    """

    device: int
    inode: int
    size_bytes: int
    mtime_ns: int
    ctime_ns: int


def file_state(found: os.stat_result) -> FileState:
    """Return the state of a file by what `os.fstat` says of it."""
    return FileState(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def open_named(path: str | os.PathLike[str], state: FileState | None = None) -> BinaryIO:
    """Open a regular file for reading that the caller names, and that may be a link; nothing waits for a pipe.

    Parameters
    ----------
    path
        The file.
    state
        What it must be, where somebody has looked at it before.

    Raises
    ------
    OSError
        There is no such file, it is not a regular file (EINVAL), or another one by now (ESTALE).
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        if state not in (None, file_state(found)):
            raise OSError(errno.ESTALE, "changed since it was looked at; try again", os.fspath(path))
        return os.fdopen(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


def open_regular(path: str | Path, flags: int, *, dir_fd: int | None = None, is_own: bool = False) -> int:
    """Open a regular file that is no link; `is_own` refuses one that has another name, too, which would change with it.

    Parameters
    ----------
    path
        The file; a name in the folder `dir_fd` where that is given.
    flags
        How to open it, as `os.open`. One that is made is for its owner only.
    dir_fd
        Descriptor of the folder.
    is_own
        Whether other names are refused.

    Returns
    -------
    int
        The descriptor, for the caller to close.

    Raises
    ------
    OSError
        There is no such file, it is a link (ELOOP), no regular file, or has other names (EINVAL). A device, pipe or
        socket is not opened, and nothing waits.
    """
    with suppress(FileNotFoundError):
        _check_regular(os.stat(path, dir_fd=dir_fd, follow_symlinks=False), path, is_own=False)
    fd = os.open(path, flags | _FILE_FLAGS, 0o600, dir_fd=dir_fd)
    try:
        _check_regular(os.fstat(fd), path, is_own=is_own)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _check_regular(found: os.stat_result, path: str | Path, *, is_own: bool) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, "is a symbolic link, which may lead out; copy the file", str(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file; remove it", str(path))
    if is_own and found.st_nlink > 1:
        raise OSError(errno.EINVAL, "has other names, hard links; copy the file", str(path))


def open_inside(folder: Path, path: Path) -> int:
    """Open a regular file below a folder for reading, none of its folders through a link.

    Parameters
    ----------
    folder
        The folder, no link.
    path
        Path of the file, below the folder and without links, as `os.path.realpath` gives it.

    Returns
    -------
    int
        The descriptor, for the caller to close.

    Raises
    ------
    OSError
        There is no such file, or something on the way is a link by now (ELOOP, ENOTDIR); it is no regular file, or it
        has a name outside its folder (EINVAL): a hard link leads out as a symbolic one does.
    """
    if path == folder:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    *between, name = path.relative_to(folder).parts
    with ExitStack() as stack:
        at = os.open(folder, FOLDER_FLAGS | os.O_NOFOLLOW)
        stack.callback(os.close, at)
        for part in between:
            at = os.open(part, FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=at)
            stack.callback(os.close, at)
        fd = open_regular(name, os.O_RDONLY, dir_fd=at)
        try:
            _check_names(os.fstat(fd), at, path)
        except BaseException:
            os.close(fd)
            raise
        return fd


def _check_names(found: os.stat_result, folder: int, path: Path) -> None:
    """Refuse a file that has more names than there are in its folder."""
    if found.st_nlink == 1:
        return
    with ExitStack() as stack:
        readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        stack.callback(os.close, readable)
        here = sum(entry.inode() == found.st_ino for entry in stack.enter_context(os.scandir(readable)))
    if here < found.st_nlink:
        reason = f"has {found.st_nlink - here} names elsewhere (hard links), which may lead out; copy the file"
        raise OSError(errno.EINVAL, reason, str(path))
