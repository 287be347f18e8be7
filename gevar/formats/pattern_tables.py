"""Casts through a table with the result of every bit pattern of the source, for sources of one or two bytes.

A float32 takes part with its upper two bytes where the destination has one byte: the lowest bit is set when anything
below was cut off, so that what lies beside the middle of two results still does, and every rounding comes out right.
"""

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from gevar.formats.block_loops import by_table, loop_table
from gevar.formats.cast_counts import NOTHING_LOST, CastCounts
from gevar.formats.hifloat8 import INFINITY_CODE, hifloat8_values, to_hifloat8
from gevar.types import DataType

_Array = npt.NDArray[np.generic]

_MAX_FLOAT16: Final = 0x7BFF
_HIFLOAT8_NAN_IN_FLOAT16: Final = 0x7C01
"""What GE makes of the NaN of hifloat8 in float16."""

_SATURATED, _NAN, _LOST = 1, 2, 4
"""Flags of a pattern, in the order of their counts."""


@dataclass(frozen=True, slots=True)
class PatternTable:
    """Results of all patterns, and what each loses.

    Attributes
    ----------
    results : numpy.ndarray
        Pattern of the result per pattern of the source.
    losses : numpy.ndarray
        Flags per pattern of the source.
    lossy : numpy.ndarray
        Ranges of patterns that hold all that lose something: first pattern, and how far the last one is from it.
    loop : object
        The same for the compiled loop.
    """

    results: npt.NDArray[np.unsignedinteger]
    losses: npt.NDArray[np.uint8]
    lossy: npt.NDArray[np.uint16]
    loop: object

    def cast(self, elements: _Array, out: npt.NDArray[np.unsignedinteger]) -> CastCounts:
        """Write the results of some elements, of patterns or of float32, and return what they lose."""
        saturated, nan, lost = by_table(self.loop, elements, out)
        return CastCounts(saturated, 0, nan, lost) if saturated or nan or lost else NOTHING_LOST


@cache
def pattern_table(source: DataType, destination: DataType, ieee: bool) -> PatternTable:
    """Return the table of a pair; both are floating types, the source has one or two bytes."""
    width = source.size_code
    patterns = np.arange(1 << 8 * width, dtype=np.uint32).astype(f"u{width}")
    values = _values(source, patterns)
    with np.errstate(all="ignore"):
        if destination is DataType.DT_HIFLOAT8:
            results = to_hifloat8(values)
        else:
            results = values.astype(destination.to_numpy()).view(f"u{destination.size_code}")
    if (source, destination) == (DataType.DT_HIFLOAT8, DataType.DT_FLOAT16):
        results[np.isnan(values)] = _HIFLOAT8_NAN_IN_FLOAT16
        if not ieee:
            results[[INFINITY_CODE, INFINITY_CODE | 0x80]] = _MAX_FLOAT16, _MAX_FLOAT16 | 0x8000
    losses = _losses(values, _values(destination, results))
    lossy = _ranges(losses)
    return PatternTable(results, losses, lossy, loop_table(results, losses, lossy))


def _values(dtype: DataType, patterns: npt.NDArray[np.unsignedinteger]) -> npt.NDArray[np.float32]:
    """Values of patterns of a floating type."""
    if dtype is DataType.DT_HIFLOAT8:
        known: npt.NDArray[np.float32] = hifloat8_values()[patterns]
        return known
    values: npt.NDArray[np.float32] = patterns.view(dtype.to_numpy()).astype(np.float32)
    return values


def _losses(values: npt.NDArray[np.float32], results: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    """Flags of what each cast of a value to a result loses."""
    nan = np.isnan(values)
    broken = np.isfinite(values) & ~np.isfinite(results) | np.isinf(values) & ~np.isinf(results)
    lost = broken | nan & ~np.isnan(results)
    flags: npt.NDArray[np.uint8] = (broken * _SATURATED + nan * _NAN + lost * _LOST).astype(np.uint8)
    return flags


def _ranges(losses: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint16]:
    """Ranges of the patterns with flags; one pattern without any, infinity mostly, does not part them."""
    flagged = losses != 0
    flagged[1:-1] |= flagged[:-2] & flagged[2:]
    edges = np.flatnonzero(np.diff(flagged, prepend=False, append=False))
    return np.array([(first, end - 1 - first) for first, end in edges.reshape(-1, 2)], np.uint16)
