"""Checked Python values, and C structs as dicts and back."""

from collections.abc import Mapping, Sequence
from operator import index
from typing import cast

from acl_shim._acl import ffi

Output = object
"""What a function returns beside its code: ints, texts, bytes, dicts."""


def number(value: object, name: str) -> int:
    """Return an int, or raise `TypeError` that names the parameter."""
    if type(value) is int:
        return value
    try:
        return index(cast("int", value))
    except TypeError:
        raise TypeError(f"{name} is an int, not {type(value).__name__}") from None


def mapping(value: object, name: str, keys: Sequence[str] = ()) -> Mapping[str, object]:
    """Return a dict, or raise `TypeError` that names the parameter or the missing key."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is a dict, not {type(value).__name__}")
    for key in keys:
        if key not in value:
            raise TypeError(f"{name} lacks the key {key!r}: give {', '.join(keys)}")
    return value


def sequence(value: object, name: str) -> Sequence[object]:
    """Return a list or tuple, or raise `TypeError` that names the parameter."""
    if not isinstance(value, list | tuple):
        raise TypeError(f"{name} is a list, not {type(value).__name__}")
    return value


def as_dict(struct: object, names: Mapping[str, str] | None = None) -> dict[str, Output]:
    """Return a C struct as a dict by the C names of its fields, or by those that `names` gives them."""
    fields = ffi.typeof(struct)
    fields = (fields.item if fields.kind == "pointer" else fields).fields
    return {(names or {}).get(name, name): _field(getattr(struct, name)) for name, _ in fields}


def _field(value: object) -> Output:
    """Return the value of a field: an int (also for a pointer), a dict, the bytes of characters, or a list."""
    if not isinstance(value, ffi.CData):
        return value
    c_type = ffi.typeof(value)
    if c_type.kind == "struct":
        return as_dict(value)
    if c_type.kind == "pointer":
        return int(ffi.cast("uintptr_t", value))
    if c_type.item.cname == "char":
        return bytes(ffi.buffer(value))
    return [value[at] for at in range(c_type.length)]


def as_content(
    value: object, name: str, c_type: str, optional: Sequence[str] = ("rsv", "reserved")
) -> dict[str, object]:
    """Return what a C struct is made of, from a dict with the keys of its fields."""
    fields = dict(ffi.typeof(c_type).fields)
    given = mapping(value, name, [key for key in fields if key not in optional])
    content: dict[str, object] = {}
    for key, field in fields.items():
        if key not in given:
            continue
        part, label = given[key], f"{name}[{key!r}]"
        if field.type.kind == "struct":
            content[key] = as_content(part, label, field.type.cname)
        elif field.type.kind == "array":
            content[key] = part
        else:
            content[key] = number(part, label)
    return content
