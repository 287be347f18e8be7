"""Copies between views in different orders: every path gives what numpy gives, and nothing else is written."""

from itertools import permutations

import numpy as np
import numpy.typing as npt
import pytest

from gevar.formats import strided_copy
from gevar.formats.strided_copy import BLOCK_BYTES, copy_elements, raw_type

Array = npt.NDArray[np.generic]
GUARD = 64


def filled(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """An array of random bytes."""
    size_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.random.default_rng(size_bytes).integers(0, 256, size_bytes, np.uint8).view(dtype).reshape(shape)


def check(shape: tuple[int, ...], order: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
    """Copy into an array with another order of axes, inside memory with a margin."""
    source = filled(shape, dtype)
    swapped = tuple(shape[axis] for axis in order)
    memory = np.full(source.nbytes + 2 * GUARD, 0xA5, np.uint8)
    target = memory[GUARD:-GUARD].view(dtype).reshape(swapped)
    copy_elements(target.transpose(np.argsort(order)), source)
    assert target.tobytes() == np.ascontiguousarray(source.transpose(order)).tobytes()
    assert (memory[:GUARD] == 0xA5).all()
    assert (memory[-GUARD:] == 0xA5).all()


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
        (3, 70_001),  # short runs of the destination, written place by place
        (70_001, 3),
        (9, 5000),
        (5000, 9),
        (1, 100),
        (100, 1),
        (1, 1),
        (16, 16),
    ],
)
def test_transposed_matrices(shape: tuple[int, int], width: int) -> None:
    check(shape, (1, 0), raw_type(width))


@pytest.mark.parametrize("run", [2, 4, 8, 12, 16, 32, 96, 511, 512, 2000])
def test_runs_that_both_have_in_one_piece(run: int) -> None:
    check((37, 53, run), (1, 0, 2), raw_type(1))


@pytest.mark.parametrize("dtype", ["V5", "c8", "f2", "?"])
def test_any_element_type_moves_bit_for_bit(dtype: str) -> None:
    check((7, 40, 30), (2, 0, 1), np.dtype("V5" if dtype == "V5" else f"V{np.dtype(dtype).itemsize}"))


def test_negative_zero_and_nan_payloads_stay() -> None:
    patterns = np.array([[0x8000, 0x7FC1, 0x3F80], [0xFFC1, 0x7F81, 0x0001]], np.uint16)
    target = np.empty((3, 2), np.float16)
    copy_elements(target.T, patterns.view(np.float16))
    assert target.view(np.uint16).tolist() == patterns.T.tolist()


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0,)])
def test_nothing_to_copy(shape: tuple[int, ...]) -> None:
    copy_elements(np.empty(shape, np.int8), np.empty(shape, np.int8))


def test_a_single_element() -> None:
    target = np.zeros((1, 1, 1), np.int32)
    copy_elements(target, np.full((1, 1, 1), 7, np.int32))
    assert target.item() == 7


def test_views_with_gaps_leave_the_gaps_alone() -> None:
    source = filled((64, 300), np.dtype(np.int16))
    memory = np.full((300, 100), -1, np.int16)
    copy_elements(memory[:, 20:84].T, source)
    assert (memory[:, 20:84] == source.T).all()
    assert (memory[:, :20] == -1).all()
    assert (memory[:, 84:] == -1).all()


def test_blocks_that_do_not_divide_the_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strided_copy, "BLOCK_BYTES", 256)
    monkeypatch.setattr(strided_copy, "RUN_BYTES", 32)
    for shape in ((31, 7, 45), (5, 64, 64), (100, 3, 33)):
        for order in permutations(range(3)):
            check(shape, order, raw_type(2))


def test_blocks_are_bounded() -> None:
    for width in (1, 2, 4, 8, 16):
        for shape in ((4096, 4096), (8, 1 << 20), (1 << 20, 8), (64, 3, 7, 7, 512)):
            inner = range(len(shape) - 1, -1, -1)
            for by_source in (list(range(len(shape))), list(inner)):
                extents = strided_copy._block_extents(shape, width, by_source, inner)
                assert all(1 <= step <= count for step, count in zip(extents, shape, strict=True))
                assert np.prod(extents) * width <= 4 * BLOCK_BYTES
