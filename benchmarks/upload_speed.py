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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from acl_shim import Device, open_runtime
from benchmarks.harness import Promise, Row, alternate, cpu_count, scratch_folder
from benchmarks.native_reference import pread_memcpy
from gevar.weights import FileRegion, UploadRequest, upload
from gevar.weights.load_settings import DEFAULT_BLOCK_BYTES

ROUNDS = 9
SIZE_BYTES = 2 << 30
REGIONS = 500
"""The file is moved as so many regions that lie one behind the other."""

BACKEND = "host"


@dataclass(frozen=True, slots=True)
class _Job:
    """One upload, done the same way by subject and reference."""

    device: Device
    path: Path
    file: int
    threads: int

    def by_gevar(self, dev_addr: int) -> float:
        """Upload the file and return GB/s."""
        ends = [SIZE_BYTES * number // REGIONS for number in range(REGIONS + 1)]
        requests = [
            UploadRequest(FileRegion(self.path, start, end - start), dev_addr + start) for start, end in pairwise(ends)
        ]
        return upload(self.device, requests, workers=self.threads).gb_per_s

    def by_c(self, destination: mmap.mmap) -> float:
        """Move the file by the C reference and return GB/s."""
        byte = ctypes.c_char.from_buffer(destination)
        seconds = pread_memcpy(
            self.file, SIZE_BYTES, ctypes.addressof(byte), block_bytes=DEFAULT_BLOCK_BYTES, threads=self.threads
        )
        return SIZE_BYTES / seconds / 1e9

    def check_arrival(self, dev_addr: int, destination: mmap.mmap) -> None:
        """Compare what lies at both places with the file."""
        wanted = np.fromfile(self.path, np.uint8)
        arrived = np.empty(SIZE_BYTES, np.uint8)
        self.device.memcpy_out(arrived, dev_addr)
        for place, found in (
            ("device memory", arrived),
            ("the reference's memory", np.frombuffer(destination, np.uint8)),
        ):
            if not np.array_equal(found, wanted):
                raise RuntimeError(f"the bytes in {place} differ from the file: its speed means nothing")


@contextmanager
def _prepared() -> Iterator[_Job]:
    """Write the file, which leaves it in the page cache, and open the device."""
    with scratch_folder() as folder:
        path = folder / "weights.bin"
        np.random.default_rng(1).integers(0, 256, SIZE_BYTES, np.uint8).tofile(path)
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        os.fsync(file)  # so that nothing is written back while the clock runs
        try:
            yield _Job(open_runtime(BACKEND).device(0), path, file, min(cpu_count(), 4))
        finally:
            os.close(file)


@contextmanager
def _memfd_mapping() -> Iterator[mmap.mmap]:
    """Map fresh pages of the kind the host runtime's device memory has."""
    memory = os.memfd_create("gevar-bench", os.MFD_CLOEXEC)
    try:
        os.ftruncate(memory, SIZE_BYTES)
        with mmap.mmap(memory, SIZE_BYTES) as mapping:
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
            "size_bytes": SIZE_BYTES,
            "regions": REGIONS,
            "threads": job.threads,
            "block_bytes": DEFAULT_BLOCK_BYTES,
        },
    )


def upload_touched() -> Row:
    with _prepared() as job, job.device.malloc(SIZE_BYTES) as buffer, _memfd_mapping() as mapping:
        subject, reference = alternate(lambda: job.by_gevar(buffer.addr), lambda: job.by_c(mapping), ROUNDS)
        job.check_arrival(buffer.addr, mapping)
    return _row("upload-touched", "touched", job, subject, reference)


def upload_fresh() -> Row:
    with _prepared() as job:

        def by_gevar() -> float:
            with job.device.malloc(SIZE_BYTES) as buffer:
                return job.by_gevar(buffer.addr)

        def by_c() -> float:
            with _memfd_mapping() as mapping:
                return job.by_c(mapping)

        subject, reference = alternate(by_gevar, by_c, ROUNDS)
    return _row("upload-fresh", "fresh", job, subject, reference)
