"""New variables in device memory that share nothing, one block after the other: what most variables of a model are.

`VarResource.assign` can place them as well; this does it for many in one loop.
"""

from collections.abc import Iterator
from typing import Final

from gevar.align import INT64_MAX, SESSION_MEM_ALIGN_BYTES, VAR_GUARD_BYTES
from gevar.types import LogicAddr, MemType, TensorDesc
from gevar.var.mem_resource import MemResource
from gevar.var.memory_config import MemoryConfig
from gevar.var.placing import Placing
from gevar.var.var_block import VarBlock
from gevar.var.var_op import CONSTANTOP, CONSTPLACEHOLDER, FILECONSTANT, VarOp
from gevar.var.var_tables import VarTables

VarItem = tuple[str, VarOp | None, TensorDesc]
"""Name, node and description of a variable, as `VarManager.assign_var_mem` takes them."""

WEIGHT_OP_TYPES: Final = frozenset({CONSTANTOP, FILECONSTANT, CONSTPLACEHOLDER})
"""Types of ops whose variables may share a block by their weight, or lie in memory of the caller's."""

_HBM: Final = MemType.RT_MEMORY_HBM  # looking up a member of an enum takes longer than a global name
_ASSIGNED: Final = Placing.ASSIGNED
_PADDED_BYTES: Final = VAR_GUARD_BYTES + SESSION_MEM_ALIGN_BYTES - 1  # `var_block_bytes` in two operations
_ALIGNED: Final = -SESSION_MEM_ALIGN_BYTES
_LAST_END: Final = INT64_MAX - _PADDED_BYTES  # near the end of 63 bits `VarResource.assign` decides


def assign_new(
    tables: VarTables, name: str, op: VarOp | None, desc: TensorDesc, hbm: MemResource, config: MemoryConfig
) -> VarBlock | None:
    """Place a variable behind all that is there; None where more than that decides.

    Parameters
    ----------
    tables
        The tables.
    name, op, desc
        The variable.
    hbm
        Logical space in device memory.
    config
        Sizes and logic base.
    """
    cur_descs, space, blocks = tables.cur_descs, tables.space, tables.blocks
    offset, size_bytes = hbm.next_offset, desc.size
    addr = config.var_mem_logic_base + offset
    if space.end > addr or blocks.end > addr or name in cur_descs or tables.batch_names or tables.is_restored:
        return None
    if size_bytes < 0 or offset + size_bytes > config.var_mem_max_size or addr + size_bytes > _LAST_END:
        return None
    block_bytes = size_bytes + _PADDED_BYTES & _ALIGNED
    block = VarBlock(name, desc, addr, _HBM, offset, op, _ASSIGNED)  # type: ignore[arg-type]  # see `assign_new_run`
    space.take(addr, addr + block_bytes)
    tables.owned_end = addr + block_bytes
    blocks.append(block)
    tables.records[name, desc.format, desc.dtype] = block
    cur_descs[name] = desc
    hbm.var_mem_size += block_bytes
    hbm.next_offset = offset + block_bytes
    return block


def assign_new_run(
    tables: VarTables, items: Iterator[VarItem], hbm: MemResource, config: MemoryConfig
) -> tuple[list[VarBlock], list[LogicAddr]]:
    """Do `assign_new` for variables in turn, up to the first one for which more decides.

    Parameters
    ----------
    tables
        The tables.
    items
        The variables. The one at which it ends is taken from the iterator, too.
    hbm
        Logical space in device memory.
    config
        Sizes and logic base.

    Returns
    -------
    tuple
        Blocks of the first items, in order, and their addresses; the item after them is for `VarResource.assign`.
    """
    base = config.var_mem_logic_base
    start = addr = base + hbm.next_offset
    blocks: list[VarBlock] = []
    addrs: list[LogicAddr] = []
    if tables.space.end > start or tables.blocks.end > start or tables.batch_names or tables.is_restored:
        next(items, None)
        return blocks, addrs
    records, cur_descs, limit = tables.records, tables.cur_descs, min(base + config.var_mem_max_size, _LAST_END)
    try:
        for name, op, desc in items:
            size_bytes = desc.size
            if name in cur_descs or not 0 <= size_bytes <= limit - addr or (op and op.op_type in WEIGHT_OP_TYPES):
                break
            block = VarBlock(name, desc, addr, _HBM, addr - base, op, _ASSIGNED)  # type: ignore[arg-type]
            addrs.append(addr)  # type: ignore[arg-type]  # a call of LogicAddr would take as long as the rest
            blocks.append(block)
            records[name, desc.format, desc.dtype] = block
            cur_descs[name] = desc
            addr += size_bytes + _PADDED_BYTES & _ALIGNED
    except BaseException:
        for block in blocks:
            records.pop(block.key, None)
            cur_descs.pop(block.name, None)
        raise
    if blocks:
        tables.space.take(start, addr)
        tables.owned_end = addr
        tables.blocks.extend(addrs, blocks)
        hbm.var_mem_size += addr - start
        hbm.next_offset = addr - base
    return blocks, addrs
