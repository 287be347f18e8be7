"""From the state of a manager to the message that GE reads, in canonical form: fields by number, maps by key.

The three maps that have an entry for every variable are put together as bytes; protobuf writes the rest.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::VarManagerToSerial,
VarResource::VarResourceToSerial.
"""

import logging
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from gevar.errors import VariableError
from gevar.proto.descriptor_bytes import DescriptorEncoder
from gevar.proto.encoding import LENGTHS, varint, varints, wire_text
from gevar.status import FAILED
from gevar.types import TensorDesc
from gevar.var.graph_tables import TransRoad
from gevar.var.var_block import VarRecord
from gevar.var.var_info_extension import write_extension
from gevar.var.var_snapshot import VarSnapshot
from gevar.var.wire_key import wire_key_ending

if TYPE_CHECKING:
    from google.protobuf.internal.containers import MessageMap

    from gevar.proto.ge_ir import TensorDescriptor
    from gevar.proto.var_manager import TransNodeMultiInfo, VarAddrMgrInfo, VarDescInfo

_ADDRESS: Final = "\x10"  # tag of the address in `VarAddrMgrInfo`

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
    resource = _resource_parts(snapshot, by_text)
    after = VarManagerInfo()
    for mem_type, figures in snapshot.mem_figures.items():
        after.mem_resource_map[mem_type].var_mem_size = figures.var_mem_size
    if extension:
        write_extension(after.gevar, snapshot, shadowed)
    rest = after.SerializeToString(deterministic=True) + snapshot.unknown.manager
    head = f"{_text(before.SerializeToString())}\x4a{varint(sum(map(len, resource)))}"
    return "".join((head, *resource, _text(rest))).encode("latin-1")


def _text(data: bytes) -> str:
    return data.decode("latin-1")


def _by_text(records: Iterable[VarRecord], *, strict: bool) -> tuple[dict[str, VarRecord], list[VarRecord]]:
    """What keys stand for, by the text of the key; and the records of each text that is that of several."""
    endings: dict[tuple[int, int], str] = {}
    by_text: dict[str, VarRecord] = {}
    same: dict[str, list[VarRecord]] = {}
    for record in records:
        form = (record.desc.format, record.desc.dtype)
        ending = endings.get(form) or endings.setdefault(form, wire_key_ending(*form))
        text = record.name + ending
        first = by_text.setdefault(text, record)
        if first is not record:
            same.setdefault(text, [first]).append(record)
    for text, several in same.items():
        several.sort(key=lambda record: record.key)
        names = " and ".join(repr(record.name) for record in several)
        if strict:
            reason = f"{names} have this one key in GE's form; rename one, or write with strict=False"
            raise VariableError(text, reason, status=FAILED)
        _log.warning("key %r is that of %s: GE will read the first of them only", text, names)
        by_text[text] = several[0]
    return by_text, [record for _, several in sorted(same.items()) for record in several]


def _resource_parts(snapshot: VarSnapshot, by_text: Mapping[str, VarRecord]) -> list[str]:
    """The message `VarResourceInfo`, in parts."""
    encode, lengths = DescriptorEncoder().encode, LENGTHS
    blocks = sorted(snapshot.blocks, key=attrgetter("logic_addr"))
    parts: list[str] = []
    devices: list[str] = []
    starts: dict[VarRecord, str] = {}
    for block, addr in zip(blocks, varints([block.logic_addr for block in blocks]), strict=True):
        kind = lengths[block.mem_type]
        parts.append(f"\x0a{lengths[len(addr) + len(kind) + 2]}\x08{addr}\x10{kind}")
        value = f"\x0a{encode(block.desc)}\x10{addr}" if block.logic_addr else f"\x0a{encode(block.desc)}"
        starts[block] = value
        if block.logic_addr in snapshot.extern_memory:
            value += _number("\x18", snapshot.extern_memory[block.logic_addr].dev_addr)
        size = lengths[len(value)]
        devices.append(f"\x42{lengths[len(addr) + len(size) + len(value) + 2]}\x08{addr}\x12{size}{value}")
    texts = sorted(by_text)
    for text, offset in zip(texts, varints([by_text[text].offset for text in texts]), strict=True):
        record = by_text[text]
        name, kind = text if text.isascii() else wire_text(text), lengths[record.block.mem_type]
        start = starts.get(record) or f"\x0a{encode(record.desc)}{_number(_ADDRESS, record.block.logic_addr)}"
        end = f"\x18{offset}\x20{kind}" if record.offset else f"\x20{kind}"
        head, size = lengths[len(name)], lengths[len(start) + len(end)]
        entry_size = lengths[len(head) + len(name) + len(size) + len(start) + len(end) + 2]
        parts.append(f"\x12{entry_size}\x0a{head}{name}\x12{size}{start}{end}")
    cur_descs = snapshot.cur_descs
    for name in sorted(cur_descs):
        text, value = name if name.isascii() else wire_text(name), encode(cur_descs[name])
        head = lengths[len(text)]
        parts.append(f"\x1a{lengths[len(head) + len(text) + len(value) + 2]}\x0a{head}{text}\x12{value}")
    return [*parts, _text(_graph_tables_bytes(snapshot)), *devices, _text(snapshot.unknown.resource)]


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
