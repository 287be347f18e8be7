"""What a session knows of the memory of its variables on devices, and what the caller gives for it.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarResource, VarDevAddrMgr.
"""

from gevar.align import var_block_bytes
from gevar.errors import AddressError
from gevar.memory import ExpandableMemoryAllocator
from gevar.status import PARAM_INVALID
from gevar.types import DevAddr, DeviceId, LogicAddr, TensorDesc
from gevar.var.block_memory import DeviceRecord
from gevar.var.device_records import DeviceRecords
from gevar.var.external_region import ExternalRegion
from gevar.var.graph_statistics import GraphStatistics
from gevar.var.session_state import DEFAULT_DEVICE_ID
from gevar.var.var_block import VarBlock
from gevar.var.var_registry import VarRegistry
from gevar.var.var_resource import VarResource


class VarDeviceInfo(VarRegistry):
    """The part of the variable manager that keeps what is known of devices."""

    def __init__(self, session_id: int) -> None:
        super().__init__(session_id)
        self._device_records = DeviceRecords(self._lock)
        self._statistics = GraphStatistics(self._lock)
        self._regions: dict[DeviceId, ExternalRegion] = {}

    @staticmethod
    def get_var_malloc_size(desc: TensorDesc) -> int:
        """Return the bytes of device memory that a variable takes: its size in units of 512, and 1024 of guard.

        Raises
        ------
        ValueError
            The stored size is negative.
        SizeOverflowError
            The result leaves 64 bits.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::GetVarMallocSize.
        Differs: edge 44 of docs/differences.md.
        """
        if desc.size < 0:
            raise ValueError(f"the size of the description is {desc.size} B: give a size from 0")
        return var_block_bytes(desc.size)

    def get_var_malloc_mem_size(self) -> int:
        """Return the bytes of device memory that variables have now, guards included."""
        return self._device_records.malloc_bytes

    def check_logic_addr_valid(self, logic_addr: LogicAddr) -> tuple[LogicAddr, int]:
        """Return the start of the variable that holds an address, and the distance from there in bytes.

        Raises
        ------
        StateError
            The manager is not initialised (status PARAM_INVALID).
        AddressError
            The address belongs to no variable; padding and guard do not belong to one.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarResource::CheckLogicAddrValid.
        """
        resource = self._require(PARAM_INVALID)
        block = self._find_block(resource, logic_addr)
        if block is None:
            raise self._no_block(resource, logic_addr)
        return block.logic_addr, logic_addr - block.logic_addr

    def get_var_mgr_info(self, logic_addr: LogicAddr, device_id: DeviceId = DEFAULT_DEVICE_ID) -> DeviceRecord | None:
        """Return the device memory of the variable that starts at an address; None while it has none.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarResource::GetVarMgrInfo.
        """
        block = None if self._resource is None else self._resource.blocks.exact(logic_addr)
        return None if block is None else self._device_records.find(block, device_id)

    def update_dev_var_mgr_info(self, device_id: DeviceId) -> None:
        """Make the table of a device, empty at first; it is made anyway at the first question for the device.

        Nothing is copied: a device has the variables that the session has, each from the moment it is assigned.

        Raises
        ------
        ValueError
            `device_id` is negative.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarResource::UpdateDevVarMgrInfo.
        """
        if device_id < 0:
            raise ValueError(f"device_id is {device_id}: give a number from 0")
        self._device_records.device(device_id)

    def set_var_mgr_dev_addr(
        self, logic_addr: LogicAddr, dev_addr: DevAddr | None, device_id: DeviceId = DEFAULT_DEVICE_ID
    ) -> None:
        """Say that a variable lies in memory of the caller's on a device; None takes that back.

        The memory has `get_var_malloc_size` bytes, the data behind 512 bytes of guard. It is never freed here, and
        nothing is written to it: an initial value is the caller's to lay down, and the data counts as not loaded.

        Parameters
        ----------
        logic_addr
            Where the variable starts.
        dev_addr
            First address of the memory.
        device_id
            The device.

        Raises
        ------
        StateError
            The manager is not initialised (status PARAM_INVALID), or the variable has memory of the manager's there, or
            is getting some. Nothing has changed.
        AddressError
            No variable that could have device memory starts at the address.
        ValueError
            `dev_addr` is not positive, or `device_id` negative.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarResource::SetVarMgrDevAddr. GE takes the address
        over whatever the variable has, and frees it with the others.
        """
        if (dev_addr is not None and dev_addr <= 0) or device_id < 0:
            raise ValueError(f"memory at {dev_addr} of device {device_id}: give a device address and a device from 0")
        with self._lock:
            resource = self._require(PARAM_INVALID)
            block = resource.blocks.exact(logic_addr)
            if block is None:
                raise self._no_block(resource, logic_addr)
            if block.is_place_holder:
                raise AddressError(logic_addr, f"place holder {block.key} has memory of the caller's already")
            self._device_records.set_callers(block, device_id, dev_addr)

    def set_external_var(
        self, dev_addr: DevAddr | None, size_bytes: int = 0, device_id: DeviceId = DEFAULT_DEVICE_ID
    ) -> None:
        """Put the HBM variables of a device into memory of the caller's; None goes back to memory of the manager.

        The region starts at the logic base and must reach the end of the last variable, which is checked whenever an
        address is resolved. It is never freed here. Initial values are laid down at the first question for a variable.

        Parameters
        ----------
        dev_addr
            First address of the region.
        size_bytes
            Its size in bytes.
        device_id
            Its device.

        Raises
        ------
        ValueError
            `dev_addr` is not positive, or `size_bytes` negative.

        Source: GE source, base/graph/manager/graph_var_manager.h, VarManager::SetExternalVar.
        Differs: edge 13 of docs/differences.md.
        """
        if dev_addr is not None and (dev_addr <= 0 or size_bytes < 0):
            raise ValueError(
                f"external region of {size_bytes} B at {dev_addr}: give a device address and a size from 0"
            )
        with self._lock:
            if dev_addr is None:
                self._regions.pop(device_id, None)
            else:
                self._regions[device_id] = ExternalRegion(dev_addr, size_bytes, device_id, self._lock)

    def init_expandable_memory_allocator(
        self, allocator: ExpandableMemoryAllocator | None, device_id: DeviceId = DEFAULT_DEVICE_ID
    ) -> bool:
        """Take the memory of a device's variables from memory that grows, until `free_var_memory`.

        When the allocator fails, variables get plain memory from then on, and the log says so; the option
        ``ge.variableUse1gHugePage`` of 1 forbids that.

        Parameters
        ----------
        allocator
            The memory; it is told to take no pages of others and to keep its own. None changes nothing.
        device_id
            Its device.

        Returns
        -------
        bool
            False when nothing is changed: no allocator is given, the device cannot do it, or there is one already.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::InitExpandableMemoryAllocator.
        Differs: edges 16 and 41 of docs/differences.md.
        """
        if allocator is None or not allocator.is_support_expandable_memory():
            return False
        return self._device_records.init_expandable(allocator, device_id)

    def _find_block(self, resource: VarResource, logic_addr: int) -> VarBlock | None:
        """The block that holds an address; a miss is asked again under the lock."""
        block = resource.blocks.find(logic_addr)
        if block is None:
            with self._lock:
                block = resource.blocks.find(logic_addr)
        return block

    def _no_block(self, resource: VarResource, logic_addr: int) -> AddressError:
        with self._lock:
            nearest = resource.blocks.nearest(logic_addr)
        return AddressError(logic_addr, "it belongs to no variable; assign or restore one first", nearest=nearest)
