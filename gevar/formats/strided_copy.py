"""Copies between two views whose elements lie in different orders, near the speed of memory.

The loop is C, `acl_shim/_strided_copy.h`; `numpy.copyto` of the same views is what its tests hold it against.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
from acl_shim._acl import ffi, lib

_Array = npt.NDArray[np.generic]
_RAW: Final = {width: np.dtype(code) for width, code in ((1, "u1"), (2, "u2"), (4, "u4"), (8, "u8"), (16, "c16"))}


def raw_type(width_bytes: int) -> np.dtype[np.generic]:
    """Return a numpy type of this width that is copied bit for bit, one with a fast loop where there is one."""
    return _RAW.get(width_bytes, np.dtype(f"V{width_bytes}"))


def copy_elements(dst: _Array, src: _Array, dst_memory: _Array, src_memory: _Array) -> None:
    """Copy the elements of one view into another of the same shape, bit for bit.

    Along the innermost axis of `dst`, that of the smallest stride, `src` may be shorter: zeros follow its elements.
    Takes less than 1 MiB of memory, whatever the size.

    Parameters
    ----------
    dst, src
        Views of the same element width, with at most 16 axes; they share no memory.
    dst_memory, src_memory
        The contiguous arrays of which they are views.

    Raises
    ------
    ValueError
        A view does not lie inside its memory, or elements of it overlap. Nothing is written.
    """
    if not dst.size:
        return
    axes = sorted(range(dst.ndim), key=lambda axis: (dst.shape[axis] != src.shape[axis], axis))
    shape, dst_steps, src_steps = ([sizes[axis] for axis in axes] for sizes in (dst.shape, dst.strides, src.strides))
    (to, to_size), (from_, from_size) = _place(dst, dst_memory), _place(src, src_memory)
    filled = src.shape[axes[-1]]
    if lib.format_copy(to, to_size, from_, from_size, len(axes), shape, dst_steps, src_steps, dst.itemsize, filled):
        raise ValueError(f"views of shapes {dst.shape} and {src.shape} do not lie in their memory; pass that of both")


def _place(view: _Array, memory: _Array) -> tuple[object, int]:
    """Where a view starts, and the bytes from there to the end of its memory."""
    start = view.ctypes.data
    offset = start - memory.ctypes.data
    return ffi.cast("void *", start), memory.nbytes - offset if offset >= 0 else 0
