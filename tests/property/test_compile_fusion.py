"""What nodes read is the same before and after conversions are folded into variables, or put back behind them.

A value is told by where it comes from, whatever its form, and the form. A conversion changes the form alone. A variable
that was folded has another form, so its readers read the same value in the same form through fewer conversions.
"""

from hypothesis import event, given, settings
from hypothesis import strategies as st

from gevar.compile import PassContext, PassManager
from gevar.compile.node_kinds import ref_source
from gevar.compile.update_variable_formats import UpdateVariableFormats
from gevar.compile.variable_op_pass import VariableOpPass
from gevar.graph import ComputeGraph, OutDataAnchor
from tests.helpers.compile_graphs import compile_graph, made, session
from tests.helpers.graphs import edges

CONVERSIONS = frozenset({"TransData", "Cast"})
_CAST = {"N4": "F4", "F4": "N4", "N5": "F5", "F5": "N5"}
_TRANS = {"N4": "N5", "N5": "N4", "F4": "F5", "F5": "F4"}

Value = tuple[str, str]
"""Where a value comes from, and its form."""


@st.composite
def graphs(draw: st.DrawFn) -> ComputeGraph:
    """A graph of two variables whose conversions fit: each reads what its input is."""
    forms = {"v0": "N4", "v1": "N4"}
    lines = [f"{name} Variable = N4" for name in forms]
    orders = []
    for number in range(draw(st.integers(1, 14))):
        name, source = f"n{number}", draw(st.sampled_from(list(forms)))
        form, kind = forms[source], draw(st.sampled_from(["TransData", "TransData", "Cast", "Relu", "ref"]))
        if kind == "ref" and form == "N4":
            lines.append(f"{name} Variable {source} = N4 ref:{draw(st.sampled_from(['v0', 'v1']))}")
            continue
        forms[name] = {"TransData": _TRANS[form], "Cast": _CAST[form]}.get(kind, form)
        lines.append(f"{name} {'Relu' if kind == 'ref' else kind} {source} = {forms[name]}")
        if draw(st.integers(0, 4)) == 0:
            orders.append(f"{draw(st.sampled_from(list(forms)[:-1]))} => {name}")
    return compile_graph(";".join(lines + orders))


def value(out: OutDataAnchor) -> Value:
    node = out.node
    origin = node
    while origin.type in CONVERSIONS:
        origin = origin.in_data_nodes[0]
    return (origin.name, made(node))


def read(graph: ComputeGraph) -> dict[str, Value]:
    """Return what each node reads that is neither a conversion nor a ref node."""
    return {
        node.name: value(anchor.peer)
        for node in graph
        for anchor in node.in_data_anchors
        if node.type == "Relu" and anchor.peer is not None
    }


def written(graph: ComputeGraph) -> dict[str, str]:
    """Return where what each ref node reads comes from; its form must be that of its variable."""
    found = {}
    for node in graph:
        source, peer = ref_source(node), node.in_data_anchors[0].peer if node.in_data_anchors else None
        if source is not None and peer is not None:
            origin, form = value(peer)
            assert form == made(node) == made(graph[source])
            found[node.name] = origin
    return found


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_folding_changes_forms_of_variables_alone(graph: ComputeGraph) -> None:
    before, context = (read(graph), written(graph)), session(graph, ["v0"])
    PassManager([VariableOpPass()]).run(graph, context)
    edges(graph)
    assert (read(graph), written(graph)) == before
    event(f"{len(context.changed_names)} variables folded")


@settings(max_examples=150, deadline=None)
@given(graphs(), graphs())
def test_a_later_graph_reads_what_it_read(first: ComputeGraph, later: ComputeGraph) -> None:
    context = session(first, ["v0", "v1"])
    PassManager([VariableOpPass()]).run(first, context)
    before, again = (read(later), written(later)), PassContext(context.var_manager, context.rebuild_control)
    PassManager([UpdateVariableFormats(), VariableOpPass()]).run(later, again)
    edges(later)
    assert (read(later), written(later)) == before
    for name in context.changed_names:
        assert made(later[name]) == made(first[name])
    assert not set(context.changed_names) & set(again.changed_names)
