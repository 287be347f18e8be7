"""Operators: descriptions and their names, the fields of the builder, copies."""

import pytest

from gevar.errors import GraphError
from gevar.graph import OpDesc
from gevar.proto import ge_ir
from gevar.types import DataType, Format, TensorDesc
from tests.helpers.graphs import ROW, op

WIDE = TensorDesc(DataType.DT_INT8, Format.FORMAT_NCHW, (7, 7))


def stored(op_desc: OpDesc) -> ge_ir.OpDef:
    message = ge_ir.OpDef()
    op_desc.write_to(message)
    return message


def test_descriptions_have_names_and_indices() -> None:
    assign = OpDesc("w", "Assign", inputs={"ref": ROW, "value": WIDE}, outputs={"ref": ROW}, attrs={"use_lock": True})
    assert assign.input_descs == (ROW, WIDE)
    assert assign.input_desc("value") is assign.input_desc(1)
    assert (assign.input_index("value"), assign.input_index("y"), assign.output_index("ref")) == (1, None, 0)
    assert (assign.input_name(0), assign.input_name(1), assign.output_name(0)) == ("ref", "value", "ref")
    assert assign.attrs["use_lock"] is True
    assert repr(assign) == "<OpDesc w (Assign)>"


def test_descriptions_without_names_have_default_ones() -> None:
    plain = op("a", 2, 1)
    assert (plain.input_name(1), plain.output_name(0), plain.input_index("__input1")) == ("__input1", "__output0", None)
    assert "_input_name_key" not in plain.attrs


def test_names_are_written_as_two_lists() -> None:
    assign = OpDesc("w", "Assign", inputs={"ref": ROW})
    assign.add_input_desc(ROW)
    assert assign.add_input_desc(WIDE, "value") == 2
    message = stored(assign)
    assert list(message.attr["_input_name_key"].list.s) == [b"ref", b"value"]
    assert list(message.attr["_input_name_value"].list.i) == [0, 2]
    assert message.attr["_input_name_key"].list.val_type == 0
    assert OpDesc.from_proto(message).input_desc("value") == WIDE
    with pytest.raises(GraphError, match="node 'w': input name 'ref' is taken by input 0"):
        assign.add_input_desc(ROW, "ref")


@pytest.mark.parametrize("which", [2, -1, "nothing"])
def test_a_description_that_is_not_there_is_told(which: int | str) -> None:
    plain = op("a", 2, 2)
    with pytest.raises(GraphError, match=f"node 'a': input {which!r} is asked for, it has 2 inputs"):
        plain.input_desc(which)
    with pytest.raises(GraphError, match=f"output {which!r} is asked for, it has 2 outputs"):
        plain.update_output_desc(which, ROW)


def test_a_replaced_description_keeps_name_and_unknown_fields() -> None:
    desc = ge_ir.TensorDescriptor.FromString(b"\xa0\x3f\x07")  # field 1012 = 7
    desc.name, desc.has_out_attr, desc.size, desc.dtype = "x", True, 99, 3
    desc.attr["mine"].i = 4
    message = ge_ir.OpDef(name="a", type="Relu", input_desc=[desc, desc], output_desc=[desc])
    relu = OpDesc.from_proto(message)
    assert relu.input_desc(0) is relu.input_desc(1)
    assert relu.output_desc(0) is relu.input_desc(1)
    relu.update_input_desc(0, WIDE)
    relu.update_output_desc(0, WIDE.replace(size=5))
    written = stored(relu)
    assert (relu.input_desc(0), relu.output_desc(0).size) == (WIDE, 5)
    assert written.input_desc[1] == desc
    assert (written.input_desc[0].name, written.input_desc[0].has_out_attr, written.input_desc[0].size) == (
        "x",
        True,
        0,
    )
    assert "mine" not in written.input_desc[0].attr
    assert written.input_desc[0].SerializeToString().endswith(b"\xa0\x3f\x07")
    assert OpDesc.from_proto(written).input_desc(0) == WIDE


def test_equal_descriptions_are_one_object() -> None:
    first, second = op("a"), op("b")
    assert first.input_desc(0) is second.output_desc(0)


def test_the_fields_of_the_builder_are_lists() -> None:
    plain = op("a", 2)
    assert (plain.input_i, plain.is_input_const, plain.src_name) == ((), (), ())
    plain.input_i = (512, 1 << 37)
    plain.is_input_const = [True, False]
    plain.src_name = ["x", "y"]
    plain.workspace_bytes = [32]
    plain.id, plain.stream_id = 7, 2
    message = stored(plain)
    assert list(message.input_i) == [512, 1 << 37]
    assert (list(message.is_input_const), list(message.src_name), list(message.workspace_bytes)) == (
        [True, False],
        ["x", "y"],
        [32],
    )
    assert (message.id, message.stream_id, message.has_out_attr) == (7, 2, True)
    plain.input_i = ()
    assert list(stored(plain).input_i) == []
    with pytest.raises(ValueError):
        plain.input_i = [1 << 64]
    with pytest.raises(TypeError):
        plain.input_i = ["a"]
    assert plain.src_name == ("x", "y")


def test_a_copy_is_apart() -> None:
    first = OpDesc("a", "Assign", inputs={"ref": ROW}, outputs=[ROW], attrs={"n": 1})
    first.output_i = [1024]
    first.id = 3
    second = first.copy("b")
    assert second.output_i == (1024,)
    second.attrs["n"] = 2
    second.update_input_desc(0, WIDE)
    second.output_i = [0]
    assert (first.attrs["n"], first.input_desc("ref"), first.output_i) == (1, ROW, (1024,))
    assert (second.name, second.type, second.id, second.input_index("ref")) == ("b", "Assign", 3, 0)


@pytest.mark.parametrize(
    ("name", "op_type", "words"), [("", "Relu", "name"), ("a", "", "type"), ("\ud800", "R", "UTF-8")]
)
def test_names_are_checked(name: str, op_type: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        OpDesc(name, op_type)
