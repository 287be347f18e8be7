"""Which graphs must be built again."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gevar.compile.graph_rebuild_state_ctrl import GraphRebuildStateCtrl
from gevar.errors import GraphError
from gevar.graph import ComputeGraph
from tests.helpers.graphs import graph_of, op


def variables(*names: str) -> ComputeGraph:
    return graph_of(";".join(f"{name}/0/1/Variable" for name in names))


@pytest.fixture
def ctrl() -> GraphRebuildStateCtrl:
    ctrl = GraphRebuildStateCtrl()
    ctrl.add_graph(1, variables("a", "b"))
    ctrl.add_graph(2, variables("a"))
    return ctrl


def test_a_change_marks_every_graph_that_has_the_variable(ctrl: GraphRebuildStateCtrl) -> None:
    assert not ctrl.is_graph_need_rebuild(1)
    ctrl.set_state_changed("b")
    assert [ctrl.is_graph_need_rebuild(number) for number in (1, 2, 3)] == [True, False, False]
    ctrl.set_state_changed("a")
    assert [ctrl.is_graph_need_rebuild(number) for number in (1, 2, 3)] == [True, True, False]
    ctrl.set_graph_build_end(1)
    assert [ctrl.is_graph_need_rebuild(number) for number in (1, 2, 3)] == [False, True, False]


def test_a_variable_may_change_once(ctrl: GraphRebuildStateCtrl) -> None:
    assert ctrl.is_var_permit_to_change_formats("a")
    ctrl.set_state_changed("a")
    assert not ctrl.is_var_permit_to_change_formats("a")
    assert ctrl.is_var_permit_to_change_formats("b")
    ctrl.set_graph_build_end(1)
    ctrl.remove_graph(1)
    assert not ctrl.is_var_permit_to_change_formats("a")


def test_counts_and_marks_can_be_read(ctrl: GraphRebuildStateCtrl) -> None:
    assert (ctrl.change_counts, ctrl.graphs_to_rebuild) == ({}, frozenset())
    ctrl.set_state_changed("a")
    ctrl.set_state_changed("a")
    ctrl.set_state_changed("unknown")
    counts, marks = ctrl.change_counts, ctrl.graphs_to_rebuild
    assert (counts, marks) == ({"a": 2, "unknown": 1}, {1, 2})
    ctrl.set_graph_build_end(1)
    ctrl.remove_graph(2)
    assert (ctrl.change_counts, ctrl.graphs_to_rebuild) == (counts, frozenset())
    assert marks == {1, 2}  # a copy


def test_a_graph_that_comes_after_the_change_is_not_marked(ctrl: GraphRebuildStateCtrl) -> None:
    ctrl.set_state_changed("late")
    ctrl.add_graph(3, variables("late"))
    assert not ctrl.is_graph_need_rebuild(3)
    assert not ctrl.is_var_permit_to_change_formats("late")


def test_a_graph_that_comes_again_has_its_new_names_alone(ctrl: GraphRebuildStateCtrl) -> None:
    ctrl.add_graph(1, variables("c"))
    ctrl.set_state_changed("b")
    assert not ctrl.is_graph_need_rebuild(1)
    ctrl.set_state_changed("c")
    ctrl.add_graph(1, variables("d"))
    assert ctrl.is_graph_need_rebuild(1)  # adding does not unmark


def test_a_removed_graph_is_not_marked_any_more(ctrl: GraphRebuildStateCtrl) -> None:
    ctrl.set_state_changed("a")
    ctrl.remove_graph(2)
    ctrl.remove_graph(7)
    ctrl.set_state_changed("a")
    assert [ctrl.is_graph_need_rebuild(number) for number in (1, 2, 7)] == [True, False, False]


def test_no_graph_is_passed_over(ctrl: GraphRebuildStateCtrl) -> None:
    ctrl.add_graph(1, None)
    ctrl.set_state_changed("b")
    assert ctrl.is_graph_need_rebuild(1)


def test_resources_of_other_kinds(ctrl: GraphRebuildStateCtrl) -> None:
    ctrl.add_resource_name(5, "5_queue")
    ctrl.set_state_changed("5_queue")
    assert [ctrl.is_graph_need_rebuild(number) for number in (1, 5)] == [False, True]


@pytest.mark.parametrize(
    ("op_type", "counts"),
    [("Variable", True), ("VariableV2", True), ("VarHandleOp", True), ("RefData", False), ("Constant", False)],
)
def test_types_of_nodes(op_type: str, counts: bool) -> None:
    ctrl = GraphRebuildStateCtrl()
    ctrl.add_graph(1, graph_of(f"x/0/1/{op_type}"))
    ctrl.set_state_changed("x")
    assert ctrl.is_graph_need_rebuild(1) is counts


def test_references_and_variables_of_subgraphs_count() -> None:
    graph, inner = graph_of("ref/1/1/Variable; call/1/1/PartitionedCall"), ComputeGraph("inner")
    graph["ref"].op_desc.attrs["ref_var_src_var_name"] = "w"
    inner.add_node(op("deep", 0, 1, "Variable"))
    graph.add_subgraph(graph["call"], inner)
    for name, marked in (("w", False), ("ref", True), ("deep", True)):
        ctrl = GraphRebuildStateCtrl()
        ctrl.add_graph(1, graph)
        ctrl.set_state_changed(name)
        assert ctrl.is_graph_need_rebuild(1) is marked, name


def test_a_graph_that_misses_a_subgraph_changes_nothing(ctrl: GraphRebuildStateCtrl) -> None:
    graph = graph_of("new/0/1/Variable; call/1/1/If")
    graph["call"].op_desc._subgraph_names = ("gone",)
    with pytest.raises(GraphError, match="gone"):
        ctrl.add_graph(1, graph)
    ctrl.set_state_changed("a")
    assert ctrl.is_graph_need_rebuild(1)


def test_many_threads() -> None:
    ctrl, start = GraphRebuildStateCtrl(), threading.Barrier(8)

    def work(number: int) -> None:
        start.wait()
        for turn in range(200):
            ctrl.add_resource_name(number, f"{number}_{turn}")
            ctrl.set_state_changed(f"{number}_{turn}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert all(ctrl.is_graph_need_rebuild(number) for number in range(8))
    assert not any(ctrl.is_var_permit_to_change_formats(f"{number}_199") for number in range(8))


def test_a_block_that_fails_is_taken_back() -> None:
    ctrl = GraphRebuildStateCtrl()
    ctrl.add_resource_name(1, "a")
    ctrl.add_resource_name(2, "a")
    ctrl.set_state_changed("a")

    def change() -> None:
        with ctrl.transaction():
            ctrl.set_graph_build_end(1)
            ctrl.add_resource_name(1, "b")
            ctrl.set_state_changed("b")
            ctrl.remove_graph(2)
            raise KeyError("b")

    with pytest.raises(KeyError):
        change()
    assert [ctrl.is_graph_need_rebuild(number) for number in (1, 2)] == [True, True]
    assert ctrl.is_var_permit_to_change_formats("b")
    ctrl.set_graph_build_end(1)
    ctrl.set_state_changed("b")
    assert not ctrl.is_graph_need_rebuild(1)
    with ctrl.transaction():
        ctrl.set_graph_build_end(2)
    assert not ctrl.is_graph_need_rebuild(2)
