"""Device memory for one block: from memory that grows where a device has it, else from the memory manager.

A block of device memory has 512 bytes of guard, the data in units of 512 bytes, and 512 bytes of guard.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::GetAutoMallocVarAddr.
Differs: edges 16, 17 and 41 of docs/differences.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from gevar.align import SESSION_MEM_ALIGN_BYTES, var_block_bytes
from gevar.errors import GevarError, StateError
from gevar.memory import MemoryManager
from gevar.options import VARIABLE_USE_1G_HUGE_PAGE
from gevar.types import DevAddr, DeviceId, MemType
from gevar.var.expandable_memory import ExpandableMemory
from gevar.var.initial_value import initial_data
from gevar.var.var_block import VarBlock


class BlockOwner(Protocol):
    """Who takes the memory of a block back; every `MemoryManager` does."""

    def free_memory(self, mem_type: MemType, dev_addr: DevAddr, device_id: DeviceId) -> None:
        """Take memory back, by kind, first address and device."""


class _Caller:
    """The caller, whose memory is never freed here."""

    def free_memory(self, mem_type: MemType, dev_addr: DevAddr, device_id: DeviceId) -> None:
        """Leave the memory alone."""


CALLER: Final[BlockOwner] = _Caller()
"""Owner of memory that `VarManager.set_var_mgr_dev_addr` named."""


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
    owner : BlockOwner or None
        Who allocated it, and will free it; None for memory that is given back with its `ExpandableMemory`.
    data_addr : DevAddr
        First address of the data.
    """

    block: VarBlock
    device_id: DeviceId
    dev_addr: DevAddr
    capacity_bytes: int
    mem_type: MemType
    owner: BlockOwner | None
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


def allocate_block(
    block: VarBlock,
    mem_type: MemType,
    device_id: DeviceId,
    manager: MemoryManager,
    expandable: ExpandableMemory | None,
    *,
    huge_page_only: bool,
) -> DeviceRecord:
    """Allocate memory for a block and lay down its initial value.

    Parameters
    ----------
    block
        The block.
    mem_type
        Kind of memory.
    device_id
        The device.
    manager
        Plain memory, and copies.
    expandable
        Memory that grows, which is asked first; None where the device has none.
    huge_page_only
        Whether plain memory may not be used, since it has no pages of 1 GiB.

    Raises
    ------
    FormatError
        The initial value does not fit.
    AclError, OutOfMemoryError, StateError
        There is no memory, or the copy failed.

    After failure: nothing is handed out.
    """
    try:
        fill = _fill(block, manager, device_id) if block.desc.attrs else None
        size_bytes = var_block_bytes(block.desc.size)
        if expandable is not None:
            dev_addr = expandable.obtain(block.name, size_bytes, device_id, fill, keep=huge_page_only)
            if dev_addr is not None:
                data_addr = DevAddr(dev_addr + SESSION_MEM_ALIGN_BYTES)
                return DeviceRecord(block, device_id, dev_addr, size_bytes, mem_type, None, data_addr)
        if huge_page_only:
            raise StateError(
                f"{VARIABLE_USE_1G_HUGE_PAGE} is 1 and device {device_id} has no memory that grows:"
                " call init_expandable_memory_allocator, or allow other pages"
            )
        return _plain_record(block, mem_type, device_id, manager, fill)
    except GevarError as error:
        error.add_note(f"the memory was for {block.size_bytes} B of variable {block.key} on device {device_id}")
        if expandable is not None and expandable.failure:
            error.add_note(f"variables get plain memory, since memory that grows failed: {expandable.failure}")
        raise


def _fill(block: VarBlock, manager: MemoryManager, device_id: DeviceId) -> Callable[[DevAddr], None] | None:
    """What lays down the initial value of a block, given the address of its memory; None where it has none."""
    data = initial_data(block)
    if not data:
        return None

    def fill(dev_addr: DevAddr) -> None:
        manager.memcpy_in(DevAddr(dev_addr + SESSION_MEM_ALIGN_BYTES), block.size_bytes, data, device_id)

    return fill


def _plain_record(
    block: VarBlock,
    mem_type: MemType,
    device_id: DeviceId,
    manager: MemoryManager,
    fill: Callable[[DevAddr], None] | None,
) -> DeviceRecord:
    """Take plain memory for a block, and give it back if it cannot be filled."""
    size_bytes = var_block_bytes(block.size_bytes)
    dev_addr = manager.malloc_memory(mem_type, block.name, size_bytes, device_id)
    data_addr = DevAddr(dev_addr + SESSION_MEM_ALIGN_BYTES)
    record = DeviceRecord(block, device_id, dev_addr, size_bytes, mem_type, manager, data_addr)
    try:
        if fill is not None:
            fill(dev_addr)
    except BaseException:
        record.release()
        raise
    return record
