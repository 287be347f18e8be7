"""Logical space of one kind of memory: where the next variable goes, and how much is taken.

Source: GE source, base/graph/manager/graph_var_manager.cc, MemResource and HbmMemResource.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from gevar.align import INT64_MAX, SESSION_MEM_ALIGN_BYTES, var_block_bytes
from gevar.errors import SizeOverflowError
from gevar.status import INTERNAL_ERROR
from gevar.types import LogicAddr, MemType
from gevar.var.logic_space import LogicSpace
from gevar.var.memory_config import MemoryConfig


@dataclass(slots=True)
class Placement:
    """A place for a variable that is not taken yet.

    Attributes
    ----------
    logic_addr : LogicAddr
        First address.
    offset : int
        What GE keeps as the variable's offset: the distance from the logic base, for memory of another kind the
        address.
    block_bytes : int
        Bytes that the variable takes, guard included.
    """

    logic_addr: LogicAddr
    offset: int
    block_bytes: int


class MemFigures(NamedTuple):
    """What one kind of memory has assigned.

    Attributes
    ----------
    var_mem_size : int
        Bytes assigned so far, guards and place holders included.
    const_place_holder_mem_size : int
        Bytes of these that place holders take.
    next_offset : int
        Distance from the logic base at which the next variable is looked for a place; 0 for memory of a pool.
    """

    var_mem_size: int = 0
    const_place_holder_mem_size: int = 0
    next_offset: int = 0

    @property
    def own_bytes(self) -> int:
        """Bytes assigned to variables, guards included and place holders not."""
        return self.var_mem_size - self.const_place_holder_mem_size

    def merged(self, other: "MemFigures") -> "MemFigures":
        """Return the larger one of each figure."""
        return MemFigures(
            max(self.var_mem_size, other.var_mem_size),
            max(self.const_place_holder_mem_size, other.const_place_holder_mem_size),
            max(self.next_offset, other.next_offset),
        )


class MemResource(ABC):
    """Where the next variable of one kind of memory goes.

    A variable is placed in two steps: `place` finds room and changes nothing, `take` counts it and cannot fail.

    Attributes
    ----------
    var_mem_size, const_place_holder_mem_size, next_offset : int
        What is assigned, as in `MemFigures`.

    Thread safety: none of its own; used under the manager's lock.
    """

    def __init__(self) -> None:
        self.var_mem_size = 0
        self.const_place_holder_mem_size = 0
        self.next_offset = 0

    @property
    def figures(self) -> MemFigures:
        """What is assigned, as one value."""
        return MemFigures(self.var_mem_size, self.const_place_holder_mem_size, self.next_offset)

    @figures.setter
    def figures(self, figures: MemFigures) -> None:
        self.var_mem_size, self.const_place_holder_mem_size, self.next_offset = figures

    @abstractmethod
    def place(self, size_bytes: int, config: MemoryConfig) -> Placement:
        """Find room for the data of a variable."""

    def take(self, placement: Placement, *, is_place_holder: bool) -> None:
        """Count a place that `place` has just found as assigned."""
        self.var_mem_size += placement.block_bytes
        if is_place_holder:
            self.const_place_holder_mem_size += placement.block_bytes
        self.next_offset = self._next_offset(placement)

    def _next_offset(self, placement: Placement) -> int:  # noqa: ARG002
        return 0


class HbmMemResource(MemResource):
    """Logical space in device memory: blocks one after the other from the logic base on.

    A block takes the data in units of 512 bytes and 1024 bytes of guard behind it. Restored variables keep the place
    their model gave them; blocks that are placed later step over it.

    Parameters
    ----------
    space
        Ranges of logical space that are taken, by whomever.

    Source: GE source, base/graph/manager/graph_var_manager.cc, HbmMemResource::AssignVarMem.
    Differs: edges 8, 19 and 44 of docs/differences.md.
    """

    def __init__(self, space: LogicSpace) -> None:
        super().__init__()
        self._space = space

    def place(self, size_bytes: int, config: MemoryConfig) -> Placement:
        """Find room for the data of a variable; see `MemResource.place`.

        Raises
        ------
        SizeOverflowError
            The data would pass the end of the variable memory, or the block the 63 bits of an offset (status
            INTERNAL_ERROR).
        """
        block_bytes, base = var_block_bytes(size_bytes), config.var_mem_logic_base
        start = base + self.next_offset
        addr = self._space.first_free(start, block_bytes, base=base, align_bytes=SESSION_MEM_ALIGN_BYTES)
        offset = addr - base
        if offset + size_bytes > config.var_mem_max_size:
            what, end = f"{size_bytes} B at offset {offset} of the variable memory", offset + size_bytes
            step = "use smaller sizes, or more variable memory (set_var_mem_max_size)"
            raise SizeOverflowError(what, end, config.var_mem_max_size, status=INTERNAL_ERROR, next_step=step)
        if addr + block_bytes > INT64_MAX:
            what = f"a block of {block_bytes} B at logical address {addr}"
            raise SizeOverflowError(what, addr + block_bytes, INT64_MAX, status=INTERNAL_ERROR)
        return Placement(LogicAddr(addr), offset, block_bytes)

    def _next_offset(self, placement: Placement) -> int:
        return placement.offset + placement.block_bytes


class PoolMemResource(MemResource):
    """Memory of a pool: a variable's logical address is the address of its memory.

    A place stays taken from the pool even if `take` never follows.

    Parameters
    ----------
    pool
        Function that returns the address of memory of a size in bytes.

    Source: GE source, base/graph/manager/graph_var_manager.cc, RdmaMemResource::AssignVarMem,
    HostMemResource::AssignVarMem.
    Differs: edge 7 of docs/differences.md.
    """

    def __init__(self, pool: Callable[[int], int]) -> None:
        super().__init__()
        self._pool = pool

    def place(self, size_bytes: int, config: MemoryConfig) -> Placement:  # noqa: ARG002
        """Take memory for the data of a variable from the pool; see `MemResource.place`.

        Raises
        ------
        AclError, OutOfMemoryError, StateError
            The pool has none.
        """
        addr = self._pool(size_bytes)
        return Placement(LogicAddr(addr), addr, size_bytes)

    def take(self, placement: Placement, *, is_place_holder: bool) -> None:  # noqa: ARG002
        """Count memory that `place` has just taken; place holders are not counted apart in a pool."""
        super().take(placement, is_place_holder=False)


POOL_MEM_TYPES: Final = frozenset({MemType.RT_MEMORY_RDMA_HBM, MemType.RT_MEMORY_HOST})
"""Kinds of memory in which a variable lies in a pool, at its logical address."""


def build_mem_resource(mem_type: MemType, space: LogicSpace, pool: Callable[[MemType, int], int]) -> MemResource:
    """Make the resource of one kind of memory.

    Parameters
    ----------
    mem_type
        Kind of memory.
    space
        Ranges of logical space that are taken.
    pool
        Function that returns the address of memory from the pool of a kind, of a size in bytes.

    Raises
    ------
    ValueError
        Variables cannot be assigned in this kind of memory.

    Source: GE source, base/graph/manager/graph_var_manager.cc, MemResource::BuildMemResourceFromType.
    """
    if mem_type == MemType.RT_MEMORY_HBM:
        return HbmMemResource(space)
    if mem_type in POOL_MEM_TYPES:
        return PoolMemResource(lambda size_bytes: pool(mem_type, size_bytes))
    known = "RT_MEMORY_HBM, RT_MEMORY_RDMA_HBM or RT_MEMORY_HOST"
    raise ValueError(f"variables cannot be assigned in memory type {mem_type!r}; use {known}")
