"""Alignment and block sizes of variable memory, with the ends of 64-bit integers as GE checks them."""

import pytest

from gevar import align
from gevar.align import align_up, checked_add, var_block_bytes
from gevar.errors import SizeOverflowError
from gevar.status import INTERNAL_ERROR

UINT64_MAX = 18446744073709551615
INT64_MAX = 9223372036854775807


def test_units() -> None:
    assert (align.SESSION_MEM_ALIGN_BYTES, align.VAR_GUARD_BYTES, align.TENSOR_ALIGN_BYTES) == (512, 1024, 32)
    assert (align.HUGE_PAGE_BYTES, align.GIANT_PAGE_BYTES) == (2097152, 1073741824)
    assert (align.MIB, align.GIB) == (1048576, 1073741824)
    assert (align.INT64_MAX, align.UINT64_MAX) == (INT64_MAX, UINT64_MAX)


@pytest.mark.parametrize(
    ("size_bytes", "align_bytes", "aligned"),
    [
        (0, 512, 0),
        (1, 512, 512),
        (511, 512, 512),
        (512, 512, 512),
        (513, 512, 1024),
        (4294967297, 512, 4294967808),
        (1, 2097152, 2097152),
        (3, 1, 3),
        (UINT64_MAX - 512, 512, UINT64_MAX - 511),
    ],
)
def test_align_up(size_bytes: int, align_bytes: int, aligned: int) -> None:
    assert align_up(size_bytes, align_bytes) == aligned


@pytest.mark.parametrize("size_bytes", [UINT64_MAX, UINT64_MAX - 509, UINT64_MAX - 511, 1 << 70])
def test_align_up_fails_where_size_and_unit_leave_64_bits(size_bytes: int) -> None:
    with pytest.raises(SizeOverflowError) as caught:
        align_up(size_bytes, 512)
    assert (caught.value.value, caught.value.limit) == (size_bytes + 512, UINT64_MAX)
    assert caught.value.status == INTERNAL_ERROR


def test_align_up_within_a_smaller_limit() -> None:
    assert align_up(INT64_MAX - 32, 32, limit=INT64_MAX) == INT64_MAX - 31
    with pytest.raises(SizeOverflowError, match=str(INT64_MAX)):
        align_up(INT64_MAX - 31, 32, limit=INT64_MAX)


def test_checked_add_at_the_end() -> None:
    assert checked_add(UINT64_MAX - 5, 5) == UINT64_MAX
    assert checked_add(INT64_MAX, 0, limit=INT64_MAX) == INT64_MAX
    with pytest.raises(SizeOverflowError, match="18446744073709551610 B \\+ 6 B gives 18446744073709551616"):
        checked_add(UINT64_MAX - 5, 6)
    with pytest.raises(SizeOverflowError):
        checked_add(INT64_MAX, 1, limit=INT64_MAX)


@pytest.mark.parametrize(
    ("size_bytes", "block_bytes"),
    [
        (0, 1024),
        (1, 1536),
        (24, 1536),
        (511, 1536),
        (512, 1536),
        (513, 2048),
        (600, 2048),
        (1024, 2048),
        (4294967297, 4294968832),
        (UINT64_MAX - 1535, UINT64_MAX - 511),
    ],
)
def test_block_of_a_variable(size_bytes: int, block_bytes: int) -> None:
    assert var_block_bytes(size_bytes) == block_bytes


@pytest.mark.parametrize("size_bytes", [UINT64_MAX, UINT64_MAX - 509, UINT64_MAX - 1023])
def test_a_block_beyond_64_bits(size_bytes: int) -> None:
    with pytest.raises(SizeOverflowError):
        var_block_bytes(size_bytes)
