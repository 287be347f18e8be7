"""Resident memory that something adds at its peak, as the kernel counts it: that of Python, protobuf and all else."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
FACTOR, EXTRA_BYTES = 4, 64 << 20
"""What reading a file may add: so many times its bytes, and so many more."""


def _status_bytes(name: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


@contextmanager
def bounded_memory(file_bytes: int) -> Iterator[None]:
    """Fail where the block adds more resident memory than reading a file of this size may."""
    CLEAR.write_text("5")  # the peak starts at what is resident now
    before = _status_bytes("VmHWM")
    yield
    added, allowed = _status_bytes("VmHWM") - before, FACTOR * file_bytes + EXTRA_BYTES
    assert added <= allowed, f"{added} B of memory for a file of {file_bytes} B, {allowed} B are allowed"
