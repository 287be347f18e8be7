"""Attributes from plain Python values: the way back from `attr_value`."""

from collections.abc import Sequence

from gevar.om.attr_value import AttrValue
from gevar.proto import ge_ir

_VT_LIST_STRING, _VT_LIST_INT, _VT_LIST_FLOAT, _VT_LIST_BOOL = 1, 2, 3, 4


def attr_def(value: AttrValue) -> ge_ir.AttrDef:
    """Return the attribute that holds a value. An empty list counts as one of integers.

    Raises
    ------
    TypeError
        The value is a message or None, or a list mixes kinds.
    ValueError
        An integer leaves 64 bits.

    Source: GE source, graph_metadef/proto/ge_ir.proto, AttrDef.
    """
    if isinstance(value, str):
        return ge_ir.AttrDef(s=value.encode())
    if isinstance(value, bytes):
        return ge_ir.AttrDef(bt=value)
    if isinstance(value, bool):
        return ge_ir.AttrDef(b=value)
    if isinstance(value, int):
        return ge_ir.AttrDef(i=value)
    if isinstance(value, float):
        return ge_ir.AttrDef(f=value)
    if isinstance(value, list):
        return _list_attr(value)
    raise TypeError(f"an attribute cannot be made from {type(value).__name__}; give a number, text, bytes or a list")


def bool_list(values: Sequence[bool]) -> ge_ir.AttrDef:
    """Return the attribute that holds a list of booleans, which may be empty."""
    return ge_ir.AttrDef(list=ge_ir.AttrDef_ListValue(b=values, val_type=_VT_LIST_BOOL))


def int_list(values: Sequence[int]) -> ge_ir.AttrDef:
    """Return the attribute that holds a list of integers, which may be empty."""
    return ge_ir.AttrDef(list=ge_ir.AttrDef_ListValue(i=values, val_type=_VT_LIST_INT))


def name_lists(names: Sequence[str]) -> tuple[ge_ir.AttrDef, ge_ir.AttrDef]:
    """Return the two lists of a name table, names and their indices; GE gives these no value type."""
    keys = ge_ir.AttrDef_ListValue(s=[name.encode() for name in names])
    return ge_ir.AttrDef(list=keys), ge_ir.AttrDef(list=ge_ir.AttrDef_ListValue(i=range(len(names))))


def _list_attr(values: list[int] | list[float] | list[bool] | list[str] | list[list[int]]) -> ge_ir.AttrDef:
    kinds = {type(value) for value in values}
    if len(kinds) > 1:
        raise TypeError(f"an attribute's list mixes {' and '.join(sorted(kind.__name__ for kind in kinds))}")
    if kinds == {list}:
        rows = [ge_ir.AttrDef_ListListInt_ListInt(list_i=row) for row in values if isinstance(row, list)]
        return ge_ir.AttrDef(list_list_int=ge_ir.AttrDef_ListListInt(list_list_i=rows))
    stored = ge_ir.AttrDef_ListValue(val_type=_VT_LIST_INT)
    for value in values:
        if isinstance(value, bool):
            stored.b.append(value)
            stored.val_type = _VT_LIST_BOOL
        elif isinstance(value, str):
            stored.s.append(value.encode())
            stored.val_type = _VT_LIST_STRING
        elif isinstance(value, float):
            stored.f.append(value)
            stored.val_type = _VT_LIST_FLOAT
        elif isinstance(value, int):
            stored.i.append(value)
    return ge_ir.AttrDef(list=stored)
