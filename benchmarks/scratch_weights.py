"""Files of weights for the rows of uploads: no two pieces of 64 MiB are equal; they are on the disk, too."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

PIECE_BYTES = 64 << 20


def _piece(number: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, PIECE_BYTES, np.uint8) ^ np.uint8(number)


def write(path: Path, size_bytes: int) -> None:
    """Write a file, and wait until it is on the disk, so that nothing is written back while a clock runs."""
    first = _piece(0)
    with path.open("wb") as file:
        for number, at in enumerate(range(0, size_bytes, PIECE_BYTES)):
            file.write((first ^ np.uint8(number))[: min(PIECE_BYTES, size_bytes - at)])
        file.flush()
        os.fsync(file.fileno())


def check(size_bytes: int, read: Callable[[int, int], np.ndarray], place: str) -> None:
    """Compare what `read` gives for (offset, bytes) with what was written."""
    first = _piece(0)
    for number, at in enumerate(range(0, size_bytes, PIECE_BYTES)):
        count = min(PIECE_BYTES, size_bytes - at)
        if not np.array_equal(read(at, count), (first ^ np.uint8(number))[:count]):
            raise RuntimeError(f"the bytes in {place} differ from the file: its speed means nothing")


def available_bytes() -> int:
    """Return the memory that programs may take, that of the page cache included."""
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) << 10
