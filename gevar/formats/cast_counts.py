"""What a cast loses: values out of range, NaN, integers that wrap; counted per block of elements."""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class CastCounts:
    """Elements of a cast whose value was not merely rounded.

    Attributes
    ----------
    saturated : int
        Numbers and infinities out of the range of the destination: they became its largest number, or an infinity or
        NaN where the source was none.
    wrapped : int
        Integers out of the range of a smaller integer: their low bits were kept.
    nan : int
        Elements that are NaN in the source, whatever became of them.
    lost : int
        Elements whose value cannot be told from the result: all that saturated or wrapped, and NaN that became numbers.
    """

    saturated: int = 0
    wrapped: int = 0
    nan: int = 0
    lost: int = 0

    def __add__(self, other: Self) -> "CastCounts":
        """Return the counts of two parts together."""
        return CastCounts(
            self.saturated + other.saturated,
            self.wrapped + other.wrapped,
            self.nan + other.nan,
            self.lost + other.lost,
        )

    def __str__(self) -> str:
        return f"{self.saturated} elements saturated, {self.wrapped} wrapped, {self.nan} NaN"


NOTHING_LOST: Final = CastCounts()


def magnitude_counts(
    magnitude: npt.NDArray[np.unsignedinteger], limit: int, infinity: int, *, keeps_infinity: bool, keeps_nan: bool
) -> CastCounts:
    """Count what a cast from a floating type loses.

    Parameters
    ----------
    magnitude
        Bit patterns of the elements without their signs.
    limit
        Pattern of the smallest magnitude that is out of range.
    infinity
        Pattern of infinity in the source; larger ones are NaN.
    keeps_infinity, keeps_nan
        What the destination has and the cast keeps.
    """
    if int(magnitude.max()) < min(limit, infinity):
        return NOTHING_LOST
    nan = int(np.count_nonzero(magnitude > infinity))
    saturated = int(np.count_nonzero(magnitude >= limit)) - nan
    if keeps_infinity:
        saturated -= int(np.count_nonzero(magnitude == infinity))
    return CastCounts(saturated, 0, nan, saturated + (0 if keeps_nan else nan))


def integer_counts(values: npt.NDArray[np.signedinteger], lowest: int, highest: int, *, wraps: bool) -> CastCounts:
    """Count the integers outside a range."""
    if int(values.min()) >= lowest and int(values.max()) <= highest:
        return NOTHING_LOST
    outside = int(np.count_nonzero((values < lowest) | (values > highest)))
    return CastCounts(0 if wraps else outside, outside if wraps else 0, 0, outside)
