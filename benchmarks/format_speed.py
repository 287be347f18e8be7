"""How fast are tensors converted between formats and data types, beside a plain copy of as many bytes?"""

import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from math import prod

import numpy as np
import numpy.typing as npt

from benchmarks.harness import Promise, Row, alternate, run_python
from gevar.formats import cast, infer_shape, transfer
from gevar.formats.data_type_cast import ADDED_CASTS, CASTS
from gevar.formats.layouts import LAYOUTS, PAIRS, Pair
from gevar.types import DataType, Format, TensorDesc
from gevar.types.format import format_from_c0

MIB = 1 << 20
SIZE_BYTES = 64 * MIB
ROUNDS = 5
MATRICES = (Format.FORMAT_FRACTAL_NZ, Format.FORMAT_FRACTAL_ZZ)
C0_CODES = {1: 6, 2: 5, 4: 4}
"""C0 code by element width: 32, 16 and 8 elements, 32 bytes."""

Array = npt.NDArray[np.generic]
Work = tuple[str, Callable[[], object], int]
"""Name, what is measured, bytes of source and destination together."""

_MEMORY_CODE = """
import json, sys
import numpy as np
from gevar.formats import cast, infer_shape, transfer
from gevar.types import DataType, Format, TensorDesc
from gevar.types.format import format_from_c0

def high_water():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))

width = int(sys.argv[1]) << 20
src = TensorDesc(DataType.DT_FLOAT16, Format.FORMAT_NCHW, (width // 2 // (128 * 3136), 128, 56, 56))
fmt = format_from_c0(Format.FORMAT_FRACTAL_Z, 5)
dst = src.replace(format=fmt, shape=infer_shape(src, fmt))
array, out = np.ones(src.shape, np.float16), np.ones(dst.shape, np.float16)
half = out.reshape(-1)[: out.size // 2].view(np.float32)
transfer(array[:1], src.replace(shape=(1, 128, 56, 56)), dst.replace(shape=()))
cast(array[:1], DataType.DT_FLOAT16, DataType.DT_HIFLOAT8)
before = high_water()
transfer(array, src, dst, out=out)
transfer(out, dst, src, out=array)
cast(array.reshape(-1)[: half.size], DataType.DT_FLOAT16, DataType.DT_FLOAT, out=half)
print(json.dumps(high_water() - before))
"""


def _seconds(call: Callable[[], object]) -> float:
    """Processor time of the thread: what else runs on the machine does not count."""
    start = time.thread_time()
    call()
    return time.thread_time() - start


def _shapes(pair: Pair, count: int) -> Iterator[tuple[int, ...]]:
    """Plain shapes of so many elements: planes that are a power of two, and filters that fill no block."""
    if pair.stored in MATRICES:
        side = int(count**0.5)
        shapes = ((side, side), (side + 5, side - 5)) if pair.rank is None else ()
        yield from shapes or ((4, 4, side // 4, side // 4), (1, 16, side // 4 + 1, side // 4 - 3))
        return
    if pair.stored == Format.FORMAT_FRACTAL_Z_C04:
        sizes = ({"C": 3, "H": 7, "W": 7, "D": 1}, {"C": 4, "H": 64, "W": 64, "D": 1})
    else:
        sizes = ({"C": 128, "H": 64, "W": 64, "D": 1}, {"C": 500, "H": 3, "W": 3, "D": 3 if "D" in pair.axes else 1})
    for one in sizes:
        known = prod(one[axis] for axis in pair.axes.split() if axis != "N")
        yield tuple((one | {"N": max(1, count // known)})[axis] for axis in pair.axes.split())


def _transfers(matrices: bool, widths: Mapping[int, DataType]) -> Iterator[Work]:
    """Every pair in every direction."""
    for pair in PAIRS:
        if (pair.stored in MATRICES) is not matrices:
            continue
        for width, dtype in widths.items():
            fmt = format_from_c0(pair.stored, C0_CODES[width] if LAYOUTS[pair.stored].blocks else 0)
            filled = 8 if pair.stored == Format.FORMAT_C1HWNCoC0 else 1  # the stored side is C0 times as large
            for shape in _shapes(pair, SIZE_BYTES // width // filled):
                plain = TensorDesc(dtype, pair.plain, shape)
                stored = plain.replace(format=fmt, shape=infer_shape(plain, fmt))
                yield _transfer(plain, stored)
                if pair.back:
                    yield _transfer(stored, plain)


def _transfer(src: TensorDesc, dst: TensorDesc) -> Work:
    array, out = (np.ones(one.shape, one.dtype.to_numpy()) for one in (src, dst))
    names = (Format(one.format & 0xFF).name.removeprefix("FORMAT_") for one in (src, dst))
    name = f"{'-'.join(names)} {src.dtype.name[3:]} {'x'.join(map(str, src.shape))}"
    return name, lambda: transfer(array, src, dst, out=out), array.nbytes + out.nbytes


def _casts() -> Iterator[Work]:
    """Every cast, over numbers that lose nothing."""
    for src, dst in (*CASTS, *ADDED_CASTS):
        count = SIZE_BYTES // max(src.size_code, dst.size_code)
        numbers = np.random.default_rng(1).integers(1, 100, count)
        array: Array = numbers.astype(np.float32).astype(src.to_numpy())
        out = np.ones(count, dst.to_numpy())
        yield _cast(array, src, dst, out)


def _cast(array: Array, src: DataType, dst: DataType, out: Array) -> Work:
    return f"{src.name[3:]}-{dst.name[3:]}", lambda: cast(array, src, dst, out=out), array.nbytes + out.nbytes


def _worst(name: str, works: Iterator[Work], limit: float) -> Row:
    """Measure each beside a copy of half of its bytes between touched memory; the row shows the slowest."""
    series: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {}
    for label, work, size_bytes in works:
        here, there = np.ones(size_bytes // 2, np.uint8), np.ones(size_bytes // 2, np.uint8)
        series[label] = alternate(
            lambda work=work: _seconds(work) * 1e3,  # type: ignore[misc]
            lambda here=here, there=there: _seconds(lambda: np.copyto(there, here)) * 1e3,  # type: ignore[misc]
            ROUNDS,
        )
    ratios = {
        label: statistics.median(ours / plain for ours, plain in zip(*pair, strict=True))
        for label, pair in series.items()
    }
    slowest = max(ratios, key=lambda label: ratios[label])
    beyond = {label: round(ratio, 1) for label, ratio in ratios.items() if ratio > limit}
    faults = tuple(f"{label}: {ratio}x" for label, ratio in sorted(beyond.items(), key=lambda item: -item[1]))
    conditions = {label: round(ratio, 2) for label, ratio in ratios.items()}
    promise = Promise(f"at most {limit:.0f}x", limit, at_most=True)
    return Row(name, "none", "ms", *series[slowest], ratios[slowest], "x copyto", promise, conditions, faults)


def format_4d() -> Row:
    """Convert tensors of two and four bytes an element, every pair but those of matrices."""
    return _worst("format-4d", _transfers(False, {2: DataType.DT_FLOAT16, 4: DataType.DT_FLOAT}), 6)


def format_4d_bytes() -> Row:
    """The same with elements of one byte."""
    return _worst("format-4d-bytes", _transfers(False, {1: DataType.DT_INT8}), 8)


def format_matrix() -> Row:
    """Convert matrices to FRACTAL_NZ and FRACTAL_ZZ and back."""
    widths = {1: DataType.DT_INT8, 2: DataType.DT_FLOAT16, 4: DataType.DT_FLOAT}
    return _worst("format-matrix", _transfers(True, widths), 4)


def format_cast() -> Row:
    """Cast between data types, counting included."""
    return _worst("format-cast", _casts(), 4)


def format_memory() -> Row:
    """Take memory beside source and destination: high-water marks of fresh processes, small and large arrays."""

    def taken(size_mib: int) -> float:
        return float(json.loads(run_python(_MEMORY_CODE, str(size_mib)).stdout)) / MIB

    series = alternate(lambda: taken(1024), lambda: taken(64), ROUNDS)
    promise = Promise("under 64 MiB", 64, at_most=True)
    return Row("format-memory", "none", "MiB", *series, max(series[0] + series[1]), "MiB at most", promise)
