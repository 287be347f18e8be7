"""Pools over the blocks of a memory manager: registered memory, cached blocks, host memory.

Source: GE source, runtime/v1/graph/manager, MemManager.
"""

import threading
from operator import index

from gevar.errors import StateError
from gevar.memory.caching_allocator import CachingAllocator
from gevar.memory.host_mem_allocator import HostMemAllocator
from gevar.memory.memory_allocator import MemoryAllocator
from gevar.memory.memory_manager import MemoryManager
from gevar.memory.memory_resource import MemoryResource
from gevar.memory.rdma_pool_allocator import RdmaPoolAllocator
from gevar.types import DevAddr, DeviceId, MemType


class MemoryPools:
    """Hold the pools of one memory manager.

    Parameters
    ----------
    manager
        The manager.

    Attributes
    ----------
    host : HostMemAllocator
        Host memory.

    Thread safety: all methods, from any thread.
    """

    def __init__(self, manager: MemoryManager) -> None:
        self.host = HostMemAllocator()
        self._manager = manager
        self._lock = threading.Lock()
        self._rdma: dict[tuple[MemType, DeviceId], RdmaPoolAllocator] = {}
        self._caching: dict[tuple[MemType, DeviceId], CachingAllocator] = {}

    def _upstream(self, mem_type: MemType, device_id: DeviceId) -> MemoryResource:
        return MemoryAllocator(self._manager, mem_type, device_id)

    def init_rdma_pool(
        self, size_bytes: int, device_id: DeviceId, mem_type: MemType = MemType.RT_MEMORY_HBM
    ) -> RdmaPoolAllocator:
        """Make the pool of registered memory of a device.

        Parameters
        ----------
        size_bytes
            Its size in bytes.
        device_id
            Its device.
        mem_type
            Kind of memory that it is made of, under which it is kept.

        Raises
        ------
        StateError
            There is one (status GE_MULTI_INIT).
        ValueError, SizeOverflowError
            The size is below 1 or leaves 63 bits, or the kind of memory is not on a device.
        AclError, OutOfMemoryError
            There is no memory. No pool is made.
        """
        upstream = self._upstream(mem_type, device_id)
        with self._lock:
            pool = self._rdma.setdefault((mem_type, device_id), RdmaPoolAllocator(upstream))
        pool.init_memory(size_bytes)  # without the lock: it may have to free what is cached
        return pool

    def rdma_pool(self, mem_type: MemType, device_id: DeviceId) -> RdmaPoolAllocator:
        """Return the pool of registered memory of a device.

        Raises
        ------
        StateError
            There is none.
        """
        pool = self._rdma.get((mem_type, device_id))
        if pool is None or not pool.has_memory:
            kind = MemType(mem_type).name
            raise StateError(f"device {device_id} has no pool of registered {kind}: make one with pools.init_rdma_pool")
        return pool

    def get_rdma_pool_memory(self, mem_type: MemType, size_bytes: int, device_id: DeviceId) -> DevAddr:
        """Return registered memory; a size of 0 counts as 1."""
        size = index(size_bytes)
        return self.rdma_pool(mem_type, device_id).allocate(size or 1, "variables in registered memory")

    def caching_allocator(self, mem_type: MemType, device_id: DeviceId) -> CachingAllocator:
        """Return the cache of a kind of memory on a device; it is made at the first question."""
        with self._lock:
            cache = self._caching.get((mem_type, device_id))
            if cache is None:
                cache = self._caching[mem_type, device_id] = CachingAllocator(self._upstream(mem_type, device_id))
            return cache

    def free_cached_blocks(self, device_id: DeviceId) -> int:
        """Give back what the caches of a device keep unused, and return how many bytes that were.

        A cache that another thread is using is passed over.

        Raises
        ------
        AclError
            The runtime refuses a block.
        """
        with self._lock:
            caches = [cache for (_, owner), cache in self._caching.items() if owner == device_id]
        return sum(cache.try_free_cached_blocks() for cache in caches)

    def forget(self) -> None:
        """Drop all pools, whose blocks the manager frees."""
        with self._lock:
            self._rdma, self._caching = {}, {}
        self.host.close()
