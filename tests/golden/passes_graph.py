"""One graph through passes: the graph afterwards, the status, and what the manager and the rebuild controller keep."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from gevar import status
from gevar.compile import CompilePass, PassContext, PassManager, compile_passes
from gevar.compile.graph_rebuild_state_ctrl import GraphRebuildStateCtrl
from gevar.compile.update_variable_formats import UpdateVariableFormats
from gevar.errors import GevarError
from gevar.graph import ComputeGraph, OpDesc
from gevar.var import VarManager
from tests.golden.facts import Place, Report, State
from tests.golden.passes_graph_json import GraphDifferences, graph_facts, make_graph
from tests.golden.passes_manager import compare_manager, make_manager, make_rebuild_ctrl, manager_facts

INPUT = ("passes", "input_graph", "var_manager_before", "var_manager_has_batch_mapping", "graph_has_parent")
"""Keys of a case that say what is done."""

Json = Mapping[str, Any]
_PASSES: Mapping[str, type[CompilePass]] = {one.name: type(one) for one in compile_passes()}


@dataclass
class Session:
    """What a case starts from."""

    graph: ComputeGraph
    manager: VarManager
    rebuild_ctrl: GraphRebuildStateCtrl


def check_case(case: Json, place: Place, report: Report) -> None:
    """Run the passes of a case and compare; a case that must fail must leave everything as it was."""
    for key in INPUT:
        if key in case:
            report.mark((*place, key), case[key], State.INPUT)
    session = _session(case)
    before = graph_facts(session.graph), manager_facts(session.manager, session.rebuild_ctrl)
    found = _run(case["passes"], session)
    report.compare((*place, "expected_status"), case["expected_status"], found)
    after = graph_facts(session.graph), manager_facts(session.manager, session.rebuild_ctrl)
    if found != "SUCCESS" and after != before:
        report.differ(place, "the failure left graph, manager or rebuild controller changed")
    if "expected_graph" in case:
        _compare_graph(case, session.graph, (*place, "expected_graph"), report)
    if "var_manager_after" in case:
        compare_manager(case["var_manager_after"], after[1], (*place, "var_manager_after"), report)


def _session(case: Json) -> Session:
    graph = make_graph(case["input_graph"], "main")
    if case.get("graph_has_parent"):
        parent = ComputeGraph("parent")
        parent.add_subgraph(parent.add_node(OpDesc("runs", "PartitionedCall")), graph)
    before = case.get("var_manager_before", {})
    manager = make_manager(before, has_batch_mapping=bool(case.get("var_manager_has_batch_mapping")))
    return Session(graph, manager, make_rebuild_ctrl(before, case.get("var_manager_after", {}), graph))


def _run(names: list[str], session: Session) -> str:
    from tests.golden.passes import status_name

    passes = [_make(name) for name in names]
    try:
        PassManager(passes).run(session.graph, PassContext(session.manager, session.rebuild_ctrl))
    except GevarError as error:
        return status_name(getattr(error, "status", None))
    return status_name(status.SUCCESS)


def _make(name: str) -> CompilePass:
    """Make a pass by GE's name; running numbers start anew."""
    cls = _PASSES[name]
    return UpdateVariableFormats(count(), count()) if cls is UpdateVariableFormats else cls()


def _compare_graph(case: Json, graph: ComputeGraph, place: Place, report: Report) -> None:
    expected = case["expected_graph"]
    if expected == "unchanged":
        same = graph_facts(graph) == graph_facts(make_graph(case["input_graph"], "main"))
        report.compare(place, expected, "unchanged" if same else "changed")
        if not same:
            GraphDifferences(case["input_graph"], graph, place).tell(report)
    else:
        GraphDifferences(expected, graph, place).compare(report)
