"""From a compiled graph to an execution graph: variables and constants in its init part, host kernels in its main part.

A kernel reads its inputs from their memory and writes its output to memory of the run, or to that of a variable.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import numpy as np

from gevar.compile.descriptions import str_attr
from gevar.compile.node_kinds import NET_OUTPUT
from gevar.compile.var_mem_assign_util_ops import var_op_of
from gevar.errors import GraphError, StateError
from gevar.graph import ComputeGraph, Node, OpDesc, OutDataAnchor
from gevar.om.node import CONSTANTOP, FILECONSTANT, VARIABLE
from gevar.runtime import (
    FileConstantFiles,
    LoweringGlobalData,
    LowerResult,
    Stage,
    TensorData,
    TensorPlacement,
    lowering_file_constant,
    lowering_variable,
)
from gevar.runtime.file_constant_lowering import FILE_CONSTANT_KERNELS
from gevar.runtime.kernels import (
    KERNEL_COPY_TENSOR,
    KERNEL_DATA,
    Kernel,
    KernelContext,
    input_of,
    read_bytes,
    write_bytes,
)
from gevar.runtime.variable_lowering import ASSIGN_VAR_NAME, assigned_variable, output_memory
from gevar.session.graph_calls import DATA, body_of, given_to, is_call, made_by
from gevar.session.host_kernels import SOURCE_TYPES, Array, HostKernel, host_kernel
from gevar.session.loaded_tensor import LoadedTensor
from gevar.types import TensorDesc
from gevar.types.tensor_sizes import tensor_size_in_bytes
from gevar.var import VarOp

KERNEL_HOST_OP: Final = "HostOp"
_HBM: Final = TensorPlacement.ON_DEVICE_HBM


@dataclass(frozen=True, slots=True)
class HostOp:
    """An operator and its kernel, as a node of the execution graph carries them."""

    op_desc: OpDesc
    kernel: HostKernel


def host_op(context: KernelContext, inputs: Sequence[object], value: object) -> tuple[object, ...]:
    """Compute an operator; inputs are its linked inputs, then the memory of its output, which it gives.

    Raises
    ------
    StateError
        A memory is missing, or too small (status FAILED).
    AclError
        A copy was refused.
    """
    work = input_of(KERNEL_HOST_OP, (value,), 0, HostOp)
    op = work.op_desc
    tensors = [input_of(KERNEL_HOST_OP, inputs, number, TensorData) for number in range(len(inputs))]
    arrays = [_read(context, tensor, op, op.input_desc(number)) for number, tensor in enumerate(tensors[:-1])]
    with np.errstate(all="ignore"):  # infinity and NaN are values, as on a device
        result = np.ascontiguousarray(work.kernel.run(op, arrays), op.output_desc(0).dtype.to_numpy())
    _check_room(op, tensors[-1], result.nbytes)
    if result.nbytes:
        write_bytes(context, tensors[-1], 0, result.reshape(-1).view(np.uint8))
    return (tensors[-1],)


def _read(context: KernelContext, tensor: TensorData, op: OpDesc, desc: TensorDesc) -> Array:
    array = np.empty(desc.shape, desc.dtype.to_numpy())
    _check_room(op, tensor, array.nbytes)
    if array.nbytes:
        read_bytes(context, tensor, 0, array.reshape(-1).view(np.uint8))
    return array


def _check_room(op: OpDesc, tensor: TensorData, size_bytes: int) -> None:
    if tensor.size_bytes < size_bytes:
        have = f"{tensor.size_bytes} B at {tensor.addr:#x}"
        raise StateError(f"{op.type} {op.name!r} needs {size_bytes} B and has {have}; check its descriptions")


GRAPH_KERNELS: Final[Mapping[str, Kernel]] = MappingProxyType({**FILE_CONSTANT_KERNELS, KERNEL_HOST_OP: host_op})
"""Kernels of the execution graph, those of `gevar.runtime` included."""


@dataclass(frozen=True, slots=True)
class LoweredGraph:
    """A graph that can be executed.

    Attributes
    ----------
    shared
        The execution graph.
    outputs
        Outputs of nodes that are outputs of the graph, in order, with their memory.
    """

    shared: LoweringGlobalData
    outputs: tuple[tuple[OutDataAnchor, LowerResult], ...]


def lower_graph(
    graph: ComputeGraph, inputs: Sequence[str], constants: Mapping[str, LoadedTensor], files: FileConstantFiles
) -> LoweredGraph:
    """Lower a compiled graph.

    Parameters
    ----------
    graph
        The graph.
    inputs
        Names of its Data nodes, in the order of the inputs of a run.
    constants
        Where Consts lie, by name.
    files
        Where the bytes of FileConstants are.

    Raises
    ------
    GraphError
        A node cannot be computed, or a constant has no bytes on the device.
    VariableError
        A FileConstant does not say where its bytes are.
    """
    lowering = _Lowering(inputs, constants, files)
    ends = lowering.lower(graph, {})
    return LoweredGraph(lowering.shared, tuple(ends))


class _Lowering:
    """Lowers graphs into one execution graph; the graph of a call is lowered in its place."""

    def __init__(self, inputs: Sequence[str], constants: Mapping[str, LoadedTensor], files: FileConstantFiles) -> None:
        self.shared = LoweringGlobalData()
        self._inputs, self._constants, self._files = inputs, constants, files

    def lower(
        self, graph: ComputeGraph, results: dict[OutDataAnchor, LowerResult]
    ) -> list[tuple[OutDataAnchor, LowerResult]]:
        """Lower the nodes of a graph; return what its NetOutput takes. `results` has what the Data of a body are."""
        ends: list[tuple[OutDataAnchor, LowerResult]] = []
        for node in graph.topological_order():
            sources = [anchor.peer for anchor in node.in_data_anchors if anchor.peer is not None]
            if node.type == NET_OUTPUT:
                ends += [(source, results[source]) for source in sources]
            elif is_call(node):
                self._lower_call(node, results)
            elif node.op_desc.output_descs and OutDataAnchor(node, 0) not in results:
                results[OutDataAnchor(node, 0)] = self._lower_node(node, [results[source] for source in sources])
            if node.type in SOURCE_TYPES or is_call(node):
                self._copy_assigned(node, results)
        return ends

    def _copy_assigned(self, node: Node, results: Mapping[OutDataAnchor, LowerResult]) -> None:
        """Copy outputs that are assigned to a variable, of a node that cannot write them there itself."""
        for out in node.out_data_anchors:
            name = str_attr(node.op_desc.output_desc(out.idx), ASSIGN_VAR_NAME)
            if name and out in results:
                holders = [results[out].addr, self.shared.variable(name).addr]
                self.shared.graph.add(Stage.MAIN, KERNEL_COPY_TENSOR, holders)

    def _lower_call(self, call: Node, results: dict[OutDataAnchor, LowerResult]) -> None:
        inside = {OutDataAnchor(data, 0): results[source] for data, source in given_to(call).items()}
        self.lower(body_of(call), inside)
        for index, out in made_by(call).items():
            results[OutDataAnchor(call, index)] = inside[out]

    def _lower_node(self, node: Node, sources: Sequence[LowerResult]) -> LowerResult:
        """Lower a node to what its output 0 is."""
        shared, desc = self.shared, node.op_desc.output_desc(0)
        op = VarOp(node.name, node.type, (desc.replace(size=tensor_size_in_bytes(desc)),))
        if node.type in (VARIABLE, CONSTANTOP):
            return lowering_variable(op, shared)
        if node.type == DATA:
            return LowerResult(shared.graph.add(Stage.MAIN, KERNEL_DATA, value=self._inputs.index(node.name)), _HBM)
        if node.type == FILECONSTANT:
            return lowering_file_constant(_with_shapes(var_op_of(node)), self._files, shared)
        if node.type in SOURCE_TYPES:
            return LowerResult(shared.const(_constant(node, self._constants.get(node.name))), _HBM)
        kernel = host_kernel(node)
        is_in_place = kernel.is_in_place and not assigned_variable(op)
        memory = sources[0] if is_in_place else output_memory(op, shared)
        holders = [*(source.addr for source in sources), memory.addr]
        work = HostOp(node.op_desc, kernel)
        return LowerResult(shared.graph.add(Stage.MAIN, KERNEL_HOST_OP, holders, value=work), memory.placement)


def _with_shapes(op: VarOp) -> VarOp:
    """A FileConstant with both of its shapes; one without has those of its output, as where GE runs no init graph."""
    shape, origin_shape = op.output_desc[0].shape, op.output_desc[0].origin_shape
    shapes = {"shape": shape, "original_shape": shape if origin_shape is None else origin_shape}
    return replace(op, attrs={**shapes, **op.attrs})


def _constant(node: Node, row: LoadedTensor | None) -> TensorData:
    if row is None or row.dev_addr is None:
        raise GraphError(node.owner_compute_graph.name, f"a {node.type} without bytes on the device", node=node.name)
    return TensorData(row.dev_addr, row.size_bytes, _HBM)
