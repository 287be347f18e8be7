"""Kinds of nodes by operator type, and the attributes that make a node a reference to a variable.

Source: GE source, graph_metadef/graph/debug/ge_attr_define.cc, inc/framework/common/types.h; compiler/graph/passes/
variable_optimize/.
"""

from typing import Final

from gevar.graph import Node
from gevar.var.var_op import REF_VAR_SRC_VAR_NAME

VARIABLE_TYPES: Final = frozenset({"Variable", "VariableV2"})
"""Variable nodes."""

VAR_LIKE_TYPES: Final = VARIABLE_TYPES | {"RefData"}
"""Variable nodes and references that a caller gives as data."""

DATA_TYPES: Final = frozenset({"Data", "RefData", "AippData", "AnnData"})
CONST_TYPES: Final = frozenset({"Const", "Constant"})
MERGE_TYPES: Final = frozenset({"Merge", "RefMerge"})
WHILE_TYPES: Final = frozenset({"While", "_While", "StatelessWhile"})

TRANS_OP_TYPES: Final = frozenset(
    {"TransData", "Transpose", "TransposeD", "Reshape", "ReFormat", "Cast", "Squeeze", "SqueezeV2", "UnsqueezeV2"}
) | {"ExpandDims", "SqueezeV3", "UnsqueezeV3"}
"""Ops that give their data input another form; the data input of each is input 0."""

FRAMEWORK_OP: Final = "FrameworkOp"
PARTITIONED_CALL: Final = "PartitionedCall"
NET_OUTPUT: Final = "NetOutput"

ORIGINAL_TYPE: Final = "original_type"
"""Attribute of a FrameworkOp: the type that its framework calls it."""

PARENT_NODE_INDEX: Final = "_parent_node_index"
"""Attribute of a Data in a subgraph, or of a description of a NetOutput's input: the input or output that it is of the
node that runs the subgraph."""

STREAM_LABEL: Final = "_stream_label"
INSERTED_BY_GE: Final = "_inserted_by_ge"


def is_var_like(node: Node) -> bool:
    """Tell whether a node is a variable or a reference to one."""
    return node.op_desc.type in VAR_LIKE_TYPES


def ref_source(node: Node) -> str | None:
    """Return the name of the variable that a node is a reference to; None for a node that is no ref node.

    A ref node is var-like and has the attribute `ref_var_src_var_name`; there is no type of that name.
    """
    attrs = node.op_desc.attrs
    if not is_var_like(node) or REF_VAR_SRC_VAR_NAME not in attrs:
        return None
    return attrs.get_as(REF_VAR_SRC_VAR_NAME, str)


def original_type(node: Node) -> str | None:
    """Return the type of a node, that in its framework for a FrameworkOp; None where such a node does not tell it."""
    return node.type if node.type != FRAMEWORK_OP else node.op_desc.attrs.get_as(ORIGINAL_TYPE, str)


def copy_stream_label(source: Node, target: Node) -> None:
    """Give a node the stream label of another, if that has one."""
    label = source.op_desc.attrs.get_as(STREAM_LABEL, str) if STREAM_LABEL in source.op_desc.attrs else None
    if label:
        target.op_desc.attrs[STREAM_LABEL] = label
