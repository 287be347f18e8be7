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
    return cast(object, ffi.cast(kind, array.__array_interface__["data"][0]))


def float_to_float16(src: npt.NDArray[np.float32], out: npt.NDArray[np.float16]) -> int:
    """Write the nearest float16 of each element, and return the pattern of the largest magnitude.

    Results of magnitudes from 65520 on, and of NaN, are not right.
    """
    return cast(int, lib.format_float_to_float16(_pointer("uint32_t *", src), _pointer("uint16_t *", out), len(src)))


def float16_to_float(src: npt.NDArray[np.float16], out: npt.NDArray[np.float32]) -> int:
    """Write each element, exponent 31 taken for an ordinary one, and return the pattern of the largest magnitude."""
    return cast(int, lib.format_float16_to_float(_pointer("uint16_t *", src), _pointer("float *", out), len(src)))


def int32_to_float16(src: npt.NDArray[np.int32], out: npt.NDArray[np.float16]) -> int:
    """Write the nearest float16 of each element, at most 65504 in magnitude, and return the largest magnitude."""
    return cast(int, lib.format_int32_to_float16(_pointer("int32_t *", src), _pointer("uint16_t *", out), len(src)))


def loop_table(results: _Patterns, losses: npt.NDArray[np.uint8], lossy: npt.NDArray[np.uint16]) -> object:
    """Return what `by_table` needs of a table; the arrays must outlive it.

    Parameters
    ----------
    results
        Pattern of the result per pattern of one or two bytes.
    losses
        Three flags per pattern.
    lossy
        Ranges that hold all patterns with flags: the first one, and how far the last one is from it.
    """
    return ffi.new(
        "format_table *",
        {
            "src_width": 1 if len(results) == 1 << 8 else 2,
            "dst_width": results.itemsize,
            "results": _pointer("void *", results),
            "losses": _pointer("uint8_t *", losses),
            "range_count": len(lossy),
            "ranges": _pointer("uint16_t *", lossy),
        },
    )


def by_table(table: object, src: npt.NDArray[np.generic], out: _Patterns) -> tuple[int, int, int]:
    """Write the results of some elements, and return how many of them have each flag.

    Elements of four bytes take part with their upper two, the lowest bit set where a lower one was.
    """
    lost = ffi.new("int64_t[3]")
    lib.format_by_table(table, _pointer("void *", src), src.itemsize, _pointer("void *", out), len(src), lost)
    return lost[0], lost[1], lost[2]
