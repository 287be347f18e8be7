"""Nodes that write into a variable: they get its address as that of their output.

From a variable the chains go through its consumers: assigns of assigns, assigns behind conversions, and broadcasts.

Source: GE source, base/graph/build/memory/var_mem_assign_util.cc, VarMemAssignUtil::AssignVarAttr2Nodes and what it
calls.
"""

from collections.abc import Iterator
from typing import Final

from gevar.compile.var_mem_assign_util_offsets import NodeOffsets
from gevar.compile.var_mem_assign_util_ops import graph_error
from gevar.graph import ComputeGraph, InDataAnchor, Node
from gevar.status import FAILED, PARAM_INVALID
from gevar.var import VARIABLE, VarBroadCastInfo, VarManager
from gevar.var.var_op import REF_VAR_SRC_VAR_NAME

BROADCAST_TYPES: Final = frozenset({"HcomBroadcast", "HorovodBroadcast"})
ASSIGN_TYPES: Final = frozenset({"Assign", "AssignAdd", "AssignSub"})
TRANS_TYPES: Final = frozenset({"TransData", "Cast", "Transpose", "Permute"})
MAX_TRANS_DEPTH: Final = 16
"""Conversions behind the first one that are followed, as far as GE recurs."""


def assign_var_attr2_nodes(var_manager: VarManager, graph: ComputeGraph) -> None:
    """Give the nodes that write into the variables of a graph the addresses of these.

    Parameters
    ----------
    var_manager
        Variables of the session; it gets a record of each variable that is broadcast.
    graph
        The graph, with its subgraphs. Its variables have memory (`assign_static_memory2_node`).

    Raises
    ------
    GraphError
        A node has no output offsets (status PARAM_INVALID), or too few; a broadcast has no output for the input that
        the variable is, or one of another size (status FAILED).
    StateError, VariableError
        A variable has no address in the form of its node (status INTERNAL_ERROR).

    After failure: graph and manager are as before.
    Source: GE source, base/graph/build/memory/var_mem_assign_util.cc, VarMemAssignUtil::AssignVarAttr2Nodes.
    Differs: row assign-chain of docs/differences.md.
    """
    offsets, broad_casts = NodeOffsets(), list[VarBroadCastInfo]()
    for node in graph.all_nodes():
        if node.type == VARIABLE and REF_VAR_SRC_VAR_NAME not in node.op_desc.attrs:
            broad_casts += _deal_variable_node(var_manager, node, offsets)
    for info in broad_casts:
        var_manager.save_broad_cast_info(graph.graph_id, info)
    offsets.write()


def _deal_variable_node(var_manager: VarManager, variable: Node, offsets: NodeOffsets) -> Iterator[VarBroadCastInfo]:
    """Follow the chains from a variable; yields its broadcasts."""
    if not variable.op_desc.output_descs:
        raise graph_error(variable, "is a Variable without outputs; give it one")
    addr = var_manager.get_var_addr(variable.name, variable.op_desc.output_desc(0))
    offsets.set_output(variable, 0, addr)
    for out_anchor in variable.out_data_anchors:
        for consumer, index in out_anchor.peers:
            if consumer.type in BROADCAST_TYPES:
                yield _deal_broad_cast_node(consumer, index, variable, offsets)
            elif consumer.type in ASSIGN_TYPES and index == 0:
                for node in _assign_chain([consumer], through_input_0=True):
                    offsets.set_output(node, 0, addr)
            elif consumer.type in TRANS_TYPES:
                _deal_trans_node(_final_trans_node(consumer), offsets)


def _deal_broad_cast_node(node: Node, index: int, variable: Node, offsets: NodeOffsets) -> VarBroadCastInfo:
    """Record a broadcast, whose inputs lie where its outputs do."""
    op_desc, outputs = node.op_desc, offsets.outputs(node)
    if index >= min(len(op_desc.input_descs), len(op_desc.output_descs), len(outputs)):
        counts = f"{len(op_desc.input_descs)} inputs, {len(op_desc.output_descs)} outputs, {len(outputs)} offsets"
        raise graph_error(node, f"broadcasts variable {variable.name!r} at input {index}, it has {counts} of outputs")
    input_size, output_size = op_desc.input_desc(index).size, op_desc.output_desc(index).size
    if input_size != output_size:
        sizes = f"{input_size} B in and {output_size} B out"
        raise graph_error(node, f"broadcasts variable {variable.name!r} with {sizes}; both must be equal")
    offsets.set_inputs(node, outputs)
    offset = outputs[index]
    try:
        return VarBroadCastInfo(variable.name, node.name, index, offset, input_size, offset, output_size)
    except ValueError as error:
        raise graph_error(node, str(error), FAILED) from error


def _deal_trans_node(final: Node, offsets: NodeOffsets) -> None:
    """Give the assigns behind a conversion the address of its output."""
    starts = [node for node, _ in _readers(final) if node.type in ASSIGN_TYPES]
    if not starts:
        return
    outputs = offsets.outputs(final)
    if not outputs:
        raise graph_error(
            final, "has no output offsets, and is assigned to; give it one for each output", PARAM_INVALID
        )
    for node in _assign_chain(starts, through_input_0=False):
        offsets.set_output(node, 0, outputs[0])


def _assign_chain(starts: list[Node], *, through_input_0: bool) -> Iterator[Node]:
    """Yield assigns and the assigns that read their output 0, each once; with input 0 only, or with any input."""
    met = set(starts)
    stack = list(reversed(starts))
    while stack:
        node = stack.pop()
        yield node
        for consumer, index in _readers(node):
            is_in_chain = consumer.type in ASSIGN_TYPES and (index == 0 or not through_input_0)
            if is_in_chain and consumer not in met:
                met.add(consumer)
                stack.append(consumer)


def _final_trans_node(node: Node) -> Node:
    """The last conversion behind one; where several follow, the one that was linked last."""
    for _ in range(MAX_TRANS_DEPTH):
        following = [reader for reader, index in _readers(node) if reader.type in TRANS_TYPES and index == 0]
        if not following:
            break
        node = following[-1]
    return node


def _readers(node: Node) -> tuple[InDataAnchor, ...]:
    """What reads output 0 of a node."""
    return node.out_data_anchors[0].peers if node.out_data_anchors else ()
