"""Folding the trans ops behind a variable into the description that the variable is stored with.

Source: GE source, compiler/graph/passes/variable_optimize/variable_op_pass.cc.
"""

import logging
from typing import ClassVar

from gevar.compile.compile_pass import CompilePass, OptimizationLevel
from gevar.compile.descriptions import desc_text, variable_desc
from gevar.compile.node_kinds import VARIABLE_TYPES
from gevar.compile.pass_context import PassContext
from gevar.compile.pass_log import PassLog
from gevar.compile.variable_group import (
    FusionRefused,
    VariableGroup,
    check_inverse_writers,
    has_other_format,
    next_step,
    variable_groups,
    writer_of,
)
from gevar.errors import GraphError, VariableError
from gevar.graph import ComputeGraph, Node, copy_in_ctrl_edges, isolate_node
from gevar.status import FAILED, GE_GRAPH_VARIABLE_OP_PASS_FAILED
from gevar.types import TensorDesc
from gevar.var import TransNodeInfo, VarManager
from gevar.var.graph_tables import DATA_UNCHANGED_TYPES

_log = logging.getLogger("gevar.compile")


class VariableOpPass(CompilePass):
    """Fold trans ops into variables, and record the road that the data of each has to go.

    Source: GE source, compiler/graph/passes/variable_optimize/variable_op_pass.cc, VariableOpPass.
    Differs: row kept-road of docs/differences.md.
    """

    name: ClassVar[str] = "VariableOpPass"
    level: ClassVar[OptimizationLevel] = OptimizationLevel.O3
    failure_status: ClassVar[int] = GE_GRAPH_VARIABLE_OP_PASS_FAILED

    def run(self, graph: ComputeGraph, context: PassContext) -> None:
        """Do it to a graph with all its subgraphs; a subgraph by itself is left alone.

        Raises
        ------
        GraphError
            Manager or rebuild control are missing (status INTERNAL_ERROR); the manager has no address for a variable
            that it knows; a ref node has not one producer; a variable has no output.
        """
        manager = context.require_var_manager(graph.name)
        if graph.parent_graph is not None:
            context.log.refused(graph.name, "it is a subgraph; the variables are folded with the whole graph")
            return
        if manager.has_shared_var_mem_between_batch():
            context.log.refused(graph.name, "the session maps variables of batches to one another")
            return
        control = context.require_rebuild_control(graph.name)
        _renew_from_graph(graph, manager)
        for group in variable_groups(graph):
            if group.name in context.recovered_names or not control.is_var_permit_to_change_formats(group.name):
                context.log.refused(group.name, "it was given another format once in this session")
                continue
            road = _fuse(group, context.log)
            if road:
                self._record(graph.graph_id, group, road, manager, context)

    @staticmethod
    def _record(
        graph_id: int, group: VariableGroup, road: list[TransNodeInfo], manager: VarManager, context: PassContext
    ) -> None:
        """Tell manager and rebuild control of a road, and give the nodes of the variable its end."""
        if not manager.set_trans_road(group.name, road):
            text = f"{group.name!r} has a road already: the first one is kept, {road_text(road)} is not recorded"
            context.log.warned(text)
            _log.warning("variable %s", text)
        manager.set_changed_graph_id(group.name, graph_id)
        context.changed_names.append(group.name)
        _update_descs(group, road[-1].output)
        if all(step.node_type in DATA_UNCHANGED_TYPES for step in road):
            for node in group.variables:
                _renew(node, manager, FAILED)
        context.log.changed(f"{group.name!r} takes the road {road_text(road)}")


def road_text(road: list[TransNodeInfo] | tuple[TransNodeInfo, ...]) -> str:
    """Return a road for a person, from the variable's first form to its last."""
    first = desc_text(road[0].input) if road else "nothing"
    return " ".join([first, *(f"-{step.node_type}-> {desc_text(step.output)}" for step in road)])


def _renew_from_graph(graph: ComputeGraph, manager: VarManager) -> None:
    """Give the variables that the manager knows the formats that the graph has, and stage their descriptions."""
    for node in graph.all_nodes():
        if node.type in VARIABLE_TYPES and manager.is_var_exist(node.name):
            _renew(node, manager, GE_GRAPH_VARIABLE_OP_PASS_FAILED)
            manager.record_staged_var_desc(graph.graph_id, node.name, variable_desc(node))


def _renew(node: Node, manager: VarManager, status: int) -> None:
    try:
        manager.renew_cur_var_desc(node.name, variable_desc(node))
    except VariableError as error:
        raise GraphError(node.owner_compute_graph.name, str(error), node=node.name, status=status) from error


def _fuse(group: VariableGroup, log: PassLog) -> list[TransNodeInfo]:
    """Fold what all readers agree on, again and again; return the road."""
    road: list[TransNodeInfo] = []
    while True:
        try:
            step = next_step(group)
            check_inverse_writers(group)
        except FusionRefused as reason:
            log.refused(group.name, f"no step after the {len(road)} of its road: {reason}" if road else str(reason))
            return road
        if not road and has_other_format(group, step):
            road.append(TransNodeInfo("ReFormat", variable_desc(group.variables[0]), step.input))
        road.append(step)
        _remove_trans_ops(group)


def _remove_trans_ops(group: VariableGroup) -> None:
    """Let what read the trans ops read the variable, and the ref nodes what their writers read."""
    writers = [(ref, writer_of(ref)) for ref in group.refs]
    for node, _ in list(group.readers()):
        _remove(node)
    for ref, writer in writers:
        if writer_of(ref) is not writer:  # it was a reader too, and is gone
            continue
        if writer.in_data_anchor(0).peer is None:
            raise GraphError(writer.owner_compute_graph.name, "input 0 is not linked", node=writer.name)
        if len(writer.out_data_nodes) > 1:
            _bypass(ref, writer)
        else:
            _remove(writer)


def _remove(node: Node) -> None:
    isolate_node(node, [0])
    node.owner_compute_graph.remove_node(node)


def _bypass(ref: Node, writer: Node) -> None:
    """Let a ref node read what its writer reads; the writer stays for the others that read it."""
    copy_in_ctrl_edges(writer, ref)
    source, anchor = writer.in_data_anchor(0).peer, ref.in_data_anchor(0)
    anchor.unlink()
    if source is not None:
        source.link_to(anchor)


def _update_descs(group: VariableGroup, end: TensorDesc) -> None:
    """Give the nodes of a variable, then its ref nodes, what the road ends in."""
    for node in group.variables:
        desc = variable_desc(node).replace(
            origin_shape=end.origin_shape, shape=end.shape, format=end.format, dtype=end.dtype
        )
        node.op_desc.update_output_desc(0, desc)
        for ref in group.refs:
            ref.op_desc.update_output_desc(0, desc)
            ref.op_desc.update_input_desc(0, desc)
