"""Casts that no table serves: from elements of four and eight bytes, and to them. A block of elements at a time.

Each function writes the results of one block and returns what was lost. `ieee` tells whether NaN and infinity are kept
where the destination has them; else the results are GE's. The caller silences numpy's warnings.

Source: GE source, base/common/datatype_transfer, base/common/fp16_t.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from gevar.formats import block_loops
from gevar.formats.cast_counts import NOTHING_LOST, CastCounts, integer_counts, magnitude_counts
from gevar.formats.pattern_tables import pattern_table
from gevar.types import DataType

_Array = npt.NDArray[np.generic]

_FLOAT_INFINITY: Final = 0x7F80_0000
_FLOAT16_INFINITY: Final = 0x7C00
_BF16_INFINITY: Final = 0x7F80
_FLOAT16_LIMIT: Final = 0x477F_F000
"""Pattern of 65520.0, from which a float32 rounds past the largest float16."""

_FLOAT16_NEXT: Final = 0x4800_0000
"""Pattern of 131072.0; up to here GE writes all ones, from here on its largest float16."""

_FLOAT16_MAX: Final = 65504
_BF16_LIMIT: Final = 0x7F7F_8000
_INT32: Final = np.iinfo(np.int32)


def exact(src: _Array, out: _Array, _ieee: bool) -> CastCounts:
    """Cast to a type that holds every value, or rounds it to the nearest."""
    np.copyto(out, src, casting="unsafe")
    return NOTHING_LOST


def float_to_float16(src: npt.NDArray[np.float32], out: npt.NDArray[np.float16], ieee: bool) -> CastCounts:
    """Cast to the nearest float16, ties to even."""
    if block_loops.float_to_float16(src, out) < _FLOAT16_LIMIT:
        return NOTHING_LOST
    bits = src.view(np.uint32)
    magnitude = bits & np.uint32(0x7FFF_FFFF)
    if ieee:
        np.copyto(out, src, casting="same_kind")
    else:
        outside = magnitude >= _FLOAT16_LIMIT
        sign = (bits[outside] >> np.uint32(16)).astype(np.uint16) & np.uint16(0x8000)
        largest = np.where(magnitude[outside] < _FLOAT16_NEXT, np.uint16(0x7FFF), np.uint16(0x7BFF))
        out.view(np.uint16)[outside] = sign | largest
    return magnitude_counts(magnitude, _FLOAT16_LIMIT, _FLOAT_INFINITY, keeps_infinity=ieee, keeps_nan=ieee)


def float16_to_float(src: npt.NDArray[np.float16], out: npt.NDArray[np.float32], ieee: bool) -> CastCounts:
    """Cast exactly; GE takes the exponent of infinity and NaN for an ordinary one."""
    if block_loops.float16_to_float(src, out) < _FLOAT16_INFINITY:
        return NOTHING_LOST
    if ieee:
        np.copyto(out, src)
    magnitude = src.view(np.uint16) & np.uint16(0x7FFF)
    return magnitude_counts(magnitude, _FLOAT16_INFINITY, _FLOAT16_INFINITY, keeps_infinity=ieee, keeps_nan=ieee)


def float16_to_int32(src: npt.NDArray[np.float16], out: npt.NDArray[np.int32], _ieee: bool) -> CastCounts:
    """Cast to the nearest integer, ties to even; infinity and NaN become the largest number of their sign."""
    wide = np.empty(src.shape, np.float32)
    lost = float16_to_float(src, wide, False)
    np.rint(wide, out=wide)
    np.copyto(out, wide, casting="unsafe")
    if lost is not NOTHING_LOST:
        outside = np.abs(wide) > _FLOAT16_MAX
        out[outside] = np.where(wide[outside] > 0, _INT32.max, _INT32.min)
    return lost


def real_to_int32(src: npt.NDArray[np.floating], out: npt.NDArray[np.int32], _ieee: bool) -> CastCounts:
    """Cut off the fraction; numbers out of range become the nearest limit, NaN becomes 0, where GE's result is open."""
    lowest, highest = src.min(), src.max()
    if lowest > _INT32.min - 1.0 and highest < _INT32.max + 1.0:
        np.copyto(out, src, casting="unsafe")
        return NOTHING_LOST
    whole = np.trunc(src.astype(np.float64))
    nan = np.isnan(whole)
    outside = (whole < _INT32.min) | (whole > _INT32.max)
    whole[nan] = 0
    np.copyto(out, np.clip(whole, _INT32.min, _INT32.max), casting="unsafe")
    return CastCounts(int(outside.sum()), 0, int(nan.sum()), int((outside | nan).sum()))


def int32_to_float16(src: npt.NDArray[np.int32], out: npt.NDArray[np.float16], ieee: bool) -> CastCounts:
    """Cast to the nearest float16, ties to even; what is too large becomes the largest one, or infinity."""
    if block_loops.int32_to_float16(src, out) <= _FLOAT16_MAX + 15:
        return NOTHING_LOST
    if ieee:
        np.copyto(out, src.astype(np.float32), casting="same_kind")  # what float32 rounds is far out of range
    return integer_counts(src, -_FLOAT16_MAX - 15, _FLOAT16_MAX + 15, wraps=False)


def low_bits(src: npt.NDArray[np.signedinteger], out: npt.NDArray[np.integer], _ieee: bool) -> CastCounts:
    """Keep the low bits of integers."""
    np.copyto(out, src, casting="unsafe")
    kept = np.iinfo(out.dtype)
    return integer_counts(src, kept.min, kept.max, wraps=True)


def float_to_bf16(src: npt.NDArray[np.float32], out: _Array, _ieee: bool) -> CastCounts:
    """Cast to the nearest bfloat16, ties to even; NaN and infinity stay."""
    np.copyto(out, src, casting="unsafe")
    magnitude = src.view(np.uint32) & np.uint32(0x7FFF_FFFF)
    return magnitude_counts(magnitude, _BF16_LIMIT, _FLOAT_INFINITY, keeps_infinity=True, keeps_nan=True)


def bf16_to_float(src: _Array, out: npt.NDArray[np.float32], _ieee: bool) -> CastCounts:
    """Cast exactly; NaN and infinity stay."""
    wide = out.view(np.uint32)
    patterns = src.view(np.uint16)
    np.copyto(wide, patterns)
    wide <<= np.uint32(16)
    magnitude = patterns & np.uint16(0x7FFF)
    return magnitude_counts(magnitude, _BF16_INFINITY, _BF16_INFINITY, keeps_infinity=True, keeps_nan=True)


def float_to_byte(destination: DataType, src: npt.NDArray[np.float32], out: _Array, ieee: bool) -> CastCounts:
    """Cast to a floating type of one byte."""
    return pattern_table(DataType.DT_BF16, destination, ieee).cast(src, out.view(np.uint8))


def by_pattern(source: DataType, destination: DataType, src: _Array, out: _Array, ieee: bool) -> CastCounts:
    """Cast from a floating type of one or two bytes."""
    return pattern_table(source, destination, ieee).cast(src, out.view(f"u{destination.size_code}"))
