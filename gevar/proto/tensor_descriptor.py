"""Tensor descriptions on the wire: `TensorDescriptor` to `TensorDesc` and back.

A `TensorDescriptor` keeps part of a description in attributes with reserved names (the exact formats, the origin).
Messages of old writers keep the stored fields (`size` and so on) there too, and a few element types.

Source: GE source, graph_metadef/graph/normal_graph/ge_tensor.cc, GeTensorSerializeUtils.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from gevar.errors import ModelFileError
from gevar.types.data_type import DataType
from gevar.types.format import Format, format_from_serial, format_to_serial
from gevar.types.tensor_desc import TensorDesc

if TYPE_CHECKING:
    from gevar.proto.ge_ir import AttrDef, TensorDescriptor

_VT_LIST_INT: Final = 2

_RESERVED: Final = frozenset(
    {
        "origin_format",
        "origin_format_for_int",
        "format_for_int",
        "origin_data_type",
        "origin_shape",
        "origin_shape_initialized",
        "__tensor_desc_data_type__",
    }
)
_STORED_AS_ATTRS: Final = frozenset(
    {
        "size",
        "weight_size",
        "reuse_input",
        "output_tensor",
        "device_type",
        "input_tensor",
        "real_dim_cnt",
        "reuse_input_index",
        "data_offset",
        "cmps_size",
        "cmps_tab",
        "cmps_tab_offset",
    }
)
"""Fields that old writers put into attributes; there they count more than the field."""

_SELF_DEFINED_TYPES: Final = {
    13: DataType.DT_DUAL,
    14: DataType.DT_DUAL_SUB_INT8,
    15: DataType.DT_DUAL_SUB_UINT8,
    16: DataType.DT_COMPLEX64,
    17: DataType.DT_COMPLEX128,
    18: DataType.DT_QINT8,
    19: DataType.DT_QINT16,
    20: DataType.DT_QINT32,
    21: DataType.DT_QUINT8,
    22: DataType.DT_QUINT16,
    33: DataType.DT_COMPLEX32,
}
"""Numbers in the attribute `__tensor_desc_data_type__` (GE: kDataTypeSelfDefinedMap)."""


def tensor_desc_from_proto(td: "TensorDescriptor") -> TensorDesc:
    """Return the description that a message holds; the message stays as it is.

    Numbers and texts that GE does not know become `DT_UNDEFINED` and `FORMAT_RESERVED`. The message's name is not part
    of a description.

    Raises
    ------
    ModelFileError
        The attribute `cmps_tab` of an old message is not UTF-8 text.

    Thread safety: any thread may call while nobody changes the message.

    Source: GE source, graph_metadef/graph/normal_graph/ge_tensor.cc, AssembleGeTensorDescFromProto,
    NormalizeGeTensorDescProto (which changes the message; gevar does not).
    """
    attr = td.attr
    return TensorDesc(
        dtype=_dtype(td),
        format=_format(attr, "format_for_int", td.layout),
        shape=tuple(td.shape.dim),
        origin_format=_origin_format(attr),
        origin_shape=_origin_shape(attr),
        origin_dtype=DataType.from_serial(_text(attr, "origin_data_type")),
        size=_int(attr, "size", td.size),
        weight_size=_int(attr, "weight_size", td.weight_size),
        data_offset=_int(attr, "data_offset", td.data_offset),
        real_dim_cnt=_int(attr, "real_dim_cnt", td.real_dim_cnt),
        reuse_input=_bool(attr, "reuse_input", td.reuse_input),
        reuse_input_index=_int(attr, "reuse_input_index", td.reuse_input_index),
        output_tensor=_bool(attr, "output_tensor", td.output_tensor),
        input_tensor=_bool(attr, "input_tensor", td.input_tensor),
        device_type="CPU" if _text(attr, "device_type", td.device_type) == "CPU" else "NPU",
        cmps_size=_int(attr, "cmps_size", td.cmps_size),
        cmps_tab=_cmps_tab(td),
        cmps_tab_offset=_int(attr, "cmps_tab_offset", td.cmps_tab_offset),
        attrs=_user_attrs(attr),
        attr_groups=td.attr_groups.SerializeToString(deterministic=True) if td.HasField("attr_groups") else b"",
    )


def tensor_desc_to_proto(desc: TensorDesc) -> "TensorDescriptor":
    """Return the message that holds a description.

    Raises
    ------
    ModelFileError
        `attr_groups` is no message `AttrGroups`.

    Thread safety: any thread may call.

    Source: GE source, graph_metadef/graph/normal_graph/ge_tensor.cc, GeTensorSerializeUtils::GeTensorDescAsProto.
    """
    from gevar.proto.ge_ir import AttrGroups, TensorDescriptor
    from gevar.proto.parse import parse_message

    td = TensorDescriptor(
        dtype=desc.dtype.to_proto(),
        layout=format_to_serial(desc.format),
        size=desc.size,
        weight_size=desc.weight_size,
        reuse_input=desc.reuse_input,
        output_tensor=desc.output_tensor,
        device_type=desc.device_type,
        input_tensor=desc.input_tensor,
        real_dim_cnt=desc.real_dim_cnt,
        reuse_input_index=desc.reuse_input_index,
        data_offset=desc.data_offset,
        cmps_size=desc.cmps_size,
        cmps_tab=desc.cmps_tab,
        cmps_tab_offset=desc.cmps_tab_offset,
    )
    td.shape.SetInParent()
    td.shape.dim.extend(desc.shape)
    if desc.attr_groups:
        td.attr_groups.CopyFrom(parse_message(AttrGroups, desc.attr_groups))
    for name, value in desc.attrs.items():
        td.attr[name].CopyFrom(value)
    _write_reserved(td, desc)
    return td


def _write_reserved(td: "TensorDescriptor", desc: TensorDesc) -> None:
    attr = td.attr
    attr["format_for_int"].i = desc.format
    attr["origin_format"].s = format_to_serial(desc.origin_format).encode()
    attr["origin_format_for_int"].i = desc.origin_format
    attr["origin_shape_initialized"].b = desc.origin_shape is not None
    if desc.origin_dtype != DataType.DT_UNDEFINED:
        attr["origin_data_type"].s = desc.origin_dtype.to_serial().encode()
    if desc.origin_shape is not None:
        attr["origin_shape"].list.val_type = _VT_LIST_INT
        attr["origin_shape"].list.i.extend(desc.origin_shape)


def is_user_attr(name: str) -> bool:
    """Return whether an attribute of a message is one of its description, not a part of it under a reserved name."""
    return name not in _RESERVED and name not in _STORED_AS_ATTRS


def _user_attrs(attr: Mapping[str, "AttrDef"]) -> dict[str, "AttrDef"]:
    """Copies of the attributes without a reserved name; a copy does not keep the whole model in memory."""
    copies = {}
    for name, value in attr.items():
        if is_user_attr(name):
            copies[name] = type(value)()
            copies[name].CopyFrom(value)
    return copies


def _dtype(td: "TensorDescriptor") -> DataType:
    if "__tensor_desc_data_type__" in td.attr:
        return _SELF_DEFINED_TYPES.get(td.attr["__tensor_desc_data_type__"].i, DataType.DT_UNDEFINED)
    return DataType.from_proto(td.dtype)


def _format(attr: Mapping[str, "AttrDef"], name: str, text: str) -> int:
    """The exact number where the message has it, cut to the 32 bits of GE's enum; else what the text says."""
    if name in attr:
        return (attr[name].i + (1 << 31)) % (1 << 32) - (1 << 31)
    return format_from_serial(text)


def _origin_format(attr: Mapping[str, "AttrDef"]) -> int:
    if "origin_format" not in attr and "origin_format_for_int" not in attr:
        return Format.FORMAT_ND
    return _format(attr, "origin_format_for_int", _text(attr, "origin_format"))


def _origin_shape(attr: Mapping[str, "AttrDef"]) -> tuple[int, ...] | None:
    """None unless set; messages from before `origin_shape_initialized` tell by having the shape."""
    if "origin_shape_initialized" in attr:
        initialized = attr["origin_shape_initialized"].b
    else:
        initialized = "origin_shape" in attr
    if not initialized:
        return None
    return tuple(attr["origin_shape"].list.i) if "origin_shape" in attr else ()


def _int(attr: Mapping[str, "AttrDef"], name: str, value: int) -> int:
    return attr[name].i if name in attr else value


def _bool(attr: Mapping[str, "AttrDef"], name: str, value: bool) -> bool:
    return attr[name].b if name in attr else value


def _text(attr: Mapping[str, "AttrDef"], name: str, value: str = "") -> str:
    """Text of an attribute; bytes that are no UTF-8 become a text that names nothing."""
    return attr[name].s.decode(errors="replace") if name in attr else value


def _cmps_tab(td: "TensorDescriptor") -> str:
    if "cmps_tab" not in td.attr:
        return td.cmps_tab
    try:
        return td.attr["cmps_tab"].s.decode()
    except UnicodeDecodeError as error:
        raise ModelFileError(None, None, "TensorDescriptor attribute cmps_tab", f"is no UTF-8 text: {error}") from error
