"""Copies between views in different orders: each gives what numpy gives, and nothing else is written or read."""

from itertools import permutations
from math import prod

import numpy as np
import numpy.typing as npt
import pytest
from acl_shim._acl import ffi, lib
from hypothesis import given, settings
from hypothesis import strategies as st

from gevar.formats.strided_copy import copy_elements, raw_type

Array = npt.NDArray[np.generic]
GUARD = 64
EXAMPLES = settings(max_examples=300, deadline=None, derandomize=True)
DIMENSIONS = st.lists(st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 64, 70]), min_size=1, max_size=6)
WIDTHS = st.sampled_from([1, 2, 4, 8, 16, 3, 12])


def filled(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """An array of random bytes."""
    size_bytes = prod(shape) * dtype.itemsize
    return np.random.default_rng(size_bytes).integers(0, 256, size_bytes, np.uint8).view(dtype).reshape(shape)


def guarded(shape: tuple[int, ...], dtype: np.dtype[np.generic], shift: int = 0) -> tuple[Array, Array]:
    """Memory with a margin on both sides, and an array inside it that starts at any byte."""
    size_bytes = prod(shape) * dtype.itemsize
    memory = np.full(size_bytes + 2 * GUARD, 0xA5, np.uint8)
    return memory, memory[GUARD + shift : GUARD + shift + size_bytes].view(dtype).reshape(shape)


def numpy_copy(memory: Array, target: Array, source: Array) -> Array:
    """The same memory after numpy's copy; what `target` has beyond the source along one axis is zero."""
    expected = memory.copy()
    offset = target.ctypes.data - memory.ctypes.data
    view: Array = np.ndarray(target.shape, target.dtype, expected.data, offset, target.strides)
    if source.shape != target.shape:
        view[...] = np.zeros((), target.dtype)
    np.copyto(view[tuple(map(slice, source.shape))], source)
    return expected


def check(shape: tuple[int, ...], order: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
    """Copy into an array with another order of axes."""
    source = filled(shape, dtype)
    memory, inside = guarded(tuple(shape[axis] for axis in order), dtype)
    target = inside.transpose(np.argsort(order))
    expected = numpy_copy(memory, target, source)
    copy_elements(target, source, inside, source)
    assert memory.tobytes() == expected.tobytes()


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_orders_of_four_axes(order: tuple[int, ...], width: int) -> None:
    check((3, 17, 5, 33), order, raw_type(width))


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize(
    "shape",
    [
        (1024, 512),  # rows that fall on the same lines of the cache
        (700, 900),
        (3, 70_001),  # strips of few rows
        (70_001, 3),
        (9, 5000),
        (5000, 9),
        (1, 100),
        (100, 1),
        (1, 1),
        (16, 16),
        (3001, 2999),  # large enough for lines that are written past the cache
    ],
)
def test_transposed_matrices(shape: tuple[int, int], width: int) -> None:
    check(shape, (1, 0), raw_type(width))


@pytest.mark.parametrize("run", [2, 4, 8, 12, 16, 32, 96, 511, 512, 2000])
def test_runs_that_both_have_in_one_piece(run: int) -> None:
    check((37, 53, run), (1, 0, 2), raw_type(1))


@pytest.mark.parametrize("dtype", ["V5", "V8", "V2", "V1", "V100"])
def test_any_element_type_moves_bit_for_bit(dtype: str) -> None:
    check((7, 40, 30), (2, 0, 1), np.dtype(dtype))


def test_negative_zero_and_nan_payloads_stay() -> None:
    patterns = np.array([[0x8000, 0x7FC1, 0x3F80], [0xFFC1, 0x7F81, 0x0001]], np.uint16)
    target = np.empty((3, 2), np.float16)
    copy_elements(target.T, patterns.view(np.float16), target, patterns)
    assert target.view(np.uint16).tolist() == patterns.T.tolist()


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0,)])
def test_nothing_to_copy(shape: tuple[int, ...]) -> None:
    nothing = np.empty(shape, np.int8)
    copy_elements(nothing, np.empty(shape, np.int8), nothing, nothing)


def test_a_single_element() -> None:
    target, source = np.zeros((1, 1, 1), np.int32), np.full((1, 1, 1), 7, np.int32)
    copy_elements(target, source, target, source)
    assert target.item() == 7


@EXAMPLES
@given(
    shape=DIMENSIONS,
    width=WIDTHS,
    gaps=st.lists(st.sampled_from([0, 0, 1, 3]), min_size=6, max_size=6),
    seed=st.integers(0, 1 << 16),
    shift=st.integers(0, 7),
)
def test_views_at_random_copy_as_numpy_copies_there_and_back(
    shape: list[int], width: int, gaps: list[int], seed: int, shift: int
) -> None:
    """Axes in any order, gaps between elements, memory that starts at any byte."""
    small = [count if prod(shape[: axis + 1]) < 100_000 else 1 for axis, count in enumerate(shape)]
    order = np.random.default_rng(seed).permutation(len(small))
    wide = [count + gap for count, gap in zip(small, gaps, strict=False)]
    memory, inside = guarded(tuple(wide[axis] for axis in order), np.dtype(f"V{width}"), shift)
    target = inside.transpose(np.argsort(order))[tuple(map(slice, small))]
    source = filled(tuple(small), np.dtype(f"V{width}"))
    expected = numpy_copy(memory, target, source)
    copy_elements(target, source, inside, source)
    assert memory.tobytes() == expected.tobytes()
    back = np.zeros_like(source)
    copy_elements(back, target, back, inside)
    assert back.tobytes() == source.tobytes()


@EXAMPLES
@given(
    shape=DIMENSIONS,
    width=st.sampled_from([1, 2, 4, 8, 16, 3]),
    more=st.sampled_from([1, 2, 5, 13, 700]),
    seed=st.integers(0, 1 << 16),
)
def test_zeros_follow_along_the_innermost_axis(shape: list[int], width: int, more: int, seed: int) -> None:
    small = [count if prod(shape[: axis + 1]) < 20_000 else 1 for axis, count in enumerate(shape)]
    rng = np.random.default_rng(seed)
    order = [*rng.permutation(len(small) - 1), len(small) - 1]
    full = [*small[:-1], small[-1] + more]
    memory, inside = guarded(tuple(full[axis] for axis in order), np.dtype(f"V{width}"), seed % 8)
    target = inside.transpose(np.argsort(order))
    held = rng.permutation(len(small))
    whole = filled(tuple(small[axis] for axis in held), np.dtype(f"V{width}"))
    source = whole.transpose(np.argsort(held))
    expected = numpy_copy(memory, target, source)
    copy_elements(target, source, inside, whole)
    assert memory.tobytes() == expected.tobytes()


def test_views_with_gaps_leave_the_gaps_alone() -> None:
    source = filled((64, 300), np.dtype(np.int16))
    memory = np.full((300, 100), -1, np.int16)
    copy_elements(memory[:, 20:84].T, source, memory, source)
    assert (memory[:, 20:84] == source.T).all()
    assert (memory[:, :20] == -1).all()
    assert (memory[:, 84:] == -1).all()


def test_views_outside_of_their_memory_are_refused() -> None:
    whole, source = np.full((8, 8), 7, np.uint8), filled((4, 8), np.dtype(np.uint8))
    upper, lower = whole[:4], whole[4:]
    for memory in (upper[:3], upper.reshape(-1)[1:], lower):
        with pytest.raises(ValueError, match="do not lie in their memory"):
            copy_elements(upper, source, memory, source)
    with pytest.raises(ValueError, match="do not lie in their memory"):
        copy_elements(upper, source, upper, source[:3])
    assert (whole == 7).all()


@pytest.mark.parametrize(
    ("shape", "dst_steps", "src_steps", "width", "last"),
    [
        ([4, 4], [4, 1], [1, 4], 1, 5),  # the source has more than the destination
        ([4, 4], [4, 1], [1, 4], 1, 0),
        ([4, 4], [4, 1], [1, 4], 0, 4),
        ([4, 4], [4, 1], [1, 4], -1, 4),
        ([4, 0], [4, 1], [1, 4], 1, 0),
        ([4, -4], [4, 1], [1, 4], 1, -4),
        ([4, 4], [4, 0], [1, 4], 1, 4),  # elements that overlap
        ([4, 4], [4, 1], [0, 4], 1, 4),
        ([4, 4], [8, 1], [1, 4], 2, 4),
        ([4, 4], [4, -1], [1, 4], 1, 4),
        ([4, 4], [4, 1], [-1, 4], 1, 4),
        ([4, 4], [5, 1], [1, 4], 1, 4),  # the last element lies outside
        ([4, 4], [4, 1], [1, 5], 1, 4),
        ([1 << 62, 4], [4, 1], [1, 4], 1, 4),  # sizes that overflow
        ([4, 4], [1 << 62, 1], [1, 4], 1, 4),
        ([1 << 32, 1 << 32], [1 << 32, 1], [1, 4], 1, 1 << 32),
        ([4, 4], [1, 4], [1, 4], 1, 3),  # zeros along an axis that is not the innermost
        ([1] * 17, [1] * 17, [1] * 17, 1, 1),
        ([], [], [], 1, 1),
    ],
)
def test_numbers_that_do_not_fit_the_memory_are_refused(
    shape: list[int], dst_steps: list[int], src_steps: list[int], width: int, last: int
) -> None:
    target, source = np.full(16, 7, np.uint8), np.zeros(16, np.uint8)
    there, here = (ffi.cast("void *", one.ctypes.data) for one in (target, source))
    assert lib.format_copy(there, 16, here, 16, len(shape), shape, dst_steps, src_steps, width, last) == -1
    assert (target == 7).all()
    assert lib.format_copy(there, 16, here, 16, 2, [4, 4], [4, 1], [1, 4], 1, 4) == 0
