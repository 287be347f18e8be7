"""Graphs that are compiled after a variable was given another format: they take it so, behind conversions back.

Source: GE source, compiler/graph/preprocess/graph_prepare.cc, GraphPrepare::UpdateVariableFormats.
"""

from collections.abc import Iterator
from itertools import count, pairwise
from typing import ClassVar, Final

from gevar.compile.compile_pass import CompilePass
from gevar.compile.descriptions import desc_text, variable_desc
from gevar.compile.node_kinds import INSERTED_BY_GE, copy_stream_label, ref_source
from gevar.compile.pass_context import PassContext
from gevar.errors import GraphError
from gevar.graph import (
    ComputeGraph,
    Node,
    OpDesc,
    insert_node_after,
    insert_node_before,
    move_in_ctrl_edges,
    move_out_ctrl_edges,
)
from gevar.types import TensorDesc
from gevar.var import TransNodeInfo
from gevar.var.graph_tables import TransRoad

_VARIABLE_NUMBERS: Final = count()
_REF_NUMBERS: Final = count()


class UpdateVariableFormats(CompilePass):
    """Give variables with a road its end, with conversions behind them that undo it, and others before their ref nodes.

    Names of inserted nodes end in a number that runs over the whole process, one for variables and one for ref nodes.

    Parameters
    ----------
    variable_numbers, ref_numbers
        Where the numbers come from.

    Source: GE source, compiler/graph/preprocess/graph_prepare.cc, GraphPrepare::UpdateVariableFormats,
    RecoverTransRoadForVar, RecoverTransRoadForVarRef.
    Differs: rows foreign-road and ref-once of docs/differences.md.
    """

    name: ClassVar[str] = "UpdateVariableFormats"

    def __init__(
        self, variable_numbers: Iterator[int] = _VARIABLE_NUMBERS, ref_numbers: Iterator[int] = _REF_NUMBERS
    ) -> None:
        self._variable_numbers = variable_numbers
        self._ref_numbers = ref_numbers

    def run(self, graph: ComputeGraph, context: PassContext) -> None:
        """Do it to a graph with all its subgraphs; a subgraph by itself is left alone.

        Raises
        ------
        GraphError
            There is no manager (status INTERNAL_ERROR); the steps of a road do not follow one another, or it starts
            with another data type or shape than the variable has; a ref node has no producer.
        """
        if graph.parent_graph is not None:
            return
        manager = context.require_var_manager(graph.name)
        refs = _refs_by_variable(graph)
        for node in [node for node in graph.all_nodes() if node.type == "Variable"]:
            road = manager.get_trans_road(node.name)
            if not road:
                continue
            _check_road(node, road)
            self._undo_behind(node, road)
            for ref in refs.pop(node.name, ()):
                self._go_before(ref, road)
            context.recovered_names.add(node.name)
            context.log.changed(f"{node.name!r} is {desc_text(road[-1].output)}; {len(road)} steps back follow it")

    def _undo_behind(self, variable: Node, road: TransRoad) -> None:
        """Insert conversions behind a variable, the last step of the road undone first."""
        tail = variable
        for step in reversed(road):
            name = f"{variable.name}_trans_{next(self._variable_numbers)}"
            new = insert_node_after(tail.out_data_anchor(0), _trans_op(name, step, step.output, step.input))
            move_out_ctrl_edges(tail, new)
            copy_stream_label(variable, new)
            tail = new
        _take_end(variable, road[-1].output)

    def _go_before(self, ref: Node, road: TransRoad) -> None:
        """Insert conversions in front of a ref node, the last step of the road next to it."""
        head = ref
        for step in reversed(road):
            name = f"{ref.name}_trans_{next(self._ref_numbers)}"
            new = insert_node_before(head.in_data_anchor(0), _trans_op(name, step, step.input, step.output))
            move_in_ctrl_edges(head, new)
            copy_stream_label(ref, new)
            head = new
        _take_end(ref, road[-1].output)


def _refs_by_variable(graph: ComputeGraph) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in graph.all_nodes():
        source = ref_source(node)
        if source is not None:
            found.setdefault(source, []).append(node)
    return found


def _check_road(variable: Node, road: TransRoad) -> None:
    """Refuse a road that cannot be that of a variable."""
    graph, first, desc = variable.owner_compute_graph.name, road[0].input, variable_desc(variable)
    for before, after in pairwise(road):
        if not before.output.same_description(after.input):
            reason = f"the steps of its road do not fit: {desc_text(before.output)}, then {desc_text(after.input)}"
            raise GraphError(graph, reason, node=variable.name)
    if (desc.dtype, desc.shape) != (first.dtype, first.shape):
        reason = f"is {desc_text(desc)} here, the road that it has in this session starts at {desc_text(first)}"
        raise GraphError(graph, reason, node=variable.name)


def _trans_op(name: str, step: TransNodeInfo, source: TensorDesc, target: TensorDesc) -> OpDesc:
    return OpDesc(name, step.node_type, inputs=[source], outputs=[target], attrs={INSERTED_BY_GE: True})


def _take_end(node: Node, end: TensorDesc) -> None:
    """Give a variable or ref node what a road ends in."""
    op_desc = node.op_desc
    for descs, update in (
        (op_desc.output_descs, op_desc.update_output_desc),
        (op_desc.input_descs, op_desc.update_input_desc),
    ):
        if descs:
            update(0, _with_form(descs[0], end))


def _with_form(desc: TensorDesc, end: TensorDesc) -> TensorDesc:
    return desc.replace(
        format=end.format,
        dtype=end.dtype,
        shape=end.shape,
        origin_format=end.origin_format,
        origin_shape=end.origin_shape,
        origin_dtype=end.origin_dtype,
    )
