"""The compiled loops over one block of elements, called with arrays.

Arrays are contiguous and of equal length; an empty one is not passed. The loops run without the interpreter's lock.
"""

from typing import cast

import numpy as np
import numpy.typing as npt
from acl_shim._acl import ffi, lib

_Patterns = npt.NDArray[np.unsignedinteger]


def _pointer(kind: str, array: npt.NDArray[np.generic]) -> object:
    """Where the elements are; the array must outlive it."""
    return cast(object, ffi.cast(kind, array.ctypes.data))


def float_to_float16(src: npt.NDArray[np.float32], out: npt.NDArray[np.float16]) -> int:
    """Write the nearest float16 of each element, and return the pattern of the largest magnitude.

    Results of magnitudes from 65520 on, and of NaN, are not right.
    """
    return cast(int, lib.format_float_to_float16(_pointer("uint32_t *", src), _pointer("uint16_t *", out), len(src)))


def int32_to_float16(src: npt.NDArray[np.int32], out: npt.NDArray[np.float16]) -> int:
    """Write the nearest float16 of each element, at most 65504 in magnitude, and return the largest magnitude."""
    return cast(int, lib.format_int32_to_float16(_pointer("int32_t *", src), _pointer("uint16_t *", out), len(src)))


def upper_patterns(src: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Return the upper two bytes of each element, the lowest bit set where a lower one was."""
    upper = np.empty(len(src), np.uint16)
    lib.format_upper_patterns(_pointer("uint32_t *", src), _pointer("uint16_t *", upper), len(src))
    return upper


def look_up(table: _Patterns, patterns: _Patterns, out: _Patterns) -> None:
    """Write the table's element at each pattern; the table has one for every pattern."""
    lib.format_look_up(
        _pointer("void *", patterns),
        patterns.itemsize,
        _pointer("void *", table),
        table.itemsize,
        _pointer("void *", out),
        len(patterns),
    )


def any_within(patterns: _Patterns, first: int, span: int) -> bool:
    """Tell whether any pattern lies in the range of `span` + 1 patterns from `first`."""
    if patterns.itemsize == 1:
        return bool(lib.format_any_within_1(_pointer("uint8_t *", patterns), first, span, len(patterns)))
    return bool(lib.format_any_within_2(_pointer("uint16_t *", patterns), first, span, len(patterns)))
