"""Fields of JSON texts that came from outside: of the kind that is expected, or an error that names the place."""

import json
from collections.abc import Mapping
from typing import Final, Never, TypeVar

from gevar.errors import ModelFileError

T = TypeVar("T")
JsonObject = dict[str, object]
_VALUE_BYTES: Final = {b"[": 64, b"{": 64, b":": 150, b",": 40}
"""What a value takes in memory at most beside its text, by the mark that there is for each."""


def values_bytes(text: bytes) -> int:
    """Return the bytes of memory that the values of a text take at most, beside the text."""
    return sum(size_bytes * text.count(mark) for mark, size_bytes in _VALUE_BYTES.items())


def strict_json(text: bytes, most_bytes: int) -> object:
    """Return the value of a text that every reader reads alike.

    Parameters
    ----------
    text
        The bytes.
    most_bytes
        Bytes of memory that the values may take, see `values_bytes`.

    Raises
    ------
    ValueError
        It is no JSON in UTF-8, is nested too deep, or has NaN or infinity; an object has a name twice; a name or a text
        in an object is no Unicode (half a surrogate pair); or the values would take more memory.
    """
    needed_bytes = values_bytes(text)
    if needed_bytes > most_bytes:
        raise ValueError(f"its values take {needed_bytes} B of memory, {most_bytes} B at most are read")
    try:
        value: object = json.loads(text.decode(), object_pairs_hook=_unique, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise ValueError(f"is no JSON: {error}") from error
    except UnicodeError as error:
        raise ValueError(f"is no JSON in UTF-8: {error}") from error
    except RecursionError as error:
        raise ValueError("is no JSON: it is nested too deep") from error
    return value


def _unique(pairs: list[tuple[str, object]]) -> JsonObject:
    found: JsonObject = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"has the name {name!r:.60} twice")
        found[name] = value
        for text in (name, value):
            if isinstance(text, str) and not text.isascii():
                text.encode()
    return found


def _no_number(text: str) -> Never:
    raise ValueError(f"is no JSON: {text} is no number")


def parsed(file: str, text: bytes) -> JsonObject:
    """Return the object that a text holds.

    Raises
    ------
    ModelFileError
        It is no JSON, or no object.
    """
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(file, None, "text", f"it is no JSON: {error}") from error
    return checked(file, value, dict, "text")


def checked(file: str, value: object, kind: type[T], where: str) -> T:
    """Return a value that must be of a kind; true and false are no numbers.

    Raises
    ------
    ModelFileError
        It is of another kind.
    """
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ModelFileError(file, None, where, f"it is {value!r:.60}: it must be of type {kind.__name__}")
    return value


def get_field(file: str, owner: Mapping[str, object], field: str, kind: type[T], where: str = "") -> T:
    """Return a field of an object; raises as `checked`."""
    return checked(file, owner.get(field), kind, f"{where}.{field}" if where else field)


def optional_field(file: str, owner: Mapping[str, object], field: str, kind: type[T], where: str = "") -> T | None:
    """Return a field of an object, None where it is absent or null; raises as `checked`."""
    return None if owner.get(field) is None else get_field(file, owner, field, kind, where)
