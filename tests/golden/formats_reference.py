"""Storage formats one element at a time: the formulas of GE's formats, written down a second time.

Nothing here knows gevar's table. A format is its shape and the place of a logical element in it, block indices by
division. A conversion visits every logical element of the plain side; padding stays zero.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import lcm, prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Index = tuple[int, ...]
Array = npt.NDArray[np.generic]
ROWS = 16
LETTERS = {"NCHW", "NHWC", "HWCN", "CHWN", "NDHWC", "NCDHW", "DHWCN", "DHWNC"}


class Logical(NamedTuple):
    """A logical element, or the number of elements along each coordinate."""

    n: int
    c: int
    h: int
    w: int
    d: int


@dataclass(frozen=True)
class Stored:
    """A stored format: shape from sizes and C0, place from element, sizes and C0."""

    shape: Callable[[Logical, int], Index]
    place: Callable[[Logical, Logical, int], Index]


def up(count: int, block: int) -> int:
    return (count + block - 1) // block


STORED = {
    "NC1HWC0": Stored(
        lambda s, k: (s.n, up(s.c, k), s.h, s.w, k),
        lambda e, s, k: (e.n, e.c // k, e.h, e.w, e.c % k),
    ),
    "NDC1HWC0": Stored(
        lambda s, k: (s.n, s.d, up(s.c, k), s.h, s.w, k),
        lambda e, s, k: (e.n, e.d, e.c // k, e.h, e.w, e.c % k),
    ),
    "C1HWNCoC0": Stored(
        lambda s, k: (up(s.c, k), s.h, s.w, s.n, k, k),
        lambda e, s, k: (e.c // k, e.h, e.w, e.n, e.c % k, e.c % k),
    ),
    "FRACTAL_Z": Stored(
        lambda s, k: (up(s.c, k) * s.h * s.w, up(s.n, ROWS), ROWS, k),
        lambda e, s, k: ((e.c // k * s.h + e.h) * s.w + e.w, e.n // ROWS, e.n % ROWS, e.c % k),
    ),
    "FRACTAL_Z_C04": Stored(
        lambda s, k: (up(4 * s.h * s.w, k), up(s.n, ROWS), ROWS, k),
        lambda e, s, k: (
            ((e.h * s.w + e.w) * 4 + e.c) // k,
            e.n // ROWS,
            e.n % ROWS,
            ((e.h * s.w + e.w) * 4 + e.c) % k,
        ),
    ),
    "FRACTAL_Z_3D": Stored(
        lambda s, k: (s.d * up(s.c, k) * s.h * s.w, up(s.n, ROWS), ROWS, k),
        lambda e, s, k: (
            ((e.d * up(s.c, k) + e.c // k) * s.h + e.h) * s.w + e.w,
            e.n // ROWS,
            e.n % ROWS,
            e.c % k,
        ),
    ),
    "FRACTAL_Z_3D_TRANSPOSE": Stored(
        lambda s, k: (s.d * up(s.n, k) * s.h * s.w, up(s.c, ROWS), ROWS, k),
        lambda e, s, k: (
            ((e.d * up(s.n, k) + e.n // k) * s.h + e.h) * s.w + e.w,
            e.c // ROWS,
            e.c % ROWS,
            e.n % k,
        ),
    ),
}


def grouped(groups: int) -> Stored:
    """FRACTAL_Z with several groups: groups of one diagonal lie behind each other in both directions."""

    def numbers(s: Logical, k: int) -> tuple[int, int, int, int]:
        out = s.n // groups
        wide = lcm(s.c, k) // s.c if s.c else 1
        beside = min(lcm(wide, lcm(out, ROWS) // out), groups)
        return out, beside, up(beside * s.c, k), up(beside * out, ROWS)

    def shape(s: Logical, k: int) -> Index:
        _, beside, channel_blocks, row_blocks = numbers(s, k)
        return up(groups, beside) * channel_blocks * s.h * s.w, row_blocks, ROWS, k

    def place(e: Logical, s: Logical, k: int) -> Index:
        out, beside, channel_blocks, _ = numbers(s, k)
        group, member = divmod(e.n, out)
        channel = group % beside * s.c + e.c
        row = group % beside * out + member
        first = ((group // beside * channel_blocks + channel // k) * s.h + e.h) * s.w + e.w
        return first, row // ROWS, row % ROWS, channel % k

    return Stored(shape, place)


def matrix_shape(stored: str, shape: Sequence[int], k: int) -> Index:
    """Shape of FRACTAL_NZ and FRACTAL_ZZ."""
    *lead, rows, columns = shape if len(shape) > 1 else (1, *shape)
    if stored == "FRACTAL_NZ":
        return (*lead, up(columns, k), up(rows, ROWS), ROWS, k)
    return (*lead, up(rows, k), up(columns, k), k, k)


def matrix_place(stored: str, index: Index, k: int) -> Index:
    """Place of an element of FRACTAL_NZ and FRACTAL_ZZ."""
    *lead, y, x = index if len(index) > 1 else (0, *index)
    if stored == "FRACTAL_NZ":
        return (*lead, x // k, y // ROWS, y % ROWS, x % k)
    return (*lead, y // k, x // k, y % k, x % k)


def logical(letters: str, numbers: Sequence[int], missing: int = 1) -> Logical:
    """Numbers by the letters of a plain format; ND in FRACTAL_Z is C, N."""
    given = zip(("CN" if letters == "ND" else letters).lower(), numbers, strict=True)
    return Logical(*[missing] * 5)._replace(**dict(given))


def stored_shape(plain: str, shape: Sequence[int], stored: str, k: int, groups: int = 1) -> Index:
    """Shape that a plain tensor has in another format."""
    if stored in ("FRACTAL_NZ", "FRACTAL_ZZ"):
        return matrix_shape(stored, shape, k)
    sizes = logical(plain, shape)
    if stored in LETTERS:
        return tuple(getattr(sizes, letter) for letter in stored.lower())
    how = grouped(groups) if groups > 1 else STORED[stored]
    return how.shape(sizes, k)


def places(plain: str, shape: Sequence[int], stored: str, k: int, groups: int = 1) -> list[tuple[Index, Index]]:
    """Index in the plain tensor and in the stored one, for every logical element."""
    found = []
    for index in product(*map(range, shape)):
        if stored in ("FRACTAL_NZ", "FRACTAL_ZZ"):
            found.append((index, matrix_place(stored, index, k)))
            continue
        element = logical(plain, index, 0)
        if stored in LETTERS:
            found.append((index, tuple(getattr(element, letter) for letter in stored.lower())))
        else:
            how = grouped(groups) if groups > 1 else STORED[stored]
            found.append((index, how.place(element, logical(plain, shape), k)))
    return found


def to_stored(array: Array, plain: str, stored: str, k: int, groups: int = 1) -> Array:
    """Convert a plain array element by element."""
    shape = stored_shape(plain, array.shape, stored, k, groups)
    result = np.zeros(prod(shape) * array.itemsize, np.uint8).view(array.dtype).reshape(shape)
    for here, there in places(plain, array.shape, stored, k, groups):
        result[there] = array[here]
    return result


def to_plain(array: Array, plain: str, shape: Sequence[int], stored: str, k: int, groups: int = 1) -> Array:
    """Convert back element by element."""
    result = np.empty(shape, array.dtype)
    for here, there in places(plain, shape, stored, k, groups):
        result[here] = array[there]
    return result
