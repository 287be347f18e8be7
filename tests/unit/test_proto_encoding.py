"""Wire form by hand against what protobuf writes."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gevar.errors import ModelFileError
from gevar.proto import var_manager, var_manager_raw
from gevar.proto.descriptor_bytes import DescriptorDecoder, DescriptorEncoder
from gevar.proto.encoding import LENGTHS, varint, varints, wire_text
from gevar.proto.ge_ir import AttrDef, AttrGroupDef, AttrGroups
from gevar.proto.parse import parse_message
from gevar.proto.tensor_descriptor import tensor_desc_to_proto
from gevar.types import DataType, Format, TensorDesc

DESC = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (2, 3), size=24)
EDGES = [0, 1, 127, 128, (1 << 14) - 1, 1 << 14, (1 << 28) - 1, 1 << 28, 1 << 37, 1 << 63, (1 << 64) - 1]


@given(st.one_of(st.sampled_from(EDGES), st.integers(0, (1 << 64) - 1)))
def test_numbers_are_those_of_protobuf(value: int) -> None:
    expected = var_manager.MemResourceInfo(total_size=value).SerializeToString()[1:] if value else b"\x00"
    assert varint(value).encode("latin-1") == LENGTHS[value].encode("latin-1") == expected


@pytest.mark.parametrize("value", [-1, 1 << 64, -(1 << 40)])
def test_numbers_beyond_64_bits_are_refused(value: int) -> None:
    with pytest.raises(ValueError, match="no unsigned 64-bit number"):
        varint(value)


@given(st.lists(st.one_of(st.sampled_from(EDGES), st.integers(0, (1 << 64) - 1))))
def test_many_numbers_are_those_of_each(values: list[int]) -> None:
    assert varints(values) == [varint(value) for value in values]


@pytest.mark.parametrize("value", [-1, 1 << 64, -(1 << 40)])
def test_one_of_many_beyond_64_bits_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match="no unsigned 64-bit number"):
        varints([1, 1 << 40, value])


def test_many_numbers_that_share_nothing() -> None:
    numbers = [number << 20 for number in range(70_000)]
    assert all(varint(number) == varint(number) for number in numbers[-10:])
    assert len({varint(number) for number in numbers}) == len(numbers)


@given(st.text())
def test_text_is_utf_8(text: str) -> None:
    assert wire_text(text).encode("latin-1") == text.encode()


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        wire_text("\ud800")


def another(value: object) -> object:
    """Return another value that a field with this one can have."""
    if isinstance(value, DataType):
        return DataType.DT_INT8
    if isinstance(value, tuple) or value is None:
        return (7,)
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, bytes):
        return AttrGroups(attr_group_def=[AttrGroupDef()]).SerializeToString()
    assert isinstance(value, int)
    return not value if isinstance(value, bool) else int(value) + 1


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(TensorDesc) if field.name != "attrs"])
def test_descriptions_that_differ_in_one_field_are_written_apart(name: str) -> None:
    value: Any = another(getattr(DESC, name))
    other = dataclasses.replace(DESC, **{name: value})
    encoder = DescriptorEncoder()
    encoder.encode_all([DESC, other, DESC.replace()])
    for desc in (DESC, other):
        data = tensor_desc_to_proto(desc).SerializeToString(deterministic=True)
        assert encoder.known[id(desc)].encode("latin-1") == varint(len(data)).encode("latin-1") + data


def test_equal_descriptions_are_written_once_and_differing_ones_apart() -> None:
    encoder, other = DescriptorEncoder(), DESC.replace(size=64)
    texts = [encoder.encode(desc) for desc in (DESC, DESC.replace(), other, DESC)]
    assert texts[0] is texts[1] is texts[3]
    for desc, text in zip((DESC, other), (texts[0], texts[2]), strict=True):
        data = tensor_desc_to_proto(desc).SerializeToString(deterministic=True)
        assert text.encode("latin-1") == varint(len(data)).encode("latin-1") + data


def test_attributes_are_written_for_each_description() -> None:
    with_attr = DESC.replace(attrs={"a": AttrDef(i=1)})
    other = DESC.replace(attrs={"a": AttrDef(i=2)})
    encoder = DescriptorEncoder()
    assert len({encoder.encode(desc) for desc in (DESC, with_attr, other)}) == 3


def test_equal_bytes_give_one_description() -> None:
    decoder, data = DescriptorDecoder(), tensor_desc_to_proto(DESC).SerializeToString()
    assert decoder.decode(data) == DESC
    assert decoder.decode(bytes(bytearray(data))) is decoder.decode(data)
    with pytest.raises(ModelFileError, match="TensorDescriptor"):
        decoder.decode(b"\xff")


def test_raw_messages_have_the_wire_form_of_the_others() -> None:
    info = var_manager.VarManagerInfo(session_id=3, var_mem_auto_malloc=True)
    info.var_resource.cur_var_tensor_desc_map["v"].CopyFrom(tensor_desc_to_proto(DESC))
    info.var_resource.var_addr_mgr_map["v2_0"].desc.CopyFrom(tensor_desc_to_proto(DESC))
    info.var_resource.var_dev_addr_mgr_map[5].desc.CopyFrom(tensor_desc_to_proto(DESC))
    info.var_resource.var_to_trans_road["v"].node_info.add(node_type="Cast")
    info.gevar.batch_var_name_map["a"] = "b"
    data = info.SerializeToString(deterministic=True)
    raw = parse_message(var_manager_raw.VarManagerInfo, data)
    desc = tensor_desc_to_proto(DESC).SerializeToString()
    assert len(raw.var_resource.cur_var_tensor_desc_map["v"]) == len(desc)
    assert raw.var_resource.var_to_trans_road["v"].node_info[0].node_type == "Cast"
    assert dict(raw.gevar.batch_var_name_map) == {"a": "b"}
    assert parse_message(var_manager.VarManagerInfo, raw.SerializeToString()) == info
