"""Facts of a step that registers a variable: what GE and gevar's rules have under its name, key, weight and place."""

from gevar.types import DataType, Format, TensorDesc
from tests.golden.var.careful_blocks import POOL_TYPES, USABLE_KINDS, Block, is_unsound
from tests.golden.var.careful_tables import CarefulManager
from tests.golden.var.fact_words import Asked, Fact, Facts
from tests.golden.var.ge_pool import ModelManager
from tests.golden.var.ge_state import HBM, GeError, Resource
from tests.golden.var.ge_variables import place_holder_addr
from tests.golden.var.steps import Step
from tests.golden.var.traces import split_key
from tests.golden.var.values import Op


def key_collides(res: Resource, name: str, desc: TensorDesc) -> bool:
    """Whether GE's text of a key stands for another variable."""
    text, triple = res.key(name, desc), (res.key_name(name), int(desc.format), int(desc.dtype))
    return text in res.records and split_key(text, res) != triple


def register_facts(asked: Asked) -> Facts:
    step, ge, other, gevar = asked.step, asked.ge, asked.here, asked.gevar
    desc, op, res = step.tensor, step.op, asked.res
    return {
        **asked.life,
        "has_memory_manager": ge.has_mem_manager,
        "foreign_base": ge.resource is not None and ge.logic_base() != ge.sizes.var_mem_logic_base,
        "size": desc.size,
        "memory_type": step.mem_type,
        "kind_known": step.mem_type in USABLE_KINDS,
        "pool_known": step.mem_type in (HBM, *POOL_TYPES),
        "op_type": "" if op is None else op.op_type,
        "length": _int_attr(op, "length"),
        "place_holder_bad": _place_holder_bad(op) or is_unsound(op),
        "place_holder_unsound": is_unsound(op) and not _place_holder_bad(op),
        "fits_window": _fits_window(ge, desc, op),
        "replaces_block": _replaces_block(ge, res, step, desc, op),
        **_ge_blocks(ge, res, step.name, desc, op, step.mem_type),
        **_gevar_blocks(gevar, other, desc, other.op),
    }


def _int_attr(op: Op | None, name: str) -> int:
    value = 0 if op is None else op.attrs.get(name, 0)
    return value if isinstance(value, int) else 0


def _fits_window(ge: ModelManager, desc: TensorDesc, op: Op | None) -> bool:
    """Whether the node's output offset lies in the variable memory, with all of the data."""
    if op is None or not op.output_offsets or desc.size < 0:
        return False
    offset = op.output_offsets[0] - ge.sizes.var_mem_logic_base
    return 0 <= offset <= ge.sizes.var_mem_max_size - desc.size


def _replaces_block(ge: ModelManager, res: Resource, step: Step, desc: TensorDesc, op: Op | None) -> bool:
    """Whether a restored variable puts its description over that of another block at its address."""
    if op is None or not op.output_offsets:
        return False
    is_hbm = step.mem_type == HBM and ge.resource is not None
    address = op.output_offsets[0] - ge.sizes.var_mem_logic_base + (ge.logic_base() if is_hbm else 0)
    known = res.template.get(address)
    is_place_holder = op.op_type == "ConstPlaceHolder"
    return known is not None and (known.desc != desc or is_place_holder or known.is_extern)


def _place_holder_bad(op: Op | None) -> bool:
    if op is None or op.op_type != "ConstPlaceHolder":
        return False
    try:
        place_holder_addr(op)
    except GeError:
        return True
    return False


def _ge_blocks(
    ge: ModelManager, res: Resource, name: str, desc: TensorDesc, op: Op | None, mem_type: int
) -> dict[str, Fact]:
    current = res.cur_descs.get(res.key_name(name))
    record = None if current is None else res.records.get(res.key(name, current))
    own, donor = res.records.get(res.key(name, desc)), ge.donor(res, op) if current is None else None
    found, capacity, _ = ge.reusable(res, name, desc, op, mem_type)
    return {
        "key_known": own is not None,
        "key_collides": key_collides(res, name, desc),
        "name_known": current is not None,
        "same_form": current is not None and current.same_description(desc),
        "current_usable": record is not None,
        "current_size": -1 if current is None or record is None else current.size,
        "shares": donor is not None,
        "donor_size": -1 if donor is None else _block_size(res, donor.address, donor.desc),
        "donor_type": -1 if donor is None else donor.mem_type,
        "donor_length": -1 if donor is None else _int_attr(donor.op, "length"),
        "takes_space": (found is None or desc.size > capacity) and (mem_type == HBM or ge.has_mem_manager),
    }


def _block_size(res: Resource, address: int, desc: TensorDesc) -> int:
    return res.template[address].desc.size if address in res.template else desc.size


def _gevar_blocks(gevar: CarefulManager, step: Step, desc: TensorDesc, op: Op | None) -> dict[str, Fact]:
    if gevar.resource is None:
        return {**dict.fromkeys(GEVAR_BLOCKS, False), "gevar_own_size": -1, "gevar_current_size": -1}
    key = gevar.triple(step.name, desc)
    own, current, cur_desc = gevar.tables.entries.get(key), gevar.current(key[0]), gevar.resource.cur_descs.get(key[0])
    known = gevar.known_block(key, desc.size)
    shared = gevar.equal_block(op, desc.size, step.mem_type) if known is None and gevar.is_new(key) else None
    is_new = known is None and shared is None
    return {
        "gevar_own_size": -1 if own is None else own.block.size,
        "gevar_current_size": -1 if cur_desc is None or current is None else min(cur_desc.size, current.block.size),
        "gevar_key_known": own is not None,
        "gevar_same_form": cur_desc is not None and cur_desc.same_description(desc),
        "gevar_type_differs": _type_differs(gevar, step, desc),
        "gevar_shares": shared is not None,
        "gevar_new_block": is_new,
        "revival_fails": known is not None and _place_holder_fails(known, op),
        "in_the_way": _in_the_way(gevar, desc.size),
        "no_room": is_new and (_no_room(gevar, desc.size) if step.mem_type == HBM else not gevar.has_mem_manager),
        "overlaps": _overlaps(gevar, step, desc, op),
    }


def _type_differs(gevar: CarefulManager, step: Step, desc: TensorDesc) -> bool:
    """Whether the kind of memory of what a registration touches is another than the one asked for."""
    assert gevar.resource is not None
    key = gevar.triple(step.name, desc)
    own, current = gevar.tables.entries.get(key), gevar.current(key[0])
    if "addr" in step.args:
        block = gevar.tables.blocks.get(step.addr)
        return own is None and block is not None and block.mem_type != step.mem_type
    touched = [entry.block.mem_type for entry in (own, current) if entry is not None]
    if step.operation == "RestoreVarMem":
        same = current is not None and gevar.resource.cur_descs[key[0]].same_description(desc)
        touched = [current.block.mem_type] if current is not None and not same else []
    return any(mem_type != step.mem_type for mem_type in touched)


def _place_holder_fails(block: Block, op: Op | None) -> bool:
    """Whether a place holder of another process would get memory from a node whose attributes are wrong."""
    is_told = block.extern is not None and not block.extern[2]
    return is_told and (_place_holder_bad(op) or is_unsound(op))


GEVAR_BLOCKS = (
    *("gevar_own_size", "gevar_current_size", "gevar_key_known", "gevar_same_form"),
    *("gevar_type_differs", "gevar_shares"),
    *("revival_fails", "gevar_new_block", "in_the_way", "no_room", "overlaps"),
)


def _in_the_way(gevar: CarefulManager, size: int) -> bool:
    """Whether the place right behind the last one is taken."""
    if size < 0:
        return False
    start = gevar.sizes.var_mem_logic_base + gevar.tables.next_offset
    end = start + gevar.get_var_malloc_size(gevar_desc(size))
    return any(one < end and other > start for one, other in gevar.tables.reserved)


def gevar_desc(size: int) -> TensorDesc:
    return TensorDesc(DataType.DT_INT8, Format.FORMAT_ND, (size,), size=size)


def _no_room(gevar: CarefulManager, size: int) -> bool:
    if size < 0:
        return False
    try:
        gevar.find_place(size, HBM)
    except GeError:
        return True
    return False


def _overlaps(gevar: CarefulManager, step: Step, desc: TensorDesc, op: Op | None) -> bool:
    """Whether a variable cannot be restored where its node says, for another one lies there."""
    if op is None or not op.output_offsets or step.mem_type in POOL_TYPES:
        return False
    base = gevar.sizes.var_mem_logic_base
    addr = op.output_offsets[0] if step.mem_type == HBM else op.output_offsets[0] - base
    key = gevar.triple(step.name, desc)
    return gevar.compiled_block(key, desc, addr, op, step.mem_type) is None and gevar.tables.is_taken(addr, desc.size)
