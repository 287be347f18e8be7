"""Subgraphs: the graphs that nodes run. The root graph knows all of them by name, at every level."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from gevar.errors import GraphError
from gevar.graph.all_nodes import nodes_from
from gevar.graph.node import Node

if TYPE_CHECKING:
    from gevar.graph.compute_graph import ComputeGraph


class SubgraphOwner:
    """The part of a graph that knows its subgraphs and the node that runs it; see `ComputeGraph`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._subgraphs: dict[str, ComputeGraph] = {}
        self._parent_node: Node | None = None
        self._root: ComputeGraph | None = None

    @abstractmethod
    def __iter__(self) -> Iterator[Node]:
        """Yield the direct nodes."""

    @property
    def name(self) -> str:
        """Name of the graph."""
        return self._name

    @property
    def root(self) -> "ComputeGraph":
        """Graph that knows the subgraphs: this one, if no node runs it."""
        return cast("ComputeGraph", self) if self._root is None else self._root

    @property
    def parent_node(self) -> Node | None:
        """Node that runs this graph, None for a root."""
        return self._parent_node

    @property
    def parent_graph(self) -> "ComputeGraph | None":
        """Graph of the node that runs this graph, None for a root."""
        return None if self._parent_node is None else self._parent_node.owner_compute_graph

    def subgraph(self, name: str) -> "ComputeGraph":
        """Return a subgraph of the root by name.

        Raises
        ------
        GraphError
            There is none.
        """
        found = self.root._subgraphs.get(name)
        if found is None:
            raise GraphError(self._name, f"there is no subgraph {name!r}, {len(self.root._subgraphs)} others are there")
        return found

    def all_subgraphs(self) -> tuple["ComputeGraph", ...]:
        """Return all subgraphs that a root knows, in the order in which they came; none for a subgraph."""
        return tuple(self._subgraphs.values())

    def all_nodes(self) -> Iterator[Node]:
        """Yield the nodes, those of its subgraphs at every level directly after the node that runs them.

        A subgraph is met once. Those whose owner is not known come last. No edit may happen meanwhile.

        Raises
        ------
        GraphError
            A node names a subgraph that is not there.

        Source: GE source, graph_metadef/graph/normal_graph/compute_graph.cc, ComputeGraphImpl::AllGraphNodes.
        """
        met: set[SubgraphOwner] = set()
        for graph in (self, *self._subgraphs.values()):
            if graph is self or (graph._parent_node is None and graph not in met):
                yield from nodes_from(graph, met, iter, _subgraphs_of)

    def add_subgraph(self, node: Node, subgraph: "ComputeGraph") -> None:
        """Let a node run a graph, which comes with the subgraphs that it has.

        The graph's name is added to the operator's subgraphs, unless it is there without a graph.

        Raises
        ------
        GraphError
            The node is in another graph; the subgraph is run by another node, or is the root here; the name of it or of
            one of its subgraphs is taken.
        """
        if node._graph is not self:
            raise GraphError(self._name, f"does not have the node that is to run {subgraph.name!r}", node=node.name)
        if subgraph._root is not None or subgraph is self.root:
            raise GraphError(self._name, f"{subgraph.name!r} is in a model already", node=node.name)
        if subgraph.name not in node.op_desc._subgraph_names:
            names = (*node.op_desc._subgraph_names, subgraph.name)
        else:
            names = node.op_desc._subgraph_names
        self.root._register((subgraph, *subgraph._subgraphs.values()))
        node.op_desc._subgraph_names = names
        subgraph._parent_node = node
        subgraph._subgraphs = {}

    def remove_subgraph(self, subgraph: "ComputeGraph") -> None:
        """Take a subgraph out; it becomes a root of its own, with the subgraphs that its nodes run.

        Raises
        ------
        GraphError
            It is not a subgraph of the same root.
        """
        if subgraph._root is not self.root:
            raise GraphError(self._name, f"{subgraph.name!r} is no subgraph here")
        node = subgraph._parent_node
        if node is not None:
            kept = tuple(name for name in node.op_desc._subgraph_names if name != subgraph.name)
            node.op_desc._subgraph_names = kept
        _detach(subgraph, self.root)

    def _register(self, subgraphs: tuple["ComputeGraph", ...]) -> None:
        """Make subgraphs known to this root."""
        taken = {self._name, *self._subgraphs}
        for subgraph in subgraphs:
            if subgraph.name in taken:
                raise GraphError(self._name, f"graph name {subgraph.name!r} is taken in this model")
            taken.add(subgraph.name)
        for subgraph in subgraphs:
            self._subgraphs[subgraph.name] = subgraph
            subgraph._root = cast("ComputeGraph", self)

    def _drop_subgraphs(self, node: Node) -> None:
        """Take out the subgraphs that a node runs."""
        for name in node.op_desc._subgraph_names:
            subgraph = self.root._subgraphs.get(name)
            if subgraph is not None and subgraph._parent_node is node:
                _detach(subgraph, self.root)
        node.op_desc._subgraph_names = ()


def _subgraphs_of(node: Node) -> "tuple[ComputeGraph, ...]":
    return node.subgraphs if node.op_desc._subgraph_names else ()


def _detach(subgraph: "ComputeGraph", root: "ComputeGraph") -> None:
    """Make a subgraph a root, with those below it."""
    subgraph._parent_node = subgraph._root = None
    del root._subgraphs[subgraph.name]
    open_graphs = [subgraph]
    while open_graphs:
        for node in open_graphs.pop():
            for name in node.op_desc._subgraph_names:
                below = root._subgraphs.get(name)
                if below is not None and below._parent_node is node:
                    del root._subgraphs[name]
                    subgraph._subgraphs[name] = below
                    below._root = subgraph
                    open_graphs.append(below)
