"""Names as numbers: tables, what stays plain, what is dropped, and the way back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gevar.errors import ModelFileError
from gevar.om.attr_names import AttrNames, attr_table, compressed_name
from gevar.om.attr_names_writer import SHAPE_PARTITIONED_ATTR, compress, forget_compression
from gevar.proto import ge_ir


def fail(reason: str) -> ModelFileError:
    return ModelFileError(None, None, "model", reason)


def text(value: bytes) -> ge_ir.AttrDef:
    return ge_ir.AttrDef(s=value)


def texts(*values: bytes) -> ge_ir.AttrDef:
    return ge_ir.AttrDef(list=ge_ir.AttrDef_ListValue(s=values, val_type=1))


def number(value: int) -> ge_ir.AttrDef:
    return ge_ir.AttrDef(i=value)


def model(*ops: dict[str, ge_ir.AttrDef], desc: dict[str, ge_ir.AttrDef] | None = None) -> ge_ir.ModelDef:
    """Return a model with an operator for each map; `desc` goes to the first input and output of each."""
    message = ge_ir.ModelDef(name="m")
    graph = message.graph.add(name="g")
    for index, attrs in enumerate(ops):
        op = graph.op.add(name=f"op{index}")
        for name, attr in attrs.items():
            op.attr[name].CopyFrom(attr)
        for td in (op.input_desc.add(), op.output_desc.add()):
            for name, attr in (desc or {}).items():
                td.attr[name].CopyFrom(attr)
    return message


def copy(message: ge_ir.ModelDef) -> ge_ir.ModelDef:
    copied = ge_ir.ModelDef()
    copied.CopyFrom(message)
    return copied


def restored(message: ge_ir.ModelDef, root: ge_ir.ModelDef | None = None) -> ge_ir.ModelDef:
    """Return the model with plain names and without tables."""
    tables = [attr_table(owner.attr, fail) for owner in (message, root) if owner is not None]
    names = AttrNames(tuple(table for table in tables if table is not None), fail)
    plain = copy(message)
    for graph in plain.graph:
        for op in graph.op:
            names.restorer()(op)
    forget_compression(plain)
    return plain


def names_of(message: ge_ir.ModelDef) -> list[bytes]:
    return list(message.attr["attr_name_enum"].list.s)


def flags_of(message: ge_ir.ModelDef) -> list[bool]:
    return list(message.attr["attrs_use_string_value"].list.b)


def test_names_get_numbers_in_the_order_in_which_they_are_met() -> None:
    message = model({"z": number(1), "b": text(b"x")}, {"a": number(2), "b": text(b"y")}, desc={"t": number(3)})
    plain = copy(message)
    compress([message])
    assert names_of(message) == [b"b", b"z", b"t", b"a"]
    assert flags_of(message) == [True, False, False, False]
    assert list(message.attr["attr_value_enum"].list.s) == [b"x", b"y"]
    assert message.attr["om_compress_version"].i == 1
    assert [message.attr[name].list.val_type for name in ("attr_name_enum", "attrs_use_string_value")] == [1, 4]
    op = message.graph[0].op[1]
    assert dict(op.attr) == {compressed_name(0): number(1), compressed_name(3): number(2)}
    assert set(op.input_desc[0].attr) == set(op.output_desc[0].attr) == {compressed_name(2)}
    assert restored(message) == plain


def test_what_serialisation_adds_later_stays_plain() -> None:
    op = {"_input_name_key": texts(b"x"), "_ir_attr_names": texts(b"a"), "origin_format": text(b"ND")}
    desc = {"origin_format": text(b"ND"), "format_for_int": number(2), "_input_name_key": number(1)}
    message = model(op, desc=desc)
    plain = copy(message)
    compress([message])
    assert names_of(message) == [b"origin_format", b"_input_name_key"]
    assert {"_input_name_key", "_ir_attr_names"} <= set(message.graph[0].op[0].attr)
    assert {"origin_format", "format_for_int"} <= set(message.graph[0].op[0].input_desc[0].attr)
    assert restored(message) == plain


def test_what_compression_drops() -> None:
    message = model({"_l2fusion_ToOpStruct": text(b"x"), "_op_slice_info": text(b"y"), "kept": number(1)})
    compress([message])
    assert names_of(message) == [b"kept"]
    assert restored(message) == model({"kept": number(1)})


@pytest.mark.parametrize(
    "other",
    [
        number(1),
        ge_ir.AttrDef(list=ge_ir.AttrDef_ListValue(i=[1], val_type=2)),
        ge_ir.AttrDef(list=ge_ir.AttrDef_ListValue(s=[b"old"])),
        ge_ir.AttrDef(bt=b"raw"),
        ge_ir.AttrDef(),
    ],
)
def test_a_name_with_texts_and_other_values_keeps_its_texts(other: ge_ir.AttrDef) -> None:
    message = model({"mixed": text(b"x")}, {"mixed": other})
    plain = copy(message)
    compress([message])
    assert flags_of(message) == [False]
    assert restored(message) == plain


def test_lists_of_texts_empty_ones_and_bytes_that_are_no_text() -> None:
    message = model({"a": texts(), "b": texts(b"\xff\0", b"", b"\xff\0"), "c": text(b"")})
    plain = copy(message)
    compress([message])
    assert flags_of(message) == [True] * 3
    assert list(message.attr["attr_value_enum"].list.s) == [b"\xff\0", b""]
    assert restored(message) == plain


def test_a_table_that_is_there_keeps_its_numbers() -> None:
    message = model({"b": text(b"x"), "a": number(1)})
    compress([message])
    before = copy(message)
    changed = restored(message)
    for name in ("om_compress_version", "attr_name_enum", "attr_value_enum", "attrs_use_string_value"):
        changed.attr[name].CopyFrom(before.attr[name])
    changed.graph[0].op[0].attr["0"].s = b"y"
    compress([changed])
    assert names_of(changed) == [*names_of(before), b"0"]
    assert list(changed.attr["attr_value_enum"].list.s) == [b"x", b"y"]
    assert restored(changed).graph[0].op[0].attr["0"].s == b"y"


def test_a_table_that_no_longer_fits_is_made_anew() -> None:
    message = model({"b": text(b"x")})
    compress([message])
    table = copy(message).attr
    message = model({"b": number(7)})
    for name in table:
        message.attr[name].CopyFrom(table[name])
    compress([message])
    assert flags_of(message) == [False]
    assert restored(message) == model({"b": number(7)})


def test_more_names_than_one_digit_has() -> None:
    message = model({f"name_{index:05}": number(index) for index in range(20_000)})
    plain = copy(message)
    compress([message])
    assert len(names_of(message)) == 20_000
    assert max(len(name) for name in message.graph[0].op[0].attr) == 1 + 3
    assert restored(message) == plain


def test_models_of_one_file_with_a_table_for_all() -> None:
    root, sub = model({"a": text(b"x")}), model({"a": text(b"y"), "sub_only": number(1)})
    root.graph[0].attr[SHAPE_PARTITIONED_ATTR].b = True
    plain = copy(sub)
    compress([sub])  # it had a table of its own before
    before = restored(sub)
    sub = copy(before)
    compress([root, sub])
    assert names_of(root) == [b"a", b"sub_only"]
    assert "om_compress_version" not in sub.attr
    assert restored(sub, root) == plain


def test_models_of_one_file_one_after_the_other() -> None:
    root, sub = model({"a": text(b"x")}), model({"a": text(b"y"), "list": texts(b"x", b"y")})
    plain_root, plain = copy(root), copy(sub)
    compress([root, sub])
    assert names_of(sub) == [compressed_name(0).encode(), compressed_name(1).encode()]
    assert flags_of(sub) == [False, False]
    assert restored(root) == plain_root
    assert restored(sub, root) == plain


def test_a_number_that_is_the_name_of_another_attribute() -> None:
    root, sub = (
        model({}, desc={"a": number(1), "b": number(2)}),
        model({"b": number(3)}, desc={"a": number(4), "b": number(5)}),
    )
    plain = copy(sub)
    compress([root, sub])
    assert names_of(sub) == [compressed_name(1).encode(), compressed_name(0).encode()]
    assert restored(sub, root) == plain


def test_forgetting_leaves_other_attributes() -> None:
    message = model({"a": number(1)})
    message.attr["kept"].i = 5
    compress([message])
    forget_compression(message)
    assert set(message.attr) == {"kept"}


values = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1).map(number),
    st.binary(max_size=4).map(text),
    st.lists(st.binary(max_size=3), max_size=3).map(lambda items: texts(*items)),
    st.booleans().map(lambda value: ge_ir.AttrDef(b=value)),
)
attr_maps = st.dictionaries(
    st.sampled_from(["a", "b", "c", "_input_name_key", "origin_shape", "_ir_attr_names"]), values, max_size=5
)


@settings(max_examples=100, deadline=None)
@given(st.lists(attr_maps, max_size=4), st.lists(attr_maps, max_size=4), attr_maps, st.booleans())
def test_whatever_was_there_comes_back(
    ops: list[dict[str, ge_ir.AttrDef]],
    sub_ops: list[dict[str, ge_ir.AttrDef]],
    desc: dict[str, ge_ir.AttrDef],
    partitioned: bool,
) -> None:
    root, sub = model(*ops, desc=desc), model(*sub_ops, desc=desc)
    if partitioned:
        root.graph[0].attr[SHAPE_PARTITIONED_ATTR].b = True
    plain_root, plain = copy(root), copy(sub)
    compress([root, sub])
    assert restored(root) == plain_root
    assert restored(sub, root) == plain
