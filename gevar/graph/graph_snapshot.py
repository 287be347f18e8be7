"""Taking back everything that was done to a graph and its subgraphs, if a part of it fails."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from gevar.graph.attr_map import AttrMap
from gevar.graph.compute_graph import ComputeGraph
from gevar.graph.node import Node

_GRAPH_SLOTS = ("_inputs", "_outputs", "_stored_ends", "_rest", "_parent_node", "_root", "graph_id", "session_id")
_OP_DESC_SLOTS = ("_name", "_node", "_rest", "_subgraph_names", "id", "stream_id", "type")


def _kept(attrs: AttrMap) -> Mapping[str, bytes]:
    """What attributes are now; only a dict can change, others are shared."""
    return dict(attrs._wires) if isinstance(attrs._wires, dict) else attrs._wires


class _NodeState:
    """A node, its operator and its edges at one moment; node and operator stay the same objects."""

    __slots__ = ("attrs", "edges", "graph", "node", "op_desc", "plain", "sides", "stored_inputs", "wires")

    def __init__(self, node: Node) -> None:
        self.node, self.op_desc = node, node.op_desc
        self.graph, self.stored_inputs = node._graph, node._stored_inputs
        self.edges = (list(node._inputs), [dict(peers) for peers in node._outputs])
        self.sides = (dict(node._in_controls), dict(node._out_controls))
        op_desc = self.op_desc
        self.plain = [getattr(op_desc, slot) for slot in _OP_DESC_SLOTS]
        self.attrs = (op_desc.attrs, list(op_desc._inputs), list(op_desc._outputs))
        self.wires = _kept(op_desc.attrs)

    def restore(self) -> None:
        node, op_desc = self.node, self.op_desc
        node.op_desc, node._graph, node._stored_inputs = op_desc, self.graph, self.stored_inputs
        node._inputs, node._outputs = self.edges
        node._in_controls, node._out_controls = self.sides
        for slot, value in zip(_OP_DESC_SLOTS, self.plain, strict=True):
            setattr(op_desc, slot, value)
        op_desc.attrs, op_desc._inputs, op_desc._outputs = self.attrs
        op_desc.attrs._wires = self.wires


class _GraphState:
    """A graph at one moment."""

    def __init__(self, graph: ComputeGraph) -> None:
        self.graph = graph
        self.plain = [getattr(graph, slot) for slot in _GRAPH_SLOTS]
        self.tables = (dict(graph._nodes), dict(graph._subgraphs))
        self.attrs, self.wires = graph.attrs, _kept(graph.attrs)
        self.nodes = [_NodeState(node) for node in graph]

    def restore(self) -> None:
        graph = self.graph
        for slot, value in zip(_GRAPH_SLOTS, self.plain, strict=True):
            setattr(graph, slot, value)
        graph._nodes, graph._subgraphs = self.tables
        graph.attrs, graph.attrs._wires = self.attrs, self.wires
        for node in self.nodes:
            node.restore()


@contextmanager
def taken_back_on_failure(root: ComputeGraph) -> Iterator[None]:
    """Make a graph and its subgraphs what they were before a block, if the block raises.

    Nodes and graphs are the same objects then as before; what the block added is in no graph. Time and memory are those
    of the nodes, edges and attributes.

    Parameters
    ----------
    root
        The graph; a root, since subgraphs belong to it.

    Raises
    ------
    ValueError
        The graph is a subgraph.

    Thread safety: no other thread may use the graph meanwhile.

    Examples
    --------
    >>> from gevar.graph import OpDesc
    >>> graph = ComputeGraph("main")
    >>> try:
    ...     with taken_back_on_failure(graph):
    ...         _ = graph.add_node(OpDesc("x", "NoOp"))
    ...         raise KeyError("x")
    ... except KeyError:
    ...     len(graph)
    0
    """
    if root.root is not root:
        raise ValueError(f"graph {root.name!r} is a subgraph; give its root {root.root.name!r}")
    states = [_GraphState(graph) for graph in (root, *root.all_subgraphs())]
    try:
        yield
    except BaseException:
        known = {id(state.graph) for state in states}
        for graph in (root, *root.all_subgraphs()):
            added = list(graph) if id(graph) in known else []
            for node in added:
                node._graph = node.op_desc._node = None
        for state in states:
            state.restore()
        raise
