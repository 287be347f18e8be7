"""The bytes of a stored state, put together by hand, against what protobuf writes for the same state."""

from typing import Any

from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import given
from hypothesis import strategies as st

from gevar.proto.ge_ir import AttrDef
from gevar.proto.tensor_descriptor import tensor_desc_to_proto
from gevar.proto.var_manager import VarManagerInfo
from gevar.types import DataType, DevAddr, DeviceId, Format, LogicAddr, MemType, TensorDesc
from gevar.var import MemoryConfig
from gevar.var.var_block import ExternMemory, SharingRecord, VarBlock, VarRecord
from gevar.var.var_info_writer import write_info
from gevar.var.var_snapshot import VarHeader, VarSnapshot
from gevar.var.wire_key import wire_key

BASE = 1 << 37
RESOURCE = VarManagerInfo.DESCRIPTOR.fields_by_name["var_resource"].number
EXTENSION = VarManagerInfo.DESCRIPTOR.fields_by_name["gevar"].number
ADDRS = st.one_of(
    st.integers(BASE, BASE + (1 << 20)),
    st.sampled_from((0, 1, 127, 128, (1 << 14) - 1, 1 << 14, 1 << 42, (1 << 64) - 1)),
)
OFFSETS = st.one_of(st.integers(0, 1 << 20), st.sampled_from((0, 127, 128, 1 << 35, (1 << 64) - 1)))
NAMES = st.text(st.characters(codec="utf-8"), max_size=5) | st.sampled_from(
    ("w" * 127, "w" * 128, "layer/1", "layer/2")
)
DESCS = st.builds(
    TensorDesc,
    st.sampled_from((DataType.DT_FLOAT, DataType.DT_INT8)),
    st.sampled_from((Format.FORMAT_ND, Format.FORMAT_NC1HWC0_C04)),
    st.lists(st.integers(-2, 300), max_size=4).map(tuple),
    size=st.integers(0, 1 << 40),
    attrs=st.sampled_from(({}, {"a": AttrDef(i=3)})),
)


@st.composite
def snapshots(draw: st.DrawFn) -> VarSnapshot:
    """Draw a state: descriptions as objects of their own and shared ones, blocks of every kind of memory."""
    descs = draw(st.lists(DESCS, min_size=1, max_size=4))
    snapshot = VarSnapshot(VarHeader(1, 2, DeviceId(0), 3, MemoryConfig()))
    records: dict[str, VarRecord] = {}
    for addr in draw(st.sets(ADDRS, max_size=12)):
        desc = draw(st.sampled_from(descs))
        mem_type = draw(st.sampled_from((MemType.RT_MEMORY_HBM, MemType.RT_MEMORY_HBM, MemType.RT_MEMORY_RDMA_HBM)))
        block = VarBlock(
            draw(NAMES), draw(st.sampled_from((desc, desc.replace()))), LogicAddr(addr), mem_type, draw(OFFSETS)
        )
        snapshot.blocks.append(block)
        records.setdefault(wire_key(block.key), block)
        if draw(st.booleans()):
            shared = SharingRecord(draw(NAMES), draw(st.sampled_from(descs)), block, draw(OFFSETS))
            records.setdefault(wire_key(shared.key), shared)
        if draw(st.booleans()):
            snapshot.extern_memory[block.logic_addr] = ExternMemory(DevAddr(draw(ADDRS)), 64)
    snapshot.records.extend(records.values())
    snapshot.cur_descs.update(draw(st.dictionaries(NAMES, st.sampled_from(descs), max_size=6)))
    return snapshot


def expected(snapshot: VarSnapshot) -> bytes:
    """Write what GE's fields hold of a state, field by field."""
    header, config = snapshot.header, snapshot.header.config
    info = VarManagerInfo(version=header.version, session_id=header.session_id, job_id=header.job_id)
    info.graph_mem_max_size, info.var_mem_max_size = config.graph_mem_max_size, config.var_mem_max_size
    info.var_mem_logic_base, info.use_max_mem_size = config.var_mem_logic_base, config.use_max_mem_size
    resource = info.var_resource
    resource.SetInParent()
    for block in snapshot.blocks:
        resource.var_offset_map[block.logic_addr] = block.mem_type
        place = resource.var_dev_addr_mgr_map[block.logic_addr]
        place.desc.CopyFrom(tensor_desc_to_proto(block.desc))
        place.address = block.logic_addr
        if block.logic_addr in snapshot.extern_memory:
            place.dev_addr = snapshot.extern_memory[block.logic_addr].dev_addr
    for record in snapshot.records:
        one = resource.var_addr_mgr_map[wire_key(record.key)]
        one.desc.CopyFrom(tensor_desc_to_proto(record.desc))
        one.address, one.offset, one.memory_type = record.block.logic_addr, record.offset, record.block.mem_type
    for name, desc in snapshot.cur_descs.items():
        resource.cur_var_tensor_desc_map[name].CopyFrom(tensor_desc_to_proto(desc))
    return info.SerializeToString(deterministic=True)


def fields(data: bytes) -> list[tuple[int, Any]]:
    """Return the fields of a message as they come: number, and value or bytes."""
    found = UnknownFieldSet(Empty.FromString(data))
    return [(found[index].field_number, found[index].data) for index in range(len(found))]


def resource_of(data: bytes) -> tuple[list[tuple[int, Any]], list[tuple[int, Any]]]:
    """Return the fields of the message and, apart from them, those of its `var_resource`."""
    top = fields(data)
    (resource,) = [value for number, value in top if number == RESOURCE]
    return [one for one in top if one[0] != RESOURCE], fields(resource)


@given(snapshots())
def test_the_bytes_are_those_of_protobuf(snapshot: VarSnapshot) -> None:
    ours, theirs = write_info(snapshot, strict=True, extension=False), expected(snapshot)
    assert len(ours) == len(theirs)
    (top, entries), (their_top, their_entries) = resource_of(ours), resource_of(theirs)
    assert top == their_top
    assert sorted(entries) == sorted(their_entries)
    keys = [(number, fields(entry)[0][1]) for number, entry in entries]
    assert keys == sorted(keys)  # protobuf's own order is not always that: a key may come behind one it begins


@given(snapshots())
def test_the_extension_stands_behind_them(snapshot: VarSnapshot) -> None:
    data, before = (write_info(snapshot, strict=True, extension=extension) for extension in (True, False))
    assert data.startswith(before)
    assert {number for number, _ in fields(data[len(before) :])} == {EXTENSION}
