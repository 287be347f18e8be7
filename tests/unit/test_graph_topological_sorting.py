"""Topological order: which one, that it is an order, loops, cycles, and graphs of many nodes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gevar.errors import GraphError
from gevar.graph import ComputeGraph
from tests.helpers.graphs import graph_of, link, op


def order(graph: ComputeGraph) -> list[str]:
    return [node.name for node in graph.topological_order()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b; a", "b a"),
        ("b; a; a:0 -> b:0", "a b"),
        # data comes first, then the other starts, each with what it makes ready
        ("c/0/1/Const; d2/0/1/Data; d1/0/1/Data; y/2/1; z; c:0 -> y:0; d1:0 -> y:1; d2:0 -> z:0", "d2 z d1 c y"),
        # what one node makes ready comes by name
        ("x/0/1; z; y; w; x:0 -> z:0; x:0 -> y:0; x => w", "x w y z"),
        # and before what that makes ready
        ("x/0/1; a; b; c; x:0 -> a:0; x:0 -> b:0; a:0 -> c:0", "x a b c"),
        # an edge twice counts twice
        ("x/0/2; y/2/1; x:0 -> y:0; x:1 -> y:1; x => y", "x y"),
        # NextIteration closes a loop: nothing waits for it, and it makes nothing ready
        ("n/0/1/NextIteration; e/0/1; m/2/1/Merge; n:0 -> m:0; e:0 -> m:1", "n e m"),
        (
            "n/1/1/NextIteration; m/2/1/Merge; s; e/0/1; e:0 -> m:0; n:0 -> m:1; m:0 -> s:0; s:0 -> n:0; n => m",
            "e m s n",
        ),
    ],
)
def test_the_order(text: str, expected: str) -> None:
    assert order(graph_of(text)) == expected.split()


def test_sorting_orders_and_numbers_all_graphs() -> None:
    root, branch = graph_of("b; a; a:0 -> b:0"), ComputeGraph("branch")
    for name in ("d", "c"):
        branch.add_node(op(name))
    link(branch["c"], 0, branch["d"], 0)
    root.add_subgraph(root["a"], branch)
    root.topological_sorting()
    assert [(node.name, node.op_desc.id) for node in root.all_nodes()] == [("a", 0), ("c", 1), ("d", 2), ("b", 3)]
    assert [stored.id for stored in root.to_proto().op] == [0, 3]


def test_a_cycle_is_told_and_changes_nothing() -> None:
    root, branch = graph_of("b; a; a:0 -> b:0"), ComputeGraph("branch")
    for name in ("free", "x", "y", "behind"):
        branch.add_node(op(name))
    link(branch["x"], 0, branch["y"], 0)
    link(branch["y"], 0, branch["behind"], 0)
    branch["y"].link_control_to(branch["x"])
    root.add_subgraph(root["a"], branch)
    with pytest.raises(
        GraphError, match=r"graph 'branch': 3 nodes have no order; '[xy]', '[xy]' are a cycle of 2 nodes"
    ):
        root.topological_sorting()
    assert [node.name for node in root] == ["b", "a"]
    assert {node.op_desc.id for node in root.all_nodes()} == {0}


def test_a_long_cycle_is_told_in_short() -> None:
    graph = graph_of("; ".join(f"n{index}" for index in range(20)))
    for index in range(20):
        graph[f"n{index}"].link_control_to(graph[f"n{(index + 1) % 20}"])
    with pytest.raises(GraphError, match=r"^.{1,200} and 12 more are a cycle of 20 nodes$"):
        order(graph)
    with pytest.raises(GraphError, match="'a' are a cycle of 1 nodes"):
        order(graph_of("a; a:0 -> a:0"))


def test_a_chain_of_100000_nodes() -> None:
    graph = ComputeGraph("chain")
    before = graph.add_node(op("n0"))
    for index in range(1, 100_000):
        node = graph.add_node(op(f"n{index}"))
        before.out_data_anchor(0).link_to(node.in_data_anchor(0))
        before = node
    assert graph.topological_order() == list(graph)
    before.out_data_anchor(0).link_to(graph["n0"].in_data_anchor(0))
    with pytest.raises(GraphError, match=r"100000 nodes have no order; .* 99992 more"):
        graph.topological_order()


def test_many_readers_of_one_output() -> None:
    graph = ComputeGraph("fan")
    source = graph.add_node(op("source"))
    readers = [graph.add_node(op(f"r{index:05}")) for index in range(20_000)]
    for reader in readers:
        link(source, 0, reader, 0)
    assert graph.topological_order() == [source, *readers]
    for reader in readers:
        reader.in_data_anchor(0).unlink()
        source.link_control_to(reader)
    assert source.out_data_nodes == ()
    assert source.out_control_nodes == tuple(readers)


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40), st.permutations(range(12)))
@settings(max_examples=100, deadline=None)
def test_every_edge_goes_forward(pairs: list[tuple[int, int]], places: list[int]) -> None:
    graph = graph_of("; ".join(f"n{index}" for index in range(12)))
    for before, after in pairs:
        if places[before] < places[after]:
            graph[f"n{before}"].link_control_to(graph[f"n{after}"])
    found = graph.topological_order()
    assert sorted(node.name for node in found) == sorted(node.name for node in graph)
    position = {node: place for place, node in enumerate(found)}
    assert all(position[node] < position[after] for node in graph for after in node.out_control_nodes)
    assert order(ComputeGraph.from_proto(graph.to_proto())) == order(graph)
