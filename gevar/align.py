"""Sizes and alignment of variable memory: the units, and arithmetic that fails where GE's 64-bit integers end.

Source: GE source, base/graph/manager/graph_var_manager.h, kSessionMemAlignSize; graph_var_manager.cc,
HbmMemResource::AssignVarMem.
"""

from typing import Final

from gevar.errors import SizeOverflowError
from gevar.status import INTERNAL_ERROR

MIB: Final = 1 << 20
GIB: Final = 1 << 30

INT64_MAX: Final = (1 << 63) - 1
UINT64_MAX: Final = (1 << 64) - 1

SESSION_MEM_ALIGN_BYTES: Final = 512
"""Unit of variable memory and of weights in a file (GE: kSessionMemAlignSize)."""

VAR_GUARD_BYTES: Final = 2 * SESSION_MEM_ALIGN_BYTES
"""Bytes of a variable's block beyond its data (GE: kSessionMemAlignSize * kSessionMemAlignUnit)."""

TENSOR_ALIGN_BYTES: Final = 32
"""Unit of the padded size of a tensor (GE: kDataMemAlignSize)."""

HUGE_PAGE_BYTES: Final = 2 * MIB
GIANT_PAGE_BYTES: Final = GIB


def checked_add(first: int, second: int, *, limit: int = UINT64_MAX) -> int:
    """Return the sum of two sizes in bytes.

    Raises
    ------
    SizeOverflowError
        The sum is more than `limit` (status INTERNAL_ERROR, as GE's overflow checks).
    """
    total = first + second
    if total > limit:
        raise SizeOverflowError(f"{first} B + {second} B", total, limit, status=INTERNAL_ERROR)
    return total


def align_up(size_bytes: int, align_bytes: int, *, limit: int = UINT64_MAX) -> int:
    """Return the next multiple of `align_bytes`; a multiple stays as it is.

    Raises
    ------
    SizeOverflowError
        `size_bytes + align_bytes` is more than `limit`. That is GE's check: it refuses the last sizes below the limit
        although they could be rounded.

    Examples
    --------
    >>> align_up(513, 512), align_up(512, 512), align_up(0, 512)
    (1024, 512, 0)
    """
    checked_add(size_bytes, align_bytes, limit=limit)
    return -(-size_bytes // align_bytes) * align_bytes


def var_block_bytes(size_bytes: int) -> int:
    """Return the bytes of the block that a variable in device memory takes: data in units of 512, and 1024 of guard.

    Raises
    ------
    SizeOverflowError
        A step of the computation leaves 64 bits.

    Source: GE source, base/graph/manager/graph_var_manager.cc, HbmMemResource::AssignVarMem.

    Examples
    --------
    >>> [var_block_bytes(size) for size in (0, 1, 512, 513)]
    [1024, 1536, 1536, 2048]
    """
    if size_bytes <= INT64_MAX:  # no step can leave 64 bits
        return -(-size_bytes // SESSION_MEM_ALIGN_BYTES) * SESSION_MEM_ALIGN_BYTES + VAR_GUARD_BYTES
    return checked_add(align_up(size_bytes, SESSION_MEM_ALIGN_BYTES), VAR_GUARD_BYTES)
