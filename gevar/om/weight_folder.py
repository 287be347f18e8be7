"""A folder of external weights that one writer has for itself, and the files that it makes there.

The folder is opened once, and every file by its name in it: another folder or link in its place makes no difference.
The lock is that of `meta.json`, as in GE.

Source: GE source, base/common/file_constant_utils.
"""

import errno
import fcntl
import hashlib
import os
from collections.abc import Collection
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from gevar.align import SESSION_MEM_ALIGN_BYTES, align_up
from gevar.om.atomic_file import errors_of, is_named, make_draft, remove_drafts, write_in
from gevar.om.regular_file import check_name, open_regular
from gevar.om.stored_bytes import CHUNK_BYTES, Content, write_all
from gevar.om.weight_list import LISTS, MAX_LIST_BYTES, META_FILE, WeightList


class WeightFolder:
    """A folder of external weights, held under an exclusive lock from `open` to `close`.

    What is written is taken back by `close` unless `commit` was called.

    Parameters
    ----------
    path
        The folder; `open` makes it if it is not there, its parent must be.
    follow_link
        Whether the folder may be a link.

    Thread safety: one object belongs to one thread; other writers of the folder, in other processes too, wait.
    """

    def __init__(self, path: Path, *, follow_link: bool = True) -> None:
        self.path = path
        self._flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if follow_link else os.O_NOFOLLOW)
        self._undo = ExitStack()
        self._held = ExitStack()
        self._appended: set[str] = set()  # names of files
        self._fd = -1

    def open(self) -> None:
        """Open and lock the folder, and remove what killed writers had begun.

        Raises
        ------
        OSError
            Folder or list cannot be made or opened, or are no folder and no regular file. Nothing is held then.
        """
        check_name(self.path)
        try:
            while not self._try_lock():
                self.close()
            remove_drafts(self._fd)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Take back what was not committed, and let others have the folder."""
        try:
            self._undo.close()
        finally:
            self._held.close()

    def commit(self) -> None:
        """Keep everything."""
        self._undo.pop_all()

    def check_apart(self, path: Path, names: Collection[str]) -> None:
        """Refuse a path to write to that is one of the lists, or of these files, of the folder.

        Raises
        ------
        ValueError
            It is.
        """
        if (path.name in LISTS or path.name in names) and is_named(path.parent, os.fstat(self._fd)):
            raise ValueError(f"{str(path)!r} is one of the files of its external weights; write to another name")

    def read(self, name: str) -> bytes:
        """Return the bytes of a list; none where it is not there.

        Raises
        ------
        OSError
            It cannot be read, is a link, no regular file, or longer than 256 MiB.
        """
        try:
            with errors_of(self.path / name):
                fd = open_regular(name, os.O_RDONLY, dir_fd=self._fd)
        except FileNotFoundError:
            return b""
        with os.fdopen(fd, "rb") as file:
            size_bytes = os.fstat(fd).st_size
            if size_bytes > MAX_LIST_BYTES:
                reason = f"takes {size_bytes} B, {MAX_LIST_BYTES} B at most are read; remove it"
                raise OSError(errno.EFBIG, reason, str(self.path / name))
            return file.read(MAX_LIST_BYTES)

    def replace(self, name: str, data: bytes) -> None:
        """Give a list new bytes, until they are taken back; that needs no room on the disk.

        Raises
        ------
        OSError
            As `read`; or it cannot be written.
        """
        if self._is_there(name):
            self._keep(name)
        else:
            self._undo.callback(self._remove, name)
        self._put(name, data)

    def _keep(self, name: str) -> None:
        """Bring a copy of a list to the disk, which only has to get the name to take back what comes."""
        before = self.read(name)
        with errors_of(self.path / name):
            draft, fd = make_draft(self._fd)
            self._held.callback(os.close, fd)
            self._held.callback(self._drop_draft, draft)
            with os.fdopen(fd, "wb", closefd=False) as file:
                file.write(before)
            os.fsync(fd)
        self._undo.callback(os.replace, draft, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def _put(self, name: str, data: bytes) -> None:
        """Write a file. A new list is locked before it has its name, so that the lock is never without one."""

        def write(file: BinaryIO) -> None:
            file.write(data)
            if name == META_FILE:
                fd = os.dup(file.fileno())
                self._held.callback(os.close, fd)
                fcntl.flock(fd, fcntl.LOCK_EX)

        with errors_of(self.path / name):
            write_in(self._fd, name, write)

    def sync(self) -> None:
        """Bring what was appended, and the names of files, to the disk, so that no list there tells of what is not.

        Raises
        ------
        OSError
            What was appended does not come to the disk.
        """
        for name in self._appended:
            with errors_of(self.path / name), os.fdopen(open_regular(name, os.O_RDWR, dir_fd=self._fd)) as file:
                os.fsync(file.fileno())
        with suppress(OSError):  # where folders cannot be synced, their names are as safe as they can be
            os.fsync(self._fd)

    def holds(self, name: str, offset: int, size_bytes: int, sha256: bytes, *, whole: bool = False) -> bool:
        """Tell whether a file has bytes of this digest in a place, and, if `whole`, nothing else.

        A link or device has none; nor has a file with other names, which a loader would refuse.
        """
        try:
            fd = open_regular(name, os.O_RDONLY, dir_fd=self._fd, is_own=True)
        except (OSError, ValueError):  # what a list says may be no name at all
            return False
        digest = hashlib.sha256()
        with os.fdopen(fd, "rb") as file:
            there_bytes = os.fstat(fd).st_size
            if offset + size_bytes > there_bytes or (whole and size_bytes != there_bytes):
                return False
            file.seek(offset)
            while chunk := file.read(min(CHUNK_BYTES, size_bytes)):
                digest.update(chunk)
                size_bytes -= len(chunk)
        return not size_bytes and digest.digest() == sha256

    def write(self, name: str, data: Content) -> None:
        """Write a file of its own for some bytes; one that is there is replaced, and stays so.

        Raises
        ------
        OSError, ModelFileError
            It cannot be written, or the bytes cannot be read.
        """
        if not self._is_there(name):
            self._undo.callback(self._remove, name)
        with errors_of(self.path / name):
            write_in(self._fd, name, lambda file: write_all(data, file))

    def write_new(self, name: str, data: Content) -> None:
        """Write a file as `write`, where none is.

        Raises
        ------
        OSError, ModelFileError
            As `write`; or there is a file of the name.
        """
        if self._is_there(name):
            reason = "there is another file of this name with other bytes; remove it, or choose another folder"
            raise FileExistsError(errno.EEXIST, reason, str(self.path / name))
        self.write(name, data)

    def append(self, name: str, data: Content) -> int:
        """Write bytes behind those of a file, from a multiple of 512 to one, and return their offset; see `sync`.

        Raises
        ------
        OSError, ModelFileError
            As `write`; or the file is a link or has other names, whose bytes would change with it.
        """
        if not self._is_there(name):
            self._undo.callback(self._remove, name)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        with (
            errors_of(self.path / name),
            os.fdopen(open_regular(name, flags, dir_fd=self._fd, is_own=True), "ab") as file,
        ):
            size_bytes = os.fstat(file.fileno()).st_size
            self._undo.callback(self._cut, name, size_bytes)
            offset = align_up(size_bytes, SESSION_MEM_ALIGN_BYTES)
            file.truncate(offset)
            write_all(data, file)
            file.truncate(align_up(offset + data.nbytes, SESSION_MEM_ALIGN_BYTES))
        self._appended.add(name)
        return offset

    def _is_there(self, name: str) -> bool:
        with suppress(FileNotFoundError):
            os.stat(name, dir_fd=self._fd, follow_symlinks=False)
            return True
        return False

    def _remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._fd)

    def _drop_draft(self, name: str) -> None:
        with suppress(OSError):  # one that cannot be removed is left to the next writer
            self._remove(name)

    def _cut(self, name: str, size_bytes: int) -> None:
        """Take back what was appended to a file."""
        with suppress(FileNotFoundError), os.fdopen(open_regular(name, os.O_RDWR, dir_fd=self._fd), "r+b") as file:
            file.truncate(size_bytes)

    def _try_lock(self) -> bool:
        """Lock the list, and tell whether it has its name; another writer may replace or remove it while we wait."""
        self._make_folder()
        try:
            self._fd = os.open(self.path, self._flags)
            self._held.callback(os.close, self._fd)
            with errors_of(self.path / META_FILE):
                lock = self._new_list()
                if lock is None:
                    lock = open_regular(META_FILE, os.O_RDWR, dir_fd=self._fd)
                    self._held.callback(os.close, lock)
                    fcntl.flock(lock, fcntl.LOCK_EX)
        except FileNotFoundError:
            if self.path.is_symlink() and not self.path.exists():
                raise
            return False
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR) and self.path.is_symlink():
                reason = "the folder of external weights is a link; name the folder that it leads to"
                raise OSError(error.errno, reason, str(self.path)) from error
            raise
        return is_named(self.path, os.fstat(self._fd)) and is_named(META_FILE, os.fstat(lock), self._fd)

    def _new_list(self) -> int | None:
        """Make an empty list and return its descriptor; None where there is one. It has its name locked, and whole."""
        if self._is_there(META_FILE):
            return None
        draft, fd = make_draft(self._fd)
        self._held.callback(os.close, fd)
        try:
            os.write(fd, WeightList().to_bytes())
            os.link(draft, META_FILE, src_dir_fd=self._fd, dst_dir_fd=self._fd, follow_symlinks=False)
            self._undo.callback(self._remove, META_FILE)
        except FileExistsError:  # another writer was quicker
            return None
        finally:
            self._remove(draft)
        return fd

    def _make_folder(self) -> None:
        try:
            self.path.mkdir(mode=0o700)
        except FileExistsError:  # it was there, or another writer was quicker
            return
        self._undo.callback(_remove_if_empty, self.path)


def _remove_if_empty(folder: Path) -> None:
    """Remove a folder, unless another writer has put something into it."""
    with suppress(OSError):
        folder.rmdir()
