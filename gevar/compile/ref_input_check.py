"""The check that no operator writes a constant."""

from typing import ClassVar

from gevar.compile.compile_pass import CompilePass
from gevar.compile.node_kinds import CONST_TYPES
from gevar.compile.pass_context import PassContext
from gevar.compile.ref_table import inputs_named_as_outputs
from gevar.errors import GraphError
from gevar.graph import ComputeGraph
from gevar.status import PARAM_INVALID


class CheckRefInputNode(CompilePass):
    """Refuse a graph in which an input that is also an output, by its name, reads a constant that is no such operator.

    Source: GE source, compiler/graph/preprocess/graph_prepare.cc, GraphPrepare::CheckRefInputNode.
    """

    name: ClassVar[str] = "CheckRefInputNode"

    def run(self, graph: ComputeGraph, context: PassContext) -> None:  # noqa: ARG002
        """Check one graph; nothing is changed.

        Raises
        ------
        GraphError
            An operator writes a Const or Constant (status PARAM_INVALID).
        """
        for node in graph:
            for index in inputs_named_as_outputs(node.op_desc):
                peer = node.in_data_anchor(index).peer
                if peer is None or peer.node.type not in CONST_TYPES:
                    continue
                if not inputs_named_as_outputs(peer.node.op_desc):
                    reason = f"input {index} is written, and reads {peer!r}, a {peer.node.type}; let it read a variable"
                    raise GraphError(graph.name, reason, node=node.name, status=PARAM_INVALID)
