"""Fields of protobuf messages in wire form, read and made without the library: what an OM file needs, no more."""

from collections.abc import Iterator
from typing import Any


def align(size: int, unit: int) -> int:
    return (size + unit - 1) // unit * unit


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield (number, value) of a message: integers, or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = varint(data, at)
            yield number, value - (1 << 64) if value >> 63 else value
        elif wire == 2:
            size, at = varint(data, at)
            assert at + size <= len(data), "a field leaves its message"
            yield number, data[at : at + size]
            at += size
        else:
            size = {1: 8, 5: 4}[wire]
            yield number, data[at : at + size]
            at += size


def all_of(data: bytes, wanted: int) -> list[Any]:
    return [value for number, value in fields(data) if number == wanted]


def first(data: bytes, wanted: int, default: Any) -> Any:
    return next(iter(all_of(data, wanted)), default)


def numbers(data: bytes, wanted: int) -> list[int]:
    """Return a repeated integer field, packed or not."""
    found: list[int] = []
    for value in all_of(data, wanted):
        if isinstance(value, int):
            found.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            found.append(number - (1 << 64) if number >> 63 else number)
    return found


def attrs(data: bytes, wanted: int) -> dict[str, bytes]:
    """Return a map of attributes in wire form."""
    return {first(entry, 1, b"").decode(): first(entry, 2, b"") for entry in all_of(data, wanted)}


def int_attr(found: dict[str, bytes], name: str) -> int:
    return int(first(found[name], 3, 0))


def int_list(attr: bytes) -> list[int]:
    return numbers(first(attr, 1, b""), 3)


def text_list(attr: bytes) -> list[bytes]:
    return all_of(first(attr, 1, b""), 2)


def wire(number: int, data: bytes) -> bytes:
    size, text = len(data), b""
    while size >= 0x80:
        text += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + text + bytes([size]) + data


def string_attr(text: bytes) -> bytes:
    return wire(2, text)
