"""Plain memory of one kind on one device, as a resource.

Source: GE source, runtime/v1/graph/manager, MemoryAllocator.
"""

import threading

from gevar.memory.memory_manager import MemoryManager
from gevar.memory.memory_resource import (
    MemoryStatistics,
    StatisticsCounter,
    checked_size,
    state_error,
    unknown_block,
)
from gevar.status import INTERNAL_ERROR
from gevar.types import DevAddr, DeviceId, MemType


class MemoryAllocator:
    """Blocks that a memory manager allocates from the runtime one by one; implements `MemoryResource`.

    Blocks by key, as GE has them beside those by address, are counted: the second request for a key gets the first
    one's block.

    Parameters
    ----------
    manager
        The manager.
    mem_type
        Kind of memory.
    device_id
        The device.

    Thread safety: all methods, from any thread; the manager is called without a lock, but for blocks by key.
    Source: as the module.
    """

    def __init__(self, manager: MemoryManager, mem_type: MemType, device_id: DeviceId) -> None:
        self._manager = manager
        self._mem_type = mem_type
        self._device_id = device_id
        self._lock = threading.RLock()
        self._counter = StatisticsCounter()
        self._sizes: dict[DevAddr, int] = {}
        self._keys: dict[str, tuple[DevAddr, int]] = {}

    @property
    def device_id(self) -> DeviceId:
        """Device of the blocks."""
        return self._device_id

    @property
    def statistics(self) -> MemoryStatistics:
        """Blocks that were handed out."""
        with self._lock:
            return self._counter.statistics()

    def allocate(self, size_bytes: int, tag: str = "") -> DevAddr:
        """Return a block; see `MemoryResource.allocate`."""
        size = checked_size(size_bytes)
        dev_addr = self._manager.malloc_memory(self._mem_type, tag, size, self._device_id)
        with self._lock:
            self._sizes[dev_addr] = size
            self._counter.add(size)
        return dev_addr

    def free(self, dev_addr: DevAddr) -> None:
        """Take a block back; see `MemoryResource.free`."""
        with self._lock:
            size = self._sizes.pop(dev_addr, None)
        if size is None:
            raise unknown_block(f"{self._mem_type.name} of device {self._device_id}", dev_addr)
        try:
            self._manager.free_memory(self._mem_type, dev_addr, self._device_id)
        except BaseException:
            with self._lock:
                self._sizes[dev_addr] = size
            raise
        with self._lock:
            self._counter.remove(size)

    def allocate_key(self, key: str, size_bytes: int, tag: str = "") -> DevAddr:
        """Return the block of a key; allocate it at the first request, later ones only count.

        Parameters
        ----------
        key
            Name of the block.
        size_bytes
            Size in bytes of the first request; a later one may ask for less.
        tag
            What it is for.

        Raises
        ------
        ValueError
            A later request asks for more than the block has.
        AclError, OutOfMemoryError, StateError
            As `allocate`.

        Differs: GE does not look at the size of a later request.
        """
        size = checked_size(size_bytes)
        with self._lock:
            known = self._keys.get(key)
            if known is None:
                dev_addr, count = self.allocate(size, tag or key), 0
            else:
                dev_addr, count = known
                if size > self._sizes[dev_addr]:
                    raise ValueError(f"block {key!r} has {self._sizes[dev_addr]} B: ask for no more, not for {size} B")
            self._keys[key] = dev_addr, count + 1
            return dev_addr

    def free_key(self, key: str) -> None:
        """Take one request for a key back; the block is freed with the last.

        Raises
        ------
        StateError
            There is no such key (status INTERNAL_ERROR).
        AclError
            The runtime refuses; the request counts still.
        """
        with self._lock:
            known = self._keys.get(key)
            if known is None:
                raise state_error(
                    f"device {self._device_id} has no block {key!r}: free it once a request", INTERNAL_ERROR
                )
            dev_addr, count = known
            if count > 1:
                self._keys[key] = dev_addr, count - 1
            else:
                self.free(dev_addr)
                del self._keys[key]
