"""One object for equal texts, wire forms and descriptions: a model has few distinct ones for its many nodes."""

from collections.abc import Mapping
from functools import lru_cache

from google.protobuf.message import Message

from gevar.proto import ge_ir
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


class Sharing:
    """Remembers what was read, for as long as a graph or model is read.

    Attributes
    ----------
    entries : dict
        Entries of maps of attributes in wire form -> name and value.
    descs : dict
        Descriptions by their wire form.

    Thread safety: none; make one for each reading.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._wires: dict[bytes, bytes] = {}
        self.entries: dict[bytes, tuple[str, bytes]] = {}
        self.descs: dict[bytes, StoredTensorDesc] = {}

    def text(self, text: str) -> str:
        """Return the first text equal to this one."""
        return self._texts.setdefault(text, text)

    def wire(self, wire: bytes) -> bytes:
        """Return the first wire form equal to this one."""
        return self._wires.setdefault(wire, wire)

    def wires(self, messages: Mapping[str, Message]) -> dict[str, bytes]:
        """Return messages by name in wire form."""
        text, wire = self._texts.setdefault, self._wires.setdefault
        found = {}
        for name in messages:  # the items of a map of protobuf take twice as long
            data = messages[name].SerializeToString(deterministic=True)
            found[text(name, name)] = wire(data, data)
        return found

    def desc(self, wire: bytes) -> StoredTensorDesc:
        """Return the description in a message, one for equal messages."""
        known = self.descs.get(wire)
        if known is None:
            known = self.descs[wire] = StoredTensorDesc(wire)
        return known


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
