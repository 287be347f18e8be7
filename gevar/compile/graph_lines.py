"""A graph for a person: a line for each node, and what is another between two states of it."""

from collections.abc import Iterator, Mapping

from gevar.compile.descriptions import desc_text, str_attr
from gevar.compile.node_kinds import ref_source
from gevar.graph import ComputeGraph, Node
from gevar.var.var_op import REF_VAR_SRC_VAR_NAME


def graph_lines(graph: ComputeGraph) -> dict[str, str]:
    """Return a line for each node of a graph and its subgraphs, by graph and node name.

    Examples
    --------
    >>> from gevar.graph import OpDesc
    >>> graph = ComputeGraph("main")
    >>> a, b = graph.add_node(OpDesc("a", "NoOp")), graph.add_node(OpDesc("b", "NoOp"))
    >>> a.link_control_to(b)
    >>> list(graph_lines(graph).values())
    ['a NoOp', 'b NoOp after a']
    """
    found = {}
    for node in graph.all_nodes():
        owner = node.owner_compute_graph
        place = f"{owner.name}/{node.name}"
        found[place] = (f"{owner.name}/" if owner is not graph else "") + node_line(node)
    return found


def node_line(node: Node) -> str:
    """Return name, type, producers and what it makes in one line."""
    parts = [node.name, node.type]
    if node.in_data_anchors:
        parts.append(f"({', '.join('-' if a.peer is None else repr(a.peer) for a in node.in_data_anchors)})")
    if node.op_desc.subgraph_instance_names:
        parts.append(f"runs {', '.join(node.op_desc.subgraph_instance_names)}")
    if node.in_control_nodes:
        parts.append(f"after {', '.join(before.name for before in node.in_control_nodes)}")
    if node.op_desc.output_descs:
        parts.append(f"-> {'; '.join(_made(node))}")
    source = ref_source(node)
    return " ".join(parts) + (f" [ref of {source}]" if source is not None else "")


def _made(node: Node) -> Iterator[str]:
    for desc in node.op_desc.output_descs:
        written = str_attr(desc, REF_VAR_SRC_VAR_NAME)
        yield desc_text(desc) + (f" [writes {written}]" if written is not None else "")


def changed_lines(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return what is another as lines with `-` for what is gone and `+` for what is new, in the order of the graphs."""
    lines = []
    for place, line in before.items():
        if after.get(place) != line:
            lines.append(f"- {line}")
            if place in after:
                lines.append(f"+ {after[place]}")
    return lines + [f"+ {line}" for place, line in after.items() if place not in before]
