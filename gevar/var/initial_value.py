"""The value a variable starts with (`_init_value` of its description).

Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::CheckAndCopyInitValue.
"""

from gevar.errors import FormatError
from gevar.types import TensorDesc
from gevar.var.var_block import VarBlock


def _words(desc: TensorDesc) -> str:
    return f"{desc.dtype.name} {desc.shape} in format {int(desc.format)}"


def initial_data(block: VarBlock) -> bytes | None:
    """Return the bytes that device memory for a block starts with; None where nothing is laid down.

    Raises
    ------
    FormatError
        Shape, data type or format of the value differ from the variable's, or it is longer than the variable.

    Differs: edge 17 of docs/differences.md.
    """
    value = block.desc.init_value
    if value is None:
        return None
    from gevar.proto.tensor_descriptor import tensor_desc_from_proto  # messages are built at the first need

    desc = tensor_desc_from_proto(value.desc)
    if not desc.same_description(block.desc):
        rule = "shape, data type and format must be equal; give the value the variable's description"
        raise FormatError(f"initial value {_words(desc)}", rule, destination=f"{block.key}: {_words(block.desc)}")
    if len(value.data) > block.size_bytes:
        rule = f"it has {len(value.data)} B and the variable {block.size_bytes} B; give the variable a larger size"
        raise FormatError(f"initial value {_words(desc)}", rule, destination=str(block.key))
    return value.data
