"""Device memory of variables: what a logical address stands for on a device."""

from typing import Final

from gevar.align import var_block_bytes
from gevar.errors import GevarError
from gevar.status import PARAM_INVALID
from gevar.types import DevAddr, DeviceId, LogicAddr, MemType
from gevar.var.block_memory import DeviceRecord
from gevar.var.const_place_holder import place_holder_addr
from gevar.var.expandable_memory import ExpandableMemory
from gevar.var.mem_resource import POOL_MEM_TYPES
from gevar.var.session_state import DEFAULT_DEVICE_ID
from gevar.var.var_block import VarBlock
from gevar.var.var_device_info import VarDeviceInfo
from gevar.var.var_resource import VarResource

_HBM: Final = MemType.RT_MEMORY_HBM
_RDMA: Final = MemType.RT_MEMORY_RDMA_HBM


class VarMemory(VarDeviceInfo):
    """The part of the variable manager that puts variables on devices."""

    def get_var_memory_addr(
        self,
        logic_addr: LogicAddr,
        memory_type: MemType = MemType.RT_MEMORY_HBM,
        device_id: DeviceId = DEFAULT_DEVICE_ID,
        *,
        graph_name: str = "",
    ) -> DevAddr:
        """Return the device address that a logical address stands for; allocate the variable's memory if there is none.

        The address may lie inside a variable. The memory holds the variable's initial value, if its description has
        one, before anybody gets the address. A place holder stands for the caller's memory.

        Parameters
        ----------
        logic_addr
            Logical address in a variable.
        memory_type
            Kind of memory. For RT_MEMORY_RDMA_HBM the logical address is the device address; so it is for a variable
            in memory of a pool, whatever kind is asked for.
        device_id
            The device.
        graph_name
            Graph that asks, for `get_graph_var_mem_statistics`; nothing is counted where it is empty.

        Raises
        ------
        StateError
            There is no memory manager, the manager is not initialised, or only pages of 1 GiB may be used and there is
            no memory that grows.
        AddressError
            The address belongs to no variable, the external region is too small, or a place holder's memory is that of
            another process.
        FormatError
            The initial value does not fit the variable.
        AclError, OutOfMemoryError
            The runtime refuses to allocate or to copy.

        After failure: nothing is left allocated, and the next call tries again.
        Thread safety: an address that has memory takes no lock. One thread allocates, others wait for it.
        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::GetVarMemoryAddr, GetAutoMallocVarAddr.
        Differs: edges 5, 7, 13, 14, 15, 16, 17, 24 and 41 of docs/differences.md.
        """
        records = self._device_records
        device = records.devices.get(device_id)
        if (
            device is not None
            and memory_type is _HBM
            and not (graph_name or self._regions or self._mem_manager is None)
        ):
            found = device.records.get(logic_addr)
            if found is not None:  # the start of a variable that has memory: what is asked most
                return found.data_addr
        while True:
            manager, generation, known = self._mem_manager, records.generation, self._resource
            if manager is None:
                manager = self._require_mem_manager()
            block = None
            if known is not None:
                block = known.blocks.exact(logic_addr) or self._find_block(known, logic_addr)
            if block is None or block.mem_type is not _HBM or memory_type is not _HBM or self._regions:
                dev_addr = self._addr_elsewhere(logic_addr, memory_type, device_id, known, block)
                if dev_addr is not None:
                    return dev_addr
            if known is None or block is None:
                raise self._no_block(self._require(PARAM_INVALID), logic_addr)
            if block.is_place_holder:
                dev_addr = place_holder_addr(block, known.extern_memory[block.logic_addr], logic_addr)
                if graph_name:
                    self._count(graph_name, block, device_id, allocated=False)
                return dev_addr
            only_1g = self.memory_options.is_variable_use_1g_huge_page_only
            got = records.obtain(block, memory_type, device_id, manager, generation, huge_page_only=only_1g)
            if got is None:
                continue
            record, allocated = got
            if graph_name:
                self._count(graph_name, block, device_id, allocated=allocated)
            if logic_addr == block.logic_addr:
                return record.data_addr
            return DevAddr(record.data_addr + logic_addr - block.logic_addr)

    def _addr_elsewhere(
        self,
        logic_addr: LogicAddr,
        memory_type: MemType,
        device_id: DeviceId,
        known: VarResource | None,
        block: VarBlock | None,
    ) -> DevAddr | None:
        """The device address of what lies in a pool or in a region of the caller's; None for all else."""
        if memory_type == _RDMA or (block is not None and block.mem_type in POOL_MEM_TYPES):
            return DevAddr(logic_addr)
        region = self._regions.get(device_id)
        if region is None or memory_type != _HBM or (block is not None and block.is_place_holder):
            return None
        owned_end = 0 if known is None else known.owned_end
        manager = self._require_mem_manager()
        return region.resolve(logic_addr, block, self._config.var_mem_logic_base, owned_end, manager)

    def _count(self, graph_name: str, block: VarBlock, device_id: DeviceId, *, allocated: bool) -> None:
        size_bytes = var_block_bytes(block.size_bytes)
        self._statistics.count(graph_name, block.logic_addr, device_id, size_bytes, allocated=allocated)

    def free_var_memory(self) -> None:
        """Free the device memory of every variable; logical addresses stay, and the next question allocates again.

        Load states are forgotten with the memory. Memory of the caller's stays. A call that is allocating meanwhile
        gives its memory back and starts again. Memory that grows is given back and used no more; before `init` it
        stays in use, as in GE.

        Raises
        ------
        StateError
            There is no memory manager (status FAILED). Nothing is freed.
        AclError
            An owner could not free a block; the others are freed, and the block is its owner's to give back.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::FreeVarMemory.
        Differs: edges 16 and 18 of docs/differences.md.
        """
        with self._lock:
            self._require_mem_manager()
            is_kept = self._resource is None
            records, expandables = ([], self._device_records.expandables()) if is_kept else self._take_memory()
        release_all(records, expandables, is_kept=is_kept)

    def _take_memory(self) -> tuple[list[DeviceRecord], list[ExpandableMemory]]:
        """Forget all device memory; for a caller that holds the lock and then calls `release_all` without it."""
        self._statistics.forget_blocks()
        return self._device_records.take_all()


def release_all(records: list[DeviceRecord], expandables: list[ExpandableMemory], *, is_kept: bool = False) -> None:
    """Release every record and all memory that grows, then raise the first failure if there was one.

    `is_kept` leaves memory that grows usable.
    """
    failures: list[GevarError] = []
    for record in records:
        try:
            record.release()
        except GevarError as error:
            error.add_note(f"it was memory of variable {record.block.key}; {len(records)} blocks were to be freed")
            failures.append(error)
    for expandable in expandables:
        try:
            expandable.release(is_kept=is_kept)
        except GevarError as error:
            failures.append(error)
    if failures:
        raise failures[0]
