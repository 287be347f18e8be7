"""Facts of a step that asks for device memory, gives it back, or asks whether data is loaded."""

from collections.abc import Mapping

from gevar.types import TensorDesc
from tests.golden.facts import Json
from tests.golden.var.careful_blocks import POOL_TYPES, Block
from tests.golden.var.careful_memory import Device, in_place_holder, initial_bytes
from tests.golden.var.careful_tables import CarefulManager
from tests.golden.var.fact_words import Asked, Facts, careful
from tests.golden.var.ge_memory import HUGE_PAGE_OPTION, holder
from tests.golden.var.ge_pool import ModelManager, ModelPool
from tests.golden.var.ge_state import HBM, RDMA
from tests.golden.var.steps import Step


def resolve_facts(asked: Asked) -> Facts:
    step, ge, other, gevar = asked.step, asked.ge, asked.here, asked.gevar
    res, addr, mem_type = asked.res, step.addr, step.mem_type
    records = res.devices.get(step.device, {})
    all_records = {base: records.get(base, template) for base, template in res.template.items()} | records
    base = holder(all_records, addr)
    record = None if base is None else all_records[base]
    block = gevar.block_of(other.addr) if gevar.resource is not None else None
    device = gevar.on.get(step.device, Device())
    extern = None if block is None else block.extern
    region, external = device.region if mem_type == HBM else None, ge.external is not None and mem_type == HBM
    only_huge = ge.around.options.get(HUGE_PAGE_OPTION) == "1"
    asks = ge.has_mem_manager and mem_type != RDMA and not external and (ge.expandable is not None or not only_huge)
    return {
        **asked.life,
        "has_memory_manager": ge.has_mem_manager,
        "memory_type": mem_type,
        "inner": 0 if block is None else other.addr - block.addr,
        "place_holder": extern is not None,
        "place_holder_live": extern is not None and extern[2],
        "in_place_holder": block is not None
        and extern is not None
        and in_place_holder(extern, other.addr - block.addr) is not None,
        "place_holder_addr": _place_holder_addr(block, other.addr),
        "initial_hex": _initial_hex(block, other),
        "pool_block": block is not None and block.mem_type in POOL_TYPES,
        "known_address": record is not None,
        "gevar_known_address": block is not None,
        "gevar_gets_memory": block is not None and (block.addr in device.pieces or _finds_room(gevar, device, block)),
        "has_init": block is not None and block.desc.init_value is not None,
        "init_fits": block is None or initial_bytes(block.desc) is not None,
        "asks_memory": asks and record is not None and not record.dev_addr,
        "gets_memory": asks and record is not None and not record.dev_addr and _has_room(ge, record.desc),
        "external": external,
        "in_region": external and ge.memory_addr(addr, mem_type, step.device) is not None,
        "gevar_serves": block is not None and (block.addr in device.pieces or device.is_usable or not only_huge),
        "gevar_external": region is not None,
        "region_short": region is not None and region.size_bytes < gevar.needed_bytes(),
        "expandable": ge.expandable is not None,
        "gevar_expandable": device.is_usable,
    }


def _place_holder_addr(block: Block | None, addr: int) -> Mapping[str, Json]:
    """Address in the memory of a place holder, as a result states it."""
    start = block.extern[0] if block is not None and block.extern is not None else 0
    return {"space": "absolute", "off": start + (0 if block is None else addr - block.addr)}


def _initial_hex(block: Block | None, step: Step) -> str:
    """Bytes that a step reads of a variable with an initial value and nothing else; absent where it reads none."""
    if block is None or "read" not in step.args:
        return "absent"
    start, count = step.addr - block.addr, step.args["read"]
    return (initial_bytes(block.desc) or b"")[start : start + count].ljust(count, b"\0").hex()


def _has_room(ge: ModelManager, desc: TensorDesc) -> bool:
    """Whether a source has memory for a variable."""
    sources, size_bytes = ge.around.sources, ge.get_var_malloc_size(desc)
    limits = [] if ge.around.options.get(HUGE_PAGE_OPTION) == "1" else [(sources.device, sources.device_limit_bytes)]
    if ge.expandable is not None:
        limits.append((sources.expandable, ge.expandable.capacity_bytes))
    return any(limit is None or source.handed_out_bytes + size_bytes <= limit for source, limit in limits)


def _finds_room(gevar: CarefulManager, device: Device, block: Block) -> bool:
    """Whether a source has memory for a block by gevar's rules."""
    sources, size_bytes = gevar.around.sources, gevar.get_var_malloc_size(block.desc)
    limits = [] if gevar.huge_page_only else [(sources.device, sources.device_limit_bytes)]
    if device.is_usable:
        limits.append((sources.expandable, device.expandables[-1].capacity_bytes))
    return any(limit is None or source.handed_out_bytes + size_bytes <= limit for source, limit in limits)


def free_all_facts(asked: Asked) -> Facts:
    """What any of the managers of a pool has to free."""
    ge, gevar = asked.step.pool, asked.here.pool
    assert isinstance(ge, ModelPool)
    assert isinstance(gevar, ModelPool)
    names = free_facts(asked).keys()
    pairs = [(ge.manager(one), careful(gevar.manager(one))) for one in sorted(ge.managers)]
    found = [free_facts(Asked(asked.step, one, asked.here, other)) for one, other in pairs]
    return {name: any(bool(facts[name]) for facts in found) for name in names}


def free_facts(asked: Asked) -> Facts:
    ge, other, gevar = asked.ge, asked.here, asked.gevar
    devices = gevar.on.values()
    pieces = [piece for device in devices for piece in device.pieces.values()]
    allocators = sum(len(device.expandables) for device in devices)
    return {
        **asked.life,
        "has_memory_manager": ge.has_mem_manager,
        "flags_set": any(device.ready or device.loaded for device in devices),
        "held": all(asked.life.values()) and any(manager is gevar for manager in other.replay.held.values()),
        "frees_unmanaged": bool(pieces or allocators) and not ge.has_mem_manager,
        "mixed_owners": allocators != int(ge.expandable is not None)
        or any(piece.is_plain == (ge.expandable is not None) for piece in pieces)
        or any(piece.is_plain and piece.mem_type != HBM for piece in pieces),
    }


def loaded_facts(asked: Asked) -> Facts:
    step, gevar = asked.step, asked.gevar
    op = step.op
    addr, own = (None if one is None else one.load_addr for one in (op, asked.here.op))
    known = own is not None and gevar.is_var_addr(own)
    return {
        **asked.life,
        "gevar_loaded": known and own in gevar.device(step.device).loaded,
        "nameless": op is not None and not op.name,
        "has_offset": addr is not None,
        "known_address": addr is not None and asked.ge.is_var_addr(addr),
        "gevar_known_address": known,
    }
