"""Reading a message from bytes, with one kind of error for everything that can be wrong with them."""

from typing import TYPE_CHECKING, TypeVar

from gevar.errors import ModelFileError

if TYPE_CHECKING:
    from google.protobuf.message import Message

M = TypeVar("M", bound="Message")


def parse_message(cls: type[M], data: bytes | bytearray | memoryview) -> M:
    """Read a message from its wire form.

    Unknown fields are kept. Every protobuf implementation refuses nesting beyond its own limit (the compiled one 100
    levels, as GE does).

    Raises
    ------
    ModelFileError
        The bytes are no such message: cut off, damaged, text that is not UTF-8, or nested too deep. It names the
        message and the number of bytes; file and offset are left for the caller, who knows them.

    After failure: nothing is kept. Thread safety: any thread may call.

    Examples
    --------
    >>> from gevar.proto import ge_ir
    >>> parse_message(ge_ir.ShapeDef, bytes([10, 2, 3, 4])).dim
    [3, 4]
    """
    from google.protobuf.message import DecodeError

    message = cls()
    try:
        message.ParseFromString(bytes(data))
    except RecursionError as error:
        reason = "nested too deep"
        raise ModelFileError(None, None, cls.DESCRIPTOR.full_name, f"{reason} ({len(data)} bytes)") from error
    except (DecodeError, ValueError) as error:
        raise ModelFileError(None, None, cls.DESCRIPTOR.full_name, f"{error} ({len(data)} bytes)") from error
    return message


def unknown_field_numbers(message: "Message") -> set[int]:
    """Return the numbers of the fields that a message keeps in wire form only, not those of its inner messages.

    A number that the message does know is among them where its field has the wrong wire type, or is an entry of a map
    with something other than a key and a value in it.

    Thread safety: any thread may call, as long as none changes the message.
    """
    try:
        from google.protobuf.unknown_fields import UnknownFieldSet
    except ImportError:  # before 4.22
        fields = message.UnknownFields()
    else:
        fields = UnknownFieldSet(message)
    return {fields[index].field_number for index in range(len(fields))}
