"""Taking back everything that was done to a graph."""

from collections.abc import Callable

import pytest

from gevar.graph import ComputeGraph, Model, OpDesc, isolate_node, move_output_edges, replace_node
from gevar.graph.graph_snapshot import taken_back_on_failure
from tests.helpers.graphs import ROW, edges, graph_of, op


class Stop(Exception):
    """What a test raises in a block."""


def state(graph: ComputeGraph) -> object:
    """Everything that can be seen of a graph and its subgraphs, with the order of nodes and edges."""
    graphs = (graph, *graph.all_subgraphs())
    for one in graphs:
        edges(one)
    return [
        (
            one.to_proto(),
            [id(node) for node in one],
            [node.op_desc.id for node in one],
            [out.peers for node in one for out in node.out_data_anchors],
            one.parent_node,
            one.root,
            (one.graph_id, one.session_id),
        )
        for one in graphs
    ]


@pytest.fixture
def graph() -> ComputeGraph:
    graph = graph_of("x/0/2; a; b; y/2/1; z; x:0 -> a:0; x:1 -> b:0; a:0 -> y:0; b:0 -> y:1; a => b; y => z")
    graph.set_inputs([graph["x"]])
    graph.set_outputs([graph["y"].out_data_anchor(0)])
    below = graph_of("p; q; p:0 -> q:0")
    below._name = "below"
    graph.add_subgraph(graph["z"], below)
    return graph


def edit(graph: ComputeGraph) -> None:
    """Change whatever can be changed."""
    below = graph.subgraph("below")
    isolate_node(graph["a"], [0])
    graph.remove_node(graph["a"])
    graph.add_node(op("new")).link_control_to(graph["y"])
    graph.rename_node(graph["b"], "c")
    graph["c"].op_desc.attrs["note"] = 1
    graph["c"].op_desc.type = "Tanh"
    graph["c"].op_desc.add_output_desc(ROW, "more")
    graph["c"].op_desc.update_input_desc(0, ROW.replace(size=7))
    graph["c"].op_desc.input_i = [5]
    replace_node(graph["y"], OpDesc("y", "Mul", inputs=[ROW, ROW], outputs=[ROW]))
    graph.attrs["note"] = "g"
    graph.graph_id, graph.session_id = 3, 4
    graph.topological_sorting()
    below.add_node(op("r", 1, 1))
    move_output_edges(below["p"], below["r"])
    graph.remove_subgraph(below)
    graph.add_subgraph(graph["new"], ComputeGraph("other"))


def failing(graph: ComputeGraph, change: Callable[[ComputeGraph], object]) -> None:
    """Change a graph in a block that raises."""
    with taken_back_on_failure(graph):
        change(graph)
        raise Stop


def test_a_failure_takes_everything_back(graph: ComputeGraph) -> None:
    before, nodes = state(graph), {node.name: node for node in graph.all_nodes()}
    with pytest.raises(Stop):
        failing(graph, edit)
    assert state(graph) == before
    assert {node.name: node for node in graph.all_nodes()} == nodes
    assert graph["y"].op_desc.attrs.get("note") is None
    edit(graph)


def test_what_was_read_is_taken_back_too(graph: ComputeGraph) -> None:
    read = Model.from_proto(Model("m", graph).to_proto()).graph
    assert read is not None
    before = state(read)
    with pytest.raises(Stop):
        failing(read, edit)
    assert state(read) == before
    edit(read)


def test_a_success_keeps_everything(graph: ComputeGraph) -> None:
    with taken_back_on_failure(graph):
        edit(graph)
    assert "new" in graph
    assert graph["c"].op_desc.attrs["note"] == 1


def test_what_was_added_belongs_to_no_graph_afterwards(graph: ComputeGraph) -> None:
    node, new = None, op("new")

    def add(graph: ComputeGraph) -> None:
        nonlocal node
        node = graph.add_node(new)
        graph["x"].link_control_to(node)

    with pytest.raises(Stop):
        failing(graph, add)
    assert node is not None
    assert node._graph is None
    assert "new" not in graph
    assert graph["x"].out_control_nodes == ()
    assert graph.add_node(new).name == "new"


def test_a_node_that_moved_to_another_graph_comes_back(graph: ComputeGraph) -> None:
    other, node = ComputeGraph("other"), graph["b"]
    before = state(graph)

    def move(graph: ComputeGraph) -> None:
        graph.remove_node(node)
        other.add_node(node.op_desc)

    with pytest.raises(Stop):
        failing(graph, move)
    assert state(graph) == before
    assert graph["b"] is node


def test_only_a_root_is_taken(graph: ComputeGraph) -> None:
    below = graph.subgraph("below")
    with pytest.raises(ValueError, match="'below' is a subgraph; give its root 'main'"), taken_back_on_failure(below):
        pass
