"""A node of a graph: an operator and its edges."""

from typing import TYPE_CHECKING

from gevar.errors import GraphError
from gevar.graph.anchor import InControlAnchor, InDataAnchor, OutControlAnchor, OutDataAnchor
from gevar.graph.op_desc import OpDesc

if TYPE_CHECKING:
    from gevar.graph.compute_graph import ComputeGraph


class Node:
    """A node of a graph, made by `ComputeGraph.add_node`.

    It has a data anchor for each input and output of its operator, and two control anchors. Nodes compare by identity.

    Attributes
    ----------
    op_desc : OpDesc
        The operator.

    Source: GE source, graph_metadef/graph/normal_graph/node.cc, Node.
    """

    __slots__ = ("_graph", "_in_controls", "_inputs", "_out_controls", "_outputs", "_stored_inputs", "op_desc")

    def __init__(self, op_desc: OpDesc, graph: "ComputeGraph") -> None:
        self.op_desc = op_desc
        self._graph: ComputeGraph | None = graph
        self._inputs: list[OutDataAnchor | None] = [None] * len(op_desc._inputs)
        self._outputs: list[dict[InDataAnchor, None]] = [{} for _ in op_desc._outputs]
        self._in_controls: dict[Node, None] = {}
        self._out_controls: dict[Node, None] = {}
        self._stored_inputs: tuple[str, ...] = ()
        op_desc._node = self

    def __repr__(self) -> str:
        place = "no graph" if self._graph is None else f"graph {self._graph.name}"
        return f"<Node {self.name} ({self.type}) of {place}>"

    @property
    def name(self) -> str:
        """Name of the operator."""
        return self.op_desc._name

    @property
    def type(self) -> str:
        """Operator type."""
        return self.op_desc.type

    @property
    def owner_compute_graph(self) -> "ComputeGraph":
        """Graph that the node is in.

        Raises
        ------
        GraphError
            It was removed from its graph.
        """
        if self._graph is None:
            raise GraphError(None, "was removed from its graph", node=self.name)
        return self._graph

    @property
    def subgraphs(self) -> tuple["ComputeGraph", ...]:
        """Graphs that the node runs, in the order of `OpDesc.subgraph_instance_names`.

        Raises
        ------
        GraphError
            A graph of that name is not there; the node was removed from its graph.
        """
        graphs, names = self.owner_compute_graph.root._subgraphs, self.op_desc._subgraph_names
        missing = next((name for name in names if name not in graphs), None)
        if missing is not None:
            raise self._error(f"there is no subgraph {missing!r}, {len(graphs)} others are there")
        return tuple(graphs[name] for name in names)

    def in_data_anchor(self, index: int) -> InDataAnchor:
        """Return the anchor of one input.

        Raises
        ------
        GraphError
            There is no such input.
        """
        self._check_index(index, len(self._inputs), "input")
        return InDataAnchor(self, index)

    def out_data_anchor(self, index: int) -> OutDataAnchor:
        """Return the anchor of one output.

        Raises
        ------
        GraphError
            There is no such output.
        """
        self._check_index(index, len(self._outputs), "output")
        return OutDataAnchor(self, index)

    @property
    def in_data_anchors(self) -> tuple[InDataAnchor, ...]:
        """Anchors of all inputs."""
        return tuple(InDataAnchor(self, index) for index in range(len(self._inputs)))

    @property
    def out_data_anchors(self) -> tuple[OutDataAnchor, ...]:
        """Anchors of all outputs."""
        return tuple(OutDataAnchor(self, index) for index in range(len(self._outputs)))

    @property
    def in_control_anchor(self) -> InControlAnchor:
        """Anchor of incoming control edges."""
        return InControlAnchor(self)

    @property
    def out_control_anchor(self) -> OutControlAnchor:
        """Anchor of outgoing control edges."""
        return OutControlAnchor(self)

    @property
    def in_data_nodes(self) -> tuple["Node", ...]:
        """Producers, one for each linked input in index order; a node may be there more than once."""
        return tuple(peer.node for peer in self._inputs if peer is not None)

    @property
    def out_data_nodes(self) -> tuple["Node", ...]:
        """Consumers, one for each data edge, output by output; a node may be there more than once."""
        return tuple(peer.node for peers in self._outputs for peer in peers)

    @property
    def in_control_nodes(self) -> tuple["Node", ...]:
        """Nodes with a control edge to this one."""
        return tuple(self._in_controls)

    @property
    def out_control_nodes(self) -> tuple["Node", ...]:
        """Nodes with a control edge from this one."""
        return tuple(self._out_controls)

    @property
    def in_nodes(self) -> tuple["Node", ...]:
        """Producers of data and of control, each once."""
        return tuple(dict.fromkeys((*self.in_data_nodes, *self._in_controls)))

    @property
    def out_nodes(self) -> tuple["Node", ...]:
        """Consumers of data and of control, each once."""
        return tuple(dict.fromkeys((*self.out_data_nodes, *self._out_controls)))

    def link_control_to(self, after: "Node") -> None:
        """Add a control edge to a node, if there is none; errors are those of `OutControlAnchor.link_to`."""
        self._link_control(after)

    def unlink_all(self) -> None:
        """Remove all edges of the node."""
        for anchor in self.in_data_anchors:
            anchor.unlink()
        for out_anchor in self.out_data_anchors:
            out_anchor.unlink_all()
        self.in_control_anchor.unlink_all()
        self.out_control_anchor.unlink_all()

    def _grow(self) -> None:
        """Follow the operator, which got an input or output."""
        self._inputs.extend([None] * (len(self.op_desc._inputs) - len(self._inputs)))
        while len(self._outputs) < len(self.op_desc._outputs):
            self._outputs.append({})

    def _check_index(self, index: int, count: int, side: str) -> None:
        if not 0 <= index < count:
            raise self._error(f"{side} {index} is asked for, it has {count} {side}s")

    def _check_link(self, source: OutDataAnchor, target: InDataAnchor) -> None:
        """Raise where a data edge cannot be added."""
        source.node._check_index(source.idx, len(source.node._outputs), "output")
        target.node._check_index(target.idx, len(target.node._inputs), "input")
        source.node._check_same_graph(target.node)
        if (peer := target.peer) is not None:
            raise target.node._error(f"input {target.idx} reads {peer!r} already; unlink it before it reads {source!r}")

    def _check_same_graph(self, other: "Node") -> None:
        if self.owner_compute_graph is not other.owner_compute_graph:
            graphs = f"{self.owner_compute_graph.name!r} and {other.owner_compute_graph.name!r}"
            raise self._error(f"is to be linked with {other.name!r}, they are in graphs {graphs}")

    @staticmethod
    def _link(source: OutDataAnchor, target: InDataAnchor) -> None:
        target.node._inputs[target.idx] = source
        source.node._outputs[source.idx][target] = None

    @staticmethod
    def _unlink(target: InDataAnchor) -> None:
        source = target.node._inputs[target.idx]
        if source is not None:
            del source.node._outputs[source.idx][target]
            target.node._inputs[target.idx] = None

    def _link_control(self, after: "Node") -> None:
        self._check_same_graph(after)
        self._out_controls[after] = None
        after._in_controls[self] = None

    def _unlink_control(self, after: "Node") -> None:
        self._out_controls.pop(after, None)
        after._in_controls.pop(self, None)

    def _error(self, reason: str) -> GraphError:
        return GraphError(None if self._graph is None else self._graph.name, reason, node=self.name)
