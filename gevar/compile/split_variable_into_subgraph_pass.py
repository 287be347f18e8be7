"""Giving each subgraph that uses a variable a node of that variable.

Source: GE source, compiler/graph/passes/variable_optimize/split_variable_into_subgraph_pass.cc.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from gevar.compile.compile_pass import NodePass
from gevar.compile.node_kinds import (
    PARENT_NODE_INDEX,
    PARTITIONED_CALL,
    WHILE_TYPES,
    is_var_like,
)
from gevar.compile.pass_context import PassContext
from gevar.errors import GraphError
from gevar.graph import ComputeGraph, InDataAnchor, Node, OpDesc

GRAPH_UNKNOWN_FLAG: Final = "_graph_unknown_flag"
"""Attribute of a graph: shapes in it are not known before it runs."""

INSERT_BY_MBATCH: Final = "mbatch-inserted-node"
"""Attribute of a Case that was put in to choose among batch sizes."""


@dataclass(frozen=True, slots=True)
class _Inside:
    """What variables that come into a subgraph meet there.

    Attributes
    ----------
    data : dict
        The first Data node for each input of the node that runs the subgraph.
    has_unknown_shape : bool
        Whether the graph says so, or a description in it or below has an unknown dimension.
    """

    data: dict[int, Node]
    has_unknown_shape: bool


class SplitVariableIntoSubgraphPass(NodePass):
    """Let readers inside a subgraph read a variable node of their own, of the same name, instead of a Data.

    The edge from the variable to the node that runs the subgraph stays. The same name means the same variable.

    Source: GE source, compiler/graph/passes/variable_optimize/split_variable_into_subgraph_pass.cc,
    SplitVariableIntoSubgraphPass.
    """

    name: ClassVar[str] = "SplitVariableIntoSubgraphPass"

    def __init__(self) -> None:
        super().__init__()
        self._insides: dict[ComputeGraph, _Inside] = {}

    def run_node(self, node: Node, context: PassContext) -> None:
        """Do it to the consumers of a variable.

        Raises
        ------
        GraphError
            A consumer names a subgraph that is not there, or a node in it has the variable's name and is none.
        """
        if not is_var_like(node):
            return
        for out in node.out_data_anchors:
            for consumer in out.peers:
                if consumer.node.op_desc.subgraph_instance_names and consumer.peer == out:
                    self._split_into(node, consumer, context)

    def _split_into(self, variable: Node, consumer: InDataAnchor, context: PassContext) -> None:
        runner, index = consumer
        is_changed = False
        for subgraph in runner.subgraphs:
            inside = self._inside(subgraph)
            if runner.type == PARTITIONED_CALL and inside.has_unknown_shape:
                reason = f"shapes in {subgraph.name!r}, which {runner.name!r} runs, are not known"
                context.log.refused(variable.name, reason)
                return
            data = inside.data.get(index)
            is_changed = data is not None and bool(data.out_data_nodes)
            if data is None or not is_changed:
                context.log.refused(variable.name, f"nothing in {subgraph.name!r} reads {consumer!r}")
                continue
            _move_readers(variable, data, is_batch_case=_is_batch_case(runner))
            context.log.changed(f"{variable.name!r} is in {subgraph.name!r} now, in place of {data.name!r}")
        if is_changed and runner.type in WHILE_TYPES:
            _read_after_loop(variable, consumer)

    def _inside(self, subgraph: ComputeGraph) -> _Inside:
        """Look into a subgraph once, however many variables come into it."""
        inside = self._insides.get(subgraph)
        if inside is None:
            inside = self._insides[subgraph] = _Inside(_inner_data(subgraph), _has_unknown_shape(subgraph))
        return inside


def _inner_data(subgraph: ComputeGraph) -> dict[int, Node]:
    found: dict[int, Node] = {}
    for node in subgraph:
        if node.type == "Data":
            index = node.op_desc.attrs.get_as(PARENT_NODE_INDEX, int)
            if index is not None:
                found.setdefault(index, node)
    return found


def _has_unknown_shape(graph: ComputeGraph) -> bool:
    open_graphs = [graph]
    while open_graphs:
        part = open_graphs.pop()
        if part.attrs.get_as(GRAPH_UNKNOWN_FLAG, bool):
            return True
        for node in part:
            descs = (*node.op_desc.input_descs, *node.op_desc.output_descs)
            if any(dim < 0 for desc in descs for dim in desc.shape):
                return True
            open_graphs += node.subgraphs
    return False


def _is_batch_case(runner: Node) -> bool:
    return runner.type == "Case" and runner.op_desc.attrs.get_as(INSERT_BY_MBATCH, bool) is True


def _move_readers(variable: Node, data: Node, *, is_batch_case: bool) -> None:
    subgraph = data.owner_compute_graph
    inner = subgraph.find_node(variable.name)
    if inner is None:
        op_desc = variable.op_desc.copy(variable.name)
        if variable.type == "RefData" and is_batch_case:
            _take_shapes(op_desc, data)
        inner = subgraph.add_node(op_desc)
    elif not is_var_like(inner):
        reason = f"has the name of variable {variable.name!r}, which is needed here, and is of type {inner.type}"
        raise GraphError(subgraph.name, reason, node=inner.name)
    for out in data.out_data_anchors:
        for peer in out.peers:
            peer.unlink()
            inner.out_data_anchor(0).link_to(peer)
    data.link_control_to(inner)


def _take_shapes(op_desc: OpDesc, data: Node) -> None:
    """Give an operator the shapes that a batch has."""
    batch = data.op_desc.output_desc(0)
    for descs, update in (
        (op_desc.output_descs, op_desc.update_output_desc),
        (op_desc.input_descs, op_desc.update_input_desc),
    ):
        for index, desc in enumerate(descs):
            update(index, desc.replace(shape=batch.shape, origin_shape=batch.origin_shape))


def _read_after_loop(variable: Node, consumer: InDataAnchor) -> None:
    """Let what reads the variable as an output of a loop read the variable itself, after the loop."""
    loop, index = consumer
    if index >= len(loop.out_data_anchors):
        return
    for peer in loop.out_data_anchor(index).peers:
        peer.unlink()
        variable.out_data_anchor(0).link_to(peer)
        loop.link_control_to(peer.node)
