"""Bytes of variable memory that each graph took, and that it found already there."""

import threading
from dataclasses import dataclass, field

from gevar.types import DeviceId, LogicAddr


@dataclass(frozen=True, slots=True)
class GraphVarMemStatistic:
    """What one graph asked of variable memory.

    Attributes
    ----------
    alloc_size : int
        Bytes that were allocated because this graph asked first, guards included.
    shared_size : int
        Bytes that were there already when it asked, guards included.

    Source: GE source, base/graph/manager/graph_var_manager.h, GraphVarMemStatistic.
    """

    alloc_size: int = 0
    shared_size: int = 0


@dataclass(slots=True)
class _Count:
    alloc_size: int = 0
    shared_size: int = 0
    seen: set[tuple[LogicAddr, DeviceId]] = field(default_factory=set)


class GraphStatistics:
    """Counts per graph name; each block of memory counts once for a graph.

    Parameters
    ----------
    lock
        The manager's lock.

    Thread safety: all methods, from any thread; a block that was counted takes no lock.
    Differs: edge 14 of docs/differences.md.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._counts: dict[str, _Count] = {}

    def count(
        self, graph_name: str, logic_addr: LogicAddr, device_id: DeviceId, size_bytes: int, *, allocated: bool
    ) -> None:
        """Count a block for a graph, unless it was counted for it; who allocated it counts also after who found it."""
        known = self._counts.get(graph_name)
        if not allocated and known is not None and (logic_addr, device_id) in known.seen:
            return
        with self._lock:
            count = self._counts.setdefault(graph_name, _Count())
            if (logic_addr, device_id) in count.seen:
                moved_bytes = size_bytes if allocated else 0
                count.alloc_size += moved_bytes
                count.shared_size -= moved_bytes
                return
            count.seen.add((logic_addr, device_id))
            if allocated:
                count.alloc_size += size_bytes
            else:
                count.shared_size += size_bytes

    def forget_blocks(self) -> None:
        """Let every block count anew, since all memory was taken away; what was counted stays."""
        with self._lock:
            for count in self._counts.values():
                count.seen = set()

    def totals(self) -> dict[str, GraphVarMemStatistic]:
        """Return what was counted, by graph name."""
        with self._lock:
            return {name: GraphVarMemStatistic(one.alloc_size, one.shared_size) for name, one in self._counts.items()}
