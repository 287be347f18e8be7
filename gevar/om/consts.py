"""Where the bytes of a constant (node of type Const or Constant) lie.

In this order: inline in the value of the attribute; in the weights partition at the tensor's `merged_offset` (dialect
M); in the weights partition at the description's `data_offset`. The number of bytes is the description's `weight_size`,
which is to be trusted before the shape: quantised constants of dialect M are stored narrower than their type.

Source: GE source, graph_metadef/graph/serialization and base/common/model; measured on real files.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from gevar.om.node import OmNode
from gevar.om.source import ByteSource
from gevar.proto import ge_ir
from gevar.status import ACL_ERROR_GE_EXEC_LOAD_WEIGHT_PARTITION_FAILED as _WEIGHT_FAILED
from gevar.types.tensor_desc import TensorDesc

VALUE_ATTR = "value"
MERGED_OFFSET_ATTR = "merged_offset"


class ConstStorage(StrEnum):
    """Where the bytes are."""

    INLINE = "inline"
    DATA_OFFSET = "data_offset"
    MERGED_OFFSET = "merged_offset"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ConstNode:
    """A constant and the place of its bytes.

    Attributes
    ----------
    node : OmNode
        The node, with its output descriptions and offsets.
    layout : str
        Format text of the value as stored.
    storage : ConstStorage
        Where the bytes are; NONE for a node without a value.
    offset : int or None
        Bytes from the start of the weights partition; None when they are not there.
    size_bytes : int
        Bytes of data. 0 for a constant of a root graph whose bytes lie with the sub-model that uses it.
    declared_bytes : int
        Bytes by the description; differs from `size_bytes` where the data lie with another model.
    file_offset : int or None
        Bytes from the start of the file, for reading with `pread`; None for small inline data, which is in memory.
    """

    node: OmNode
    layout: str
    storage: ConstStorage
    offset: int | None
    size_bytes: int
    declared_bytes: int
    file_offset: int | None
    _source: ByteSource = field(repr=False)
    _start: int = field(repr=False)

    @property
    def name(self) -> str:
        """Name of the node."""
        return self.node.name

    @property
    def desc(self) -> TensorDesc | None:
        """Description of the value (not of the node's output), read at each call; None without a value."""
        attr = self.node.attr(VALUE_ATTR)
        return None if attr is None or attr.WhichOneof("value") != "t" else self.node.value_desc(attr.t.desc)

    def data(self) -> memoryview:
        """Return the bytes, read-only and without a copy.

        The view stays valid after the model file is closed. To copy out of a large one, read the file at `file_offset`
        instead: touching a view of a file that was cut meanwhile ends the process with a bus error.

        Raises
        ------
        ModelFileError
            The file became shorter.
        StateError
            The model file was closed.
        """
        return self._source.view(self._start, self.size_bytes, f"constant {self.name}")

    def read(self) -> bytes:
        """Return a copy of the bytes, read with `pread` where they are in a file.

        Raises
        ------
        ModelFileError, StateError
            As `data`.
        """
        return self._source.read(self._start, self.size_bytes, f"constant {self.name}")


def const_node(
    node: OmNode, model_def: ByteSource, weights: ByteSource | None, *, weights_elsewhere: bool = False
) -> ConstNode:
    """Find the bytes of a constant.

    Parameters
    ----------
    node
        A node of type Const or Constant.
    model_def, weights
        The MODEL_DEF partition, and the weights partition where there is one.
    weights_elsewhere
        Whether a missing weights partition is in order: the constants of a root graph lie with the sub-models.

    Raises
    ------
    ModelFileError
        The bytes do not lie inside the weights partition.
    """
    nothing = ByteSource.of_bytes(b"", model_def.name)
    attr = node.attr(VALUE_ATTR)
    if attr is None or attr.WhichOneof("value") != "t":
        return ConstNode(node, "", ConstStorage.NONE, None, 0, 0, None, nothing, 0)
    desc, layout = node.value_desc(attr.t.desc), attr.t.desc.layout
    apart = node.data_apart(VALUE_ATTR)
    if attr.t.data:
        data = ByteSource.of_bytes(attr.t.data, model_def.name)
        size_bytes = data.size_bytes
        return ConstNode(node, layout, ConstStorage.INLINE, None, size_bytes, size_bytes, None, data, 0)
    if apart is not None:
        at, size_bytes = model_def.base + apart.offset, apart.size_bytes
        return ConstNode(node, layout, ConstStorage.INLINE, None, size_bytes, size_bytes, at, model_def, apart.offset)
    storage, offset = _place(attr.t.desc, desc)
    declared = desc.weight_size
    if weights is None:
        if declared and not weights_elsewhere:
            reason = f"{declared} B in the weights partition are declared, the model has no such partition"
            raise model_def.error(0, f"constant {node.name}", reason, status=_WEIGHT_FAILED)
        return ConstNode(node, layout, storage, offset, 0, declared, None, nothing, 0)
    if offset < 0 or declared < 0 or offset + declared > weights.size_bytes:
        reason = f"{declared} B at {offset} leave the weights partition of {weights.size_bytes} B"
        raise weights.error(0, f"constant {node.name}", reason)
    return ConstNode(node, layout, storage, offset, declared, declared, weights.base + offset, weights, offset)


def _place(stored: ge_ir.TensorDescriptor, desc: TensorDesc) -> tuple[ConstStorage, int]:
    """Return how the weights partition is addressed, and the offset in it."""
    if MERGED_OFFSET_ATTR in stored.attr:
        return ConstStorage.MERGED_OFFSET, stored.attr[MERGED_OFFSET_ATTR].i
    return ConstStorage.DATA_OFFSET, desc.data_offset
