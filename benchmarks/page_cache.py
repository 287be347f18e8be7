"""Which pages of a file are in the page cache: the way to see from outside whether a byte of it was read."""

import ctypes
import mmap
import os
from pathlib import Path

import numpy as np

PAGE_BYTES = mmap.PAGESIZE


def drop(path: Path) -> None:
    """Put every page of the file out of the cache."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def resident_pages(path: Path, start: int, end: int) -> int:
    """Count the cached pages that lie wholly in the bytes from ``start`` to ``end``.

    A page of a hole counts too once it was read, on file systems that use the page cache for holes (ext4, xfs, btrfs).
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapping:
        view = np.frombuffer(mapping, np.uint8)
        states = np.zeros(-(-len(mapping) // PAGE_BYTES), np.uint8)
        libc = ctypes.CDLL(None, use_errno=True)
        size = ctypes.c_size_t(len(mapping))
        if libc.mincore(ctypes.c_void_p(view.ctypes.data), size, ctypes.c_void_p(states.ctypes.data)) != 0:
            raise OSError(ctypes.get_errno(), "mincore failed", str(path))
        del view
    return int(np.count_nonzero(states[-(-start // PAGE_BYTES) : end // PAGE_BYTES] & 1))


def shows_reads(path: Path, offset: int) -> bool:
    """Read one byte and tell whether the cache shows it; the file is dropped from the cache before and after."""
    drop(path)
    page = offset - offset % PAGE_BYTES
    before = resident_pages(path, page, page + PAGE_BYTES)
    with path.open("rb") as file:
        os.pread(file.fileno(), 1, page)
    after = resident_pages(path, page, page + PAGE_BYTES)
    drop(path)
    return (before, after) == (0, 1)


def read_ahead_bytes(path: Path) -> int:
    """Return how far the kernel may read beyond what was asked for: two windows of the file's device."""
    device = path.stat().st_dev
    window = Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")
    return 2 * 1024 * int(window.read_text())
