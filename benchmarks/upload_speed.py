"""How fast does a file in the page cache get into device memory, beside the same bytes moved by plain C?

The reference reads and copies with the same threads and block size into a memfd mapping, which is what device memory
of the host runtime is made of. Two rows, because the first use of a page costs more than the copy: into memory that was
written before, and into memory that nobody has touched. (Over 100 % is possible in the second: the host runtime fills
new pages without faulting each of them in, which memcpy cannot.)
"""

import ctypes
import mmap
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from acl_shim import Device, open_runtime
from benchmarks import scratch_weights
from benchmarks.harness import Promise, Row, alternate, cpu_count, scratch_folder
from benchmarks.native_reference import pread_memcpy
from gevar.weights import FileRegion, UploadRequest, upload
from gevar.weights.load_settings import DEFAULT_BLOCK_BYTES

ROUNDS = 5
REGIONS = 500
"""The file is moved as so many regions that lie one behind the other."""
_SIZES = (4 << 30, 2 << 30, 1 << 30)
"""The file has the first size of these that fits four times into memory: in the page cache, on the device, in the
reference's memory, and once to spare."""

BACKEND = "host"


@dataclass(frozen=True, slots=True)
class _Job:
    """One upload, done the same way by subject and reference."""

    device: Device
    path: Path
    file: int
    size_bytes: int
    threads: int
    disk_bytes: list[int]

    def by_gevar(self, dev_addr: int) -> float:
        """Upload the file and return GB/s, from the list of requests on."""
        ends = [self.size_bytes * number // REGIONS for number in range(REGIONS + 1)]
        requests = [
            UploadRequest(FileRegion(self.path, start, end - start), dev_addr + start) for start, end in pairwise(ends)
        ]
        started = time.perf_counter()
        report = upload(self.device, requests, workers=self.threads)
        seconds = time.perf_counter() - started
        self.disk_bytes.append(report.disk_bytes)
        return self.size_bytes / seconds / 1e9

    def by_c(self, destination: mmap.mmap) -> float:
        """Move the file by the C reference and return GB/s."""
        byte = ctypes.c_char.from_buffer(destination)
        seconds = pread_memcpy(
            self.file, self.size_bytes, ctypes.addressof(byte), block_bytes=DEFAULT_BLOCK_BYTES, threads=self.threads
        )
        return self.size_bytes / seconds / 1e9

    def check_arrival(self, dev_addr: int, destination: mmap.mmap) -> None:
        """Compare what lies at both places with the file."""
        arrived = np.empty(scratch_weights.PIECE_BYTES, np.uint8)

        def read_device(at: int, count: int) -> np.ndarray:
            self.device.memcpy_out(arrived[:count], dev_addr + at)
            return arrived[:count]

        scratch_weights.check(self.size_bytes, read_device, "device memory")
        mapped = np.frombuffer(destination, np.uint8)
        scratch_weights.check(self.size_bytes, lambda at, count: mapped[at : at + count], "the reference's memory")


@contextmanager
def _prepared() -> Iterator[_Job]:
    """Write the file, which leaves it in the page cache, and open the device."""
    fitting = [size for size in _SIZES if 4 * size <= scratch_weights.available_bytes()]
    if not fitting:
        raise RuntimeError(f"less than {4 * _SIZES[-1]} B of memory are free: the row needs them")
    with scratch_folder() as folder:
        path = folder / "weights.bin"
        scratch_weights.write(path, fitting[0])
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield _Job(open_runtime(BACKEND).device(0), path, file, fitting[0], min(cpu_count(), 4), [])
        finally:
            os.close(file)


@contextmanager
def _memfd_mapping(size_bytes: int) -> Iterator[mmap.mmap]:
    """Map fresh pages of the kind the host runtime's device memory has."""
    memory = os.memfd_create("gevar-bench", os.MFD_CLOEXEC)
    try:
        os.ftruncate(memory, size_bytes)
        with mmap.mmap(memory, size_bytes) as mapping:
            yield mapping
    finally:
        os.close(memory)


def _row(name: str, pages: str, job: _Job, subject: tuple[float, ...], reference: tuple[float, ...]) -> Row:
    return Row(
        name=name,
        backend=job.device.runtime.backend,
        unit="GB/s",
        subject=subject,
        reference=reference,
        # Round by round, because other work on the machine slows both of a round alike.
        figure=100 * statistics.median(ours / plain for ours, plain in zip(subject, reference, strict=True)),
        figure_unit="% of pread and memcpy in C",
        promise=Promise("at least 90 %", 90, at_most=False),
        conditions={
            "file": "page cache",
            "device pages": pages,
            "size_bytes": job.size_bytes,
            "regions": REGIONS,
            "threads": job.threads,
            "block_bytes": DEFAULT_BLOCK_BYTES,
            "disk_bytes": int(statistics.median(job.disk_bytes)),
        },
    )


def upload_touched() -> Row:
    with _prepared() as job, job.device.malloc(job.size_bytes) as buffer, _memfd_mapping(job.size_bytes) as mapping:
        job.device.memset(buffer.addr, job.size_bytes, 1, job.size_bytes)  # so that its pages are in the page table
        subject, reference = alternate(lambda: job.by_gevar(buffer.addr), lambda: job.by_c(mapping), ROUNDS)
        job.check_arrival(buffer.addr, mapping)
    return _row("upload-touched", "touched", job, subject, reference)


def upload_fresh() -> Row:
    with _prepared() as job:

        def by_gevar() -> float:
            with job.device.malloc(job.size_bytes) as buffer:
                return job.by_gevar(buffer.addr)

        def by_c() -> float:
            with _memfd_mapping(job.size_bytes) as mapping:
                return job.by_c(mapping)

        subject, reference = alternate(by_gevar, by_c, ROUNDS)
    return _row("upload-fresh", "fresh", job, subject, reference)
