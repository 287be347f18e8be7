"""Does checking the digest of every region cost more than xxh3 over the same bytes in memory?

What the check adds is the processor time of an upload with digests less that of one without, both by the calling thread
alone; the reference hashes regions of an array.
"""

import statistics
import time

import numpy as np
import xxhash

from acl_shim import open_runtime
from benchmarks import scratch_weights
from benchmarks.harness import Promise, Row, alternate, scratch_folder
from gevar.weights import FileRegion, UploadRequest, upload

_SIZE_BYTES = 512 << 20
_REGIONS = 64
_ROUNDS = 7


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

        def by_gevar() -> float:
            started = time.thread_time()
            upload(device, plain, workers=1)
            middle = time.thread_time()
            report = upload(device, checked, workers=1)
            added = time.thread_time() - middle - (middle - started)
            if report.checked != _REGIONS:
                raise RuntimeError(f"{report.checked} of {_REGIONS} digests were compared")
            return added * 1e3

        def by_hashing() -> float:
            started = time.thread_time()
            for at in range(0, _SIZE_BYTES, size):
                xxhash.xxh3_128(content[at : at + size]).digest()
            return (time.thread_time() - started) * 1e3

        subject, reference = alternate(by_gevar, by_hashing, _ROUNDS)
    return Row(
        name="upload-digests",
        backend=device.runtime.backend,
        unit="ms",
        subject=subject,
        reference=reference,
        figure=statistics.median(ours / plain for ours, plain in zip(subject, reference, strict=True)),
        figure_unit="x of hashing in memory",
        promise=Promise("at most 1.2x", 1.2, at_most=True),
        conditions={"file": "page cache", "size_bytes": _SIZE_BYTES, "regions": _REGIONS, "clock": "processor time"},
    )
