"""Fields of a stored state, read with the one error that a message may give."""

from typing import TYPE_CHECKING, Final

from gevar.errors import ModelFileError
from gevar.proto.parse import unknown_field_numbers
from gevar.status import PARAM_INVALID
from gevar.types import MemType, TensorDesc

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from gevar.proto.ge_ir import TensorDescriptor

_KEY_LIMIT: Final = 100  # characters of a map key that an error shows


def refused(field: str, reason: str) -> ModelFileError:
    """Make the error for a field of `VarManagerInfo` that cannot be."""
    return ModelFileError(None, None, f"VarManagerInfo.{field}", reason, status=PARAM_INVALID)


def entry(name: str, key: int | str) -> str:
    """Return the words for an entry of a map."""
    shown = repr(key)
    return f"{name}[{shown if len(shown) <= _KEY_LIMIT else shown[:_KEY_LIMIT] + '…'}]"


def read_desc(td: "TensorDescriptor", field: str) -> TensorDesc:
    """Return the description in a field.

    Raises
    ------
    ModelFileError
        It is none.
    """
    from gevar.proto.tensor_descriptor import tensor_desc_from_proto

    try:
        return tensor_desc_from_proto(td)
    except ModelFileError as error:
        raise refused(field, str(error)) from error


def read_mem_type(number: int, field: str) -> MemType:
    """Return the kind of memory in a field.

    Raises
    ------
    ModelFileError
        There is no such kind.
    """
    try:
        return MemType(number)
    except ValueError as error:
        raise refused(field, f"{number} is no kind of memory") from error


def at_most(value: int, limit: int, field: str) -> int:
    """Return a number that may not be larger than a limit.

    Raises
    ------
    ModelFileError
        It is.
    """
    if value > limit:
        raise refused(field, f"{value} is more than {limit}")
    return value


def take_unknown_fields(message: "Message", field: str) -> bytes:
    """Clear what is known of a message, and return what is left in wire form.

    Raises
    ------
    ModelFileError
        What is left has a field that the message knows: it is damaged, and what it says would be lost.
    """
    known = message.DESCRIPTOR.fields_by_number
    for one in known.values():
        message.ClearField(one.name)
    if damaged := unknown_field_numbers(message).intersection(known.keys()):
        name = known[min(damaged)].name
        raise refused(f"{field}.{name}".lstrip("."), "damaged: a value of another type, or an entry with another field")
    return message.SerializeToString()
