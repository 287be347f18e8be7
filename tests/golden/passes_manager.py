"""Variable manager and rebuild controller of compile-side expectations: made from the file, told, and compared."""

from collections.abc import Mapping
from typing import Any

from gevar.compile.graph_rebuild_state_ctrl import GraphRebuildStateCtrl
from gevar.graph import ComputeGraph
from gevar.var import SessionVersion, TransNodeInfo, VarManager
from tests.golden.facts import Place, Report
from tests.golden.passes_descs import desc_facts, make_desc

Json = Mapping[str, Any]
STRANGER = 0xFFFF_FFFE
"""Number of a graph without variables, which nothing may mark."""

MARK = "\0mark of graph"
"""Begins the name of a resource that is there only to mark its graph; no variable is called so."""


def make_manager(before: Json, *, has_batch_mapping: bool) -> VarManager:
    """Make a manager with variables, roads, marks and staged descriptions."""
    manager = VarManager(0)
    manager.init(SessionVersion.CLOUD_VERSION, session_id=0)
    for name, desc in before.get("current_desc", {}).items():
        manager.assign_var_mem(name, None, make_desc(desc))
    for name, steps in before.get("trans_road", {}).items():
        manager.set_trans_road(name, make_road(steps))
    for name, graph_id in before.get("changed_graph_id", {}).items():
        manager.set_changed_graph_id(name, graph_id)
    for graph_id, descs in before.get("staged_desc", {}).items():
        for name, desc in descs.items():
            manager.record_staged_var_desc(int(graph_id), name, make_desc(desc))
    if has_batch_mapping:
        manager.set_batch_variables_key_name("variable_of_a_batch", "variable_of_batches")
    return manager


def make_road(steps: list[Json]) -> list[TransNodeInfo]:
    """Make a road; what a description lacks follows from the one before it."""
    road: list[TransNodeInfo] = []
    last = None
    for step in steps:
        source = make_desc(step["input"], last)
        last = make_desc(step["output"], source)
        road.append(TransNodeInfo(step["node_type"], source, last))
    return road


def make_rebuild_ctrl(before: Json, after: Json, graph: ComputeGraph) -> GraphRebuildStateCtrl:
    """Make a rebuild controller with counts and marks.

    The file does not say which other graphs have the variables; those that are to be rebuilt afterwards do.
    """
    ctrl = GraphRebuildStateCtrl()
    for name, times in before.get("change_times", {}).items():
        for _ in range(times):
            ctrl.set_state_changed(name)
    ctrl.add_graph(STRANGER, ComputeGraph("stranger"))
    for graph_id in {graph.graph_id, *before.get("graphs_to_rebuild", ()), *after.get("graphs_to_rebuild", ())}:
        ctrl.add_graph(graph_id, graph)
    for graph_id in before.get("graphs_to_rebuild", ()):
        marked = f"{MARK} {graph_id}"
        ctrl.add_resource_name(graph_id, marked)
        ctrl.set_state_changed(marked)
    return ctrl


def manager_facts(manager: VarManager, ctrl: GraphRebuildStateCtrl) -> dict[str, Any]:
    """Return manager and controller in the form of the file."""
    resource = manager._resource
    assert resource is not None
    graphs = resource.graphs
    roads = {
        name: [
            {"node_type": step.node_type, "input": desc_facts(step.input), "output": desc_facts(step.output)}
            for step in road
        ]
        for name, road in graphs.trans_roads.items()
    }
    return {
        "current_desc": {name: desc_facts(desc) for name, desc in resource.cur_descs.items()},
        "trans_road": roads,
        "changed_graph_id": dict(graphs.changed_graph_ids),
        "staged_desc": {
            str(graph_id): {name: desc_facts(desc) for name, desc in descs.items()}
            for graph_id, descs in graphs.staged_descs.items()
        },
        "change_times": {name: times for name, times in ctrl.change_counts.items() if not name.startswith(MARK)},
        "graphs_to_rebuild": sorted(ctrl.graphs_to_rebuild),
    }


def compare_manager(expected: Json, found: Json, place: Place, report: Report) -> None:
    """Compare manager and controller: every name counts, of a description what the file tells of it."""
    tables = {"current_desc", "trans_road", "changed_graph_id", "staged_desc", "change_times"}
    report.compare(place, expected, found, closed=frozenset(tables | expected.get("staged_desc", {}).keys()))
    _compare_c0(expected, found, place, report)


def _compare_c0(expected: Any, found: Any, place: Place, report: Report) -> None:
    """A description without C0 in the file has none."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        if "format" in expected and "c0" in found.keys() - expected.keys():
            report.differ(place, f"its format carries C0 {found['c0']}")
        for key in expected.keys() & found.keys():
            _compare_c0(expected[key], found[key], (*place, key), report)
    elif isinstance(expected, list) and isinstance(found, list):
        for index, (one, other) in enumerate(zip(expected, found, strict=False)):
            _compare_c0(one, other, (*place, index), report)
