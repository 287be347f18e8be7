"""Arguments and results of recorded calls as C values: what a file writes becomes cdata of the declared type."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.golden.acl_headers import constants, interface
from tests.golden.facts import Json

PATTERN = 0xA7
"""Every byte of a variable before the call that may write it."""
TEXT_BYTES = 4096
"""Room behind a pointer to characters."""
SLACK_BYTES = 64
"""Room behind every other variable, in which a call must not write."""


class UnknownForm(ValueError):
    """A file writes something that this schema does not know; nothing was called."""


def byte_pattern(size_bytes: int) -> bytes:
    return bytes([PATTERN]) * size_bytes


class Variable:
    """What an out parameter points to: filled with a pattern, then perhaps written by the call."""

    def __init__(self, pointer_type: Any) -> None:
        item = pointer_type.item
        ffi = interface()
        self.item = ffi.typeof("uint64_t") if item.kind == "void" else item
        self.is_text = self.item.cname == "char"
        self.size_bytes = TEXT_BYTES if self.is_text else ffi.sizeof(self.item)
        count = -(-(self.size_bytes + SLACK_BYTES) // ffi.sizeof(self.item))
        self.storage = ffi.new(ffi.typeof(f"{ffi.getctype(self.item)}[]"), count)
        self.buffer = ffi.buffer(self.storage)
        self.buffer[:] = byte_pattern(len(self.buffer))
        self.pointer = ffi.cast(pointer_type, self.storage)

    @property
    def written(self) -> bool:
        return self.buffer[: self.size_bytes] != byte_pattern(self.size_bytes)

    @property
    def overrun(self) -> bool:
        """Whether bytes behind the variable were written."""
        return self.buffer[self.size_bytes :] != byte_pattern(len(self.buffer) - self.size_bytes)

    def number(self) -> int:
        """Return the value as later arguments use it; unwritten counts as 0."""
        if self.is_text:
            return address(self.storage)
        value = observed(self.storage[0], self.item) if self.written else 0
        if not isinstance(value, int):
            raise UnknownForm(f"a variable of type {self.item.cname} is used as a number")
        return value

    def found(self) -> dict[str, Json]:
        """Return what became of the variable, as JSON."""
        facts: dict[str, Json] = {"written": self.written, "overrun": self.overrun}
        if self.written and not self.is_text:
            facts["value"] = observed(self.storage[0], self.item)
        return facts


def address(value: Any) -> int:
    return int(interface().cast("uintptr_t", value))


def observed(value: Any, ctype: Any) -> Json:
    """Return a C value as JSON: a struct as an object, a pointer as its address."""
    if ctype.kind in ("struct", "union"):
        return {name: observed(getattr(value, name), part.type) for name, part in ctype.fields}
    if ctype.kind == "array":
        return [observed(item, ctype.item) for item in value]
    if ctype.kind in ("pointer", "function"):
        return address(value)
    if ctype.cname in ("float", "double"):
        return float(value)
    return value[0] if isinstance(value, bytes) else int(value)


def returned(value: Any, ctype: Any) -> Json:
    """Return the result of a call as JSON: text where the function returns text."""
    if ctype.kind == "void":
        return None
    if ctype.kind == "pointer" and ctype.item.cname == "char":
        ffi = interface()
        return ffi.string(value).decode(errors="replace") if value != ffi.NULL else None
    return observed(value, ctype)


@dataclass
class Scope:
    """Variables and host buffers of a sequence; everything that arguments point to stays alive with it."""

    variables: dict[str, Variable] = field(default_factory=dict)
    buffers: dict[str, Any] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)

    def argument(self, form: Json, ctype: Any) -> Any:
        """Return the cdata to pass for one argument, of the type the header declares."""
        if not isinstance(form, Mapping):
            return scalar(number(form), ctype)
        keys = form.keys()
        if keys == {"out"} and ctype.kind == "pointer":
            return self._add_variable(str(form["out"]), ctype).pointer
        if keys == {"string"} and ctype.kind == "pointer":
            return self._keep(interface().new("char[]", str(form["string"]).encode()))
        if keys in ({"struct", "fields"}, {"array", "items"}) and ctype.kind == "pointer":
            return interface().cast(ctype, self._made(form))
        if "var" in keys:
            return self._from_variable(form, ctype)
        raise UnknownForm(f"unknown form of an argument of type {ctype.cname}: {form}")

    def further_argument(self, form: Json) -> Any:
        """Return the cdata for an argument behind the declared ones of a function such as printf."""
        return self.argument(form, interface().typeof("char *" if isinstance(form, Mapping) else "int64_t"))

    def add_buffer(self, name: str, size_bytes: int) -> None:
        """Make a host buffer; a variable of that name is gone."""
        self.variables.pop(name, None)
        self.buffers[name] = self._keep(interface().new("char[]", size_bytes))

    def _add_variable(self, name: str, ctype: Any) -> Variable:
        self.buffers.pop(name, None)
        self.variables[name] = self._keep(Variable(ctype))
        return self.variables[name]

    def value_of(self, form: Mapping[str, Json]) -> int:
        """Return the number that {"var": n, "add": k} stands for."""
        if not form.keys() <= {"var", "add"}:
            raise UnknownForm(f"unknown keys beside a variable: {form}")
        name, add = form["var"], form.get("add", 0)
        if name in self.buffers:
            value = address(self.buffers[name])
        elif name in self.variables:
            value = self.variables[name].number()
        else:
            raise UnknownForm(f"no step before this one makes the variable {name}")
        return (value + add) % 2**64

    def _from_variable(self, form: Mapping[str, Json], ctype: Any) -> Any:
        variable = self.variables.get(str(form["var"]))
        if variable is not None and ctype == variable.item and ctype.kind in ("struct", "union"):
            return variable.storage[0]
        return scalar(self.value_of(form), ctype)

    def _keep(self, value: Any) -> Any:
        self.kept.append(value)
        return value

    def _made(self, form: Mapping[str, Json]) -> Any:
        """Return a new struct or array, zeroed where the file says nothing."""
        ffi = interface()
        if "struct" in form:
            made = self._keep(ffi.new(f"{form['struct']} *"))
            self._fill_fields(made, ffi.typeof(made).item, form["fields"])
        else:
            item = ffi.typeof(str(form["array"]))
            made = self._keep(ffi.new(f"{form['array']}[]", len(form["items"])))
            for index, value in enumerate(form["items"]):
                self._fill(made, index, item, value)
        return made

    def _fill_fields(self, target: Any, ctype: Any, fields: Mapping[str, Json]) -> None:
        types = dict(ctype.fields)
        for name, value in fields.items():
            if name not in types:
                raise UnknownForm(f"{ctype.cname} has no field {name}")
            part = types[name].type
            if part.kind in ("struct", "union"):
                self._fill_fields(getattr(target, name), part, value)
            elif part.kind == "array":
                for index, item in enumerate(value):
                    self._fill(getattr(target, name), index, part.item, item)
            else:
                setattr(target, name, self.argument(value, part))

    def _fill(self, target: Any, index: int, item: Any, value: Json) -> None:
        if item.kind in ("struct", "union"):
            self._fill_fields(target[index], item, value)
        else:
            target[index] = self.argument(value, item)


def number(form: Json) -> int:
    """Return the number that a plain argument stands for: itself, a constant's value, or 0 for null."""
    if form is None:
        return 0
    if isinstance(form, str):
        if form not in constants():
            raise UnknownForm(f"the headers have no constant {form}")
        return constants()[form]
    if isinstance(form, int) and not isinstance(form, bool):
        return form
    raise UnknownForm(f"unknown form of an argument: {form!r}")


def scalar(value: int, ctype: Any) -> Any:
    """Return a number as an integer, enum or pointer of a type it fits in, read as signed or as unsigned."""
    ffi = interface()
    if ctype.kind not in ("primitive", "enum", "pointer"):
        raise UnknownForm(f"a number is given where {ctype.cname} is wanted")
    bits = 8 * ffi.sizeof(ctype)
    if not -(2 ** (bits - 1)) <= value < 2**bits:
        raise UnknownForm(f"{value} does not fit in {ctype.cname}")
    return ffi.cast(ctype, value)
