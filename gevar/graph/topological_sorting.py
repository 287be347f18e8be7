"""Topological order as GE's breadth-first sorting gives it.

Nodes without producers start, first those that bring data in, then the others, each in the order of the graph. Next
comes what a node has made ready, by name, before the next start. An edge from a NextIteration closes a loop and does
not count.

Source: GE source, graph_metadef/graph/normal_graph/compute_graph.cc, ComputeGraphImpl::BFSTopologicalSorting; the
order is that of models written by GE's own tools.
"""

from collections import deque
from typing import TYPE_CHECKING, Final

from gevar.errors import GraphError
from gevar.graph.node import Node

if TYPE_CHECKING:
    from gevar.graph.compute_graph import ComputeGraph

_DATA_TYPES: Final = frozenset({"Data", "AippData", "AnnData", "RefData", "Input"})
_NEXT_ITERATION_TYPES: Final = frozenset({"NextIteration", "RefNextIteration"})
_NAMES_IN_MESSAGE: Final = 8


def topological_order(graph: "ComputeGraph") -> list[Node]:
    """Return the direct nodes of a graph so that each comes after those it depends on.

    Time is that of nodes and edges, and of sorting what one node makes ready; nothing recurs.

    Raises
    ------
    GraphError
        There is a cycle; the message names nodes of one.
    """
    waits_for = {node: _in_edge_size(node) for node in graph}
    starts = [node for node, edges in waits_for.items() if not edges]
    starts.sort(key=lambda node: node.type not in _DATA_TYPES)
    order: list[Node] = []
    for start in starts:
        ready = deque([start])
        while ready:
            node = ready.popleft()
            order.append(node)
            if node.type not in _NEXT_ITERATION_TYPES:
                ready.extend(_made_ready(node, waits_for))
    if len(order) < len(waits_for):
        raise GraphError(graph.name, _cycle_text({node for node in waits_for if waits_for[node]}))
    return order


def _in_edge_size(node: Node) -> int:
    """Number of edges that the node waits for."""
    data = sum(peer is not None and peer.node.type not in _NEXT_ITERATION_TYPES for peer in node._inputs)
    return data + sum(before.type not in _NEXT_ITERATION_TYPES for before in node._in_controls)


def _made_ready(node: Node, waits_for: dict[Node, int]) -> list[Node]:
    made = []
    for after in (*node.out_data_nodes, *node._out_controls):
        waits_for[after] -= 1
        if not waits_for[after]:
            made.append(after)
    return made if len(made) < 2 else sorted(made, key=lambda after: after.name)


def _cycle_text(left: set[Node]) -> str:
    """Walk back through nodes that wait until one comes again."""
    node = next(iter(left))
    path: dict[Node, None] = {}
    while node not in path:
        path[node] = None
        node = next(before for before in node.in_nodes if before in left and before.type not in _NEXT_ITERATION_TYPES)
    nodes = list(path)
    cycle = nodes[nodes.index(node) :][::-1]
    names = [repr(member.name) for member in cycle[:_NAMES_IN_MESSAGE]]
    more = f" and {len(cycle) - _NAMES_IN_MESSAGE} more" if len(cycle) > _NAMES_IN_MESSAGE else ""
    return f"{len(left)} nodes have no order; {', '.join(names)}{more} are a cycle of {len(cycle)} nodes"
