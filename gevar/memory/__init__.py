"""Device memory under the variables: plain, growing, pooled; what is asked of it, and what it says when it is short."""

from gevar.memory.adapted_memory_manager import AdaptedMemoryManager
from gevar.memory.caching_allocator import CachingAllocator
from gevar.memory.device_memory_manager import DeviceMemoryManager, MemoryBlock, MemoryCounts
from gevar.memory.expandable_active_memory_allocator import ExpandableActiveMemoryAllocator
from gevar.memory.expandable_memory_allocator import ExpandableMemoryAllocator
from gevar.memory.expandable_range import ExpandableFigures, SharedPagePools
from gevar.memory.expandable_sleep import KeepContents
from gevar.memory.host_mem_allocator import HostMemAllocator
from gevar.memory.host_mem_manager import HostMemManager, SharedMemInfo
from gevar.memory.huge_page_policy import HugePageMode, PageDecisions
from gevar.memory.logging_adaptor import LoggingResourceAdaptor, Replay, replay_log
from gevar.memory.memory_allocator import MemoryAllocator
from gevar.memory.memory_manager import MemoryManager
from gevar.memory.memory_resource import HOST_DEVICE_ID, MemoryResource, MemoryStatistics
from gevar.memory.memory_shortage import Holder, MemoryReport, MemoryShortageError, PageClassFigures
from gevar.memory.physical_page_pool import PagePoolStatistics, PhysicalPagePool
from gevar.memory.pinned_staging_pool import PinnedStagingPool
from gevar.memory.rdma_pool_allocator import RdmaPoolAllocator
from gevar.memory.resource_adaptor import (
    FailureCallbackResourceAdaptor,
    LimitingResourceAdaptor,
    StatisticsResourceAdaptor,
)
from gevar.memory.session_mem_allocator import SessionMemAllocator
from gevar.memory.tracking_adaptor import TrackedBlock, TrackingResourceAdaptor

__all__ = [
    "HOST_DEVICE_ID",
    "AdaptedMemoryManager",
    "CachingAllocator",
    "DeviceMemoryManager",
    "ExpandableActiveMemoryAllocator",
    "ExpandableFigures",
    "ExpandableMemoryAllocator",
    "FailureCallbackResourceAdaptor",
    "Holder",
    "HostMemAllocator",
    "HostMemManager",
    "HugePageMode",
    "KeepContents",
    "LimitingResourceAdaptor",
    "LoggingResourceAdaptor",
    "MemoryAllocator",
    "MemoryBlock",
    "MemoryCounts",
    "MemoryManager",
    "MemoryReport",
    "MemoryResource",
    "MemoryShortageError",
    "MemoryStatistics",
    "PageClassFigures",
    "PageDecisions",
    "PagePoolStatistics",
    "PhysicalPagePool",
    "PinnedStagingPool",
    "RdmaPoolAllocator",
    "Replay",
    "SessionMemAllocator",
    "SharedMemInfo",
    "SharedPagePools",
    "StatisticsResourceAdaptor",
    "TrackedBlock",
    "TrackingResourceAdaptor",
    "replay_log",
]
