"""Uploads of very many small regions, beside a plain loop of Python.

The regions lie one behind the other in the file. On the device they do so too, or each is an allocation of its own, in
an order that has nothing to do with that of the file; then a copy brings one region, on both sides.
"""

import os
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from acl_shim import Device, open_runtime
from acl_shim.host_memory import hold, release
from benchmarks.harness import Promise, Row, alternate, scratch_folder
from gevar.weights import FileRegion, UploadRequest, upload

_REGIONS = 10_000
_REGION_BYTES = 4096
_ROUNDS = 9


def _by_gevar(device: Device, requests: Sequence[UploadRequest]) -> float:
    started = time.perf_counter()
    upload(device, requests)
    return (time.perf_counter() - started) * 1e3


def _by_python(device: Device, path: Path, addrs: Sequence[int]) -> float:
    """Read each region and copy it, without the look at the address that `Device.memcpy_in` takes first."""
    file, copy = os.open(path, os.O_RDONLY), device.copy_in
    try:
        started = time.perf_counter()
        for number, addr in enumerate(addrs):
            data = hold(os.pread(file, _REGION_BYTES, number * _REGION_BYTES), False)
            copy(addr, _REGION_BYTES, data, _REGION_BYTES)
            release(data)
        return (time.perf_counter() - started) * 1e3
    finally:
        os.close(file)


def _check(device: Device, addrs: Sequence[int], wanted: np.ndarray) -> None:
    found = np.empty(_REGION_BYTES, np.uint8)
    for number, addr in enumerate(addrs):
        device.memcpy_out(found, addr)
        if not np.array_equal(found, wanted[number * _REGION_BYTES : (number + 1) * _REGION_BYTES]):
            raise RuntimeError(f"the bytes of region {number} differ from the file: its speed means nothing")


def _row(name: str, device: Device, addrs: Sequence[int], places: str, times: float) -> Row:
    with scratch_folder() as folder:
        path = folder / "weights.bin"
        wanted = np.random.default_rng(1).integers(0, 256, _REGIONS * _REGION_BYTES, np.uint8)
        wanted.tofile(path)
        requests = [
            UploadRequest(FileRegion(path, number * _REGION_BYTES, _REGION_BYTES), addr)
            for number, addr in enumerate(addrs)
        ]
        subject, reference = alternate(
            lambda: _by_gevar(device, requests), lambda: _by_python(device, path, addrs), _ROUNDS
        )
        for addr in addrs:
            device.memset(addr, _REGION_BYTES, 0, _REGION_BYTES)
        report = upload(device, requests)
        _check(device, addrs, wanted)
    return Row(
        name=name,
        backend=device.runtime.backend,
        unit="ms",
        subject=subject,
        reference=reference,
        figure=statistics.median(plain / ours for ours, plain in zip(subject, reference, strict=True)),
        figure_unit="x as fast as one pread and one copy each",
        promise=Promise(f"at least {times}x", times, at_most=False),
        conditions={
            "file": "page cache",
            "regions": _REGIONS,
            "region_bytes": _REGION_BYTES,
            "device places": places,
            "reads": report.reads,
        },
    )


def upload_small() -> Row:
    """Move regions that lie one behind the other to places that do so."""
    device = open_runtime("host").device(0)
    with device.malloc(_REGIONS * _REGION_BYTES) as block:
        addrs = range(block.addr, block.addr + block.size_bytes, _REGION_BYTES)
        return _row("upload-small", device, addrs, "one behind the other", 3)


def upload_scattered() -> Row:
    """Move regions that lie one behind the other, each to an allocation of its own."""
    device = open_runtime("host").device(0)
    with ExitStack() as stack:
        blocks = [stack.enter_context(device.malloc(_REGION_BYTES)).addr for _ in range(_REGIONS)]
        addrs = np.random.default_rng(2).permutation(blocks).tolist()
        return _row("upload-scattered", device, addrs, "each an allocation of its own, in no order", 1.5)
