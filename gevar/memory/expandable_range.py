"""The range of memory that grows: how large it is, what is reserved and what its pages are."""

import threading
from dataclasses import dataclass
from typing import Final

from acl_shim import Device
from acl_shim.codes import AclErrorCode, MemAttr
from acl_shim.errors import Shortage
from gevar.align import HUGE_PAGE_BYTES, align_up
from gevar.errors import AclError, OutOfMemoryError
from gevar.memory.huge_page_policy import HugePageMode, PageDecisions, PageSource
from gevar.memory.memory_resource import MemoryStatistics
from gevar.memory.physical_page_pool import PhysicalPagePool

NEEDED_CALLS: Final = (
    "aclrtReserveMemAddress",
    "aclrtReleaseMemAddress",
    "aclrtMallocPhysical",
    "aclrtFreePhysical",
    "aclrtMapMem",
    "aclrtUnmapMem",
)
"""Functions of the runtime without which there is no memory that grows."""


@dataclass(frozen=True, slots=True)
class ExpandableFigures:
    """What memory that grows has and holds, in bytes unless said otherwise.

    Attributes
    ----------
    memory : MemoryStatistics
        Blocks that are out.
    page_bytes : int
        Page size.
    reserved_bytes : int
        Size of the range; 0 while there is none.
    used_bytes : int
        Part of the range up to the end of the last block.
    hole_bytes, largest_hole_bytes : int
        Freed places before that end, and the largest of them.
    physical_bytes : int
        Pages that are there.
    saved_bytes : int
        Bytes that wait in host memory while it sleeps.
    is_asleep : bool
        Whether it sleeps.
    decisions : PageDecisions
        How pages were chosen, since the allocator was made.
    """

    memory: MemoryStatistics
    page_bytes: int
    reserved_bytes: int
    used_bytes: int
    hole_bytes: int
    largest_hole_bytes: int
    physical_bytes: int
    saved_bytes: int
    is_asleep: bool
    decisions: PageDecisions


class SharedPagePools:
    """Pools of pages that the ranges of several owners share: one per device, page size and reach.

    Thread safety: all methods, from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pools: dict[tuple[int, int, bool], PhysicalPagePool] = {}

    def pool(self, device: Device, page_bytes: int, *, p2p: bool = False) -> PhysicalPagePool:
        """Return the pool of a device, page size and reach; it is made at the first question."""
        with self._lock:
            pool = self._pools.get((device.id, page_bytes, p2p))
            if pool is None:
                pool = PhysicalPagePool(device, page_bytes, p2p=p2p, is_shared=True)
                self._pools[device.id, page_bytes, p2p] = pool
            return pool


def open_source(
    device: Device,
    page_bytes: int,
    mode: HugePageMode,
    shared: SharedPagePools | None,
    decisions: PageDecisions,
    *,
    p2p: bool = False,
) -> PageSource:
    """Return a source of pages for one range; `close_source` ends it.

    Parameters
    ----------
    device
        Their device.
    page_bytes
        Page size.
    mode
        With FIRST, pages of 2 MiB serve where one of 1 GiB is refused.
    shared
        Pools to take pages from; None for pools of the range alone.
    decisions
        Where choices are counted.
    p2p
        Whether other devices reach the pages.
    """

    def pool(size_bytes: int) -> PhysicalPagePool:
        make = PhysicalPagePool if shared is None else shared.pool
        made = make(device, size_bytes, p2p=p2p)
        made.initialize()
        return made

    return PageSource(pool(page_bytes), pool(HUGE_PAGE_BYTES) if mode is HugePageMode.FIRST else None, decisions)


def close_source(source: PageSource) -> None:
    """Use the pools of a source no more.

    Raises
    ------
    AclError
        The device does not take a page back that waited. It waits still; the next call goes on there.
    """
    while source.open_pools:
        source.open_pools[-1].finalize()
        source.open_pools.pop()


def range_bytes(device: Device, page_bytes: int, mode: HugePageMode, max_bytes: int | None) -> int:
    """Return the size of a range in whole pages.

    Parameters
    ----------
    device, page_bytes, mode
        As `open_source`.
    max_bytes
        Bytes that will be asked for at most; None for the memory of the device in the pages of the mode, at least one.

    Raises
    ------
    AclError
        The runtime does not tell.

    Source: GE source, runtime/v1/graph/manager, ExpandableActiveMemoryAllocator; there the range is as large as the
    device, in plain pages.
    """
    if max_bytes is not None:
        return align_up(max_bytes, page_bytes)
    total = 0
    if mode is not HugePageMode.ONLY:
        total = device.mem_info(MemAttr.ACL_HBM_MEM).total_bytes or device.mem_info(MemAttr.ACL_DDR_MEM).total_bytes
    if mode is not HugePageMode.NONE:
        try:
            total += device.mem_info(MemAttr.ACL_HBM_MEM_HUGE1G).total_bytes
        except AclError as error:
            if error.code != AclErrorCode.ACL_ERROR_RT_FEATURE_NOT_SUPPORT:
                raise
    return align_up(max(total, page_bytes), page_bytes)


def range_error(device_id: int, size_bytes: int, room_bytes: int, limit_bytes: int) -> OutOfMemoryError:
    """Return the error for a block that the range has no place for."""
    code = AclErrorCode.ACL_ERROR_RT_MEMORY_ALLOCATION
    shortage = Shortage(size_bytes, room_bytes, limit_bytes, device_id, "addresses of the reserved range")
    return OutOfMemoryError(code, "malloc_memory", {"size_bytes": size_bytes}, shortage=shortage)
