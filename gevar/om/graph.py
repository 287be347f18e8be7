"""The graphs of a model, and the order in which a loader meets their nodes."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gevar.graph.all_nodes import nodes_from
from gevar.om.model_def import DecodedModelDef
from gevar.om.node import NodeReader, OmNode
from gevar.om.op_def import Apart

_NOTHING: Final = Apart()


class OmGraph(NamedTuple):
    """A graph of a model: its name and its nodes in stored order."""

    name: str
    nodes: tuple[OmNode, ...]


def om_graphs(decoded: DecodedModelDef, reader: NodeReader) -> tuple[OmGraph, ...]:
    """Return the graphs of a model definition, as stored."""
    found = []
    for at, graph in enumerate(decoded.message.graph):
        places = ((at, number) for number in range(len(graph.op)))
        nodes = zip(graph.op, places, strict=True)
        found.append(
            OmGraph(
                graph.name,
                tuple(OmNode(op, graph.name, reader, decoded.apart.get(place, _NOTHING)) for op, place in nodes),
            )
        )
    return tuple(found)


def load_order(graphs: Sequence[OmGraph]) -> Iterator[OmNode]:
    """Yield the nodes of all graphs: the root's in stored order, those of a subgraph directly after its owner.

    A graph is met once; where two have one name, the first counts. Subgraphs without an owner come last.

    Source: GE source, graph_metadef/graph/normal_graph/compute_graph.cc, ComputeGraphImpl::AllGraphNodes.
    """
    if len(graphs) == 1:
        yield from graphs[0].nodes
        return
    index_of: dict[str, int] = {}
    for index, graph in enumerate(graphs):
        index_of.setdefault(graph.name, index)
    met: set[int] = set()

    def owned(node: OmNode) -> list[int]:
        return [index_of[name] for name in node.subgraph_names if name in index_of]

    for start in range(len(graphs)):
        if start not in met:
            yield from nodes_from(start, met, lambda index: graphs[index].nodes, owned)
