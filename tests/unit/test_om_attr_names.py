"""Attribute names that were replaced by numbers, and string values that were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gevar.errors import ModelFileError
from gevar.om.attr_names import AttrNames, AttrTable, attr_table, compressed_name, name_index
from gevar.proto import ge_ir
from tests.helpers import om_builder as build


def fail(reason: str) -> ModelFileError:
    return ModelFileError("a.om", 7, "MODEL_DEF", reason)


def names(*tables: AttrTable) -> AttrNames:
    return AttrNames(tables, fail)


def table(*listed: str, strings: tuple[str, ...] = (), values: tuple[bytes, ...] = ()) -> AttrTable:
    """A table of names, those in `strings` with string values."""
    return AttrTable(listed, tuple(name in strings for name in listed), values)


def ints(*numbers: int) -> ge_ir.AttrDef:
    return ge_ir.AttrDef(list=ge_ir.AttrDef_ListValue(i=numbers, val_type=2))


@pytest.mark.parametrize(
    ("index", "name"),
    [
        (0, "\0\x01"),
        (126, "\0\x7f"),
        (127, "\0\x01\x02"),
        (128, "\0\x02\x02"),
        (127 * 127 - 1, "\0\x7f\x7f"),
        (127 * 127, "\0\x01\x01\x02"),
    ],
)
def test_numbers_in_base_127(index: int, name: str) -> None:
    assert compressed_name(index) == name
    assert name_index(name) == index


@given(st.integers(0, 127**5 - 1))
def test_number_and_name_are_inverse(index: int) -> None:
    assert name_index(compressed_name(index)) == index


@pytest.mark.parametrize(
    "name", ["\0", "\0\0", "\0\x01\0", "\0\x80", "\0é", "\0" + "\x01" * 6, "\0" + "\x7f" * 100_000]
)
def test_what_is_no_number(name: str) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        name_index(name)
    with pytest.raises(ModelFileError, match="is not a number"):
        names(table("a")).name(name)


def test_plain_names_stay() -> None:
    assert names().name("value") == "value"
    assert names(table("a")).rounds("value") == 0


def test_own_table() -> None:
    own = names(table("value", "index"))
    assert own.name("\0\x02") == "index"
    assert own.rounds("\0\x02") == 1


def test_own_table_then_the_roots() -> None:
    both = names(table("\0\x02", "plain"), table("zero", "one"))
    assert both.name("\0\x01") == "one"
    assert both.rounds("\0\x01") == 2
    assert both.rounds("\0\x02") == 1


@pytest.mark.parametrize(
    ("tables", "stored", "words"),
    [
        ((), "\0\x01", "no table restores it"),
        ((table("a"),), "\0\x02", "attribute name 1 is asked for, the table has 1 names"),
        ((table(),), "\0\x01", "the table has 0 names"),
        ((table("\0\x01"),), "\0\x01", "no table restores it"),
        ((table("\0\x01"), table("\0\x01")), "\0\x01", "no table restores it"),
        ((table("\0\x03"), table("a")), "\0\x01", "attribute name 2 is asked for"),
    ],
)
def test_names_without_a_place(tables: tuple[AttrTable, ...], stored: str, words: str) -> None:
    restorer = names(*tables)
    for call in (restorer.name, restorer.rounds, lambda key: restorer.restore({key: ge_ir.AttrDef(i=1)})):
        with pytest.raises(ModelFileError, match=words):
            call(stored)


def test_values_without_flag_are_taken_as_they_are() -> None:
    attr = ge_ir.AttrDef(i=1)
    assert names(table("a", values=(b"zero", b"one"))).restore({"\0\x01": attr})["a"] is attr


def test_string_values() -> None:
    restorer = names(table("a", "b", strings=("a", "b"), values=(b"zero", b"\xff", b"two")))
    found = restorer.restore({"\0\x01": ge_ir.AttrDef(i=1), "\0\x02": ints(2, 0, 2), "plain": ge_ir.AttrDef(i=2)})
    assert found["a"] == ge_ir.AttrDef(s=b"\xff")
    assert found["b"] == ge_ir.AttrDef(list=ge_ir.AttrDef_ListValue(s=[b"two", b"zero", b"two"], val_type=1))
    assert found["plain"].i == 2


def test_each_round_has_its_own_flag_and_values() -> None:
    own = AttrTable(("\0\x01",), (False,), (b"wrong",))
    root = AttrTable(("name",), (True,), (b"zero", b"one"))
    assert names(own, root).restore({"\0\x01": ge_ir.AttrDef(i=1)})["name"].s == b"one"


@pytest.mark.parametrize(
    ("attr", "words"),
    [
        (ge_ir.AttrDef(i=2), "asks for string 2, the table has 2 strings"),
        (ge_ir.AttrDef(i=-1), "asks for string -1"),
        (ints(0, 2), "asks for string 2"),
        (ge_ir.AttrDef(f=1.0), "should hold numbers of strings, it holds f"),
        (ge_ir.AttrDef(s=b"text"), "it holds s"),
        (ge_ir.AttrDef(list=ge_ir.AttrDef_ListValue(s=[b"x"])), "it holds list"),
        (ge_ir.AttrDef(), "it holds None"),
    ],
)
def test_string_values_without_a_string(attr: ge_ir.AttrDef, words: str) -> None:
    restorer = names(table("a", strings=("a",), values=(b"zero", b"one")))
    with pytest.raises(ModelFileError, match=words):
        restorer.restore({"\0\x01": attr})
    with pytest.raises(ModelFileError, match=words):
        restorer.find({"\0\x01": attr}, "a")


def test_find_restores_one() -> None:
    restorer = names(table("a", "b", strings=("a", "b"), values=(b"zero",)))
    attrs = {"plain": ge_ir.AttrDef(i=5), "\0\x01": ge_ir.AttrDef(f=1.0), "\0\x02": ge_ir.AttrDef(i=0)}
    assert restorer.find(attrs, "b") == ge_ir.AttrDef(s=b"zero")
    assert restorer.find(attrs, "plain") == ge_ir.AttrDef(i=5)
    assert restorer.find(attrs, "c") is None
    with pytest.raises(ModelFileError):
        restorer.find({"\0\x03": ge_ir.AttrDef()}, "c")


def test_plain_attribute_counts_where_both_forms_are_there() -> None:
    # serialisation adds some names after compression
    attrs = {"\0\x01": ge_ir.AttrDef(i=1), "origin_format": ge_ir.AttrDef(i=2)}
    restorer = names(table("origin_format"))
    for ordered in (attrs, dict(reversed(attrs.items()))):
        assert restorer.restore(ordered)["origin_format"].i == 2
        assert restorer.find(ordered, "origin_format") == ge_ir.AttrDef(i=2)


def test_operator_is_restored_in_place_with_its_descriptions() -> None:
    value = build.attr_t(build.tensor(build.tensor_desc((2,), attrs={"\0\x01": build.attr_i(9)})))
    desc = build.tensor_desc((2,), attrs={"\0\x01": build.attr_i(0), "plain": build.attr_i(5)})
    data = build.op("n", "T", {"\0\x02": value, "kept": build.attr_i(1)}, outputs=[desc], inputs=[desc, desc])
    op = ge_ir.OpDef.FromString(data)
    names(table("first", "value", strings=("first",), values=(b"zero",))).restorer()(op)
    assert sorted(op.attr) == ["kept", "value"]
    for tensor in (*op.input_desc, *op.output_desc):
        assert sorted(tensor.attr) == ["first", "plain"]
        assert tensor.attr["first"].s == b"zero"
    # a description inside a value is left alone
    assert list(op.attr["value"].t.desc.attr) == ["\0\x01"]


def test_table_of_a_model() -> None:
    data = build.model_def("m", [], build.compression(["a", "b"], [True, False], ["x", "y"]))
    found = attr_table(ge_ir.ModelDef.FromString(data).attr, fail)
    assert found == AttrTable(("a", "b"), (True, False), (b"x", b"y"))


def test_model_without_compression_has_no_table() -> None:
    attrs = {**build.compression(["a"]), "om_compress_version": None}
    data = build.model_def("m", [], {name: value for name, value in attrs.items() if value is not None})
    assert attr_table(ge_ir.ModelDef.FromString(data).attr, fail) is None


def test_compressed_model_without_lists_has_an_empty_table() -> None:
    assert attr_table({"om_compress_version": ge_ir.AttrDef(i=1)}, fail) == AttrTable((), (), ())


@pytest.mark.parametrize(
    ("attrs", "words"),
    [
        (build.compression(["a", "b"], [True]), "attr_name_enum has 2 names, attrs_use_string_value 1 flags"),
        (build.compression([], [True]), "0 names, attrs_use_string_value 1 flags"),
        ({**build.compression(["a"]), "attr_name_enum": build.attr_strings([b"\xff"])}, "not UTF-8"),
    ],
)
def test_tables_that_contradict(attrs: dict[str, bytes], words: str) -> None:
    message = ge_ir.ModelDef.FromString(build.model_def("m", [], attrs))
    with pytest.raises(ModelFileError, match=words):
        attr_table(message.attr, fail)
