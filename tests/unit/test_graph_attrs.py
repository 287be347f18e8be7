"""Attributes: every kind of value there and back, what is refused, and what is kept byte for byte."""

import pytest

from gevar.errors import ModelFileError
from gevar.graph import AttrMap, AttrValue, ComputeGraph, Expression, GeTensor, NamedAttrs, ValueType
from gevar.graph.attr_value import attr_to_wire
from gevar.proto import ge_ir
from gevar.types import DataType, Format, TensorDesc
from tests.helpers.graphs import graph_of

DESC = TensorDesc(DataType.DT_FLOAT16, Format.FORMAT_NCHW, (1, 3), size=64, device_type="CPU")
TENSOR = GeTensor(DESC, b"abcdef")
KIND = ValueType

VALUES: list[tuple[AttrValue, ValueType, str]] = [
    (None, KIND.VT_NONE, ""),
    (-5, KIND.VT_INT, "i"),
    (0, KIND.VT_INT, "i"),
    (0.5, KIND.VT_FLOAT, "f"),
    (False, KIND.VT_BOOL, "b"),
    ("é\udcff", KIND.VT_STRING, "s"),
    (b"\xff\x00", KIND.VT_BYTES, "bt"),
    (DataType.DT_BF16, KIND.VT_DATA_TYPE, "dt"),
    (DESC, KIND.VT_TENSOR_DESC, "td"),
    (TENSOR, KIND.VT_TENSOR, "t"),
    (Expression(b"x+1"), KIND.VT_EXPRESSION, "expression"),
    (NamedAttrs("f", AttrMap({"a": 1})), KIND.VT_NAMED_ATTRS, "func"),
    ((1, -2), KIND.VT_LIST_INT, "list"),
    ((0.5, 2.0), KIND.VT_LIST_FLOAT, "list"),
    ((True, False), KIND.VT_LIST_BOOL, "list"),
    (("a", "\udcfe"), KIND.VT_LIST_STRING, "list"),
    ((b"a", b"\xfe"), KIND.VT_LIST_BYTES, "list"),
    ((DataType.DT_INT8, DataType.DT_FLOAT), KIND.VT_LIST_DATA_TYPE, "list"),
    ((DESC, DESC), KIND.VT_LIST_TENSOR_DESC, "list"),
    ((TENSOR,), KIND.VT_LIST_TENSOR, "list"),
    ((NamedAttrs("f"), NamedAttrs("g")), KIND.VT_LIST_NAMED_ATTRS, "list"),
    (((1, 2), (), (3,)), KIND.VT_LIST_LIST_INT, "list_list_int"),
    (((0.5,), (1.0, 2.0)), KIND.VT_LIST_LIST_FLOAT, "list_list_float"),
]


@pytest.mark.parametrize(("value", "kind", "field"), VALUES, ids=lambda item: getattr(item, "name", None))
def test_a_value_comes_back(value: AttrValue, kind: ValueType, field: str) -> None:
    attrs = AttrMap({"x": value})
    assert attrs["x"] == value
    assert type(attrs["x"]) is type(value)
    assert attrs.value_type("x") is kind
    assert attrs.to_proto("x").WhichOneof("value") == (field or None)
    again = AttrMap()
    again.set("x", value, kind)
    assert again == attrs


def test_graphs_are_values() -> None:
    graph = graph_of("x/0/1; y; x:0 -> y:0")
    attrs = AttrMap({"g": graph, "gs": [graph, ComputeGraph("other")]})
    found = attrs.get_as("g", ComputeGraph)
    assert found is not None
    assert found.to_proto() == graph.to_proto()
    found.remove_node(found["y"])  # a copy: the attribute stays
    assert len(attrs.to_proto("g").g.op) == 2
    graphs = attrs.get_list("gs", ComputeGraph)
    assert graphs is not None
    assert [item.name for item in graphs] == ["main", "other"]
    assert attrs.value_type("gs") is KIND.VT_LIST_GRAPH


@pytest.mark.parametrize("kind", [kind for kind in ValueType if "_LIST_" in kind.name], ids=lambda kind: kind.name)
def test_an_empty_list_keeps_its_kind(kind: ValueType) -> None:
    attrs = AttrMap()
    attrs.set("x", [], kind)
    assert (attrs["x"], attrs.value_type("x")) == ((), kind)


def test_a_list_of_an_old_file_has_the_kind_of_its_items() -> None:
    attrs = AttrMap()
    attrs.set_proto("i", ge_ir.AttrDef(list=ge_ir.AttrDef_ListValue(i=[3])))
    attrs.set_proto("t", ge_ir.AttrDef(list=ge_ir.AttrDef_ListValue(td=[ge_ir.TensorDescriptor(dtype=2)])))
    attrs.set_proto("new", ge_ir.AttrDef(list=ge_ir.AttrDef_ListValue(i=[3], val_type=77)))
    assert (attrs["i"], attrs.value_type("i"), attrs.value_type("t")) == (
        (3,),
        KIND.VT_LIST_INT,
        KIND.VT_LIST_TENSOR_DESC,
    )
    assert attrs["new"] == (3,)


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ([], ValueError, "empty list"),
        ([1, "a"], TypeError, "mixes VT_INT and VT_STRING"),
        ([1, True], TypeError, "mixes VT_BOOL and VT_INT"),
        ([1, [2]], TypeError, "mixes"),
        (object(), TypeError, "cannot hold object"),
        ({"a": 1}, TypeError, "cannot hold dict"),
        (1 << 63, ValueError, "range"),
        ([1 << 64], ValueError, "range"),
    ],
)
def test_what_no_attribute_holds_is_refused(value: AttrValue, error: type[Exception], words: str) -> None:
    attrs = AttrMap({"x": 1})
    with pytest.raises(error, match=words):
        attrs["x"] = value
    assert attrs["x"] == 1


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("1", KIND.VT_INT),
        (True, KIND.VT_INT),
        (1, KIND.VT_BOOL),
        ("a", KIND.VT_BYTES),
        (b"a", KIND.VT_LIST_INT),
        (["a"], KIND.VT_LIST_INT),
        ([1.5], KIND.VT_LIST_INT),
        ([1], KIND.VT_LIST_TENSOR),
        ([1], KIND.VT_LIST_LIST_INT),
        (DESC, KIND.VT_TENSOR),
        (object(), KIND.VT_INT),
        ([object()], KIND.VT_LIST_INT),
    ],
)
def test_a_value_of_another_kind_is_refused(value: AttrValue, kind: ValueType) -> None:
    with pytest.raises(TypeError):
        attr_to_wire(value, kind)


def test_a_whole_float_is_one_if_it_is_said() -> None:
    attrs = AttrMap()
    attrs.set("x", 1, KIND.VT_FLOAT)
    attrs.set("xs", [1, 2], KIND.VT_LIST_FLOAT)
    assert (attrs["x"], type(attrs["x"]), attrs.value_type("xs")) == (1.0, float, KIND.VT_LIST_FLOAT)
    with pytest.raises(ValueError, match="VT_LIST_NONE is an empty list, 1 items"):
        attrs.set("none", [1], KIND.VT_LIST_NONE)


def test_a_typed_look_up_finds_its_type_only() -> None:
    attrs = AttrMap({"i": 1, "b": True, "s": "a", "li": [1, 2], "ls": ["a"], "dt": DataType.DT_INT8})
    assert (attrs.get_as("i", int), attrs.get_as("b", bool), attrs.get_as("s", str)) == (1, True, "a")
    assert attrs.get_as("b", int) is None
    assert attrs.get_as("i", bool) is None
    assert attrs.get_as("dt", int) is None
    assert attrs.get_as("dt", DataType) is DataType.DT_INT8
    assert attrs.get_as("absent", int) is None
    assert (attrs.get_list("li", int), attrs.get_list("ls", str)) == ((1, 2), ("a",))
    assert attrs.get_list("li", str) is None
    assert attrs.get_list("i", int) is None
    assert attrs.get_list("absent", int) is None


def test_it_is_a_dict() -> None:
    attrs = AttrMap({"a": 1, "b": [2]})
    assert (len(attrs), list(attrs), "a" in attrs, "c" in attrs) == (2, ["a", "b"], True, False)
    assert dict(attrs) == {"a": 1, "b": (2,)}
    assert attrs.setdefault("a", 5) == 1
    del attrs["a"]
    assert attrs == AttrMap({"b": [2]})
    assert attrs != {"b": (2,)}
    with pytest.raises(KeyError):
        attrs["a"]
    with pytest.raises(TypeError, match="unhashable"):
        hash(attrs)
    assert repr(attrs) == "<AttrMap of 1: b>"
    assert repr(AttrMap({f"k{n}": n for n in range(9)})).endswith("k7, …>")


def test_a_copy_is_apart_and_taking_is_exact() -> None:
    stored = ge_ir.AttrDef.FromString(b"\x18\x05\xa0\x3f\x07")  # i = 5, and field 1012 = 7
    attrs = AttrMap()
    attrs.set_proto("x", stored)
    copied, other = attrs.copy(), AttrMap()
    copied["x"] = 6
    other.take("x", attrs)
    assert (attrs["x"], copied["x"]) == (5, 6)
    assert other.to_proto("x").SerializeToString() == stored.SerializeToString()
    with pytest.raises(KeyError):
        other.take("y", attrs)


def test_bytes_that_are_no_attribute_are_told() -> None:
    attrs = AttrMap()
    attrs._wires["x"] = b"\xff"
    with pytest.raises(ModelFileError, match=r"ge\.proto\.AttrDef"):
        attrs["x"]
