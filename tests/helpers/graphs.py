"""Small graphs for tests, and what is in a graph as plain Python values."""

from gevar.graph import ComputeGraph, InDataAnchor, Node, OpDesc, OutDataAnchor
from gevar.types import DataType, Format, TensorDesc

ROW = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (1, 4))


def op(name: str, inputs: int = 1, outputs: int = 1, op_type: str = "Relu") -> OpDesc:
    return OpDesc(name, op_type, inputs=[ROW] * inputs, outputs=[ROW] * outputs)


def link(source: Node, output: int, target: Node, index: int) -> None:
    OutDataAnchor(source, output).link_to(InDataAnchor(target, index))


def graph_of(text: str) -> ComputeGraph:
    """Make a graph from lines `name[/inputs/outputs[/type]]`, `a:0 -> b:1` and `a => b`."""
    graph = ComputeGraph("main")
    for line in filter(None, map(str.strip, text.split(";"))):
        if "->" in line:
            (source, output), (target, index) = (end.strip().split(":") for end in line.split("->"))
            link(graph[source], int(output), graph[target], int(index))
        elif "=>" in line:
            before, after = (graph[name.strip()] for name in line.split("=>"))
            before.link_control_to(after)
        else:
            name, *rest = line.split("/")
            counts = [int(count) for count in rest[:2]] or [1, 1]
            graph.add_node(op(name, *counts, *rest[2:]))
    return graph


def edges(graph: ComputeGraph) -> set[str]:
    """Return the edges as texts, after a check that both ends agree."""
    found = set()
    for node in graph:
        assert graph[node.name] is node
        assert node.owner_compute_graph is graph
        for anchor in node.in_data_anchors:
            if anchor.peer is not None:
                assert anchor in anchor.peer.peers
                assert anchor.peer.node.owner_compute_graph is graph
                found.add(f"{anchor.peer!r} -> {anchor!r}")
        for out in node.out_data_anchors:
            assert all(peer.peer == out for peer in out.peers)
        for before in node.in_control_nodes:
            assert node in before.out_control_nodes
            found.add(f"{before.name} => {node.name}")
        assert all(node in after.in_control_nodes for after in node.out_control_nodes)
    return found
