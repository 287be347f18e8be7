"""Letting a computed value be written straight to its variable, without an Assign.

Source: GE source, compiler/graph/passes/variable_optimize/assign_remove_pass.cc.
"""

from typing import ClassVar, Final

from gevar.compile.compile_pass import NodePass
from gevar.compile.descriptions import int_attr, str_attr, with_str_attr
from gevar.compile.node_kinds import CONST_TYPES, DATA_TYPES, VARIABLE_TYPES
from gevar.compile.pass_context import PassContext
from gevar.errors import GraphError
from gevar.graph import Node, OutDataAnchor, isolate_node

ASSIGN_VAR_NAME: Final = "_assign_var_name"
"""Attribute of an output: it is written to the memory of the variable of this name."""

INPLACE_SUPPORT_INPUT_INDEX: Final = "_inplace_support_input_index"
"""Attribute of an output: it may take the memory of this input."""


class AssignRemovePass(NodePass):
    """Remove an Assign of a computed value to a variable that nothing else reads or depends on.

    Source: GE source, compiler/graph/passes/variable_optimize/assign_remove_pass.cc, AssignRemovePass.
    """

    name: ClassVar[str] = "AssignRemovePass"

    def run_node(self, node: Node, context: PassContext) -> None:
        """Hand the name of a variable on to the input that an output takes its memory from; remove an Assign.

        Raises
        ------
        GraphError
            An output says that it takes the memory of an input that is not there or not linked.
        """
        for index, desc in enumerate(node.op_desc.output_descs):
            if ASSIGN_VAR_NAME in desc.attrs and INPLACE_SUPPORT_INPUT_INDEX in desc.attrs:
                self._hand_on(node, index, context)
        if node.type == "Assign":
            self._remove_assign(node, context)

    def _hand_on(self, node: Node, index: int, context: PassContext) -> None:
        desc = node.op_desc.output_desc(index)
        input_index, name = int_attr(desc, INPLACE_SUPPORT_INPUT_INDEX), str_attr(desc, ASSIGN_VAR_NAME)
        if input_index is None or name is None:
            return
        source = node.in_data_anchor(input_index).peer
        if source is None:
            reason = f"output {index} takes the memory of input {input_index}, which is not linked"
            raise GraphError(node.owner_compute_graph.name, reason, node=node.name)
        if str_attr(source.node.op_desc.output_desc(source.idx), ASSIGN_VAR_NAME) != name:
            _mark(source, name)
            context.log.changed(f"{source!r} is written to {name!r}, as {node.name!r}:{index} is")
            self.visit_again(source.node)

    def _remove_assign(self, assign: Node, context: PassContext) -> None:
        inputs = assign.in_data_anchors
        ref, value = (inputs[index].peer if index < len(inputs) else None for index in (0, 1))
        if ref is None or value is None:
            context.log.refused(assign.name, "variable or value are not linked")
            return
        reason = _why_kept(ref, value)
        if reason:
            context.log.refused(assign.name, reason)
            return
        isolate_node(assign, [0])
        assign.owner_compute_graph.remove_node(assign)
        desc, variable = value.node.op_desc.output_desc(value.idx), ref.node
        if variable.in_data_anchors:
            variable.op_desc.update_input_desc(0, desc)
        else:
            variable.op_desc.add_input_desc(desc)
        value.link_to(variable.in_data_anchor(0))
        _mark(value, variable.name)
        context.log.changed(f"{assign.name!r} removed: {value!r} is written to {variable.name!r}")
        self.visit_again(value.node)


def _why_kept(ref: OutDataAnchor, value: OutDataAnchor) -> str:
    """Say why an Assign stays; empty where it can go."""
    variable, source = ref.node, value.node
    if source.type in DATA_TYPES | CONST_TYPES | VARIABLE_TYPES:
        return f"the value {value!r} ({source.type}) is not computed"
    if variable.type not in VARIABLE_TYPES:
        return f"{ref!r} ({variable.type}) is no variable"
    if variable.in_data_nodes:
        return f"{variable.name!r} is written by {variable.in_data_nodes[0].name!r} already"
    for anchor in (ref, value):
        if len(anchor.peers) != 1:
            return f"{anchor!r} has {len(anchor.peers)} readers"
    if variable.out_control_nodes and variable.op_desc.id < source.op_desc.id:
        return f"{variable.name!r} comes before {source.name!r}, and something is ordered after it"
    return ""


def _mark(out: OutDataAnchor, name: str) -> None:
    op_desc = out.node.op_desc
    op_desc.update_output_desc(out.idx, with_str_attr(op_desc.output_desc(out.idx), ASSIGN_VAR_NAME, name))
