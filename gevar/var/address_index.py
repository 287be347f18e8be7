"""From a logical address to the block it lies in.

Starts of blocks are found in a dictionary, addresses inside a block by bisection over the sorted starts. The data of
two blocks never overlaps, so at most one block holds an address; padding and guard belong to no block.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterator

from gevar.errors import AddressError
from gevar.types import LogicAddr
from gevar.var.var_block import VarBlock


class AddressIndex:
    """Blocks by logical address.

    Attributes
    ----------
    exact : callable
        Returns the block that starts at an address, None where none starts.
    end : int
        First logical address after the data of the last block; 0 while there is none.

    Thread safety: one writer at a time, under the manager's lock; `exact` and `find` may run beside it. What they find
    is right; a block that is being added may be missed, so a reader that finds nothing asks again under the lock.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, VarBlock] = {}
        self.exact: Callable[[int], VarBlock | None] = self._blocks.get
        self._starts: list[int] = []
        self.end = 0

    def __len__(self) -> int:
        return len(self._blocks)

    def __iter__(self) -> Iterator[VarBlock]:
        """Yield the blocks by rising address."""
        return (self._blocks[start] for start in self._starts)

    def copy(self) -> "AddressIndex":
        """Return an index of the same blocks."""
        copied = AddressIndex()
        copied._blocks.update(self._blocks)
        copied._starts, copied.end = list(self._starts), self.end
        return copied

    def refuse_overlap(self, block: VarBlock, *, status: int) -> None:
        """Check that a block may be added.

        Raises
        ------
        AddressError
            Its data would overlap that of another block (with the `status` given).
        """
        last_start = self._starts[-1] if self._starts else -1
        if last_start < block.logic_addr >= self.end:
            return
        other = self.overlapping(block.logic_addr, block.size_bytes)
        if other is not None:
            reason = f"{block.size_bytes} B of variable {block.key} would overlap {other.key}; use another place"
            nearest = (other.logic_addr, other.size_bytes)
            raise AddressError(block.logic_addr, reason, nearest=nearest, status=status)

    def add(self, block: VarBlock) -> None:
        """Add a block that overlaps no other."""
        if block.logic_addr >= self.end:
            self.append(block)
            return
        self._blocks[block.logic_addr] = block
        insort(self._starts, block.logic_addr)

    def extend(self, addrs: list[LogicAddr], blocks: list[VarBlock]) -> None:
        """Add blocks, at least one, by their addresses; they rise, and lie behind all that are there."""
        self._blocks.update(zip(addrs, blocks, strict=True))
        self._starts += addrs
        self.end = blocks[-1].end

    def append(self, block: VarBlock) -> None:
        """Add a block that lies behind all that are there."""
        addr = block.logic_addr
        self._blocks[addr] = block
        self._starts.append(addr)
        self.end = addr + block.desc.size

    def remove_all(self, blocks: Collection[VarBlock]) -> None:
        """Take blocks out again."""
        gone = {block.logic_addr for block in blocks}
        self._starts = [start for start in self._starts if start not in gone]
        for start in gone:
            del self._blocks[start]
        self.end = self._blocks[self._starts[-1]].end if self._starts else 0

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
