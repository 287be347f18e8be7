"""How fast does a file come from the disk onto a device, beside ``dd``, which reads with the same block size?

The file is put out of the page cache before each round. What a disk gives varies with what else uses it, by a factor of
two and more on shared machines, so there are many rounds, the spread of their middle half is shown, and there is no
verdict where the promise lies within.
"""

import os
import re
import statistics
import subprocess
import time

import numpy as np

from acl_shim import open_runtime
from benchmarks import scratch_weights
from benchmarks.harness import Promise, Row, alternate, scratch_folder
from benchmarks.page_cache import drop
from gevar.weights import FileRegion, UploadRequest, upload
from gevar.weights.load_settings import DEFAULT_BLOCK_BYTES

_SIZE_BYTES = 512 << 20
_ROUNDS = 25


def _dd(path: str) -> float:
    """Read a file by ``dd`` and return the seconds it says."""
    command = ["dd", f"if={path}", "of=/dev/null", f"bs={DEFAULT_BLOCK_BYTES}"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"})
    found = re.search(r"copied, ([0-9.e-]+) s", result.stderr)
    if found is None:
        raise RuntimeError(f"dd says nothing of its time: {result.stderr}")
    return float(found[1])


def upload_cold() -> Row:
    device = open_runtime("host").device(0)
    with scratch_folder() as folder, device.malloc(_SIZE_BYTES) as block:
        path = folder / "weights.bin"
        scratch_weights.write(path, _SIZE_BYTES)
        from_disk: list[int] = []

        def by_gevar() -> float:
            drop(path)
            started = time.perf_counter()
            report = upload(device, [UploadRequest(FileRegion(path, 0, _SIZE_BYTES), block.addr)])
            seconds = time.perf_counter() - started
            from_disk.append(report.disk_bytes)
            return _SIZE_BYTES / seconds / 1e9

        def by_dd() -> float:
            drop(path)
            return _SIZE_BYTES / _dd(str(path)) / 1e9

        subject, reference = alternate(by_gevar, by_dd, _ROUNDS)
        scratch_weights.check(
            _SIZE_BYTES,
            lambda at, count: np.frombuffer(block.read(count, offset_bytes=at), np.uint8),
            "device memory",
        )
    ratios = [100 * ours / plain for ours, plain in zip(subject, reference, strict=True)]
    lower, median, upper = statistics.quantiles(ratios, n=4)
    return Row(
        name="upload-cold",
        backend=device.runtime.backend,
        unit="GB/s",
        subject=subject,
        reference=reference,
        figure=median,
        figure_unit=f"% of dd (half of the rounds from {lower:.0f} to {upper:.0f} %)",
        promise=Promise("at least 90 %", 90, at_most=False),
        conditions={
            "file": "evicted by fadvise",
            "size_bytes": _SIZE_BYTES,
            "block_bytes": DEFAULT_BLOCK_BYTES,
            "disk_bytes": int(statistics.median(from_disk)),
        },
        spread=(lower, upper),
    )
