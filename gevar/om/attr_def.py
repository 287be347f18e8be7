"""Attributes for the writer: from values, and lists that may be empty."""

from collections.abc import Sequence

from gevar.graph.attr_value import AttrValue, ValueType, attr_to_proto
from gevar.proto import ge_ir


def attr_def(value: AttrValue) -> ge_ir.AttrDef:
    """Return the attribute that holds a value, as `gevar.graph` has it. An empty list counts as one of integers.

    Raises
    ------
    TypeError
        The value is None or of no kind that attributes have, or a list mixes kinds.
    ValueError
        An integer leaves 64 bits.

    Source: GE source, graph_metadef/proto/ge_ir.proto, AttrDef.
    """
    if value is None:
        raise TypeError("an attribute cannot be made from None; leave it out")
    is_empty = isinstance(value, list | tuple) and not value
    return attr_to_proto(value, ValueType.VT_LIST_INT if is_empty else None)


def bool_list(values: Sequence[bool]) -> ge_ir.AttrDef:
    """Return the attribute that holds a list of booleans, which may be empty."""
    return attr_to_proto(values, ValueType.VT_LIST_BOOL)


def int_list(values: Sequence[int]) -> ge_ir.AttrDef:
    """Return the attribute that holds a list of integers, which may be empty."""
    return attr_to_proto(values, ValueType.VT_LIST_INT)


def name_lists(names: Sequence[str]) -> tuple[ge_ir.AttrDef, ge_ir.AttrDef]:
    """Return the two lists of a name table, names and their indices; GE gives these no value type."""
    keys = ge_ir.AttrDef_ListValue(s=[name.encode() for name in names])
    return ge_ir.AttrDef(list=keys), ge_ir.AttrDef(list=ge_ir.AttrDef_ListValue(i=range(len(names))))
