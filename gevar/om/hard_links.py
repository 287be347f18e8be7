"""Whether a file that is open has names outside of its folder: hard links, which lead out as symbolic ones do.

Count and names are looked at one after the other, and somebody may give or take a name between. Whoever does changes
the time of the last change of the file. The clocks of file systems tick every few milliseconds, so that time tells only
if the last change before was some ticks ago; where it was not, they are waited for. A file that is written to changes
each time by that alone, so for it they are not: two names given and taken within one tick would be missed.
"""

import errno
import os
import time
from contextlib import ExitStack
from typing import Final

_REALTIME_COARSE: Final = 5
"""Linux's number of the clock that file systems take their times from."""
_TICKS_NS: Final = int(2e9 * time.clock_getres(_REALTIME_COARSE))


def check_names(fd: int, name: str | os.PathLike[str], folder: int | None, *, is_own: bool) -> None:
    """Refuse a file that has other names, or, unless it `is_own`, names outside of its folder.

    Parameters
    ----------
    fd
        The open file.
    name
        Name by which it was opened.
    folder
        Descriptor of the folder; None where the name is a path.
    is_own
        Whether other names in the folder are refused, too.

    Raises
    ------
    OSError
        There are such names (EINVAL); or names were given or taken meanwhile, or the file was written (ESTALE).
    """
    found = os.fstat(fd) if is_own else _settled(fd)
    here = 1 if is_own or found.st_nlink == 1 else _names_in(folder, found.st_ino)
    if found.st_nlink > here:
        where, why = ("beside it", "would change with it") if is_own else ("elsewhere", "may lead out")
        reason = f"has {found.st_nlink - here} names {where} (hard links), which {why}; copy the file"
        raise OSError(errno.EINVAL, reason, os.fspath(name))
    named, now = os.stat(name, dir_fd=folder, follow_symlinks=False), os.fstat(fd)
    if not os.path.samestat(named, found) or (now.st_nlink, now.st_ctime_ns) != (found.st_nlink, found.st_ctime_ns):
        raise OSError(errno.ESTALE, "was changed while it was opened; try again", os.fspath(name))


def _settled(fd: int) -> os.stat_result:
    """Return what a file is when its last change is some ticks of the clock ago."""
    found = os.fstat(fd)
    if time.time_ns() - found.st_ctime_ns > _TICKS_NS:
        return found
    time.sleep(_TICKS_NS / 1e9)
    return os.fstat(fd)


def _names_in(folder: int | None, inode: int) -> int:
    with ExitStack() as stack:
        readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        stack.callback(os.close, readable)
        return sum(entry.inode() == inode for entry in stack.enter_context(os.scandir(readable)))
