"""An operator's message taken apart by its bytes, without an object for each part.

A model has dozens of attributes for each of its many operators, and most of them are equal to others. So a message is
written once, and its bytes are cut at the borders of its fields: what lies between two borders is looked up among what
was cut before.

Protobuf writes known fields in the order of their numbers, maps sorted, then the fields that it keeps unread. Among
these may be one of a known number in another form; it goes with the rest, as it does in protobuf.

Source: GE source, graph_metadef/proto/ge_ir.proto, OpDef.
"""

from typing import Final, NamedTuple

from gevar.graph.sharing import Sharing, StoredTensorDesc

_BYTES: Final = 2
"""Wire type of fields with a length."""
_NAME, _TYPE, _INPUT, _ATTR = 1 << 3 | _BYTES, 2 << 3 | _BYTES, 5 << 3 | _BYTES, 10 << 3 | _BYTES
_ID, _STREAM_ID = 21 << 3, 22 << 3
_INPUT_DESC, _OUTPUT_DESC, _SUBGRAPH_NAME = 33 << 3 | _BYTES, 34 << 3 | _BYTES, 35 << 3 | _BYTES
_SIZES: Final = {1: 8, 5: 4}
"""Wire type -> bytes of its value, where that is fixed."""
_GROUP, _END_GROUP = 3, 4


class OpParts(NamedTuple):
    """What a message holds; attributes by name in wire form."""

    name: str
    type: str
    inputs: list[str]
    attrs: dict[str, bytes]
    id: int
    stream_id: int
    input_descs: list[StoredTensorDesc]
    output_descs: list[StoredTensorDesc]
    subgraph_names: tuple[str, ...]
    rest: bytes


def take_apart(wire: bytes, sharing: Sharing) -> OpParts:
    """Cut the bytes of an operator, which a message wrote."""
    attrs: dict[str, bytes] = {}
    entries, descs = sharing.entries, sharing.descs
    texts: dict[int, list[bytes]] = {_NAME: [], _TYPE: [], _INPUT: [], _SUBGRAPH_NAME: []}
    sides: dict[int, list[StoredTensorDesc]] = {_INPUT_DESC: [], _OUTPUT_DESC: []}
    numbers = {_ID: 0, _STREAM_ID: 0}
    rest: list[bytes] = []
    at, end = 0, len(wire)
    while at < end:
        start = at
        tag, at = (wire[at], at + 1) if wire[at] < 0x80 else _varint(wire, at)
        if tag & 7 != _BYTES:
            value_at, at = at, _behind(wire, at, tag)
            if tag in numbers:
                numbers[tag] = _signed(_varint(wire, value_at)[0])
            else:
                rest.append(wire[start:at])
            continue
        size, at = (wire[at], at + 1) if wire[at] < 0x80 else _varint(wire, at)
        content = wire[at : at + size]
        at += size
        if tag == _ATTR and (known := entries.get(content) or _new_entry(content, sharing)):
            attrs[known[0]] = known[1]
        elif tag in sides:
            sides[tag].append(descs.get(content) or sharing.desc(content))
        elif tag in texts:
            texts[tag].append(content)
        else:
            rest.append(wire[start:at])
    return OpParts(
        b"".join(texts[_NAME]).decode(),
        sharing.text(b"".join(texts[_TYPE]).decode()),
        [text.decode() for text in texts[_INPUT]],
        attrs,
        numbers[_ID],
        numbers[_STREAM_ID],
        sides[_INPUT_DESC],
        sides[_OUTPUT_DESC],
        tuple([text.decode() for text in texts[_SUBGRAPH_NAME]]),
        sharing.wire(b"".join(rest)),
    )


def _new_entry(entry: bytes, sharing: Sharing) -> tuple[str, bytes] | None:
    """Return name and value of an entry of a map; None where it is none but one that protobuf keeps unread."""
    at, parts = 0, [b"", b""]
    for index, tag in enumerate((1 << 3 | _BYTES, 2 << 3 | _BYTES)):
        if at < len(entry) and entry[at] == tag:
            size, at = _varint(entry, at + 1)
            parts[index] = entry[at : at + size]
            at += size
    if at < len(entry):
        return None
    known = sharing.entries[entry] = sharing.text(parts[0].decode()), sharing.wire(parts[1])
    return known


def _varint(wire: bytes, at: int) -> tuple[int, int]:
    """Return a number and the place behind it."""
    byte = wire[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while (byte := wire[at := at + 1]) >= 0x80:
        value |= (byte & 0x7F) << shift
        shift += 7
    return value | byte << shift, at + 1


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _behind(wire: bytes, at: int, tag: int) -> int:
    """Return the place behind the value of a field, which is not one with a length."""
    kind = tag & 7
    if kind == 0:
        return _varint(wire, at)[1]
    if kind in _SIZES:
        return at + _SIZES[kind]
    depth = 1  # a group: up to its end
    while depth:
        inner, at = _varint(wire, at)
        if inner & 7 == _GROUP:
            depth += 1
        elif inner & 7 == _END_GROUP:
            depth -= 1
        elif inner & 7 == _BYTES:
            size, at = _varint(wire, at)
            at += size
        else:
            at = _behind(wire, at, inner)
    return at
