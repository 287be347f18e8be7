"""Device memory behind the blocks of a session: one record per block and device, made at the first question.

A record is published only when its memory holds what it starts with; readers need no lock. Allocation and copies run
without the lock, and once per block and device however many threads ask.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::GetAutoMallocVarAddr, FreeVarMemory.
"""

import threading
from collections.abc import Collection, Container, Mapping, Sequence
from contextlib import ExitStack

from acl_shim.errors import size_text
from gevar.align import SESSION_MEM_ALIGN_BYTES, var_block_bytes
from gevar.errors import OutOfMemoryError, StateError
from gevar.memory import ExpandableMemoryAllocator, MemoryManager, MemoryShortageError
from gevar.memory.memory_shortage import largest_holders
from gevar.types import DevAddr, DeviceId, LogicAddr, MemType
from gevar.var.block_memory import CALLER, DeviceRecord, allocate_block
from gevar.var.device_state import DeviceState
from gevar.var.expandable_memory import ExpandableMemory
from gevar.var.load_state import LoadTicket
from gevar.var.var_block import VarBlock
from gevar.var.var_key import VarKey


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
    devices : dict
        State of each device that was asked for.

    Thread safety: all methods, from any thread; `find` takes no lock.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self.devices: dict[DeviceId, DeviceState] = {}
        self.generation = 0
        self.malloc_bytes = 0

    def find(self, block: VarBlock, device_id: DeviceId) -> DeviceRecord | None:
        """Return the published memory of a block on a device."""
        device = self.devices.get(device_id)
        return None if device is None else device.records.get(block.logic_addr)

    def device(self, device_id: DeviceId) -> DeviceState:
        """Return the state of a device, an empty one at the first question; it stays for good."""
        known = self.devices.get(device_id)
        if known is not None:
            return known
        with self._lock:
            device = self.devices.get(device_id)
            if device is None:
                device = self.devices[device_id] = DeviceState(self._lock)
            return device

    def records(self) -> list[DeviceRecord]:
        """Return every published record."""
        with self._lock:
            return [record for device in self.devices.values() for record in device.records.values()]

    def is_ready(self, key: VarKey, device_id: DeviceId) -> bool:
        """Tell whether a variable was called ready on a device."""
        device = self.devices.get(device_id)
        return device is not None and key in device.ready

    def rename_ready(self, old: VarKey, new: VarKey) -> None:
        """Carry what was called ready over to another key, on every device; for a caller that holds the lock."""
        for device in self.devices.values():
            for ready in (device.ready, device.ready_elsewhere):
                if old in ready:
                    ready.remove(old)
                    ready.add(new)

    def init_expandable(self, allocator: ExpandableMemoryAllocator, device_id: DeviceId) -> bool:
        """Take blocks of a device from memory that grows, again where a failure had ended it; False when they are."""
        with self._lock:
            device = self.device(device_id)
            known = device.expandables
            if known and known[-1].is_usable:
                return False
            allocator.set_reuse(False)
            allocator.set_share_phy_allocator(False)
            again = [one for one in known if one.allocator is allocator]
            for one in again:
                one.is_usable, one.failure = True, ""
            device.expandables = [one for one in known if one not in again] + (again or [ExpandableMemory(allocator)])
            return True

    def obtain(
        self,
        block: VarBlock,
        mem_type: MemType,
        device_id: DeviceId,
        manager: MemoryManager,
        generation: int,
        *,
        huge_page_only: bool,
    ) -> tuple[DeviceRecord, bool] | None:
        """Return the memory of a block on a device; allocate and initialise it if nobody has.

        Parameters
        ----------
        block, mem_type, device_id, manager, huge_page_only
            As `allocate_block`; the block was found when `generation` was current.
        generation
            `generation` as it was before the block was looked up.

        Returns
        -------
        tuple or None
            The memory, and whether this call allocated it. None when everything was taken away meanwhile: look the
            block up again.

        Raises
        ------
        FormatError
            The initial value does not fit. Nothing is left allocated.
        AclError, OutOfMemoryError
            Allocation or copy failed. Nothing is left allocated.
        StateError
            This thread is allocating this very block, or only pages of 1 GiB may be used and there are none.
        """
        device, logic_addr = self.devices.get(device_id) or self.device(device_id), block.logic_addr
        known = device.records.get(logic_addr)
        if known is not None:
            return known, False
        while True:
            growing, table = device.expandables, device.memory
            expandable = growing[-1] if growing else None
            ticket = LoadTicket(table, logic_addr)
            # `take_all` raises the generation first: of what was read here nothing is younger than the number
            found = table.states.setdefault(logic_addr, ticket)
            if generation != self.generation:
                ticket.abort()
                return None
            if found is ticket:
                break
            if not isinstance(found, LoadTicket):
                with self._lock:  # who made it loaded has published it when the lock is free
                    record = device.records.get(logic_addr)
                return None if record is None else (record, False)
            found.wait()
        try:
            record = allocate_block(block, mem_type, device_id, manager, expandable, huge_page_only=huge_page_only)
        except BaseException as error:
            ticket.abort()
            if isinstance(error, OutOfMemoryError):
                self._name_variables(error, device_id)
            raise
        with self._lock:
            if ticket.commit_held():
                device.records[logic_addr] = record
                device.version += 1
                self.malloc_bytes += record.capacity_bytes
                return record, True
        if record.owner is None and expandable is not None:
            expandable.give_back(record.dev_addr, record.capacity_bytes)
        else:
            record.release()
        return None

    def set_callers(self, block: VarBlock, device_id: DeviceId, dev_addr: DevAddr | None) -> None:
        """Let memory of the caller's be that of a block on a device; None takes it away again.

        Raises
        ------
        StateError
            The block has memory of the manager's there, or is getting some. Nothing has changed.
        """
        logic_addr = block.logic_addr
        with self._lock:
            device = self.device(device_id)
            states, known = device.memory.states, device.records.get(logic_addr)
            if logic_addr in states and (known is None or known.owner is not CALLER):
                reason = f"variable {block.key} has memory of its own on device {device_id}, or is getting some"
                raise StateError(f"{reason}: call free_var_memory first")
            states.pop(logic_addr, None)
            device.records.pop(logic_addr, None)
            device.data.states.pop(logic_addr, None)
            device.version += 1
            if dev_addr is not None:
                size_bytes, data_addr = var_block_bytes(block.size_bytes), DevAddr(dev_addr + SESSION_MEM_ALIGN_BYTES)
                record = DeviceRecord(block, device_id, dev_addr, size_bytes, block.mem_type, CALLER, data_addr)
                states[logic_addr] = device.records[logic_addr] = record

    def give_back_new(self, known: Collection[DeviceRecord], logic_addrs: Container[LogicAddr] | None) -> None:
        """Give back the memory of every record that is not among known ones; what was loaded there counts no more.

        Parameters
        ----------
        known
            Records that stay.
        logic_addrs
            Blocks that count; None for all.

        Raises
        ------
        AclError, StateError
            The owner of a block cannot free it; the others are freed.
        """
        with self._lock:
            new = [
                (device, record)
                for device in self.devices.values()
                for logic_addr, record in device.records.items()
                if record not in known and record.owner is not CALLER
                if logic_addrs is None or logic_addr in logic_addrs
            ]
            for device, record in new:
                logic_addr = record.block.logic_addr
                del device.records[logic_addr]
                device.memory.states.pop(logic_addr, None)
                device.data.states.pop(logic_addr, None)
                device.version += 1
                self.malloc_bytes -= record.capacity_bytes
        with ExitStack() as stack:
            growing: dict[DeviceId, dict[DevAddr, int]] = {}
            for _, record in new:
                if record.owner is None:
                    growing.setdefault(record.device_id, {})[record.dev_addr] = record.capacity_bytes
                else:
                    stack.callback(record.release)
            for device_id, pieces in growing.items():
                stack.callback(_give_back, self.devices[device_id].expandables, pieces)

    def _name_variables(self, error: OutOfMemoryError, device_id: DeviceId) -> None:
        """Say in a note, and in a field, what the variables of a device hold, and which hold the most."""
        with self._lock:
            records = list(self.device(device_id).records.values())
        largest = largest_holders((record.block.name, record.capacity_bytes) for record in records)
        total = size_text(sum(record.capacity_bytes for record in records))
        names = ", ".join(f"{holder.name} {size_text(holder.size_bytes)}" for holder in largest)
        held = f"{len(records)} variables hold {total} on device {device_id}"
        error.add_note(f"{held}; the largest: {names}" if names else held)
        if isinstance(error, MemoryShortageError):
            error.held_on_device = largest

    def expandables(self) -> list[ExpandableMemory]:
        """Return all memory that grows, of every device."""
        with self._lock:
            return [expandable for device in self.devices.values() for expandable in device.expandables]

    def take_all(self) -> tuple[list[DeviceRecord], list[ExpandableMemory]]:
        """Forget every record and state; return the records and the memory that grows, for the caller to release."""
        with self._lock:
            self.generation += 1  # before all else, see `obtain`
            records, expandables = self.records(), list[ExpandableMemory]()
            for device in self.devices.values():
                device.records = {}
                device.version += 1
                device.memory.clear()
                device.data.clear()
                device.ready = set(device.ready_elsewhere)
                expandables += device.expandables
                device.expandables = []
            self.malloc_bytes = 0
            return records, expandables


def _give_back(memories: Sequence[ExpandableMemory], pieces: Mapping[DevAddr, int]) -> None:
    """Give pieces of a device back to the memory that each is from."""
    for memory in reversed(memories):
        pieces = memory.give_back_own(pieces)
