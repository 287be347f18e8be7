"""A memory manager whose blocks come from resources that were given, so that adaptors hold for variables too."""

from collections.abc import Mapping

from acl_shim.host_memory import HostBuffer
from gevar.memory.memory_manager import MemoryManager
from gevar.memory.memory_resource import MemoryResource
from gevar.types import DevAddr, DeviceId, MemType


class AdaptedMemoryManager:
    """Take blocks of some kinds and devices from resources, all else from another manager; implements `MemoryManager`.

    Parameters
    ----------
    manager
        The other manager; it makes the copies too.
    resources
        Resource for each kind of memory and device. They usually end in plain memory of `manager`.

    Raises
    ------
    ValueError
        A resource belongs to another device than it is given for.

    Thread safety: all methods, from any thread.

    Examples
    --------
    >>> from acl_shim import open_runtime
    >>> from gevar.memory import DeviceMemoryManager, LimitingResourceAdaptor
    >>> hbm, device = MemType.RT_MEMORY_HBM, DeviceId(0)
    >>> with DeviceMemoryManager(open_runtime("host")) as manager:
    ...     limited = LimitingResourceAdaptor(manager.resource(hbm, device), 1 << 20)
    ...     adapted = AdaptedMemoryManager(manager, {(hbm, device): limited})
    ...     addr = adapted.malloc_memory(hbm, "weights", 4096, device)
    ...     limited.statistics.current_bytes
    4096
    """

    def __init__(self, manager: MemoryManager, resources: Mapping[tuple[MemType, DeviceId], MemoryResource]) -> None:
        for (mem_type, device_id), resource in resources.items():
            if resource.device_id != device_id:
                raise ValueError(
                    f"the resource for {mem_type.name} of device {device_id} belongs to device {resource.device_id}:"
                    " give each device its own"
                )
        self._manager = manager
        self._resources = dict(resources)

    def malloc_memory(self, mem_type: MemType, purpose: str, size_bytes: int, device_id: DeviceId) -> DevAddr:
        """Allocate a block; see `MemoryManager.malloc_memory`. The purpose is its tag."""
        resource = self._resources.get((mem_type, device_id))
        if resource is None:
            return self._manager.malloc_memory(mem_type, purpose, size_bytes, device_id)
        return resource.allocate(size_bytes, purpose)

    def free_memory(self, mem_type: MemType, dev_addr: DevAddr, device_id: DeviceId) -> None:
        """Free a block; see `MemoryManager.free_memory`."""
        resource = self._resources.get((mem_type, device_id))
        if resource is None:
            self._manager.free_memory(mem_type, dev_addr, device_id)
        else:
            resource.free(dev_addr)

    def get_rdma_pool_memory(self, mem_type: MemType, size_bytes: int, device_id: DeviceId) -> DevAddr:
        """Return registered memory; see `MemoryManager.get_rdma_pool_memory`."""
        return self._manager.get_rdma_pool_memory(mem_type, size_bytes, device_id)

    def get_host_pool_memory(self, mem_type: MemType, size_bytes: int) -> int:
        """Return zeroed host memory; see `MemoryManager.get_host_pool_memory`."""
        return self._manager.get_host_pool_memory(mem_type, size_bytes)

    def memcpy_in(self, dev_addr: DevAddr, max_bytes: int, data: HostBuffer, device_id: DeviceId) -> None:
        """Copy host bytes to a device address; see `MemoryManager.memcpy_in`."""
        self._manager.memcpy_in(dev_addr, max_bytes, data, device_id)

    def memcpy_out(self, data: HostBuffer, dev_addr: DevAddr, device_id: DeviceId) -> None:
        """Copy bytes from a device address; see `MemoryManager.memcpy_out`."""
        self._manager.memcpy_out(data, dev_addr, device_id)
