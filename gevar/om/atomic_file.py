"""Files that appear under their name complete, or not at all, and that only their owner may read.

A file is written beside its name, as a draft, and gets the name when it is on the disk. While a process writes, it
holds a lock on its draft; what a killed process left nobody holds, and the next writer in the folder removes it.
"""

import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from gevar.om.regular_file import check_name

_DRAFT: Final = re.compile(r"\.gevar-[0-9a-f]{16}\.tmp")
_OWNER_ONLY: Final = 0o600
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_atomically(
    path: Path,
    write: Callable[[BinaryIO], None],
    *,
    before_naming: Callable[[], None] | None = None,
    after_naming: Callable[[], None] | None = None,
    draft_name: str | None = None,
) -> None:
    """Write a new file beside the path and give it the name when it is complete and on the disk.

    The file is for its owner only (0600), whatever was there before.

    Parameters
    ----------
    path
        The file; one that exists is replaced, and so is a link, not what it leads to.
    write
        Writes the content to an empty file.
    before_naming
        Called when the content is on the disk and the name is not given yet.
    after_naming
        Called as soon as the file has its name, whatever comes then; perhaps twice.
    draft_name
        Name that the file has while it is written, for a caller who removes himself what a killed process left.

    Raises
    ------
    OSError
        The file cannot be written; its folder is not there; no file can have the name; or the path is a directory,
        device, pipe or socket. What `write` and `before_naming` raise goes through.

    After failure: `path` is as it was before; nothing else is left. What interrupts the call when the file has its name
    goes through, too, and the file stays.
    Thread safety: may be called from several threads, also for one path; the last to finish wins.
    """
    check_name(path)
    if path.name in ("", ".."):
        raise IsADirectoryError(errno.EISDIR, "is a directory; give the name of a file", str(path))
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(errno.ENOENT, "the folder to write to is not there", str(path)) from error
    try:
        if draft_name is None:
            remove_drafts(folder)
        with errors_of(path):
            write_in(
                folder, path.name, write, before_naming=before_naming, after_naming=after_naming, draft_name=draft_name
            )
        with suppress(OSError):  # the file is whole, and a folder that cannot be synced still has it
            os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Let an error tell the path of the file that was to be written, where it tells its name, its draft or nothing.

    Of errors that tell nothing only those count that no reading has: there is no room.
    """
    try:
        yield
    except OSError as error:
        told = error.filename
        is_own = told == path.name or (isinstance(told, str) and is_draft(told))
        if is_own or (told is None and error.errno in _NO_ROOM):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def write_in(
    folder: int,
    name: str,
    write: Callable[[BinaryIO], None],
    *,
    before_naming: Callable[[], None] | None = None,
    after_naming: Callable[[], None] | None = None,
    draft_name: str | None = None,
) -> None:
    """Write a file in an open folder, as `write_atomically`; neither the folder is synced nor are drafts removed."""
    _check_target(folder, name)
    draft, fd = make_draft(folder, draft_name)
    made = None
    try:
        with os.fdopen(fd, "wb") as file:
            made = os.fstat(fd)
            write(file)
            file.flush()
            os.fsync(fd)
            if before_naming is not None:
                before_naming()
            os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            if after_naming is not None:
                after_naming()
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        if after_naming is not None and made is not None and is_named(name, made, folder):
            after_naming()
        raise


def is_named(path: str | Path, found: os.stat_result, folder: int | None = None) -> bool:
    """Tell whether a path, in a folder where that is given, names the file or folder that something was found to be."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.stat(path, dir_fd=folder), found)
    return False


def _check_target(folder: int, name: str) -> None:
    """Refuse to replace what is no file; of a link, what it leads to counts."""
    with suppress(FileNotFoundError):
        mode = os.stat(name, dir_fd=folder).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "is a directory; give the name of a file", name)
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "is a device, pipe or socket; give the name of a file", name)


def is_draft(name: str) -> bool:
    """Tell whether a name is that of a draft, which the next writer in its folder may remove."""
    return _DRAFT.fullmatch(name) is not None


def make_draft(folder: int, name: str | None = None) -> tuple[str, int]:
    """Make an empty file to be written, and lock it.

    Returns
    -------
    str, int
        Its name, and its descriptor for the caller to close.

    Raises
    ------
    OSError
        It cannot be made.
    """
    while True:
        draft = name or f".gevar-{secrets.token_hex(8)}.tmp"
        fd = os.open(draft, _NEW_FILE, _OWNER_ONLY, dir_fd=folder)
        try:
            os.fchmod(fd, _OWNER_ONLY)  # the umask may have taken more
            with suppress(OSError):  # where files cannot be locked, nobody takes a draft for one that was left, either
                fcntl.flock(fd, fcntl.LOCK_EX)
            if os.fstat(fd).st_nlink:
                return draft, fd
        except BaseException:
            os.close(fd)
            os.unlink(draft, dir_fd=folder)
            raise
        os.close(fd)  # another writer was quicker with its lock, and took the draft for one that was left


def remove_drafts(folder: int) -> None:
    """Remove the drafts of an open folder that nobody writes, of this user; one that cannot be removed stays."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if is_draft(entry.name)]
    for name in names:
        with suppress(OSError):
            _remove_if_left(folder, name)


def _remove_if_left(folder: int, name: str) -> None:
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
            if found.st_nlink == 1:  # one that has another name is complete, and only its draft's name is left
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where it is being written
            os.unlink(name, dir_fd=folder)
    finally:
        os.close(fd)
