"""The order in which GE meets the nodes of a graph and its subgraphs, for any kind of node.

Source: GE source, graph_metadef/graph/normal_graph/compute_graph.cc, ComputeGraphImpl::AllGraphNodes.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

G = TypeVar("G", bound=Hashable)
N = TypeVar("N")


def nodes_from(
    start: G, met: set[G], nodes: Callable[[G], Iterable[N]], subgraphs: Callable[[N], Iterable[G]]
) -> Iterator[N]:
    """Yield the nodes of a graph, those of its subgraphs at every level directly after the node that runs them.

    Parameters
    ----------
    start
        The graph.
    met
        Graphs that were met already, which are not met again; what is met is added.
    nodes
        Gives the nodes of a graph in order.
    subgraphs
        Gives the graphs that a node runs, in order.
    """
    met.add(start)
    stack = [iter(nodes(start))]
    while stack:
        for node in stack[-1]:
            yield node
            new = [graph for graph in dict.fromkeys(subgraphs(node)) if graph not in met]
            if new:
                met.update(new)
                stack.extend(iter(nodes(graph)) for graph in reversed(new))
                break
        else:
            stack.pop()
