"""Data of variables: whether it is there, and bytes in and out."""

import ctypes

from acl_shim.host_memory import HostBuffer, read_access, write_access
from gevar.errors import AddressError, StateError
from gevar.status import PARAM_INVALID
from gevar.types import DeviceId, LogicAddr, MemType, TensorDesc
from gevar.var.load_state import LoadState, LoadTicket, set_loaded
from gevar.var.mem_resource import POOL_MEM_TYPES
from gevar.var.session_state import DEFAULT_DEVICE_ID
from gevar.var.var_block import VarBlock
from gevar.var.var_graphs import VarGraphs
from gevar.var.var_op import VarOp


class VarData(VarGraphs):
    """The part of the variable manager that knows what is in the memory of variables."""

    def check_and_set_var_loaded(self, op: VarOp | None, device_id: DeviceId = DEFAULT_DEVICE_ID) -> bool:
        """Tell whether the data of a node's variable is on a device; if it is not, say that it is from now on.

        For callers that copy right after the answer False and cannot fail. `begin_var_load` is the careful way: its
        state is loaded only once the bytes are there.

        Parameters
        ----------
        op
            The node; its output offset 0, less the inner offset of output 0, is the variable's address.
        device_id
            The device.

        Returns
        -------
        bool
            True to skip loading. False also for a node without offsets or an address where no variable starts; then
            nothing is recorded.

        Raises
        ------
        ValueError
            `op` is None.
        StateError
            This thread is loading the variable itself.

        Thread safety: takes no lock; of many threads one gets False.
        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::CheckAndSetVarLoaded.
        Differs: edges 6, 18 and 22 of docs/differences.md.
        """
        if op is None:
            raise ValueError("op is None: give the node whose data is to be loaded")
        if not op.output_offsets:
            return False
        addr, descs = op.output_offsets[0], op.output_desc
        if descs and descs[0].attrs:
            addr -= descs[0].inner_offset
        device = self._device_records.devices.get(device_id) or self._device_records.device(device_id)
        while True:
            states, resource = device.data.states, self._resource
            if resource is None or (resource.blocks.exact(addr) is None and addr not in resource.pool_blocks):
                return False
            found = set_loaded(states, addr)
            if found is True or found is False:
                return found
            found.wait()

    def begin_var_load(
        self, logic_addr: LogicAddr, device_id: DeviceId = DEFAULT_DEVICE_ID, *, content: str = ""
    ) -> LoadTicket[int] | None:
        """Take the loading of a variable's data on a device, or wait until another thread has done it.

        The ticket is a context: it commits when the block ends, and aborts when the block raises.

        Parameters
        ----------
        logic_addr
            Address at which the variable starts.
        device_id
            The device.
        content
            What is to be brought, in words, for `get_var_content` to tell; "" where nobody will ask.

        Returns
        -------
        LoadTicket or None
            None when the data is there. A ticket otherwise: load, then commit or abort.

        Raises
        ------
        StateError
            The manager is not initialised, or this thread holds the ticket already.
        AddressError
            No variable starts at the address.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::CheckAndSetVarLoaded.
        Differs: edge 22 of docs/differences.md.
        """
        while True:
            with self._lock:
                resource = self._require(PARAM_INVALID)
                if resource.blocks.exact(logic_addr) is None and logic_addr not in resource.pool_blocks:
                    raise self._no_block(resource, logic_addr)
                ticket, mine = self._device_records.device(device_id).data.enter(logic_addr, content)
            if ticket is None or mine:
                return ticket
            ticket.wait()

    def get_var_content(self, logic_addr: LogicAddr, device_id: DeviceId = DEFAULT_DEVICE_ID) -> str:
        """Return what was brought to the variable that starts at an address, in the words of `begin_var_load`.

        "" where nothing is, or nobody said.
        """
        return self._device_records.device(device_id).data.content(logic_addr)

    def get_var_load_state(self, logic_addr: LogicAddr, device_id: DeviceId = DEFAULT_DEVICE_ID) -> LoadState:
        """Return whether the data of the variable that starts at an address is absent, being loaded, or loaded."""
        return self._device_records.device(device_id).data.state(logic_addr)

    def set_var_is_ready(
        self, name: str, desc: TensorDesc, device_id: DeviceId = DEFAULT_DEVICE_ID, *, is_elsewhere: bool = False
    ) -> None:
        """Call a variable ready on a device in the form that a description has; without effect before `init`.

        The variable need not be there. Freeing the memory of variables takes the word back, except of what is ready in
        memory that is not the manager's (`is_elsewhere`): that is ready until `set_var_is_not_ready`.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::SetVarIsReady.
        Differs: edges 18 and 20 of docs/differences.md.
        """
        with self._lock:
            if self._resource is not None:
                key, device = self._resource.var_key(name, desc), self._device_records.device(device_id)
                device.ready.add(key)
                if is_elsewhere:
                    device.ready_elsewhere.add(key)

    def set_var_is_not_ready(self, name: str, desc: TensorDesc, device_id: DeviceId = DEFAULT_DEVICE_ID) -> None:
        """Take back what `set_var_is_ready` said, when the memory of what is no variable of the manager goes."""
        with self._lock:
            if self._resource is not None:
                key, device = self._resource.var_key(name, desc), self._device_records.device(device_id)
                device.ready.discard(key)
                device.ready_elsewhere.discard(key)

    def is_var_ready(self, name: str, desc: TensorDesc, device_id: DeviceId = DEFAULT_DEVICE_ID) -> bool:
        """Tell whether a variable was called ready on a device; the shape does not count."""
        resource = self._resource
        return resource is not None and self._device_records.is_ready(resource.var_key(name, desc), device_id)

    def write_var_memory(
        self, logic_addr: LogicAddr, data: HostBuffer, device_id: DeviceId = DEFAULT_DEVICE_ID
    ) -> None:
        """Copy bytes into a variable, from a logical address on; wait until they are there.

        Raises
        ------
        AddressError
            The address belongs to no variable, or the bytes would pass its end. Nothing is copied.
        AclError, FormatError, OutOfMemoryError, StateError
            As `get_var_memory_addr`, or the copy failed: the range holds old bytes, new bytes or both.
        """
        with read_access(data) as memory:
            block, room = self._room(logic_addr, memory.size_bytes)
            dev_addr = self.get_var_memory_addr(logic_addr, block.mem_type, device_id)
            if block.mem_type == MemType.RT_MEMORY_HOST:
                ctypes.memmove(dev_addr, memory.addr, memory.size_bytes)
            elif memory.size_bytes:
                self._require_mem_manager().memcpy_in(dev_addr, room, data, device_id)

    def read_var_memory(self, logic_addr: LogicAddr, data: HostBuffer, device_id: DeviceId = DEFAULT_DEVICE_ID) -> None:
        """Copy bytes of a variable, from a logical address on, into host memory until that is full.

        Raises
        ------
        AddressError
            The address belongs to no variable, or the bytes would pass its end. Nothing is copied.
        StateError
            The variable has no memory on the device yet and no initial value: there is nothing to read.
        AclError, FormatError, OutOfMemoryError
            As `get_var_memory_addr`, or the copy failed: `data` holds old bytes, new bytes or both.
        """
        with write_access(data) as memory:
            block, _ = self._room(logic_addr, memory.size_bytes)
            if not self._has_bytes(block, device_id):
                what = f"variable {block.key} is not ready: it has no memory on device {device_id}"
                raise StateError(f"{what}, write it first")
            dev_addr = self.get_var_memory_addr(logic_addr, block.mem_type, device_id)
            if block.mem_type == MemType.RT_MEMORY_HOST:
                ctypes.memmove(memory.addr, dev_addr, memory.size_bytes)
            elif memory.size_bytes:
                self._require_mem_manager().memcpy_out(data, dev_addr, device_id)

    def _has_bytes(self, block: VarBlock, device_id: DeviceId) -> bool:
        """Whether there is anything to read of a variable on a device."""
        if block.is_place_holder or block.mem_type in POOL_MEM_TYPES or block.desc.init_value is not None:
            return True
        return device_id in self._regions or self._device_records.find(block, device_id) is not None

    def _room(self, logic_addr: LogicAddr, size_bytes: int) -> tuple[VarBlock, int]:
        """The block an access goes to, and the bytes from its address to the end of the data."""
        resource = self._require(PARAM_INVALID)
        block = self._find_block(resource, logic_addr)
        if block is None:
            raise self._no_block(resource, logic_addr)
        held_bytes = block.size_bytes
        if block.is_place_holder:
            held_bytes = min(held_bytes, resource.extern_memory[block.logic_addr].size_bytes)
        room = block.logic_addr + held_bytes - logic_addr
        if size_bytes > room:
            reason = f"{size_bytes} B from there pass the end of variable {block.key}, {held_bytes} B"
            raise AddressError(logic_addr, reason, nearest=(block.logic_addr, held_bytes))
        return block, room
