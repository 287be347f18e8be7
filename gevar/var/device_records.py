"""Device memory behind the blocks of a session: one record per block and device, made at the first question.

A block of device memory has 512 bytes of guard, the data in units of 512 bytes, and 512 bytes of guard. A record is
published only when its memory holds what it starts with; readers need no lock. Allocation and copies run without the
lock, and once per block and device however many threads ask.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::GetAutoMallocVarAddr, FreeVarMemory.
"""

import threading
from dataclasses import dataclass
from typing import Final

from gevar.align import SESSION_MEM_ALIGN_BYTES, var_block_bytes
from gevar.errors import GevarError
from gevar.memory import MemoryManager
from gevar.types import DevAddr, DeviceId, LogicAddr, MemType
from gevar.var.initial_value import initial_data
from gevar.var.load_state import LoadTable
from gevar.var.var_block import VarBlock

MALLOC_PURPOSE: Final = "Auto malloc var and constant op memory"
"""What the manager says a block of device memory is for, as GE does."""


@dataclass(frozen=True, slots=True, eq=False)
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
    owner : MemoryManager
        Who allocated it, and will free it.
    data_addr : DevAddr
        First address of the data.
    """

    block: VarBlock
    device_id: DeviceId
    dev_addr: DevAddr
    capacity_bytes: int
    mem_type: MemType
    owner: MemoryManager
    data_addr: DevAddr

    def release(self) -> None:
        """Give the memory back to its owner.

        Raises
        ------
        AclError, StateError
            The owner cannot free it; it is the owner's to give back then.
        """
        self.owner.free_memory(self.mem_type, self.dev_addr, self.device_id)


class DeviceState:
    """What is on one device.

    Attributes
    ----------
    records : dict
        Published records by logical address of the block.
    memory : LoadTable
        Whether a block has memory.
    data : LoadTable
        Whether a block's data was loaded, as callers told.
    """

    __slots__ = ("data", "memory", "records")

    def __init__(self, lock: threading.RLock) -> None:
        self.records: dict[LogicAddr, DeviceRecord] = {}
        self.memory: LoadTable[LogicAddr] = LoadTable(lock)
        self.data: LoadTable[LogicAddr] = LoadTable(lock)


class DeviceRecords:
    """Device memory and load states of one manager, on all devices.

    Parameters
    ----------
    lock
        The manager's lock.

    Attributes
    ----------
    generation : int
        Raised whenever everything is taken away; what began before it does not count any more.
    malloc_bytes : int
        Bytes of device memory that are published.

    Thread safety: all methods, from any thread; `find` takes no lock.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._devices: dict[DeviceId, DeviceState] = {}
        self.generation = 0
        self.malloc_bytes = 0

    def find(self, block: VarBlock, device_id: DeviceId) -> DeviceRecord | None:
        """Return the published memory of a block on a device."""
        device = self._devices.get(device_id)
        return None if device is None else device.records.get(block.logic_addr)

    def device(self, device_id: DeviceId) -> DeviceState:
        """Return the state of a device, an empty one at the first question."""
        with self._lock:
            device = self._devices.get(device_id)
            if device is None:
                device = self._devices[device_id] = DeviceState(self._lock)
            return device

    def records(self) -> list[DeviceRecord]:
        """Return every published record."""
        with self._lock:
            return [record for device in self._devices.values() for record in device.records.values()]

    def obtain(
        self, block: VarBlock, mem_type: MemType, device_id: DeviceId, owner: MemoryManager, generation: int
    ) -> DeviceRecord | None:
        """Return the memory of a block on a device; allocate and initialise it if nobody has.

        Parameters
        ----------
        block
            The block, found when `generation` was current.
        mem_type
            Kind of memory to allocate.
        device_id
            The device.
        owner
            Who allocates.
        generation
            `generation` as it was before the block was looked up.

        Returns
        -------
        DeviceRecord or None
            None when everything was taken away meanwhile: look the block up again.

        Raises
        ------
        FormatError
            The initial value does not fit. Nothing is left allocated.
        AclError, OutOfMemoryError
            Allocation or copy failed. Nothing is left allocated.
        StateError
            This thread is allocating this very block.
        """
        while True:
            with self._lock:
                if generation != self.generation:
                    return None
                device = self.device(device_id)
                ticket, mine = device.memory.enter(block.logic_addr)
                if ticket is None:
                    return device.records[block.logic_addr]
            if mine:
                break
            ticket.wait()
        with ticket:
            record = _allocate(block, mem_type, device_id, owner)
            with self._lock:
                if ticket.commit():
                    device.records[block.logic_addr] = record
                    self.malloc_bytes += record.capacity_bytes
                    return record
        record.release()
        return None

    def take_all(self) -> list[DeviceRecord]:
        """Forget every record and load state; return the records, for the caller to release."""
        with self._lock:
            taken = self.records()
            for device in self._devices.values():
                device.records = {}
                device.memory.clear()
                device.data.clear()
            self.generation += 1
            self.malloc_bytes = 0
            return taken


def _allocate(block: VarBlock, mem_type: MemType, device_id: DeviceId, owner: MemoryManager) -> DeviceRecord:
    """Allocate memory for a block and lay down its initial value."""
    data, capacity_bytes = initial_data(block), var_block_bytes(block.size_bytes)
    try:
        dev_addr = owner.malloc_memory(mem_type, MALLOC_PURPOSE, capacity_bytes, device_id)
    except GevarError as error:
        error.add_note(f"the memory was for {block.size_bytes} B of variable {block.key} on device {device_id}")
        raise
    data_addr = DevAddr(dev_addr + SESSION_MEM_ALIGN_BYTES)
    record = DeviceRecord(block, device_id, dev_addr, capacity_bytes, mem_type, owner, data_addr)
    if data:
        try:
            owner.memcpy_in(data_addr, block.size_bytes, data, device_id)
        except BaseException:
            record.release()
            raise
    return record
