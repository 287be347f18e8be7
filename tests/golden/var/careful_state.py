"""The careful answers for stored states (edge 24), as `docs/differences.md` describes them, in plain tables."""

from collections.abc import Mapping
from typing import Any

from gevar.proto.tensor_descriptor import tensor_desc_from_proto
from gevar.types import TensorDesc
from tests.golden.var.careful_blocks import INT64_MAX, KINDS, POOL_TYPES, Block, Entry, Key, Tables
from tests.golden.var.ge_state import GUARD_BYTES, HBM, OTHER_VERSION, PARAM_INVALID, GeError, Resource, align
from tests.golden.var.ge_tables import broadcast_fields, road_of


class Refusal(GeError):
    """A message that cannot be, or does not go with what is there; it changes nothing."""

    def __init__(self, reason: str) -> None:
        super().__init__(PARAM_INVALID)
        self.reason = reason


def refuse(reason: str, condition: bool) -> None:
    if condition:
        raise Refusal(reason)


def read_state(info: Any) -> tuple[Resource, Tables]:
    """Return the tables that a message holds.

    Raises
    ------
    GeError
        Something in the message cannot be, or contradicts something else in it.
    """
    message = info.var_resource
    refuse("version", info.version > OTHER_VERSION)
    refuse("number", info.var_mem_logic_base > INT64_MAX)
    for kind, figures in info.mem_resource_map.items():
        refuse("kind", kind not in (HBM, *POOL_TYPES))
        refuse("number", figures.var_mem_size > INT64_MAX)
    res, tables = Resource(info.session_id), Tables()
    res.cur_descs = {name: tensor_desc_from_proto(desc) for name, desc in message.cur_var_tensor_desc_map.items()}
    res.roads = {name: road_of(steps) for name, steps in message.var_to_trans_road.items()}
    res.changed = dict(message.var_names_to_changed_graph_id)
    res.allocated = dict(message.var_names_to_allocated_graph_id)
    res.broadcasts = {
        graph: {name: broadcast_fields(one) for name, one in infos.broadcast_info.items()}
        for graph, infos in message.var_broad_cast_info.items()
    }
    records = _records(message, res.cur_descs)
    _read_blocks(message, tables, records)
    _read_entries(message, tables, records)
    return res, tables


def _records(message: Any, names: Mapping[str, TensorDesc]) -> dict[Key, Any]:
    """Records by key, in rising order."""
    found: dict[Key, Any] = {}
    for text, record in message.var_addr_mgr_map.items():
        desc = tensor_desc_from_proto(record.desc)
        suffix = f"{int(desc.format)}_{int(desc.dtype)}"
        refuse("key", not text.endswith(suffix))
        refuse("kind", record.memory_type not in KINDS)
        name = text.removesuffix(suffix)
        without = name.removesuffix("_")
        key = (without if name not in names and without in names else name, int(desc.format), int(desc.dtype))
        refuse("key", key in found)
        found[key] = record
    return dict(sorted(found.items()))


def _read_blocks(message: Any, tables: Tables, records: Mapping[Key, Any]) -> None:
    kinds = message.var_offset_map
    refuse("lonely", set(kinds) != set(message.var_dev_addr_mgr_map))
    for addr, place in sorted(message.var_dev_addr_mgr_map.items()):
        desc = tensor_desc_from_proto(place.desc)
        refuse("kind", kinds[addr] not in KINDS)
        refuse("block", place.address != addr or desc.size < 0)
        refuse("block", addr + align(desc.size) + GUARD_BYTES > INT64_MAX)
        if kinds[addr] not in POOL_TYPES:
            extern = (place.dev_addr, desc.size, False) if place.dev_addr else None
            key = (_maker(records, addr, desc), int(desc.format), int(desc.dtype))
            add_block(tables, Block(addr, desc, kinds[addr], key, extern))


def add_block(tables: Tables, block: Block) -> None:
    refuse("overlap", tables.is_taken(block.addr, block.size))
    tables.blocks[block.addr] = block
    if block.mem_type == HBM:
        tables.reserved.append((block.addr, block.reserved_end))


def _maker(records: Mapping[Key, Any], addr: int, desc: TensorDesc) -> str:
    """The name a block was most likely made for."""
    here = {key: tensor_desc_from_proto(record.desc) for key, record in records.items() if record.address == addr}
    exact = [key[0] for key, known in here.items() if known == desc]
    return (exact or [key[0] for key in here] or [""])[0]


def _read_entries(message: Any, tables: Tables, records: Mapping[Key, Any]) -> None:
    kinds, named = message.var_offset_map, dict[tuple[str, int, int], Block]()
    for key, record in records.items():
        desc, place = tensor_desc_from_proto(record.desc), (key[0], record.address, record.memory_type)
        if record.address not in kinds and (place not in named or desc.size > named[place].size):
            named[place] = Block(record.address, desc, record.memory_type, key)
    for key, record in records.items():
        addr, kind = record.address, record.memory_type
        refuse("kind", kinds.get(addr, kind) != kind)
        if addr in kinds and kind in POOL_TYPES:
            continue
        block = tables.blocks[addr] if addr in kinds else named[key[0], addr, kind]
        tables.entries[key] = Entry(tensor_desc_from_proto(record.desc), block, record.offset, None)


def check_agree(mine: Mapping[Any, Any], theirs: Mapping[Any, Any]) -> None:
    """What both have must be equal."""
    refuse("conflict", any(mine[key] != theirs[key] for key in mine.keys() & theirs.keys()))


def check(res: Resource, tables: Tables, incoming: Resource, new: Tables, same_base: bool) -> None:
    """Raise where a message does not go with what is there."""
    blocks = [*new.blocks.values(), *(entry.block for entry in new.entries.values())]
    refuse("base", not same_base and any(block.mem_type == HBM for block in blocks))
    _check_blocks(tables, new)
    check_agree(res.cur_descs, incoming.cur_descs)
    check_agree(res.roads, incoming.roads)
    check_agree(res.changed, incoming.changed)
    check_agree(res.allocated, incoming.allocated)
    for graph, infos in incoming.broadcasts.items():
        check_agree(res.broadcasts.get(graph, {}), infos)


def merge(res: Resource, tables: Tables, incoming: Resource, new: Tables, same_base: bool) -> None:
    """Add what a message has and the manager does not; check all of it first.

    Raises
    ------
    GeError
        They contradict each other. Nothing has changed.
    """
    check(res, tables, incoming, new, same_base)
    for block in new.blocks.values():
        if block.addr not in tables.blocks:
            add_block(tables, block)
    for key, entry in new.entries.items():
        if key not in tables.entries:
            entry.block = tables.blocks.get(entry.block.addr, entry.block)
            tables.entries[key] = entry
    res.cur_descs |= incoming.cur_descs
    res.roads |= incoming.roads
    res.changed |= incoming.changed
    res.allocated |= incoming.allocated
    for graph, infos in incoming.broadcasts.items():
        res.broadcasts[graph] = res.broadcasts.get(graph, {}) | infos


def _check_blocks(tables: Tables, new: Tables) -> None:
    for block in new.blocks.values():
        known = tables.blocks.get(block.addr)
        if known is None:
            refuse("overlap", tables.is_taken(block.addr, block.size))
        else:
            refuse("conflict", (known.desc, known.mem_type) != (block.desc, block.mem_type))
            refuse("conflict", (known.extern is None) != (block.extern is None))
    for key, entry in new.entries.items():
        mine, here = tables.entries.get(key), tables.blocks.get(entry.block.addr)
        if mine is None:
            refuse("kind", here is not None and here.mem_type != entry.block.mem_type)
        else:
            place = (mine.block.addr, mine.block.mem_type, mine.desc)
            refuse("conflict", place != (entry.block.addr, entry.block.mem_type, entry.desc))
