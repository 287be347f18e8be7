"""Does the time of all passes around variables grow with the graph, and no faster?

The graph is made of blocks of 20 nodes with two variables, so that each pass has something to do in many of them: one
variable is read through a TransData and written through the inverse one, the other is written by an Assign of a
computed value. Every tenth block asks whether its variable has a value, every fiftieth runs a subgraph that writes it.
Both sizes are timed alike, in processor time of the thread, with cyclic garbage collection off.
"""

import gc
import statistics
import time

from benchmarks.harness import Promise, Row, alternate
from gevar.compile import PassContext, PassManager, compile_passes
from gevar.compile.graph_rebuild_state_ctrl import GraphRebuildStateCtrl
from gevar.graph import ComputeGraph, Node, OpDesc
from gevar.types import DataType, Format, TensorDesc
from gevar.types.format import format_from_c0
from gevar.var import SessionVersion, VarManager

ROUNDS = 5
NODES, FEW_NODES = 100_000, 10_000
BLOCK_NODES = 20
VARIABLES_PER_BLOCK = 2

_PLAIN = TensorDesc(DataType.DT_FLOAT16, Format.FORMAT_NCHW, (1, 3, 2, 2), size=24)
_STORED = TensorDesc(
    DataType.DT_FLOAT16, format_from_c0(Format.FORMAT_NC1HWC0, 5), (1, 1, 2, 2, 16), Format.FORMAT_NCHW, size=128
)
_FLAG = TensorDesc(DataType.DT_BOOL, Format.FORMAT_ND, (), size=1)


class _Builder:
    """Makes nodes of a graph and their edges."""

    def __init__(self, graph: ComputeGraph, prefix: str) -> None:
        self.graph, self.prefix = graph, prefix

    def node(
        self, name: str, op_type: str, *producers: Node, source: TensorDesc = _PLAIN, made: TensorDesc = _PLAIN
    ) -> Node:
        node = self.graph.add_node(
            OpDesc(self.prefix + name, op_type, inputs=[source] * len(producers), outputs=[made])
        )
        for index, producer in enumerate(producers):
            producer.out_data_anchor(0).link_to(node.in_data_anchor(index))
        return node

    def assign(self, name: str, variable: Node, value: Node) -> Node:
        op_desc = OpDesc(self.prefix + name, "Assign", inputs={"ref": _PLAIN, "value": _PLAIN}, outputs={"ref": _PLAIN})
        node = self.graph.add_node(op_desc)
        for index, producer in enumerate((variable, value)):
            producer.out_data_anchor(0).link_to(node.in_data_anchor(index))
        return node


def _stored_variable(build: _Builder) -> None:
    """Ten nodes around a variable that is read and written in another format."""
    variable = build.node("w", "Variable")
    reader = build.node("t1", "TransData", variable, made=_STORED)
    momentum = build.node("am", "ApplyMomentum", reader, source=_STORED, made=_STORED)
    back = build.node("b", "TransData", momentum, source=_STORED)
    ref = build.node("w_ref", "Variable", back)
    ref.op_desc.attrs["ref_var_src_var_name"] = variable.name
    last = build.node("t2", "TransData", variable, made=_STORED)
    for number in range(4):
        last = build.node(f"relu_{number}", "Relu", last, source=_STORED, made=_STORED)
    ref.link_control_to(last)


def _written_variable(build: _Builder, number: int) -> None:
    """Ten nodes around a variable that a computed value is assigned to."""
    variable, constant = build.node("v", "Variable"), build.node("c", "Const")
    assign = build.assign("assign", variable, build.node("mul", "Mul", constant, constant))
    last = assign
    for step in range(5):
        last = build.node(f"add_{step}", "Add", last, constant)
    if number % 10 == 0:
        query = build.node("query", "VarIsInitializedOp", variable, made=_FLAG)
        assign.link_control_to(query)
    elif number % 50 == 1:
        _run_subgraph(build, variable)
    else:
        build.node("end", "Relu", last)


def _run_subgraph(build: _Builder, variable: Node) -> None:
    call = build.node("call", "PartitionedCall", variable)
    subgraph = ComputeGraph(f"{build.prefix}body")
    inner = _Builder(subgraph, build.prefix)
    data = inner.node("data", "Data")
    data.op_desc.attrs["_parent_node_index"] = 0
    inner.node("inner_relu", "Relu", inner.assign("inner_assign", data, inner.node("inner_c", "Const")))
    build.graph.add_subgraph(call, subgraph)


def training_graph(nodes: int) -> ComputeGraph:
    """Make a graph of about as many nodes."""
    graph = ComputeGraph("main")
    graph.graph_id = 1
    for number in range(nodes // BLOCK_NODES):
        build = _Builder(graph, f"block_{number}/")
        _stored_variable(build)
        _written_variable(build, number)
    graph.set_outputs([node.out_data_anchor(0) for node in graph if node.name.endswith("/relu_3")])
    return graph


def run_passes(nodes: int) -> tuple[float, PassContext]:
    """Run all passes on a new graph in a session that knows its variables; return the seconds, and what they did."""
    graph = training_graph(nodes)
    manager = VarManager(1)
    manager.init(SessionVersion.CLOUD_VERSION, session_id=1)
    manager.assign_many((node.name, None, _PLAIN) for node in graph if node.name.endswith("/w"))
    control = GraphRebuildStateCtrl()
    control.add_graph(1, graph)
    context = PassContext(manager, control)
    passes = PassManager(compile_passes())
    gc.collect()
    gc.disable()
    try:
        start = time.thread_time_ns()
        passes.run(graph, context)
        return (time.thread_time_ns() - start) / 1e9, context
    finally:
        gc.enable()


def pass_growth() -> Row:
    """Time all passes on a graph and on one of ten times its size."""
    changes: dict[int, int] = {}

    def seconds(nodes: int) -> float:
        took, context = run_passes(nodes)
        changes[nodes] = context.log.change_count
        return took

    subject, reference = alternate(lambda: seconds(NODES), lambda: seconds(FEW_NODES), ROUNDS)
    growth = NODES / FEW_NODES
    faults = (
        () if changes[NODES] == growth * changes[FEW_NODES] else (f"changes do not grow with the graph: {changes}",)
    )
    return Row(
        name="pass-growth",
        backend="none",
        unit="s",
        subject=subject,
        reference=reference,
        figure=statistics.median(large / small for large, small in zip(subject, reference, strict=True)),
        figure_unit=f"x the time for {growth:g}x the graph",
        promise=Promise("at most 12x", 12, at_most=True),
        conditions={
            "nodes": NODES,
            "variables": NODES // BLOCK_NODES * VARIABLES_PER_BLOCK,
            "reference nodes": FEW_NODES,
            "changes": changes[NODES],
        },
        faults=faults,
    )
