"""Attribute names that ATC replaced by numbers: from number back to name, and from number back to string value.

A compressed name is a NUL byte followed by base-127 digits, least significant first, each stored plus 1; the number is
an index of the model's list of names. A flag per name says whether an integer value stands for a string of the model's
list of values. In a file of several models the names of a sub-model may be compressed twice, its own table on top of
the root's, or with the root's alone; so they are restored by the own table first and then by the root's.

Scope: attributes of operators and of their input and output descriptions. A name may be there in both forms, with
different values: serialisation adds some plain ones after compression (`format_for_int`, `origin_shape` …), so the
plain form counts.

Source: GE source, base/common/model/model_compress_manager.cc and graph_metadef/graph/utils/enum_attr_utils.cc.
"""

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass

from gevar.errors import ModelFileError
from gevar.om.allowance import EXTRA_BYTES, Allowance
from gevar.proto import ge_ir

OM_COMPRESS_VERSION_ATTR = "om_compress_version"
ATTR_NAME_ENUM_ATTR = "attr_name_enum"
ATTR_VALUE_ENUM_ATTR = "attr_value_enum"
ATTRS_USE_STRING_VALUE_ATTR = "attrs_use_string_value"
MARK = "\0"
"""First character of a compressed name."""
_BASE = 127
_MAX_DIGITS = 5
"""No list has 127^5 names; a longer number is not worth computing."""
_VT_LIST_STRING = 1
_ITEM_BYTES = 64
"""What a name or text of a table takes beside its bytes."""
_RESTORED = "restored attribute names and texts"


def compressed_name(index: int) -> str:
    """Return the compressed form of the name with an index.

    Examples
    --------
    >>> compressed_name(0), compressed_name(126), compressed_name(128)
    ('\\x00\\x01', '\\x00\\x7f', '\\x00\\x02\\x02')
    """
    digits = []
    while True:
        index, digit = divmod(index, _BASE)
        digits.append(chr(digit + 1))
        if not index:
            return MARK + "".join(digits)


def name_index(name: str) -> int:
    """Return the index that a compressed name stands for.

    Raises
    ------
    ValueError
        It has no digit, more digits than any list has names, or a character that is none.
    """
    digits = [ord(character) - 1 for character in name[1:]]
    if not 1 <= len(digits) <= _MAX_DIGITS or not all(0 <= digit < _BASE for digit in digits):
        raise ValueError(f"compressed attribute name {name[:16]!r} is not a number of 1 to {_MAX_DIGITS} digits")
    return sum(digit * _BASE**place for place, digit in enumerate(digits))


@dataclass(frozen=True, slots=True)
class AttrTable:
    """One model's lists: names, which of them have string values, and the values."""

    names: tuple[str, ...]
    use_string_value: tuple[bool, ...]
    values: tuple[bytes, ...]


def attr_table(
    model_attrs: Mapping[str, ge_ir.AttrDef],
    fail: Callable[[str], ModelFileError],
    allowance: Allowance | None = None,
) -> AttrTable | None:
    """Return the table among the attributes of a model, or None for a model that is not compressed.

    Raises
    ------
    ModelFileError
        Made by `fail`: the lists of names and flags differ in length, or a name is not UTF-8. Or they take more memory
        than is left of `allowance`.
    """
    if OM_COMPRESS_VERSION_ATTR not in model_attrs:
        return None
    lists = {
        key: model_attrs[key].list if key in model_attrs else ge_ir.AttrDef_ListValue()
        for key in (ATTR_NAME_ENUM_ATTR, ATTRS_USE_STRING_VALUE_ATTR, ATTR_VALUE_ENUM_ATTR)
    }
    if allowance is not None:
        items = sum(len(found.s) + len(found.b) for found in lists.values())
        allowance.take(_ITEM_BYTES * items, f"a table of {items} names, flags and texts")
    try:
        names = tuple(name.decode() for name in lists[ATTR_NAME_ENUM_ATTR].s)
    except UnicodeDecodeError as error:
        raise fail(f"{ATTR_NAME_ENUM_ATTR} holds a name that is not UTF-8") from error
    flags = tuple(lists[ATTRS_USE_STRING_VALUE_ATTR].b)
    if len(names) != len(flags):
        raise fail(f"{ATTR_NAME_ENUM_ATTR} has {len(names)} names, {ATTRS_USE_STRING_VALUE_ATTR} {len(flags)} flags")
    return AttrTable(names, flags, tuple(lists[ATTR_VALUE_ENUM_ATTR].s))


@dataclass(frozen=True, slots=True)
class _Restored:
    """A stored name's plain name, and for each round its table and whether the value is to be replaced."""

    name: str
    rounds: tuple[tuple[AttrTable, bool], ...]


class AttrNames:
    """Restores the attributes of one model, with its own table and the root model's.

    What is restored is counted, since a number of two bytes may stand for a long text.

    Parameters
    ----------
    tables
        The tables, in the order in which they are used.
    fail
        Makes the error of a fault.
    allowance
        What the model may take.

    Thread safety: any thread may call.
    """

    def __init__(
        self, tables: tuple[AttrTable, ...], fail: Callable[[str], ModelFileError], allowance: Allowance | None = None
    ) -> None:
        self._tables = tables
        self._fail = fail
        self._allowance = allowance or Allowance(EXTRA_BYTES, fail)
        self._restored: dict[str, _Restored] = {}

    def name(self, stored: str) -> str:
        """Return the plain form of a stored attribute name.

        Raises
        ------
        ModelFileError
            It is compressed and no table has its number, or it still is compressed after every table.
        """
        return self._restore(stored).name

    @property
    def most_rounds(self) -> int:
        """The number of tables that a name of this model may go through, as the tables say."""
        rounds, is_asked = 0, True
        for table in self._tables:
            rounds += is_asked
            is_asked = is_asked and any(name.startswith(MARK) for name in table.names)
        return rounds

    def has_string_value(self, stored: str) -> bool:
        """Return whether the value of a stored name stands for a text, by any of its tables; raises as `name`."""
        return any(string_value for _, string_value in self._restore(stored).rounds)

    def rounds(self, stored: str) -> int:
        """Return how many tables a stored name went through; 0 for a plain one."""
        return len(self._restore(stored).rounds)

    def restore(self, attrs: Mapping[str, ge_ir.AttrDef]) -> dict[str, ge_ir.AttrDef]:
        """Return attributes by plain name, with string values in place of their numbers; the input is untouched.

        What the names and texts take is taken for good, since the result is kept.

        Raises
        ------
        ModelFileError
            As `name`; or a value that should stand for a string is not a number, or is one without a string; or names
            and texts take more memory than the model may.
        """
        return self._restore_all(attrs, self._allowance)

    def find(self, attrs: Mapping[str, ge_ir.AttrDef], name: str) -> ge_ir.AttrDef | None:
        """Return one attribute by its plain name, None without it; the others are not restored.

        Raises
        ------
        ModelFileError
            As `restore`, for the names of all attributes and the value of this one.
        """
        if name in attrs:
            return attrs[name]
        for stored in attrs:
            restored = self._restore(stored)
            if restored.name == name:
                return self._value(restored, attrs[stored], self._allowance.anew())
        return None

    def restorer(self) -> Callable[[ge_ir.OpDef], ge_ir.OpDef]:
        """Return what restores the operators of one message in place, as `restore_op`, and counts them together."""
        allowance = self._allowance.anew()
        return lambda op: self.restore_op(op, allowance)

    def restore_op(self, op: ge_ir.OpDef, allowance: Allowance | None = None) -> ge_ir.OpDef:
        """Restore an operator in place, its descriptions too, and return it; raises as `restore`."""
        allowance = allowance or self._allowance.anew()
        self.restore_in_place(op.attr, allowance)
        for desc in (*op.input_desc, *op.output_desc):
            self.restore_in_place(desc.attr, allowance)
        return op

    def restore_in_place(self, attrs: MutableMapping[str, ge_ir.AttrDef], allowance: Allowance) -> None:
        """Restore the attributes of a message, which is changed, and take what they take; raises as `restore`."""
        if any(stored.startswith(MARK) for stored in attrs):
            found = {name: attr.SerializeToString() for name, attr in self._restore_all(attrs, allowance).items()}
            attrs.clear()
            for name, data in found.items():
                attrs[name].MergeFromString(data)

    def _restore_all(self, attrs: Mapping[str, ge_ir.AttrDef], allowance: Allowance) -> dict[str, ge_ir.AttrDef]:
        found: dict[str, ge_ir.AttrDef] = {}
        for stored, attr in attrs.items():
            restored = self._restore(stored)
            if stored == restored.name or restored.name not in found:
                allowance.take(len(restored.name) if restored.rounds else 0, _RESTORED)
                found[restored.name] = self._value(restored, attr, allowance)
        return found

    def _restore(self, stored: str) -> _Restored:
        if stored not in self._restored:
            self._restored[stored] = self._look_up(stored)
        return self._restored[stored]

    def _look_up(self, stored: str) -> _Restored:
        name, rounds = stored, []
        for table in self._tables:
            if name.startswith(MARK):
                try:
                    index = name_index(name)
                except ValueError as error:
                    raise self._fail(str(error)) from error
                if index >= len(table.names):
                    raise self._fail(f"attribute name {index} is asked for, the table has {len(table.names)} names")
                rounds.append((table, table.use_string_value[index]))
                name = table.names[index]
        if name.startswith(MARK):
            raise self._fail(f"attribute name {stored!r} is compressed, no table restores it")
        return _Restored(name, tuple(rounds))

    def _value(self, restored: _Restored, attr: ge_ir.AttrDef, allowance: Allowance) -> ge_ir.AttrDef:
        for table, string_value in restored.rounds:
            if string_value:
                attr = self._string_value(restored.name, attr, table, allowance)
        return attr

    def _string_value(self, name: str, attr: ge_ir.AttrDef, table: AttrTable, allowance: Allowance) -> ge_ir.AttrDef:
        kind = attr.WhichOneof("value")
        if kind == "i":
            return ge_ir.AttrDef(s=self._string(name, attr.i, table, allowance))
        if kind == "list" and not attr.list.s:
            strings = [self._string(name, number, table, allowance) for number in attr.list.i]
            return ge_ir.AttrDef(list=ge_ir.AttrDef_ListValue(s=strings, val_type=_VT_LIST_STRING))
        raise self._fail(f"attribute {name} should hold numbers of strings, it holds {kind}")

    def _string(self, name: str, number: int, table: AttrTable, allowance: Allowance) -> bytes:
        if not 0 <= number < len(table.values):
            raise self._fail(f"attribute {name} asks for string {number}, the table has {len(table.values)} strings")
        allowance.take(len(table.values[number]), _RESTORED)
        return table.values[number]
