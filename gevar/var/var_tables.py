"""Tables of a session's variables, and the changes that everything else is made of.

A key (name, format, data type) stands for a block; several keys may stand for one. A name has one current description.
Every change checks first, so one that raises has changed nothing.

Source: GE source, base/graph/manager/graph_var_manager.h, VarResource.
"""

import difflib
from itertools import islice
from typing import Final

from gevar.errors import VariableError
from gevar.status import FAILED, PARAM_INVALID
from gevar.types import LogicAddr, MemType, TensorDesc
from gevar.var.address_index import AddressIndex
from gevar.var.const_place_holder import read_place_holder
from gevar.var.constant_index import ConstantIndex
from gevar.var.file_constant_index import FileConstantIndex
from gevar.var.graph_tables import GraphTables
from gevar.var.logic_space import LogicSpace
from gevar.var.placing import Placing
from gevar.var.var_block import ExternMemory, NamedBlock, PlaceHolderBlock, SharingRecord, VarBlock, VarRecord
from gevar.var.var_key import KeyTuple, VarKey
from gevar.var.var_op import CONSTPLACEHOLDER, VarOp
from gevar.var.var_request import VarRequest

_CLOSE_NAMES_LIMIT: Final = 1000  # names of a similar length that a misspelt one is compared with


class VarTables:
    """Tables of the variables of one session.

    Attributes
    ----------
    records : dict
        Record per key.
    cur_descs : dict
        Current description per batch key name.
    blocks : AddressIndex
        Blocks by logical address.
    extern_memory : dict
        Memory of the caller's per logical address of a place holder's block.
    pool_blocks : dict
        Blocks of restored variables in memory of a pool, by the logical address their model gave them: the manager
        knows of no memory there.
    space : LogicSpace
        Ranges of HBM's logical space that blocks take.
    owned_end : int
        First logical address after every HBM block whose memory is the manager's; 0 while there is none.
    constants, file_constants
        Blocks by the weight they hold.
    batch_names : dict
        Key name per batch variable name.
    graphs : GraphTables
        What graphs did to variables.
    is_restored : bool
        Whether they were filled from a message, which may count space that no block takes, and describe a name that has
        no address.

    Thread safety: one writer at a time, under the manager's lock; `find_record`, `blocks` and the look-up of weights
    may run beside it.
    """

    def __init__(self) -> None:
        self.records: dict[KeyTuple, VarRecord] = {}
        self.cur_descs: dict[str, TensorDesc] = {}
        self.blocks = AddressIndex()
        self.extern_memory: dict[LogicAddr, ExternMemory] = {}
        self.pool_blocks: dict[int, VarBlock] = {}
        self.space = LogicSpace()
        self.owned_end = 0
        self.constants = ConstantIndex()
        self.file_constants = FileConstantIndex()
        self.batch_names: dict[str, str] = {}
        self.graphs = GraphTables()
        self.is_restored = False

    def copy(self) -> "VarTables":
        """Return tables with the same content, apart from these; records and blocks, which never change, are shared."""
        copied = VarTables()
        copied.records, copied.cur_descs, copied.blocks = dict(self.records), dict(self.cur_descs), self.blocks.copy()
        copied.extern_memory, copied.pool_blocks = dict(self.extern_memory), dict(self.pool_blocks)
        copied.space, copied.owned_end = self.space.copy(), self.owned_end
        copied.constants, copied.file_constants = self.constants.copy(), self.file_constants.copy()
        copied.batch_names, copied.graphs = dict(self.batch_names), self.graphs.copy()
        copied.is_restored = self.is_restored
        return copied

    def take_over(self, copied: "VarTables") -> None:
        """Become what a copy of these tables is, which is not used any more."""
        self.records, self.cur_descs, self.blocks = copied.records, copied.cur_descs, copied.blocks
        self.extern_memory, self.pool_blocks = copied.extern_memory, copied.pool_blocks
        self.space.assign(copied.space)  # the kinds of memory hold it
        self.owned_end = copied.owned_end
        self.constants, self.file_constants = copied.constants, copied.file_constants
        self.batch_names, self.graphs = copied.batch_names, copied.graphs
        self.is_restored = copied.is_restored

    def key_name(self, name: str) -> str:
        """Return the name under which a variable is kept."""
        return self.batch_names.get(name, name)

    def var_key(self, name: str, desc: TensorDesc) -> VarKey:
        """Return the key of a variable with a description."""
        return VarKey._make((self.batch_names.get(name, name), desc.format, desc.dtype))

    def find_record(self, name: str, desc: TensorDesc) -> VarRecord | None:
        """Return what a name and a description stand for; None where they were never registered."""
        return self.records.get((self.batch_names.get(name, name), desc.format, desc.dtype))

    def cur_desc(self, name: str) -> TensorDesc | None:
        """Return the current description of a name; None where it has none."""
        return self.cur_descs.get(self.batch_names.get(name, name))

    def find_current(self, key_name: str) -> VarRecord | None:
        """Return what a batch key name stands for with its current description."""
        desc = self.cur_descs.get(key_name)
        return None if desc is None else self.records.get((key_name, desc.format, desc.dtype))

    def starts_at(self, logic_addr: int) -> VarBlock | None:
        """Return the block of the variable that was assigned or restored at an address."""
        return self.blocks.exact(logic_addr) or self.pool_blocks.get(logic_addr)

    def close_names(self, name: str) -> list[str]:
        """Return up to three names that are known and look like one that is not."""
        alike = (known for known in list(self.cur_descs) if abs(len(known) - len(name)) <= 3)
        return difflib.get_close_matches(name, islice(alike, _CLOSE_NAMES_LIMIT))

    def renew(self, key_name: str, desc_format: int, origin_format: int) -> tuple[VarKey, VarKey]:
        """Give the current form of a name another format; its block, shape, data type and size stay.

        Returns
        -------
        tuple
            The key it had, and the key it has now.

        Raises
        ------
        VariableError
            The current form has no address (status FAILED), or the name is there in the other format already (status
            PARAM_INVALID).
        """
        cur_desc = self.cur_descs[key_name]
        old = VarKey(key_name, cur_desc.format, cur_desc.dtype)
        new = old._replace(format=desc_format)
        record = self.records.get(old)
        if record is None:
            raise VariableError(str(old), "its current form has no address; assign it first", status=FAILED)
        if new != old and new in self.records:
            reason = f"its current form {old} cannot become this one, which is there already; keep its format"
            raise VariableError(str(new), reason, status=PARAM_INVALID)
        renewed = record.desc.replace(format=desc_format, origin_format=origin_format)
        self.records[new] = SharingRecord(key_name, renewed, record.block, record.offset, record.op, record.placing)
        self.cur_descs[key_name] = cur_desc.replace(format=desc_format, origin_format=origin_format)
        if new != old:
            del self.records[old]
        return old, new

    def _add_block(
        self,
        request: VarRequest,
        logic_addr: LogicAddr,
        offset: int,
        extern: ExternMemory | None,
        placing: Placing,
        *,
        status: int,
    ) -> VarBlock:
        """Make the block of a variable at an address, and all that is known by its address or weight."""
        make, desc = VarBlock if extern is None else PlaceHolderBlock, request.desc
        block = make(request.key.name, desc, logic_addr, request.mem_type, offset, request.op, placing)
        self.blocks.refuse_overlap(block, status=status)
        self.place_block(block, extern)
        self._index_weight(request, block)
        return block

    def _name_addr(self, request: VarRequest, logic_addr: LogicAddr, offset: int, placing: Placing) -> VarBlock:
        """Make a block that names an address: nothing lies there as far as the manager knows."""
        name, desc = request.key.name, request.desc
        block = NamedBlock(name, desc, logic_addr, request.mem_type, offset, request.op, placing)
        self._index_weight(request, block)
        return block

    def place_block(self, block: VarBlock, extern: ExternMemory | None) -> None:
        """Add a block that overlaps no other, and the caller's memory if it is a place holder's."""
        if extern is not None:
            self.extern_memory[block.logic_addr] = extern  # before the block can be found
        self.blocks.add(block)
        if block.mem_type == MemType.RT_MEMORY_HBM:
            end = block.reserved_end
            self.space.take(block.logic_addr, end)
            if extern is None and end > self.owned_end:
                self.owned_end = end

    def _index_weight(self, request: VarRequest, block: VarBlock) -> None:
        """Let later variables with an equal weight share a block."""
        if request.probe is not None:
            self.constants.add(request.probe, block)
        if request.file_slice is not None:
            self.file_constants.add(request.file_slice, block)

    def _own(self, request: VarRequest, block: VarBlock) -> VarBlock:
        """Make a key stand for the block that was made for it, and its description the current one of its name."""
        self.records[request.key] = block
        self.cur_descs[request.key.name] = request.desc
        return block

    def _point(self, request: VarRequest, block: VarBlock, offset: int, placing: Placing) -> VarRecord:
        """Make a key stand for a block that is there, and its description the current one of its name."""
        key, desc = request.key, request.desc
        record, cur_desc = self.records.get(key), self.cur_descs.get(key.name)
        if record is None or record.block is not block:
            record = self.records[key] = SharingRecord(key.name, desc, block, offset, request.op, placing)
            self.cur_descs[key.name] = desc
        elif cur_desc is None or not cur_desc.same_description(desc):
            self.cur_descs[key.name] = desc
        return record


def extern_memory_of(request: VarRequest, status: int) -> ExternMemory | None:
    """The caller's memory that a place holder names; None for any other node."""
    op: VarOp | None = request.op
    if op is None or op.op_type != CONSTPLACEHOLDER:
        return None
    try:
        return read_place_holder(op)
    except ValueError as error:
        raise VariableError(str(request.key), str(error), status=status) from error
