"""Compiling a graph of a session in GE's order: cache, passes, memory of variables, model, conversion of their bytes.

Source: GE source, compiler/graph/manager/graph_manager.cc, GraphManager::PreRun.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from gevar.align import SESSION_MEM_ALIGN_BYTES, align_up
from gevar.compile import (
    GraphRebuildStateCtrl,
    ModelCache,
    PassContext,
    PassLog,
    PassManager,
    VarMemAssignUtil,
    compile_passes,
)
from gevar.compile.model_cache import EXTERNAL_WEIGHT_DIR
from gevar.compile.model_cache_files import GRAPH_KEY
from gevar.compile.model_cache_load import graph_of
from gevar.compile.node_kinds import CONST_TYPES, NET_OUTPUT
from gevar.compile.var_mem_assign_util_ops import has_static_memory, var_op_of
from gevar.errors import GraphError, StateError
from gevar.graph import ComputeGraph, GeTensor, Model, Node, OpDesc
from gevar.om import GeModel, GeRootModel
from gevar.om.header import NAME_MAX_BYTES, ModelFileHeader
from gevar.om.node import CONSTANT
from gevar.om.weights_placing import place_weights
from gevar.proto import ge_ir
from gevar.proto.tensor_descriptor import tensor_desc_from_proto, tensor_desc_to_proto
from gevar.runtime.trans_steps import convert, warn_of_losses
from gevar.runtime.trans_var_data import COPY_FROM_VAR_NODE, COPY_VALUE, trans_all_var_data
from gevar.session.graph_calls import DATA
from gevar.session.host_kernels import check_nodes
from gevar.status import FAILED
from gevar.types import DeviceId
from gevar.types.tensor_desc import ATTR_INIT_VALUE
from gevar.types.tensor_sizes import tensor_size_in_bytes
from gevar.var import VarManager, VarOp
from gevar.var.graph_tables import DATA_UNCHANGED_TYPES
from gevar.var.var_op import VARIABLE
from gevar.weights import value_bins
from gevar.weights.value_bins import VALUE_BINS

_VALUE: Final = "value"
_SESSION_ID: Final = "session_id"
_MEMORY_SIZE: Final = "memory_size"
_VARIABLE_BASE: Final = "task_gen_variable_addr"
_VARIABLE_SIZE: Final = "variable_size"


@dataclass(frozen=True, slots=True)
class CompiledGraph:
    """What a graph was compiled to.

    Attributes
    ----------
    graph_id
        The graph.
    model
        The model, with the compiled graph and the weights.
    is_from_cache
        Whether it was found in the model cache; then no pass ran.
    log
        What the passes did.
    converted
        Variables whose bytes were brought into another form.
    weight_dir
        Directory of external weights, see `ModelCache.weight_dir`; None where neither cache nor option names one.
    paths_by_id
        Files of external weights by `file_id`, from the option ``ge.exec.value_bins``.
    """

    graph_id: int
    model: GeRootModel
    is_from_cache: bool
    log: PassLog
    converted: tuple[str, ...]
    weight_dir: Path | None
    paths_by_id: Mapping[str, str]

    @property
    def graph(self) -> ComputeGraph:
        """The compiled graph."""
        return graph_of(self.model.models[0])


def compile_graph(
    graph: ComputeGraph,
    var_manager: VarManager,
    rebuild_ctrl: GraphRebuildStateCtrl,
    options: Mapping[str, str],
    device_id: DeviceId,
) -> CompiledGraph:
    """Compile a graph, which is changed, and bring the bytes of variables on a device into the forms it gives them.

    Raises
    ------
    GraphError
        The graph is wrong, or has a node that cannot be computed.
    ModelFileError, VariableError, FormatError
        The cache is damaged; a variable has no memory, or cannot be converted.
    StateError, AclError, OutOfMemoryError
        The variables sleep; the device refuses memory or a copy.
    ValueError
        The option ``ge.exec.value_bins`` cannot be read.

    After failure: variables, their bytes, device memory and rebuild control are as before.
    """
    vm, graph_id = var_manager, graph.graph_id
    if vm.is_asleep(device_id):
        raise StateError(f"the variables sleep on device {device_id}: call wake before graph {graph_id} is compiled")
    paths_by_id = value_bins(options.get(VALUE_BINS, ""))
    _add_net_output(graph)
    context = PassContext(vm, rebuild_ctrl)
    with vm.transaction(), rebuild_ctrl.transaction(), vm.memory_transaction():
        with ModelCache(graph, vm, rebuild_ctrl, options) as cache:
            model = cache.try_load_model_from_cache()
            is_from_cache, weight_dir = model is not None, cache.weight_dir or options.get(EXTERNAL_WEIGHT_DIR) or None
            if model is None:
                PassManager(compile_passes(options)).run(graph, context)
                check_nodes(graph)
                _check_constants(graph)
                _bring_initial_values(graph, vm)
                model = _model_of(graph, vm)
                cache.try_cache_model(model)
        compiled = graph_of(model.models[0])
        if is_from_cache:
            _check_ends(graph, compiled)
        check_nodes(compiled)
        ops = [op for op in static_ops(compiled) if op.op_type == VARIABLE]
        with _bytes_kept(vm, ops, device_id, graph_id):
            converted = trans_all_var_data(vm, ops, device_id, graph_id, threads=1)
        rebuild_ctrl.set_graph_build_end(graph_id)
    directory = Path(weight_dir) if weight_dir else None
    return CompiledGraph(graph_id, model, is_from_cache, context.log, tuple(converted), directory, paths_by_id)


def static_ops(graph: ComputeGraph) -> list[VarOp]:
    """Return the nodes that have memory for the life of the session as the manager sees them, each name once."""
    found: dict[str, VarOp] = {}
    for node in graph.all_nodes():
        if has_static_memory(node) and node.name not in found:
            found[node.name] = var_op(node)
    return list(found.values())


def var_op(node: Node) -> VarOp:
    """Return a node as the manager sees it, with the attributes that say whether it starts as a copy."""
    found = var_op_of(node)
    source, is_filled = (node.op_desc.attrs.get(name) for name in (COPY_FROM_VAR_NODE, COPY_VALUE))
    if not isinstance(source, str):
        return found
    return replace(found, attrs={**found.attrs, COPY_FROM_VAR_NODE: source, COPY_VALUE: int(is_filled is True)})


def _check_constants(graph: ComputeGraph) -> None:
    """Refuse constants whose bytes are not those of their shape."""
    for node in graph.all_nodes():
        if node.type not in CONST_TYPES or not node.op_desc.output_descs:
            continue
        weight, size_bytes = (
            node.op_desc.attrs.get_as(_VALUE, GeTensor),
            tensor_size_in_bytes(node.op_desc.output_desc(0)),
        )
        given = "no bytes are" if weight is None else f"{len(weight.data)} B are"
        if weight is None or len(weight.data) != size_bytes:
            reason = f"{node.type}: its description takes {size_bytes} B, {given} given in {_VALUE!r}"
            raise GraphError(node.owner_compute_graph.name, reason, node=node.name, status=FAILED)


def _check_ends(graph: ComputeGraph, cached: ComputeGraph) -> None:
    """Refuse a cached model that takes or gives something else than the graph."""
    ends, found = _ends(graph), _ends(cached)
    if ends != found:
        reason = f"the cached model takes {found[0]} and gives {found[1]} outputs, the graph {ends[0]} and {ends[1]}"
        raise GraphError(cached.name, f"{reason}; give it a {GRAPH_KEY} of its own, or remove the entry", status=FAILED)


def _ends(graph: ComputeGraph) -> tuple[dict[str, str], int]:
    """Data nodes with what they are, and the number of outputs."""
    data = {node.name: node.op_desc.output_desc(0) for node in graph if node.type == DATA and node.op_desc.output_descs}
    count = next((len(node.in_data_nodes) for node in graph if node.type == NET_OUTPUT), 0)
    return {name: f"{desc.dtype.name} {list(desc.shape)}" for name, desc in sorted(data.items())}, count


def _add_net_output(graph: ComputeGraph) -> None:
    """Let a node take the outputs of a graph, as passes look at nodes only."""
    if not graph.outputs or any(node.type == NET_OUTPUT for node in graph):
        return
    name = "Node_Output"
    while name in graph:
        name += "_"
    descs = [anchor.node.op_desc.output_desc(anchor.idx) for anchor in graph.outputs]
    end = graph.add_node(OpDesc(name, NET_OUTPUT, inputs=descs))
    for index, anchor in enumerate(graph.outputs):
        anchor.link_to(end.in_data_anchor(index))


def _bring_initial_values(graph: ComputeGraph, vm: VarManager) -> None:
    """Let the initial values of variables follow the conversions of these."""
    for node in graph.all_nodes():
        if node.type != VARIABLE or not has_static_memory(node):
            continue
        desc = node.op_desc.output_desc(0)
        value, road = desc.init_value, vm.get_trans_road(node.name)
        if value is None or not road:
            continue
        stored = tensor_desc_from_proto(value.desc)
        if stored.same_description(desc) or not stored.same_description(road[0].input):
            continue
        data, lost = convert(np.frombuffer(value.data, np.uint8), road)
        warn_of_losses(node.name, lost)
        stored = stored.replace(format=desc.format, dtype=desc.dtype, shape=desc.shape)
        tensor = ge_ir.TensorDef(desc=tensor_desc_to_proto(stored), data=data.tobytes())
        attrs = {**desc.attrs, ATTR_INIT_VALUE: ge_ir.AttrDef(t=tensor)}
        node.op_desc.update_output_desc(0, desc.replace(attrs=attrs))


def _model_of(graph: ComputeGraph, vm: VarManager) -> GeRootModel:
    """Give the tensors of a graph their places, and make a model of it."""
    memory = VarMemAssignUtil(vm, graph)
    memory.assign_var_memory()
    size_bytes = _assign_work_memory(graph)
    memory.assign_var_attr2_nodes()
    memory.assign_memory2_has_ref_attr_node()
    for node in graph.all_nodes():
        peers = [anchor.peer for anchor in node.in_data_anchors if anchor.peer is not None]
        node.op_desc.input_i = tuple(peer.node.op_desc.output_i[peer.idx] for peer in peers)
    model = Model(graph.name, graph)
    model.attrs[_SESSION_ID] = vm.session_id
    model.attrs[_MEMORY_SIZE] = size_bytes
    model.attrs[_VARIABLE_BASE] = vm.memory_config.var_mem_logic_base
    model.attrs[_VARIABLE_SIZE] = vm.get_var_mem_size()
    found = GeModel(model)
    place_weights(found)
    name = graph.name.encode()[:NAME_MAX_BYTES].decode(errors="ignore")
    return GeRootModel(ModelFileHeader(name=name), [found])


def _assign_work_memory(graph: ComputeGraph) -> int:
    """Give each output that is no variable and no constant a place of its own in work memory; return its size."""
    end = 0
    for node in graph.all_nodes():
        if has_static_memory(node):
            continue
        offsets = []
        for desc in node.op_desc.output_descs:
            offsets.append(0 if node.type == CONSTANT else end)
            end += 0 if node.type == CONSTANT else align_up(tensor_size_in_bytes(desc), SESSION_MEM_ALIGN_BYTES)
        node.op_desc.output_i = tuple(offsets)
    return end


@contextmanager
def _bytes_kept(vm: VarManager, ops: list[VarOp], device_id: DeviceId, graph_id: int) -> Iterator[None]:
    """Write the bytes of variables that are converted in place again, if the block raises."""
    kept = []
    for op in ops:
        road = vm.get_trans_road(op.name)
        if not road or vm.get_changed_graph_id(op.name) != graph_id or vm.get_allocated_graph_id(op.name) == graph_id:
            continue
        if all(
            step.node_type in DATA_UNCHANGED_TYPES for step in road
        ):  # the bytes stay, and have their new form already
            continue
        addrs = [vm.get_var_addr(op.name, desc) for desc in (road[0].input, road[-1].output)]
        if addrs[0] == addrs[1] and vm.get_var_mgr_info(addrs[0], device_id) is not None:
            data = np.empty(tensor_size_in_bytes(road[0].input), np.uint8)
            vm.read_var_memory(addrs[0], data, device_id)
            kept.append((addrs[0], data))
    try:
        yield
    except BaseException:
        with ExitStack() as stack:
            for addr, data in kept:
                stack.callback(vm.write_var_memory, addr, data, device_id)
        raise
