"""Attribute names as numbers: the way back from `attr_names`.

A name gets a number when it is met first: node by node, the attributes of the operator, then those of its inputs and
outputs, each in the order of names. Names that serialisation adds behind the compression stay plain.

In a dynamic file the graphs of the sub-models are those of the root. If the root is partitioned by shape, one table in
the first model serves all. Otherwise root and sub-models are compressed one after the other over the same graphs: a
sub-model has the root's numbers, and over them numbers of its own.

Source: GE source, base/common/model/model_compress_manager.cc and graph_metadef/graph/utils/enum_attr_utils.cc.
"""

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from typing import Final

from gevar.errors import ModelFileError
from gevar.om.attr_names import (
    ATTR_NAME_ENUM_ATTR,
    ATTR_VALUE_ENUM_ATTR,
    ATTRS_USE_STRING_VALUE_ATTR,
    OM_COMPRESS_VERSION_ATTR,
    attr_table,
    compressed_name,
)
from gevar.proto import ge_ir

SHAPE_PARTITIONED_ATTR: Final = "_dynamic_shape_partitioned"
"""Graph attribute of a root that is partitioned by shape."""

COMPRESSION_ATTRS: Final = (
    OM_COMPRESS_VERSION_ATTR,
    ATTR_NAME_ENUM_ATTR,
    ATTR_VALUE_ENUM_ATTR,
    ATTRS_USE_STRING_VALUE_ATTR,
)
"""Model attributes that hold the tables."""
_DROPPED: Final = ("_l2fusion_ToOpStruct", "_op_slice_info")
_PLAIN_OF_OPS: Final = frozenset(
    {
        *("_input_name_key", "_input_name_value", "_output_name_key", "_output_name_value", "_opt_input"),
        *("_ir_inputs_key", "_ir_inputs_value", "_ir_outputs_key", "_ir_outputs_value", "_ir_attr_names"),
    }
)
_PLAIN_OF_DESCS: Final = frozenset(
    {
        *("origin_format", "origin_format_for_int", "format_for_int", "origin_data_type", "__tensor_desc_data_type__"),
        *("origin_shape", "origin_shape_initialized"),
    }
)
_VT_LIST_STRING, _VT_LIST_INT, _VT_LIST_BOOL = 1, 2, 4


def compress(models: Sequence[ge_ir.ModelDef]) -> None:
    """Replace the attribute names of the models of one file by numbers, in place; the first one is the root.

    A table that a model has already keeps its numbers and grows. `_l2fusion_ToOpStruct` and `_op_slice_info` are
    dropped, as GE does.
    """
    for message in models:
        _drop(message)
    root, *others = models
    table = _Table.of(root, models)
    for message in models:
        table.apply(message)
    table.write(root)
    serves_all = any(is_shape_partitioned(graph) for graph in root.graph[:1])
    for message in others:
        if serves_all:
            forget_compression(message)
        else:
            own = _Table.of(message, [message])
            own.apply(message)
            own.write(message)


def forget_compression(message: ge_ir.ModelDef) -> None:
    """Remove the tables of a model whose names are plain."""
    for name in COMPRESSION_ATTRS:
        message.attr.pop(name, None)


def is_shape_partitioned(graph: ge_ir.GraphDef) -> bool:
    """Tell whether a graph says that it is partitioned by shape."""
    return SHAPE_PARTITIONED_ATTR in graph.attr and graph.attr[SHAPE_PARTITIONED_ATTR].b is True


def _drop(message: ge_ir.ModelDef) -> None:
    for graph in message.graph:
        for op in graph.op:
            for name in _DROPPED:
                op.attr.pop(name, None)


def _maps(message: ge_ir.ModelDef) -> Iterator[tuple[MutableMapping[str, ge_ir.AttrDef], frozenset[str]]]:
    """Yield every map of attributes that is compressed, with the names in it that stay plain."""
    for graph in message.graph:
        for op in graph.op:
            yield op.attr, _PLAIN_OF_OPS
            for desc in (*op.input_desc, *op.output_desc):
                if desc.attr:
                    yield desc.attr, _PLAIN_OF_DESCS


def _is_text(attr: ge_ir.AttrDef) -> bool:
    """Whether a value is text or a list of texts that a table gives back as it is."""
    kind = attr.WhichOneof("value")
    if kind == "list" and attr.list.val_type == _VT_LIST_STRING:
        plain = ge_ir.AttrDef(list=ge_ir.AttrDef_ListValue(s=attr.list.s, val_type=_VT_LIST_STRING))
        return bool(attr == plain)
    return bool(kind == "s" and attr == ge_ir.AttrDef(s=attr.s))  # without unknown fields


class _Table:
    """Names and values by number, as they grow."""

    def __init__(self, names: Sequence[str] = (), flags: Sequence[bool] = (), values: Sequence[bytes] = ()) -> None:
        self._names = {name: index for index, name in enumerate(names)}
        self._flags = list(flags)
        self._values = {value: index for index, value in enumerate(values)}

    @classmethod
    def of(cls, owner: ge_ir.ModelDef, models: Iterable[ge_ir.ModelDef]) -> "_Table":
        """Return a table for models: that of the owner where it has one that still fits, and all their names."""
        is_text: dict[str, bool] = {}
        for message in models:
            for attrs, plain in _maps(message):
                for name in sorted(attrs):
                    if name not in plain:
                        is_text[name] = is_text.get(name, True) and _is_text(attrs[name])
        table = cls._stored(owner, is_text) or cls()
        for name, flag in is_text.items():
            if name not in table._names:
                table._names[name] = len(table._flags)
                table._flags.append(flag)
        return table

    @classmethod
    def _stored(cls, owner: ge_ir.ModelDef, is_text: dict[str, bool]) -> "_Table | None":
        """Return the table in a model's attributes; None without one, or where a text became something else."""
        stored = attr_table(owner.attr, lambda reason: ModelFileError(None, None, f"model {owner.name}", reason))
        if stored is None or any(len(set(items)) < len(items) for items in (stored.names, stored.values)):
            return None
        flags = dict(zip(stored.names, stored.use_string_value, strict=True))
        if any(flag and not is_text.get(name, True) for name, flag in flags.items()):
            return None
        return cls(stored.names, stored.use_string_value, stored.values)

    def apply(self, message: ge_ir.ModelDef) -> None:
        """Compress the attributes of a model."""
        for attrs, plain in _maps(message):
            found = {}  # a number may be the name of another attribute: all are taken out before one is put back
            for name in sorted(attrs):
                if name not in plain:
                    number = self._names[name]
                    found[compressed_name(number)] = self._value(self._flags[number], attrs[name])
            for name in [name for name in attrs if name not in plain]:
                del attrs[name]
            for name, attr in found.items():
                attrs[name].CopyFrom(attr)

    def write(self, message: ge_ir.ModelDef) -> None:
        """Put the table among the attributes of a model."""
        forget_compression(message)
        names, values = [name.encode() for name in self._names], list(self._values)
        message.attr[OM_COMPRESS_VERSION_ATTR].i = 1
        lists = {
            ATTR_NAME_ENUM_ATTR: ge_ir.AttrDef_ListValue(s=names, val_type=_VT_LIST_STRING),
            ATTR_VALUE_ENUM_ATTR: ge_ir.AttrDef_ListValue(s=values, val_type=_VT_LIST_STRING),
            ATTRS_USE_STRING_VALUE_ATTR: ge_ir.AttrDef_ListValue(b=self._flags, val_type=_VT_LIST_BOOL),
        }
        for name, stored in lists.items():
            message.attr[name].CopyFrom(ge_ir.AttrDef(list=stored))

    def _value(self, is_text: bool, attr: ge_ir.AttrDef) -> ge_ir.AttrDef:
        if not is_text:
            copied = ge_ir.AttrDef()
            copied.CopyFrom(attr)
            return copied
        if attr.WhichOneof("value") == "s":
            return ge_ir.AttrDef(i=self._number(attr.s))
        numbers = [self._number(text) for text in attr.list.s]
        return ge_ir.AttrDef(list=ge_ir.AttrDef_ListValue(i=numbers, val_type=_VT_LIST_INT))

    def _number(self, text: bytes) -> int:
        return self._values.setdefault(text, len(self._values))
