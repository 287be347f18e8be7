"""The variables of one session: which block each key stands for, and what each name looks like now.

A key (name, format, data type) stands for a block; several keys may stand for one. A name has one current description.
A new key shares the block of its name's current description while it fits, a new name shares the block of an equal
weight; else a block is placed. Every operation checks first and then changes, so one that raises has changed nothing.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarResource.
"""

import difflib
from itertools import islice
from typing import Final

from gevar.align import INT64_MAX, UINT64_MAX
from gevar.errors import VariableError
from gevar.status import INTERNAL_ERROR, PARAM_INVALID
from gevar.types import LogicAddr, MemType, TensorDesc
from gevar.var.address_index import AddressIndex
from gevar.var.const_place_holder import read_place_holder
from gevar.var.logic_space import LogicSpace
from gevar.var.mem_resource import MemResource
from gevar.var.memory_config import MemoryConfig
from gevar.var.var_block import VarBlock, VarRecord
from gevar.var.var_key import VarKey
from gevar.var.var_op import CONSTANTOP, CONSTPLACEHOLDER, VarOp
from gevar.var.var_request import VarRequest
from gevar.var.weight_index import ConstantIndex, FileConstantIndex

_CLOSE_NAMES_LIMIT: Final = 1000  # names of a similar length that a misspelt one is compared with


class VarResource:
    """Tables of the variables of one session.

    Attributes
    ----------
    records : dict
        Record per key.
    cur_descs : dict
        Current description per batch key name.
    blocks : AddressIndex
        Blocks by logical address.
    space : LogicSpace
        Ranges of HBM's logical space that blocks take.
    owned_end : int
        First logical address after every HBM block whose memory is the manager's; 0 while there is none.
    constants, file_constants
        Blocks by the weight they hold.
    batch_names : dict
        Key name per batch variable name.

    Thread safety: one writer at a time, under the manager's lock; `find_record`, `blocks` and the look-up of weights
    may run beside it.
    """

    def __init__(self) -> None:
        self.records: dict[VarKey, VarRecord] = {}
        self.cur_descs: dict[str, TensorDesc] = {}
        self.blocks = AddressIndex()
        self.space = LogicSpace()
        self.owned_end = 0
        self.constants = ConstantIndex()
        self.file_constants = FileConstantIndex()
        self.batch_names: dict[str, str] = {}

    def var_key(self, name: str, desc: TensorDesc) -> VarKey:
        """Return the key of a variable with a description."""
        return VarKey(self.batch_names.get(name, name), desc.format, desc.dtype)

    def find_record(self, name: str, desc: TensorDesc) -> VarRecord | None:
        """Return what a name and a description stand for; None where they were never registered."""
        return self.records.get(VarKey(self.batch_names.get(name, name), desc.format, desc.dtype))

    def cur_desc(self, name: str) -> TensorDesc | None:
        """Return the current description of a name; None where it has none."""
        return self.cur_descs.get(self.batch_names.get(name, name))

    def request(self, name: str, op: VarOp | None, desc: TensorDesc, mem_type: MemType) -> VarRequest:
        """Prepare a registration, without the manager's lock: the weight of a constant that may be new is read.

        Raises
        ------
        ValueError
            An attribute of a file constant has the wrong type.
        """
        key, file_slice = self.var_key(name, desc), None if op is None else op.file_slice
        probe = None
        if op is not None and op.op_type == CONSTANTOP and self._named_block(key, desc.size) is None:
            probe = self.constants.probe(op)
        if probe is not None:
            self.constants.find(probe, desc.size, mem_type)  # compares the bytes now; the probe remembers the answer
        return VarRequest(key, desc, mem_type, op, probe, file_slice)

    def assign(self, request: VarRequest, mem: MemResource, config: MemoryConfig) -> VarRecord:
        """Give a variable its block: its own, its name's, that of an equal weight, or a new one.

        Raises
        ------
        VariableError
            The size is negative (status INTERNAL_ERROR), the variable lies in another kind of memory (status
            PARAM_INVALID), or a place holder is not as it should be (status INTERNAL_ERROR).
        SizeOverflowError
            There is no room (status INTERNAL_ERROR).
        """
        key, desc = request.key, request.desc
        if desc.size < 0:
            raise VariableError(str(key), f"its size is {desc.size} B; give a size from 0", status=INTERNAL_ERROR)
        block = self._block_to_share(request)
        if block is not None:
            return self._point(request, block, _offset(block, config))
        placement = mem.place(desc.size, config)
        block = self._add_block(request, placement.logic_addr, status=INTERNAL_ERROR)
        mem.take(placement, is_place_holder=block.extern_addr is not None)
        return self._point(request, block, placement.offset)

    def _block_to_share(self, request: VarRequest) -> VarBlock | None:
        """The block that a variable gets without new space; None where it needs a new one."""
        key, size_bytes, mem_type = request.key, request.desc.size, request.mem_type
        for record in (self.records.get(key), self.find_current(key.name)):
            if record is not None and record.block.mem_type != mem_type:
                raise _type_change(record, mem_type)
        block = self._named_block(key, size_bytes)
        if block is not None or key in self.records or key.name in self.cur_descs:
            return block
        if request.probe is not None:
            return self.constants.find(request.probe, size_bytes, mem_type)
        if request.file_slice is not None:
            return self.file_constants.find(request.file_slice, size_bytes, mem_type)
        return None

    def _named_block(self, key: VarKey, size_bytes: int) -> VarBlock | None:
        """The block that a key has, else that of its name's current description, if it is large enough."""
        own, cur_desc, current = self.records.get(key), self.cur_descs.get(key.name), self.find_current(key.name)
        if own is not None and size_bytes <= own.block.size_bytes:
            return own.block
        if cur_desc is None or current is None or size_bytes > min(cur_desc.size, current.block.size_bytes):
            return None
        return current.block

    def find_current(self, key_name: str) -> VarRecord | None:
        """Return what a batch key name stands for with its current description."""
        desc = self.cur_descs.get(key_name)
        return None if desc is None else self.records.get(VarKey(key_name, desc.format, desc.dtype))

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
        block = self._compiled_block(request, addr) or self._add_block(request, addr, status=PARAM_INVALID)
        return self._point(request, block, offset)

    def _compiled_block(self, request: VarRequest, logic_addr: LogicAddr) -> VarBlock | None:
        """The block at an address that a restored variable shares, since its model was compiled so.

        That is a block with an equal weight, or one for the same variable: itself, or another reference to it.
        """
        block = self.blocks.exact(logic_addr)
        if block is None or request.desc.size > block.size_bytes or request.mem_type != block.mem_type:
            return None
        if request.probe is not None and self.constants.holds(request.probe, block):
            return block
        if request.file_slice is not None and self.file_constants.holds(request.file_slice, block):
            return block
        owner = self.records.get(block.key)
        same = self._stands_for(request.key, request.op) == self._stands_for(block.key, owner.op if owner else None)
        return block if same else None

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
            return current
        if current.block.mem_type != request.mem_type:
            raise _type_change(current, request.mem_type)
        if desc.size > min(cur_desc.size, current.block.size_bytes):
            reason = f"{desc.size} B do not fit the {cur_desc.size} B it has; assign it instead of restoring it"
            raise VariableError(str(key), reason, status=PARAM_INVALID)
        block = self._named_block(key, desc.size) or current.block
        return self._point(request, block, _offset(block, config))

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
        block = self.blocks.exact(logic_addr)
        if block is None:
            block = VarBlock(logic_addr, request.desc, request.mem_type, request.key, placed=False)
        elif block.mem_type != request.mem_type:
            raise _type_change(VarRecord(block.key, block.desc, block, 0, None), request.mem_type)
        self._index_weight(request, block)
        self._point(request, block, _offset(block, config))

    def _add_block(self, request: VarRequest, logic_addr: LogicAddr, *, status: int) -> VarBlock:
        """Make the block of a variable at an address, and all that is known by its address or weight."""
        op, extern = request.op, None
        if op is not None and op.op_type == CONSTPLACEHOLDER:
            try:
                extern = read_place_holder(op)
            except ValueError as error:
                raise VariableError(str(request.key), str(error), status=status) from error
        extern_addr, extern_size_bytes = extern if extern is not None else (None, 0)
        block = VarBlock(logic_addr, request.desc, request.mem_type, request.key, extern_addr, extern_size_bytes)
        self.blocks.add(block, status=status)
        if block.mem_type == MemType.RT_MEMORY_HBM:
            self.space.take(block.logic_addr, block.reserved_end)
            if extern_addr is None:
                self.owned_end = max(self.owned_end, block.reserved_end)
        self._index_weight(request, block)
        return block

    def _index_weight(self, request: VarRequest, block: VarBlock) -> None:
        """Let later variables with an equal weight share a block."""
        if request.probe is not None:
            self.constants.add(request.probe, block)
        if request.file_slice is not None:
            self.file_constants.add(request.file_slice, block)

    def _point(self, request: VarRequest, block: VarBlock, offset: int) -> VarRecord:
        """Make a key stand for a block, and its description the current one of its name."""
        key, desc = request.key, request.desc
        record, cur_desc = self.records.get(key), self.cur_descs.get(key.name)
        if record is None or record.block is not block:
            record = self.records[key] = VarRecord(key, desc, block, offset, request.op)
            self.cur_descs[key.name] = desc
        elif cur_desc is None or not cur_desc.same_description(desc):
            self.cur_descs[key.name] = desc
        return record

    def close_names(self, name: str) -> list[str]:
        """Return up to three names that are known and look like one that is not."""
        alike = (known for known in list(self.cur_descs) if abs(len(known) - len(name)) <= 3)
        return difflib.get_close_matches(name, islice(alike, _CLOSE_NAMES_LIMIT))


def _offset(block: VarBlock, config: MemoryConfig) -> int:
    """What GE keeps as the offset of a key that is pointed at a block by its logical address."""
    if block.mem_type != MemType.RT_MEMORY_HBM:
        return 0
    return (block.logic_addr - config.var_mem_logic_base) & UINT64_MAX


def _type_change(record: VarRecord, mem_type: MemType) -> VariableError:
    reason = f"it lies in {record.block.mem_type.name}, asked for is {MemType(mem_type).name}; keep the kind of memory"
    return VariableError(str(record.key), reason, status=PARAM_INVALID)
