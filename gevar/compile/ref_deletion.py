"""Taking ref nodes out again, once nothing is reordered any more: an attribute of what writes the variable stays.

Source: GE source, compiler/graph/passes/variable_optimize/: variable_ref_useless_control_out_delete_pass.cc,
ref_identity_delete_op_pass.cc, variable_ref_delete_op_pass.cc.
"""

from typing import ClassVar

from gevar.compile.compile_pass import CompilePass, OptimizationLevel
from gevar.compile.descriptions import int_attr, with_str_attr
from gevar.compile.node_kinds import NET_OUTPUT, PARENT_NODE_INDEX, PARTITIONED_CALL, is_var_like, ref_source
from gevar.compile.pass_context import PassContext
from gevar.errors import GraphError
from gevar.graph import ComputeGraph, InDataAnchor, Node, OutDataAnchor, isolate_node
from gevar.var.var_op import REF_VAR_SRC_VAR_NAME


class VariableRefUselessControlOutDeletePass(CompilePass):
    """Drop control edges from ref nodes to nodes that come after the ref node's producer anyway.

    Source: GE source, compiler/graph/passes/variable_optimize/variable_ref_useless_control_out_delete_pass.cc,
    VariableRefUselessControlOutDeletePass.
    """

    name: ClassVar[str] = "VariableRefUselessControlOutDeletePass"
    level: ClassVar[OptimizationLevel] = OptimizationLevel.O3

    def run(self, graph: ComputeGraph, context: PassContext) -> None:
        """Do it to one graph."""
        consumers: dict[Node, frozenset[Node]] = {}
        for ref in graph:
            if ref_source(ref) is None:
                continue
            producer = next(iter(ref.in_data_nodes), None)
            if producer is None:
                context.log.warned(f"ref node {ref.name!r} has no producer; it is passed over")
                continue
            if producer not in consumers:
                consumers[producer] = frozenset(producer.out_nodes)
            for after in ref.out_control_nodes:
                if after in consumers[producer]:
                    ref.out_control_anchor.unlink(after.in_control_anchor)
                    consumers.pop(ref, None)
                    context.log.changed(f"{ref.name!r} => {after.name!r} removed: it is after {producer.name!r}")


class RefIdentityDeleteOpPass(CompilePass):
    """Remove the RefIdentity nodes that `VariablePrepareOpPass` put in front of writers.

    Source: GE source, compiler/graph/passes/variable_optimize/ref_identity_delete_op_pass.cc, RefIdentityDeleteOpPass.
    """

    name: ClassVar[str] = "RefIdentityDeleteOpPass"

    def run(self, graph: ComputeGraph, context: PassContext) -> None:
        """Do it to one graph.

        Raises
        ------
        GraphError
            A RefIdentity has outputs and no input.
        """
        for node in [node for node in graph if node.type == "RefIdentity"]:
            isolate_node(node, [0] if node.out_data_anchors else [])
            graph.remove_node(node)
            context.log.changed(f"{node.name!r} removed")


class VariableRefDeleteOpPass(CompilePass):
    """Replace each ref node by the attribute `ref_var_src_var_name` on the output that it read.

    No node may be removed afterwards: the attribute is read when memory is assigned.

    Source: GE source, compiler/graph/passes/variable_optimize/variable_ref_delete_op_pass.cc, VariableRefDeleteOpPass.
    """

    name: ClassVar[str] = "VariableRefDeleteOpPass"
    level: ClassVar[OptimizationLevel] = OptimizationLevel.O3

    def __init__(self) -> None:
        self._root: ComputeGraph | None = None
        self._names: frozenset[str] = frozenset()
        self._results: dict[ComputeGraph, dict[int, list[InDataAnchor]]] = {}

    def run(self, graph: ComputeGraph, context: PassContext) -> None:
        """Do it to one graph.

        Raises
        ------
        GraphError
            A ref node names a variable that is nowhere in the whole graph, or has no producer.
        """
        if self._root is not graph.root:
            self._root = graph.root
            self._names = frozenset(node.name for node in graph.root.all_nodes() if is_var_like(node))
        for ref in list(graph):
            source = ref_source(ref)
            if source is not None:
                self._replace(ref, source, context)

    def _replace(self, ref: Node, source: str, context: PassContext) -> None:
        graph = ref.owner_compute_graph
        if source not in self._names:
            raise GraphError(graph.name, f"is a ref node of {source!r}, and no variable has that name", node=ref.name)
        out = ref.in_data_anchor(0).peer
        if out is None:
            raise GraphError(graph.name, f"is a ref node of {source!r} and has no producer", node=ref.name)
        if source != out.node.name:
            target = self._writing_output(out)
            desc = with_str_attr(target.node.op_desc.output_desc(target.idx), REF_VAR_SRC_VAR_NAME, source)
            target.node.op_desc.update_output_desc(target.idx, desc)
            context.log.changed(f"{ref.name!r} removed: {target!r} says that it writes {source!r}")
        else:
            context.log.changed(f"{ref.name!r} removed: it read its own variable {source!r}")
        isolate_node(ref, [0] if ref.out_data_anchors else [])
        graph.remove_node(ref)

    def _writing_output(self, out: OutDataAnchor) -> OutDataAnchor:
        """The output that one stands for: of a PartitionedCall, what feeds the NetOutput of its subgraph there."""
        if out.node.type != PARTITIONED_CALL:
            return out
        found = out
        for subgraph in out.node.subgraphs:
            if subgraph not in self._results:
                self._results[subgraph] = results_by_index(subgraph)
            for anchor in self._results[subgraph].get(out.idx, ()):
                found = found if anchor.peer is None else anchor.peer
        return found


def results_by_index(subgraph: ComputeGraph) -> dict[int, list[InDataAnchor]]:
    """Return for each output of the node that runs a subgraph the first input of each NetOutput that stands for it."""
    found: dict[int, list[InDataAnchor]] = {}
    for node in subgraph:
        if node.type == NET_OUTPUT:
            indexes = [int_attr(desc, PARENT_NODE_INDEX) for desc in node.op_desc.input_descs]
            first = dict(zip(reversed(indexes), reversed(node.in_data_anchors), strict=True))
            for index, anchor in first.items():
                if index is not None:
                    found.setdefault(index, []).append(anchor)
    return found
