"""Fields of JSON texts that came from outside: of the kind that is expected, or an error that names the place."""

import json
from collections.abc import Mapping
from typing import TypeVar

from gevar.errors import ModelFileError

T = TypeVar("T")
JsonObject = dict[str, object]


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
