"""Kernels of operators on the host: arrays of the inputs in, the array of output 0 out.

They are for running small graphs without a card; each says beforehand whether it can do what an operator asks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gevar.compile.node_kinds import NET_OUTPUT
from gevar.compile.var_mem_assign_util_ops import var_op_of
from gevar.errors import FormatError, GraphError
from gevar.formats import cast, cast_supported, transfer
from gevar.formats.conversion import Rules
from gevar.graph import ComputeGraph, Node, OpDesc
from gevar.om.node import CONSTANT, CONSTANTOP, CONSTPLACEHOLDER, FILECONSTANT, VARIABLE
from gevar.session.graph_calls import DATA, given_to, is_call, made_by
from gevar.status import UNSUPPORTED
from gevar.types import DataType, Format, TensorDesc
from gevar.types.format import format_to_serial, primary_format

Array = npt.NDArray[Any]

SOURCE_TYPES: Final = frozenset({DATA, CONSTANT, VARIABLE, CONSTANTOP, FILECONSTANT, CONSTPLACEHOLDER})
"""Types of nodes that have their bytes, or are given them."""

_CHOOSES: Final = "it chooses a graph while it runs, which host kernels cannot"
_WHY_NOT: Final = MappingProxyType(
    {
        "VariableV2": "GE gives it no memory when a graph is compiled; make it a Variable",
        "RefData": "it is memory of the caller that the graph may write; make it a Variable, or Data to be read",
        "VarHandleOp": "it is a handle without memory; make it a Variable",
        **dict.fromkeys(
            ("If", "StatelessIf", "_If", "Case", "StatelessCase", "While", "_While", "StatelessWhile"), _CHOOSES
        ),
    }
)
"""What to say of types that belong to variables and cannot be computed."""


@dataclass(frozen=True, slots=True)
class HostKernel:
    """How an operator is computed.

    Attributes
    ----------
    run : callable
        Operator and arrays of its linked inputs to the array of output 0.
    refusal : callable
        Operator and number of its linked inputs to why it cannot be computed; "" where it can.
    is_in_place : bool
        Whether output 0 lies where input 0 lies.
    """

    run: Callable[[OpDesc, Sequence[Array]], Array]
    refusal: Callable[[OpDesc, int], str]
    is_in_place: bool = False


def check_nodes(graph: ComputeGraph) -> None:
    """Check that every node of a graph and of the graphs it calls can be computed, or has its bytes.

    Raises
    ------
    GraphError
        One cannot (status UNSUPPORTED); names operator and node.
    """
    consts: dict[str, Node] = {}
    for node in graph.all_nodes():
        if node.type in (CONSTANT, FILECONSTANT):
            other = consts.setdefault(node.name, node)
            if other is not node and (node.type == CONSTANT or var_op_of(node).attrs != var_op_of(other).attrs):
                name = other.owner_compute_graph.name
                raise _refused(node, f"graph {name!r} has a {other.type} of this name, too; rename one")
        if is_call(node):
            given_to(node)
            made_by(node)
        elif node.type not in (*SOURCE_TYPES, NET_OUTPUT):
            host_kernel(node)
        elif node.type != NET_OUTPUT and node.op_desc.output_descs:
            check_desc(node, node.op_desc.output_desc(0))


def host_kernel(node: Node) -> HostKernel:
    """Return the kernel of a node that can be computed as it is described.

    Raises
    ------
    GraphError
        There is none, or it cannot (status UNSUPPORTED); names operator and node.
    """
    kernel, op = HOST_KERNELS.get(node.type), node.op_desc
    if kernel is None:
        known = f"known are {', '.join(sorted(HOST_KERNELS))}"
        raise _refused(node, f"there is no host kernel for {node.type}; {_WHY_NOT.get(node.type, known)}")
    linked = [anchor.idx for anchor in node.in_data_anchors if anchor.peer is not None]
    if linked != list(range(len(linked))) or not linked or not op.output_descs:
        reason = f"inputs {linked} are linked and it has {len(op.output_descs)} outputs"
        raise _refused(node, f"{node.type}: {reason}; link its inputs from 0 on, without a gap")
    for desc in (*op.input_descs[: len(linked)], op.output_desc(0)):
        check_desc(node, desc)
    reason = kernel.refusal(op, len(linked))
    if reason:
        raise _refused(node, f"{node.type}: {reason}")
    return kernel


def check_desc(node: Node, desc: TensorDesc) -> None:
    """Raise `GraphError` where a tensor of a node cannot be an array (status UNSUPPORTED)."""
    if min(desc.shape, default=0) < 0:
        raise _refused(node, f"{node.type}: shape {list(desc.shape)} has an unknown dimension; give it a number")
    if desc.dtype.is_packed or desc.dtype.element_bits is None:
        raise _refused(node, f"{node.type}: {desc.dtype.name} has no element of whole bytes; use another type")


def _refused(node: Node, reason: str) -> GraphError:
    return GraphError(node.owner_compute_graph.name, reason, node=node.name, status=UNSUPPORTED)


def _words(desc: TensorDesc) -> str:
    return f"{desc.dtype.name} {list(desc.shape)} {format_to_serial(desc.format)}"


def _copy(_op: OpDesc, inputs: Sequence[Array]) -> Array:
    return inputs[0]


def _refuse_copy(op: OpDesc, _count: int) -> str:
    source, target = op.input_desc(0), op.output_desc(0)
    is_equal = source.dtype == target.dtype and prod(source.shape) == prod(target.shape)
    return "" if is_equal else f"{_words(source)} has other bytes than {_words(target)}"


def _trans_data(op: OpDesc, inputs: Sequence[Array]) -> Array:
    source, target = op.input_desc(0), op.output_desc(0)
    return inputs[0] if source.format == target.format else transfer(inputs[0], source, target)


def _refuse_trans_data(op: OpDesc, count: int) -> str:
    source, target = op.input_desc(0), op.output_desc(0)
    if source.format == target.format:
        return _refuse_copy(op, count)
    try:
        conversion, forward = Rules(source, target, target.format).complete()
    except FormatError as error:
        return str(error)
    shape = conversion.stored_shape if forward else conversion.plain_shape
    return "" if shape == target.shape else f"{_words(source)} becomes {list(shape)}, not {_words(target)}"


def _cast(op: OpDesc, inputs: Sequence[Array]) -> Array:
    source, target = op.input_desc(0).dtype, op.output_desc(0).dtype
    return inputs[0] if source == target else cast(inputs[0], source, target)[0]


def _refuse_cast(op: OpDesc, _count: int) -> str:
    source, target = op.input_desc(0), op.output_desc(0)
    is_known = source.dtype == target.dtype or cast_supported(source.dtype, target.dtype)
    return "" if is_known and source.shape == target.shape else f"there is none of {_words(source)} to {_words(target)}"


def _ufunc(function: Callable[[Array, Array], Array]) -> Callable[[OpDesc, Sequence[Array]], Array]:
    return lambda _op, inputs: np.asarray(function(inputs[0], inputs[1]))


def _refuse_elements(op: OpDesc, count: int) -> str:
    """Two inputs of one data type, whose elements fit each other, and an output that fits them."""
    if count != 2:
        return f"{count} inputs are linked; it takes 2"
    first, second, target = op.input_desc(0), op.input_desc(1), op.output_desc(0)
    both = f"{_words(first)} and {_words(second)}"
    if not first.dtype == second.dtype == target.dtype:
        return f"{both} make {_words(target)}: the data types differ; put a Cast before it"
    if prod(first.shape) > 1 and prod(second.shape) > 1 and not _same_layout(first, second):
        return f"{both} have their elements in another order; put a TransData before it"
    try:
        shape = np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        return f"shapes of {both} do not fit each other"
    if shape != target.shape:
        return f"{both} make {list(shape)}, not {list(target.shape)}"
    return ""


def _refuse_difference(op: OpDesc, count: int) -> str:
    is_bool = op.output_desc(0).dtype == DataType.DT_BOOL
    return "there is no difference of truth values" if is_bool else _refuse_elements(op, count)


def _refuse_assign(op: OpDesc, count: int) -> str:
    """As `_refuse_elements`, into a target that keeps its shape."""
    refuse = _refuse_difference if op.type == "AssignSub" else _refuse_elements
    reason, shape = refuse(op, count), op.output_desc(0).shape
    kept = op.input_desc(0).shape if count else shape
    return reason or ("" if kept == shape else f"{list(shape)} is to be assigned to {list(kept)}")


def _same_layout(first: TensorDesc, second: TensorDesc) -> bool:
    formats = {primary_format(first.format), primary_format(second.format)}
    return len(formats - {Format.FORMAT_ND}) <= 1


def _mat_mul(op: OpDesc, inputs: Sequence[Array]) -> Array:
    product = np.matmul(*(_turned(op, number, array) for number, array in enumerate(inputs[:2], 1)))
    return np.asarray(product + inputs[2] if len(inputs) > 2 else product)


def _turned(op: OpDesc, number: int, array: Array) -> Array:
    return array.swapaxes(-1, -2) if op.attrs.get_as(f"transpose_x{number}", bool) else array


def _refuse_mat_mul(op: OpDesc, count: int) -> str:
    """Matrices whose inner sizes are equal, and a bias that fits the product."""
    descs, target = op.input_descs[:count], op.output_desc(0)
    if count not in (2, 3) or any(len(desc.shape) != 2 for desc in descs[:2]):
        return f"shapes {[list(desc.shape) for desc in descs]} are linked; it takes two matrices, and a bias"
    if any(desc.dtype != target.dtype for desc in descs):
        return f"{', '.join(map(_words, descs))} make {_words(target)}: the data types differ; put a Cast before it"
    (rows, inner), (other, columns) = (
        desc.shape[::-1] if op.attrs.get_as(f"transpose_x{number}", bool) else desc.shape
        for number, desc in enumerate(descs[:2], 1)
    )
    if inner != other or target.shape != (rows, columns):
        return f"[{rows}, {inner}] by [{other}, {columns}] do not make {list(target.shape)}"
    bias = descs[2].shape if count > 2 else ()
    fits = bias in ((), (1,), (columns,), (1, columns), target.shape)
    return "" if fits else f"a bias {list(bias)} does not fit the product {list(target.shape)}"


def _assigned(_op: OpDesc, inputs: Sequence[Array]) -> Array:
    return np.array(np.broadcast_to(inputs[1], inputs[0].shape))


_COPY: Final = HostKernel(_copy, _refuse_copy)
_TRANS_DATA: Final = HostKernel(_trans_data, _refuse_trans_data)
_MAT_MUL: Final = HostKernel(_mat_mul, _refuse_mat_mul)

HOST_KERNELS: Final[Mapping[str, HostKernel]] = MappingProxyType(
    {
        **dict.fromkeys(("Identity", "Reshape", "ReFormat", "Squeeze", "SqueezeV2", "SqueezeV3"), _COPY),
        **dict.fromkeys(("Unsqueeze", "UnsqueezeV2", "UnsqueezeV3", "ExpandDims"), _COPY),
        **dict.fromkeys(("TransData", "TransposeD"), _TRANS_DATA),
        **dict.fromkeys(("MatMul", "MatMulV2"), _MAT_MUL),
        "Cast": HostKernel(_cast, _refuse_cast),
        "Add": HostKernel(_ufunc(np.add), _refuse_elements),
        "Sub": HostKernel(_ufunc(np.subtract), _refuse_difference),
        "Mul": HostKernel(_ufunc(np.multiply), _refuse_elements),
        "Assign": HostKernel(_assigned, _refuse_assign, is_in_place=True),
        "AssignAdd": HostKernel(_ufunc(np.add), _refuse_assign, is_in_place=True),
        "AssignSub": HostKernel(_ufunc(np.subtract), _refuse_assign, is_in_place=True),
    }
)
"""Kernels by operator type."""
