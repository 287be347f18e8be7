"""Edits that passes are made of: insert, replace, isolate, and move edges. Each happens completely or not at all.

Source: GE source, graph_metadef/graph/utils/graph_utils.cc, GraphUtils.
"""

from collections.abc import Sequence

from gevar.errors import GraphError
from gevar.graph.anchor import InDataAnchor, OutDataAnchor
from gevar.graph.compute_graph import ComputeGraph
from gevar.graph.node import Node
from gevar.graph.op_desc import OpDesc


def insert_node_before(dst: InDataAnchor, op_desc: OpDesc, *, input_index: int = 0, output_index: int = 0) -> Node:
    """Add a node on the edge to one input: the node reads what the input read, the input reads the node.

    Parameters
    ----------
    dst
        The input, which is linked.
    op_desc
        Operator of the new node.
    input_index, output_index
        Input and output of the new node that take the edge.

    Raises
    ------
    GraphError
        The input does not exist or is not linked; the new node has no such input or output, or its name is taken.

    Examples
    --------
    >>> from gevar.types import DataType, Format, TensorDesc
    >>> row = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (1, 4))
    >>> graph = ComputeGraph("main")
    >>> x = graph.add_node(OpDesc("x", "Data", outputs=[row]))
    >>> y = graph.add_node(OpDesc("y", "Relu", inputs=[row], outputs=[row]))
    >>> x.out_data_anchor(0).link_to(y.in_data_anchor(0))
    >>> cast = insert_node_before(y.in_data_anchor(0), OpDesc("cast", "Cast", inputs=[row], outputs=[row]))
    >>> cast.in_data_nodes[0].name, y.in_data_nodes[0].name
    ('x', 'cast')
    """
    dst.node.in_data_anchor(dst.idx)
    source = dst.peer
    if source is None:
        raise dst.node._error(f"input {dst.idx} is not linked, so nothing goes before it")
    return insert_node_after(source, op_desc, [dst], input_index=input_index, output_index=output_index)


def insert_node_after(
    src: OutDataAnchor,
    op_desc: OpDesc,
    dsts: Sequence[InDataAnchor] | None = None,
    *,
    input_index: int = 0,
    output_index: int = 0,
) -> Node:
    """Add a node that reads an output, and let some inputs that read it, by default all, read the node instead.

    Raises
    ------
    GraphError
        The output does not exist, or one of the inputs does not read it; the new node has no such input or output, or
        its name is taken.

    Source: GE source, graph_metadef/graph/utils/graph_utils.cc, GraphUtils::InsertNodeAfter.
    """
    graph = src.node.owner_compute_graph
    src.node.out_data_anchor(src.idx)
    moved = src.peers if dsts is None else tuple(dict.fromkeys(dsts))
    for dst in moved:
        dst.node.in_data_anchor(dst.idx)
        if dst.peer != src:
            raise dst.node._error(f"input {dst.idx} reads {dst.peer!r}, not {src!r}")
    counts = (("input", input_index, len(op_desc._inputs)), ("output", output_index, len(op_desc._outputs)))
    for side, index, count in counts:
        if not 0 <= index < count:
            raise GraphError(graph.name, f"{side} {index} is asked for, it has {count} {side}s", node=op_desc.name)
    node = graph.add_node(op_desc)
    for dst in moved:
        dst.unlink()
        node._link(OutDataAnchor(node, output_index), dst)
    node._link(src, InDataAnchor(node, input_index))
    return node


def replace_node(node: Node, op_desc: OpDesc) -> Node:
    """Put another operator in the place of a node: edges, ends of the graph, subgraphs and, under one name, order.

    The name may be that of the node. Under another name the new node comes behind the others.

    Raises
    ------
    GraphError
        The new operator has too few inputs or outputs for the edges; its name is taken by a third node; it is in a
        graph already.
    """
    graph = node.owner_compute_graph
    if op_desc._node is not None or op_desc.name != node.name:
        graph._check_new(op_desc)
    _check_enough(node, op_desc, graph)
    new = Node(op_desc, graph)
    _take_edges(new, node)
    op_desc._subgraph_names, node.op_desc._subgraph_names = node.op_desc._subgraph_names, ()
    for name in op_desc._subgraph_names:
        subgraph = graph.root._subgraphs.get(name)
        if subgraph is not None and subgraph._parent_node is node:
            subgraph._parent_node = new
    if graph._is_end(node):
        graph._inputs = [new if kept is node else kept for kept in graph._inputs]
        graph._outputs = [OutDataAnchor(new, out.idx) if out.node is node else out for out in graph._outputs]
    if op_desc.name != node.name:
        del graph._nodes[node.name]
    graph._nodes[op_desc.name] = new
    node._graph = node.op_desc._node = None
    return new


def isolate_node(node: Node, io_map: Sequence[int | None] = ()) -> None:
    """Take a node out of the flow: consumers of an output read what one of its inputs read; every order stays.

    Whatever ran before the node still runs before what ran after it: control edges say so, where no consumer was linked
    to that producer here. The node stays in the graph, without edges.

    Parameters
    ----------
    node
        The node.
    io_map
        For each output, the input whose producer takes it over; None, -1 or nothing removes the edges to it.

    Raises
    ------
    GraphError
        The map is longer than the outputs, or names an input that is not there; the node is in no graph.

    Source: GE source, graph_metadef/graph/utils/graph_utils.cc, GraphUtils::IsolateNode.
    """
    node.owner_compute_graph  # noqa: B018
    if len(io_map) > len(node._outputs):
        raise node._error(f"the map has {len(io_map)} entries, the node has {len(node._outputs)} outputs")
    wanted = [-1 if index is None else index for index in io_map]
    for index in wanted:
        if index != -1:
            node.in_data_anchor(index)
    before, after = node.in_nodes, node.out_nodes
    linked: set[tuple[Node, Node]] = set()
    for output, index in enumerate(wanted):
        source = node._inputs[index] if index >= 0 else None
        if source is not None and source.node is not node:
            for dst in node.out_data_anchor(output).peers:
                dst.unlink()
                node._link(source, dst)
                linked.add((source.node, dst.node))
    node.unlink_all()
    for producer in before:
        for consumer in after:
            if producer is not consumer and node not in (producer, consumer) and (producer, consumer) not in linked:
                producer._link_control(consumer)


def copy_in_ctrl_edges(src: Node, dst: Node) -> None:
    """Let every node with a control edge to `src` have one to `dst` too, except `dst` itself.

    Raises
    ------
    GraphError
        The nodes are not in one graph.
    """
    src._check_same_graph(dst)
    for before in src.in_control_nodes:
        if before is not dst:
            before._link_control(dst)


def move_in_ctrl_edges(src: Node, dst: Node) -> None:
    """Move the control edges to `src` over to `dst`; errors are those of `copy_in_ctrl_edges`."""
    if src is not dst:
        copy_in_ctrl_edges(src, dst)
        src.in_control_anchor.unlink_all()


def move_out_ctrl_edges(src: Node, dst: Node) -> None:
    """Move the control edges from `src` over to `dst`; one to `dst` itself goes.

    Raises
    ------
    GraphError
        The nodes are not in one graph.
    """
    src._check_same_graph(dst)
    if src is dst:
        return
    for after in src.out_control_nodes:
        src._unlink_control(after)
        if after is not dst:
            dst._link_control(after)


def move_output_edges(src: Node, dst: Node) -> None:
    """Move all edges from `src`, of data output by output and of control, over to `dst`.

    Raises
    ------
    GraphError
        The nodes are not in one graph, or `dst` has not as many outputs as `src`.
    """
    src._check_same_graph(dst)
    if len(src._outputs) != len(dst._outputs):
        raise src._error(f"has {len(src._outputs)} outputs, {dst.name!r} has {len(dst._outputs)}; they must be equal")
    if src is dst:
        return
    for out in src.out_data_anchors:
        for peer in out.peers:
            peer.unlink()
            dst._link(OutDataAnchor(dst, out.idx), peer)
    move_out_ctrl_edges(src, dst)


def _check_enough(node: Node, op_desc: OpDesc, graph: ComputeGraph) -> None:
    """Raise where an operator lacks inputs or outputs that the edges of a node need."""
    inputs = [index for index, peer in enumerate(node._inputs) if peer is not None]
    outputs = [index for index, peers in enumerate(node._outputs) if peers]
    if graph._is_end(node):
        outputs += [out.idx for out in graph._outputs if out.node is node]
    needs = (("inputs", inputs, len(op_desc._inputs)), ("outputs", outputs, len(op_desc._outputs)))
    for side, used, count in needs:
        if used and max(used) >= count:
            raise GraphError(graph.name, f"has {count} {side}, {node.name!r} uses {max(used) + 1}", node=op_desc.name)
    if op_desc._subgraph_names:
        raise GraphError(graph.name, "names subgraphs of its own; give an operator without", node=op_desc.name)


def _take_edges(new: Node, node: Node) -> None:
    for out in node.out_data_anchors:
        for peer in out.peers:
            peer.unlink()
            new._link(OutDataAnchor(new, out.idx), peer)
    for anchor in node.in_data_anchors:
        source = anchor.peer
        if source is not None:
            anchor.unlink()
            new._link(source, InDataAnchor(new, anchor.idx))
    for before in node.in_control_nodes:
        before._unlink_control(node)
        before._link_control(new)
    for after in node.out_control_nodes:
        node._unlink_control(after)
        new._link_control(after)
