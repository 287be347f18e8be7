"""Small graphs of variables and conversions for tests of passes, and sessions that know their variables."""

from collections.abc import Iterable

from gevar.compile import CompilePass, PassContext, PassManager
from gevar.compile.graph_rebuild_state_ctrl import GraphRebuildStateCtrl
from gevar.graph import ComputeGraph, Node, OpDesc
from gevar.types import DataType, Format, TensorDesc
from gevar.types.format import format_from_c0
from gevar.var import SessionVersion, VarManager
from tests.helpers.graphs import edges

_5HD = format_from_c0(Format.FORMAT_NC1HWC0, 5)
_F16, _F32 = DataType.DT_FLOAT16, DataType.DT_FLOAT

DESCS = {
    "N4": TensorDesc(_F16, Format.FORMAT_NCHW, (1, 3, 2, 2), Format.FORMAT_NCHW, (1, 3, 2, 2), size=24),
    "N5": TensorDesc(_F16, _5HD, (1, 1, 2, 2, 16), Format.FORMAT_NCHW, (1, 3, 2, 2), size=128),
    "F4": TensorDesc(_F32, Format.FORMAT_NCHW, (1, 3, 2, 2), Format.FORMAT_NCHW, (1, 3, 2, 2), size=48),
    "F5": TensorDesc(_F32, _5HD, (1, 1, 2, 2, 16), Format.FORMAT_NCHW, (1, 3, 2, 2), size=256),
    "D4": TensorDesc(_F32, Format.FORMAT_ND, (1, 3, 2, 2), Format.FORMAT_ND, (1, 3, 2, 2), size=48),
    "D2": TensorDesc(_F32, Format.FORMAT_ND, (3, 4), Format.FORMAT_ND, (3, 4), size=48),
    "H4": TensorDesc(_F32, Format.FORMAT_HWCN, (2, 2, 3, 1), Format.FORMAT_HWCN, (2, 2, 3, 1), size=48),
    "U4": TensorDesc(_F16, Format.FORMAT_NCHW, (-1, 3, 2, 2), Format.FORMAT_NCHW, (-1, 3, 2, 2)),
    "U5": TensorDesc(_F16, _5HD, (-1, 1, 2, 2, 16), Format.FORMAT_NCHW, (-1, 3, 2, 2)),
    "B": TensorDesc(DataType.DT_BOOL, Format.FORMAT_ND, (), Format.FORMAT_ND, (), size=1),
}
"""Descriptions by short names: 4 and 5 are NCHW and NC1HWC0 of one tensor, N is half precision, F is single."""

_ASSIGNS = frozenset({"Assign", "AssignAdd", "AssignSub"})


def compile_graph(text: str, name: str = "main", graph_id: int = 1) -> ComputeGraph:
    """Make a graph from lines.

    `name Type producer… = desc… key=value…` is a node: a producer is `a` or `a:1`, with `@desc` where the input is
    described otherwise than the output it reads; `-` is an input without edge. `ref:w` makes it a ref node of `w`,
    `key=value` gives it a text attribute. The inputs of an Assign have names. `a => b` is a control edge.
    """
    graph = ComputeGraph(name)
    graph.graph_id = graph_id
    for line in filter(None, (line.strip() for line in text.replace(";", "\n").splitlines())):
        if "=>" in line:
            before, after = (graph[end.strip()] for end in line.split("=>"))
            before.link_control_to(after)
        else:
            _add_node(graph, line)
    return graph


def _add_node(graph: ComputeGraph, line: str) -> None:
    left, _, right = line.partition(" = ")
    name, op_type, *producers = left.split()
    words = right.split()
    outputs = [DESCS[word] for word in words if word in DESCS]
    attrs = dict(word.split("=", 1) for word in words if "=" in word)
    for word in words:
        if word.startswith("ref:"):
            attrs["ref_var_src_var_name"] = word[4:]
    ends, inputs = [], []
    for producer in producers:
        end, _, described = producer.partition("@")
        source, _, output = end.partition(":")
        ends.append(None if end == "-" else graph[source].out_data_anchor(int(output or 0)))
        anchor = ends[-1]
        inputs.append(DESCS[described] if anchor is None or described else anchor.node.op_desc.output_desc(anchor.idx))
    if op_type in _ASSIGNS:
        op_desc = OpDesc(
            name,
            op_type,
            inputs=dict(zip(("ref", "value"), inputs, strict=True)),
            outputs={"ref": outputs[0] if outputs else inputs[0]},
            attrs=attrs,
        )
    else:
        op_desc = OpDesc(name, op_type, inputs=inputs, outputs=outputs, attrs=attrs)
    node = graph.add_node(op_desc)
    for index, anchor in enumerate(ends):
        if anchor is not None:
            anchor.link_to(node.in_data_anchor(index))


def session(graph: ComputeGraph, known: Iterable[str] = ()) -> PassContext:
    """Return the context of a new session that knows some variables of a graph, and the graph."""
    manager = VarManager(0)
    manager.init(SessionVersion.CLOUD_VERSION, session_id=0)
    for name in known:
        manager.assign_var_mem(name, None, graph[name].op_desc.output_desc(0))
    control = GraphRebuildStateCtrl()
    control.add_graph(graph.graph_id, graph)
    return PassContext(manager, control)


def run(graph: ComputeGraph, *passes: CompilePass, context: PassContext | None = None) -> PassContext:
    """Run passes and check that the graph is sound afterwards; return the context."""
    context = session(graph) if context is None else context
    PassManager(passes).run(graph, context)
    for one in (graph, *graph.all_subgraphs()):
        edges(one)
        one.topological_order()
    return context


def manager_of(context: PassContext) -> VarManager:
    """Return the manager of a context that has one."""
    assert context.var_manager is not None
    return context.var_manager


def made(node: Node) -> str:
    """Return the short name of what a node makes, with `?` for a description that has none."""
    desc = node.op_desc.output_desc(0)
    return next((name for name, known in DESCS.items() if known.same_description(desc)), "?")


def refusals(context: PassContext) -> dict[str, str]:
    """Return what was refused, by subject."""
    return {refusal.subject: refusal.reason for record in context.log.records for refusal in record.refusals}


def changes(context: PassContext) -> list[str]:
    """Return what was changed."""
    return [text for record in context.log.records for text in record.changes]
