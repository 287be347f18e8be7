"""A graph as the message `GraphDef`, and back.

Edges are texts in the `input` list of their consumer: `name:index` for each data input in index order, an empty text
for an input without edge, then `name:-1` for each control edge. A list that says the same in another way (control edges
in between, twice, inputs left out at the end) is written as it was read, as long as the edges are the same.

Source: GE source, graph_metadef/graph/serialization/model_serialize.cc.
"""

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from gevar.errors import GraphError
from gevar.graph.anchor import InDataAnchor, OutDataAnchor
from gevar.graph.attr_map import AttrMap
from gevar.graph.compute_graph import ComputeGraph
from gevar.graph.node import Node
from gevar.graph.op_desc import OpDesc
from gevar.graph.op_wire import WholeOp, take_apart
from gevar.graph.sharing import Sharing, rest_of
from gevar.proto import ge_ir

_OWNED: Final = frozenset({"name", "input", "output", "op", "attr"})
_GRAPH_BYTES: Final = 1500
_NODE_BYTES: Final = 900
_LINK_BYTES: Final = 250
"""What a graph takes, a node beside its attributes and links, and each input, output and edge."""


class _Ends(NamedTuple):
    """The producers of a node: an output for each data input, then the nodes with a control edge to it."""

    data: list[OutDataAnchor | None]
    controls: dict[Node, None]


def read_graph(message: ge_ir.GraphDef, ops: Iterable[WholeOp], sharing: Sharing) -> ComputeGraph:
    """Return the graph in a message, with operators that come one by one in place of its own.

    Errors are those of `ComputeGraph.from_proto`.
    """
    sharing.take(_GRAPH_BYTES, "the graphs of a model")
    graph = ComputeGraph(message.name)
    graph._rest = rest_of(message, _OWNED)
    graph.attrs = AttrMap.from_proto(message.attr, sharing)
    with _collector_at_rest():
        _read_nodes(graph, ops, sharing)
    sharing.take(_LINK_BYTES * (len(message.input) + len(message.output)), "the ends of a graph")
    graph._inputs = [_anchor(graph, text, None, "graph input").node for text in message.input]
    graph._outputs = [_anchor(graph, text, None, "graph output") for text in message.output]
    stored = tuple(message.input), tuple(message.output)
    graph._stored_ends = stored if stored != _end_texts(graph) else ((), ())
    return graph


def _read_nodes(graph: ComputeGraph, ops: Iterable[WholeOp], sharing: Sharing) -> None:
    with_edges = []
    for op, large in ops:
        links = len(op.input) + len(op.input_desc) + len(op.output_desc)
        sharing.take(_NODE_BYTES + _LINK_BYTES * links, "the nodes of a graph")
        parts = take_apart(op, sharing, large)
        node = graph.add_node(OpDesc.from_parts(parts))
        if parts.inputs:
            with_edges.append((node, parts.inputs))
    for node, inputs in with_edges:
        _read_edges(graph, node, inputs)


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Keep cyclic garbage collection from running: all that is made here stays, and it would look at it many times.

    Several threads may be inside: the one that found it on turns it on again, when it leaves.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def write_graph(graph: ComputeGraph, message: ge_ir.GraphDef) -> None:
    """Put a graph into an empty message."""
    message.MergeFromString(graph._rest)
    message.name = graph.name
    inputs, outputs = _end_texts(graph)
    stored_inputs, stored_outputs = graph._stored_ends
    if (found := _anchors(graph, stored_inputs)) and [node for node, _ in found] == graph._inputs:
        inputs = stored_inputs
    if (found := _anchors(graph, stored_outputs)) and found == graph._outputs:
        outputs = stored_outputs
    message.input.extend(inputs)
    message.output.extend(outputs)
    graph.attrs.write_to(message.attr)
    for node in graph:
        op = message.op.add()
        node.op_desc.write_to(op)
        op.input.extend(_input_texts(graph, node))


def _read_edges(graph: ComputeGraph, node: Node, texts: tuple[str, ...]) -> None:
    ends = _parse(graph, node, texts)
    if len(ends.data) > len(node._inputs):
        raise node._error(f"has {len(ends.data)} edges of data, it has {len(node._inputs)} inputs")
    for index, source in enumerate(ends.data):
        if source is not None:
            node._link(source, InDataAnchor(node, index))
    for before in ends.controls:
        before._link_control(node)
    if texts != tuple(_canonical_texts(node)):
        node._stored_inputs = texts


def _input_texts(graph: ComputeGraph, node: Node) -> Iterable[str]:
    """The list as it was read, if it still says what the edges are; else the canonical one."""
    if node._stored_inputs:
        try:
            data, controls = _parse(graph, node, node._stored_inputs)
        except GraphError:  # a producer is gone or has another name
            return _canonical_texts(node)
        data += [None] * (len(node._inputs) - len(data))
        if data == node._inputs and list(controls) == list(node._in_controls):
            return node._stored_inputs
    return _canonical_texts(node)


def _canonical_texts(node: Node) -> list[str]:
    texts = ["" if peer is None else f"{peer.node.name}:{peer.idx}" for peer in node._inputs]
    texts.extend(f"{before.name}:-1" for before in node._in_controls)
    return texts


def _parse(graph: ComputeGraph, node: Node, texts: Sequence[str]) -> _Ends:
    ends = _Ends([], {})
    for text in texts:
        if ":" not in text:
            ends.data.append(None)
            continue
        source = _anchor(graph, text, node, "input")
        if source.idx < 0:
            ends.controls[source.node] = None
        else:
            ends.data.append(source)
    while len(ends.data) > len(node._inputs) and ends.data[-1] is None:
        ends.data.pop()  # an input that is not linked needs no description
    return ends


def _anchor(graph: ComputeGraph, text: str, node: Node | None, what: str) -> OutDataAnchor:
    """Find what `name:index` stands for; a negative index is left to the caller who has a node."""
    name, _, digits = text.rpartition(":")
    consumer = None if node is None else node.name
    if not digits.removeprefix("-").isdecimal():
        raise GraphError(graph.name, f"{what} {text!r} ends in no number", node=consumer)
    index = int(digits)
    source = graph.find_node(name)
    if source is None:
        raise GraphError(graph.name, f"{what} {text!r} names a node that is not there", node=consumer)
    if index >= len(source._outputs) or (index < 0 and node is None):
        count = len(source._outputs)
        raise GraphError(graph.name, f"{what} {text!r} asks for output {index}, {name!r} has {count}", node=consumer)
    return OutDataAnchor(source, index)


def _end_texts(graph: ComputeGraph) -> tuple[tuple[str, ...], tuple[str, ...]]:
    inputs = tuple(f"{node.name}:0" for node in graph._inputs)
    return inputs, tuple(f"{node.name}:{index}" for node, index in graph._outputs)


def _anchors(graph: ComputeGraph, texts: Sequence[str]) -> list[OutDataAnchor]:
    """What texts stand for; nothing where one no longer stands for anything."""
    try:
        return [_anchor(graph, text, None, "end") for text in texts]
    except GraphError:  # a node is gone or has another name
        return []
