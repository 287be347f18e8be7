"""What differs between the messages of mobile models (dialect M) and those of the other dialects.

Source: GE source, base/common/helper/mobile.
"""

from collections.abc import Iterator, MutableMapping
from typing import Final

from gevar.om.source import ByteSource
from gevar.om.wire import LENGTH_DELIMITED, walk_fields
from gevar.proto import ge_ir
from gevar.proto.parse import unknown_field_numbers

_MOBILE_LIST_LIST_FLOAT: Final = 15
"""Number of `list_list_float` in an AttrDef of dialect M; 16 in the others, where 15 is a data type."""


def to_server_numbers(message: ge_ir.ModelDef) -> None:
    """Give the attributes of a mobile model the field numbers of the other dialects, in place.

    Attributes of the model, its graphs, operators and descriptions are looked at, values inside values are not.
    """
    for attrs in _attr_maps(message):
        for name in attrs:
            if _MOBILE_LIST_LIST_FLOAT in unknown_field_numbers(attrs[name]):
                _move(attrs[name])


def _attr_maps(message: ge_ir.ModelDef) -> Iterator[MutableMapping[str, ge_ir.AttrDef]]:
    yield message.attr
    for graph in message.graph:
        yield graph.attr
        for op in graph.op:
            yield op.attr
            yield from (desc.attr for desc in (*op.input_desc, *op.output_desc))


def _move(attr: ge_ir.AttrDef) -> None:
    data = attr.SerializeToString(deterministic=True)
    attr.Clear()
    for item in walk_fields(ByteSource.of_bytes(data, "AttrDef"), 0, len(data), "AttrDef"):
        if item.number == _MOBILE_LIST_LIST_FLOAT and item.wire_type == LENGTH_DELIMITED:
            attr.list_list_float.MergeFromString(data[item.value_start : item.end])
        else:
            attr.MergeFromString(data[item.start : item.end])
