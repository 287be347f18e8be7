"""The variables of one session: which block each key stands for, and how a variable gets its block.

A new key shares the block of its name's current description while it fits, a new name shares the block of an equal
weight; else a block is placed. Every operation checks first and then changes, so one that raises has changed nothing.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarResource.
"""

from dataclasses import replace
from typing import Final

from gevar.align import INT64_MAX, UINT64_MAX
from gevar.errors import AclError, SizeOverflowError, StateError, VariableError
from gevar.status import INTERNAL_ERROR, PARAM_INVALID
from gevar.types import LogicAddr, MemType, TensorDesc
from gevar.var.mem_resource import POOL_MEM_TYPES, MemResource, Placement
from gevar.var.memory_config import MemoryConfig
from gevar.var.new_variables import assign_new
from gevar.var.placing import Placing
from gevar.var.var_block import VarBlock, VarRecord
from gevar.var.var_key import VarKey
from gevar.var.var_op import CONSTANTOP, CONSTPLACEHOLDER, VarOp
from gevar.var.var_request import VarRequest
from gevar.var.var_tables import VarTables, extern_memory_of

_HBM: Final = MemType.RT_MEMORY_HBM
_MEM_TYPES: Final = frozenset(MemType) - {MemType.RT_MEMORY_RESERVED}


class VarResource(VarTables):
    """Tables of the variables of one session, and how a variable gets its block."""

    def request(self, name: str, op: VarOp | None, desc: TensorDesc, mem_type: MemType) -> VarRequest:
        """Prepare a registration, without the manager's lock: the weight of a constant that may be new is read.

        Raises
        ------
        ValueError
            There is no such kind of memory, or an attribute of a file constant has the wrong type.
        """
        if mem_type not in _MEM_TYPES:
            raise ValueError(f"memory type of variable {name!r} is {mem_type!r}; give a MemType")
        key, probe, file_slice = self.var_key(name, desc), None, None
        if op is not None and op.op_type == CONSTANTOP and not self._has_room(key, desc.size):
            probe = self.constants.probe(op)
            if probe is not None:
                self.constants.find(probe, desc.size, mem_type)  # compares the bytes now; the probe remembers it
        elif op is not None:
            file_slice = op.file_slice
        return VarRequest(key, desc, mem_type, op, probe, file_slice)

    def completed(self, request: VarRequest) -> VarRequest:
        """Read the weight of a constant that seemed to be known when its request was made, and is not now."""
        op, size_bytes = request.op, request.desc.size
        if op is None or request.probe is not None or op.op_type != CONSTANTOP:
            return request
        return request if self._has_room(request.key, size_bytes) else replace(request, probe=self.constants.probe(op))

    def assign(self, request: VarRequest, mem: MemResource, config: MemoryConfig) -> VarRecord:
        """Give a variable its block: its own, its name's, that of an equal weight, or a new one.

        Raises
        ------
        VariableError
            The size is negative (status INTERNAL_ERROR), the variable lies in another kind of memory (status
            PARAM_INVALID), a place holder is not as it should be, or its pool has no memory (status INTERNAL_ERROR).
        SizeOverflowError
            There is no room (status INTERNAL_ERROR).
        """
        key, desc = request.key, request.desc
        if desc.size < 0:
            raise VariableError(str(key), f"its size is {desc.size} B; give a size from 0", status=INTERNAL_ERROR)
        block, placing = self._block_to_share(request)
        if block is not None:
            self._revive(request, block, INTERNAL_ERROR)
            return self._point(request, block, _offset(block.mem_type, block.logic_addr, config), placing)
        if request.mem_type == _HBM and (request.op is None or request.op.op_type != CONSTPLACEHOLDER):
            block = assign_new(self, key.name, request.op, desc, mem, config)
            if block is not None:
                self._index_weight(request, block)
                return block
        extern = extern_memory_of(request, INTERNAL_ERROR)
        placement = _place(request, mem, config)
        addr, offset = placement.logic_addr, placement.offset
        block = self._add_block(request, addr, offset, extern, placing, status=INTERNAL_ERROR)
        mem.take(placement, is_place_holder=block.is_place_holder)
        return self._own(request, block)

    def _block_to_share(self, request: VarRequest) -> tuple[VarBlock | None, Placing]:
        """The block that a variable gets without new space, None where it needs a new one; and how it comes to it."""
        key, size_bytes, mem_type = request.key, request.desc.size, request.mem_type
        if key in self.records or key.name in self.cur_descs:
            for record in (self.records.get(key), self.find_current(key.name)):
                if record is not None and record.block.mem_type != mem_type:
                    raise _type_change(record, mem_type)
            block = self._named_block(key, size_bytes)
            return block, Placing.MOVED if block is None else Placing.REUSED
        block, placing = None, Placing.ASSIGNED
        if request.probe is not None:
            block, placing = self.constants.find(request.probe, size_bytes, mem_type), Placing.EQUAL_WEIGHT
        elif request.file_slice is not None:
            block, placing = self.file_constants.find(request.file_slice, size_bytes, mem_type), Placing.FILE_SLICE
        return block, Placing.ASSIGNED if block is None else placing

    def _has_room(self, key: VarKey, size_bytes: int) -> bool:
        """Whether a name that is there has a block that is large enough."""
        is_known = key.name in self.cur_descs or key in self.records
        return is_known and self._named_block(key, size_bytes) is not None

    def _named_block(self, key: VarKey, size_bytes: int) -> VarBlock | None:
        """The block that a key has, else that of its name's current description, if it is large enough."""
        own, cur_desc, current = self.records.get(key), self.cur_descs.get(key.name), self.find_current(key.name)
        if own is not None and size_bytes <= own.block.size_bytes:
            return own.block
        if cur_desc is None or current is None or size_bytes > min(cur_desc.size, current.block.size_bytes):
            return None
        return current.block

    def restore(self, request: VarRequest, config: MemoryConfig) -> VarRecord:
        """Register a variable at the place its model gave it, or as another form of one that is there.

        Raises
        ------
        VariableError
            The size is negative, the variable is there and smaller or of another kind of memory, the node has no
            output offset, or a place holder is not as it should be (status PARAM_INVALID).
        AddressError
            The place overlaps another variable (status PARAM_INVALID), but for one that starts there and is an equal
            weight, or what this one is a reference to, or the reverse.
        """
        key, desc = request.key, request.desc
        if desc.size < 0:
            raise VariableError(str(key), f"its size is {desc.size} B; give a size from 0", status=PARAM_INVALID)
        current = self.find_current(key.name)
        if current is not None:
            return self._restore_known(request, current, config)
        if key in self.records:
            raise VariableError(str(key), "it is registered without a current description", status=PARAM_INVALID)
        offset = self._restored_offset(request, config)
        is_hbm = request.mem_type == MemType.RT_MEMORY_HBM
        addr = LogicAddr(offset + config.var_mem_logic_base if is_hbm else offset)
        extern = extern_memory_of(request, PARAM_INVALID)
        block, placing = self._compiled_block(request, addr)
        if block is not None:
            return self._point(request, block, offset, placing)
        if request.mem_type in POOL_MEM_TYPES:
            block = self.pool_blocks[addr] = self._name_addr(request, addr, offset, placing)
            if extern is not None:
                self.extern_memory[addr] = extern
        else:
            block = self._add_block(request, addr, offset, extern, placing, status=PARAM_INVALID)
        return self._own(request, block)

    def _compiled_block(self, request: VarRequest, logic_addr: LogicAddr) -> tuple[VarBlock | None, Placing]:
        """The block at an address that a restored variable shares, since its model was compiled so; and why.

        That is a block with an equal weight, or one for the same variable: itself, or another reference to it.
        """
        block = self.blocks.exact(logic_addr)
        if block is None or request.desc.size > block.size_bytes or request.mem_type != block.mem_type:
            return None, Placing.RESTORED
        if request.probe is not None and self.constants.holds(request.probe, block):
            return block, Placing.EQUAL_WEIGHT
        if request.file_slice is not None and self.file_constants.holds(request.file_slice, block):
            return block, Placing.FILE_SLICE
        owner = self.records.get(block.key)
        same = self._stands_for(request.key, request.op) == self._stands_for(block.key, owner.op if owner else None)
        return (block, Placing.REFERENCE) if same else (None, Placing.RESTORED)

    def _stands_for(self, key: VarKey, op: VarOp | None) -> str:
        """The variable that a node stands for: what it is a reference to, else itself."""
        source = None if op is None else op.ref_source
        return key.name if source is None else self.batch_names.get(source, source)

    def _restored_offset(self, request: VarRequest, config: MemoryConfig) -> int:
        """Distance of a restored variable from the logic base, as its node has it."""
        op, size_bytes = request.op, request.desc.size
        if op is None or not op.output_offsets:
            raise VariableError(str(request.key), "its node has no output offset; give one", status=PARAM_INVALID)
        base = config.var_mem_logic_base
        offset = op.output_offsets[0] - base
        if not 0 <= offset <= min(config.var_mem_max_size, INT64_MAX - base) - size_bytes:
            reason = (
                f"{size_bytes} B at output offset {op.output_offsets[0]} do not lie in the variable memory,"
                f" {config.var_mem_max_size} B from {base} on"
            )
            raise VariableError(str(request.key), reason, status=PARAM_INVALID)
        return offset

    def _restore_known(self, request: VarRequest, current: VarRecord, config: MemoryConfig) -> VarRecord:
        """Register another form of a variable that is there."""
        key, desc, cur_desc = request.key, request.desc, self.cur_descs[request.key.name]
        if cur_desc.same_description(desc):
            self._revive(request, current.block, PARAM_INVALID)
            return current
        if current.block.mem_type != request.mem_type:
            raise _type_change(current, request.mem_type)
        if desc.size > min(cur_desc.size, current.block.size_bytes):
            reason = f"{desc.size} B do not fit the {cur_desc.size} B it has; assign it instead of restoring it"
            raise VariableError(str(key), reason, status=PARAM_INVALID)
        block = self._named_block(key, desc.size) or current.block
        self._revive(request, block, PARAM_INVALID)
        return self._point(request, block, _offset(block.mem_type, block.logic_addr, config), Placing.REUSED)

    def _revive(self, request: VarRequest, block: VarBlock, status: int) -> None:
        """Take the caller's memory from a place holder's node, where that of its block is of another process."""
        if block.is_place_holder and not self.extern_memory[block.logic_addr].live:
            extern = extern_memory_of(request, status)
            if extern is not None:
                self.extern_memory[block.logic_addr] = extern

    def set_var_addr(self, request: VarRequest, logic_addr: LogicAddr, config: MemoryConfig) -> None:
        """Name the address of a key that is not known yet, and make the description current in any case.

        Raises
        ------
        VariableError
            A block of another kind of memory starts at the address (status PARAM_INVALID).
        """
        if request.key in self.records:
            self.cur_descs[request.key.name] = request.desc
            return
        block, offset = self.blocks.exact(logic_addr), _offset(request.mem_type, logic_addr, config)
        if block is None:
            self._own(request, self._name_addr(request, logic_addr, offset, Placing.NAMED))
            return
        if block.mem_type != request.mem_type:
            raise _type_change(block, request.mem_type)
        self._index_weight(request, block)
        self._point(request, block, offset, Placing.NAMED)


def _place(request: VarRequest, mem: MemResource, config: MemoryConfig) -> Placement:
    """Find room for a variable; errors name it."""
    try:
        return mem.place(request.desc.size, config)
    except SizeOverflowError as error:
        raise error.named(f"variable {str(request.key)!r}") from error
    except (AclError, StateError) as error:
        reason = f"there is no {request.mem_type.name} for its {request.desc.size} B: {error}"
        raise VariableError(str(request.key), reason, status=INTERNAL_ERROR) from error


def _offset(mem_type: MemType, logic_addr: LogicAddr, config: MemoryConfig) -> int:
    """What GE keeps as the offset of a key that is pointed at a logical address."""
    if mem_type != MemType.RT_MEMORY_HBM:
        return 0
    return (logic_addr - config.var_mem_logic_base) & UINT64_MAX


def _type_change(record: VarRecord, mem_type: MemType) -> VariableError:
    reason = f"it lies in {record.block.mem_type.name}, asked for is {MemType(mem_type).name}; keep the kind of memory"
    return VariableError(str(record.key), reason, status=PARAM_INVALID)
