"""Graphs as GE has them: nodes with data and control anchors, operators, attributes; from messages and back.

A graph that was read and not changed is written back equal, unknown fields included. Every edit keeps edges, names and
subgraphs consistent, and happens completely or not at all.
"""

from gevar.graph.anchor import InControlAnchor, InDataAnchor, OutControlAnchor, OutDataAnchor
from gevar.graph.attr_map import AttrMap, NamedAttrs
from gevar.graph.attr_value import AttrValue, Expression, GeTensor, ValueType
from gevar.graph.compute_graph import ComputeGraph
from gevar.graph.graph_edits import (
    copy_in_ctrl_edges,
    insert_node_after,
    insert_node_before,
    isolate_node,
    move_in_ctrl_edges,
    move_out_ctrl_edges,
    move_output_edges,
    replace_node,
)
from gevar.graph.model import Model
from gevar.graph.node import Node
from gevar.graph.op_desc import OpDesc

__all__ = [
    "AttrMap",
    "AttrValue",
    "ComputeGraph",
    "Expression",
    "GeTensor",
    "InControlAnchor",
    "InDataAnchor",
    "Model",
    "NamedAttrs",
    "Node",
    "OpDesc",
    "OutControlAnchor",
    "OutDataAnchor",
    "ValueType",
    "copy_in_ctrl_edges",
    "insert_node_after",
    "insert_node_before",
    "isolate_node",
    "move_in_ctrl_edges",
    "move_out_ctrl_edges",
    "move_output_edges",
    "replace_node",
]
