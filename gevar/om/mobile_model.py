"""What differs between the messages of mobile models (dialect M) and those of the other dialects.

Source: GE source, base/common/helper/mobile.
"""

from collections.abc import Iterator
from typing import Final, cast

from google.protobuf.message import Message

from gevar.om.source import ByteSource
from gevar.om.wire import LENGTH_DELIMITED, walk_fields
from gevar.proto import ge_ir
from gevar.proto.parse import unknown_field_numbers

_MOBILE_LIST_LIST_FLOAT: Final = 15
"""Number of `list_list_float` in an AttrDef of dialect M; 16 in the others, where 15 is a data type."""


def to_server_numbers(message: Message) -> None:
    """Give the attributes in a message of a mobile model, at any depth, the field numbers of the other dialects."""
    for inner in _messages_in(message):
        if isinstance(inner, ge_ir.AttrDef) and _MOBILE_LIST_LIST_FLOAT in unknown_field_numbers(inner):
            _move(inner)
        to_server_numbers(inner)


def _messages_in(message: Message) -> Iterator[Message]:
    """Yield the messages in the fields of a message, those in lists and maps too."""
    for field, value in message.ListFields():
        if isinstance(value, Message):
            yield value
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            yield from (value[key] for key in value if isinstance(value[key], Message))
        elif field.message_type is not None:
            yield from cast("Iterator[Message]", value)


def _move(attr: ge_ir.AttrDef) -> None:
    data = attr.SerializeToString(deterministic=True)
    attr.Clear()
    for item in walk_fields(ByteSource.of_bytes(data, "AttrDef"), 0, len(data), "AttrDef"):
        if item.number == _MOBILE_LIST_LIST_FLOAT and item.wire_type == LENGTH_DELIMITED:
            attr.list_list_float.MergeFromString(data[item.value_start : item.end])
        else:
            attr.MergeFromString(data[item.start : item.end])
