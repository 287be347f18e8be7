"""The 256 codes of hifloat8: their values, and the code nearest to a value.

A code has a sign, then a prefix that tells how many bits the exponent has; the rest is the mantissa::

    S 0000 mmm   2^(mmm - 23), zero for mmm = 0        S 01  s e   mmm   1.mmm * 2^±(2 + e)
    S 0001 mmm   1.mmm                                 S 10  s ee  mm    1.mm  * 2^±(4 + ee)
    S 001 s mmm  1.mmm * 2^±1                          S 11  s eee m     1.m   * 2^±(8 + eee)

`s` = 1 means a negative exponent. 0x6F and 0xEF are the infinities, 0x80 is NaN.

Source: GE source, base/common/math/hif8_t.cc.
"""

from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

INFINITY_CODE: Final = 0x6F
NAN_CODE: Final = 0x80
OVERFLOW: Final = 40960.0
"""Smallest magnitude that becomes infinity: half way to the value that would follow the largest one."""

_PREFIXES: Final = ((0b11, 5, 8, 3, 1), (0b10, 5, 4, 2, 2), (0b01, 5, 2, 1, 3), (0b001, 4, 1, 0, 3))
"""Prefix, bits after it, smallest exponent, bits of the exponent, bits of the mantissa."""


def _magnitude(code: int) -> float:
    """Value of a code without its sign."""
    for prefix, rest, smallest, exponent_bits, mantissa_bits in _PREFIXES:
        if code >> rest == prefix:
            exponent = smallest + (code >> mantissa_bits & (1 << exponent_bits) - 1)
            negative = code >> rest - 1 & 1
            mantissa = 1 + (code & (1 << mantissa_bits) - 1) / (1 << mantissa_bits)
            return float(mantissa * 2.0 ** (-exponent if negative else exponent))
    if code >> 3 == 1:
        return 1 + (code & 7) / 8
    return 2.0 ** (code - 23) if code else 0.0


@cache
def hifloat8_values() -> npt.NDArray[np.float32]:
    """Return the value of each of the 256 codes."""
    positive = np.array([_magnitude(code) for code in range(128)], np.float32)
    positive[INFINITY_CODE] = np.inf
    values = np.concatenate([positive, -positive])
    values[NAN_CODE] = np.nan
    values.flags.writeable = False
    return values


def to_hifloat8(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    """Return the codes nearest to some values; what lies half way goes away from zero, and zero has no sign."""
    known = hifloat8_values()[:NAN_CODE].astype(np.float64)
    codes = np.argsort(known)  # infinity is the last
    steps = known[codes[:-1]]
    borders = np.append((steps[:-1] + steps[1:]) / 2, OVERFLOW)
    found = codes.astype(np.uint8)[np.searchsorted(borders, np.abs(values), side="right")]
    found[(values < 0) & (found != 0)] |= 0x80
    found[np.isnan(values)] = NAN_CODE
    return found
