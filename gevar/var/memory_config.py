"""Sizes and base of a session's memory, as one value that is replaced as a whole.

GE keeps four fields and changes them one after the other, so a failing set-up leaves them half changed. Here every
change makes a new `MemoryConfig`, or raises and leaves the old one.
"""

from dataclasses import dataclass, replace
from typing import Final

from gevar.align import GIB, UINT64_MAX, checked_add
from gevar.errors import SizeOverflowError
from gevar.status import GE_GRAPH_OPTIONS_INVALID

GRAPH_MEMORY_MALLOC_MAX_BYTES: Final = 26 * GIB
"""Graph memory before sizes are set (GE: kGraphMemoryManagerMallocMaxSize)."""

MEMORY_VAR_MALLOC_BYTES: Final = 5 * GIB
"""Variable memory before sizes are set (GE: kMemoryVarManagerMallocSize)."""

USE_MAX_MEMORY_BYTES: Final = 31 * GIB
"""Usable memory before sizes are set (GE: kUseMaxMemorySize)."""

MEMORY_VAR_LOGIC_BASE: Final = 32 * GIB
"""Logic base before sizes are set (GE: kMemoryVarLogicBase)."""

VAR_MEMORY_LOGIC_BASE: Final = 128 * GIB
"""Logic base once sizes are set (GE: kVarMemoryLogicBase)."""

MAX_MEMORY_BYTES: Final = 256 * GIB
"""Ceiling of the usable memory where the caller names none (GE: kMaxMemorySize)."""

_GRAPH_MEMORY_BUFFER_BYTES: Final = 32 * GIB  # GE: kGraphMemoryBuffer, used in an overflow check only
_GRAPH_MEM_RATIO: Final = 26 / 32
_VAR_MEM_RATIO: Final = 5 / 32


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """Sizes in bytes, and where logical addresses of variables start.

    Attributes
    ----------
    graph_mem_max_size, var_mem_max_size, use_max_mem_size : int
        Bytes for feature maps, for variables, and for both.
    var_mem_logic_base : int
        Logical address of the first variable in device memory.

    Source: GE source, base/graph/manager/graph_var_manager.h, VarManager.
    """

    graph_mem_max_size: int = GRAPH_MEMORY_MALLOC_MAX_BYTES
    var_mem_max_size: int = MEMORY_VAR_MALLOC_BYTES
    use_max_mem_size: int = USE_MAX_MEMORY_BYTES
    var_mem_logic_base: int = MEMORY_VAR_LOGIC_BASE

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if not 0 <= value <= UINT64_MAX:
                raise ValueError(f"{name} is {value}, outside 0..{UINT64_MAX}: give an unsigned 64-bit number")

    def with_all_memory_max_value(self, ceiling_bytes: int = MAX_MEMORY_BYTES) -> "MemoryConfig":
        """Return the configuration once graph and variable sizes are settled: usable size is their sum, base 128 GiB.

        Parameters
        ----------
        ceiling_bytes
            Largest usable size that is accepted.

        Raises
        ------
        SizeOverflowError
            The sum is above the ceiling (status GE_GRAPH_OPTIONS_INVALID) or leaves 64 bits (status INTERNAL_ERROR).

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::SetAllMemoryMaxValue.
        Differs: edge 23 of docs/differences.md.
        """
        checked_add(self.graph_mem_max_size, _GRAPH_MEMORY_BUFFER_BYTES)
        usable = checked_add(self.graph_mem_max_size, self.var_mem_max_size)
        if usable > ceiling_bytes:
            what = f"graph memory of {self.graph_mem_max_size} B + variable memory of {self.var_mem_max_size} B"
            raise SizeOverflowError(what, usable, ceiling_bytes, status=GE_GRAPH_OPTIONS_INVALID)
        return replace(self, use_max_mem_size=usable, var_mem_logic_base=VAR_MEMORY_LOGIC_BASE)

    def with_total_memory(self, total_bytes: int, ceiling_bytes: int = MAX_MEMORY_BYTES) -> "MemoryConfig":
        """Return the configuration of a device with this much memory: 26/32 for graphs, 5/32 for variables.

        Parameters
        ----------
        total_bytes
            Memory of the device.
        ceiling_bytes
            Largest usable size that is accepted.

        Raises
        ------
        SizeOverflowError
            As `with_all_memory_max_value`.
        ValueError
            `total_bytes` is negative.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::SetMemoryMallocSize. The products go
        through double there, and here.
        """
        graph, variables = int(total_bytes * _GRAPH_MEM_RATIO), int(total_bytes * _VAR_MEM_RATIO)
        sized = replace(self, graph_mem_max_size=graph, var_mem_max_size=variables)
        return sized.with_all_memory_max_value(ceiling_bytes)
