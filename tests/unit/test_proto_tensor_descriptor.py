"""Tensor descriptions on the wire: what is written, what is read, and the descriptors of old writers."""

import pytest

from gevar.errors import ModelFileError
from gevar.proto import ge_ir
from gevar.proto.tensor_descriptor import tensor_desc_from_proto, tensor_desc_to_proto
from gevar.types import DataType, Format, TensorDesc

VT_LIST_INT = 2


def int_list(*values: int) -> ge_ir.AttrDef:
    attr = ge_ir.AttrDef()
    attr.list.val_type = VT_LIST_INT
    attr.list.i.extend(values)
    return attr


def descriptor(attr: dict[str, ge_ir.AttrDef] | None = None, **fields: object) -> ge_ir.TensorDescriptor:
    td = ge_ir.TensorDescriptor(**fields)
    td.shape.SetInParent()
    for name, value in (attr or {}).items():
        td.attr[name].CopyFrom(value)
    return td


PLAIN = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (2, 3), size=64)
FULL = TensorDesc(
    dtype=DataType.DT_BF16,
    format=83886596,
    shape=(9, 2, 16, 16),
    origin_format=Format.FORMAT_NCHW,
    origin_shape=(32, 16, 3, 3),
    origin_dtype=DataType.DT_FLOAT,
    size=9248,
    weight_size=9216,
    data_offset=512,
    real_dim_cnt=4,
    reuse_input=True,
    reuse_input_index=1,
    output_tensor=True,
    input_tensor=True,
    device_type="CPU",
    cmps_size=7,
    cmps_tab="table",
    cmps_tab_offset=9,
    attrs={"_inner_offset": ge_ir.AttrDef(i=128), "_init_value": ge_ir.AttrDef(t=ge_ir.TensorDef(data=b"ab"))},
    attr_groups=bytes.fromhex("12051a030a0173"),
)


def test_a_plain_description_is_written_field_by_field() -> None:
    expected = descriptor(
        {
            "format_for_int": ge_ir.AttrDef(i=2),
            "origin_format": ge_ir.AttrDef(s=b"ND"),
            "origin_format_for_int": ge_ir.AttrDef(i=2),
            "origin_shape_initialized": ge_ir.AttrDef(b=False),
        },
        dtype=1,
        layout="ND",
        size=64,
        device_type="NPU",
    )
    expected.shape.dim.extend([2, 3])
    assert tensor_desc_to_proto(PLAIN) == expected


def test_a_full_description_is_written_field_by_field() -> None:
    expected = descriptor(
        {
            "_inner_offset": ge_ir.AttrDef(i=128),
            "_init_value": ge_ir.AttrDef(t=ge_ir.TensorDef(data=b"ab")),
            "format_for_int": ge_ir.AttrDef(i=83886596),
            "origin_format": ge_ir.AttrDef(s=b"NCHW"),
            "origin_format_for_int": ge_ir.AttrDef(i=0),
            "origin_data_type": ge_ir.AttrDef(s=b"DT_FLOAT"),
            "origin_shape_initialized": ge_ir.AttrDef(b=True),
            "origin_shape": int_list(32, 16, 3, 3),
        },
        dtype=27,
        layout="FRACTAL_Z:2",
        size=9248,
        weight_size=9216,
        reuse_input=True,
        output_tensor=True,
        device_type="CPU",
        input_tensor=True,
        real_dim_cnt=4,
        reuse_input_index=1,
        data_offset=512,
        cmps_size=7,
        cmps_tab="table",
        cmps_tab_offset=9,
    )
    expected.shape.dim.extend([9, 2, 16, 16])
    expected.attr_groups.attr_group_def.add().tensor_attr_group.origin_symbol_shape.append("s")
    assert tensor_desc_to_proto(FULL) == expected


@pytest.mark.parametrize("desc", [PLAIN, FULL, PLAIN.replace(shape=()), PLAIN.replace(origin_shape=())])
def test_what_is_written_is_read(desc: TensorDesc) -> None:
    assert tensor_desc_from_proto(tensor_desc_to_proto(desc)) == desc


def test_a_scalar_has_a_shape_without_dimensions() -> None:
    td = tensor_desc_to_proto(PLAIN.replace(shape=()))
    assert td.HasField("shape")
    assert list(td.shape.dim) == []


def test_a_scalar_origin_is_an_empty_list_of_integers() -> None:
    td = tensor_desc_to_proto(PLAIN.replace(origin_shape=()))
    assert td.attr["origin_shape_initialized"].b is True
    assert td.attr["origin_shape"] == int_list()


def test_name_and_has_out_attr_are_neither_read_nor_written() -> None:
    td = tensor_desc_to_proto(PLAIN)
    td.name, td.has_out_attr = "x", True
    back = tensor_desc_to_proto(tensor_desc_from_proto(td))
    assert (back.name, back.has_out_attr) == ("", False)
    assert tensor_desc_from_proto(td) == PLAIN


def test_reading_does_not_change_the_message() -> None:
    td = descriptor({"size": ge_ir.AttrDef(i=64), "k": ge_ir.AttrDef(i=1)}, size=3, dtype=1, layout="ND")
    before = td.SerializeToString(deterministic=True)
    tensor_desc_from_proto(td)
    assert td.SerializeToString(deterministic=True) == before


def test_a_description_keeps_its_own_copies() -> None:
    td = tensor_desc_to_proto(FULL)
    desc = tensor_desc_from_proto(td)
    td.attr["_inner_offset"].i = 5
    written = tensor_desc_to_proto(desc)
    written.attr["_inner_offset"].i = 6
    assert desc.inner_offset == 128


def test_reserved_names_are_not_user_attributes() -> None:
    assert set(tensor_desc_from_proto(tensor_desc_to_proto(FULL)).attrs) == {"_inner_offset", "_init_value"}


def test_reserved_names_win_over_user_attributes_of_that_name() -> None:
    td = tensor_desc_to_proto(PLAIN.replace(attrs={"format_for_int": ge_ir.AttrDef(i=99)}))
    assert td.attr["format_for_int"].i == 2


def test_an_empty_descriptor() -> None:
    desc = tensor_desc_from_proto(ge_ir.TensorDescriptor())
    assert desc == TensorDesc(DataType.DT_UNDEFINED, Format.FORMAT_RESERVED, ())
    assert (desc.origin_format, desc.origin_shape, desc.device_type) == (Format.FORMAT_ND, None, "NPU")


@pytest.mark.parametrize(
    ("name", "attr", "field", "value"),
    [
        ("size", ge_ir.AttrDef(i=64), 1, 64),
        ("weight_size", ge_ir.AttrDef(i=24), 1, 24),
        ("real_dim_cnt", ge_ir.AttrDef(i=3), 1, 3),
        ("reuse_input_index", ge_ir.AttrDef(i=4), 1, 4),
        ("data_offset", ge_ir.AttrDef(i=512), 1, 512),
        ("cmps_size", ge_ir.AttrDef(i=6), 1, 6),
        ("cmps_tab_offset", ge_ir.AttrDef(i=7), 1, 7),
        ("reuse_input", ge_ir.AttrDef(b=True), False, True),
        ("output_tensor", ge_ir.AttrDef(b=False), True, False),
        ("input_tensor", ge_ir.AttrDef(b=True), False, True),
        ("cmps_tab", ge_ir.AttrDef(s=b"new"), "old", "new"),
        ("device_type", ge_ir.AttrDef(s=b"CPU"), "NPU", "CPU"),
        ("size", ge_ir.AttrDef(s=b"64"), 1, 0),
    ],
)
def test_an_attribute_of_an_old_writer_goes_before_the_field(
    name: str, attr: ge_ir.AttrDef, field: object, value: object
) -> None:
    without = tensor_desc_from_proto(descriptor(**{name: field}))
    desc = tensor_desc_from_proto(descriptor({name: attr}, **{name: field}))
    assert getattr(without, name) == field
    assert getattr(desc, name) == value
    assert name not in desc.attrs


def test_what_an_old_writer_put_into_attributes_is_written_into_fields() -> None:
    desc = tensor_desc_from_proto(descriptor({"size": ge_ir.AttrDef(i=64)}, layout="ND", dtype=1))
    td = tensor_desc_to_proto(desc.replace(size=96))
    assert td.size == 96
    assert "size" not in td.attr


def test_a_table_name_that_is_no_text() -> None:
    with pytest.raises(ModelFileError, match="cmps_tab"):
        tensor_desc_from_proto(descriptor({"cmps_tab": ge_ir.AttrDef(s=b"\xff\xfe")}))


@pytest.mark.parametrize(("text", "device_type"), [("NPU", "NPU"), ("CPU", "CPU"), ("", "NPU"), ("cpu", "NPU")])
def test_device_type(text: str, device_type: str) -> None:
    assert tensor_desc_from_proto(descriptor(device_type=text)).device_type == device_type


@pytest.mark.parametrize(
    ("layout", "attr", "fmt"),
    [
        ("NCHW", {}, 0),
        ("FRACTAL_Z:2", {}, 516),
        ("FRACTAL_Z:2", {"format_for_int": ge_ir.AttrDef(i=83886596)}, 83886596),
        ("NCHW", {"format_for_int": ge_ir.AttrDef(i=1)}, 1),
        ("", {}, 40),
        ("no format", {}, 40),
        ("ND", {"format_for_int": ge_ir.AttrDef(i=1 << 32 | 3)}, 3),
        ("ND", {"format_for_int": ge_ir.AttrDef(i=-1)}, -1),
    ],
)
def test_format(layout: str, attr: dict[str, ge_ir.AttrDef], fmt: int) -> None:
    assert tensor_desc_from_proto(descriptor(attr, layout=layout)).format == fmt


@pytest.mark.parametrize(
    ("attr", "fmt"),
    [
        ({}, 2),
        ({"origin_format": ge_ir.AttrDef(s=b"NHWC")}, 1),
        ({"origin_format": ge_ir.AttrDef(s=b"NHWC"), "origin_format_for_int": ge_ir.AttrDef(i=0)}, 0),
        ({"origin_format_for_int": ge_ir.AttrDef(i=516)}, 516),
        ({"origin_format": ge_ir.AttrDef(s=b"\xff")}, 40),
    ],
)
def test_origin_format(attr: dict[str, ge_ir.AttrDef], fmt: int) -> None:
    assert tensor_desc_from_proto(descriptor(attr)).origin_format == fmt


@pytest.mark.parametrize(
    ("attr", "shape"),
    [
        ({}, None),
        ({"origin_shape": int_list(4, 5)}, (4, 5)),
        ({"origin_shape": int_list(4), "origin_shape_initialized": ge_ir.AttrDef(b=True)}, (4,)),
        ({"origin_shape": int_list(4), "origin_shape_initialized": ge_ir.AttrDef(b=False)}, None),
        ({"origin_shape": int_list(), "origin_shape_initialized": ge_ir.AttrDef(b=True)}, ()),
        ({"origin_shape_initialized": ge_ir.AttrDef(b=True)}, ()),
    ],
)
def test_origin_shape(attr: dict[str, ge_ir.AttrDef], shape: tuple[int, ...] | None) -> None:
    assert tensor_desc_from_proto(descriptor(attr)).origin_shape == shape


@pytest.mark.parametrize(
    ("text", "dtype"),
    [(b"DT_BFLOAT16", DataType.DT_BF16), (b"DT_FLOAT32", DataType.DT_FLOAT), (b"\xff", DataType.DT_UNDEFINED)],
)
def test_origin_data_type(text: bytes, dtype: DataType) -> None:
    assert tensor_desc_from_proto(descriptor({"origin_data_type": ge_ir.AttrDef(s=text)})).origin_dtype is dtype


@pytest.mark.parametrize(
    ("number", "dtype"),
    [(0, DataType.DT_UNDEFINED), (1, DataType.DT_FLOAT), (28, DataType.DT_INT4), (43, DataType.DT_UNDEFINED)],
)
def test_data_type_of_the_field(number: int, dtype: DataType) -> None:
    assert tensor_desc_from_proto(descriptor(dtype=number)).dtype is dtype


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (13, "DT_DUAL"),
        (14, "DT_DUAL_SUB_INT8"),
        (15, "DT_DUAL_SUB_UINT8"),
        (16, "DT_COMPLEX64"),
        (17, "DT_COMPLEX128"),
        (18, "DT_QINT8"),
        (19, "DT_QINT16"),
        (20, "DT_QINT32"),
        (21, "DT_QUINT8"),
        (22, "DT_QUINT16"),
        (33, "DT_COMPLEX32"),
        (0, "DT_UNDEFINED"),
        (1, "DT_UNDEFINED"),
        (32, "DT_UNDEFINED"),
    ],
)
def test_data_type_of_the_attribute_goes_before_the_field(number: int, name: str) -> None:
    desc = tensor_desc_from_proto(descriptor({"__tensor_desc_data_type__": ge_ir.AttrDef(i=number)}, dtype=1))
    assert desc.dtype.name == name
    assert "__tensor_desc_data_type__" not in desc.attrs


@pytest.mark.parametrize("dtype", DataType)
def test_every_data_type_comes_back(dtype: DataType) -> None:
    desc = PLAIN.replace(dtype=dtype, origin_dtype=dtype)
    td = tensor_desc_to_proto(desc)
    assert td.dtype == dtype.to_proto()
    assert tensor_desc_from_proto(td) == desc


@pytest.mark.parametrize("fmt", Format)
def test_every_format_comes_back(fmt: Format) -> None:
    desc = PLAIN.replace(format=fmt, origin_format=fmt)
    assert tensor_desc_from_proto(tensor_desc_to_proto(desc)) == desc


def test_attribute_groups_are_carried_whole() -> None:
    td = tensor_desc_to_proto(PLAIN)
    td.attr_groups.other_group_def.attr["k"].i = 4
    env = td.attr_groups.attr_group_def.add().shape_env_attr_group
    env.value_to_symbol[3].symbols.append("s0")
    env.unique_sym_id = 9
    desc = tensor_desc_from_proto(td)
    assert desc.attr_groups != b""
    assert tensor_desc_to_proto(desc) == td


def test_attribute_groups_that_are_no_message() -> None:
    with pytest.raises(ModelFileError, match="AttrGroups"):
        tensor_desc_to_proto(PLAIN.replace(attr_groups=b"\x0a\xff"))
