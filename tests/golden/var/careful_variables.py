"""The careful answers for names, keys and logical addresses, as `docs/differences.md` describes them."""

from dataclasses import replace

from gevar.types import TensorDesc
from tests.golden.var.careful_blocks import (
    INT64_MAX,
    POOL_TYPES,
    USABLE_KINDS,
    Block,
    Entry,
    Key,
    checked_place_holder,
    slice_of,
    weight_of,
)
from tests.golden.var.careful_space import CarefulSpace
from tests.golden.var.ge_state import (
    FAILED,
    HBM,
    INTERNAL_ERROR,
    PARAM_INVALID,
    RESERVED,
    GeError,
)
from tests.golden.var.ge_variables import ND_OUTPUT
from tests.golden.var.values import Op


class CarefulVariables(CarefulSpace):
    """A manager that gives GE's answers but at the sharp edges."""

    def init(self, version: int, session_id: int, device_id: int, job_id: int) -> None:
        """Edge 1: only under the session id of the pool."""
        if self.resource is None and session_id != self.pool_key:
            raise GeError(PARAM_INVALID)
        super().init(version, session_id, device_id, job_id)

    def assign_var_mem(self, name: str, desc: TensorDesc, op: Op | None, mem_type: int) -> None:
        self.need(PARAM_INVALID)
        self.space(mem_type)
        key = self.triple(name, desc)
        if desc.size < 0:
            raise GeError(INTERNAL_ERROR)
        for entry in (self.tables.entries.get(key), self.current(key[0])):
            self.refuse_other_type(entry, mem_type)
        block = self.known_block(key, desc.size)
        if block is None and self.is_new(key):
            block = self.equal_block(op, desc.size, mem_type)
        if block is not None:
            self.revive(block, op, INTERNAL_ERROR)
            self.point(key, desc, block, self.offset_of(block), op)
            return
        extern = checked_place_holder(op, INTERNAL_ERROR)
        raw, addr = self.find_place(desc.size, mem_type)
        self.add_block(key, desc, addr, mem_type, op, extern, INTERNAL_ERROR)
        self.take_place(raw, desc.size, mem_type, is_place_holder=extern is not None)
        self.point(key, desc, self.tables.blocks[addr], raw, op)

    def revive(self, block: Block, op: Op | None, status: int) -> None:
        """Edge 24: a place holder of another process gets the memory that its node names."""
        if block.extern is not None and not block.extern[2]:
            block.extern = checked_place_holder(op, status) or block.extern

    def is_new(self, key: Key) -> bool:
        assert self.resource is not None
        return key not in self.tables.entries and key[0] not in self.resource.cur_descs

    def refuse_other_type(self, entry: Entry | None, mem_type: int) -> None:
        """Edge 9: the kind of memory of a variable does not change."""
        if entry is not None and entry.block.mem_type != mem_type:
            raise GeError(PARAM_INVALID)

    def known_block(self, key: Key, size: int) -> Block | None:
        """Edge 8: the key's own block if it is large enough, else that of the current form if that is."""
        assert self.resource is not None
        own, current, desc = self.tables.entries.get(key), self.current(key[0]), self.resource.cur_descs.get(key[0])
        if own is not None and size <= own.block.size:
            return own.block
        if desc is None or current is None or size > min(desc.size, current.block.size):
            return None
        return current.block

    def equal_block(self, op: Op | None, size: int, mem_type: int) -> Block | None:
        """Edges 11 and 12: the oldest block with this weight that is large enough."""
        found = [block for block in self.holding(op) if size <= block.size and block.mem_type == mem_type]
        return found[0] if found else None

    def holding(self, op: Op | None) -> list[Block]:
        """Blocks that hold an operator's weight."""
        content, piece = weight_of(op), slice_of(op)
        if content is not None:
            return [block for value, code, block in self.tables.weights if (value, code) == content]
        return [block for known, block in self.tables.slices if known == piece]

    def restore_var_mem(self, name: str, desc: TensorDesc, op: Op | None, mem_type: int) -> None:
        res, key = self.need(PARAM_INVALID), self.triple(name, desc)
        if desc.size < 0 or mem_type not in USABLE_KINDS:
            raise GeError(PARAM_INVALID)
        current = self.current(key[0])
        if current is not None:
            self.restore_known(key, desc, op, mem_type, current, res.cur_descs[key[0]])
            return
        if key in self.tables.entries or op is None or not op.output_offsets:
            raise GeError(PARAM_INVALID)
        base = self.sizes.var_mem_logic_base
        offset = op.output_offsets[0] - base
        if not 0 <= offset <= min(self.sizes.var_mem_max_size, INT64_MAX - base) - desc.size:
            raise GeError(PARAM_INVALID)
        addr = offset + base if mem_type == HBM else offset
        extern = checked_place_holder(op, PARAM_INVALID)
        block = self.compiled_block(key, desc, addr, op, mem_type)
        if block is None:
            if mem_type in POOL_TYPES:
                block = self.name_address(key, desc, addr, mem_type, op)
                block.extern = extern
                self.tables.pool_blocks[addr] = block
            else:
                self.add_block(key, desc, addr, mem_type, op, extern, PARAM_INVALID)
                block = self.tables.blocks[addr]
        self.point(key, desc, block, offset, op)

    def restore_known(
        self, key: Key, desc: TensorDesc, op: Op | None, mem_type: int, current: Entry, cur_desc: TensorDesc
    ) -> None:
        if cur_desc.same_description(desc):
            self.revive(current.block, op, PARAM_INVALID)
            return
        self.refuse_other_type(current, mem_type)
        if desc.size > min(cur_desc.size, current.block.size):
            raise GeError(PARAM_INVALID)
        block = self.known_block(key, desc.size) or current.block
        self.point(key, desc, block, self.offset_of(block), op)

    def compiled_block(self, key: Key, desc: TensorDesc, addr: int, op: Op | None, mem_type: int) -> Block | None:
        """Edge 19: a restored variable shares the place of an equal weight, or of the variable it refers to."""
        block = self.tables.blocks.get(addr)
        if block is None or desc.size > block.size or mem_type != block.mem_type:
            return None
        owner = self.tables.entries.get(block.key)
        same = self.stands_for(key, op) == self.stands_for(block.key, owner.op if owner else None)
        return block if same or block in self.holding(op) else None

    def stands_for(self, key: Key, op: Op | None) -> str:
        source = None if op is None else op.attrs.get("ref_var_src_var_name")
        assert self.resource is not None
        return self.resource.key_name(source) if isinstance(source, str) and source else key[0]

    def set_var_addr(self, name: str, desc: TensorDesc, addr: int, mem_type: int, op: Op | None) -> None:
        res, key = self.need(INTERNAL_ERROR), self.triple(name, desc)
        if mem_type not in USABLE_KINDS:
            raise GeError(PARAM_INVALID)
        if key in self.tables.entries:
            res.cur_descs[key[0]] = desc
            return
        block = self.tables.blocks.get(addr)
        if block is None:
            block = self.name_address(key, desc, addr, mem_type, op)
        elif block.mem_type != mem_type:
            raise GeError(PARAM_INVALID)
        else:
            self.remember_weight(op, block)
        self.point(key, desc, block, self.offset_of(block), op)

    def name_address(self, key: Key, desc: TensorDesc, addr: int, mem_type: int, op: Op | None) -> Block:
        """A block where nothing lies as far as the manager knows."""
        block = Block(addr, desc, mem_type, key)
        self.remember_weight(op, block)
        return block

    def get_var_addr(self, name: str, desc: TensorDesc) -> tuple[int, int]:
        self.need(INTERNAL_ERROR)
        entry = self.tables.entries.get(self.triple(name, desc))
        if entry is None:
            raise GeError(INTERNAL_ERROR)
        return entry.block.addr, entry.block.mem_type

    def renew_cur_var_desc(self, name: str, desc: TensorDesc) -> None:
        """Edge 20: checked first, moved in one step."""
        res = self.need(INTERNAL_ERROR)
        key_name = res.key_name(name)
        if key_name not in res.cur_descs:
            return
        current = res.cur_descs[key_name]
        old = (key_name, int(current.format), int(current.dtype))
        new = (key_name, int(desc.format), int(current.dtype))
        entry = self.tables.entries.get(old)
        if entry is None:
            raise GeError(FAILED)
        if new != old and new in self.tables.entries:
            raise GeError(PARAM_INVALID)
        del self.tables.entries[old]
        form = entry.desc.replace(format=desc.format, origin_format=desc.origin_format)
        self.tables.entries[new] = replace(entry, desc=form)
        res.cur_descs[key_name] = current.replace(format=desc.format, origin_format=desc.origin_format)
        self.rename_ready(old, new)

    def rename_ready(self, old: Key, new: Key) -> None:
        raise NotImplementedError

    def renew_cur_var_desc_by_op(self, name: str, op: Op | None) -> None:
        """Edge 6: neither tables nor a node is a wrong argument."""
        res = self.need(PARAM_INVALID if op is None else INTERNAL_ERROR)
        if res.key_name(name) in res.cur_descs and op is None:
            raise GeError(FAILED)
        self.renew_cur_var_desc(name, op.outputs[0] if op is not None and op.outputs else ND_OUTPUT)

    def is_var_exist(self, name: str, desc: TensorDesc | None) -> bool:
        if self.resource is None:
            return False
        if desc is None:
            return self.resource.key_name(name) in self.resource.cur_descs
        return self.triple(name, desc) in self.tables.entries

    def is_var_addr(self, addr: int) -> bool:
        return self.get_var_mem_type(addr) != RESERVED

    def get_var_mem_type(self, addr: int) -> int:
        if self.resource is None:
            return RESERVED
        block = self.tables.blocks.get(addr) or self.tables.pool_blocks.get(addr)
        return RESERVED if block is None else block.mem_type
