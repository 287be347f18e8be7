"""Running passes: order, levels, subgraphs, the log, and that a failure leaves everything as it was."""

from collections.abc import Callable
from typing import ClassVar

import pytest

from gevar.compile import CompilePass, NodePass, OptimizationLevel, PassContext, PassManager, compile_passes
from gevar.compile.switches import refuse_reading_back, variable_acc
from gevar.compile.variable_op_pass import VariableOpPass
from gevar.compile.variable_prepare_op_pass import VariablePrepareOpPass
from gevar.errors import GraphError, VariableError
from gevar.graph import ComputeGraph, Node, OpDesc
from gevar.status import FAILED, GE_GRAPH_OPTIONS_INVALID, UNSUPPORTED
from gevar.var import VarManager
from tests.helpers.compile_graphs import compile_graph, made, manager_of, run, session

TRAINING = """
    w Variable = N4; t TransData w = N5; am Apply t = N5; b TransData am = N4; w_ref Variable b = N4 ref:w
    v Variable = N4; c Const = N4; m Mul c c = N4; a Assign v m; r Relu a = N4; q VarIsInitializedOp v = B; a => q
    p PartitionedCall v = N4
"""


class Seen(CompilePass):
    """Notes what it is run on; raises an error on one graph."""

    name: ClassVar[str] = "Seen"

    def __init__(self, fails_on: str = "", error: Exception | None = None) -> None:
        self.graphs: list[str] = []
        self._fails_on, self._error = fails_on, error

    def run(self, graph: ComputeGraph, context: PassContext) -> None:
        self.graphs.append(graph.name)
        context.log.changed(f"{graph.name} seen")
        if graph.name == self._fails_on and self._error is not None:
            raise self._error


class Late(Seen):
    name: ClassVar[str] = "Late"
    level: ClassVar[OptimizationLevel] = OptimizationLevel.O3


class Visits(NodePass):
    """Notes the nodes it looks at; looks at the producers of `again` once more."""

    name: ClassVar[str] = "Visits"

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[str] = []

    def run_node(self, node: Node, context: PassContext) -> None:
        self.nodes.append(node.name)
        context.log.refused(node.name, "only looked at")
        if node.name == "again":
            for before in node.in_nodes:
                self.visit_again(before)
            self.visit_again(before)
        if node.name == "drop":
            for after in node.out_data_nodes:
                node.owner_compute_graph.remove_node(after)


def nested() -> ComputeGraph:
    graph = compile_graph("p NoOp; q NoOp")
    for runner, name in (("p", "one"), ("q", "two")):
        graph.add_subgraph(graph[runner], compile_graph("x NoOp", name))
    one = graph.subgraph("one")
    one.add_subgraph(one["x"], compile_graph("y NoOp", "below"))
    return graph


def training() -> ComputeGraph:
    graph = compile_graph(TRAINING)
    body = compile_graph("d Data = N4; c Const = N4; a Assign d c; r Relu a = N4", "body")
    body["d"].op_desc.attrs["_parent_node_index"] = 0
    graph.add_subgraph(graph["p"], body)
    return graph


# --- order, levels, subgraphs -----------------------------------------------------------------------------------------


def test_ge_s_passes_come_in_ge_s_order() -> None:
    names = [
        *("SplitVariableIntoSubgraphPass", "VarIsInitializedOpPass", "CheckRefInputNode", "VariablePrepareOpPass"),
        *("UpdateVariableFormats", "VariableOpPass", "VariableRefUselessControlOutDeletePass", "AssignRemovePass"),
        *("RefIdentityDeleteOpPass", "VariableRefDeleteOpPass"),
    ]
    assert [one.name for one in compile_passes()] == names
    assert [one.name for one in compile_passes({"ge.exec.variable_acc": "False"})] == [
        name for name in names if name != "VariableOpPass"
    ]


def test_a_low_level_leaves_passes_out() -> None:
    manager = PassManager(compile_passes(), OptimizationLevel.O0)
    assert [one.name for one in manager.passes] == [
        *("SplitVariableIntoSubgraphPass", "VarIsInitializedOpPass", "CheckRefInputNode", "UpdateVariableFormats"),
        *("AssignRemovePass", "RefIdentityDeleteOpPass"),
    ]
    assert len(PassManager([Seen(), Late()], OptimizationLevel.O2).passes) == 1


def test_each_pass_takes_the_graph_then_its_subgraphs() -> None:
    first, second, graph = Seen(), Late(), nested()
    context = run(graph, first, second)
    assert first.graphs == second.graphs == ["main", "one", "two", "below"]
    assert [record.pass_name for record in context.log.records] == ["Seen"] * 4 + ["Late"] * 4


def test_a_subgraph_that_no_node_runs_comes_last() -> None:
    graph, seen = nested(), Seen()
    graph.subgraph("one")._parent_node = None
    graph["p"].op_desc._subgraph_names = ()
    run(graph, seen)
    assert seen.graphs == ["main", "two", "one", "below"]


def test_a_subgraph_can_be_given() -> None:
    graph, seen = nested(), Seen()
    PassManager([seen]).run(graph.subgraph("one"), PassContext())
    assert seen.graphs == ["one", "below"]


def test_nodes_are_looked_at_in_topological_order_and_again_when_queued() -> None:
    graph, visits = compile_graph("again NoOp; b NoOp; a NoOp; z NoOp; a => b; b => again; z => again"), Visits()
    run(graph, visits)
    assert visits.nodes == ["a", "b", "z", "again", "b", "z"]
    assert [node.op_desc.id for node in graph] == [0, 1, 2, 3]


def test_a_node_that_was_removed_is_not_looked_at() -> None:
    graph, visits = compile_graph("drop Const = N4; r Relu drop = N4"), Visits()
    run(graph, visits)
    assert visits.nodes == ["drop"]


def test_the_callback_comes_after_each_pass() -> None:
    seen: list[tuple[str, str]] = []
    PassManager([Seen(), Late()]).run(
        nested(), PassContext(), after_pass=lambda one, graph: seen.append((one.name, graph.name))
    )
    assert seen == [("Seen", "main"), ("Late", "main")]


# --- the log ----------------------------------------------------------------------------------------------------------


def test_the_log_says_what_was_changed_refused_and_how_long_it_took() -> None:
    graph = compile_graph("w Variable = N4; r Relu w = N4")
    context = run(graph, Seen(), VariableOpPass(), context=session(graph, ["w"]))
    lines = context.log.text().splitlines()
    assert [line.split(",")[0] for line in lines] == [
        *("Seen on main: 1 changes", "  changed  main seen"),
        *("VariableOpPass on main: 0 changes", "  refused  w: reader 'r' (Relu) is no trans op"),
    ]
    assert context.log.change_count == 1
    assert all(record.is_finished and record.elapsed_s >= 0 for record in context.log.records)


def test_a_warning_is_in_the_log() -> None:
    context = PassContext()
    with context.log.run_of("Some", "main"):
        context.log.warned("odd")
    assert context.log.text().splitlines()[1] == "  warning  odd"


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (GraphError("main", "broken", node="w"), FAILED),
        (GraphError("main", "broken", node="w", status=UNSUPPORTED), UNSUPPORTED),
        (VariableError("w", "broken", status=UNSUPPORTED), FAILED),
    ],
)
def test_a_failure_names_the_pass_and_leaves_everything_as_it_was(error: Exception, status: int) -> None:
    graph = training()
    context = session(graph, ["w"])
    manager, control = manager_of(context), context.rebuild_control
    assert control is not None
    before = [one.to_proto() for one in (graph, *graph.all_subgraphs())]
    stored = manager.var_manager_to_serial()
    with pytest.raises(GraphError, match=r"node 'w': Seen: .*broken") as caught:
        PassManager([*compile_passes(), Seen("body", error)]).run(graph, context)
    assert caught.value.status == status
    assert [one.to_proto() for one in (graph, *graph.all_subgraphs())] == before
    assert manager.var_manager_to_serial() == stored
    assert (manager.get_trans_road("w"), manager.get_staged_var_descs(1)) == (None, {})
    assert control.is_var_permit_to_change_formats("w")
    assert not control.is_graph_need_rebuild(1)
    assert not context.log.records[-1].is_finished
    assert "failed" in context.log.text()
    PassManager(compile_passes()).run(graph, context)
    assert made(graph["w"]) == "N5"


def raise_odd(one: CompilePass, graph: ComputeGraph) -> None:
    raise RuntimeError(f"{one.name} {graph.name}")


def raise_stop(one: CompilePass, graph: ComputeGraph) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("raises", "error"), [(raise_odd, RuntimeError), (raise_stop, KeyboardInterrupt)])
def test_any_error_takes_everything_back(
    raises: Callable[[CompilePass, ComputeGraph], None], error: type[BaseException]
) -> None:
    graph = training()
    before, context = graph.to_proto(), session(graph)
    with pytest.raises(error):
        PassManager([VariablePrepareOpPass(), VariableOpPass()]).run(graph, context, after_pass=raises)
    assert graph.to_proto() == before


def test_a_cycle_is_refused_before_anything_is_done() -> None:
    graph, seen = compile_graph("a NoOp; b NoOp; a => b; b => a"), Seen()
    with pytest.raises(GraphError, match=r"'[ab]', '[ab]' are a cycle of 2 nodes") as caught:
        PassManager([seen]).run(graph, PassContext())
    assert (caught.value.status, seen.graphs) == (FAILED, [])


def test_a_cycle_in_a_subgraph_is_refused() -> None:
    graph = nested()
    body = graph.subgraph("below")
    body.add_node(OpDesc("z", "NoOp")).link_control_to(body["y"])
    body["y"].link_control_to(body["z"])
    with pytest.raises(GraphError, match="graph 'below'"):
        PassManager([Seen()]).run(graph, PassContext())


def test_a_manager_that_is_not_ready_is_no_hindrance_where_nothing_asks_for_it() -> None:
    run(compile_graph("x NoOp"), Seen(), context=PassContext(VarManager(1)))


class FailingCalls:
    """Makes the n-th call that changes a manager fail."""

    def __init__(self, manager: VarManager, fail_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls, self.fail_at = 0, fail_at
        for name in ("renew_cur_var_desc", "record_staged_var_desc", "set_trans_road", "set_changed_graph_id"):
            monkeypatch.setattr(manager, name, self.failing(getattr(manager, name)))

    def failing(self, call: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object) -> object:
            self.calls += 1
            if self.calls == self.fail_at:
                raise VariableError("w", "made to fail")
            return call(*arguments)

        return counted


def outcome(graph: ComputeGraph, context: PassContext) -> str:
    try:
        PassManager(compile_passes()).run(graph, context)
    except GraphError as error:
        return str(error)
    return "done"


def test_failing_at_every_call_of_the_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the n-th call that changes the manager, for n = 1, 2, 3 … until all passes succeed."""
    for fail_at in range(1, 20):
        graph = training()
        context = session(graph, ["w", "v"])
        manager = manager_of(context)
        FailingCalls(manager, fail_at, monkeypatch)
        before, stored = graph.to_proto(), manager.var_manager_to_serial()
        found = outcome(graph, context)
        if found == "done":
            assert fail_at == 9
            return
        assert "made to fail" in found
        assert graph.to_proto() == before
        assert manager.var_manager_to_serial() == stored
        assert manager.get_staged_var_descs(1) == {}
    pytest.fail("the passes never succeeded")


# --- switches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("acc", "parallel", "expected"),
    [
        (None, None, True),
        ("True", None, True),
        ("False", None, False),
        ("false", None, True),
        ("", None, True),
        (None, "1", False),
        ("1", "1", False),
        ("True", "0", True),
        ("False", "1", False),
    ],
)
def test_variable_acc(acc: str | None, parallel: str | None, expected: bool) -> None:
    given = {"ge.exec.variable_acc": acc, "ge.AllowMultiGraphParallelCompile": parallel}
    options = {name: value for name, value in given.items() if value is not None}
    assert variable_acc(options) is expected
    assert any(one.name == "VariableOpPass" for one in compile_passes(options)) is expected


def test_both_switches_exclude_each_other() -> None:
    options = {"ge.exec.variable_acc": "True", "ge.AllowMultiGraphParallelCompile": "1"}
    with pytest.raises(GraphError, match="E10001") as caught:
        compile_passes(options)
    assert caught.value.status == GE_GRAPH_OPTIONS_INVALID


def test_no_model_is_read_back_while_variables_may_change() -> None:
    refuse_reading_back({})
    refuse_reading_back({"ge.exec.variable_acc": "False"})
    with pytest.raises(GraphError, match="set it to False") as caught:
        refuse_reading_back({"ge.exec.variable_acc": "True"})
    assert caught.value.status == UNSUPPORTED
