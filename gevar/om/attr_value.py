"""Plain Python values of model attributes."""

from google.protobuf.message import Message

from gevar.proto import ge_ir

ListOfValues = list[int] | list[float] | list[bool] | list[str] | list[list[int]]
AttrValue = int | float | bool | str | bytes | ListOfValues | Message | None
"""What an attribute may hold: a Message for tensors, graphs and lists of them; None where it has no value."""


def attr_text(data: bytes) -> str:
    """Return text of an attribute, which need not be UTF-8; other bytes are escaped."""
    return data.decode("utf-8", "backslashreplace")


def attr_value(attr: ge_ir.AttrDef) -> AttrValue:
    """Return the value of an attribute: text as str, bytes as bytes, lists of numbers or text as lists.

    Source: GE source, graph_metadef/proto/ge_ir.proto, AttrDef.
    """
    kind = attr.WhichOneof("value")
    if kind is None:
        return None
    if kind == "s":
        return attr_text(attr.s)
    if kind == "list":
        return _list_value(attr.list)
    if kind == "list_list_int":
        return [list(row.list_i) for row in attr.list_list_int.list_list_i]
    value: AttrValue = getattr(attr, kind)
    return value


def _list_value(stored: ge_ir.AttrDef_ListValue) -> AttrValue:
    if stored.s:
        return [attr_text(item) for item in stored.s]
    for numbers in (stored.i, stored.f, stored.b, stored.dt):
        if numbers:
            return list(numbers)
    return stored if any((stored.bt, stored.td, stored.t, stored.g, stored.na)) else []
