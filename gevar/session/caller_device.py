"""The caller's device: what a thread had current before a call of a session is current after it.

A call makes the device it works on current on its thread; these wrappers put back what was there. A thread that had
none keeps the last one.

Differs: edge 41 of docs/differences.md; GE allocates on whatever device is current.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from acl_shim import Runtime
from acl_shim.api_types import ContextHandle
from acl_shim.host_memory import HostBuffer
from acl_shim.table import new_cell
from gevar.errors import AclError, GevarError
from gevar.memory import ExpandableActiveMemoryAllocator, MemoryManager
from gevar.memory.expandable_sleep import Reload
from gevar.types import DevAddr, DeviceId, MemType

Result = TypeVar("Result")


class _Local(threading.local):
    """The cell of a thread for the context that is current on it."""

    def __init__(self) -> None:
        self.cell = new_cell("uintptr_t *")


_local: Final = _Local()


def current_context(runtime: Runtime) -> int:
    """Return the context that is current on the calling thread; 0 where there is none."""
    cell = _local.cell
    return 0 if runtime.closed or runtime.api.aclrtGetCurrentContext(cell) else cell[0]


def restore_context(runtime: Runtime, context: int) -> None:
    """Make a context current again that `current_context` returned.

    Raises
    ------
    AclError
        It was destroyed meanwhile.
    """
    if context and not runtime.closed:
        code = runtime.api.aclrtSetCurrentContext(ContextHandle(context))
        if code:
            raise runtime.error(code, "aclrtSetCurrentContext", {"context": context})


def take_back(error: AclError, undo: Callable[[], object]) -> None:
    """Undo what was done before the caller's device could not be made current again; a failure is noted."""
    try:
        undo()
    except GevarError as second:
        error.add_note(f"what was done before stays: {second}")


def kept_device(runtime: Runtime, call: Callable[[], Result], undo: Callable[[Result], object]) -> Result:
    """Return what a call returns, with the context current that was; where that cannot be, undo the call and raise."""
    context = current_context(runtime)
    try:
        result = call()
    except BaseException:
        restore_context(runtime, context)
        raise
    try:
        restore_context(runtime, context)
    except AclError as error:
        take_back(error, lambda: undo(result))
        raise
    return result


@contextmanager
def caller_device(runtime: Runtime) -> Iterator[None]:
    """Keep the context that is current on the calling thread, and with it the device.

    Raises
    ------
    AclError
        The context cannot be made current again: it was destroyed meanwhile.
    """
    context = current_context(runtime)
    try:
        yield
    finally:
        restore_context(runtime, context)


class CallerDeviceMemory:
    """A memory manager that keeps the caller's device; implements `MemoryManager`.

    Parameters
    ----------
    upstream
        The manager that does the work.
    runtime
        Its runtime.

    Thread safety: as `upstream`. Each method is the one of `MemoryManager`.
    """

    def __init__(self, upstream: MemoryManager, runtime: Runtime) -> None:
        self._upstream = upstream
        self._runtime = runtime

    def malloc_memory(self, mem_type: MemType, purpose: str, size_bytes: int, device_id: DeviceId) -> DevAddr:
        """Allocate a block; it is freed again where the caller's device cannot be made current."""
        return kept_device(
            self._runtime,
            lambda: self._upstream.malloc_memory(mem_type, purpose, size_bytes, device_id),
            lambda dev_addr: self._upstream.free_memory(mem_type, dev_addr, device_id),
        )

    def free_memory(self, mem_type: MemType, dev_addr: DevAddr, device_id: DeviceId) -> None:
        """Free a block on its owner's device."""
        with caller_device(self._runtime):
            self._upstream.free_memory(mem_type, dev_addr, device_id)

    def get_rdma_pool_memory(self, mem_type: MemType, size_bytes: int, device_id: DeviceId) -> DevAddr:
        """Return registered memory."""
        with caller_device(self._runtime):
            return self._upstream.get_rdma_pool_memory(mem_type, size_bytes, device_id)

    def get_host_pool_memory(self, mem_type: MemType, size_bytes: int) -> int:
        """Return the address of zeroed host memory."""
        with caller_device(self._runtime):
            return self._upstream.get_host_pool_memory(mem_type, size_bytes)

    def memcpy_in(self, dev_addr: DevAddr, max_bytes: int, data: HostBuffer, device_id: DeviceId) -> None:
        """Copy host bytes to a device."""
        with caller_device(self._runtime):
            self._upstream.memcpy_in(dev_addr, max_bytes, data, device_id)

    def memcpy_out(self, data: HostBuffer, dev_addr: DevAddr, device_id: DeviceId) -> None:
        """Copy bytes of a device to the host."""
        with caller_device(self._runtime):
            self._upstream.memcpy_out(data, dev_addr, device_id)


class CallerDeviceAllocator:
    """Memory that grows and keeps the caller's device; implements `ExpandableMemoryAllocator`, and sleeps.

    Parameters
    ----------
    upstream
        The allocator that does the work.

    Thread safety: as `upstream`. Each method is the one of `ExpandableActiveMemoryAllocator`.
    """

    def __init__(self, upstream: ExpandableActiveMemoryAllocator) -> None:
        self._upstream = upstream
        self._runtime = upstream.device.runtime
        self.is_support_expandable_memory = upstream.is_support_expandable_memory
        self.set_reuse = upstream.set_reuse
        self.set_share_phy_allocator = upstream.set_share_phy_allocator
        self.blocks = upstream.blocks
        self.end_sleep = upstream.end_sleep

    def malloc_memory(self, purpose: str, size_bytes: int, incremental: bool = False) -> DevAddr:
        """Return memory; a block is freed again where the caller's device cannot be made current."""
        context = current_context(self._runtime)
        try:
            dev_addr = self._upstream.malloc_memory(purpose, size_bytes, incremental)
        except BaseException:
            restore_context(self._runtime, context)
            raise
        try:
            restore_context(self._runtime, context)
        except AclError as error:
            take_back(error, lambda: self._upstream.free(dev_addr) if incremental else self._upstream.free_memory())
            raise
        return dev_addr

    def free(self, dev_addr: DevAddr) -> None:
        """Take a block back."""
        with caller_device(self._runtime):
            self._upstream.free(dev_addr)

    def free_memory(self) -> None:
        """Give all memory back."""
        with caller_device(self._runtime):
            self._upstream.free_memory()

    def begin_sleep(self, keep: str = "host", reload: Reload | None = None) -> None:
        """Unmap all pages; they are mapped again where the caller's device cannot be made current."""
        kept_device(
            self._runtime, lambda: self._upstream.begin_sleep(keep, reload), lambda _done: self._upstream.wake()
        )

    def wake(self) -> None:
        """Bring pages and bytes back."""
        with caller_device(self._runtime):
            self._upstream.wake()
