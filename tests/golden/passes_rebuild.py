"""One sequence of calls to the rebuild control: what it tells must be as the file says."""

from collections.abc import Callable, Mapping
from typing import Any

from gevar.compile.graph_rebuild_state_ctrl import GraphRebuildStateCtrl
from gevar.graph import ComputeGraph, OpDesc
from tests.golden.facts import Place, Report, State


def check_case(case: Mapping[str, Any], place: Place, report: Report) -> None:
    """Make the calls of a sequence; the last element of a question is the answer."""
    graphs = {key: _graph(names) for key, names in case["graphs"].items()}
    report.mark((*place, "graphs"), case["graphs"], State.INPUT)
    ctrl = GraphRebuildStateCtrl()
    calls: Mapping[str, Callable[..., object]] = {
        "add_graph": lambda graph_id: ctrl.add_graph(graph_id, graphs[str(graph_id)]),
        "add_graph_as": lambda graph_id, key: ctrl.add_graph(graph_id, graphs[str(key)]),
        "add_resource": ctrl.add_resource_name,
        "remove_graph": ctrl.remove_graph,
        "set_changed": ctrl.set_state_changed,
        "build_end": ctrl.set_graph_build_end,
    }
    questions: Mapping[str, Callable[..., bool]] = {
        "needs_rebuild": ctrl.is_graph_need_rebuild,
        "permit": ctrl.is_var_permit_to_change_formats,
    }
    for number, (name, *arguments) in enumerate(case["steps"]):
        step = (*place, "steps", number)
        if name in calls:
            calls[name](*arguments)
            report.mark(step, [name, *arguments], State.INPUT)
        elif name in questions:
            *asked, expected = arguments
            report.mark(step, [name, *asked], State.INPUT)
            report.compare((*step, len(asked) + 1), expected, questions[name](*asked))


def _graph(names: list[str]) -> ComputeGraph:
    graph = ComputeGraph("graph")
    for name in names:
        graph.add_node(OpDesc(name, "Variable"))
    return graph
