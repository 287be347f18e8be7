"""Answering at compile time whether a variable has a value when a query runs.

Source: GE source, compiler/graph/passes/variable_optimize/var_is_initialized_op_pass.cc.
"""

from typing import ClassVar, Final

from gevar.compile.compile_pass import NodePass
from gevar.compile.pass_context import PassContext
from gevar.errors import GraphError
from gevar.graph import ComputeGraph, GeTensor, Node, OpDesc, replace_node
from gevar.status import PARAM_INVALID

QUERY_TYPES: Final = frozenset({"VarIsInitializedOp", "IsVariableInitialized"})


class VarIsInitializedOpPass(NodePass):
    """Replace each query by a constant: true where the manager knows the variable, or an Assign to it comes before.

    Only nodes of type Assign count as writers, and only those from which a path of data or control leads to the query.

    Source: GE source, compiler/graph/passes/variable_optimize/var_is_initialized_op_pass.cc, VarIsInitializedOpPass.
    """

    name: ClassVar[str] = "VarIsInitializedOpPass"

    def __init__(self) -> None:
        super().__init__()
        self._bits: dict[Node, int] = {}
        self._written: dict[Node, int] = {}

    def start(self, graph: ComputeGraph) -> None:
        """Give a bit to each variable that is asked about: only those need to be followed through the graph."""
        for node in graph:
            if node.type in QUERY_TYPES:
                for variable in node.in_data_nodes:
                    self._bits.setdefault(variable, 1 << len(self._bits))

    def run_node(self, node: Node, context: PassContext) -> None:
        """Note what is written before a node; replace it, if it is a query.

        Raises
        ------
        GraphError
            An Assign has no producer of input 0 (status PARAM_INVALID). A query has not exactly one producer of data,
            of type Variable, or not exactly one input and one output. There is no manager.
        """
        written = self._bits.get(_written_variable(node), 0) if node.type == "Assign" else 0
        if self._bits:
            for before in node.in_nodes:
                written |= self._written.get(before, 0)
        if written:
            self._written[node] = written
        if node.type in QUERY_TYPES:
            self._answer(node, written, context)

    def _answer(self, node: Node, written: int, context: PassContext) -> None:
        graph, producers = node.owner_compute_graph, node.in_data_nodes
        if len(producers) != 1 or producers[0].type != "Variable":
            found = ", ".join(f"{producer.name!r} ({producer.type})" for producer in producers) or "nothing"
            raise GraphError(graph.name, f"asks about {found}; it needs one Variable", node=node.name)
        counts = (len(node.in_data_anchors), len(node.out_data_anchors))
        if counts != (1, 1):
            raise GraphError(graph.name, f"has {counts[0]} inputs and {counts[1]} outputs, not 1 and 1", node=node.name)
        variable = producers[0]
        is_known = context.require_var_manager(graph.name).is_var_exist(variable.name)
        is_written = bool(written & self._bits[variable])
        constant = _replace_by_const(node, variable, is_known or is_written)
        self._written[constant] = written
        why = (
            "the manager knows it"
            if is_known
            else "an Assign comes before"
            if is_written
            else "nothing writes it before"
        )
        context.log.changed(f"{node.name!r} is {is_known or is_written} for {variable.name!r}: {why}")
        for neighbour in constant.out_nodes:
            self.visit_again(neighbour)


def _written_variable(assign: Node) -> Node:
    peer = assign.in_data_anchor(0).peer if assign.in_data_anchors else None
    if peer is None:
        reason = "is an Assign whose input 0 is not linked"
        raise GraphError(assign.owner_compute_graph.name, reason, node=assign.name, status=PARAM_INVALID)
    return peer.node


def _replace_by_const(node: Node, variable: Node, value: bool) -> Node:
    """Put a Const of the same name in the place of a query; it comes after the variable."""
    desc = node.op_desc.output_desc(0)
    node.in_data_anchor(0).unlink()
    variable.link_control_to(node)
    op_desc = OpDesc(node.name, "Const", outputs=[desc], attrs={"value": GeTensor(desc, bytes([value]))})
    op_desc.id = node.op_desc.id
    return replace_node(node, op_desc)
