"""Is a load of a safetensors file faster than the package safetensors with numpy, and a copy of each array?

Both begin with the path of the file, which is in the page cache, and end with every tensor in device memory of its own
that nobody has touched; what they give back afterwards is not in the time.
"""

import statistics
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

import gevar
from acl_shim import Device, open_runtime
from benchmarks.harness import Promise, Row, alternate, scratch_folder

_TENSORS = 200
_TENSOR_BYTES = 5 << 20
_ROUNDS = 9


def _array(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 2**16, _TENSOR_BYTES // 2, np.uint16).view(np.float16)


def _by_gevar(path: Path) -> float:
    started = time.perf_counter()
    with gevar.load_weights(path, backend="host"):
        return (time.perf_counter() - started) * 1e3


def _by_safetensors(device: Device, path: Path) -> float:
    started = time.perf_counter()
    with ExitStack() as stack:
        for array in load_file(path).values():
            stack.enter_context(device.malloc(array.nbytes)).copy_from(array)
        return (time.perf_counter() - started) * 1e3


def _check(path: Path) -> None:
    with gevar.load_weights(path, backend="host") as weights:
        for number in range(_TENSORS):
            if weights.read(f"tensor_{number}").tobytes() != _array(number).tobytes():
                raise RuntimeError(f"the bytes of tensor {number} differ from the file: its speed means nothing")


def upload_safetensors() -> Row:
    device = open_runtime("host").device(0)
    with scratch_folder() as folder:
        path = folder / "weights.safetensors"
        save_file({f"tensor_{number}": _array(number) for number in range(_TENSORS)}, path)
        subject, reference = alternate(lambda: _by_gevar(path), lambda: _by_safetensors(device, path), _ROUNDS)
        _check(path)
    return Row(
        name="upload-safetensors",
        backend=device.runtime.backend,
        unit="ms",
        subject=subject,
        reference=reference,
        figure=statistics.median(theirs / ours for ours, theirs in zip(subject, reference, strict=True)),
        figure_unit="x as fast as safetensors and a copy of each array",
        promise=Promise("at least 1x", 1, at_most=False),
        conditions={"file": "page cache", "tensors": _TENSORS, "tensor_bytes": _TENSOR_BYTES, "device pages": "fresh"},
    )
