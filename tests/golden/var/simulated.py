"""What gevar takes memory from while a sequence is done: the simulated sources, behind gevar's protocols."""

from typing import cast

from acl_shim.errors import OutOfMemoryError
from acl_shim.host_memory import HostBuffer
from gevar.types import DevAddr, DeviceId, MemType
from tests.golden.var.sources import Sources

NO_ROOM = 207001


class SimulatedMemory:
    """A `MemoryManager` that takes everything from the sources of a sequence."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def malloc_memory(self, mem_type: MemType, purpose: str, size_bytes: int, device_id: DeviceId) -> DevAddr:
        addr = self._sources.device_malloc(int(mem_type), size_bytes, device_id)
        if addr is None:
            raise OutOfMemoryError(NO_ROOM, "device_malloc", {"size_bytes": size_bytes})
        return DevAddr(addr)

    def free_memory(self, mem_type: MemType, dev_addr: DevAddr, device_id: DeviceId) -> None:
        self._sources.device_free(int(mem_type), dev_addr, device_id)

    def get_rdma_pool_memory(self, mem_type: MemType, size_bytes: int, device_id: DeviceId) -> DevAddr:
        return DevAddr(self._sources.rdma_pool_malloc(int(mem_type), size_bytes, device_id))

    def get_host_pool_memory(self, mem_type: MemType, size_bytes: int) -> int:
        return self._sources.host_pool_malloc(int(mem_type), size_bytes)

    def memcpy_in(self, dev_addr: DevAddr, max_bytes: int, data: HostBuffer, device_id: DeviceId) -> None:
        content = memoryview(cast("bytes", data)).cast("B")
        if len(content) > max_bytes:
            raise ValueError(f"{len(content)} B do not fit {max_bytes} B")
        self._sources.write(dev_addr, bytes(content))

    def memcpy_out(self, data: HostBuffer, dev_addr: DevAddr, device_id: DeviceId) -> None:
        view = memoryview(cast("bytearray", data)).cast("B")
        view[:] = self._sources.read(dev_addr, len(view))


class SimulatedExpandable:
    """An `ExpandableMemoryAllocator` over the sources of a sequence."""

    def __init__(self, sources: Sources, supported: bool, capacity_bytes: int | None) -> None:
        self._sources = sources
        self._supported = supported
        self._capacity_bytes = capacity_bytes

    def is_support_expandable_memory(self) -> bool:
        return self._supported

    def set_reuse(self, reuse: bool) -> None:
        self._sources.note("expandable_set_reuse", value=reuse)

    def set_share_phy_allocator(self, share_phy_allocator: bool) -> None:
        self._sources.note("expandable_set_share_phy_allocator", value=share_phy_allocator)

    def malloc_memory(self, purpose: str, size_bytes: int, incremental: bool = False) -> DevAddr:
        addr = self._sources.expandable_malloc(size_bytes, incremental, self._capacity_bytes)
        if addr is None:
            raise OutOfMemoryError(NO_ROOM, "expandable_malloc", {"size_bytes": size_bytes})
        return DevAddr(addr)

    def free_memory(self) -> None:
        self._sources.note("expandable_free_all")
