"""Uploads of many regions, and from a cold file, beside a plain loop of Python and ``dd``."""

import os
import re
import statistics
import subprocess
import time

import numpy as np

from acl_shim import open_runtime
from benchmarks.harness import Promise, Row, alternate, scratch_folder
from benchmarks.page_cache import drop
from gevar.weights import FileRegion, UploadRequest, upload
from gevar.weights.load_settings import DEFAULT_BLOCK_BYTES

_REGIONS = 10_000
_REGION_BYTES = 4096
_COLD_BYTES = 512 << 20
_ROUNDS = 9


def upload_small() -> Row:
    """Move 10 000 regions that lie one behind the other."""
    size = _REGIONS * _REGION_BYTES
    device = open_runtime("host").device(0)
    with scratch_folder() as folder, device.malloc(size) as block:
        path = folder / "weights.bin"
        wanted = np.random.default_rng(1).integers(0, 256, size, np.uint8)
        wanted.tofile(path)
        places = range(0, size, _REGION_BYTES)
        requests = [UploadRequest(FileRegion(path, at, _REGION_BYTES), block.addr + at) for at in places]

        def by_gevar() -> float:
            return upload(device, requests).elapsed_s * 1e3

        def by_python() -> float:
            file = os.open(path, os.O_RDONLY)
            try:
                started = time.perf_counter()
                for at in places:
                    device.memcpy_in(block.addr + at, _REGION_BYTES, os.pread(file, _REGION_BYTES, at))
                return (time.perf_counter() - started) * 1e3
            finally:
                os.close(file)

        subject, reference = alternate(by_gevar, by_python, _ROUNDS)
        device.memset(block.addr, size, 0, size)
        report = upload(device, requests)
        _check(np.frombuffer(block.read(), np.uint8), wanted)
    return Row(
        name="upload-small",
        backend=device.runtime.backend,
        unit="ms",
        subject=subject,
        reference=reference,
        figure=statistics.median(plain / ours for ours, plain in zip(subject, reference, strict=True)),
        figure_unit="x as fast as one pread and one copy each",
        promise=Promise("at least 3x", 3, at_most=False),
        conditions={"file": "page cache", "regions": _REGIONS, "region_bytes": _REGION_BYTES, "reads": report.reads},
    )


def upload_cold() -> Row:
    """Move a file that was put out of the page cache."""
    device = open_runtime("host").device(0)
    with scratch_folder() as folder, device.malloc(_COLD_BYTES) as block:
        path = folder / "weights.bin"
        wanted = np.random.default_rng(1).integers(0, 256, _COLD_BYTES, np.uint8)
        wanted.tofile(path)
        from_disk: list[int] = []

        def by_gevar() -> float:
            drop(path)
            report = upload(device, [UploadRequest(FileRegion(path, 0, _COLD_BYTES), block.addr)])
            from_disk.append(report.disk_bytes)
            return report.gb_per_s

        def by_dd() -> float:
            drop(path)
            command = ["dd", f"if={path}", "of=/dev/null", f"bs={DEFAULT_BLOCK_BYTES}"]
            env = {**os.environ, "LC_ALL": "C"}
            result = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
            found = re.search(r"copied, ([0-9.e-]+) s", result.stderr)
            if found is None:
                raise RuntimeError(f"dd says nothing of its time: {result.stderr}")
            return _COLD_BYTES / float(found[1]) / 1e9

        subject, reference = alternate(by_gevar, by_dd, _ROUNDS)
        _check(np.frombuffer(block.read(), np.uint8), wanted)
    ratios = [100 * ours / plain for ours, plain in zip(subject, reference, strict=True)]
    return Row(
        name="upload-cold",
        backend=device.runtime.backend,
        unit="GB/s",
        subject=subject,
        reference=reference,
        figure=statistics.median(ratios),
        figure_unit=f"% of dd (rounds from {min(ratios):.0f} to {max(ratios):.0f} %)",
        promise=Promise("at least 90 %", 90, at_most=False),
        conditions={
            "file": "evicted by fadvise",
            "size_bytes": _COLD_BYTES,
            "block_bytes": DEFAULT_BLOCK_BYTES,
            "disk_bytes": int(statistics.median(from_disk)),
        },
    )


def _check(found: np.ndarray, wanted: np.ndarray) -> None:
    if not np.array_equal(found, wanted):
        raise RuntimeError("the bytes in device memory differ from the file: its speed means nothing")
