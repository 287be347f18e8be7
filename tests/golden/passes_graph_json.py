"""Graphs of compile-side expectations: made from the file, told in its form, and compared without regard to order."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gevar.graph import ComputeGraph, GeTensor, Node, OpDesc
from tests.golden.facts import Place, Report
from tests.golden.passes_descs import desc_facts, make_desc

Json = Mapping[str, Any]
ADDED = "_inserted_by_ge"
_NUMBERED = re.compile(r"(.+_trans_)(\d+)")


def make_graph(found: Json, name: str) -> ComputeGraph:
    """Make a graph with its subgraphs."""
    graph = ComputeGraph(name)
    graph.graph_id = found["graph_id"]
    subgraphs = {below: make_graph(one, below) for below, one in found.get("subgraphs", {}).items()}
    for one in found["nodes"]:
        node = graph.add_node(_op_desc(one))
        for below in one.get("attrs", {}).get("subgraphs", ()):
            if below in subgraphs:
                graph.add_subgraph(node, subgraphs[below])
            else:  # a graph that is missing is what the case is about
                node.op_desc._subgraph_names += (below,)
    for text in found["edges"]:
        _add_edge(graph, text)
    return graph


def graph_facts(graph: ComputeGraph) -> dict[str, Any]:
    """Return a graph in the form of the file; nodes by name, edges as a set."""
    return {
        "graph_id": graph.graph_id,
        "nodes": {node.name: _node_facts(node) for node in graph},
        "edges": frozenset(_edges(graph)),
        "subgraphs": {below.name: graph_facts(below) for node in graph for below in node.subgraphs},
    }


class GraphDifferences:
    """An expected graph beside one that was found."""

    def __init__(self, expected: Json, found: ComputeGraph, place: Place) -> None:
        self.expected, self.place = expected, place
        self.facts = graph_facts(found)
        self.found = found
        self._to_expected = _renumbering(
            [one["name"] for one in expected["nodes"] if one.get("attrs", {}).get(ADDED)],
            [name for name, one in self.facts["nodes"].items() if one["attrs"].get(ADDED)],
        )

    def compare(self, report: Report) -> None:
        """Compare every fact of the expected graph; what is there beside it is a difference."""
        nodes = {self._to_expected.get(name, name): one for name, one in self.facts["nodes"].items()}
        edges = {self._renamed(text) for text in self.facts["edges"]}
        report.compare((*self.place, "graph_id"), self.expected["graph_id"], self.facts["graph_id"])
        for index, one in enumerate(self.expected["nodes"]):
            self._compare_node(one, nodes.get(one["name"]), (*self.place, "nodes", index), report)
        for index, text in enumerate(self.expected["edges"]):
            report.compare((*self.place, "edges", index), text, text if text in edges else "no such edge")
        wanted = {"nodes": {one["name"] for one in self.expected["nodes"]}, "edges": set(self.expected["edges"])}
        for key, there in (("nodes", nodes.keys()), ("edges", edges)):
            for name in sorted(there - wanted[key]):
                report.differ((*self.place, key), f"not in the file: {name}")
            if not wanted[key]:
                report.compare((*self.place, key), self.expected[key], [])
        self._compare_subgraphs(report)

    def tell(self, report: Report) -> None:
        """Say what is another than in a graph that should not have changed."""
        scratch = Report({})
        self.compare(scratch)
        report.differences += scratch.differences

    def _compare_subgraphs(self, report: Report) -> None:
        found = {below.name: below for node in self.found for below in node.subgraphs}
        expected = self.expected.get("subgraphs", {})
        for name, one in expected.items():
            if name in found:
                GraphDifferences(one, found[name], (*self.place, "subgraphs", name)).compare(report)
            else:
                report.differ((*self.place, "subgraphs", name), "not there")
        for name in found.keys() - expected.keys():
            report.differ((*self.place, "subgraphs"), f"not in the file: {name}")

    def _compare_node(self, expected: Json, found: Json | None, place: Place, report: Report) -> None:
        if found is None:
            report.differ(place, f"there is no node {expected['name']}")
            return
        shown = {**found, "name": expected["name"]}
        for side in ("inputs", "outputs"):
            shown[side] = _as_expected(expected.get(side, []), found[side], (*place, side), report)
        report.compare(place, expected, shown, closed=frozenset({"attrs"}))
        for key in ("inputs", "outputs", "attrs"):
            if key not in expected and shown[key]:
                report.differ((*place, key), f"not in the file: {shown[key]}")

    def _renamed(self, text: str) -> str:
        """An edge with the running numbers of the file."""
        arrow = " -> " if " -> " in text else " => "
        ends = []
        for end in text.split(arrow):
            name, colon, index = end.rpartition(":") if arrow == " -> " else (end, "", "")
            ends.append(self._to_expected.get(name, name) + colon + index)
        return arrow.join(ends)


def _renumbering(expected: Sequence[str], found: Sequence[str]) -> dict[str, str]:
    """Pair names that end in running numbers, which count over a whole process: by prefix, then by number."""
    by_prefix: dict[str, tuple[list[int], list[int]]] = {}
    for side, names in enumerate((expected, found)):
        for name in names:
            if match := _NUMBERED.fullmatch(name):
                by_prefix.setdefault(match[1], ([], []))[side].append(int(match[2]))
    return {
        f"{prefix}{number}": f"{prefix}{shown}"
        for prefix, (wanted, numbers) in by_prefix.items()
        for shown, number in zip(sorted(wanted), sorted(numbers), strict=False)
    }


def _as_expected(expected: Sequence[Json], found: Sequence[Json], place: Place, report: Report) -> list[Json]:
    """Return descriptions found, less the names of inputs and outputs that the file does not tell.

    Any other key that is not in the file is a difference.
    """
    shown: list[Json] = []
    for index, one in enumerate(found):
        wanted = expected[index] if index < len(expected) else {}
        kept = {key: value for key, value in one.items() if key != "name" or "name" in wanted}
        if wanted and kept.keys() - wanted.keys():
            report.differ((*place, index), f"not in the file: {', '.join(sorted(kept.keys() - wanted.keys()))}")
        shown.append(kept)
    return shown


def _op_desc(found: Json) -> OpDesc:
    attrs = {key: value for key, value in found.get("attrs", {}).items() if key not in ("subgraphs", "value")}
    op_desc = OpDesc(found["name"], found["type"], attrs=attrs)
    for one in found.get("inputs", ()):
        op_desc.add_input_desc(make_desc(one), one.get("name", ""))
    for one in found.get("outputs", ()):
        op_desc.add_output_desc(make_desc(one), one.get("name", ""))
    if "value" in found.get("attrs", {}):
        desc = op_desc.output_desc(0)
        op_desc.attrs["value"] = GeTensor(desc, bytes([found["attrs"]["value"]]))
    return op_desc


def _add_edge(graph: ComputeGraph, text: str) -> None:
    if " => " in text:
        before, after = text.split(" => ")
        graph[before].link_control_to(graph[after])
        return
    (source, output), (target, index) = (end.rsplit(":", 1) for end in text.split(" -> "))
    graph[source].out_data_anchor(int(output)).link_to(graph[target].in_data_anchor(int(index)))


def _edges(graph: ComputeGraph) -> list[str]:
    found = []
    for node in graph:
        found += [f"{anchor.peer!r} -> {anchor!r}" for anchor in node.in_data_anchors if anchor.peer is not None]
        found += [f"{before.name} => {node.name}" for before in node.in_control_nodes]
    return found


def _node_facts(node: Node) -> dict[str, Any]:
    op_desc = node.op_desc
    inputs = [{"name": op_desc.input_name(i), **desc_facts(desc)} for i, desc in enumerate(op_desc.input_descs)]
    outputs = [{"name": op_desc.output_name(i), **desc_facts(desc)} for i, desc in enumerate(op_desc.output_descs)]
    attrs = {name: _attr_fact(op_desc, name) for name in op_desc.attrs if not name.startswith(("_input_", "_output_"))}
    if op_desc.subgraph_instance_names:
        attrs["subgraphs"] = list(op_desc.subgraph_instance_names)
    return {"name": node.name, "type": node.type, "inputs": inputs, "outputs": outputs, "attrs": attrs}


def _attr_fact(op_desc: OpDesc, name: str) -> Any:
    """An attribute; a tensor of one byte with the description of the output is the truth value in it."""
    value = op_desc.attrs[name]
    if isinstance(value, GeTensor):
        is_flag = len(value.data) == 1 and value.data[0] < 2 and value.desc == op_desc.output_desc(0)
        return bool(value.data[0]) if is_flag else repr(value)
    return list(value) if isinstance(value, tuple) else value
