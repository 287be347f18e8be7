"""Values of attributes: the kinds that GE has, how each looks in Python, and the wire form of `AttrDef` there and back.

=================== ==========================================================
kind                in Python
=================== ==========================================================
VT_INT, VT_FLOAT    int, float (32 bits are kept)
VT_BOOL             bool
VT_STRING           str; bytes that are not UTF-8 are surrogates, as in paths
VT_BYTES            bytes
VT_DATA_TYPE        DataType
VT_TENSOR_DESC      TensorDesc
VT_TENSOR           GeTensor
VT_GRAPH            ComputeGraph
VT_NAMED_ATTRS      NamedAttrs
VT_EXPRESSION       Expression
VT_LIST_...         tuple of these; VT_LIST_LIST_... a tuple of tuples
VT_NONE             None
=================== ==========================================================

Source: GE source, graph_metadef/proto/ge_ir.proto, AttrDef; graph_metadef/graph/serialization.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from google.protobuf.message import Message

from gevar.proto import ge_ir
from gevar.proto.parse import parse_message
from gevar.proto.tensor_descriptor import tensor_desc_from_proto, tensor_desc_to_proto
from gevar.types.data_type import DataType
from gevar.types.tensor_desc import TensorDesc

if TYPE_CHECKING:
    from gevar.graph.attr_map import NamedAttrs
    from gevar.graph.compute_graph import ComputeGraph


class ValueType(Enum):
    """Kind of an attribute's value, by GE's names; the numbers are not GE's.

    Source: metadef source, inc/graph/any_value.h, AnyValue::ValueType.
    """

    VT_NONE = auto()
    VT_STRING = auto()
    VT_FLOAT = auto()
    VT_BOOL = auto()
    VT_INT = auto()
    VT_TENSOR_DESC = auto()
    VT_TENSOR = auto()
    VT_BYTES = auto()
    VT_GRAPH = auto()
    VT_NAMED_ATTRS = auto()
    VT_DATA_TYPE = auto()
    VT_EXPRESSION = auto()
    VT_LIST_LIST_INT = auto()
    VT_LIST_LIST_FLOAT = auto()
    VT_LIST_NONE = auto()
    VT_LIST_STRING = auto()
    VT_LIST_FLOAT = auto()
    VT_LIST_BOOL = auto()
    VT_LIST_INT = auto()
    VT_LIST_TENSOR_DESC = auto()
    VT_LIST_TENSOR = auto()
    VT_LIST_BYTES = auto()
    VT_LIST_GRAPH = auto()
    VT_LIST_NAMED_ATTRS = auto()
    VT_LIST_DATA_TYPE = auto()


@dataclass(frozen=True, slots=True)
class GeTensor:
    """A tensor kept in an attribute: its description and its bytes.

    Source: GE source, graph_metadef/graph/normal_graph/ge_tensor.cc, GeTensor.
    """

    desc: TensorDesc
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Expression:
    """A symbolic expression in its stored form."""

    serial: bytes


AttrScalar: TypeAlias = (
    "int | float | bool | str | bytes | DataType | TensorDesc | GeTensor | Expression | NamedAttrs | ComputeGraph"
)
AttrValue: TypeAlias = "AttrScalar | Sequence[AttrScalar] | Sequence[Sequence[int]] | Sequence[Sequence[float]] | None"
"""What an attribute may hold; read, a list is a tuple."""

_FIELDS: Final = {
    "s": ValueType.VT_STRING,
    "i": ValueType.VT_INT,
    "f": ValueType.VT_FLOAT,
    "b": ValueType.VT_BOOL,
    "bt": ValueType.VT_BYTES,
    "td": ValueType.VT_TENSOR_DESC,
    "t": ValueType.VT_TENSOR,
    "g": ValueType.VT_GRAPH,
    "func": ValueType.VT_NAMED_ATTRS,
    "dt": ValueType.VT_DATA_TYPE,
    "expression": ValueType.VT_EXPRESSION,
    "list_list_int": ValueType.VT_LIST_LIST_INT,
    "list_list_float": ValueType.VT_LIST_LIST_FLOAT,
}
_FIELD_OF: Final = {kind: field for field, kind in _FIELDS.items()}
_LIST_KINDS: Final = (  # place in the table: number on the wire
    (ValueType.VT_LIST_NONE, ""),
    (ValueType.VT_LIST_STRING, "s"),
    (ValueType.VT_LIST_INT, "i"),
    (ValueType.VT_LIST_FLOAT, "f"),
    (ValueType.VT_LIST_BOOL, "b"),
    (ValueType.VT_LIST_BYTES, "bt"),
    (ValueType.VT_LIST_TENSOR_DESC, "td"),
    (ValueType.VT_LIST_TENSOR, "t"),
    (ValueType.VT_LIST_GRAPH, "g"),
    (ValueType.VT_LIST_NAMED_ATTRS, "na"),
    (ValueType.VT_LIST_DATA_TYPE, "dt"),
)
_LIST_NUMBER: Final = {kind: number for number, (kind, _) in enumerate(_LIST_KINDS)}


def attr_kind(attr: ge_ir.AttrDef) -> ValueType:
    """Return the kind of a stored value; a list of old files, which say no kind, is of the kind of its items."""
    field = attr.WhichOneof("value")
    if field is None:
        return ValueType.VT_NONE
    if field != "list":
        return _FIELDS[field]
    if 0 < attr.list.val_type < len(_LIST_KINDS):
        return _LIST_KINDS[attr.list.val_type][0]
    return next((kind for kind, items in _LIST_KINDS[1:] if getattr(attr.list, items)), ValueType.VT_LIST_NONE)


def attr_from_wire(wire: bytes) -> AttrValue:
    """Return the value in a message `AttrDef` in wire form; raises as `attr_from_proto`, also for other bytes."""
    return attr_from_proto(parse_message(ge_ir.AttrDef, wire))


def attr_from_proto(attr: ge_ir.AttrDef) -> AttrValue:
    """Return the value that a message holds.

    Raises
    ------
    ModelFileError
        A tensor in it has a text that is none.
    GraphError
        It is a graph that is wrong.
    """
    kind = attr_kind(attr)
    if kind is ValueType.VT_NONE:
        return None
    if kind is ValueType.VT_LIST_LIST_INT:
        return tuple(tuple(row.list_i) for row in attr.list_list_int.list_list_i)
    if kind is ValueType.VT_LIST_LIST_FLOAT:
        return tuple(tuple(row.list_f) for row in attr.list_list_float.list_list_f)
    if kind in _FIELD_OF:
        return _from_stored(_FIELD_OF[kind], getattr(attr, _FIELD_OF[kind]))
    field = _LIST_KINDS[_LIST_NUMBER[kind]][1]
    return tuple(_from_stored(field, item) for item in getattr(attr.list, field)) if field else ()


def attr_to_wire(value: AttrValue, kind: ValueType | None = None) -> bytes:
    """Return the message of `attr_to_proto` in wire form; raises as that."""
    return attr_to_proto(value, kind).SerializeToString(deterministic=True)


def attr_to_proto(value: AttrValue, kind: ValueType | None = None) -> ge_ir.AttrDef:
    """Return the message that holds a value, of the kind that the value tells or of a given one.

    Raises
    ------
    TypeError
        The value is of no kind, or not of the given one; a list mixes kinds.
    ValueError
        A list is empty and no kind is given; an integer leaves 64 bits.
    """
    kind = kind or _kind_of(value)
    attr = ge_ir.AttrDef()
    if kind is ValueType.VT_LIST_LIST_INT:
        attr.list_list_int.SetInParent()
        for ints in cast("Sequence[Sequence[int]]", value):
            attr.list_list_int.list_list_i.add(list_i=ints)
    elif kind is ValueType.VT_LIST_LIST_FLOAT:
        attr.list_list_float.SetInParent()
        for floats in cast("Sequence[Sequence[float]]", value):
            attr.list_list_float.list_list_f.add(list_f=floats)
    elif kind in _LIST_NUMBER:
        if not isinstance(value, list | tuple):
            raise TypeError(f"{kind.name} takes a list, not {type(value).__name__}")
        attr.list.val_type = _LIST_NUMBER[kind]
        field = _LIST_KINDS[attr.list.val_type][1]
        if value and not field:
            raise ValueError(f"{kind.name} is an empty list, {len(value)} items are given")
        if value:
            getattr(attr.list, field).extend([_to_stored(field, item) for item in value])
    elif kind is not ValueType.VT_NONE:
        stored = _to_stored(_FIELD_OF[kind], value)
        if isinstance(stored, Message):
            getattr(attr, _FIELD_OF[kind]).CopyFrom(stored)
        else:
            setattr(attr, _FIELD_OF[kind], stored)
    return attr


def _from_stored(field: str, stored: object) -> AttrScalar:
    from gevar.graph.attr_map import NamedAttrs
    from gevar.graph.compute_graph import ComputeGraph

    match stored:
        case bytes() if field == "s":
            return stored.decode(errors="surrogateescape")
        case bytes() if field == "expression":
            return Expression(stored)
        case int() if field == "dt":
            return DataType.from_number(stored)
        case ge_ir.TensorDescriptor():
            return tensor_desc_from_proto(stored)
        case ge_ir.TensorDef():
            return GeTensor(tensor_desc_from_proto(stored.desc), stored.data)
        case ge_ir.NamedAttrs():
            return NamedAttrs.from_proto(stored)
        case ge_ir.GraphDef():
            return ComputeGraph.from_proto(stored)
    return cast("AttrScalar", stored)


def _to_stored(field: str, value: object) -> object:
    """What protobuf takes for a value; its own checks refuse other wrong types."""
    from gevar.graph.attr_map import NamedAttrs
    from gevar.graph.compute_graph import ComputeGraph

    if isinstance(value, bool) is not (field == "b") or isinstance(value, str) is not (field == "s"):
        raise TypeError(f"{type(value).__name__} is no value for field {field} of AttrDef")
    match value:
        case str():
            return value.encode(errors="surrogateescape")
        case Expression() if field == "expression":
            return value.serial
        case TensorDesc():
            return tensor_desc_to_proto(value)
        case GeTensor():
            return ge_ir.TensorDef(desc=tensor_desc_to_proto(value.desc), data=value.data)
        case NamedAttrs() | ComputeGraph():
            return value.to_proto()
        case DataType():
            return int(value)
    return value


def _kind_of(value: AttrValue) -> ValueType:
    """The kind that a value tells."""
    if value is None:
        return ValueType.VT_NONE
    if not isinstance(value, list | tuple):
        return _scalar_kind(value)
    kinds = {
        ValueType.VT_LIST_NONE if isinstance(item, list | tuple) else _scalar_kind(cast("AttrScalar", item))
        for item in value
    }
    if not kinds:
        raise ValueError("an empty list does not tell its kind; use set() with a ValueType")
    if len(kinds) > 1:
        raise TypeError(f"a list mixes {' and '.join(sorted(kind.name for kind in kinds))}")
    (kind,) = kinds
    if kind is ValueType.VT_LIST_NONE:
        is_float = any(isinstance(number, float) for row in value for number in cast("Sequence[float]", row))
        return ValueType.VT_LIST_LIST_FLOAT if is_float else ValueType.VT_LIST_LIST_INT
    return ValueType[kind.name.replace("VT_", "VT_LIST_")]


def _scalar_kind(value: object) -> ValueType:
    from gevar.graph.attr_map import NamedAttrs
    from gevar.graph.compute_graph import ComputeGraph

    kinds: tuple[tuple[type, ValueType], ...] = (
        (bool, ValueType.VT_BOOL),
        (DataType, ValueType.VT_DATA_TYPE),
        (int, ValueType.VT_INT),
        (float, ValueType.VT_FLOAT),
        (str, ValueType.VT_STRING),
        (bytes, ValueType.VT_BYTES),
        (TensorDesc, ValueType.VT_TENSOR_DESC),
        (GeTensor, ValueType.VT_TENSOR),
        (Expression, ValueType.VT_EXPRESSION),
        (NamedAttrs, ValueType.VT_NAMED_ATTRS),
        (ComputeGraph, ValueType.VT_GRAPH),
    )
    for cls, kind in kinds:
        if isinstance(value, cls):
            return kind
    raise TypeError(f"an attribute cannot hold {type(value).__name__}; give a number, text, bytes or a list of them")
