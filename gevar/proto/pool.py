"""Message classes from tables, in a descriptor pool that nobody else sees.

A `ProtoFile` is the content of one `.proto` file as plain tuples. The classes are built from it at run time, at the
first use of one of its messages: code made by the protobuf compiler runs on few runtime versions, while this runs on
every protobuf from 3.20.3 on, and a private pool cannot collide with CANN's own Python packages, which register the
same full names.

Rows of a message are `(number, name, type)`, or `(number, name, type, oneof)` for a member of a oneof. A type is a
scalar (`int64`), a message or enum of the same file (`AttrDef.ListValue`), a message of an imported file by its full
name (`.ge.proto.AttrDef`), any of these after `repeated`, or `map<key, value>`. All files are proto3.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
    from google.protobuf.message import Message

Row = tuple[int, str, str] | tuple[int, str, str, str]


@dataclass(frozen=True, slots=True)
class ProtoFile:
    """One proto3 file: its messages (name to rows), enums (name to value names and numbers) and imported files.

    A dotted name (`AttrDef.ListValue`) is nested in the message before the dot; that one comes first in the table.
    """

    name: str
    package: str
    messages: Mapping[str, Sequence[Row]]
    enums: Mapping[str, Mapping[str, int]]
    imports: tuple["ProtoFile", ...] = ()


def message_class(file: ProtoFile, name: str) -> type["Message"]:
    """Return the class of a message of a file, building the file and what it imports at the first call.

    A nested message is named as in C++: `AttrDef_ListValue`.

    Raises
    ------
    AttributeError
        The file has no such message.

    Thread safety: any thread may call; all get the same class.
    """
    name = name.replace("_", ".")
    if name not in file.messages:
        raise AttributeError(f"{file.name} has no message {name}")
    with _lock:
        pool = _the_pool()
        pool.add(file)
        return pool.message_class(f"{file.package}.{name}")


def file_descriptor(file: ProtoFile) -> "FileDescriptorProto":
    """Return the descriptor of a file, as the protobuf compiler would make it from the `.proto` text."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    descriptor = FileDescriptorProto(name=file.name, package=file.package, syntax="proto3")
    descriptor.dependency.extend(imported.name for imported in file.imports)
    messages: dict[str, DescriptorProto] = {}
    for name, rows in file.messages.items():
        outer, _, short = name.rpartition(".")
        message = messages[outer].nested_type.add() if outer else descriptor.message_type.add()
        message.name = short
        messages[name] = message
        for row in rows:
            _add_field(file, name, message, row)
    for name, values in file.enums.items():
        outer, _, short = name.rpartition(".")
        enum = messages[outer].enum_type.add() if outer else descriptor.enum_type.add()
        enum.name = short
        for value_name, number in sorted(values.items(), key=lambda item: item[1]):
            enum.value.add(name=value_name, number=number)
    return descriptor


def _add_field(file: ProtoFile, scope: str, message: "DescriptorProto", row: Row) -> None:
    number, name, type_text = row[:3]
    field = message.field.add(name=name, number=number)
    if type_text.startswith("map<"):
        key_type, _, value_type = type_text.removeprefix("map<").removesuffix(">").partition(", ")
        entry = message.nested_type.add(name="".join(part.capitalize() for part in name.split("_")) + "Entry")
        entry.options.map_entry = True
        _set_type(file, entry.field.add(name="key", number=1), key_type)
        _set_type(file, entry.field.add(name="value", number=2), value_type)
        _set_type(file, field, f"repeated .{file.package}.{scope}.{entry.name}")
    else:
        _set_type(file, field, type_text)
    if len(row) == 4:
        if row[3] not in [oneof.name for oneof in message.oneof_decl]:
            message.oneof_decl.add(name=row[3])
        field.oneof_index = [oneof.name for oneof in message.oneof_decl].index(row[3])


def _set_type(file: ProtoFile, field: "FieldDescriptorProto", type_text: str) -> None:
    base = type_text.removeprefix("repeated ")
    field.label = field.LABEL_OPTIONAL if base == type_text else field.LABEL_REPEATED
    if base[0].islower():
        field.type = field.Type.Value(f"TYPE_{base.upper()}")
        return
    field.type = field.TYPE_ENUM if base in file.enums else field.TYPE_MESSAGE
    field.type_name = base if base[0] == "." else f".{file.package}.{base}"


class _Pool:
    """The descriptor pool with the files added so far. Made once, at the first use, because protobuf loads slowly."""

    def __init__(self) -> None:
        from google.protobuf import descriptor_pool, message_factory

        self._pool = descriptor_pool.DescriptorPool()
        self._factory = message_factory.MessageFactory(self._pool)
        self._files: set[str] = set()

    def add(self, file: ProtoFile) -> None:
        """Add a file, after the files it imports, unless it is already there."""
        if file.name in self._files:
            return
        for imported in file.imports:
            self.add(imported)
        self._pool.AddSerializedFile(file_descriptor(file).SerializeToString())
        self._files.add(file.name)

    def message_class(self, full_name: str) -> type["Message"]:
        from google.protobuf import message_factory

        descriptor = self._pool.FindMessageTypeByName(full_name)
        if hasattr(message_factory, "GetMessageClass"):
            return message_factory.GetMessageClass(descriptor)
        # protobuf before 4.22: one factory for the pool, so that a message has one class
        get_prototype: Callable[[Descriptor], type[Message]] = self._factory.GetPrototype  # type: ignore[attr-defined]
        return get_prototype(descriptor)


_lock = Lock()
_the_pool = cache(_Pool)
