"""Names, descriptions and logical addresses of variables."""

from typing import Final

from gevar.align import UINT64_MAX
from gevar.errors import VariableError
from gevar.status import FAILED, INTERNAL_ERROR, PARAM_INVALID
from gevar.types import LogicAddr, MemType, TensorDesc
from gevar.var.mem_resource import MemResource, build_mem_resource
from gevar.var.new_variables import WEIGHT_OP_TYPES, assign_new
from gevar.var.session_state import SessionState
from gevar.var.var_block import VarRecord
from gevar.var.var_op import VarOp
from gevar.var.var_request import refuse_size
from gevar.var.var_resource import VarResource

_HBM: Final = MemType.RT_MEMORY_HBM


class VarRegistry(SessionState):
    """The part of the variable manager that knows no device."""

    def assign_var_mem(
        self,
        name: str,
        op: VarOp | None,
        desc: TensorDesc,
        memory_type: MemType = MemType.RT_MEMORY_HBM,
    ) -> LogicAddr:
        """Give a variable a logical address, and make the description its current one.

        A name that is there keeps its block while the description fits into it, whatever its format and data type; a
        larger one gets a new block. A new `Constant` shares the block of one with equal bytes, a new `FileConstant` the
        block of one with equal path, offset and length. The size is the one stored in the description.

        Parameters
        ----------
        name
            Name of the variable.
        op
            Its node; None where there is none, then nothing is shared by content.
        desc
            Its description.
        memory_type
            Kind of memory: RT_MEMORY_HBM, or RT_MEMORY_RDMA_HBM and RT_MEMORY_HOST, whose pools the memory manager has.
            In memory of a pool the logical address is the address itself.

        Returns
        -------
        LogicAddr
            Address of the variable in this form.

        Raises
        ------
        StateError
            The manager is not initialised (status PARAM_INVALID).
        ValueError
            Variables cannot lie in this kind of memory, or an attribute of the node has the wrong type.
        VariableError
            The size is negative, a place holder is not as it should be, or there is no pool or no memory in it (status
            INTERNAL_ERROR), or the variable lies in another kind of memory (status PARAM_INVALID).
        SizeOverflowError
            The variable memory has no room for it (status INTERNAL_ERROR).

        After failure: no variable has changed; a kind of memory that is new is known, with no bytes, as in GE.
        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::AssignVarMem.
        Differs: edges 2, 7, 8, 9, 10, 11, 12, 19 and 44 of docs/differences.md.
        """
        request = None
        if op is not None and op.op_type in WEIGHT_OP_TYPES:
            request = self._require(PARAM_INVALID).request(name, op, desc, memory_type)
        with self._lock:
            resource = self._resource or self._require(PARAM_INVALID)
            mem = self._mem_resources.get(memory_type) or self._mem_resource(memory_type, resource)
            if request is None and memory_type == _HBM:
                block = assign_new(resource, name, op, desc, mem, self._config)
                if block is not None:
                    return block.logic_addr
            request = request or resource.request(name, op, desc, memory_type)
            return resource.assign(request, mem, self._config).block.logic_addr

    def _mem_resource(self, memory_type: MemType, resource: VarResource) -> MemResource:
        """The logical space of a kind of memory, made at the first variable for it."""
        mem = self._mem_resources.get(memory_type)
        if mem is None:
            mem = build_mem_resource(memory_type, resource.space, self._pool_memory)
            self._mem_resources[memory_type] = mem
        return mem

    def _pool_memory(self, memory_type: MemType, size_bytes: int) -> int:
        """Memory of a pool; both pools are kept under HBM, as in GE."""
        if memory_type == MemType.RT_MEMORY_HOST:
            return self.get_host_pool_memory(MemType.RT_MEMORY_HBM, size_bytes)
        return self.get_rdma_pool_memory(MemType.RT_MEMORY_HBM, size_bytes)

    def restore_var_mem(
        self,
        name: str,
        op: VarOp | None,
        desc: TensorDesc,
        memory_type: MemType = MemType.RT_MEMORY_HBM,
    ) -> LogicAddr:
        """Register a variable at the logical address its compiled model gave it (output offset 0 of the node).

        A name that is there keeps its address; a description that differs becomes another form of it. The place is kept
        free of variables that are assigned later, and does not count in `get_var_mem_size`.

        Parameters
        ----------
        name, op, desc, memory_type
            As `assign_var_mem`; a new variable needs a node with output offsets.

        Returns
        -------
        LogicAddr
            Address of the variable.

        Raises
        ------
        StateError
            The manager is not initialised (status PARAM_INVALID).
        ValueError
            There is no such kind of memory, or an attribute of the node has the wrong type.
        VariableError
            The place lies outside the variable memory, the node has no offset, the size is negative, a place holder is
            not as it should be, or the variable is there and smaller or of another kind of memory (status
            PARAM_INVALID).
        AddressError
            Another variable lies there (status PARAM_INVALID).

        After failure: nothing has changed.
        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::RestoreVarMem.
        Differs: edges 6, 9, 10 and 19 of docs/differences.md.
        """
        request = self._require(PARAM_INVALID).request(name, op, desc, memory_type)
        with self._lock:
            return self._require(PARAM_INVALID).restore(request, self._config).block.logic_addr

    def set_var_addr(
        self,
        name: str,
        desc: TensorDesc,
        logic_addr: LogicAddr,
        memory_type: MemType = MemType.RT_MEMORY_HBM,
        op: VarOp | None = None,
    ) -> None:
        """Make a description the current one of a name; if the key is new, it stands for the address given.

        The address gets no block: it has memory only where a variable was assigned or restored.

        Raises
        ------
        StateError
            The manager is not initialised (status INTERNAL_ERROR).
        ValueError
            `logic_addr` is not an unsigned 64-bit number, or there is no such kind of memory.
        VariableError
            A variable in another kind of memory starts at the address (status PARAM_INVALID).
        SizeOverflowError
            The size of the description does not fit into 63 bits (status INTERNAL_ERROR).

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::SetVarAddr.
        Differs: edges 1 and 9 of docs/differences.md.
        """
        if not 0 <= logic_addr <= UINT64_MAX:
            raise ValueError(f"logic_addr of variable {name!r} is {logic_addr}, outside 0..{UINT64_MAX}")
        refuse_size(name, desc)
        request = self._require(INTERNAL_ERROR).request(name, op, desc, memory_type)
        with self._lock:
            self._require(INTERNAL_ERROR).set_var_addr(request, logic_addr, self._config)

    def get_var_addr(self, name: str, desc: TensorDesc) -> LogicAddr:
        """Return the logical address of a variable in the form that a description has; the shape does not count.

        Raises
        ------
        StateError
            The manager is not initialised (status INTERNAL_ERROR).
        VariableError
            There is no such variable, or not in this form (status INTERNAL_ERROR).

        Thread safety: takes no lock.
        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::GetVarAddr.
        """
        resource = self._resource
        record = None if resource is None else resource.find_record(name, desc)
        return (record or self._record(name, desc)).block.logic_addr

    def get_var_addr_and_type(self, name: str, desc: TensorDesc) -> tuple[LogicAddr, MemType]:
        """Return logical address and kind of memory; see `get_var_addr`."""
        block = self._record(name, desc).block
        return block.logic_addr, block.mem_type

    def get_cur_var_addr_and_type(self, name: str) -> tuple[LogicAddr, MemType]:
        """Return logical address and kind of memory of a variable in its current form.

        Raises
        ------
        StateError
            The manager is not initialised (status INTERNAL_ERROR).
        VariableError
            There is no variable of this name, or its current form has no address (status INTERNAL_ERROR).

        Thread safety: takes no lock while nobody changes the form; it finds one that is being renewed.
        """
        resource = self._require(INTERNAL_ERROR)
        record = resource.find_current(resource.key_name(name))
        if record is None:
            with self._lock:
                record = resource.find_current(resource.key_name(name)) or self._record(
                    name, self.get_cur_var_desc(name)
                )
        return record.block.logic_addr, record.block.mem_type

    def _record(self, name: str, desc: TensorDesc) -> VarRecord:
        resource = self._require(INTERNAL_ERROR)
        record = resource.find_record(name, desc)
        if record is not None:
            return record
        key, cur_desc = resource.var_key(name, desc), resource.cur_desc(name)
        if cur_desc is None:
            raise self._unknown(name, INTERNAL_ERROR)
        reason = f"it is not there in this form, its current one is {resource.var_key(name, cur_desc)}; assign it first"
        raise VariableError(str(key), reason, status=INTERNAL_ERROR)

    def _unknown(self, name: str, status: int) -> VariableError:
        close = self._require(status).close_names(name)
        return VariableError(name, "there is no variable of this name; assign it first", close=close, status=status)

    def is_var_exist(self, name: str, desc: TensorDesc | None = None) -> bool:
        """Tell whether a name has a current description or, with a description, whether it is there in this form.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::IsVarExist.
        """
        resource = self._resource
        if resource is None:
            return False
        return resource.cur_desc(name) is not None if desc is None else resource.find_record(name, desc) is not None

    def is_var_addr(self, logic_addr: int) -> bool:
        """Tell whether a variable that was assigned or restored starts at a logical address."""
        return self._resource is not None and self._resource.starts_at(logic_addr) is not None

    def get_var_mem_type(self, logic_addr: int) -> MemType:
        """Return the kind of memory of the variable that starts at an address; RT_MEMORY_RESERVED for no variable."""
        block = None if self._resource is None else self._resource.starts_at(logic_addr)
        return MemType.RT_MEMORY_RESERVED if block is None else block.mem_type

    def get_cur_var_desc(self, name: str) -> TensorDesc:
        """Return the current description of a name.

        Raises
        ------
        StateError
            The manager is not initialised (status INTERNAL_ERROR).
        VariableError
            There is no variable of this name (status FAILED).
        """
        desc = self._require(INTERNAL_ERROR).cur_desc(name)
        if desc is None:
            raise self._unknown(name, FAILED)
        return desc

    def get_var_mem_size(self, memory_type: MemType = MemType.RT_MEMORY_HBM) -> int:
        """Return the bytes of logical space assigned to variables, guards included, place holders and restored not."""
        with self._lock:
            mem = self._mem_resources.get(memory_type)
            return 0 if mem is None else mem.figures.own_bytes

    def get_var_const_place_holder_mem_size(self, memory_type: MemType = MemType.RT_MEMORY_HBM) -> int:
        """Return the bytes of logical space assigned to place holders, guards included."""
        mem = self._mem_resources.get(memory_type)
        return 0 if mem is None else mem.const_place_holder_mem_size

    def set_batch_variables_key_name(self, batch_var_name: str, key_name: str) -> None:
        """Keep a variable of a batch under another name from now on; without effect before `init`.

        What is registered under the old name stays there. A key name is not looked up again.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::SetBatchVariablesKeyName.
        """
        with self._lock:
            if self._resource is not None:
                self._resource.batch_names[batch_var_name] = key_name

    def has_shared_var_mem_between_batch(self) -> bool:
        """Tell whether any name was mapped by `set_batch_variables_key_name`."""
        return self._resource is not None and bool(self._resource.batch_names)
