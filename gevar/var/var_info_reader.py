"""From a message to the state of a manager, which is sound in itself or refused.

Addresses of device memory are told, not trusted: they are those of the process that wrote the message. Memory of a pool
has no other address, so its variables come back with their description alone.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::VarManagerToDeserial,
VarResource::VarResourceFromDeserial.
Differs: edge 24 of docs/differences.md.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gevar.align import INT64_MAX, var_block_bytes
from gevar.errors import SizeOverflowError
from gevar.types import DevAddr, DeviceId, LogicAddr, MemType, TensorDesc
from gevar.var.graph_tables import TransNodeInfo, TransRoad, VarBroadCastInfo
from gevar.var.info_fields import at_most, entry, read_desc, read_mem_type, refused, take_unknown_fields
from gevar.var.mem_resource import POOL_MEM_TYPES, MemFigures
from gevar.var.memory_config import MemoryConfig
from gevar.var.session_state import SessionVersion
from gevar.var.var_block import ExternMemory, NamedBlock, PlaceHolderBlock, SharingRecord, VarBlock
from gevar.var.var_info_extension import maker_names, read_extension
from gevar.var.var_key import VarKey
from gevar.var.var_snapshot import UnknownFields, VarHeader, VarSnapshot
from gevar.var.wire_key import name_of_wire_key, wire_key

if TYPE_CHECKING:
    from gevar.proto.var_manager import (
        BroadcastMultiInfo,
        TransNodeMultiInfo,
        VarAddrMgrInfo,
        VarManagerInfo,
        VarResourceInfo,
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    """What a key stands for, before the blocks are known."""

    key: VarKey
    desc: TensorDesc
    logic_addr: LogicAddr
    offset: int
    mem_type: MemType
    field: str


def read_info(info: "VarManagerInfo", device_id: DeviceId) -> VarSnapshot:
    """Return the state that a message holds.

    Parameters
    ----------
    info
        The message; it is emptied.
    device_id
        Device that calls without a device will mean; that of the message is the writer's.

    Raises
    ------
    ModelFileError
        Something in the message cannot be, or contradicts something else in it (status PARAM_INVALID).
    """
    resource = info.var_resource
    snapshot = VarSnapshot(_header(info, device_id), mem_figures=_mem_figures(info))
    _read_descs(snapshot, resource)
    entries = _entries(resource, info)
    _read_blocks(snapshot, resource, entries, info.gevar.block_name)
    _read_records(snapshot, entries, resource.var_offset_map)
    read_extension(snapshot, info.gevar)
    extension, inner = take_unknown_fields(info.gevar), take_unknown_fields(resource)
    snapshot.unknown = UnknownFields(take_unknown_fields(info), inner, extension)
    return snapshot


def _header(info: "VarManagerInfo", device_id: DeviceId) -> VarHeader:
    at_most(info.version, max(SessionVersion), "version")
    at_most(info.var_mem_logic_base, INT64_MAX, "var_mem_logic_base")
    config = MemoryConfig(
        info.graph_mem_max_size, info.var_mem_max_size, info.use_max_mem_size, info.var_mem_logic_base
    )
    return VarHeader(info.version, info.session_id, device_id, info.job_id, config)


def _mem_figures(info: "VarManagerInfo") -> dict[MemType, MemFigures]:
    """Bytes assigned per kind of memory; without gevar's extension the next variable goes behind them, as in GE."""
    figures: dict[MemType, MemFigures] = {}
    for number, one in info.mem_resource_map.items():
        field = entry("mem_resource_map", number)
        mem_type = read_mem_type(number, field)
        if mem_type not in POOL_MEM_TYPES and mem_type != MemType.RT_MEMORY_HBM:
            raise refused(field, f"variables are not assigned in {mem_type.name}")
        size_bytes = at_most(one.var_mem_size, INT64_MAX, f"{field}.var_mem_size")
        figures[mem_type] = MemFigures(size_bytes, 0, 0 if mem_type in POOL_MEM_TYPES else size_bytes)
    return figures


def _read_descs(snapshot: VarSnapshot, resource: "VarResourceInfo") -> None:
    """Read what goes by name."""
    for name, td in resource.cur_var_tensor_desc_map.items():
        snapshot.cur_descs[name] = read_desc(td, entry("var_resource.cur_var_tensor_desc_map", name))
    for name, road in resource.var_to_trans_road.items():
        snapshot.trans_roads[name] = _road(road, entry("var_resource.var_to_trans_road", name))
    snapshot.changed_graph_ids.update(resource.var_names_to_changed_graph_id)
    snapshot.allocated_graph_ids.update(resource.var_names_to_allocated_graph_id)
    for graph_id, infos in resource.var_broad_cast_info.items():
        snapshot.broad_casts[graph_id] = dict(_broad_casts(infos))


def _road(road: "TransNodeMultiInfo", field: str) -> TransRoad:
    return tuple(
        TransNodeInfo(
            step.node_type, read_desc(step.input, f"{field}.input"), read_desc(step.output, f"{field}.output")
        )
        for step in road.node_info
    )


def _broad_casts(infos: "BroadcastMultiInfo") -> Iterator[tuple[str, VarBroadCastInfo]]:
    for name, one in infos.broadcast_info.items():
        yield (
            name,
            VarBroadCastInfo(
                one.var_name,
                one.broadcast_name,
                one.idx,
                one.input_offset,
                one.input_size,
                one.output_offset,
                one.output_size,
            ),
        )


def _entries(resource: "VarResourceInfo", info: "VarManagerInfo") -> dict[VarKey, _Entry]:
    """What each key stands for, by rising key; records of the extension count instead of those of the same key text."""
    entries: list[_Entry] = []
    for number, one in enumerate(info.gevar.var_record):
        field = entry("gevar.var_record", number)
        desc = read_desc(one.info.desc, field)
        entries.append(_entry(VarKey(one.name, desc.format, desc.dtype), desc, one.info, field))
    texts = {wire_key(found.key) for found in entries}
    for text, record in resource.var_addr_mgr_map.items():
        field = entry("var_resource.var_addr_mgr_map", text)
        desc = read_desc(record.desc, field)
        name = name_of_wire_key(text, desc, resource.cur_var_tensor_desc_map)
        if name is None:
            form = f"{int(desc.format)}_{int(desc.dtype)}"
            raise refused(field, f"the key does not end in {form}, format and data type of its description")
        if text not in texts:
            entries.append(_entry(VarKey(name, desc.format, desc.dtype), desc, record, field))
    by_key: dict[VarKey, _Entry] = {}
    for found in sorted(entries, key=lambda found: found.key):
        if by_key.setdefault(found.key, found) is not found:
            raise refused(found.field, f"{found.key} is there twice")
    return by_key


def _entry(key: VarKey, desc: TensorDesc, record: "VarAddrMgrInfo", field: str) -> _Entry:
    mem_type = read_mem_type(record.memory_type, f"{field}.memory_type")
    return _Entry(key, desc, LogicAddr(record.address), record.offset, mem_type, field)


def _read_blocks(
    snapshot: VarSnapshot, resource: "VarResourceInfo", entries: Mapping[VarKey, _Entry], names: Mapping[int, str]
) -> None:
    """Read the placed blocks, by rising address; those in memory of a pool are left out."""
    lonely = set(resource.var_offset_map) ^ set(resource.var_dev_addr_mgr_map)
    if lonely:
        field = entry("var_resource.var_offset_map", min(lonely))
        raise refused(field, "the address is in one of var_offset_map and var_dev_addr_mgr_map only")
    makers = maker_names((one.logic_addr, one.key, one.desc) for one in entries.values())
    for addr, record in sorted(resource.var_dev_addr_mgr_map.items()):
        field = entry("var_resource.var_dev_addr_mgr_map", addr)
        mem_type = read_mem_type(resource.var_offset_map[addr], entry("var_resource.var_offset_map", addr))
        desc, logic_addr = read_desc(record.desc, field), LogicAddr(addr)
        if record.address != addr:
            raise refused(field, f"its address is {record.address}")
        _check_size(logic_addr, desc, field)
        if mem_type in POOL_MEM_TYPES:
            continue
        name = names[addr] if addr in names else makers(logic_addr, desc)
        make = PlaceHolderBlock if record.dev_addr else VarBlock
        snapshot.blocks.append(make(name, desc, logic_addr, mem_type))
        if record.dev_addr:
            snapshot.extern_memory[logic_addr] = ExternMemory(DevAddr(record.dev_addr), desc.size, live=False)


def _check_size(logic_addr: LogicAddr, desc: TensorDesc, field: str) -> None:
    """Refuse a block of a negative size, or that ends behind 63 bits."""
    if desc.size < 0:
        raise refused(field, f"its size is {desc.size} B")
    try:
        end = logic_addr + var_block_bytes(desc.size)
    except SizeOverflowError as error:
        raise refused(field, str(error)) from error
    at_most(end, INT64_MAX, field)


def _read_records(snapshot: VarSnapshot, entries: Mapping[VarKey, _Entry], mem_types: Mapping[int, int]) -> None:
    """Point each key at its block; one that names an address where no block is gets a block that is not placed."""
    blocks = {block.logic_addr: block for block in snapshot.blocks}
    named = _named_blocks(one for one in entries.values() if one.logic_addr not in mem_types)
    for one in entries.values():
        if mem_types.get(one.logic_addr, one.mem_type) != one.mem_type:
            raise refused(one.field, f"its memory is {one.mem_type.name}, and that of its address is another one")
        if one.logic_addr not in mem_types:
            block = named[one.key.name, one.logic_addr, one.mem_type]
        elif one.mem_type in POOL_MEM_TYPES:
            continue
        else:
            block = blocks[one.logic_addr]
        if block.key == one.key and block.desc == one.desc:
            block.offset = one.offset
            snapshot.records.append(block)
        else:
            snapshot.records.append(SharingRecord(one.key.name, one.desc, block, one.offset))


def _named_blocks(entries: Iterator[_Entry]) -> dict[tuple[str, LogicAddr, MemType], VarBlock]:
    """One block per name and address, of the largest description."""
    blocks: dict[tuple[str, LogicAddr, MemType], VarBlock] = {}
    for one in entries:
        place = one.key.name, one.logic_addr, one.mem_type
        if place not in blocks or one.desc.size > blocks[place].size_bytes:
            blocks[place] = NamedBlock(one.key.name, one.desc, one.logic_addr, one.mem_type)
    return blocks
