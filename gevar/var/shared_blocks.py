"""Blocks that hold the same weight: at least as large as a tensor that wants to share, the oldest is taken.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarResource::GetReuseAddr.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from gevar.var.var_block import VarBlock


class SharedBlocks:
    """Blocks that hold the same weight, in the order they were made.

    Attributes
    ----------
    first : VarBlock
        The oldest; most weights have no other.
    """

    __slots__ = ("_others", "_rising", "first")

    def __init__(self, first: VarBlock) -> None:
        self.first = first
        self._others: dict[VarBlock, None] | None = None
        self._rising: list[VarBlock] = NO_BLOCKS  # by size: a block that is not larger than the last is never taken

    def __contains__(self, block: VarBlock) -> bool:
        return block is self.first or (self._others is not None and block in self._others)

    def __iter__(self) -> Iterator[VarBlock]:
        yield self.first
        yield from self._others or ()

    def copy_to(self, copied: "SharedBlocks") -> None:
        """Give an object with the same first block the others too."""
        if self._others is not None:
            copied._others, copied._rising = dict(self._others), list(self._rising)

    def add(self, block: VarBlock) -> None:
        """Add a block."""
        if self._others is None:
            self._others, self._rising = {}, [self.first]
        self._others[block] = None
        if block.size_bytes > self._rising[-1].size_bytes:
            self._rising.append(block)

    def remove_last(self, block: VarBlock) -> bool:
        """Take out the block that was added last; False for the only one, which stays."""
        if block is self.first or self._others is None:
            return False
        del self._others[block]
        if self._rising[-1] is block:
            self._rising.pop()
        return True

    def fitting(self, size_bytes: int) -> VarBlock | None:
        """Return the oldest block that holds this many bytes."""
        if size_bytes <= self.first.size_bytes:
            return self.first
        index = bisect_left(self._rising, size_bytes, key=lambda block: block.size_bytes)
        return self._rising[index] if index < len(self._rising) else None


NO_BLOCKS: Final[list[VarBlock]] = []
