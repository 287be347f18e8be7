"""Device memory straight from the runtime, with a list of what is alive.

Source: GE source, runtime/v1/graph/manager, MemoryAllocator; base/common/aclrt_malloc_helper.cc, AclrtMalloc.
"""

import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from acl_shim import Device
from acl_shim.buffer import DeviceBuffer
from acl_shim.errors import size_text
from acl_shim.host_memory import HostBuffer
from acl_shim.runtime import Runtime
from gevar.errors import AclError, OutOfMemoryError, StateError
from gevar.memory.device_blocks import GE_MODULE_ID, POLICIES, malloc_block
from gevar.memory.memory_allocator import MemoryAllocator
from gevar.memory.memory_pools import MemoryPools
from gevar.memory.memory_resource import checked_size
from gevar.memory.memory_shortage import MemoryShortageError, plain_shortage
from gevar.types import DevAddr, DeviceId, MemType


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """One live block.

    Attributes
    ----------
    device_id : DeviceId
        Device that owns it.
    dev_addr : DevAddr
        First address.
    size_bytes : int
        Size in bytes, as asked for.
    mem_type : MemType
        Kind of memory.
    purpose : str
        What it is for.
    """

    device_id: DeviceId
    dev_addr: DevAddr
    size_bytes: int
    mem_type: MemType
    purpose: str


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """What a manager did so far, and what is alive.

    Attributes
    ----------
    mallocs, frees : int
        Calls that succeeded.
    live_blocks, live_bytes : int
        Blocks that are alive, and their sizes in bytes, as asked for.
    """

    mallocs: int
    frees: int
    live_blocks: int
    live_bytes: int


class DeviceMemoryManager:
    """Allocate device memory from an ACL runtime; implements `MemoryManager`.

    Every block is known with its owner, size and purpose until it is freed. What is alive at the end is given back by
    `close`, by ``with``, or when the manager is collected.

    Parameters
    ----------
    runtime
        Runtime of the devices.

    Thread safety: any thread may use it; calls of the runtime are made without a lock.
    Source: as the module.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._module_id = GE_MODULE_ID if runtime.supports("aclrtMallocWithCfg") else None
        self._lock = threading.Lock()
        self._blocks: dict[tuple[DeviceId, DevAddr], tuple[MemoryBlock, DeviceBuffer]] = {}
        self._mallocs = 0
        self._frees = 0
        self._live_bytes = 0
        self._closed = False
        self._pools: MemoryPools | None = None

    def malloc_memory(self, mem_type: MemType, purpose: str, size_bytes: int, device_id: DeviceId) -> DevAddr:
        """Allocate a block of device memory; see `MemoryManager.malloc_memory`.

        Raises
        ------
        ValueError
            The kind of memory is not on a device, or `size_bytes` is below 1.
        SizeOverflowError
            `size_bytes` leaves 63 bits.
        MemoryShortageError
            The device has not enough memory of this kind, what was cached went back. Nothing is left allocated.
        AclError
            The runtime refuses (107001: no such device). Nothing is left allocated.
        StateError
            The manager is closed.
        """
        if mem_type not in POLICIES:
            raise ValueError(f"memory type {mem_type!r} is not device memory; use one of RT_MEMORY_HBM, _DDR, _P2P_HBM")
        size = checked_size(size_bytes)
        self._check_open()
        buffer = self._malloc(mem_type, size, device_id)
        block = MemoryBlock(device_id, DevAddr(buffer.addr), buffer.size_bytes, mem_type, purpose)
        with self._lock:
            if not self._closed:
                self._blocks[device_id, block.dev_addr] = block, buffer
                self._mallocs += 1
                self._live_bytes += block.size_bytes
                return block.dev_addr
        buffer.close()
        raise self._closed_error()

    def _malloc(self, mem_type: MemType, size: int, device_id: DeviceId) -> DeviceBuffer:
        """Allocate from the runtime; where memory is short, try again once what is cached went back."""
        device = self._runtime.device(device_id)
        try:
            return malloc_block(device, mem_type, size, self._module_id)
        except OutOfMemoryError as error:
            if self._pools is None or not self._pools.free_cached_blocks(device_id):
                raise self._short(error, size, device) from error
        try:
            return malloc_block(device, mem_type, size, self._module_id)
        except OutOfMemoryError as error:
            raise self._short(error, size, device) from error

    def _short(self, error: OutOfMemoryError, size: int, device: Device) -> MemoryShortageError:
        held = [(block.purpose, block.size_bytes) for block in self.blocks() if block.device_id == device.id]
        return plain_shortage(error, size, device, held)

    def free_memory(self, mem_type: MemType, dev_addr: DevAddr, device_id: DeviceId) -> None:
        """Free a block; see `MemoryManager.free_memory`. The owner's block is freed, whatever device is current.

        Raises
        ------
        StateError
            There is no such block: freed already, of another manager, or of another kind. Nothing is freed.
        AclError
            The runtime refuses; the block is alive still.
        """
        with self._lock:
            entry = self._blocks.get((device_id, dev_addr))
            if entry is None or entry[0].mem_type != mem_type:
                kind = MemType(mem_type).name
                raise StateError(f"device {device_id} has no live {kind} block at {dev_addr:#x}: free a block once")
            del self._blocks[device_id, dev_addr]
        self._give_back(*entry)

    def _give_back(self, block: MemoryBlock, buffer: DeviceBuffer) -> None:
        """Free a block that was taken out of the list; put it back when the runtime refuses."""
        try:
            buffer.close()
        except BaseException:
            with self._lock:
                self._blocks[block.device_id, block.dev_addr] = block, buffer
            raise
        with self._lock:
            self._frees += 1
            self._live_bytes -= block.size_bytes

    @property
    def runtime(self) -> Runtime:
        """Runtime of the devices."""
        return self._runtime

    def resource(self, mem_type: MemType, device_id: DeviceId) -> MemoryAllocator:
        """Return plain memory of a kind on a device as a resource, for adaptors and pools."""
        return MemoryAllocator(self, mem_type, device_id)

    @property
    def pools(self) -> MemoryPools:
        """Pools of registered, cached and host memory over the manager's blocks; they are made when first asked for."""
        with self._lock:
            if self._pools is None:
                self._pools = MemoryPools(self)
            return self._pools

    def get_rdma_pool_memory(self, mem_type: MemType, size_bytes: int, device_id: DeviceId) -> DevAddr:
        """Return registered memory of a device; see `MemoryManager.get_rdma_pool_memory`.

        Raises
        ------
        StateError
            The device has no such pool: make one with ``pools.init_rdma_pool``.
        ValueError, SizeOverflowError
            The size is negative or leaves 63 bits.
        OutOfMemoryError
            The pool has no room.
        """
        return self.pools.get_rdma_pool_memory(mem_type, size_bytes, device_id)

    def get_host_pool_memory(self, mem_type: MemType, size_bytes: int) -> int:
        """Return the address of zeroed host memory; see `MemoryManager.get_host_pool_memory`.

        Raises
        ------
        StateError
            The manager is closed.
        ValueError, SizeOverflowError
            The size is negative or leaves 63 bits.
        OutOfMemoryError
            The machine has no memory.
        """
        self._check_open()
        return self.pools.host.allocate(size_bytes, MemType(mem_type).name)

    def memcpy_in(self, dev_addr: DevAddr, max_bytes: int, data: HostBuffer, device_id: DeviceId) -> None:
        """Copy host bytes to a device address; see `MemoryManager.memcpy_in`."""
        self._check_open()
        self._runtime.device(device_id).memcpy_in(dev_addr, max_bytes, data)

    def memcpy_out(self, data: HostBuffer, dev_addr: DevAddr, device_id: DeviceId) -> None:
        """Copy bytes from a device address; see `MemoryManager.memcpy_out`."""
        self._check_open()
        self._runtime.device(device_id).memcpy_out(data, dev_addr)

    @property
    def counts(self) -> MemoryCounts:
        """What was allocated and freed so far, and what is alive."""
        with self._lock:
            return MemoryCounts(self._mallocs, self._frees, len(self._blocks), self._live_bytes)

    def blocks(self) -> list[MemoryBlock]:
        """Return the live blocks in the order they were allocated."""
        with self._lock:
            return [block for block, _ in self._blocks.values()]

    def close(self) -> None:
        """Free every live block and refuse further calls; called again, it frees what is left.

        Raises
        ------
        AclError
            The runtime refuses to free a block. The others are freed; the first refusal is raised.
        """
        with self._lock:
            self._closed = True
            entries = list(self._blocks.values())
            self._blocks.clear()
        if self._pools is not None:
            self._pools.forget()
        failures: list[AclError] = []
        for entry in entries:
            try:
                self._give_back(*entry)
            except AclError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        counts = self.counts
        return f"<DeviceMemoryManager of {counts.live_blocks} blocks, {size_text(counts.live_bytes)}>"

    def _check_open(self) -> None:
        if self._closed:
            raise self._closed_error()

    def _closed_error(self) -> StateError:
        return StateError("the memory manager is closed: make a new one")
