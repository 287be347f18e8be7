"""Attributes of models that are plain values: numbers, text, lists of them, and bytes."""

from typing import Final, TypeAlias, cast

from gevar.graph.attr_value import ValueType, attr_from_proto, attr_kind
from gevar.proto import ge_ir

PlainScalar: TypeAlias = int | float | bool | str | bytes
PlainValue: TypeAlias = PlainScalar | tuple[PlainScalar, ...] | tuple[tuple[int | float, ...], ...]
"""A value of one of `PLAIN_KINDS`, as `gevar.graph` has it."""

PLAIN_KINDS: Final = frozenset(
    {
        *(ValueType.VT_INT, ValueType.VT_FLOAT, ValueType.VT_BOOL, ValueType.VT_STRING, ValueType.VT_DATA_TYPE),
        *(ValueType.VT_LIST_INT, ValueType.VT_LIST_FLOAT, ValueType.VT_LIST_BOOL, ValueType.VT_LIST_STRING),
        *(ValueType.VT_LIST_DATA_TYPE, ValueType.VT_LIST_NONE, ValueType.VT_BYTES),
        *(ValueType.VT_LIST_LIST_INT, ValueType.VT_LIST_LIST_FLOAT),
    }
)


def plain_value(attr: ge_ir.AttrDef | None) -> PlainValue | None:
    """Return the value of an attribute; None for one of another kind, and for none."""
    if attr is None or attr_kind(attr) not in PLAIN_KINDS:
        return None
    return cast("PlainValue", attr_from_proto(attr))
