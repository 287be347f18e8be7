"""A node of a graph as the variable manager sees it, and the bytes that its memory needs."""

from typing import Final

from gevar.errors import FormatError, GraphError, SizeOverflowError
from gevar.graph import GeTensor, Node
from gevar.status import FAILED
from gevar.types import DataType, MemType
from gevar.types.tensor_sizes import tensor_memory_size_with_auto_padding, tensor_size_in_bytes
from gevar.var import CONSTANTOP, FILECONSTANT, VARIABLE, VarOp
from gevar.var.var_op import CONSTPLACEHOLDER, REF_VAR_SRC_VAR_NAME, AttrValue

CONSTANT: Final = "Const"
STATIC_MEMORY_TYPES: Final = frozenset({VARIABLE, CONSTANTOP, FILECONSTANT, CONSTPLACEHOLDER})
"""Types of nodes that get memory for the life of a session."""

ATTR_SRC_CONST_NAME: Final = "_src_const_name"
"""Attribute: the name that the manager knows a node by."""
ATTR_NAME_WEIGHTS: Final = "value"
ATTR_OUTPUT_MEMORY_TYPE: Final = "_output_memory_type"
ATTR_NAME_LENGTH: Final = "length"
_OUTPUT_IN_RDMA: Final = 1
_PLACE_ATTRS: Final = {
    FILECONSTANT: ("location", "offset", ATTR_NAME_LENGTH, "file_path", "file_id", "shape", "original_shape"),
    CONSTPLACEHOLDER: ("storage_shape", "dtype", "size", "placement", "addr"),
}
"""Attributes that say where the bytes of a constant are, and its shapes, by type."""


def graph_error(node: Node, reason: str, status: int = FAILED) -> GraphError:
    """Make the error for a node."""
    return GraphError(node.owner_compute_graph.name, reason, node=node.name, status=status)


def has_static_memory(node: Node) -> bool:
    """Tell whether a node gets memory of its own for the life of a session; a reference to a variable does not."""
    return node.type in STATIC_MEMORY_TYPES and REF_VAR_SRC_VAR_NAME not in node.op_desc.attrs


def manager_name(node: Node) -> str:
    """Return the name that the variable manager knows a node by."""
    return node.op_desc.attrs.get_as(ATTR_SRC_CONST_NAME, str) or node.name


def var_op_of(node: Node) -> VarOp:
    """Return a node as the variable manager sees it, with its weight and the attributes that say where its bytes are.

    Attributes of another kind than the manager reads are left out; it says so where it needs one.
    """
    attrs: dict[str, AttrValue] = {}
    for name in (*_PLACE_ATTRS.get(node.type, ()), REF_VAR_SRC_VAR_NAME):
        value = node.op_desc.attrs.get(name)
        if isinstance(value, int | str):
            attrs[name] = value
        elif isinstance(value, tuple):
            attrs[name] = tuple(item for item in value if isinstance(item, int))
    weight = node.op_desc.attrs.get_as(ATTR_NAME_WEIGHTS, GeTensor) if node.type == CONSTANTOP else None
    descs, offsets = node.op_desc.output_descs, node.op_desc.output_i
    return VarOp(node.name, node.type, descs, offsets, None if weight is None else weight.data, attrs)


def output_memory_type(node: Node) -> MemType:
    """Return the kind of memory that a variable is wanted in."""
    in_rdma = node.op_desc.attrs.get_as(ATTR_OUTPUT_MEMORY_TYPE, int) == _OUTPUT_IN_RDMA
    return MemType.RT_MEMORY_RDMA_HBM if in_rdma else MemType.RT_MEMORY_HBM


def static_memory_size(node: Node, pad_bytes: int) -> int:
    """Return the bytes of memory of output 0: those of the weight for constants of text, else those of the shape.

    Parameters
    ----------
    node
        The node.
    pad_bytes
        Padding of the SoC, added to sizes that follow from the shape.

    Raises
    ------
    GraphError
        The size is not known: a constant of text has no weight, or the shape has no size (status FAILED).

    Source: GE source, base/graph/build/memory/var_mem_assign_util.cc, VarMemAssignUtil::AssignStaticMemory2Node.
    """
    desc, attrs = node.op_desc.output_desc(0), node.op_desc.attrs
    if desc.dtype == DataType.DT_STRING:
        if node.type in (CONSTANT, CONSTANTOP):
            weight = attrs.get_as(ATTR_NAME_WEIGHTS, GeTensor)
            if weight is None:
                raise graph_error(node, f"holds text and has no weight; give it the attribute {ATTR_NAME_WEIGHTS}")
            return len(weight.data)
        length = attrs.get_as(ATTR_NAME_LENGTH, int) if node.type == FILECONSTANT else None
        if length is not None:
            return length
    try:
        return tensor_memory_size_with_auto_padding(tensor_size_in_bytes(desc), pad_bytes)
    except (FormatError, SizeOverflowError) as error:
        raise graph_error(node, f"its memory has no size: {error}") from error
