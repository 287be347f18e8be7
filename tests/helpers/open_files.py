"""How many files the process has open."""

import gc
from pathlib import Path


def open_files() -> int:
    """Return the number of descriptors, once those that tests before have dropped are closed."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))
