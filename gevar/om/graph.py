"""The graphs of a model, and the order in which a loader meets their nodes."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gevar.om.node import OmNode


class OmGraph(NamedTuple):
    """A graph of a model: its name and its nodes in stored order."""

    name: str
    nodes: tuple[OmNode, ...]


def load_order(graphs: Sequence[OmGraph]) -> Iterator[OmNode]:
    """Yield the nodes of all graphs: the root's in stored order, those of a subgraph directly after its owner.

    A graph is met once; where two have one name, the first counts. Subgraphs without an owner come last.

    Source: GE source, graph_metadef/graph/normal_graph/compute_graph.cc, ComputeGraphImpl::AllGraphNodes.
    """
    index_of: dict[str, int] = {}
    for index, graph in enumerate(graphs):
        index_of.setdefault(graph.name, index)
    met: set[int] = set()
    for start in range(len(graphs)):
        if start not in met:
            met.add(start)
            yield from _from_graph(start, graphs, index_of, met)


def _from_graph(start: int, graphs: Sequence[OmGraph], index_of: dict[str, int], met: set[int]) -> Iterator[OmNode]:
    stack = [iter(graphs[start].nodes)]
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
            continue
        yield node
        owned = [index_of[name] for name in dict.fromkeys(node.subgraph_names) if name in index_of]
        for index in reversed([index for index in owned if index not in met]):
            met.add(index)
            stack.append(iter(graphs[index].nodes))
