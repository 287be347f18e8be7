"""Memory of variables at compile time: every variable and constant of a graph gets its logical address.

Called in GE's order: `assign_var_memory` for what has memory of its own, `assign_var_attr2_nodes` for the nodes that
write into variables, `assign_memory2_has_ref_attr_node` for outputs that are a variable by their attribute.

Source: GE source, base/graph/build/memory/var_mem_assign_util.cc, VarMemAssignUtil.
"""

from dataclasses import dataclass
from typing import Final

from gevar.align import TENSOR_ALIGN_BYTES
from gevar.compile.var_mem_assign_util_chains import assign_var_attr2_nodes
from gevar.compile.var_mem_assign_util_ops import (
    graph_error,
    has_static_memory,
    manager_name,
    output_memory_type,
    static_memory_size,
    var_op_of,
)
from gevar.compile.var_mem_assign_util_refs import assign_memory2_has_ref_attr_node
from gevar.errors import SizeOverflowError, VariableError
from gevar.graph import ComputeGraph, Node
from gevar.status import FAILED, PARAM_INVALID
from gevar.types import DataType, LogicAddr, MemType, TensorDesc
from gevar.types.tensor_sizes import tensor_size_in_bytes
from gevar.var import VARIABLE, VarManager

ATTR_SRC_VAR_NAME: Final = "_src_var_name"
"""Attribute: the variable that a variable is a shadow of, in another data type."""


@dataclass(frozen=True, slots=True)
class _StaticNode:
    """A node that gets memory of its own."""

    node: Node
    name: str
    desc: TensorDesc
    mem_type: MemType


class VarMemAssignUtil:
    """Assigns the memory of variables of one graph and its subgraphs.

    Parameters
    ----------
    var_manager
        Variables of the session.
    graph
        The graph; its `graph_id` is recorded with the variables that it brings.
    pad_bytes
        The SoC's property AICoreSpec/padding_size.

    Thread safety: as `ComputeGraph`; other writers of the manager wait while memory is assigned.

    Source: GE source, base/graph/build/memory/var_mem_assign_util.cc, VarMemAssignUtil.
    """

    def __init__(self, var_manager: VarManager, graph: ComputeGraph, *, pad_bytes: int = TENSOR_ALIGN_BYTES) -> None:
        self._vm = var_manager
        self._graph = graph
        self._pad_bytes = pad_bytes

    def assign_static_memory2_node(self) -> None:
        """Give each variable, constant, file constant and place holder its memory, in the order of the graph.

        Output 0 gets the size of the memory, the node its logical address as the offset of output 0 and 0 for the
        others. A variable that the session has in this form keeps its address. References to variables are left out.

        Raises
        ------
        GraphError
            A node has no output, its memory no size, or a shadow no source (status FAILED). Or the manager refuses a
            variable, with its status (`VarManager.assign_var_mem`; PARAM_INVALID for a wrong attribute).
        StateError
            The manager is not initialised (status PARAM_INVALID).

        After failure: graph and manager are as before, but for memory that a pool gave.
        Source: GE source, base/graph/build/memory/var_mem_assign_util.cc, VarMemAssignUtil::AssignStaticMemory2Node.
        Differs: row larger-form of docs/differences.md.
        """
        nodes = [self._static_node(node) for node in self._graph.all_nodes() if has_static_memory(node)]
        with self._vm.transaction():
            addrs = [self._assign(one) for one in nodes]
        for one, addr in zip(nodes, addrs, strict=True):
            op_desc = one.node.op_desc
            op_desc.update_output_desc(0, one.desc)
            op_desc.output_i = (addr, *[0] * (len(op_desc.output_descs) - 1))

    def assign_var_memory(self) -> None:
        """Do `assign_static_memory2_node`; GE's name where variables are assigned."""
        self.assign_static_memory2_node()

    def assign_constant_op_memory(self) -> None:
        """Do `assign_static_memory2_node`; GE's name where constants are assigned."""
        self.assign_static_memory2_node()

    def assign_var_attr2_nodes(self) -> None:
        """Give the nodes that write into variables the addresses of these; see the function of this name."""
        assign_var_attr2_nodes(self._vm, self._graph)

    def assign_memory2_has_ref_attr_node(self) -> None:
        """Give outputs that are a variable by their attribute its address; see the function of this name."""
        assign_memory2_has_ref_attr_node(self._vm, self._graph)

    def assign_data2_fp32_var(self, node: Node) -> None:
        """Let a shadow variable stand for its source: description and address of that one become the shadow's current.

        Nothing is done for a node without `_src_var_name`.

        Raises
        ------
        GraphError
            The session has no such source (status FAILED).
        StateError
            The manager is not initialised (status INTERNAL_ERROR).
        VariableError
            The source has no address, or one in another kind of memory.

        After failure: nothing has changed.
        Source: GE source, base/graph/build/memory/var_mem_assign_util.cc, VarMemAssignUtil::AssignData2Fp32Var.
        """
        source = node.op_desc.attrs.get_as(ATTR_SRC_VAR_NAME, str)
        if not source:
            return
        if not self._vm.is_var_exist(source):
            raise graph_error(node, f"is a shadow of variable {source!r}, which has no memory; assign that one first")
        desc = self._vm.get_cur_var_desc(source)
        addr, mem_type = self._vm.get_cur_var_addr_and_type(source)
        self._vm.set_var_addr(node.name, desc, addr, mem_type, var_op_of(node))

    def _static_node(self, node: Node) -> _StaticNode:
        if not node.op_desc.output_descs:
            raise graph_error(node, f"is a {node.type} without outputs; give it one", FAILED)
        desc = node.op_desc.output_desc(0).replace(size=static_memory_size(node, self._pad_bytes))
        return _StaticNode(node, manager_name(node), desc, output_memory_type(node))

    def _assign(self, one: _StaticNode) -> LogicAddr:
        """Give a variable memory, if it has none in this form, and return its address."""
        if not self._has_room(one):
            try:
                self._vm.assign_var_mem(one.name, var_op_of(one.node), one.desc, one.mem_type)
            except (VariableError, SizeOverflowError, ValueError) as error:
                status = PARAM_INVALID if isinstance(error, ValueError) else error.status or FAILED
                raise graph_error(one.node, f"gets no memory: {error}", status) from error
            if one.node.type == VARIABLE:
                self.assign_data2_fp32_var(one.node)
            self._vm.set_allocated_graph_id(one.name, self._graph.graph_id)
        return self._vm.get_var_addr(one.name, one.desc)

    def _has_room(self, one: _StaticNode) -> bool:
        """Whether a variable is there in this form, and not known to be too small; padding may be missing."""
        if not self._vm.is_var_exist(one.name, one.desc):
            return False
        if not self._vm.is_var_exist(one.name):
            return True
        current = self._vm.get_cur_var_desc(one.name)
        if current.format != one.desc.format or current.dtype != one.desc.dtype or current.size >= one.desc.size:
            return True
        return one.desc.dtype != DataType.DT_STRING and current.size >= tensor_size_in_bytes(one.desc)
