"""Edits of a graph: what each does, and that a refused one changes nothing."""

from collections.abc import Callable

import pytest

from gevar.errors import GraphError
from gevar.graph import (
    ComputeGraph,
    InDataAnchor,
    Node,
    OutDataAnchor,
    copy_in_ctrl_edges,
    insert_node_after,
    insert_node_before,
    isolate_node,
    move_in_ctrl_edges,
    move_out_ctrl_edges,
    move_output_edges,
    replace_node,
)
from tests.helpers.graphs import ROW, edges, graph_of, link, op

DIAMOND = "x/0/2; a; b; y/2/1; z; x:0 -> a:0; x:1 -> b:0; a:0 -> y:0; b:0 -> y:1; a => b; y => z"


def names(graph: ComputeGraph) -> list[str]:
    return [node.name for node in graph]


def refused(edit: Callable[[], object], graph: ComputeGraph, *words: str) -> None:
    """Check that an edit raises with these words and leaves the graph as it was."""
    before, order, stored = edges(graph), names(graph), graph.to_proto()
    with pytest.raises(GraphError) as caught:
        edit()
    assert all(word in str(caught.value) for word in words), caught.value
    assert (edges(graph), names(graph)) == (before, order)
    assert graph.to_proto() == stored


# --- nodes and look-up ------------------------------------------------------------------------------------------------


def test_nodes_are_found_by_name_in_the_order_in_which_they_came() -> None:
    graph = graph_of("b; a; c")
    assert names(graph) == ["b", "a", "c"]
    assert list(graph.direct_nodes) == [graph["b"], graph["a"], graph["c"]]
    assert "a" in graph
    assert "d" not in graph
    assert graph.find_node("d") is None
    with pytest.raises(GraphError, match="graph 'main', node 'd': there is no such node"):
        graph["d"]


def test_an_empty_graph_is_true() -> None:
    assert ComputeGraph("empty")
    assert len(ComputeGraph("empty")) == 0


def test_a_name_is_given_once() -> None:
    graph = graph_of(DIAMOND)
    refused(lambda: graph.add_node(op("a")), graph, "'a'", "taken")


def test_an_operator_is_in_one_graph() -> None:
    graph = graph_of(DIAMOND)
    other = ComputeGraph("other")
    refused(lambda: other.add_node(graph["a"].op_desc), other, "in a graph already")
    assert other.add_node(graph["a"].op_desc.copy("a")).name == "a"


def test_renaming_keeps_edges_and_place() -> None:
    graph = graph_of(DIAMOND)
    graph.rename_node(graph["a"], "first")
    assert names(graph) == ["x", "first", "b", "y", "z"]
    assert "x:0 -> first:0" in edges(graph)
    assert "first:0" in graph.to_proto().op[3].input
    refused(lambda: graph.rename_node(graph["b"], "first"), graph, "'first'", "taken")
    with pytest.raises(ValueError, match="needs a name"):
        graph.rename_node(graph["b"], "")
    graph.rename_node(graph["b"], "b")
    assert names(graph) == ["x", "first", "b", "y", "z"]


def test_removing_a_node_removes_its_edges_and_ends() -> None:
    graph = graph_of(DIAMOND)
    b = graph["b"]
    graph.set_inputs([graph["x"], b])
    graph.set_outputs([b.out_data_anchor(0), graph["z"].out_data_anchor(0)])
    graph.remove_node(b)
    assert edges(graph) == {"x:0 -> a:0", "a:0 -> y:0", "y => z"}
    assert graph.inputs == (graph["x"],)
    assert [repr(anchor) for anchor in graph.outputs] == ["z:0"]
    assert repr(b) == "<Node b (Relu) of no graph>"
    with pytest.raises(GraphError, match="node 'b': was removed from its graph"):
        b.owner_compute_graph  # noqa: B018
    refused(lambda: graph.remove_node(b), graph, "'b'", "it is in no graph")
    assert graph.add_node(b.op_desc).name == "b"


def test_ends_of_a_graph_are_checked() -> None:
    graph, other = graph_of(DIAMOND), graph_of("q")
    graph.set_inputs([graph["x"]])
    graph.set_outputs([graph["z"].out_data_anchor(0)])
    refused(lambda: graph.set_inputs([graph["x"], other["q"]]), graph, "'q'", "graph 'main'")
    refused(lambda: graph.set_outputs([OutDataAnchor(graph["z"], 1)]), graph, "output 1", "has 1 outputs")


# --- edges ------------------------------------------------------------------------------------------------------------


def test_anchors_know_their_peers() -> None:
    graph = graph_of("x/0/1; b; a; x:0 -> b:0; x:0 -> a:0; x => a")
    x, a, b = graph["x"], graph["a"], graph["b"]
    assert x.out_data_anchor(0).peers == (InDataAnchor(b, 0), InDataAnchor(a, 0))
    assert a.in_data_anchor(0).peer == OutDataAnchor(x, 0)
    assert (x.out_data_nodes, a.in_data_nodes, a.in_nodes, x.out_nodes) == ((b, a), (x,), (x,), (b, a))
    assert a.in_control_anchor.peers == (x.out_control_anchor,)
    assert x.out_control_anchor.peers == (a.in_control_anchor,)
    node, idx = a.in_data_anchors[0]
    assert (node, idx) == (a, 0)


def test_edges_are_removed_from_either_end() -> None:
    graph = graph_of(DIAMOND)
    graph["y"].in_data_anchor(0).unlink()
    graph["y"].in_data_anchor(0).unlink()
    graph["x"].out_data_anchor(1).unlink_all()
    graph["a"].out_control_anchor.unlink(graph["b"].in_control_anchor)
    graph["a"].out_control_anchor.unlink(graph["b"].in_control_anchor)
    graph["z"].in_control_anchor.unlink_all()
    assert edges(graph) == {"x:0 -> a:0", "b:0 -> y:1"}


def test_a_control_edge_is_there_once() -> None:
    graph = graph_of("a; b; a => b; a => b")
    graph["a"].out_control_anchor.link_to(graph["b"].in_control_anchor)
    assert graph["b"].in_control_nodes == (graph["a"],)
    assert list(graph.to_proto().op[1].input) == ["", "a:-1"]


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        (("x", 2), ("z", 0), ("'x'", "output 2", "has 2 outputs")),
        (("x", -1), ("z", 0), ("'x'", "output -1")),
        (("x", 0), ("z", 1), ("'z'", "input 1", "has 1 inputs")),
        (("x", 0), ("y", 0), ("'y'", "reads a:0 already", "x:0")),
    ],
)
def test_an_edge_that_cannot_be_is_refused(
    source: tuple[str, int], target: tuple[str, int], words: tuple[str, ...]
) -> None:
    graph = graph_of(DIAMOND)
    refused(lambda: link(graph[source[0]], source[1], graph[target[0]], target[1]), graph, *words)


@pytest.mark.parametrize("idx", [-1, 2])
def test_an_anchor_that_is_not_there_is_told(idx: int) -> None:
    graph = graph_of(DIAMOND)
    x, y = OutDataAnchor(graph["x"], idx), InDataAnchor(graph["y"], idx)
    for use in (lambda: x.peers, x.unlink_all, lambda: graph["x"].out_data_anchor(idx)):
        refused(use, graph, "'x'", f"output {idx} is asked for, it has 2 outputs")
    for use in (lambda: y.peer, y.unlink, lambda: graph["y"].in_data_anchor(idx)):
        refused(use, graph, "'y'", f"input {idx} is asked for, it has 2 inputs")


def test_edges_stay_in_one_graph() -> None:
    graph, other = graph_of(DIAMOND), graph_of("z")
    refused(lambda: link(graph["a"], 0, other["z"], 0), graph, "'a'", "'z'")
    refused(lambda: graph["a"].link_control_to(other["z"]), graph, "'a'", "'z'")


def test_a_node_grows_with_its_operator() -> None:
    graph = graph_of(DIAMOND)
    z = graph["z"]
    assert z.op_desc.add_input_desc(ROW, "extra") == 1
    assert z.op_desc.add_output_desc(ROW) == 1
    link(graph["a"], 0, z, 1)
    link(z, 1, z, 0)
    assert {"a:0 -> z:1", "z:1 -> z:0"} <= edges(graph)
    assert list(graph.to_proto().op[4].input) == ["z:1", "a:0", "y:-1"]
    with pytest.raises(GraphError, match="graph 'main', node 'z': input name 'extra' is taken by input 1"):
        z.op_desc.add_input_desc(ROW, "extra")
    assert len(z.op_desc.input_descs) == 2


# --- insert and replace -----------------------------------------------------------------------------------------------


def test_a_node_goes_on_one_edge() -> None:
    graph = graph_of(DIAMOND)
    node = insert_node_before(graph["y"].in_data_anchor(1), op("cast", 2, 2), input_index=1, output_index=1)
    assert node.in_data_anchor(1).peer == OutDataAnchor(graph["b"], 0)
    expected = {"x:0 -> a:0", "x:1 -> b:0", "a:0 -> y:0", "b:0 -> cast:1", "cast:1 -> y:1", "a => b", "y => z"}
    assert edges(graph) == expected


def test_a_node_goes_behind_an_output_for_all_or_some_readers() -> None:
    graph = graph_of("x/0/1; a; b; c; x:0 -> a:0; x:0 -> b:0; x:0 -> c:0")
    insert_node_after(graph["x"].out_data_anchor(0), op("some"), [InDataAnchor(graph["b"], 0)] * 2)
    assert edges(graph) == {"x:0 -> a:0", "x:0 -> c:0", "x:0 -> some:0", "some:0 -> b:0"}
    insert_node_after(graph["x"].out_data_anchor(0), op("all"))
    assert edges(graph) == {"x:0 -> all:0", "all:0 -> a:0", "all:0 -> c:0", "all:0 -> some:0", "some:0 -> b:0"}


def test_inserting_is_checked_first() -> None:
    graph = graph_of(DIAMOND)
    y, z, x = graph["y"], graph["z"], graph["x"]
    refused(lambda: insert_node_before(InDataAnchor(z, 0), op("n")), graph, "'z'", "input 0 is not linked")
    refused(lambda: insert_node_before(InDataAnchor(z, 3), op("n")), graph, "'z'", "input 3")
    refused(lambda: insert_node_before(y.in_data_anchor(0), op("a")), graph, "'a'", "taken")
    refused(lambda: insert_node_before(y.in_data_anchor(0), op("n", 0)), graph, "'n'", "input 0", "0 inputs")
    refused(
        lambda: insert_node_before(y.in_data_anchor(0), op("n"), output_index=1), graph, "output 1", "has 1 outputs"
    )
    refused(lambda: insert_node_after(OutDataAnchor(x, 9), op("n")), graph, "output 9")
    refused(lambda: insert_node_after(OutDataAnchor(x, 0), op("n"), [y.in_data_anchor(0)]), graph, "reads a:0, not x:0")


@pytest.mark.parametrize("name", ["b", "new"])
def test_a_node_is_replaced_with_everything_around_it(name: str) -> None:
    graph = graph_of(DIAMOND)
    graph.set_inputs([graph["b"]])
    graph.set_outputs([graph["b"].out_data_anchor(0), graph["z"].out_data_anchor(0)])
    sub = ComputeGraph("branch")
    graph.add_subgraph(graph["b"], sub)
    old = graph["b"]
    expected = {text.replace("b", name) for text in edges(graph)}
    new = replace_node(old, op(name, 2, 2, "Abs"))
    assert edges(graph) == expected
    assert graph.inputs == (new,)
    assert [repr(anchor) for anchor in graph.outputs] == [f"{name}:0", "z:0"]
    assert (sub.parent_node, new.subgraphs, new.type) == (new, (sub,), "Abs")
    assert names(graph) == (["x", "a", "b", "y", "z"] if name == "b" else ["x", "a", "y", "z", "new"])
    assert (old.in_nodes, old.out_nodes) == ((), ())
    with pytest.raises(GraphError):
        old.owner_compute_graph  # noqa: B018


def test_a_node_that_reads_itself_is_replaced() -> None:
    graph = graph_of("m; m:0 -> m:0; m => m")
    replace_node(graph["m"], op("n"))
    assert edges(graph) == {"n:0 -> n:0", "n => n"}


def test_replacing_is_checked_first() -> None:
    graph = graph_of(DIAMOND)
    refused(lambda: replace_node(graph["y"], op("y", 1)), graph, "has 1 inputs", "'y' uses 2")
    refused(lambda: replace_node(graph["x"], op("n", 0, 1)), graph, "'n'", "has 1 outputs", "'x' uses 2")
    refused(lambda: replace_node(graph["x"], op("a", 0, 2)), graph, "'a'", "taken")
    refused(lambda: replace_node(graph["x"], graph["y"].op_desc), graph, "'y'")
    refused(lambda: replace_node(graph["b"], graph["b"].op_desc), graph, "'b'")


# --- isolate and move -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "node", "io_map", "expected"),
    [
        # the flow is shortened; a pair linked on the way has no control edge
        ("x/0/1; n; y; x:0 -> n:0; n:0 -> y:0", "n", [0], {"x:0 -> y:0"}),
        # without a map the order stays as control edges
        ("x/0/1; n; y; x:0 -> n:0; n:0 -> y:0", "n", [], {"x => y"}),
        ("x/0/1; n; y; x:0 -> n:0; n:0 -> y:0", "n", [-1], {"x => y"}),
        ("x/0/1; n; y; x:0 -> n:0; n:0 -> y:0", "n", [None], {"x => y"}),
        # joined by another data edge before: the control edge is made all the same
        ("x/0/1; n; y/2/1; x:0 -> n:0; x:0 -> y:1; n => y", "n", [0], {"x:0 -> y:1", "x => y"}),
        # two producers: one is linked, the other is ordered
        (
            "x/0/1; w/0/1; n/2/1; y; z; x:0 -> n:0; w:0 -> n:1; n:0 -> y:0; n => z; w => n",
            "n",
            [1],
            {"w:0 -> y:0", "x => y", "x => z", "w => z"},
        ),
        # two outputs change places; an input that is not linked gives nothing
        ("x/0/1; n/2/2; y/2/1; x:0 -> n:1; n:0 -> y:0; n:1 -> y:1", "n", [1, 0], {"x:0 -> y:0"}),
        # a loop around the node goes
        ("n/1/1; y; n:0 -> n:0; n:0 -> y:0; n => n", "n", [0], set()),
        # producer and consumer are one node
        ("x/1/1; n; x:0 -> n:0; n:0 -> x:0", "n", [], set()),
    ],
)
def test_isolating_a_node(text: str, node: str, io_map: list[int | None], expected: set[str]) -> None:
    graph = graph_of(text)
    isolate_node(graph[node], io_map)
    assert edges(graph) == expected
    assert node in graph


def test_isolating_is_checked_first() -> None:
    graph = graph_of(DIAMOND)
    refused(lambda: isolate_node(graph["a"], [0, 0]), graph, "'a'", "2 entries", "1 outputs")
    refused(lambda: isolate_node(graph["a"], [1]), graph, "'a'", "input 1")
    refused(lambda: isolate_node(graph["a"], [-2]), graph, "'a'", "input -2")


CONTROLS = "a; b; c; d; e; a => c; b => c; c => d; c => e; b => d"


@pytest.mark.parametrize(
    ("edit", "src", "dst", "gone", "added"),
    [
        (copy_in_ctrl_edges, "c", "e", set(), {"a => e", "b => e"}),
        (copy_in_ctrl_edges, "c", "b", set(), {"a => b"}),
        (move_in_ctrl_edges, "c", "d", {"a => c", "b => c"}, {"a => d"}),
        (move_in_ctrl_edges, "c", "c", set(), set()),
        (move_out_ctrl_edges, "c", "a", {"c => d", "c => e"}, {"a => d", "a => e"}),
        (move_out_ctrl_edges, "c", "d", {"c => d", "c => e"}, {"d => e"}),
        (move_out_ctrl_edges, "c", "c", set(), set()),
        (move_output_edges, "c", "b", {"c => d", "c => e"}, {"b => e"}),
    ],
)
def test_control_edges_move(
    edit: Callable[[Node, Node], None], src: str, dst: str, gone: set[str], added: set[str]
) -> None:
    graph = graph_of(CONTROLS)
    expected = (edges(graph) - gone) | added
    edit(graph[src], graph[dst])
    assert edges(graph) == expected


def test_output_edges_move() -> None:
    graph = graph_of(DIAMOND + "; v/0/2")
    move_output_edges(graph["x"], graph["v"])
    assert {"v:0 -> a:0", "v:1 -> b:0"} <= edges(graph)
    assert graph["x"].out_nodes == ()
    refused(lambda: move_output_edges(graph["v"], graph["a"]), graph, "'v'", "has 2 outputs", "'a' has 1")
    move_output_edges(graph["v"], graph["v"])
    assert "v:0 -> a:0" in edges(graph)
    other = graph_of("q")
    for edit in (copy_in_ctrl_edges, move_in_ctrl_edges, move_out_ctrl_edges, move_output_edges):
        refused(lambda edit=edit: edit(graph["a"], other["q"]), graph, "'a'", "'q'")
