"""Pairs of views, one of the plain and one of the stored side, with the same elements in the same places.

An axis with blocks gives two pieces: its full blocks, and the rest in the last block. What no view of the stored side
reaches is padding; the innermost axis may reach over it, as far as its block goes.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from gevar.formats.conversion import Conversion, Groups, axis_size

_Array = npt.NDArray[np.generic]
_Piece = tuple[int, int, int]
"""First block, number of blocks, and elements of each."""

_PLANE: Final = "P"
_GROUPED_AXES: Final = "C", _PLANE, "N"


def matching_views(
    conversion: Conversion, plain: _Array, stored: _Array, *, padded: bool
) -> Iterator[tuple[_Array, _Array]]:
    """Yield views with equal shapes that together hold every element of the plain side once.

    Parameters
    ----------
    conversion
        The conversion.
    plain, stored
        Both sides, contiguous, with the shapes of the conversion; zero dimensions are not allowed.
    padded
        Whether views of the stored side have their innermost axis as a whole, longer than that of the plain side where
        a block is not full. Those of groups, which share blocks, never do.
    """
    axes = _axes(conversion.pair.axes)
    letters = list(dict.fromkeys([*axes, *(token[0] for token in _axes(conversion.layout.axes))]))
    plain = plain.reshape([conversion.sizes[axis] for axis in letters])
    if conversion.groups is None:
        yield from _ungrouped(conversion, plain, letters, stored, padded)
    else:
        order = [letters.index(axis) for axis in _GROUPED_AXES]
        yield from _grouped(conversion, conversion.groups, plain.transpose(order), stored)


def padding(conversion: Conversion, stored: _Array) -> Iterator[_Array]:
    """Yield views of the stored side that hold all padding that padded views do not, and maybe elements besides.

    Parameters
    ----------
    conversion, stored
        As `matching_views` has them.
    """
    tokens = _axes(conversion.layout.axes)
    sizes, blocks = conversion.sizes, conversion.blocks
    if conversion.groups is not None or len(set(tokens)) < len(tokens):
        yield stored
        return
    stored = stored.reshape([axis_size(token, sizes, blocks) for token in tokens])
    for axis, block in blocks.items():
        if sizes[axis] % block and tokens[-1] != f"{axis}0":
            last = slice(sizes[axis] // block, None)
            yield stored[tuple(last if token == f"{axis}1" else slice(None) for token in tokens)]


def _axes(text: str) -> list[str]:
    """Axes of a layout, with the plane as one."""
    return text.replace("H W", _PLANE).replace("(", "").replace(")", "").split()


def _pieces(count: int, block: int) -> list[_Piece]:
    """Full blocks, and the rest."""
    full, rest = divmod(count, block)
    pieces = [(0, full, block), (full, 1, rest)]
    return [piece for piece in pieces if piece[1] and piece[2]]


def _ungrouped(
    conversion: Conversion, plain: _Array, letters: Sequence[str], stored: _Array, padded: bool
) -> Iterator[tuple[_Array, _Array]]:
    """Views of every combination of pieces."""
    blocks = conversion.blocks
    tokens, stored = _stored_axes(conversion, stored)
    order = [tokens.index(part) for axis in letters for part in _parts(axis, blocks)]
    choices = [_pieces(conversion.sizes[axis], blocks[axis]) for axis in letters if axis in blocks]
    for chosen in product(*choices):
        pieces = dict(zip((axis for axis in letters if axis in blocks), chosen, strict=True))
        reached = _stored_piece(stored, tokens, pieces, tokens[-1] if padded else "")
        yield _plain_piece(plain, letters, pieces, blocks), reached.transpose(order)


def _parts(axis: str, blocks: Mapping[str, int]) -> tuple[str, ...]:
    return (f"{axis}1", f"{axis}0") if axis in blocks else (axis,)


def _stored_axes(conversion: Conversion, stored: _Array) -> tuple[list[str], _Array]:
    """The stored side with an axis for each part, and their names; a diagonal is one axis."""
    tokens = _axes(conversion.layout.axes)
    absent = [f"{axis}1" for axis in conversion.blocks if f"{axis}1" not in tokens]
    sizes = [axis_size(token, conversion.sizes, conversion.blocks) for token in tokens]
    stored = stored.reshape([1] * len(absent) + sizes)
    if tokens[-1:] == tokens[-2:-1]:
        *outer, row, place = stored.strides
        stored = as_strided(stored, stored.shape[:-1], [*outer, row + place])
        tokens.pop()
    return absent + tokens, stored


def _plain_piece(
    plain: _Array, letters: Sequence[str], pieces: Mapping[str, _Piece], blocks: Mapping[str, int]
) -> _Array:
    """The elements of the chosen pieces, with an axis for blocks and one for places in them."""
    where: list[slice] = []
    shape: list[int] = []
    for axis, size in zip(letters, plain.shape, strict=True):
        if axis in pieces:
            first, count, width = pieces[axis]
            start = first * blocks[axis]
            where.append(slice(start, start + count * width))
            shape.extend((count, width))
        else:
            where.append(slice(None))
            shape.append(size)
    return plain[tuple(where)].reshape(shape)


def _stored_piece(stored: _Array, tokens: Sequence[str], pieces: Mapping[str, _Piece], whole: str) -> _Array:
    """The chosen pieces, with every place of the axis `whole`."""
    where: list[slice] = []
    for token in tokens:
        if token[0] not in pieces or (token == whole and token[1:] == "0"):
            where.append(slice(None))
            continue
        first, count, width = pieces[token[0]]
        where.append(slice(first, first + count) if token[1:] == "1" else slice(0, width))
    return stored[tuple(where)]


def _grouped(conversion: Conversion, groups: Groups, plain: _Array, stored: _Array) -> Iterator[tuple[_Array, _Array]]:
    """Views of a FRACTAL_Z with groups: group e of a diagonal has its channels and outputs behind those before it.

    `plain` has the axes C, plane, N. Groups e, e + side_by_side, … lie at the same place of each diagonal.
    """
    cube = conversion.blocks["C"]
    channel_blocks = -(-groups.side_by_side * groups.channels // cube)
    stored = stored.reshape(groups.rows, channel_blocks, conversion.sizes[_PLANE], -1, cube)
    by_group = plain.reshape(*plain.shape[:2], groups.count, groups.batch).transpose(2, 0, 1, 3)
    for place in range(groups.side_by_side):
        members = by_group[place :: groups.side_by_side]
        outputs = slice(place * groups.batch, (place + 1) * groups.batch)
        start = place * groups.channels
        for first, count, offset, width in _runs(start, start + groups.channels, cube):
            here = first * cube + offset - start
            one = members[:, here : here + count * width].reshape(-1, count, width, *members.shape[2:])
            other = stored[: len(members), first : first + count, :, outputs, offset : offset + width]
            yield one, other.transpose(0, 1, 4, 2, 3)


def _runs(start: int, stop: int, block: int) -> Iterator[tuple[int, int, int, int]]:
    """A range of elements as runs inside blocks: first block, number of blocks, offset in each, elements of each."""
    while start < stop:
        first, offset = divmod(start, block)
        width = min(block - offset, stop - start)
        count = (stop - start) // block if width == block else 1
        yield first, count, offset, width
        start += count * width
