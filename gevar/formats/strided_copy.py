"""Copies between two views of one shape whose elements lie in different orders, near the speed of memory.

numpy copies along the innermost axis of the destination. Where the elements of the source are far apart there, each
costs a cache line, and lines whose distance is a power of two push each other out of the cache. So the copy goes by
blocks that fit the cache: a block is read along the source into a small buffer whose rows lie at distances that do not
collide, and written from there along the destination. A destination with very short runs is written one place of the
run at a time, so that numpy's inner loop stays long.
"""

from collections.abc import Iterable, Sequence
from itertools import product
from math import prod
from typing import Final

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

LINE_BYTES: Final = 64
RUN_BYTES: Final = 512
"""Bytes that a block has at least along the source, and along the destination, where the axes are that long."""

BLOCK_BYTES: Final = 64 << 10
"""Bytes of a block, where its runs are not longer; buffer and destination fit the second-level cache beside it."""

RUN_ELEMENTS: Final = 256
"""The same in elements, at most: as many lines of the source are held by the first-level cache."""

WIDE_BYTES: Final = 32
"""Width from which elements are not read into a buffer first: a line is used up by few of them."""

SHORT_RUN: Final = 16
"""Elements in one piece in the source below which reading it into a buffer costs more than it spares."""

LOOP_NS: Final = 10.0
CALL_NS: Final = 1000.0
SCATTER_NS: Final = 0.5
SCATTER_BYTE_NS: Final = 0.1
"""Costs of an inner loop of numpy, of a call, and of writing to every n-th place; the last per byte of an element."""

_Array = npt.NDArray[np.generic]
_RAW: Final = {width: np.dtype(code) for width, code in ((1, "u1"), (2, "u2"), (4, "u4"), (8, "u8"), (16, "c16"))}


def raw_type(width_bytes: int) -> np.dtype[np.generic]:
    """Return a numpy type of this width that is copied bit for bit, one with a fast loop where there is one."""
    return _RAW.get(width_bytes, np.dtype(f"V{width_bytes}"))


def copy_elements(dst: _Array, src: _Array) -> None:
    """Copy the elements of one view into another of the same shape, bit for bit.

    Takes less than 1 MiB of memory, whatever the size.

    Parameters
    ----------
    dst, src
        Views of the same shape and element width; they share no memory.
    """
    if not dst.size:
        return
    dst, src = _widened(*_merged(dst.view(raw_type(dst.itemsize)), src.view(raw_type(src.itemsize))))
    inner = dst.ndim - 1
    if inner < 1 or src.strides[inner] == min(src.strides):
        np.copyto(dst, src)
    else:
        _copy_blocks(dst, src)


def _merged(dst: _Array, src: _Array) -> tuple[_Array, _Array]:
    """The same elements with the axes in the order of the destination, and as few axes as there can be."""
    shape: list[int] = []
    strides: tuple[list[int], list[int]] = [], []
    for axis in sorted(range(dst.ndim), key=lambda axis: (-dst.strides[axis], -src.strides[axis])):
        count, into, out = dst.shape[axis], dst.strides[axis], src.strides[axis]
        if count == 1:
            continue
        if shape and (strides[0][-1], strides[1][-1]) == (count * into, count * out):
            shape[-1] *= count
            strides[0][-1], strides[1][-1] = into, out
        else:
            shape.append(count)
            strides[0].append(into)
            strides[1].append(out)
    return as_strided(dst, shape, strides[0]), as_strided(src, shape, strides[1])


def _widened(dst: _Array, src: _Array) -> tuple[_Array, _Array]:
    """The same bytes with short runs that both have in one piece taken for one element."""
    width = dst.itemsize
    if dst.ndim < 2 or dst.strides[-1] != width or src.strides[-1] != width or dst.shape[-1] * width >= RUN_BYTES:
        return dst, src
    wide = raw_type(dst.shape[-1] * width)
    return dst.view(wide)[..., 0], src.view(wide)[..., 0]


def _copy_blocks(dst: _Array, src: _Array) -> None:
    """Copy by blocks, through a buffer where that pays; axes are in the order of the destination."""
    from_inner = range(dst.ndim - 1, -1, -1)
    by_source = sorted(from_inner, key=lambda axis: src.strides[axis])
    extents = _block_extents(dst.shape, dst.itemsize, by_source, from_inner)
    buffered = dst.itemsize < WIDE_BYTES and _source_run(src, extents, by_source) >= SHORT_RUN
    buffer = _buffer(extents, by_source, dst) if buffered else None
    lanes = _lanes(extents, dst.itemsize)
    for starts in product(*(range(0, count, step) for count, step in zip(dst.shape, extents, strict=True))):
        place = tuple(slice(start, start + step) for start, step in zip(starts, extents, strict=True))
        target, block = dst[place], src[place]
        if buffer is not None:
            held = buffer[tuple(map(slice, target.shape))]
            np.copyto(held, block)
            block = held
        for lane in product(*map(range, target.shape[dst.ndim - lanes :])):
            one: tuple[slice | int, ...] = (*[slice(None)] * (dst.ndim - lanes), *lane)
            np.copyto(target[one], block[one])


def _block_extents(
    shape: Sequence[int], width: int, by_source: Iterable[int], from_inner: Iterable[int]
) -> tuple[int, ...]:
    """Elements of a block along each axis: long runs on both sides first, then up to the bytes of a block."""
    extents = [1] * len(shape)
    for order in (by_source, from_inner):
        run, wanted = 1, min(RUN_BYTES // width, RUN_ELEMENTS)
        for axis in order:
            if run >= wanted:
                break
            extents[axis] = max(extents[axis], min(shape[axis], -(-wanted // run)))
            run *= extents[axis]
    for axis in from_inner:
        times = BLOCK_BYTES // (prod(extents) * width)
        extents[axis] = min(shape[axis], extents[axis] * max(1, times))
    return tuple(extents)


def _source_run(src: _Array, extents: Sequence[int], by_source: Iterable[int]) -> int:
    """Elements of a block that lie in one piece in the source."""
    run = 1
    for axis in by_source:
        if src.strides[axis] != run * src.itemsize:
            break
        run *= extents[axis]
        if extents[axis] < src.shape[axis]:
            break
    return run


def _buffer(extents: Sequence[int], by_source: Iterable[int], dst: _Array) -> _Array:
    """Memory for one block in the order of the source; steps along the destination are an odd number of lines."""
    strides = [0] * len(extents)
    size_bytes = dst.itemsize
    for axis in by_source:
        if axis == len(extents) - 1 and size_bytes >= LINE_BYTES:
            size_bytes = (-(-size_bytes // LINE_BYTES) | 1) * LINE_BYTES
        strides[axis] = size_bytes
        size_bytes *= extents[axis]
    return np.ndarray(extents, dst.dtype, np.empty(size_bytes, np.uint8).data, 0, strides)


def _lanes(extents: Sequence[int], width: int) -> int:
    """How many of the innermost axes are stepped through one place at a time, to keep numpy's inner loop long.

    Weighed in ns per element: what numpy spends on each inner loop, what a call costs, and scattered writing.
    """

    def cost(lanes: int) -> float:
        calls = prod(extents[len(extents) - lanes :])
        scattered = SCATTER_NS + SCATTER_BYTE_NS * width if lanes else 0
        return LOOP_NS / extents[len(extents) - 1 - lanes] + CALL_NS * calls / prod(extents) + scattered

    return min(range(len(extents)), key=cost)
