"""A graph: nodes by name in insertion order, its inputs and outputs, and the subgraphs that its nodes run."""

from collections.abc import Iterator, Sequence, ValuesView
from typing import Final

from gevar.errors import GraphError
from gevar.graph.anchor import OutDataAnchor
from gevar.graph.attr_map import AttrMap
from gevar.graph.node import Node
from gevar.graph.op_desc import OpDesc
from gevar.graph.sharing import Sharing
from gevar.graph.subgraphs import SubgraphOwner
from gevar.proto import ge_ir

_NOT_THERE: Final = "there is no such node"


class ComputeGraph(SubgraphOwner):
    """A graph of operators.

    It is a collection of its direct nodes in insertion order: `len`, iteration, `name in graph`, `graph[name]`. Every
    edit is checked before anything changes, so a refused one leaves the graph as it was.

    Parameters
    ----------
    name
        Name of the graph, unique in a model.

    Attributes
    ----------
    attrs : AttrMap
        Attributes of the graph.
    graph_id, session_id : int
        Numbers that GE gives a graph while it compiles it; no message has them.

    Thread safety: any thread may read while none edits.

    Source: GE source, graph_metadef/graph/normal_graph/compute_graph.cc, ComputeGraph.

    Examples
    --------
    >>> from gevar.types import DataType, Format, TensorDesc
    >>> row = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (1, 4))
    >>> graph = ComputeGraph("main")
    >>> y = graph.add_node(OpDesc("y", "Relu", inputs=[row], outputs=[row]))
    >>> x = graph.add_node(OpDesc("x", "Data", outputs=[row]))
    >>> x.out_data_anchor(0).link_to(y.in_data_anchor(0))
    >>> graph.topological_sorting()
    >>> [node.name for node in graph], graph["y"].in_data_anchors[0].peer
    (['x', 'y'], x:0)
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._nodes: dict[str, Node] = {}
        self._inputs: list[Node] = []
        self._outputs: list[OutDataAnchor] = []
        self._known_ends: tuple[list[Node], list[OutDataAnchor], set[Node]] = (self._inputs, self._outputs, set())
        self._stored_ends: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        self._rest = b""
        self.attrs = AttrMap()
        self.graph_id = 0
        self.session_id = 0

    @classmethod
    def from_proto(cls, graph: ge_ir.GraphDef, sharing: Sharing | None = None) -> "ComputeGraph":
        """Return the graph that a message holds; the message may go afterwards.

        Names of subgraphs stay names: `Model.from_proto` has the graphs.

        Raises
        ------
        GraphError
            Two nodes have one name; an edge, input or output names a node that is not there, an output that its
            producer does not have, or no number; a node has more edges than inputs.
        """
        from gevar.graph.graph_message import read_graph

        return read_graph(graph, ((op, {}) for op in graph.op), sharing or Sharing())

    def to_proto(self) -> ge_ir.GraphDef:
        """Return the message, without subgraphs; of an unchanged graph it equals the one that was read."""
        message = ge_ir.GraphDef()
        self.write_to(message)
        return message

    def write_to(self, message: ge_ir.GraphDef) -> None:
        """Put the graph into an empty message."""
        from gevar.graph.graph_message import write_graph

        write_graph(self, message)

    def __repr__(self) -> str:
        return f"<ComputeGraph {self._name}: {len(self._nodes)} nodes, {len(self._subgraphs)} subgraphs>"

    def __len__(self) -> int:
        return len(self._nodes)

    def __bool__(self) -> bool:
        """Return True: an empty graph is a graph."""
        return True

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    def __getitem__(self, name: str) -> Node:
        """Return the node of a name.

        Raises
        ------
        GraphError
            There is none.
        """
        node = self._nodes.get(name)
        if node is None:
            raise GraphError(self._name, _NOT_THERE, node=name)
        return node

    def find_node(self, name: str) -> Node | None:
        """Return the node of a name, None where there is none."""
        return self._nodes.get(name)

    @property
    def direct_nodes(self) -> ValuesView[Node]:
        """Nodes of this graph alone, in insertion order; a view that follows the graph."""
        return self._nodes.values()

    @property
    def inputs(self) -> tuple[Node, ...]:
        """Nodes that bring data into the graph."""
        return tuple(self._inputs)

    @property
    def outputs(self) -> tuple[OutDataAnchor, ...]:
        """Outputs of nodes that are outputs of the graph."""
        return tuple(self._outputs)

    def set_inputs(self, nodes: Sequence[Node]) -> None:
        """Say which nodes bring data into the graph.

        Raises
        ------
        GraphError
            One is in another graph.
        """
        for node in nodes:
            self._check_own(node)
        self._inputs = list(nodes)

    def set_outputs(self, anchors: Sequence[OutDataAnchor]) -> None:
        """Say which outputs of nodes are outputs of the graph.

        Raises
        ------
        GraphError
            One is in another graph, or its node has no such output.
        """
        for node, index in anchors:
            self._check_own(node)
            node.out_data_anchor(index)
        self._outputs = list(anchors)

    def add_node(self, op_desc: OpDesc) -> Node:
        """Add a node behind the others, without edges.

        Raises
        ------
        GraphError
            The name is taken; the operator is in a graph already, `OpDesc.copy` makes another.
        """
        self._check_new(op_desc)
        node = self._nodes[op_desc.name] = Node(op_desc, self)
        return node

    def remove_node(self, node: Node) -> None:
        """Remove a node, its edges, and the subgraphs that it runs, at every level.

        Inputs and outputs of the graph that are the node's go too.

        Raises
        ------
        GraphError
            It is in another graph.

        Source: GE source, graph_metadef/graph/utils/graph_utils.cc, GraphUtils::RemoveNodeWithoutRelink.
        """
        self._check_own(node)
        self._drop_subgraphs(node)
        node.unlink_all()
        if self._is_end(node):
            self._inputs = [kept for kept in self._inputs if kept is not node]
            self._outputs = [kept for kept in self._outputs if kept.node is not node]
        del self._nodes[node.name]
        node._graph = node.op_desc._node = None

    def rename_node(self, node: Node, name: str) -> None:
        """Give a node another name; it keeps its edges and its place.

        Raises
        ------
        GraphError
            The name is taken, or the node is in another graph.
        ValueError
            The name is empty or no UTF-8 text.
        """
        self._check_own(node)
        if name == node.name:
            return
        self._check_new(OpDesc(name, node.type or "unnamed"))
        nodes = {name if other is node else known: other for known, other in self._nodes.items()}
        node.op_desc._name = name
        self._nodes = nodes

    def topological_order(self) -> list[Node]:
        """Return the direct nodes so that each comes after those it depends on.

        Raises
        ------
        GraphError
            There is a cycle; the message names nodes of one.
        """
        from gevar.graph.topological_sorting import topological_order

        return topological_order(self)

    def topological_sorting(self) -> None:
        """Put the nodes of the graph and of its subgraphs into topological order and number them from 0.

        The number is `OpDesc.id`, in the order of `all_nodes`.

        Raises
        ------
        GraphError
            There is a cycle, or a subgraph is not there; no order and no number changes.

        Source: GE source, graph_metadef/graph/normal_graph/compute_graph.cc, ComputeGraphImpl::TopologicalSorting.
        """
        graphs = [self, *self.all_subgraphs()]
        orders = [graph.topological_order() for graph in graphs]
        for graph, order in zip(graphs, orders, strict=True):
            graph._nodes = {node.name: node for node in order}
        for number, node in enumerate(self.all_nodes()):
            node.op_desc.id = number

    def _is_end(self, node: Node) -> bool:
        """Tell whether a node brings data into the graph or has an output of it; the two lists are never changed."""
        inputs, outputs, ends = self._known_ends
        if inputs is not self._inputs or outputs is not self._outputs:
            ends = {*self._inputs, *(anchor.node for anchor in self._outputs)}
            self._known_ends = (self._inputs, self._outputs, ends)
        return node in ends

    def _check_own(self, node: Node) -> None:
        if node._graph is not self:
            place = "no graph" if node._graph is None else f"graph {node._graph.name!r}"
            raise GraphError(self._name, f"is not in this graph, it is in {place}", node=node.name)

    def _check_new(self, op_desc: OpDesc) -> None:
        if op_desc.name in self._nodes:
            raise GraphError(self._name, "the name is taken by another node", node=op_desc.name)
        if op_desc._node is not None:
            raise GraphError(self._name, "the operator is in a graph already; add a copy of it", node=op_desc.name)
