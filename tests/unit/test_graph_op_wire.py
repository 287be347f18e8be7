"""Operators taken apart by their bytes: whatever a message holds is found in the parts, and comes back."""

import gc

import pytest

from gevar.errors import GraphError
from gevar.graph import ComputeGraph, OpDesc, sharing
from gevar.graph.op_wire import take_apart
from gevar.graph.sharing import Sharing
from gevar.proto import ge_ir
from gevar.proto.parse import unknown_field_numbers


def op_with(**fields: object) -> ge_ir.OpDef:
    op = ge_ir.OpDef(name="n", type="Relu", has_out_attr=True, id=-5, stream_id=7)
    for name, number in fields.items():
        op.attr[name].i = int(str(number))
    return op


def written(op: ge_ir.OpDef) -> ge_ir.OpDef:
    """Return what an operator comes back as; edges belong to the graph."""
    back = ge_ir.OpDef()
    OpDesc.from_proto(op).write_to(back)
    return back


def test_every_field_is_in_the_parts() -> None:
    op = op_with(a=1, b=-2)
    op.input.extend(["x:0", "", "y:-1"])
    op.subgraph_name.extend(["then", "else"])
    op.input_desc.add(name="in", dtype=1).shape.dim.extend([2, -1])
    op.output_desc.add(name="out", dtype=2)
    op.output_i.extend([512, -1])
    op.attr_groups.SetInParent()
    parts = take_apart(op, Sharing())
    assert (parts.name, parts.type, parts.id, parts.stream_id) == ("n", "Relu", -5, 7)
    assert parts.inputs == ("x:0", "", "y:-1")
    assert parts.subgraph_names == ("then", "else")
    assert {name: ge_ir.AttrDef.FromString(wire).i for name, wire in parts.attrs.items()} == {"a": 1, "b": -2}
    assert [one.desc.shape for one in parts.input_descs] == [(2, -1)]
    assert len(parts.output_descs) == 1
    rest = ge_ir.OpDef.FromString(parts.rest)
    assert rest == ge_ir.OpDef(has_out_attr=True, output_i=[512, -1], attr_groups=ge_ir.AttrGroups())
    del op.input[:]
    assert written(op) == op


def test_an_operator_of_nothing() -> None:
    parts = take_apart(ge_ir.OpDef(), Sharing())
    assert (parts.name, parts.type, parts.inputs, dict(parts.attrs), parts.rest) == ("", "", (), {}, b"")
    assert written(ge_ir.OpDef()) == ge_ir.OpDef()


@pytest.mark.parametrize("name_bytes", [0, 1, 127, 128, 20_000])
@pytest.mark.parametrize("value_bytes", [0, 1, 120, 127, 128, 20_000])
def test_attributes_of_any_length(name_bytes: int, value_bytes: int) -> None:
    op = op_with(other=3)
    op.attr["ä" * (name_bytes // 2) + "n" * (name_bytes % 2)].s = b"\xff" * value_bytes
    op.attr["nothing in it"].SetInParent()
    assert written(op) == op


def test_equal_parts_are_one_object() -> None:
    shared = Sharing()
    first, second, third = (take_apart(op_with(a=1, b=b), shared) for b in (2, 2, 3))
    assert first.type is second.type is third.type
    assert first.rest is second.rest
    assert first.attrs["b"] is second.attrs["b"]
    assert first.attrs["a"] is third.attrs["a"]
    assert next(iter(first.attrs)) is next(iter(third.attrs))


def test_what_protobuf_keeps_unread_stays() -> None:
    wire = op_with(a=1).SerializeToString(deterministic=True)
    odd = [
        bytes([0x50, 5]),  # attr as a number
        bytes([0xF8, 0x3F, 1]),  # a field that nobody knows
        bytes([0x52, 5, 0x0A, 1, 0x71, 0x18, 9]),  # an attribute with something else beside its name
        bytes([0x0B, 0x08, 1, 0x0C]),  # name as a group
        bytes([0xA9, 1, *range(8)]),  # id as eight bytes
    ]
    op = ge_ir.OpDef.FromString(wire + b"".join(odd))
    back = written(op)
    assert back == op
    assert unknown_field_numbers(back) == unknown_field_numbers(op) == {1, 10, 21, 1023}
    assert sorted(back.SerializeToString(deterministic=True)) == sorted(op.SerializeToString(deterministic=True))
    assert back.attr["a"].i == 1


def test_more_forms_than_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_MOST", 3)
    message = ge_ir.GraphDef(name="g")
    for number in range(20):
        op = message.op.add()
        op.CopyFrom(op_with(a=number, b=number % 4))
        op.name = f"n{number}"
        op.output_desc.add(name="y", size=number)
    assert ComputeGraph.from_proto(message).to_proto() == message


def test_reading_leaves_attributes_apart() -> None:
    message = ge_ir.GraphDef(name="g")
    for name in ("one", "two"):
        op = message.op.add()
        op.CopyFrom(op_with(a=1, b=2))
        op.name = name
    graph = ComputeGraph.from_proto(message)
    one, two = (graph[name].op_desc.attrs for name in ("one", "two"))
    assert one == two
    one["a"] = 5
    del one["b"]
    one["c"] = "new"
    assert dict(one) == {"a": 5, "c": "new"}
    assert dict(two) == {"a": 1, "b": 2}
    assert one != two
    copied = two.copy()
    copied["a"] = 9
    assert two["a"] == 1
    assert "c" not in two
    with pytest.raises(KeyError):
        two["c"]


@pytest.mark.parametrize("was_on", [True, False])
def test_garbage_collection_is_as_it_was_also_after_a_failure(was_on: bool) -> None:
    good, bad = ge_ir.GraphDef(name="g"), ge_ir.GraphDef(name="g")
    good.op.add(name="a", type="Data")
    bad.op.add(name="a", type="Relu", input=["b:0"]).input_desc.add()
    try:
        if not was_on:
            gc.disable()
        ComputeGraph.from_proto(good)
        assert gc.isenabled() is was_on
        with pytest.raises(GraphError):
            ComputeGraph.from_proto(bad)
        assert gc.isenabled() is was_on
    finally:
        gc.enable()
