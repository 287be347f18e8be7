"""From a message to the state of a manager, which is sound in itself or refused.

Addresses of device memory are told, not trusted: they are those of the process that wrote the message. Memory of a pool
has no other address, so its variables come back with their description alone.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::VarManagerToDeserial,
VarResource::VarResourceFromDeserial.
Differs: edge 24 of docs/differences.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from gevar.align import INT64_MAX, var_block_bytes
from gevar.errors import ModelFileError
from gevar.proto.descriptor_bytes import DescriptorDecoder
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
from gevar.var.wire_key import name_of_wire_key, wire_key, wire_key_ending

if TYPE_CHECKING:
    from gevar.proto.var_manager import BroadcastMultiInfo, TransNodeMultiInfo, VarManagerExtension_VarRecord
    from gevar.proto.var_manager_raw import VarManagerInfo, VarResourceInfo

_MEM_TYPES: Final[Mapping[int, MemType]] = {int(kind): kind for kind in MemType}


_Place = tuple[str, str | int]  # name of a map or list, and the key there


@dataclass(slots=True)
class _Entry:
    """What a key stands for, before the blocks are known."""

    name: str
    desc: TensorDesc
    logic_addr: LogicAddr
    offset: int
    mem_type: MemType
    place: _Place

    @property
    def key(self) -> VarKey:
        return VarKey(self.name, self.desc.format, self.desc.dtype)

    @property
    def field(self) -> str:
        return entry(*self.place)


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
    resource, decoder = info.var_resource, DescriptorDecoder()
    snapshot = VarSnapshot(_header(info, device_id), mem_figures=_mem_figures(info))
    _read_descs(snapshot, resource, decoder)
    entries = _entries(snapshot, resource, info.gevar.var_record, decoder)
    _read_blocks(snapshot, resource, entries, info.gevar.block_name, decoder)
    _read_records(snapshot, entries, dict(resource.var_offset_map))
    read_extension(snapshot, info.gevar)
    extension, inner = take_unknown_fields(info.gevar, "gevar"), take_unknown_fields(resource, "var_resource")
    snapshot.unknown = UnknownFields(take_unknown_fields(info, ""), inner, extension)
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


def _read_descs(snapshot: VarSnapshot, resource: "VarResourceInfo", decoder: DescriptorDecoder) -> None:
    """Read what goes by name."""
    for name, data in resource.cur_var_tensor_desc_map.items():
        snapshot.cur_descs[name] = decoder.known.get(data) or _decoded(
            decoder, data, "var_resource.cur_var_tensor_desc_map", name
        )
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


def _decoded(decoder: DescriptorDecoder, data: bytes, map_name: str, key: str | int) -> TensorDesc:
    """The description of an entry of a map."""
    try:
        return decoder.decode(data)
    except ModelFileError as error:
        raise refused(entry(map_name, key), str(error)) from error


def _entries(
    snapshot: VarSnapshot,
    resource: "VarResourceInfo",
    var_records: "Iterable[VarManagerExtension_VarRecord]",
    decoder: DescriptorDecoder,
) -> list[_Entry]:
    """What each key stands for, by rising key; records of the extension count instead of those of the same key text."""
    entries: list[_Entry] = []
    for number, one in enumerate(var_records):
        info = one.info
        place: _Place = ("gevar.var_record", number)
        desc = read_desc(info.desc, entry(*place))
        entries.append(_entry(one.name, desc, info.address, info.offset, info.memory_type, place))
    texts, names = {wire_key(found.key) for found in entries}, snapshot.cur_descs
    map_name = "var_resource.var_addr_mgr_map"
    for text, record in resource.var_addr_mgr_map.items():
        desc = decoder.known.get(record.desc) or _decoded(decoder, record.desc, map_name, text)
        name = name_of_wire_key(text, desc, names)
        if name is None:
            form = wire_key_ending(desc.format, desc.dtype)
            reason = f"the key does not end in {form}, format and data type of its description"
            raise refused(entry(map_name, text), reason)
        if text not in texts:
            place = (map_name, text)
            entries.append(_entry(name, desc, record.address, record.offset, record.memory_type, place))
    entries.sort(key=lambda one: (one.name, one.desc.format, one.desc.dtype))
    for before, following in pairwise(entries):
        if before.name == following.name and before.key == following.key:
            raise refused(following.field, f"{following.key} is there twice")
    return entries


def _entry(name: str, desc: TensorDesc, address: int, offset: int, number: int, place: _Place) -> _Entry:
    mem_type = _MEM_TYPES.get(number)
    if mem_type is None:
        raise refused(f"{entry(*place)}.memory_type", f"{number} is no kind of memory")
    return _Entry(name, desc, LogicAddr(address), offset, mem_type, place)


def _read_blocks(
    snapshot: VarSnapshot,
    resource: "VarResourceInfo",
    entries: Iterable[_Entry],
    names: Mapping[int, str],
    decoder: DescriptorDecoder,
) -> None:
    """Read the placed blocks, by rising address; those in memory of a pool are left out."""
    offsets, records = dict(resource.var_offset_map), sorted(resource.var_dev_addr_mgr_map.items(), key=itemgetter(0))
    if len(offsets) != len(records) or any(addr not in offsets for addr, _ in records):
        lonely = offsets.keys() ^ {addr for addr, _ in records}
        field = entry("var_resource.var_offset_map", min(lonely))
        raise refused(field, "the address is in one of var_offset_map and var_dev_addr_mgr_map only")
    maker_name, map_name = maker_names((one.logic_addr, one) for one in entries), "var_resource.var_dev_addr_mgr_map"
    for addr, record in records:
        mem_type = _MEM_TYPES.get(offsets[addr])
        if mem_type is None:
            raise refused(entry("var_resource.var_offset_map", addr), f"{offsets[addr]} is no kind of memory")
        desc = decoder.known.get(record.desc) or _decoded(decoder, record.desc, map_name, addr)
        logic_addr = LogicAddr(addr)
        if record.address != addr:
            raise refused(entry(map_name, addr), f"its address is {record.address}")
        _check_size(logic_addr, desc, map_name)
        if mem_type in POOL_MEM_TYPES:
            continue
        name = names[addr] if names and addr in names else maker_name(logic_addr, desc)
        make, dev_addr = (PlaceHolderBlock, record.dev_addr) if record.dev_addr else (VarBlock, 0)
        snapshot.blocks.append(make(name, desc, logic_addr, mem_type))
        if dev_addr:
            snapshot.extern_memory[logic_addr] = ExternMemory(DevAddr(dev_addr), desc.size, live=False)


def _check_size(logic_addr: LogicAddr, desc: TensorDesc, map_name: str) -> None:
    """Refuse a block of a negative size, or that ends behind 63 bits."""
    if desc.size < 0:
        raise refused(entry(map_name, logic_addr), f"its size is {desc.size} B")
    end = logic_addr + var_block_bytes(desc.size)
    if end > INT64_MAX:
        raise refused(entry(map_name, logic_addr), f"{end} is more than {INT64_MAX}")


def _read_records(snapshot: VarSnapshot, entries: list[_Entry], mem_types: Mapping[int, int]) -> None:
    """Point each key at its block; one that names an address where no block is gets a block that is not placed."""
    blocks = {block.logic_addr: block for block in snapshot.blocks}
    named = _named_blocks(one for one in entries if one.logic_addr not in mem_types)
    for one in entries:
        if mem_types.get(one.logic_addr, one.mem_type) != one.mem_type:
            raise refused(one.field, f"its memory is {one.mem_type.name}, and that of its address is another one")
        if one.logic_addr not in mem_types:
            block = named[one.name, one.logic_addr, one.mem_type]
        elif one.mem_type in POOL_MEM_TYPES:
            continue
        else:
            block = blocks[one.logic_addr]
        if block.name == one.name and (block.desc is one.desc or block.desc == one.desc):
            block.offset = one.offset
            snapshot.records.append(block)
        else:
            snapshot.records.append(SharingRecord(one.name, one.desc, block, one.offset))


def _named_blocks(entries: Iterable[_Entry]) -> dict[tuple[str, LogicAddr, MemType], VarBlock]:
    """One block per name and address, of the largest description."""
    blocks: dict[tuple[str, LogicAddr, MemType], VarBlock] = {}
    for one in entries:
        place = one.name, one.logic_addr, one.mem_type
        if place not in blocks or one.desc.size > blocks[place].size_bytes:
            blocks[place] = NamedBlock(one.name, one.desc, one.logic_addr, one.mem_type)
    return blocks
