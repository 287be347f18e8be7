"""Making every write to a variable visible: a ref node behind the writer consumes what was written.

Source: GE source, compiler/graph/passes/variable_optimize/variable_prepare_op_pass.cc.
"""

from typing import ClassVar

from gevar.compile.compile_pass import CompilePass, OptimizationLevel
from gevar.compile.descriptions import variable_desc
from gevar.compile.node_kinds import (
    FRAMEWORK_OP,
    MERGE_TYPES,
    copy_stream_label,
    is_var_like,
    original_type,
    ref_source,
)
from gevar.compile.pass_context import PassContext
from gevar.compile.ref_table import RefTable
from gevar.errors import GraphError
from gevar.graph import ComputeGraph, InDataAnchor, Node, OpDesc, OutDataAnchor, insert_node_before
from gevar.var.var_op import REF_VAR_SRC_VAR_NAME

_Visit = tuple[Node, int, int]
"""A node, the input that carries the variable, the output that is the same memory."""


class VariablePrepareOpPass(CompilePass):
    """Hang a ref node on the last writers of each variable, and on earlier ones that something is ordered after.

    Source: GE source, compiler/graph/passes/variable_optimize/variable_prepare_op_pass.cc, VariablePrepareOpPass.
    """

    name: ClassVar[str] = "VariablePrepareOpPass"
    level: ClassVar[OptimizationLevel] = OptimizationLevel.O3

    def __init__(self) -> None:
        self._refs = RefTable()

    def run(self, graph: ComputeGraph, context: PassContext) -> None:
        """Do it to one graph.

        Raises
        ------
        GraphError
            A writer's consumer is a FrameworkOp without `original_type`; a variable has no output; a name is taken.
        """
        self._refs.learn(graph)
        if not self._refs:
            context.log.refused(graph.name, "no operator writes an input")
            return
        for variable in [node for node in graph if is_var_like(node)]:
            for out in variable.out_data_anchors:
                for consumer, index in out.peers:
                    for output in self._refs.ref_outputs(consumer, index):
                        self._trace((consumer, index, output), variable, context)

    def _trace(self, start: _Visit, variable: Node, context: PassContext) -> None:
        """Follow a variable through its writers, depth first."""
        stack, seen = [start], {start}
        while stack:
            node, index, output = visit = stack.pop()
            following = self._following(visit)
            stack += (new for new in following if new not in seen)
            seen.update(following)
            if not following and node.type != FRAMEWORK_OP:
                if output < len(node.out_data_anchors):
                    _add_variable_ref(node, variable, output, context)
                else:
                    _insert_variable_ref(node, index, variable, context)
            elif following and node.out_control_nodes:
                _add_variable_ref(node, variable, output, context)

    def _following(self, visit: _Visit) -> list[_Visit]:
        """The writers that take the variable from an output."""
        node, _, output = visit
        if output >= len(node.out_data_anchors):
            return []
        peers = node.out_data_anchor(output).peers
        return [(after, index, new) for after, index in peers for new in self._refs.ref_outputs(after, index)]


def _add_variable_ref(node: Node, variable: Node, output: int, context: PassContext) -> None:
    """Let a new ref node consume what a node writes to an output."""
    out = node.out_data_anchor(output)
    if any(ref_source(peer.node) == variable.name for peer in out.peers):
        return
    ref = _new_ref(node, variable, output)
    _order_before_consumers(ref, node)
    out.link_to(ref.in_data_anchor(0))
    context.log.changed(f"{ref.name!r} reads {out!r}, which writes {variable.name!r}")


def _insert_variable_ref(node: Node, index: int, variable: Node, context: PassContext) -> None:
    """Let a new ref node consume an input that a node writes without an output for it, through a RefIdentity."""
    anchor = node.in_data_anchor(index)
    source = anchor.peer
    assert source is not None, "the variable came along this edge"
    desc = node.op_desc.input_desc(index)
    bridge_name = f"RefIdentity_{source.node.name}_{source.idx}_TO_{node.name}_{index}"
    ref = _new_ref(node, variable, index)
    _order_before_consumers(ref, node)
    bridge = insert_node_before(anchor, OpDesc(bridge_name, "RefIdentity", inputs=[desc], outputs=[desc]))
    bridge.out_data_anchor(0).link_to(ref.in_data_anchor(0))
    node.link_control_to(ref)
    context.log.changed(
        f"{ref.name!r} reads {bridge_name!r}: {node.name!r} writes {variable.name!r} in its input {index}"
    )


def _new_ref(node: Node, variable: Node, index: int) -> Node:
    desc = variable_desc(variable)
    name = f"{variable.name}_TO_{node.name}_REF_{index}"
    attrs = {REF_VAR_SRC_VAR_NAME: variable.name}
    op_desc = OpDesc(name, variable.type, inputs=[desc], outputs=[desc], attrs=attrs)
    ref = variable.owner_compute_graph.add_node(op_desc)
    copy_stream_label(node, ref)
    return ref


def _order_before_consumers(ref: Node, node: Node) -> None:
    """Let a ref node run before all that comes after a node; before a merge it takes an Identity."""
    for out in node.out_data_anchors:
        for peer in out.peers:
            ref.link_control_to(_merge_guard(out, peer) if _is_merge(peer.node) else peer.node)
    for after in node.out_control_nodes:
        _is_merge(after)
        ref.link_control_to(after)


def _is_merge(node: Node) -> bool:
    kind = original_type(node)
    if kind is None:
        reason = "is a FrameworkOp behind a writer of a variable and has no attribute original_type"
        raise GraphError(node.owner_compute_graph.name, reason, node=node.name)
    return kind in MERGE_TYPES


def _merge_guard(out: OutDataAnchor, peer: InDataAnchor) -> Node:
    """Put an Identity on an edge to a merge, which does not wait for all that comes before it."""
    desc = out.node.op_desc.output_desc(out.idx)
    name = f"Identity_{out.node.name}_TO_{peer.node.name}_{peer.idx}"
    return insert_node_before(peer, OpDesc(name, "Identity", inputs={"x": desc}, outputs={"y": desc}))
