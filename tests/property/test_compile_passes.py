"""Random graphs through all passes: they stay sound, and a failure at any place leaves everything as it was."""

from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gevar.compile import CompilePass, PassContext, PassManager, compile_passes
from gevar.compile.descriptions import str_attr
from gevar.compile.node_kinds import ref_source
from gevar.errors import GraphError
from gevar.graph import ComputeGraph
from tests.helpers.compile_graphs import compile_graph, manager_of, session
from tests.helpers.graphs import edges

_KINDS = (
    *("{n} Relu {a} = N4", "{n} Add {a} {b} = N4", "{n} TransData {a} = N5", "{n} TransData {a} = N4"),
    *("{n} Cast {a} = F4", "{n} Assign {v} {a}", "{n} AssignAdd {v} {a}", "{n} VarIsInitializedOp {v} = B"),
    *("{n} Variable {a} = N4 ref:{v}", "{n} RefIdentity {a} = N4", "{n} Const = N4", "{n} NoOp"),
    *("{n} RefMerge {a} {b} = N4 N4", "{n} Reshape {a} = D2"),
)


class Failing(CompilePass):
    """Fails."""

    name: ClassVar[str] = "Failing"

    def run(self, graph: ComputeGraph, context: PassContext) -> None:
        raise GraphError(graph.name, "made to fail")


@st.composite
def graphs(draw: st.DrawFn) -> ComputeGraph:
    """A graph of two or three variables and up to a dozen nodes that read them and one another.

    No control edge leads to a ref node or from one: GE drops those from it, which may be all that keeps an order.
    """
    variables = [f"v{number}" for number in range(draw(st.integers(2, 3)))]
    lines, readable, everything = [f"{name} Variable = N4" for name in variables], list(variables), list(variables)
    orders = []
    for number in range(draw(st.integers(1, 12))):
        kind, name = draw(st.sampled_from(_KINDS)), f"n{number}"
        ends = {key: draw(st.sampled_from(readable)) for key in "ab"}
        lines.append(kind.format(n=name, v=draw(st.sampled_from(variables)), **ends))
        if "ref:" not in kind and draw(st.booleans()):
            orders.append(f"{draw(st.sampled_from(everything))} => {name}")
        if "ref:" not in kind:
            everything.append(name)
        if " = " in kind or "Assign" in kind:
            readable.append(name)
    return compile_graph(";".join(lines + orders))


def seen(graph: ComputeGraph, context: PassContext) -> object:
    manager, control = manager_of(context), context.rebuild_control
    assert control is not None
    return (
        [node.op_desc.id for node in graph],
        graph.to_proto(),
        manager.var_manager_to_serial(),
        manager.get_staged_var_descs(1),
        control.is_graph_need_rebuild(1),
    )


def reaches(graph: ComputeGraph) -> set[tuple[str, str]]:
    """Return which node comes before which, by any path."""
    before: dict[str, set[str]] = {}
    for node in graph.topological_order():
        direct = {one.name for one in node.in_nodes}
        before[node.name] = direct.union(*(before[name] for name in direct))
    return {(one, name) for name, ones in before.items() for one in ones}


@settings(max_examples=150, deadline=None)
@given(graphs(), st.integers(0, 10))
def test_all_or_nothing(graph: ComputeGraph, fail_after: int) -> None:
    context = session(graph, ["v0"])
    before = seen(graph, context)
    passes = compile_passes()
    with pytest.raises(GraphError):
        PassManager([*passes[:fail_after], Failing(), *passes[fail_after:]]).run(graph, context)
    assert seen(graph, context) == before
    edges(graph)


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_what_is_left_is_sound_and_in_the_same_order(graph: ComputeGraph) -> None:
    context = session(graph, ["v0"])
    before, stored = reaches(graph), seen(graph, context)
    try:
        PassManager(compile_passes()).run(graph, context)
    except GraphError:
        assert seen(graph, context) == stored
        return
    edges(graph)
    after, left = reaches(graph), {node.name for node in graph}
    written = {str_attr(desc, "_assign_var_name") for node in graph for desc in node.op_desc.output_descs}
    kept = {(one, other) for one, other in before if {one, other} <= left and not {one, other} & written}
    assert kept <= after
    assert not any(ref_source(node) or node.type in ("RefIdentity", "VarIsInitializedOp") for node in graph)


@settings(max_examples=100, deadline=None)
@given(graphs(), st.sampled_from([one for one in compile_passes() if one.name != "UpdateVariableFormats"]))
def test_what_a_pass_has_done_it_does_not_do_again(graph: ComputeGraph, one: CompilePass) -> None:
    """But for `UpdateVariableFormats`, which each compilation begins anew with the graph as it was added."""
    context = session(graph, ["v0"])
    try:
        PassManager([type(one)()]).run(graph, context)
    except GraphError:
        return
    edges(graph)
    graph.topological_sorting()
    before = [node.op_desc.id for node in graph], graph.to_proto()
    PassManager([type(one)()]).run(graph, context)
    assert ([node.op_desc.id for node in graph], graph.to_proto()) == before
