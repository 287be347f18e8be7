"""From a logical address to the block it lies in.

Starts of blocks are found in a dictionary, addresses inside a block by bisection over the sorted starts. The data of
two blocks never overlaps, so at most one block holds an address; padding and guard belong to no block.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterator

from gevar.errors import AddressError
from gevar.types import LogicAddr
from gevar.var.var_block import VarBlock


class AddressIndex:
    """Blocks by logical address.

    Thread safety: one writer at a time, under the manager's lock; `exact` and `find` may run beside it. What they find
    is right; a block that is being added may be missed, so a reader that finds nothing asks again under the lock.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, VarBlock] = {}
        self._starts: list[int] = []

    def __len__(self) -> int:
        return len(self._blocks)

    def __iter__(self) -> Iterator[VarBlock]:
        """Yield the blocks by rising address."""
        return (self._blocks[start] for start in self._starts)

    def refuse_overlap(self, block: VarBlock, *, status: int) -> None:
        """Check that a block may be added.

        Raises
        ------
        AddressError
            Its data would overlap that of another block (with the `status` given).
        """
        last = self._blocks[self._starts[-1]] if self._starts else None
        if last is None or last.logic_addr < block.logic_addr >= last.end:
            return
        other = self.overlapping(block.logic_addr, block.size_bytes)
        if other is not None:
            reason = f"{block.size_bytes} B of variable {block.key} would overlap {other.key}; use another place"
            nearest = (other.logic_addr, other.size_bytes)
            raise AddressError(block.logic_addr, reason, nearest=nearest, status=status)

    def add(self, block: VarBlock) -> None:
        """Add a block that overlaps no other."""
        self._blocks[block.logic_addr] = block
        insort(self._starts, block.logic_addr)

    def remove_all(self, blocks: Collection[VarBlock]) -> None:
        """Take blocks out again."""
        gone = {block.logic_addr for block in blocks}
        self._starts = [start for start in self._starts if start not in gone]
        for start in gone:
            del self._blocks[start]

    def exact(self, logic_addr: int) -> VarBlock | None:
        """Return the block that starts at an address."""
        return self._blocks.get(logic_addr)

    def find(self, logic_addr: int) -> VarBlock | None:
        """Return the block that holds an address: that starts there, or whose data goes on there."""
        block = self._blocks.get(logic_addr)
        if block is not None:
            return block
        before = self._before(logic_addr)
        return before if before is not None and before.logic_addr < logic_addr < before.end else None

    def overlapping(self, logic_addr: int, size_bytes: int) -> VarBlock | None:
        """Return a block that shares an address or its start with a range."""
        found = self.find(logic_addr)
        if found is not None:
            return found
        index = bisect_left(self._starts, logic_addr)
        if index < len(self._starts) and self._starts[index] < logic_addr + size_bytes:
            return self._blocks[self._starts[index]]
        return None

    def nearest(self, logic_addr: int) -> tuple[LogicAddr, int] | None:
        """Return start and size in bytes of the last block before an address, else of the first one."""
        block = self._before(logic_addr) or next(iter(self), None)
        return None if block is None else (block.logic_addr, block.size_bytes)

    def _before(self, logic_addr: int) -> VarBlock | None:
        """The block with the highest start that is not above an address."""
        starts = self._starts
        index = bisect_right(starts, logic_addr)
        return self._blocks.get(starts[index - 1]) if index else None
