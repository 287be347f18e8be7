"""From the state of a manager to the message that GE reads, in canonical form: fields by number, maps by key.

The three maps that have an entry for every variable are put together as bytes; protobuf writes the rest.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::VarManagerToSerial,
VarResource::VarResourceToSerial.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from gevar.errors import VariableError
from gevar.proto.descriptor_bytes import DescriptorEncoder
from gevar.proto.encoding import LENGTHS, varint, varints, wire_texts
from gevar.status import FAILED
from gevar.types import DataType, LogicAddr, MemType, TensorDesc
from gevar.var.graph_tables import TransRoad
from gevar.var.var_block import ExternMemory, VarBlock, VarRecord
from gevar.var.var_info_extension import write_extension
from gevar.var.var_snapshot import VarSnapshot
from gevar.var.wire_key import wire_key_ending

if TYPE_CHECKING:
    from google.protobuf.internal.containers import MessageMap

    from gevar.proto.ge_ir import TensorDescriptor
    from gevar.proto.var_manager import TransNodeMultiInfo, VarAddrMgrInfo, VarDescInfo

_ENTRIES_PER_PIECE: Final = 256
_HBM_TYPE: Final = MemType.RT_MEMORY_HBM
_HBM: Final = LENGTHS[_HBM_TYPE]

_log = logging.getLogger("gevar.var")


def write_info(snapshot: VarSnapshot, *, strict: bool, extension: bool) -> bytes:
    """Return the bytes of the message that holds a state.

    Parameters
    ----------
    snapshot
        The state.
    strict
        Whether variables whose keys are one text in GE's form are refused. Else GE's map gets the first of them by
        name, the log names them, and the extension holds them all.
    extension
        Whether the message gets what GE's fields have no place for, in a field that GE passes over.

    Raises
    ------
    VariableError
        Two variables have one key in GE's form (status FAILED).
    ValueError
        A number or text does not fit its field.
    """
    from gevar.proto.var_manager import VarManagerInfo

    header, config = snapshot.header, snapshot.header.config
    before = VarManagerInfo(
        version=header.version,
        session_id=header.session_id,
        device_id=header.device_id,
        job_id=header.job_id,
        graph_mem_max_size=config.graph_mem_max_size,
        var_mem_max_size=config.var_mem_max_size,
        var_mem_logic_base=config.var_mem_logic_base,
        use_max_mem_size=config.use_max_mem_size,
    )
    by_text, shadowed = _by_text(snapshot.records, strict=strict)
    resource = _resource_pieces(snapshot, by_text)
    after = VarManagerInfo()
    for mem_type, figures in snapshot.mem_figures.items():
        after.mem_resource_map[mem_type].var_mem_size = figures.var_mem_size
    if extension:
        write_extension(after.gevar, snapshot, shadowed)
    rest = after.SerializeToString(deterministic=True) + snapshot.unknown.manager
    head = f"\x4a{varint(sum(map(len, resource)))}".encode("latin-1")
    return b"".join((before.SerializeToString(), head, *resource, rest))


def _by_text(records: Sequence[VarRecord], *, strict: bool) -> tuple[dict[str, VarRecord], list[VarRecord]]:
    """What keys stand for, by the text of the key; and the records of each text that is that of several."""
    texts: list[str] = []
    fmt, dtype, ending = -1, DataType.DT_UNDEFINED, ""
    for record in records:
        desc = record.desc
        if desc.format != fmt or desc.dtype is not dtype:  # neighbours often have them in common
            fmt, dtype = desc.format, desc.dtype
            ending = wire_key_ending(fmt, dtype)
        texts.append(record.name + ending)
    by_text = dict(zip(texts, records, strict=True))
    if len(by_text) == len(records):
        return by_text, []
    same: dict[str, list[VarRecord]] = {}
    for text, record in zip(texts, records, strict=True):
        if by_text[text] is not record:
            same.setdefault(text, [by_text[text]]).append(record)
    for text, several in same.items():
        several.sort(key=lambda record: record.key)
        names = " and ".join(repr(record.name) for record in several)
        if strict:
            reason = f"{names} have this one key in GE's form; rename one, or write with strict=False"
            raise VariableError(text, reason, status=FAILED)
        _log.warning("key %r is that of %s: GE will read the first of them only", text, names)
        by_text[text] = several[0]
    return by_text, [record for _, several in sorted(same.items()) for record in several]


def _resource_pieces(snapshot: VarSnapshot, by_text: Mapping[str, VarRecord]) -> list[bytes]:
    """The message `VarResourceInfo`, in pieces."""
    encoder, blocks = DescriptorEncoder(), sorted(snapshot.blocks, key=attrgetter("logic_addr"))
    addrs = dict(zip(blocks, varints([block.logic_addr for block in blocks]), strict=True))
    return [
        *_pieces(_offset_entries(addrs)),
        *_pieces(_record_entries(by_text, addrs, encoder)),
        *_pieces(_desc_entries(snapshot.cur_descs, encoder)),
        _graph_tables_bytes(snapshot),
        *_pieces(_device_entries(addrs, snapshot.extern_memory, encoder)),
        snapshot.unknown.resource,
    ]


def _pieces(entries: Iterator[str]) -> Iterator[bytes]:
    """Join entries; a few at a time, which stay in the processor's cache."""
    while some := list(islice(entries, _ENTRIES_PER_PIECE)):
        yield "".join(some).encode("latin-1")


class _Heads(dict[int, str]):
    """What stands before a name in the entry of a map, by the bytes of the name.

    The value takes so many bytes, its length included.
    """

    def __init__(self, tag: str, value_bytes: int) -> None:
        self._tag, self._value_bytes = tag, value_bytes

    def __missing__(self, name_bytes: int) -> str:
        size = LENGTHS[name_bytes]
        entry_bytes = 1 + len(size) + name_bytes + 1 + self._value_bytes
        head = self[name_bytes] = f"{self._tag}{LENGTHS[entry_bytes]}\x0a{size}"
        return head


def _offset_entries(addrs: Mapping[VarBlock, str]) -> Iterator[str]:
    """Entries of `var_offset_map`."""
    before, last = "", -1
    for block, addr in addrs.items():
        kind = block.mem_type
        if kind is not _HBM_TYPE:
            yield f"\x0a{LENGTHS[len(addr) + len(LENGTHS[kind]) + 2]}\x08{addr}\x10{LENGTHS[kind]}"
            continue
        if len(addr) != last:
            last = len(addr)
            before = f"\x0a{LENGTHS[last + len(_HBM) + 2]}\x08"
        yield f"{before}{addr}\x10{_HBM}"


def _record_entries(
    by_text: Mapping[str, VarRecord], addrs: Mapping[VarBlock, str], encoder: DescriptorEncoder
) -> Iterator[str]:
    """Entries of `var_addr_mgr_map`: what each key stands for. What neighbours have alike is put together once."""
    lengths, texts, tag = LENGTHS, sorted(by_text), "\x12"
    heads: dict[int, _Heads] = {}
    alike, addr_bytes, offset_bytes, before, middle = "", 0, 0, _Heads(tag, 0), ""
    records = [by_text[text] for text in texts]
    descs = encoder.encode_all([record.desc for record in records])
    offsets = varints([record.offset for record in records])
    for name, record, desc, offset in zip(wire_texts(texts), records, descs, offsets, strict=True):
        block = record if type(record) is VarBlock else record.block
        addr = addrs.get(block)
        if not (addr and block.logic_addr and record.offset and block.mem_type is _HBM_TYPE):
            numbers = (("\x10", block.logic_addr), ("\x18", record.offset), ("\x20", block.mem_type))
            value = f"\x0a{desc}{''.join(_number(*number) for number in numbers)}"
            value = f"{lengths[len(value)]}{value}"
            yield f"{_Heads(tag, len(value))[len(name)]}{name}\x12{value}"
            continue
        if desc is not alike or len(addr) != addr_bytes or len(offset) != offset_bytes:
            alike, addr_bytes, offset_bytes = desc, len(addr), len(offset)
            size = lengths[len(desc) + addr_bytes + offset_bytes + len(_HBM) + 4]
            value_bytes = len(size) + len(desc) + addr_bytes + offset_bytes + len(_HBM) + 4
            before = heads.get(value_bytes) or heads.setdefault(value_bytes, _Heads(tag, value_bytes))
            middle = f"\x12{size}\x0a{desc}\x10"
        yield f"{before[len(name)]}{name}{middle}{addr}\x18{offset}\x20{_HBM}"


def _desc_entries(cur_descs: Mapping[str, TensorDesc], encoder: DescriptorEncoder) -> Iterator[str]:
    """Entries of `cur_var_tensor_desc_map`."""
    known, encode = encoder.known, encoder.encode
    heads: dict[int, _Heads] = {}
    before, size = _Heads("\x1a", 0), 0
    names = sorted(cur_descs)
    for name, text in zip(names, wire_texts(names), strict=True):
        desc = cur_descs[name]
        value = known.get(id(desc)) or encode(desc)
        if len(value) != size:
            size = len(value)
            before = heads.get(size) or heads.setdefault(size, _Heads("\x1a", size))
        yield f"{before[len(text)]}{text}\x12{value}"


def _device_entries(
    addrs: Mapping[VarBlock, str], extern_memory: Mapping[LogicAddr, ExternMemory], encoder: DescriptorEncoder
) -> Iterator[str]:
    """Entries of `var_dev_addr_mgr_map`: the blocks. What neighbours have alike is put together once."""
    known, encode, lengths = encoder.known, encoder.encode, LENGTHS
    alike, before, middle, last = "", "", "", 0
    for block, addr in addrs.items():
        desc = known.get(id(block.desc)) or encode(block.desc)
        extern = extern_memory.get(block.logic_addr) if extern_memory else None
        if extern or not block.logic_addr:
            value = f"\x0a{desc}{_number(chr(0x10), block.logic_addr)}"
            value += _number("\x18", extern.dev_addr) if extern else ""
            size = lengths[len(value)]
            yield f"\x42{lengths[len(addr) + len(size) + len(value) + 2]}\x08{addr}\x12{size}{value}"
            continue
        if desc is not alike or len(addr) != last:
            alike, last = desc, len(addr)
            value_bytes = len(desc) + last + 2
            size = lengths[value_bytes]
            before = f"\x42{lengths[last + len(size) + value_bytes + 2]}\x08"
            middle = f"\x12{size}\x0a{desc}\x10"
        yield f"{before}{addr}{middle}{addr}"


def _number(tag: str, value: int) -> str:
    """A number field with its tag; nothing where it is 0."""
    return f"{tag}{varint(value)}" if value else ""


def write_record(info: "VarAddrMgrInfo", record: VarRecord) -> None:
    """Write what one key stands for."""
    from gevar.proto.tensor_descriptor import tensor_desc_to_proto

    info.desc.CopyFrom(tensor_desc_to_proto(record.desc))
    info.address, info.offset, info.memory_type = record.block.logic_addr, record.offset, record.block.mem_type


def _graph_tables_bytes(snapshot: VarSnapshot) -> bytes:
    """What graphs did to variables, as fields of `VarResourceInfo`."""
    from gevar.proto.var_manager import VarResourceInfo

    resource = VarResourceInfo()
    _write_roads(resource.var_to_trans_road, snapshot.trans_roads)
    resource.var_names_to_changed_graph_id.update(snapshot.changed_graph_ids)
    resource.var_names_to_allocated_graph_id.update(snapshot.allocated_graph_ids)
    for graph_id, infos in snapshot.broad_casts.items():
        broadcasts = resource.var_broad_cast_info[graph_id].broadcast_info
        for name, info in infos.items():
            one = broadcasts[name]
            one.var_name, one.broadcast_name, one.idx = info.var_name, info.broadcast_name, info.idx
            one.input_offset, one.input_size = info.input_offset, info.input_size
            one.output_offset, one.output_size = info.output_offset, info.output_size
    return resource.SerializeToString(deterministic=True)


def write_descs(descs: "MessageMap[str, TensorDescriptor]", by_name: Mapping[str, TensorDesc]) -> None:
    """Write descriptions by name."""
    from gevar.proto.tensor_descriptor import tensor_desc_to_proto

    for name, desc in by_name.items():
        descs[name].CopyFrom(tensor_desc_to_proto(desc))


def _write_roads(roads: "MessageMap[str, TransNodeMultiInfo]", by_name: Mapping[str, TransRoad]) -> None:
    from gevar.proto.tensor_descriptor import tensor_desc_to_proto

    for name, road in by_name.items():
        steps = roads[name].node_info
        for step in road:
            one = steps.add(node_type=step.node_type)
            one.input.CopyFrom(tensor_desc_to_proto(step.input))
            one.output.CopyFrom(tensor_desc_to_proto(step.output))


def write_desc_info(descs: Mapping[str, TensorDesc], roads: Mapping[str, TransRoad]) -> "VarDescInfo":
    """Return the message that holds current descriptions and conversions, and nothing else.

    Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::VarDescInfoToSerial.
    """
    from gevar.proto.var_manager import VarDescInfo

    info = VarDescInfo()
    write_descs(info.cur_var_tensor_desc_map, descs)
    _write_roads(info.var_to_trans_road, roads)
    return info
