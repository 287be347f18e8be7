"""How every file is opened that is read: only if it is regular, and out of a folder by no link.

A file that the caller names may be a link (`open_named`). What a file names lies in a folder (`path_inside`), which
others may write to: a name is looked at and then used, and between the two it may come to name another file. So every
file is opened once, each folder on the way by its descriptor and none through a link (`open_inside`), and what is
looked at is the file that was opened. Whatever is wrong with a name is an `OSError`.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from acl_shim.errors import printable
from gevar.om.hard_links import check_names

_OPEN_TRIES: Final = 8
"""How often a file is opened that others change meanwhile, such as a list that they write anew."""
MAX_MESSAGE_BYTES: Final = (1 << 31) - 1
"""Longest file that is one message: the limit of protobuf."""
_FOLDER_FLAGS: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_FILE_FLAGS: Final = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # a pipe in the place of a file must not block


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


@contextmanager
def _as_os_error(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say of a name that no file can have what is said of one that no file has."""
    try:
        yield
    except ValueError as error:
        raise OSError(errno.EINVAL, f"is no name of a file: {error}", os.fspath(path)) from error


def check_name(path: str | os.PathLike[str]) -> None:
    """Refuse a name that no file can have; raises `OSError` (EINVAL)."""
    with _as_os_error(path), suppress(OSError):
        Path(path).lstat()


def named_file(path: str | os.PathLike[str], flags: int = 0) -> int:
    """Open a regular file for reading that the caller names, and that may be a link; nothing waits for a pipe.

    Parameters
    ----------
    path
        The file.
    flags
        More of how to open it, as `os.open`.

    Returns
    -------
    int
        The descriptor, for the caller to close.

    Raises
    ------
    OSError
        There is no such file, or it is not a regular file (EINVAL). A device, pipe or socket is not opened, unless it
        takes the place of a file at this moment; then it is closed.
    """
    with _as_os_error(path):
        _check_regular(os.stat(path), path)  # noqa: PTH116 - pathlib takes no name for the working directory
        fd = os.open(path, os.O_RDONLY | flags | _FILE_FLAGS)
    with _closed_if_refused(fd):
        _check_regular(os.fstat(fd), path)
    return fd


def open_named(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file as `named_file`, which raises `OSError`, for reading part of it."""
    return os.fdopen(named_file(path), "rb")


def read_whole(fd: int, most_bytes: int, path: str | os.PathLike[str]) -> bytes:
    """Read a file that was opened, and close it.

    Raises
    ------
    OSError
        It has more than `most_bytes` (EFBIG), of which none are read where it says so; or it cannot be read.
    """
    with os.fdopen(fd, "rb") as file:
        size_bytes = os.fstat(fd).st_size
        data = b"" if size_bytes > most_bytes else file.read(most_bytes + 1)
    if max(size_bytes, len(data)) > most_bytes:
        reason = f"takes {max(size_bytes, len(data))} B, {most_bytes} B at most are read"
        raise OSError(errno.EFBIG, reason, os.fspath(path))
    return data


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
    with _as_os_error(path):
        with suppress(FileNotFoundError):
            _check_regular(os.stat(path, dir_fd=dir_fd, follow_symlinks=False), path)
        fd = os.open(path, flags | os.O_NOFOLLOW | _FILE_FLAGS, 0o600, dir_fd=dir_fd)
    with _closed_if_refused(fd):
        _check_regular(os.fstat(fd), path)
        if is_own:
            check_names(fd, path, dir_fd, is_own=True)
    return fd


@contextmanager
def _closed_if_refused(fd: int) -> Iterator[None]:
    try:
        yield
    except BaseException:
        os.close(fd)
        raise


def _check_regular(found: os.stat_result, path: str | os.PathLike[str]) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, "is a symbolic link, which may lead out; copy the file", os.fspath(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file; give one", os.fspath(path))


def path_inside(folder: Path, name: str | os.PathLike[str]) -> Path:
    """Return the real path of what a file names in a folder, which `open_inside` takes.

    Parameters
    ----------
    folder
        The folder, by its real path.
    name
        The name, with folders or without.

    Raises
    ------
    OSError
        No file can have the name (EINVAL), or it leads out of the folder (EXDEV): as an absolute path, by `..`, or
        by a link. There may be no such file.
    """
    with _as_os_error(name):
        real = Path(os.path.realpath(folder / name))
    if not os.fspath(name) or real == folder or not real.is_relative_to(folder):
        raise OSError(
            errno.EXDEV,
            f"leads to {printable(str(real))}, not to a file in {printable(str(folder))}; copy it there",
            os.fspath(name),
        )
    return real


def open_inside(folder: Path, path: Path) -> int:
    """Open a regular file below a folder for reading, none of its folders through a link.

    Parameters
    ----------
    folder
        The folder, by its real path.
    path
        Path of the file, below the folder and without links, as `path_inside` or `os.path.realpath` gives it.

    Returns
    -------
    int
        The descriptor, for the caller to close.

    Raises
    ------
    OSError
        There is no such file, or something on the way is a link by now (ELOOP, ENOTDIR); it is no regular file, or it
        has a name outside its folder (EINVAL): a hard link leads out as a symbolic one does; or it is changed again and
        again while it is opened (ESTALE).
    """
    if path == folder:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    for _ in range(_OPEN_TRIES - 1):
        try:
            return _open_inside(folder, path)
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
    return _open_inside(folder, path)


def _open_inside(folder: Path, path: Path) -> int:
    top, *between, name = path.parts
    with ExitStack() as stack, _as_os_error(path):
        path.relative_to(folder)
        at = os.open(top, _FOLDER_FLAGS)
        stack.callback(os.close, at)
        for part in between:
            at = os.open(part, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=at)
            stack.callback(os.close, at)
        fd = open_regular(name, os.O_RDONLY, dir_fd=at)
        with _closed_if_refused(fd):
            check_names(fd, name, at, is_own=False)
        return fd
