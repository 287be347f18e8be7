"""Walking the fields of a protobuf message where it lies, without decoding it.

Reading a whole message to look at a few fields costs its size twice, in bytes and in objects. A walk reads small
windows and skips over the values, so it can find the one field that holds a nested OM, leave out what is not wanted,
or see how a message splits into pieces that are decoded one by one.

Source: protobuf encoding, https://protobuf.dev/programming-guides/encoding/ (format, not code).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from google.protobuf.descriptor import FieldDescriptor

from gevar.om.source import ByteSource

if TYPE_CHECKING:
    from google._upb._message import Descriptor as CompiledDescriptor
    from google._upb._message import FieldDescriptor as CompiledFieldDescriptor
    from google.protobuf.descriptor import Descriptor

VARINT = 0
FIXED64 = 1
LENGTH_DELIMITED = 2
START_GROUP = 3
END_GROUP = 4
FIXED32 = 5

_WINDOW_BYTES = 1 << 16
_HEAD_MAX_BYTES = 20
"""Tag and length, each a variable-length number of at most 10 bytes."""
_MAX_FIELD_NUMBER = (1 << 29) - 1
_FIXED_BYTES = {FIXED64: 8, FIXED32: 4}
_MESSAGE_BYTES = 180
_TEXT_BYTES = 20
"""Memory that a message or a text takes, whatever is in it."""
_TEXT_TYPES = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
_WIRE_TYPES = {
    FieldDescriptor.TYPE_DOUBLE: FIXED64,
    FieldDescriptor.TYPE_FIXED64: FIXED64,
    FieldDescriptor.TYPE_SFIXED64: FIXED64,
    FieldDescriptor.TYPE_FLOAT: FIXED32,
    FieldDescriptor.TYPE_FIXED32: FIXED32,
    FieldDescriptor.TYPE_SFIXED32: FIXED32,
    FieldDescriptor.TYPE_STRING: LENGTH_DELIMITED,
    FieldDescriptor.TYPE_BYTES: LENGTH_DELIMITED,
    FieldDescriptor.TYPE_MESSAGE: LENGTH_DELIMITED,
}


class WireField(NamedTuple):
    """One field: bytes `start` to `end` with its tag, the value from `value_start`; `value` of a varint field."""

    number: int
    wire_type: int
    start: int
    value_start: int
    end: int
    value: int


def walk_fields(
    source: ByteSource, start: int, end: int, what: str, *, large_bytes: int = 0, piece_bytes: int = 0
) -> Iterator[WireField]:
    """Yield the fields of the message in bytes `start` to `end`; `what` names it in errors.

    A group, which proto3 does not have, is passed over.

    Parameters
    ----------
    source, start, end, what
        The message.
    large_bytes, piece_bytes
        Where given, smaller fields may be passed over, but for one that ends so many bytes after the last one yielded.

    Raises
    ------
    ModelFileError
        The bytes are not a message: a field is cut off, has number 0 or an unknown type.
    """
    position = window_start = yielded = start
    window = b""
    depth = 0
    while position < end:
        if piece_bytes and not depth:
            most = min(yielded + piece_bytes, window_start + len(window))
            position = window_start + _pass_small(window, position - window_start, most - window_start, large_bytes)
        if position + _HEAD_MAX_BYTES > window_start + len(window) and window_start + len(window) < end:
            window_start, window = position, source.read(position, min(_WINDOW_BYTES, end - position), what)
        try:
            field = _field_at(window, position - window_start, window_start)
        except IndexError as error:
            raise source.error(position, what, f"not a protobuf message: cut off at {end}") from error
        except ValueError as error:
            raise source.error(position, what, f"not a protobuf message: {error}") from error
        if field.end > end:
            reason = f"not a protobuf message: field {field.number} ends at {field.end}, the message at {end}"
            raise source.error(position, what, reason)
        position = field.end
        if field.wire_type == START_GROUP:
            depth += 1
        elif field.wire_type == END_GROUP:
            depth -= 1
        elif depth == 0:
            yield field
            yielded = position
        if position > window_start + len(window):
            window_start, window = position, b""
        if depth < 0 or (depth and position == end):
            raise source.error(position, what, "not a protobuf message: start and end of a group do not match")


def read_value(source: ByteSource, field: WireField, what: str) -> bytes:
    """Return the bytes of a field's value."""
    return source.read(field.value_start, field.end - field.value_start, what)


def read_text(source: ByteSource, field: WireField, what: str) -> str:
    """Return the value of a text field.

    Raises
    ------
    ModelFileError
        The bytes are not UTF-8.
    """
    try:
        return read_value(source, field, what).decode()
    except UnicodeDecodeError as error:
        raise source.error(field.value_start, what, f"text is not UTF-8: {error.reason}") from error


def count_unknown_fields(
    source: ByteSource, start: int, end: int, descriptor: "Descriptor | CompiledDescriptor", what: str
) -> int:
    """Return how many fields of a message, at any depth, its descriptor does not know."""
    count = 0
    for field in walk_fields(source, start, end, what):
        known = descriptor.fields_by_number.get(field.number)
        if known is None or not _fits(known, field.wire_type):
            count += 1
        elif known.message_type is not None:
            count += count_unknown_fields(source, field.value_start, field.end, known.message_type, what)
    return count


def parts_bytes(source: ByteSource, descriptor: "Descriptor | CompiledDescriptor", what: str, most_bytes: int) -> int:
    """Return the bytes of memory that the messages and texts in a message take beside what is in them, about.

    Counting ends where they are more than `most_bytes`. Raises as `walk_fields`.
    """
    needed_bytes, waiting = 0, [(0, source.size_bytes, descriptor)]
    while waiting:
        start, end, descriptor = waiting.pop()
        for field in walk_fields(source, start, end, what):
            known = descriptor.fields_by_number.get(field.number)
            if known is None or field.wire_type != LENGTH_DELIMITED:
                continue
            if known.message_type is not None:
                needed_bytes += _MESSAGE_BYTES
                if field.end > field.value_start:
                    waiting.append((field.value_start, field.end, known.message_type))
            elif known.type in _TEXT_TYPES:
                needed_bytes += _TEXT_BYTES
            if needed_bytes > most_bytes:
                return needed_bytes
    return needed_bytes


def _fits(known: "FieldDescriptor | CompiledFieldDescriptor", wire_type: int) -> bool:
    """Whether a field may come with this wire type; repeated numbers may also come packed."""
    expected = _WIRE_TYPES.get(known.type, VARINT)
    return wire_type in (expected, LENGTH_DELIMITED)


def _field_at(window: bytes, index: int, window_start: int) -> WireField:
    start = index
    tag, index = _varint(window, index)
    number, wire_type = tag >> 3, tag & 7
    if not 1 <= number <= _MAX_FIELD_NUMBER:
        raise ValueError(f"field number {number}")
    value = 0
    value_start = index
    if wire_type == VARINT:
        value, index = _varint(window, index)
    elif wire_type == LENGTH_DELIMITED:
        size_bytes, value_start = _varint(window, index)
        index = value_start + size_bytes
    elif wire_type in _FIXED_BYTES:
        index += _FIXED_BYTES[wire_type]
    elif wire_type not in (START_GROUP, END_GROUP):
        raise ValueError(f"field {number} has the unknown wire type {wire_type}")
    return WireField(number, wire_type, window_start + start, window_start + value_start, window_start + index, value)


def _pass_small(window: bytes, index: int, end: int, large_bytes: int) -> int:
    """Return the index after fields of the commonest form, a text or message, that end before an index.

    Only forms of a tag of one byte and a length of one or two are known here; at any other the index stays.
    """
    end -= _HEAD_MAX_BYTES
    while index < end:
        tag, size_bytes = window[index], window[index + 1]
        after = index + 2
        if size_bytes >= 0x80:
            more = window[index + 2]
            if more >= 0x80:
                return index
            size_bytes, after = size_bytes & 0x7F | more << 7, index + 3
        if tag & 0x87 != LENGTH_DELIMITED or tag == LENGTH_DELIMITED or size_bytes >= large_bytes:
            return index
        if after + size_bytes >= end:
            return index
        index = after + size_bytes
    return index


def _varint(window: bytes, index: int) -> tuple[int, int]:
    """Return the number at an index and the index after it."""
    value = window[index]
    index += 1
    if value < 0x80:
        return value, index
    value &= 0x7F
    for shift in range(7, 70, 7):
        byte = window[index]
        index += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, index
    raise ValueError("a number of more than 10 bytes")
