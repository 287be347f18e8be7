"""Attributes by name. A value is kept in wire form, shared among equal ones, and decoded when it is asked for."""

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Self, TypeVar

from gevar.graph.attr_value import AttrValue, ValueType, attr_from_wire, attr_kind, attr_to_wire
from gevar.graph.sharing import Sharing
from gevar.proto import ge_ir
from gevar.proto.parse import parse_message

T = TypeVar("T")


class AttrMap(MutableMapping[str, AttrValue]):
    """Attributes of an operator, a graph or a model: a dict whose values have the kinds of `ValueType`.

    A value that was read and not replaced is written back byte for byte. What `[]` returns is a copy: a graph among the
    attributes changes when it is assigned, not when the copy is edited.

    Raises
    ------
    TypeError, ValueError
        As `attr_to_wire`, where a value is set; nothing changes then.

    Thread safety: any thread may read while none writes.

    Examples
    --------
    >>> attrs = AttrMap({"index": 1, "axes": [0, 2], "mode": "SAME"})
    >>> attrs["axes"], attrs.get_as("index", int), attrs.get_as("mode", int)
    ((0, 2), 1, None)
    >>> attrs.set("names", [], ValueType.VT_LIST_STRING)
    >>> attrs.value_type("names").name
    'VT_LIST_STRING'
    """

    __slots__ = ("_wires",)

    def __init__(self, values: Mapping[str, AttrValue] | None = None) -> None:
        self._wires: Mapping[str, bytes] = {}  # a dict once it was changed
        self.update(values or {})

    @classmethod
    def from_proto(cls, attrs: Mapping[str, ge_ir.AttrDef], sharing: Sharing | None = None) -> Self:
        """Return the attributes of a message, which may go afterwards."""
        return cls.of_wires((sharing or Sharing()).wires(attrs))

    @classmethod
    def of_wires(cls, wires: Mapping[str, bytes]) -> Self:
        """Return attributes that are in wire form already, which belong to it then."""
        found = cls.__new__(cls)
        found._wires = wires
        return found

    def write_to(self, attrs: MutableMapping[str, ge_ir.AttrDef]) -> None:
        """Put the attributes into the empty map of a message."""
        for name, wire in self._wires.items():
            attrs[name].MergeFromString(wire)

    def copy(self) -> "AttrMap":
        """Return the same attributes apart from these."""
        copied = AttrMap()
        copied._wires = dict(self._wires)
        return copied

    def set(self, name: str, value: AttrValue, value_type: ValueType) -> None:
        """Set a value of a given kind, where the value alone does not tell it: an empty list, a whole float."""
        self._own_wires()[name] = attr_to_wire(value, value_type)

    def take(self, name: str, other: "AttrMap") -> None:
        """Take an attribute of another map exactly as it is there.

        Raises
        ------
        KeyError
            The other has no such attribute.
        """
        self._own_wires()[name] = other._wires[name]

    def value_type(self, name: str) -> ValueType:
        """Return the kind of a value.

        Raises
        ------
        KeyError
            There is no such attribute.
        """
        return attr_kind(self.to_proto(name))

    def to_proto(self, name: str) -> ge_ir.AttrDef:
        """Return one attribute as a message of its own.

        Raises
        ------
        KeyError
            There is no such attribute.
        """
        return parse_message(ge_ir.AttrDef, self._wires[name])

    def set_proto(self, name: str, attr: ge_ir.AttrDef) -> None:
        """Set one attribute to what a message holds."""
        self._own_wires()[name] = attr.SerializeToString(deterministic=True)

    def get_as(self, name: str, cls: type[T]) -> T | None:
        """Return a value if it is of exactly this type, else None; a bool is no int.

        Source: GE source, graph_metadef/graph/utils/attr_utils.cc, AttrUtils::GetInt and its like, which find nothing
        where the kind differs.
        """
        value = self.get(name)
        return value if type(value) is cls else None

    def get_list(self, name: str, cls: type[T]) -> tuple[T, ...] | None:
        """Return a list if all its items are of exactly this type, else None. An empty list fits every type."""
        value = self.get(name)
        if not isinstance(value, tuple):
            return None
        items = tuple(item for item in value if type(item) is cls)
        return items if len(items) == len(value) else None

    def __getitem__(self, name: str) -> AttrValue:
        return attr_from_wire(self._wires[name])

    def __setitem__(self, name: str, value: AttrValue) -> None:
        self._own_wires()[name] = attr_to_wire(value)

    def __delitem__(self, name: str) -> None:
        del self._own_wires()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._wires)

    def __len__(self) -> int:
        return len(self._wires)

    def __contains__(self, name: object) -> bool:
        return name in self._wires

    def __eq__(self, other: object) -> bool:
        return dict(self._wires) == dict(other._wires) if isinstance(other, AttrMap) else NotImplemented

    def _own_wires(self) -> dict[str, bytes]:
        """The wire forms as a dict of this map alone, to be changed."""
        if not isinstance(self._wires, dict):
            self._wires = dict(self._wires)
        return self._wires

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<AttrMap of {len(self)}: {', '.join(sorted(self)[:8])}{', …' if len(self) > 8 else ''}>"


@dataclass(slots=True)
class NamedAttrs:
    """A name with attributes, such as a function and its arguments.

    Source: GE source, graph_metadef/proto/ge_ir.proto, NamedAttrs.
    """

    name: str
    attrs: AttrMap = field(default_factory=AttrMap)

    @classmethod
    def from_proto(cls, message: ge_ir.NamedAttrs) -> Self:
        """Return what a message holds."""
        return cls(message.name, AttrMap.from_proto(message.attr))

    def to_proto(self) -> ge_ir.NamedAttrs:
        """Return the message."""
        message = ge_ir.NamedAttrs(name=self.name)
        self.attrs.write_to(message.attr)
        return message
