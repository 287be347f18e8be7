"""What a message in wire form takes when it is decoded, without decoding it.

A few bytes may stand for many in memory: a packed number of one byte for a number of eight, an empty message of two
bytes for an object of hundreds. So a large message is looked at field by field before it is decoded. The figures are
those of the compiled protobuf, whose arrays grow to twice their size and leave the shorter ones behind.

Source: protobuf encoding, https://protobuf.dev/programming-guides/encoding/ (format, not code).
"""

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from google.protobuf.descriptor import FieldDescriptor

if TYPE_CHECKING:
    from google._upb._message import Descriptor as CompiledDescriptor
    from google._upb._message import FieldDescriptor as CompiledFieldDescriptor
    from google.protobuf.descriptor import Descriptor

SMALL_BYTES: Final = 1 << 16
"""A message of fewer bytes needs no look: it takes some mebibytes, whatever is in it."""
MAX_DEPTH: Final = 100
"""Messages in messages that protobuf decodes."""
_GROWN: Final = 3
_TEXT_BYTES = 16
_ENTRY_BYTES: Final = 160
"""What an entry of a map takes beside its key and value."""
_VARINT, _FIXED64, _LENGTH, _START_GROUP, _END_GROUP, _FIXED32 = range(6)
_MAX_VARINT_BYTES: Final = 10
_FILLED_BYTES: Final = 64
"""What a message that has fields takes for the first of them: a list of one number has room for four."""
_LABEL_REPEATED: Final = 3
_BLOCK_BYTES: Final = 1 << 16
"""Bytes of a packed list that are looked at together."""
_WIDTHS: Final = {
    FieldDescriptor.TYPE_FLOAT: 4,
    FieldDescriptor.TYPE_FIXED32: 4,
    FieldDescriptor.TYPE_SFIXED32: 4,
    FieldDescriptor.TYPE_DOUBLE: 8,
    FieldDescriptor.TYPE_FIXED64: 8,
    FieldDescriptor.TYPE_SFIXED64: 8,
}
_MESSAGE_FIELD_BYTES: Final = {
    FieldDescriptor.TYPE_BOOL: 1,
    FieldDescriptor.TYPE_ENUM: 4,
    FieldDescriptor.TYPE_FLOAT: 4,
}


class _Rule(NamedTuple):
    """A field of a message: what one item of it takes; the message in it, or whether it is text; bytes of a number."""

    item_bytes: int
    message: "CompiledDescriptor | Descriptor | None"
    is_text: bool
    packed_bytes: int | None
    """Of a list of numbers: bytes of each, 0 where they differ; None for a field of something else."""


def decoded_bytes(data: bytes, descriptor: "CompiledDescriptor | Descriptor") -> int:
    """Return what a message takes in memory at most when it is decoded, in bytes; its time is linear in its size.

    Raises
    ------
    ValueError
        The bytes are no such message: cut off, damaged, text that is not UTF-8, or nested deeper than protobuf decodes.

    Thread safety: any thread may call.

    Examples
    --------
    >>> from gevar.proto import ge_ir
    >>> decoded_bytes(bytes([10, 2, 3, 4]), ge_ir.ShapeDef.DESCRIPTOR) > 16
    True
    """
    try:
        return _base_bytes(descriptor) + _look(data, descriptor)
    except IndexError:
        raise ValueError(f"cut off at {len(data)} B") from None


def _look(data: bytes, descriptor: "CompiledDescriptor | Descriptor") -> int:
    """Return what the fields of a message take, and of those in it."""
    total, index, end, rules = 0, 0, len(data), _rules(descriptor)
    outer: list[tuple[int, dict[int, _Rule]]] = []
    while index < end or outer:
        if index == end:
            end, rules = outer.pop()
            continue
        tag, index = (data[index], index + 1) if data[index] < 0x80 else _varint(data, index)
        rule = rules.get(tag)
        if rule is None and not 8 <= tag < 1 << 32:
            raise ValueError(f"field number {tag >> 3}")
        if tag & 7 != _LENGTH:
            total += 2 * _TEXT_BYTES if rule is None else rule.item_bytes
            index = _behind_number(data, index, tag)
        else:
            size, index = (data[index], index + 1) if data[index] < 0x80 else _varint(data, index)
            after = index + size
            if after <= end and rule is not None and rule.message is not None:
                total += rule.item_bytes
                outer.append((end, rules))
                if len(outer) >= MAX_DEPTH:
                    raise ValueError(f"messages nested deeper than {MAX_DEPTH}")
                end, rules = after, _rules(rule.message)
                total += _FILLED_BYTES if size else 0
            else:
                total += size + _TEXT_BYTES if rule is None else _value_bytes(data, index, after, rule)
                index = after
        if index > end:
            raise ValueError(f"a field ends at {index}, its message at {end}")
    return total


def _value_bytes(data: bytes, start: int, end: int, rule: _Rule) -> int:
    """Return what a text, bytes or a packed list takes."""
    if rule.packed_bytes is not None:
        return rule.item_bytes * _count(data, start, end, rule.packed_bytes)
    if rule.is_text and start < end <= len(data):
        data[start:end].decode()
    return rule.item_bytes + end - start


def _behind_number(data: bytes, index: int, tag: int) -> int:
    """Return the index behind a number of 64 bits at most, or behind a group, which proto3 does not have."""
    wire_type = tag & 7
    if wire_type == _VARINT:
        return index + 1 if data[index] < 0x80 else _varint(data, index)[1]
    if wire_type in (_FIXED64, _FIXED32):
        return index + (8 if wire_type == _FIXED64 else 4)
    if wire_type == _START_GROUP:
        return _behind_group(data, index, tag >> 3)
    raise ValueError(f"a field has the wire type {wire_type}")


def _behind_group(data: bytes, index: int, number: int) -> int:
    """Return the index behind a group, whose start was read."""
    open_groups = [number]
    while open_groups:
        tag, index = _varint(data, index)
        if not 8 <= tag < 1 << 32 or len(open_groups) >= MAX_DEPTH:
            raise ValueError(f"field number {tag >> 3}, {len(open_groups)} groups deep")
        if tag & 7 == _END_GROUP:
            if tag >> 3 != open_groups.pop():
                raise ValueError(f"the end of group {tag >> 3}, which did not start")
        elif tag & 7 == _START_GROUP:
            open_groups.append(tag >> 3)
        elif tag & 7 == _LENGTH:
            size, index = _varint(data, index)
            index += size
        else:
            index = _behind_number(data, index, tag)
    return index


def _varint(data: bytes, index: int) -> tuple[int, int]:
    value = 0
    for place in range(_MAX_VARINT_BYTES):
        byte = data[index + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, index + place + 1
    raise ValueError(f"a number of more than {_MAX_VARINT_BYTES} bytes")


def _count(data: bytes, start: int, end: int, width: int) -> int:
    """Return how many numbers a packed list has."""
    if end > len(data):
        raise ValueError(f"a list ends at {end}, the message at {len(data)}")
    if width:
        if (end - start) % width:
            raise ValueError(f"a packed list of {end - start} B with numbers of {width} B")
        return (end - start) // width
    if start < end and data[end - 1] >= 0x80:
        raise ValueError("a packed list ends within a number")
    if end - start <= _MAX_VARINT_BYTES:
        return sum(byte < 0x80 for byte in data[start:end])
    count, last = 0, start - 1
    for block in range(start, end, _BLOCK_BYTES):
        lasts = np.flatnonzero(np.frombuffer(data, np.int8, min(_BLOCK_BYTES, end - block), block) >= 0) + block
        if len(lasts):
            if np.diff(lasts, prepend=last).max() > _MAX_VARINT_BYTES:
                raise ValueError(f"a number of more than {_MAX_VARINT_BYTES} bytes")
            count, last = count + len(lasts), int(lasts[-1])
        if min(block + _BLOCK_BYTES, end) - 1 - last > _MAX_VARINT_BYTES:
            raise ValueError(f"a number of more than {_MAX_VARINT_BYTES} bytes")
    return count


def _is_repeated(field: "CompiledFieldDescriptor | FieldDescriptor") -> bool:
    repeated = getattr(field, "is_repeated", None)
    return bool(getattr(field, "label", 0) == _LABEL_REPEATED if repeated is None else repeated)  # None before 6.31


def _base_bytes(descriptor: "CompiledDescriptor | Descriptor") -> int:
    """What a message takes without what its fields hold."""
    sizes = (
        _TEXT_BYTES
        if field.type in (field.TYPE_STRING, field.TYPE_BYTES) and not _is_repeated(field)
        else _MESSAGE_FIELD_BYTES.get(field.type, 8)
        for field in descriptor.fields
        if field.containing_oneof is None
    )
    return 24 + sum(sizes) + 24 * len(descriptor.oneofs)


@cache
def _rules(descriptor: "CompiledDescriptor | Descriptor") -> dict[int, _Rule]:
    """The rules of a message, by the tags with which its fields come."""
    found = {}
    for field in descriptor.fields:
        tag, width = field.number << 3, _WIDTHS.get(field.type, 0)
        grown = _GROWN if _is_repeated(field) else 0
        if field.message_type is not None:
            entry = field.message_type.GetOptions().map_entry
            base = _ENTRY_BYTES + _base_bytes(field.message_type) if entry else _base_bytes(field.message_type)
            found[tag | _LENGTH] = _Rule(base + 8 * grown, field.message_type, False, None)
        elif field.type in (field.TYPE_STRING, field.TYPE_BYTES):
            is_text = field.type == field.TYPE_STRING
            found[tag | _LENGTH] = _Rule(_TEXT_BYTES * grown + 8, None, is_text, None)
        else:
            item_bytes = grown * (width or _MESSAGE_FIELD_BYTES.get(field.type, 8))
            wire_type = {0: _VARINT, 4: _FIXED32, 8: _FIXED64}[width]
            found[tag | wire_type] = _Rule(item_bytes, None, False, None)
            if _is_repeated(field):
                found[tag | _LENGTH] = _Rule(item_bytes, None, False, width)
    return found
