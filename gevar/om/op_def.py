"""Decoding parts of a MODEL_DEF partition: an operator with its large values left where they are.

Of an operator two things are left out, and their places noted:

- the data of a constant kept inline (an attribute that holds a TensorDef), from `APART_BYTES` on;
- any other attribute of so many bytes, such as a list of a million numbers.

What is large is counted before it is decoded, see `gevar.om.allowance`.

Source: GE source, graph_metadef/proto/ge_ir.proto.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from google.protobuf.message import DecodeError, Message

from gevar.errors import ModelFileError
from gevar.graph.op_wire import WholeOp
from gevar.om.allowance import Allowance, Fail
from gevar.om.attr_names import AttrNames
from gevar.om.source import ByteSource
from gevar.om.wire import LENGTH_DELIMITED, WireField, read_text, walk_fields
from gevar.proto import ge_ir, ge_ir_outline
from gevar.proto.decoded_size import SMALL_BYTES, decoded_bytes

WHAT: Final = "MODEL_DEF"
APART_BYTES: Final = 1 << 15
"""Inline tensor data, or another attribute, of this size or more stays in the file."""
_ATTR, _TENSOR, _DATA = 10, 12, 2
"""Numbers of the fields OpDef.attr, AttrDef.t and TensorDef.data."""
_TENSOR_FIELDS: Final = 2
SMALL_DECODED_BYTES: Final = 8 << 20
"""A large attribute that takes no more in memory is decoded and written anew when a graph is made, as small ones."""


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """Some bytes in a model's file: `offset` and `size_bytes` count from the start of the MODEL_DEF partition."""

    offset: int
    size_bytes: int


@dataclass(slots=True)
class Apart:
    """What was left out of one operator, by name of the attribute as stored.

    `data` has the place of the tensor data of an attribute that is there without it; `attrs` the places of an attribute
    that is there without a value: one after the other they are the message `AttrDef`.
    """

    data: dict[str, StoredBytes] = field(default_factory=dict)
    attrs: dict[str, tuple[StoredBytes, ...]] = field(default_factory=dict)

    def forget(self, name: str) -> None:
        """Forget an attribute, which comes once more."""
        self.data.pop(name, None)
        self.attrs.pop(name, None)


def read_places(source: ByteSource, places: tuple[StoredBytes, ...]) -> bytes:
    """Return the bytes at some places of a MODEL_DEF partition, one after the other."""
    return b"".join(source.read(place.offset, place.size_bytes, WHAT) for place in places)


def check_decoded(data: bytes, cls: type[Message], allowance: Allowance, what: str) -> None:
    """Refuse a message that is large and would take more memory than is left when it is decoded.

    Raises
    ------
    ModelFileError
        It would.
    ValueError
        It does not decode.
    """
    if len(data) >= SMALL_BYTES:
        allowance.check(decoded_bytes(data, cls.DESCRIPTOR), f"{what} of {len(data)} B")


def merge_piece(message: Message, source: ByteSource, start: int, end: int, what: str) -> None:
    """Decode bytes `start` to `end`, whole fields of a message, into the message.

    Raises
    ------
    ModelFileError
        They are no such fields: damaged, text that is not UTF-8, or nested too deep.
    """
    if start == end:
        return
    try:
        message.MergeFromString(source.read(start, end - start, what))
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        name = message.DESCRIPTOR.full_name
        raise source.error(start, what, f"{end - start} B do not decode as {name}: {error}") from error


def merge_kept(
    message: Message,
    source: ByteSource,
    place: tuple[int, int],
    replaced: Callable[[WireField], bytes | None],
    allowance: Allowance,
) -> None:
    """Decode the fields of a message as a whole, some with others in their places, and take what they take."""
    parts: list[bytes] = []
    start = place[0]
    for item in walk_fields(source, *place, WHAT):
        other = replaced(item)
        if other is not None:
            parts += filter(None, (source.read(start, item.start - start, WHAT), other))
            start = item.end
    data = b"".join((*parts, source.read(start, place[1] - start, WHAT)))
    name = message.DESCRIPTOR.full_name
    try:
        if len(data) >= SMALL_BYTES:
            allowance.take(decoded_bytes(data, message.DESCRIPTOR), f"{name} of {len(data)} B")
        message.MergeFromString(data)
    except (DecodeError, ValueError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise source.error(place[0], WHAT, f"{len(data)} B do not decode as {name}: {error}") from error


def map_entry(source: ByteSource, item: WireField) -> tuple[str, list[WireField]]:
    """Return the key of a map entry and the fields that hold its value."""
    name, values = "", []
    for part in walk_fields(source, item.value_start, item.end, WHAT):
        if part.wire_type == LENGTH_DELIMITED and part.number == 1:
            name = read_text(source, part, WHAT)
        elif part.wire_type == LENGTH_DELIMITED and part.number == 2:
            values.append(part)
    return name, values


def is_field(item: WireField, number: int) -> bool:
    """Tell whether a field is the one of a number that holds a message, text or bytes."""
    return item.number == number and item.wire_type == LENGTH_DELIMITED


def read_op(
    op: "ge_ir.OpDef | ge_ir_outline.OpDef", source: ByteSource, item: WireField, allowance: Allowance
) -> Apart:
    """Decode an operator into an empty message, and return what was left out of it.

    Raises
    ------
    ModelFileError
        It does not decode, or would take more memory than is left.
    """
    apart = Apart()
    if item.end - item.value_start < APART_BYTES:
        merge_piece(op, source, item.value_start, item.end, WHAT)
        return apart

    def replaced(part: WireField) -> bytes | None:
        is_large = part.end - part.value_start >= APART_BYTES
        if not is_field(part, _ATTR) or not (is_large or apart.data or apart.attrs):
            return None
        name, values = map_entry(source, part)
        apart.forget(name)
        return _left_out(source, name, values, apart, allowance) if is_large else None

    merge_kept(op, source, (item.value_start, item.end), replaced, allowance.anew())
    return apart


def _left_out(source: ByteSource, name: str, values: list[WireField], apart: Apart, allowance: Allowance) -> bytes:
    """Return the entry of a large attribute without what is left out, which is noted."""
    attr = ge_ir.AttrDef()
    parts = [part for value in values for part in _some_fields(source, value)]
    inner = _some_fields(source, parts[0]) if len(parts) == 1 and is_field(parts[0], _TENSOR) else []
    data = [part for part in inner if is_field(part, _DATA)]
    if len(data) == 1 and data[0].end - data[0].value_start >= APART_BYTES:
        attr.t.SetInParent()
        for part in inner:
            if part is not data[0]:
                wire = source.read(part.start, part.end - part.start, WHAT)
                check_decoded(wire, ge_ir.TensorDef, allowance, f"attribute {name!r}")
                attr.t.MergeFromString(wire)
        apart.data[name] = StoredBytes(data[0].value_start, data[0].end - data[0].value_start)
    else:
        apart.attrs[name] = tuple(StoredBytes(value.value_start, value.end - value.value_start) for value in values)
    return ge_ir.OpDef(attr={name: attr}).SerializeToString()


def _some_fields(source: ByteSource, message: WireField) -> list[WireField]:
    """The fields of a message, or none where there are more than a tensor has."""
    found = list(islice(walk_fields(source, message.value_start, message.end, WHAT), _TENSOR_FIELDS + 1))
    return found if len(found) <= _TENSOR_FIELDS else []


def put_back(op: ge_ir.OpDef, source: ByteSource, apart: Apart) -> None:
    """Put what was left out of an operator, which decodes, into its message again."""
    for stored, place in apart.data.items():
        op.attr[stored].t.data = read_places(source, (place,))
    for stored, places in apart.attrs.items():
        op.attr[stored].MergeFromString(read_places(source, places))


def whole_op(source: ByteSource, names: AttrNames, op: ge_ir.OpDef, apart: Apart, fail: Fail) -> WholeOp:
    """Return an operator with plain names, and its large attributes in wire form where they take much when decoded.

    Raises
    ------
    ModelFileError
        An attribute does not decode, or as `AttrNames.restore_op`.
    """
    large = {}
    for stored, places in apart.attrs.items():
        wire, name = read_places(source, places), names.name(stored)
        try:
            size_bytes = decoded_bytes(wire, ge_ir.AttrDef.DESCRIPTOR)
        except ValueError as error:
            raise fail(f"attribute {name!r} does not decode: {error}") from error
        if names.has_string_value(stored) or size_bytes < SMALL_DECODED_BYTES:
            op.attr[stored].MergeFromString(wire)
        elif stored == name or name not in op.attr:  # the plain form counts where both are there
            del op.attr[stored]
            large[name] = wire
    for stored, place in apart.data.items():
        op.attr[stored].t.data = read_places(source, (place,))
    return names.restore_op(op), large
