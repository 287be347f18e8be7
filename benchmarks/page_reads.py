"""How fast are random reads of memory that grows on pages of 1 GiB, beside the same on pages of 4 KiB?"""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.harness import Promise, Row, alternate, run_python

ROUNDS = 5
NR_HUGEPAGES = Path("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages")

_READS = """
import ctypes, sys, time
import numpy as np
from acl_shim import open_runtime
from acl_shim.host import host_controls
from gevar.memory import ExpandableActiveMemoryAllocator, HugePageMode
GIB = 1 << 30
real = sys.argv[1] == "real"
runtime = open_runtime("host")
host_controls(runtime).configure(devices=1, pages_1g=1, mode="unified", hugetlb=real)
allocator = ExpandableActiveMemoryAllocator(runtime.device(0), GIB, mode=HugePageMode.ONLY, max_bytes=GIB)
words = np.frombuffer((ctypes.c_uint8 * GIB).from_address(allocator.allocate(GIB)), np.uint64)
words[:: 512] = 1
chance = np.random.default_rng(7)
places = chance.permutation(words.size // 512) * 512 + chance.integers(0, 512, words.size // 512)
best = 1e9
for _ in range(15):
    start = time.thread_time_ns()
    words.take(places).sum()
    best = min(best, (time.thread_time_ns() - start) / places.size)
print(best)
"""


@contextmanager
def _giant_page() -> Iterator[bool]:
    """Reserve a page of 1 GiB of the machine, and give it back; say whether there is one."""
    try:
        before = int(NR_HUGEPAGES.read_text())
        NR_HUGEPAGES.write_text(f"{before + 1}\n")
    except (OSError, ValueError):
        yield False
        return
    try:
        end = time.monotonic() + 10
        while (there := int(NR_HUGEPAGES.read_text()) > before) is False and time.monotonic() < end:
            time.sleep(0.1)
        yield there
    finally:
        NR_HUGEPAGES.write_text(f"{before}\n")


def giant_pages() -> Row:
    """Read a word of each 4 KiB of 1 GiB in random order, in fresh processes; on emulated pages the row fails."""
    with _giant_page() as real:
        kind = "real" if real else "emulated"
        subject, reference = alternate(
            lambda: float(run_python(_READS, kind).stdout),
            lambda: float(run_python(_READS, "ordinary").stdout),
            ROUNDS,
        )
    gain = statistics.median(plain / ours for ours, plain in zip(subject, reference, strict=True))
    faults = () if real else ("this machine reserves no page of 1 GiB (root, /sys/kernel/mm/hugepages): emulated",)
    promise = Promise("at least 1x", 1, at_most=False)
    unit = "x faster than on 4 KiB pages"
    return Row("giant-pages", "host", "ns", subject, reference, gain, unit, promise, {"pages of 1 GiB": kind}, faults)
