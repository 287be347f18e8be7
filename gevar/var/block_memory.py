"""Device memory for one block: from memory that grows where a device has it, else from the memory manager.

A block of device memory has 512 bytes of guard, the data in units of 512 bytes, and 512 bytes of guard.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::GetAutoMallocVarAddr.
Differs: edges 16, 17 and 41 of docs/differences.md.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from gevar.align import SESSION_MEM_ALIGN_BYTES, var_block_bytes
from gevar.errors import AclError, GevarError, StateError
from gevar.memory import ExpandableMemoryAllocator, MemoryManager
from gevar.options import VARIABLE_USE_1G_HUGE_PAGE
from gevar.types import DevAddr, DeviceId, MemType
from gevar.var.initial_value import initial_data
from gevar.var.var_block import VarBlock

MALLOC_PURPOSE: Final = "Auto malloc var and constant op memory"
"""What the manager says a block of device memory is for, as GE does."""

_log = logging.getLogger("gevar.var")


@dataclass(slots=True, eq=False)
class DeviceRecord:
    """Device memory of one block on one device.

    Attributes
    ----------
    block : VarBlock
        The block.
    device_id : DeviceId
        The device.
    dev_addr : DevAddr
        First address of the memory, guard included.
    capacity_bytes : int
        Bytes of the memory, guard included.
    mem_type : MemType
        Kind of memory it was allocated as.
    owner : MemoryManager or None
        Who allocated it, and will free it; None for memory that is given back with its `ExpandableMemory`.
    data_addr : DevAddr
        First address of the data.
    """

    block: VarBlock
    device_id: DeviceId
    dev_addr: DevAddr
    capacity_bytes: int
    mem_type: MemType
    owner: MemoryManager | None
    data_addr: DevAddr

    def release(self) -> None:
        """Give the memory back to its owner.

        Raises
        ------
        AclError, StateError
            The owner cannot free it; it is the owner's to give back then.
        """
        if self.owner is not None:
            self.owner.free_memory(self.mem_type, self.dev_addr, self.device_id)


class ExpandableMemory:
    """Memory that grows, on one device, from the first block until all of it is given back.

    One thread at a time takes memory and fills it, so nothing is given back while a copy is under way. A piece that was
    taken in vain, since its copy failed, waits for the next block of its size: single pieces cannot be given back.

    Attributes
    ----------
    is_usable : bool
        Whether blocks are still taken from it.

    Thread safety: all methods, from any thread.
    """

    def __init__(self, allocator: ExpandableMemoryAllocator) -> None:
        self._allocator = allocator
        self._lock = threading.RLock()
        self._spare: dict[int, list[DevAddr]] = {}
        self.is_usable = True

    def obtain(self, request: "BlockRequest", *, keep: bool) -> DevAddr | None:
        """Return memory that holds what a block starts with.

        Parameters
        ----------
        request
            What is wanted.
        keep
            Whether there is no other memory to turn to.

        Returns
        -------
        DevAddr or None
            None when blocks are no longer taken from here, which a failure decides unless `keep`.

        Raises
        ------
        AclError, OutOfMemoryError
            The copy failed, or with `keep` the allocation. Nothing is handed out.
        """
        with self._lock:
            if not self.is_usable:
                return None
            try:
                dev_addr = self._take(request.capacity_bytes)
            except AclError as error:
                if keep:
                    raise
                self.is_usable = False
                text = "device %d: variables get plain memory from now on, since memory that grows failed: %s"
                _log.warning(text, request.device_id, error)
                return None
            try:
                request.fill(dev_addr)
            except BaseException:
                self._spare.setdefault(request.capacity_bytes, []).append(dev_addr)
                raise
            return dev_addr

    def _take(self, size_bytes: int) -> DevAddr:
        spare = self._spare.get(size_bytes) if self._spare else None
        return spare.pop() if spare else self._allocator.malloc_memory(MALLOC_PURPOSE, size_bytes, True)

    @contextmanager
    def held(self) -> Iterator[ExpandableMemoryAllocator]:
        """Give the allocator, while no other thread takes memory of it, fills it or gives it back."""
        with self._lock:
            yield self._allocator

    def release(self, *, is_kept: bool = False) -> None:
        """Give all memory back, once nobody is filling a piece of it.

        Parameters
        ----------
        is_kept
            Whether blocks are taken from here afterwards as before.

        Raises
        ------
        AclError
            The allocator cannot; it is the allocator's to give back then.
        """
        with self._lock:
            self.is_usable = self.is_usable and is_kept
            self._allocator.free_memory()


class BlockRequest:
    """Memory that a block wants on a device.

    Attributes
    ----------
    block : VarBlock
        The block.
    mem_type : MemType
        Kind of memory.
    device_id : DeviceId
        The device.
    mem_manager : MemoryManager
        Plain memory, and copies.
    huge_page_only : bool
        Whether plain memory may not be used, since it has no pages of 1 GiB.
    capacity_bytes : int
        Bytes, guard included.
    """

    __slots__ = ("_data", "block", "capacity_bytes", "device_id", "huge_page_only", "mem_manager", "mem_type")

    def __init__(
        self, block: VarBlock, mem_type: MemType, device_id: DeviceId, mem_manager: MemoryManager, huge_page_only: bool
    ) -> None:
        self.block = block
        self.mem_type = mem_type
        self.device_id = device_id
        self.mem_manager = mem_manager
        self.huge_page_only = huge_page_only
        self.capacity_bytes = var_block_bytes(block.desc.size)
        self._data: bytes | None = None

    def check_data(self) -> None:
        """Read what the memory is to start with.

        Raises
        ------
        FormatError
            The initial value does not fit.
        """
        if self.block.desc.attrs:
            self._data = initial_data(self.block)

    def fill(self, dev_addr: DevAddr) -> None:
        """Lay down what the memory starts with."""
        if self._data:
            to = DevAddr(dev_addr + SESSION_MEM_ALIGN_BYTES)
            self.mem_manager.memcpy_in(to, self.block.size_bytes, self._data, self.device_id)

    def record(self, dev_addr: DevAddr, owner: MemoryManager | None) -> DeviceRecord:
        """Return the record of memory that was got."""
        data_addr = DevAddr(dev_addr + SESSION_MEM_ALIGN_BYTES)
        capacity_bytes = self.capacity_bytes
        return DeviceRecord(self.block, self.device_id, dev_addr, capacity_bytes, self.mem_type, owner, data_addr)


def allocate_block(request: BlockRequest, expandable: ExpandableMemory | None) -> DeviceRecord:
    """Allocate memory for a block and lay down its initial value.

    Parameters
    ----------
    request
        What is wanted.
    expandable
        Memory that grows, which is asked first; None where the device has none.

    Raises
    ------
    FormatError
        The initial value does not fit.
    AclError, OutOfMemoryError, StateError
        There is no memory, or the copy failed.

    After failure: nothing is handed out.
    """
    try:
        request.check_data()
        if expandable is not None:
            dev_addr = expandable.obtain(request, keep=request.huge_page_only)
            if dev_addr is not None:
                return request.record(dev_addr, None)
        return _plain_record(request)
    except GevarError as error:
        block = request.block
        error.add_note(f"the memory was for {block.size_bytes} B of variable {block.key} on device {request.device_id}")
        raise


def _plain_record(request: BlockRequest) -> DeviceRecord:
    """Take plain memory for a block, and give it back if it cannot be filled."""
    if request.huge_page_only:
        raise StateError(
            f"{VARIABLE_USE_1G_HUGE_PAGE} is 1 and device {request.device_id} has no memory that grows:"
            " call init_expandable_memory_allocator, or allow other pages"
        )
    manager = request.mem_manager
    dev_addr = manager.malloc_memory(request.mem_type, MALLOC_PURPOSE, request.capacity_bytes, request.device_id)
    record = request.record(dev_addr, manager)
    try:
        request.fill(dev_addr)
    except BaseException:
        record.release()
        raise
    return record
