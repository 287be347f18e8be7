"""Messages and descriptions for any content: what is written is read, and damage is one kind of error."""

from hypothesis import given
from hypothesis import strategies as st

from gevar.errors import ModelFileError
from gevar.proto import ge_ir, var_manager
from gevar.proto.parse import parse_message
from gevar.proto.tensor_descriptor import tensor_desc_from_proto, tensor_desc_to_proto
from gevar.types import DataType, TensorDesc

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
UINT64 = st.integers(0, (1 << 64) - 1)
SHAPES = st.lists(INT64, max_size=5).map(tuple)
FORMATS = st.integers(-(1 << 31), (1 << 31) - 1)
DATA_TYPES = st.sampled_from(DataType)
NAMES = st.text(max_size=12).map("user_".__add__)


@st.composite
def attributes(draw: st.DrawFn) -> ge_ir.AttrDef:
    """Draw an attribute of any simple kind."""
    attr = ge_ir.AttrDef()
    kind = draw(st.sampled_from(["i", "s", "b", "dt", "t", "list"]))
    if kind in ("i", "dt"):
        setattr(attr, kind, draw(INT64))
    elif kind == "s":
        attr.s = draw(st.binary(max_size=8))
    elif kind == "b":
        attr.b = draw(st.booleans())
    elif kind == "t":
        attr.t.data = draw(st.binary(max_size=8))
    else:
        attr.list.i.extend(draw(st.lists(INT64, max_size=3)))
        attr.list.val_type = 2
    return attr


@st.composite
def descriptions(draw: st.DrawFn) -> TensorDesc:
    """Draw a description with every field in use."""
    groups = ge_ir.AttrGroups()
    for symbol in draw(st.lists(st.text(max_size=3), max_size=2)):
        groups.attr_group_def.add().tensor_attr_group.origin_symbol_shape.append(symbol)
    return TensorDesc(
        dtype=draw(DATA_TYPES),
        format=draw(FORMATS),
        shape=draw(SHAPES),
        origin_format=draw(FORMATS),
        origin_shape=draw(st.none() | SHAPES),
        origin_dtype=draw(DATA_TYPES),
        size=draw(INT64),
        weight_size=draw(INT64),
        data_offset=draw(INT64),
        real_dim_cnt=draw(INT64),
        reuse_input=draw(st.booleans()),
        reuse_input_index=draw(INT64),
        output_tensor=draw(st.booleans()),
        input_tensor=draw(st.booleans()),
        device_type=draw(st.sampled_from(["NPU", "CPU"])),
        cmps_size=draw(INT64),
        cmps_tab=draw(st.text(max_size=5)),
        cmps_tab_offset=draw(INT64),
        attrs=draw(st.dictionaries(NAMES, attributes(), max_size=3)),
        attr_groups=groups.SerializeToString(deterministic=True),
    )


@given(descriptions())
def test_a_description_comes_back_from_the_wire(desc: TensorDesc) -> None:
    data = tensor_desc_to_proto(desc).SerializeToString()
    td = parse_message(ge_ir.TensorDescriptor, data)
    assert tensor_desc_from_proto(td) == desc
    assert tensor_desc_to_proto(tensor_desc_from_proto(td)) == td


@given(descriptions(), st.text(max_size=5), UINT64, st.integers(0, (1 << 32) - 1))
def test_manager_state_comes_back_from_the_wire(desc: TensorDesc, name: str, address: int, graph_id: int) -> None:
    info = var_manager.VarManagerInfo(version=2, var_mem_logic_base=address)
    info.var_resource.cur_var_tensor_desc_map[name].CopyFrom(tensor_desc_to_proto(desc))
    info.var_resource.var_offset_map[address] = 2
    info.var_resource.var_names_to_changed_graph_id[name] = graph_id
    back = parse_message(var_manager.VarManagerInfo, info.SerializeToString())
    assert back == info
    assert tensor_desc_from_proto(back.var_resource.cur_var_tensor_desc_map[name]) == desc


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_a_model_file_error(data: bytes) -> None:
    try:
        message = parse_message(ge_ir.ModelDef, data)
    except ModelFileError:
        return
    again = parse_message(ge_ir.ModelDef, message.SerializeToString())
    assert again.SerializeToString(deterministic=True) == message.SerializeToString(deterministic=True)


@given(descriptions(), st.data())
def test_damaged_bytes_are_a_descriptor_or_a_model_file_error(desc: TensorDesc, data: st.DataObject) -> None:
    wire = bytearray(tensor_desc_to_proto(desc).SerializeToString())
    wire[data.draw(st.integers(0, len(wire) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        td = parse_message(ge_ir.TensorDescriptor, bytes(wire))
        read = tensor_desc_from_proto(td)
    except ModelFileError:
        return
    assert isinstance(read.dtype, DataType)
    written = tensor_desc_to_proto(read)  # compared as bytes: a damaged float may be no number
    again = tensor_desc_to_proto(tensor_desc_from_proto(written))
    assert again.SerializeToString(deterministic=True) == written.SerializeToString(deterministic=True)


@given(st.integers(1, (1 << 29) - 1).filter(lambda n: n not in {1, 2, 3, 7, 11, 12}), st.binary(max_size=20))
def test_an_unknown_field_stays(number: int, content: bytes) -> None:
    tag, key = number << 3 | 2, b""
    while tag > 127:
        key += bytes([tag & 127 | 128])
        tag >>= 7
    field = key + bytes([tag, len(content)]) + content
    assert parse_message(ge_ir.ModelDef, field).SerializeToString() == field
