"""What memory that grows is: its settings, its blocks, its figures.

Source: GE source, runtime/v1/graph/manager, ExpandableActiveMemoryAllocator.
"""

import logging
import threading
from dataclasses import replace

from acl_shim import Device
from gevar.align import GIANT_PAGE_BYTES, HUGE_PAGE_BYTES
from gevar.errors import StateError
from gevar.memory.expandable_range import NEEDED_CALLS, ExpandableFigures, SharedPagePools
from gevar.memory.expandable_sleep import Sleep
from gevar.memory.free_runs import FreeRuns
from gevar.memory.huge_page_policy import HugePageMode, PageDecisions, PageSource
from gevar.memory.memory_resource import MemoryStatistics, StatisticsCounter, checked_size
from gevar.memory.page_table import PageTable
from gevar.types import DevAddr, DeviceId

_log = logging.getLogger("gevar.memory")


class ExpandableState:
    """The part of `ExpandableActiveMemoryAllocator` that says what there is."""

    def __init__(
        self,
        device: Device,
        page_bytes: int = HUGE_PAGE_BYTES,
        *,
        mode: HugePageMode = HugePageMode.NONE,
        max_bytes: int | None = None,
        shared_pools: SharedPagePools | None = None,
        p2p: bool = False,
        is_checked: bool | None = None,
    ) -> None:
        if (page_bytes == GIANT_PAGE_BYTES) != (mode is not HugePageMode.NONE) or page_bytes % HUGE_PAGE_BYTES:
            raise ValueError(
                f"page_bytes is {page_bytes} in mode {mode.name}: give 1 GiB with ONLY and FIRST, else MiB"
            )
        self.page_bytes = page_bytes
        self.mode = mode
        self.max_bytes = None if max_bytes is None else checked_size(max_bytes)
        self._device = device
        self._shared_pools = shared_pools
        self._p2p = p2p
        self._is_checked = _log.isEnabledFor(logging.DEBUG) if is_checked is None else is_checked
        self._reuse = True
        self._share_phy_allocator = shared_pools is not None
        self._refused = False
        self._lock = threading.RLock()
        self._counter = StatisticsCounter()
        self._decisions = PageDecisions()
        self._table: PageTable | None = None
        self._sources: list[PageSource] = []  # of ranges that are gone
        self._forget()

    def _forget(self) -> None:
        """Be without memory."""
        self._table = None
        self._limit = self._used = self._use_count = 0
        self._holes = FreeRuns()
        self._blocks: dict[int, tuple[int, str]] = {}  # offset -> (size, tag)
        self._fixed: dict[int, tuple[int, str]] = {}  # the same for growth of the fixed-base form
        self._sleep: Sleep | None = None

    @property
    def device_id(self) -> DeviceId:
        """Device of the memory."""
        return DeviceId(self._device.id)

    @property
    def device(self) -> Device:
        """The device as an object."""
        return self._device

    def is_support_expandable_memory(self) -> bool:
        """Tell whether the device can do it: the runtime has the functions, and has not answered that it lacks them."""
        return not self._refused and all(map(self._device.runtime.supports, NEEDED_CALLS))

    def set_reuse(self, reuse: bool) -> None:
        """Say whether pages that another owner gave back may be used; holds from the next range on."""
        self._reuse = reuse

    def set_share_phy_allocator(self, share_phy_allocator: bool) -> None:
        """Say whether pages come from shared pools, which must have been given; holds from the next range on."""
        self._share_phy_allocator = share_phy_allocator and self._shared_pools is not None

    def blocks(self) -> list[tuple[DevAddr, int, str]]:
        """Return first address, size in bytes and tag of every block, by address."""
        with self._lock:
            base = 0 if self._table is None else self._table.page_range.addr
            entries = sorted((*self._blocks.items(), *self._fixed.items()))
            return [(DevAddr(base + offset), size, tag) for offset, (size, tag) in entries]

    @property
    def statistics(self) -> MemoryStatistics:
        """Blocks that were handed out."""
        with self._lock:
            return self._counter.statistics()

    @property
    def figures(self) -> ExpandableFigures:
        """What the allocator has and holds."""
        with self._lock:
            table, sleep, holes = self._table, self._sleep, self._holes
            return ExpandableFigures(
                memory=self._counter.statistics(),
                page_bytes=self.page_bytes,
                reserved_bytes=self._limit,
                used_bytes=self._used,
                hole_bytes=holes.total_bytes,
                largest_hole_bytes=holes.largest_bytes,
                physical_bytes=0 if table is None else table.physical_bytes,
                saved_bytes=0 if sleep is None else sleep.saved_bytes,
                is_asleep=sleep is not None,
                decisions=replace(self._decisions),
            )

    def _asleep_error(self) -> StateError:
        return StateError(f"memory that grows on device {self._device.id} sleeps: call wake first")
