"""Outputs that are a variable by the attribute `ref_var_src_var_name` of their description: they get its address."""

from typing import Final

from gevar.compile.var_mem_assign_util_offsets import NodeOffsets
from gevar.compile.var_mem_assign_util_ops import graph_error
from gevar.graph import ComputeGraph, Node
from gevar.types import TensorDesc
from gevar.var import VarManager
from gevar.var.var_op import REF_VAR_SRC_VAR_NAME

_REF_DATA: Final = "RefData"


def assign_memory2_has_ref_attr_node(var_manager: VarManager, graph: ComputeGraph) -> None:
    """Give every output that is a variable by its attribute the address of this one.

    The variable is looked for in the root graph, then in the subgraphs in their order. One that is `RefData` has no
    address of its own, its outputs are left as they are.

    Parameters
    ----------
    var_manager
        Variables of the session.
    graph
        The graph, with its subgraphs.

    Raises
    ------
    GraphError
        The variable is no node of the model, or the node has no offset for the output (status FAILED; PARAM_INVALID
        where it has none at all).
    StateError, VariableError
        The variable has no address in the form of its node (status INTERNAL_ERROR).

    After failure: the graph is as before.
    Source: GE source, base/graph/build/memory/var_mem_assign_util.cc, VarMemAssignUtil::AssignMemory2HasRefAttrNode.
    """
    offsets, in_subgraphs = NodeOffsets(), dict[str, Node]()
    for subgraph in graph.root.all_subgraphs():
        for node in subgraph:
            in_subgraphs.setdefault(node.name, node)
    for node in graph.all_nodes():
        for index, desc in enumerate(node.op_desc.output_descs):
            name = _source_name(desc)
            if name is None:
                continue
            source = graph.root.find_node(name) or in_subgraphs.get(name)
            if source is None or not source.op_desc.output_descs:
                raise graph_error(node, f"output {index} is variable {name!r}, which is no node with an output here")
            if source.type != _REF_DATA:
                addr = var_manager.get_var_addr(name, source.op_desc.output_desc(0))
                offsets.set_output(node, index, addr)
    offsets.write()


def _source_name(desc: TensorDesc) -> str | None:
    """Name of the variable that an output is; None for one that is none."""
    attr = desc.attrs.get(REF_VAR_SRC_VAR_NAME)
    return None if attr is None else attr.s.decode(errors="surrogateescape") or None
