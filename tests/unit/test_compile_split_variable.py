"""Variables that subgraphs use get a node there."""

import pytest

from gevar.compile import PassContext
from gevar.compile.split_variable_into_subgraph_pass import SplitVariableIntoSubgraphPass
from gevar.errors import GraphError
from gevar.graph import ComputeGraph
from gevar.status import FAILED
from tests.helpers.compile_graphs import DESCS, compile_graph, refusals, run
from tests.helpers.graphs import edges


def with_body(outer: str, *bodies: str, runner: str = "p") -> ComputeGraph:
    """A graph whose node `p` runs bodies; in these the Data `dN` is input N."""
    graph = compile_graph(outer)
    for number, text in enumerate(bodies):
        body = compile_graph(text, f"body{number}")
        for node in body:
            if node.type == "Data":
                node.op_desc.attrs["_parent_node_index"] = int(node.name[1:])
        graph.add_subgraph(graph[runner], body)
    return graph


def test_readers_inside_read_a_variable_of_their_own() -> None:
    graph = with_body(
        "x Data = N4; w Variable = N4 note=kept; p PartitionedCall x w = N4",
        "d1 Data = N4; d0 Data = N4; r Relu d1 = N4; s Add d1 d0 = N4",
    )
    run(graph, SplitVariableIntoSubgraphPass())
    body = graph.subgraph("body0")
    assert edges(body) == {"w:0 -> r:0", "w:0 -> s:0", "d0:0 -> s:1", "d1 => w"}
    assert (body["w"].type, body["w"].op_desc.attrs["note"]) == ("Variable", "kept")
    assert edges(graph) == {"x:0 -> p:0", "w:0 -> p:1"}


def test_a_node_of_the_name_is_used_again() -> None:
    graph = with_body(
        "w Variable = N4; p If w w = N4", "w Variable = N4; d0 Data = N4; d1 Data = N4; r Relu d0 = N4; s Relu d1 = N4"
    )
    run(graph, SplitVariableIntoSubgraphPass())
    assert edges(graph.subgraph("body0")) == {"w:0 -> r:0", "w:0 -> s:0", "d0 => w", "d1 => w"}


def test_every_branch_gets_one() -> None:
    graph = with_body("w Variable = N4; p If w = N4", "d0 Data = N4; r Relu d0 = N4", "d0 Data = N4; s Relu d0 = N4")
    run(graph, SplitVariableIntoSubgraphPass())
    assert all("w" in graph.subgraph(name) for name in ("body0", "body1"))


def test_a_body_that_does_not_read_it_is_left() -> None:
    graph = with_body("w Variable = N4; p If w = N4", "d0 Data = N4", "d7 Data = N4; r Relu d7 = N4")
    context = run(graph, SplitVariableIntoSubgraphPass())
    assert not any("w" in graph.subgraph(name) for name in ("body0", "body1"))
    assert refusals(context) == {"w": "nothing in 'body1' reads p:0"}


def test_bodies_in_bodies_follow() -> None:
    graph = with_body("w RefData = N4; p PartitionedCall w = N4", "d0 Data = N4; q PartitionedCall d0 = N4")
    below = compile_graph("d0 Data = N4; r Relu d0 = N4", "below")
    below["d0"].op_desc.attrs["_parent_node_index"] = 0
    body = graph.subgraph("body0")
    body.add_subgraph(body["q"], below)
    run(graph, SplitVariableIntoSubgraphPass())
    assert edges(below) == {"w:0 -> r:0", "d0 => w"}


@pytest.mark.parametrize("unknown", ["shape", "flag", "below"])
def test_a_call_of_unknown_shape_is_left(unknown: str) -> None:
    text = "d0 Data = N4; r Relu d0 = " + ("U4" if unknown == "shape" else "N4")
    graph = with_body("w Variable = N4; p PartitionedCall w = N4", text)
    body = graph.subgraph("body0")
    if unknown == "flag":
        body.attrs["_graph_unknown_flag"] = True
    if unknown == "below":
        body.add_subgraph(body["r"], compile_graph("x Data = U4", "below"))
    context = run(graph, SplitVariableIntoSubgraphPass())
    assert "w" not in body
    assert "shapes in 'body0', which 'p' runs, are not known" in refusals(context)["w"]


def test_other_nodes_may_run_unknown_shapes() -> None:
    graph = with_body("w Variable = N4; p Case w = N4", "d0 Data = U4; r Relu d0 = U4")
    run(graph, SplitVariableIntoSubgraphPass())
    assert graph.subgraph("body0")["w"].op_desc.output_desc(0) == DESCS["N4"]


def test_a_batch_of_a_case_gives_its_shapes_to_ref_data() -> None:
    for is_batch in (True, False):
        graph = with_body("w RefData = N4; p Case w = N4", "d0 Data = D2; r Relu d0 = D2")
        graph["p"].op_desc.attrs["mbatch-inserted-node"] = is_batch
        run(graph, SplitVariableIntoSubgraphPass())
        desc = graph.subgraph("body0")["w"].op_desc.output_desc(0)
        assert (desc.shape, desc.origin_shape) == (((3, 4), (3, 4)) if is_batch else ((1, 3, 2, 2), (1, 3, 2, 2)))
        assert desc.format == DESCS["N4"].format


@pytest.mark.parametrize("kind", ["While", "_While", "StatelessWhile", "If"])
def test_after_a_loop_the_variable_itself_is_read(kind: str) -> None:
    graph = with_body(
        f"x Data = N4; w Variable = N4; p {kind} x w = N4 N4; r Relu p:1 = N4; s Relu p:0 = N4",
        "d1 Data = N4; c Relu d1 = N4",
    )
    run(graph, SplitVariableIntoSubgraphPass())
    is_loop = kind != "If"
    assert ({"w:0 -> r:0", "p => r"} <= edges(graph)) is is_loop
    assert ("p:1 -> r:0" in edges(graph)) is not is_loop
    assert "p:0 -> s:0" in edges(graph)


def test_after_a_loop_the_last_body_decides() -> None:
    graph = with_body("w Variable = N4; p While w = N4; r Relu p = N4", "d0 Data = N4; c Relu d0 = N4", "d0 Data = N4")
    run(graph, SplitVariableIntoSubgraphPass())
    assert "p:0 -> r:0" in edges(graph)


def test_a_loop_without_that_output() -> None:
    graph = with_body("w Variable = N4; p While w", "d0 Data = N4; c Relu d0 = N4")
    run(graph, SplitVariableIntoSubgraphPass())
    assert edges(graph) == {"w:0 -> p:0"}


def test_another_node_of_the_name_is_an_error() -> None:
    graph = with_body("w Variable = N4; p If w = N4", "d0 Data = N4; w Relu d0 = N4")
    before = graph.subgraph("body0").to_proto()
    with pytest.raises(GraphError, match=r"graph 'body0', node 'w': .*is of type Relu") as caught:
        run(graph, SplitVariableIntoSubgraphPass())
    assert caught.value.status == FAILED
    assert graph.subgraph("body0").to_proto() == before


def test_a_graph_that_is_missing_is_an_error() -> None:
    graph = with_body("w Variable = N4; p If w = N4", "d0 Data = N4")
    del graph._subgraphs["body0"]
    with pytest.raises(GraphError, match="no subgraph 'body0'") as caught:
        run(graph, SplitVariableIntoSubgraphPass(), context=PassContext())
    assert caught.value.status == FAILED
