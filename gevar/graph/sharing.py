"""One object for equal texts, wire forms and descriptions: a model has few distinct ones for its many nodes."""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from google.protobuf.message import Message

from gevar.proto import ge_ir, ge_ir_raw
from gevar.proto.parse import parse_message, unknown_field_numbers
from gevar.proto.tensor_descriptor import tensor_desc_from_proto, tensor_desc_to_proto
from gevar.types.tensor_desc import TensorDesc

_KEPT_WITH_A_SLOT = ("name", "has_out_attr")


class StoredTensorDesc:
    """A description as its message has it, with what a `TensorDesc` does not hold: the name and unknown fields.

    Immutable and shared; the `TensorDesc` is made at its first use.
    """

    __slots__ = ("_desc", "wire")

    def __init__(self, wire: bytes, desc: TensorDesc | None = None) -> None:
        self.wire = wire
        self._desc = desc

    @property
    def desc(self) -> TensorDesc:
        """The description."""
        if self._desc is None:
            self._desc = tensor_desc_from_proto(parse_message(ge_ir.TensorDescriptor, self.wire))
        return self._desc

    def replaced(self, desc: TensorDesc) -> "StoredTensorDesc":
        """Return another description in the same place: name and unknown fields stay."""
        message = parse_message(ge_ir.TensorDescriptor, self.wire)
        for name in message.DESCRIPTOR.fields_by_name:
            if name not in _KEPT_WITH_A_SLOT:
                message.ClearField(name)
        message.MergeFrom(tensor_desc_to_proto(desc))
        return StoredTensorDesc(message.SerializeToString(deterministic=True), desc)


def stored_tensor_desc(desc: TensorDesc) -> StoredTensorDesc:
    """Return a new description in stored form.

    Raises
    ------
    ModelFileError
        `attr_groups` is no message `AttrGroups`.
    """
    return _new_stored(desc) if desc.attrs else _known_stored(desc)


def _new_stored(desc: TensorDesc) -> StoredTensorDesc:
    return StoredTensorDesc(tensor_desc_to_proto(desc).SerializeToString(deterministic=True), desc)


_known_stored = lru_cache(maxsize=1024)(_new_stored)
"""Descriptions without attributes, which are small and mostly the same ones."""


_KEY, _VALUE = 1 << 3 | 2, 2 << 3 | 2
"""Tags of the two fields of an entry of a map."""

_MOST = 1 << 15
"""Forms of a kind that are remembered at most: what comes so late and is new is mostly one of a kind."""


_OBJECT_BYTES = 60
"""What a text or wire form takes beside its bytes."""

Take = Callable[[int, str], None]
"""Is told how many bytes are taken and for what, and may raise."""


def take_any(size_bytes: int, what: str) -> None:
    """Allow everything."""


Entry = tuple[str, bytes]
"""Name and value of an attribute."""


class SharedWires(Mapping[str, bytes]):
    """Wire forms by name, as few bytes as they can be: maps with the same names share one table of places."""

    __slots__ = ("_places", "_values")

    def __init__(self, places: dict[str, int], values: tuple[bytes, ...]) -> None:
        self._places = places
        self._values = values

    def __getitem__(self, name: str) -> bytes:
        return self._values[self._places[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._places


class Sharing:
    """Remembers what was read, for as long as a graph or model is read.

    Parameters
    ----------
    take
        Is told of everything that is not shared, before it is kept.

    Attributes
    ----------
    entries : dict
        Entries of maps of attributes in wire form -> name and value.
    descs : dict
        Descriptions by their wire form.

    Thread safety: none; make one for each reading.
    """

    def __init__(self, take: Take = take_any) -> None:
        self.take = take
        self._texts: dict[str, str] = {}
        self._wires: dict[bytes, bytes] = {}
        self._places: dict[tuple[str, ...], dict[str, int]] = {}
        self.entries: dict[bytes, Entry] = {}
        self.descs: dict[bytes, StoredTensorDesc] = {}

    def text(self, text: str) -> str:
        """Return the first text equal to this one."""
        return self._texts.setdefault(text, text)

    def wire(self, wire: bytes) -> bytes:
        """Return the first wire form equal to this one."""
        known = self._wires.get(wire)
        if known is None:
            known = wire
            self.take(_OBJECT_BYTES + len(wire), "the attributes of a graph")
            if len(self._wires) < _MOST:
                self._wires[wire] = wire
        return known

    def wires(self, messages: Mapping[str, Message]) -> dict[str, bytes]:
        """Return messages by name in wire form."""
        text, wire = self._texts.setdefault, self._wires.setdefault
        found = {}
        for name in messages:  # the items of a map of protobuf take twice as long
            data = messages[name].SerializeToString(deterministic=True)
            found[text(name, name)] = wire(data, data)
        return found

    def shared_wires(self, entries: list[Entry]) -> SharedWires:
        """Return wire forms that are shared themselves, by name; no name may come twice."""
        names, values = zip(*entries, strict=True) if entries else ((), ())
        places = self._places.get(names)
        if places is None:
            places = self._places[names] = {name: place for place, name in enumerate(names)}
        return SharedWires(places, values)

    def desc(self, wire: bytes) -> StoredTensorDesc:
        """Return the description in a message, one for equal messages."""
        known = self.descs.get(wire)
        if known is None:
            known = StoredTensorDesc(wire)
            self.take(2 * _OBJECT_BYTES + len(wire), "the descriptions of a graph")
            if len(self.descs) < _MOST:
                self.descs[wire] = known
        return known

    def entry(self, entry: bytes) -> Entry | None:
        """Return name and value of an entry of a map; None where protobuf keeps it unread, as none of its own."""
        parts = _short_entry(entry)
        if parts is None:
            message = ge_ir_raw.AttrEntry.FromString(entry)
            if unknown_field_numbers(message):
                return None
            parts = message.key, message.value
        known = self.text(parts[0]), self.wire(parts[1])
        if len(self.entries) < _MOST:
            self.entries[entry] = known
        return known


def _short_entry(entry: bytes) -> Entry | None:
    """Return name and value where each is shorter than 128 bytes and nothing else is there, as is nearly always so."""
    if len(entry) < 4 or entry[0] != _KEY or entry[1] >= 0x80:
        return None
    value_at = 2 + entry[1]
    if len(entry) < value_at + 2 or entry[value_at] != _VALUE or entry[value_at + 1] != len(entry) - value_at - 2:
        return None
    return (entry[2:value_at].decode(), entry[value_at + 2 :]) if entry[value_at + 1] < 0x80 else None


def rest_of(message: Message, owned: frozenset[str]) -> bytes:
    """Return a message in wire form without some of its fields; unknown fields stay."""
    rest = type(message)()
    if unknown_field_numbers(message):
        rest.CopyFrom(message)
        for name in owned:
            rest.ClearField(name)
        return rest.SerializeToString(deterministic=True)
    for field, value in message.ListFields():  # the owned ones may be large
        if field.name in owned:
            continue
        if isinstance(value, Message):
            getattr(rest, field.name).CopyFrom(value)
        elif isinstance(value, int | str):
            setattr(rest, field.name, value)
        else:
            getattr(rest, field.name).extend(value)
    return rest.SerializeToString(deterministic=True)
