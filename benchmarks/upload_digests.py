"""What does it cost to check the digest of every region, beside xxh3 over the same bytes in memory?

The reference reads the file into a buffer of the size of a block and hashes it there, in one thread; the upload has one
reader, and copies besides.
"""

import os
import statistics
import time
from pathlib import Path

import numpy as np
import xxhash

from acl_shim import open_runtime
from benchmarks import scratch_weights
from benchmarks.harness import Promise, Row, alternate, scratch_folder
from gevar.weights import FileRegion, UploadRequest, upload
from gevar.weights.load_settings import DEFAULT_BLOCK_BYTES

_SIZE_BYTES = 512 << 20
_REGIONS = 64
_ROUNDS = 7


def _hash_seconds(path: Path) -> float:
    """Read and hash a file block by block."""
    buffer, started = bytearray(DEFAULT_BLOCK_BYTES), time.perf_counter()
    with path.open("rb") as file:
        state = xxhash.xxh3_128()
        for at in range(0, _SIZE_BYTES, DEFAULT_BLOCK_BYTES):
            os.preadv(file.fileno(), [buffer], at)
            state.update(buffer)
    return time.perf_counter() - started


def upload_digests() -> Row:
    device, size = open_runtime("host").device(0), _SIZE_BYTES // _REGIONS
    with scratch_folder() as folder, device.malloc(_SIZE_BYTES) as block:
        path = folder / "weights.bin"
        scratch_weights.write(path, _SIZE_BYTES)
        content = np.fromfile(path, np.uint8)
        plain, checked = [], []
        for at in range(0, _SIZE_BYTES, size):
            digest = xxhash.xxh3_128(content[at : at + size]).digest()
            plain.append(UploadRequest(FileRegion(path, at, size), block.addr + at))
            checked.append(UploadRequest(FileRegion(path, at, size), block.addr + at, digest=digest))
        more: list[float] = []

        def by_gevar() -> float:
            started = time.perf_counter()
            upload(device, plain, workers=1)
            middle = time.perf_counter()
            report = upload(device, checked, workers=1)
            more.append(time.perf_counter() - middle - (middle - started))
            if report.checked != _REGIONS:
                raise RuntimeError(f"{report.checked} of {_REGIONS} digests were compared")
            return _SIZE_BYTES / more[-1] / 1e9

        subject, reference = alternate(by_gevar, lambda: _SIZE_BYTES / _hash_seconds(path) / 1e9, _ROUNDS)
    return Row(
        name="upload-digests",
        backend=device.runtime.backend,
        unit="GB/s",
        subject=subject,
        reference=reference,
        figure=100 * statistics.median(ours / plain for ours, plain in zip(subject, reference, strict=True)),
        figure_unit="% of reading and hashing in memory, for what the check adds",
        promise=Promise("at least 90 %", 90, at_most=False),
        conditions={"file": "page cache", "size_bytes": _SIZE_BYTES, "regions": _REGIONS, "threads": 1},
    )
