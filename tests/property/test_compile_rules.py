"""Each pass makes of random graphs what its rules say, which are written down once more over plain tables."""

from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from gevar.compile import CompilePass, PassContext, PassManager
from gevar.compile.assign_remove_pass import AssignRemovePass
from gevar.compile.node_kinds import ref_source
from gevar.compile.ref_deletion import (
    RefIdentityDeleteOpPass,
    VariableRefDeleteOpPass,
    VariableRefUselessControlOutDeletePass,
)
from gevar.compile.update_variable_formats import UpdateVariableFormats
from gevar.compile.var_is_initialized_op_pass import VarIsInitializedOpPass
from gevar.compile.variable_op_pass import VariableOpPass
from gevar.compile.variable_prepare_op_pass import VariablePrepareOpPass
from gevar.errors import GraphError
from gevar.graph import ComputeGraph, GeTensor
from gevar.proto.ge_ir import AttrDef, AttrDef_ListValue
from gevar.var import TransNodeInfo
from tests.helpers import pass_rules
from tests.helpers.compile_graphs import DESCS, compile_graph, manager_of, session
from tests.helpers.graphs import edges
from tests.helpers.pass_rules import Refused, Tables, desc_name

WRITING = (
    *(
        "{n} Assign {v} {a}",
        "{n} AssignAdd {v} {a}",
        "{n} AssignSub {a} {b}",
        "{n} Assign {a} {b}",
        "{n} Relu {a} = N4",
    ),
    *(
        "{n} Scatter {v} {a} = N4",
        "{n} Scatter {a} {b} = N4",
        "{n} Identity {a} = N4 _stream_label=s",
        "{n} Const = N4",
    ),
    *("{n} FrameworkOp {a} = N4 N4 original_type=RefSwitch", "{n} FrameworkOp {a} {b} = N4 original_type=RefMerge"),
    *(
        "{n} Merge {a} {b} = N4",
        "{n} RefData = N4",
        "{n} VarIsInitializedOp {v} = B",
        "{n} NoOp",
        "{n} Scatter {v} {a}",
    ),
)
WRITTEN_BACK = (
    "{n}t TransData {v}@N4 = N5; {n}m Relu {n}t = N5; {n}b TransData {n}m = N4; {n} Variable {n}b = N4 ref:{v}"
)
BACK_TWICE = (
    "{n}t TransData {v}@N4 = N5; {n}c Cast {n}t = F5; {n}m Relu {n}c = F5; {n}d Cast {n}m = N5;"
    "{n}b TransData {n}d = N4; {n} Variable {n}b = N4 ref:{v}"
)
FOLDING = (
    *(WRITTEN_BACK, WRITTEN_BACK, WRITTEN_BACK, BACK_TWICE, BACK_TWICE),
    *("{n} TransData {v}@N4 = N5", "{n} TransData {v}@N4 = N5", "{n} Cast {v}@N4 = F4", "{n} Relu {a} = N5"),
    *("{n} TransData {a}@N5 = N4", "{n} TransData {a}@N5 = N4", "{n} Cast {a}@N5 = F5", "{n} Reshape {v}@F4 = D2"),
    *("{n} Variable {a} = N4 ref:{v}", "{n} Variable {a} = N4 ref:{v}", "{n} TransData {v}@U4 = U5", "{n} NoOp"),
    *("{n} Transpose {v} = N5", "{n} TransData {v}@H4 = N5", "{n} Cast {a}@F5 = N5"),
)


@st.composite
def graphs(draw: st.DrawFn, kinds: tuple[str, ...], start: str = "N4") -> ComputeGraph:
    """Two variables and up to a dozen nodes that read them and one another."""
    variables = ["v0", "v1"]
    lines, readable, everything = [f"{name} Variable = {start}" for name in variables], list(variables), list(variables)
    for number in range(draw(st.integers(1, 12))):
        kind, name = draw(st.sampled_from(kinds)), f"n{number}"
        ends = {key: draw(st.sampled_from(readable)) for key in "ab"}
        lines.append(kind.format(n=name, v=draw(st.sampled_from(variables)), **ends))
        if "ref:" not in kind and draw(st.integers(0, 2)) == 0:
            lines.append(f"{draw(st.sampled_from(everything))} => {name}")
        everything.append(name)
        if "ref:" not in kind and not kind.endswith("B") and (" = " in kind or "Assign" in kind):
            readable.append(name)
        if ";" in kind:
            readable.append(f"{name}b")
        if "RefSwitch" in kind:
            readable.append(f"{name}:1")
    graph = compile_graph(";".join(lines))
    for node in graph:
        if node.type == "Scatter":  # writes its input 0, and no output shows it
            port = {"ref_port_index": AttrDef(list=AttrDef_ListValue(i=[0]))}
            node.op_desc.update_input_desc(0, node.op_desc.input_desc(0).replace(attrs=port))
    graph.topological_sorting()
    return graph


def compare(
    graph: ComputeGraph, one: CompilePass, rule: Callable[[Tables], object], context: PassContext | None = None
) -> object:
    """Run a pass and the rule of it; both fail, or both make the same."""
    tables, before = Tables(graph), graph.to_proto()
    context = session(graph) if context is None else context
    try:
        told = rule(tables)
    except Refused:
        event("refused")
        with pytest.raises(GraphError):
            PassManager([one]).run(graph, context)
        assert graph.to_proto() == before
        return None
    PassManager([one]).run(graph, context)
    edges(graph)
    assert Tables(graph).facts() == tables.facts()
    return told


@settings(max_examples=150, deadline=None)
@given(graphs(WRITING))
def test_writers_become_visible_and_ref_nodes_go_again(graph: ComputeGraph) -> None:
    compare(graph, VariablePrepareOpPass(), pass_rules.prepare)
    compare(graph, VariableRefUselessControlOutDeletePass(), pass_rules.drop_useless_order)
    graph.topological_sorting()
    compare(graph, AssignRemovePass(), pass_rules.remove_assigns)
    compare(graph, RefIdentityDeleteOpPass(), pass_rules.delete_bridges)
    compare(graph, VariableRefDeleteOpPass(), pass_rules.delete_refs)


@settings(max_examples=150, deadline=None)
@given(graphs(FOLDING), st.booleans(), st.sampled_from(["", "v0"]))
def test_conversions_are_folded(graph: ComputeGraph, is_nd: bool, fixed: str) -> None:
    """A variable that was changed before marks the graph from the start."""
    if is_nd:  # its readers know what the axes mean
        graph["v1"].op_desc.update_output_desc(0, DESCS["D4"])
    context = session(graph)
    assert context.rebuild_control is not None
    if fixed:
        context.rebuild_control.set_state_changed(fixed)
    told: dict[str, pass_rules.Road] = {}

    def rule(tables: Tables) -> None:
        told.update(pass_rules.fuse(tables, lambda name: name != fixed))

    compare(graph, VariableOpPass(), rule, context)
    vm = manager_of(context)
    for name in ("v0", "v1"):
        road = [(one.node_type, desc_name(one.input), desc_name(one.output)) for one in vm.get_trans_road(name) or ()]
        assert road == told.get(name, [])
        assert vm.get_changed_graph_id(name) == (1 if road else None)
    assert context.rebuild_control.graphs_to_rebuild == ({1} if told or fixed else frozenset())
    written = sum(1 for node in graph if (ref_source(node) or "") in told)
    event(f"{sum(map(len, told.values()))} steps, {written} references")


ROADS: list[pass_rules.Road] = [
    [],
    [("TransData", "N4", "N5")],
    [("TransData", "N4", "N5"), ("Cast", "N5", "F5")],
    [("Cast", "N4", "F4"), ("TransData", "F4", "F5"), ("Cast", "F5", "N5")],
]


@settings(max_examples=150, deadline=None)
@given(graphs(FOLDING + WRITING), st.sampled_from(ROADS), st.sampled_from(ROADS))
def test_later_graphs_take_changed_variables(
    graph: ComputeGraph, first: pass_rules.Road, second: pass_rules.Road
) -> None:
    roads, context = {"v0": first, "v1": second}, session(graph)
    for name, road in roads.items():
        steps = [TransNodeInfo(kind, DESCS[source], DESCS[target]) for kind, source, target in road]
        manager_of(context).set_trans_road(name, steps)
    compare(graph, UpdateVariableFormats(count(), count()), lambda tables: pass_rules.recover(tables, roads), context)


@settings(max_examples=80, deadline=None)
@given(graphs(WRITING), st.booleans())
def test_queries_are_answered(graph: ComputeGraph, is_known: bool) -> None:
    context = session(graph, ["v0"] if is_known else [])
    rule = compare(
        graph,
        VarIsInitializedOpPass(),
        lambda tables: pass_rules.answer_queries(tables, lambda name: is_known and name == "v0"),
        context,
    )
    found = {}
    for node in graph:
        value = node.op_desc.attrs.get_as("value", GeTensor)
        if value is not None:
            found[node.name] = value.data == b"\x01"
    assert rule is None or found == rule
