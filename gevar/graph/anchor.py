"""Anchors: the places of a node where edges end.

An anchor is a value, a node and an index (`idx`), made when it is asked for: two of one place are equal, and it unpacks
as `node, idx = anchor`. Edges themselves are kept by the nodes.

Source: GE source, graph_metadef/graph/normal_graph/anchor.cc.
"""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gevar.graph.node import Node


class OutDataAnchor(NamedTuple):
    """An output of a node; any number of inputs read it."""

    node: "Node"
    idx: int

    @property
    def peers(self) -> tuple["InDataAnchor", ...]:
        """Inputs that read this output, in the order in which they were linked.

        Raises
        ------
        GraphError
            The node has no such output.
        """
        self.node._check_index(self.idx, len(self.node._outputs), "output")
        return tuple(self.node._outputs[self.idx])

    def link_to(self, peer: "InDataAnchor") -> None:
        """Add an edge to an input that has none.

        Raises
        ------
        GraphError
            The input is linked; the nodes are not in one graph; one of the anchors does not exist.
        """
        self.node._check_link(self, peer)
        self.node._link(self, peer)

    def unlink_all(self) -> None:
        """Remove the edges to all inputs that read this output; errors are those of `peers`."""
        for peer in self.peers:
            peer.unlink()

    def __repr__(self) -> str:
        return f"{self.node.name}:{self.idx}"


class InDataAnchor(NamedTuple):
    """An input of a node; it reads one output, or none."""

    node: "Node"
    idx: int

    @property
    def peer(self) -> OutDataAnchor | None:
        """Output that this input reads.

        Raises
        ------
        GraphError
            The node has no such input.
        """
        self.node._check_index(self.idx, len(self.node._inputs), "input")
        return self.node._inputs[self.idx]

    def unlink(self) -> None:
        """Remove the edge to this input, if there is one; errors are those of `peer`."""
        if self.peer is not None:
            self.node._unlink(self)

    def __repr__(self) -> str:
        return f"{self.node.name}:{self.idx}"


class OutControlAnchor(NamedTuple):
    """The end of a node where control edges start: what is linked to it runs after the node."""

    node: "Node"

    @property
    def peers(self) -> tuple["InControlAnchor", ...]:
        """Anchors of the nodes that run after this one."""
        return tuple(map(InControlAnchor, self.node._out_controls))

    def link_to(self, peer: "InControlAnchor") -> None:
        """Add a control edge; one that is there already stays the only one.

        Raises
        ------
        GraphError
            The nodes are not in one graph.
        """
        self.node._link_control(peer.node)

    def unlink(self, peer: "InControlAnchor") -> None:
        """Remove a control edge, if there is one."""
        self.node._unlink_control(peer.node)

    def unlink_all(self) -> None:
        """Remove all control edges from the node."""
        for peer in self.peers:
            self.unlink(peer)


class InControlAnchor(NamedTuple):
    """The end of a node where control edges arrive: what is linked to it runs before the node."""

    node: "Node"

    @property
    def peers(self) -> tuple[OutControlAnchor, ...]:
        """Anchors of the nodes that run before this one."""
        return tuple(map(OutControlAnchor, self.node._in_controls))

    def unlink_all(self) -> None:
        """Remove all control edges to the node."""
        for peer in self.peers:
            peer.unlink(self)
