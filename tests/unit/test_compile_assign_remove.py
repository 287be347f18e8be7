"""Assigns that are not needed: the value is written straight to the variable."""

import pytest

from gevar.compile.assign_remove_pass import AssignRemovePass
from gevar.compile.descriptions import str_attr
from gevar.errors import GraphError
from gevar.graph import ComputeGraph, OpDesc
from gevar.proto.ge_ir import AttrDef
from gevar.status import FAILED
from tests.helpers.compile_graphs import DESCS, compile_graph, refusals, run
from tests.helpers.graphs import edges, link

N4 = DESCS["N4"]
COMPUTED = "v Variable = N4; c Const = N4; m Mul c c = N4; a Assign v m; r Relu a = N4"


def variable_of(graph: ComputeGraph, name: str) -> str | None:
    return str_attr(graph[name].op_desc.output_desc(0), "_assign_var_name")


def in_place(name: str, *, takes: int = 0) -> OpDesc:
    """An op whose output takes the memory of an input."""
    desc = N4.replace(attrs={"_inplace_support_input_index": AttrDef(i=takes)})
    return OpDesc(name, "Add", inputs=[N4, N4], outputs=[desc])


def test_a_computed_value_is_written_straight_to_the_variable() -> None:
    graph = compile_graph(COMPUTED + "; n NoOp; a => n; k Const = N4; k => a")
    run(graph, AssignRemovePass())
    assert edges(graph) == {
        *("c:0 -> m:0", "c:0 -> m:1", "m:0 -> v:0", "v:0 -> r:0"),
        *("m => r", "m => n", "v => n", "k => r", "k => n"),
    }
    assert variable_of(graph, "m") == "v"
    assert graph["v"].op_desc.input_descs == (N4,)


def test_an_input_that_the_variable_has_is_used() -> None:
    graph = compile_graph(COMPUTED.replace("v Variable", "v VariableV2 -@F4"))
    run(graph, AssignRemovePass())
    assert "m:0 -> v:0" in edges(graph)
    assert graph["v"].op_desc.input_descs == (N4,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (COMPUTED.replace("m Mul c c", "m Constant"), "the value m:0 (Constant) is not computed"),
        (COMPUTED.replace("m Mul c c", "m RefData"), "(RefData) is not computed"),
        (COMPUTED.replace("m Mul c c", "m VariableV2"), "(VariableV2) is not computed"),
        (COMPUTED.replace("v Variable", "v RefData"), "v:0 (RefData) is no variable"),
        (COMPUTED.replace("v Variable", "k Const = N4; v Variable k"), "'v' is written by 'k' already"),
        (COMPUTED + "; s Relu v = N4", "v:0 has 2 readers"),
        (COMPUTED + "; s Relu m = N4", "m:0 has 2 readers"),
        (COMPUTED + "; n NoOp; v => n", "'v' comes before 'm'"),
        ("v Variable = N4; a Assign v -@N4", "not linked"),
    ],
)
def test_an_assign_stays(text: str, words: str) -> None:
    graph = compile_graph(text)
    before = edges(graph)
    context = run(graph, AssignRemovePass())
    assert edges(graph) == before
    assert words in refusals(context)["a"]


def test_a_variable_that_comes_later_may_have_an_order() -> None:
    graph = compile_graph(COMPUTED + "; n NoOp; v => n; m => v")
    run(graph, AssignRemovePass())
    assert "a" not in graph


def test_the_name_is_handed_on_to_what_the_value_takes_its_memory_from() -> None:
    graph = compile_graph("v Variable = N4; c Const = N4; m Mul c c = N4")
    for name, producer in (("p", "m"), ("q", "p")):
        link(graph[producer], 0, graph.add_node(in_place(name)), 0)
    assign = graph.add_node(OpDesc("a", "Assign", inputs={"ref": N4, "value": N4}, outputs={"ref": N4}))
    link(graph["v"], 0, assign, 0)
    link(graph["q"], 0, assign, 1)
    run(graph, AssignRemovePass())
    assert [variable_of(graph, name) for name in ("q", "p", "m", "c")] == ["v", "v", "v", None]


@pytest.mark.parametrize("takes", [1, 5])
def test_memory_of_an_input_that_is_not_there_fails(takes: int) -> None:
    graph = compile_graph("m Mul = N4")
    node = graph.add_node(in_place("p", takes=takes))
    link(graph["m"], 0, node, 0)
    desc = node.op_desc.output_desc(0)
    node.op_desc.update_output_desc(0, desc.replace(attrs={**desc.attrs, "_assign_var_name": AttrDef(s=b"v")}))
    with pytest.raises(GraphError, match=f"node 'p': AssignRemovePass: .*input {takes}") as caught:
        run(graph, AssignRemovePass())
    assert caught.value.status == FAILED


def test_attributes_of_another_kind_are_passed_over() -> None:
    graph = compile_graph("m Mul = N4; p Add m = N4")
    attrs = {"_inplace_support_input_index": AttrDef(s=b"0"), "_assign_var_name": AttrDef(s=b"v")}
    graph["p"].op_desc.update_output_desc(0, N4.replace(attrs=attrs))
    run(graph, AssignRemovePass())
    assert variable_of(graph, "m") is None
