"""Taking ref nodes out again: control edges, bridges, and the attribute that stays."""

import pytest

from gevar.compile.descriptions import str_attr
from gevar.compile.ref_deletion import (
    RefIdentityDeleteOpPass,
    VariableRefDeleteOpPass,
    VariableRefUselessControlOutDeletePass,
)
from gevar.errors import GraphError
from gevar.graph import ComputeGraph, OpDesc
from gevar.proto.ge_ir import AttrDef
from gevar.status import FAILED
from tests.helpers.compile_graphs import DESCS, compile_graph, run
from tests.helpers.graphs import edges

N4 = DESCS["N4"]
ASSIGNED = "w Variable = N4; c Const = N4; a Assign w c; w_ref Variable a = N4 ref:w; out NetOutput a; w_ref => out"


def written(graph: ComputeGraph, name: str, output: int = 0) -> str | None:
    return str_attr(graph[name].op_desc.output_desc(output), "ref_var_src_var_name")


# --- control edges ----------------------------------------------------------------------------------------------------


def test_an_edge_to_what_the_writer_feeds_is_dropped() -> None:
    graph = compile_graph(ASSIGNED + "; n NoOp; w_ref => n; m NoOp; w_ref => m; a => m")
    run(graph, VariableRefUselessControlOutDeletePass())
    assert {"w_ref => n", "a:0 -> w_ref:0", "a:0 -> out:0", "a => m"} <= edges(graph)
    assert not {"w_ref => out", "w_ref => m"} & edges(graph)


def test_a_ref_node_without_a_producer_is_passed_over() -> None:
    graph = compile_graph("w Variable = N4; w_ref Variable -@N4 = N4 ref:w; n NoOp; w_ref => n")
    context = run(graph, VariableRefUselessControlOutDeletePass())
    assert edges(graph) == {"w_ref => n"}
    assert "'w_ref' has no producer" in context.log.records[0].warnings[0]


# --- bridges ----------------------------------------------------------------------------------------------------------


def test_bridges_go() -> None:
    graph = compile_graph(
        "w Variable = N4; i RefIdentity w = N4; s Scatter i = N4; w_ref Variable i = N4 ref:w; n NoOp; n => i"
    )
    run(graph, RefIdentityDeleteOpPass())
    assert edges(graph) == {"w:0 -> s:0", "w:0 -> w_ref:0", "n => s", "n => w_ref"}


def test_a_bridge_without_outputs_or_edges_goes() -> None:
    graph = compile_graph("i RefIdentity; j RefIdentity -@N4 = N4")
    run(graph, RefIdentityDeleteOpPass())
    assert len(graph) == 0


# --- ref nodes --------------------------------------------------------------------------------------------------------


def test_the_writer_says_what_it_writes() -> None:
    graph = compile_graph(ASSIGNED)
    run(graph, VariableRefUselessControlOutDeletePass(), VariableRefDeleteOpPass())
    assert edges(graph) == {"w:0 -> a:0", "c:0 -> a:1", "a:0 -> out:0"}
    assert written(graph, "a") == "w"


def test_an_order_that_only_the_ref_node_gave_stays() -> None:
    graph = compile_graph(ASSIGNED)
    run(graph, VariableRefDeleteOpPass())
    assert "a => out" in edges(graph)


def test_a_ref_node_of_its_own_variable_leaves_nothing() -> None:
    graph = compile_graph("w Variable = N4; w_ref Variable w = N4 ref:w")
    run(graph, VariableRefDeleteOpPass())
    assert (len(graph), written(graph, "w")) == (1, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ASSIGNED.replace("ref:w", "ref:x"), r"node 'w_ref': .*no variable has that name"),
        ("w Variable = N4; w_ref Variable -@N4 = N4 ref:w", r"node 'w_ref': .*has no producer"),
        ("w Variable = N4; w_ref Variable = N4 ref:w", r"node 'w_ref': .*input 0 is asked for"),
    ],
)
def test_a_ref_node_of_nothing_fails_the_pass(text: str, words: str) -> None:
    graph = compile_graph(text + "; v Variable = N4; v_ref Variable v = N4 ref:v")
    before = graph.to_proto()
    with pytest.raises(GraphError, match=words) as caught:
        run(graph, VariableRefDeleteOpPass())
    assert caught.value.status == FAILED
    assert graph.to_proto() == before


def call_with_body(parent_index: int | None) -> ComputeGraph:
    """A PartitionedCall whose body assigns, and a ref node of its output 0."""
    graph = compile_graph("w Variable = N4; p PartitionedCall w = N4; w_ref Variable p = N4 ref:w")
    body = compile_graph("v Variable = N4; c Const = N4; a Assign v c", "body")
    desc = N4 if parent_index is None else N4.replace(attrs={"_parent_node_index": AttrDef(i=parent_index)})
    out = body.add_node(OpDesc("out", "NetOutput", inputs=[N4, desc]))
    body["a"].out_data_anchor(0).link_to(out.in_data_anchor(1))
    graph.add_subgraph(graph["p"], body)
    return graph


def test_behind_a_call_the_writer_inside_says_it() -> None:
    graph = call_with_body(0)
    run(graph, VariableRefDeleteOpPass())
    assert written(graph.subgraph("body"), "a") == "w"
    assert written(graph, "p") is None


def test_the_last_net_output_counts_and_of_it_the_first_input() -> None:
    graph = call_with_body(0)
    body = graph.subgraph("body")
    for name in ("b", "c2", "late"):
        body.add_node(OpDesc(name, "Relu", inputs=[N4], outputs=[N4]))
    marked = N4.replace(attrs={"_parent_node_index": AttrDef(i=0)})
    out = body.add_node(OpDesc("out2", "NetOutput", inputs=[N4, marked, marked]))
    for index, name in enumerate(("late", "b", "c2")):
        body[name].out_data_anchor(0).link_to(out.in_data_anchor(index))
    run(graph, VariableRefDeleteOpPass())
    assert [written(body, name) for name in ("a", "late", "b", "c2")] == [None, None, "w", None]


@pytest.mark.parametrize("parent_index", [None, 1])
def test_a_call_that_does_not_tell_the_writer_says_it_itself(parent_index: int | None) -> None:
    graph = call_with_body(parent_index)
    run(graph, VariableRefDeleteOpPass())
    assert written(graph.subgraph("body"), "a") is None
    assert written(graph, "p") == "w"


def test_ref_nodes_in_subgraphs_may_name_variables_outside() -> None:
    graph = compile_graph("w RefData = N4; p PartitionedCall")
    body = compile_graph("v Variable = N4; c Const = N4; a Assign v c; r Variable a = N4 ref:w", "body")
    graph.add_subgraph(graph["p"], body)
    run(graph, VariableRefDeleteOpPass())
    assert written(body, "a") == "w"
    assert "r" not in body
