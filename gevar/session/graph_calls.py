"""Nodes that run one subgraph each time, as part of the graph: PartitionedCall."""

from gevar.compile.node_kinds import NET_OUTPUT, PARENT_NODE_INDEX, PARTITIONED_CALL
from gevar.compile.ref_deletion import results_by_index
from gevar.errors import GraphError
from gevar.graph import ComputeGraph, Node, OutDataAnchor
from gevar.status import UNSUPPORTED

DATA = "Data"


def is_call(node: Node) -> bool:
    """Tell whether a node runs a subgraph that can be computed in its place."""
    return node.type == PARTITIONED_CALL


def body_of(call: Node) -> ComputeGraph:
    """Return the graph that a call runs.

    Raises
    ------
    GraphError
        It runs none, or more than one (status UNSUPPORTED).
    """
    bodies = call.subgraphs
    if len(bodies) != 1:
        raise _refused(call, f"{call.type} runs {len(bodies)} graphs; give it one")
    return bodies[0]


def given_to(call: Node) -> dict[Node, OutDataAnchor]:
    """Return what each Data of a body stands for, by the attribute `_parent_node_index`.

    Raises
    ------
    GraphError
        One stands for an input that is not there or not linked (status UNSUPPORTED).
    """
    found = {}
    for node in body_of(call):
        if node.type == DATA:
            index = node.op_desc.attrs.get_as(PARENT_NODE_INDEX, int)
            anchors = call.in_data_anchors
            peer = anchors[index].peer if index is not None and 0 <= index < len(anchors) else None
            if peer is None:
                raise _refused(node, f"stands for input {index} of {call.name!r}, which is not linked")
            found[node] = peer
    return found


def made_by(call: Node) -> dict[int, OutDataAnchor]:
    """Return what each output of a call is inside, by the attribute `_parent_node_index` of the NetOutput's inputs.

    Raises
    ------
    GraphError
        Nothing inside is an output that is read (status UNSUPPORTED).
    """
    body = body_of(call)
    if not any(node.type == NET_OUTPUT for node in body):
        raise _refused(call, f"graph {body.name!r} that it runs has no {NET_OUTPUT}")
    found = {
        index: anchor.peer
        for index, ends in results_by_index(body).items()
        for anchor in ends
        if anchor.peer is not None
    }
    for out in call.out_data_anchors:
        if out.peers and out.idx not in found:
            raise _refused(call, f"no input of the {NET_OUTPUT} of {body.name!r} is output {out.idx}, which is read")
    return found


def _refused(node: Node, reason: str) -> GraphError:
    return GraphError(node.owner_compute_graph.name, reason, node=node.name, status=UNSUPPORTED)
