"""The tensors of an OM file that go to the device, in the order of loading, and where the file has their bytes.

Loading and verifying both walk this list, each with a file of its own, so the n-th tensor of one is that of the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final

from gevar.errors import FormatError, ModelFileError, SizeOverflowError
from gevar.om import OmFile, open_om
from gevar.om.attr_value import plain_value
from gevar.om.consts import ConstNode, ConstStorage
from gevar.om.model import OmModel
from gevar.om.node import CONSTANT, CONSTANTOP, VARIABLE, OmNode
from gevar.om.om_file import Kind
from gevar.runtime.rt_var_manager import VARIABLE_PLACEMENT
from gevar.types import TensorDesc
from gevar.types.tensor_sizes import calc_tensor_mem_size
from gevar.var import VarOp
from gevar.var.var_op import REF_VAR_SRC_VAR_NAME, AttrValue
from gevar.weights import FileRegion
from gevar.weights.file_constant import FILE_ID, FILE_PATH, LOCATION

ModelSource = str | PathLike[str] | bytes | bytearray | memoryview
"""A model to load: the path of an OM file, or its bytes."""

_VAR_OP_ATTRS: Final = (
    *(LOCATION, "offset", "length", FILE_PATH, FILE_ID),
    *("storage_shape", "dtype", "size", "placement", "addr"),
    *(REF_VAR_SRC_VAR_NAME, VARIABLE_PLACEMENT),
)
"""Attributes of nodes that the variable manager reads."""


@dataclass(frozen=True, slots=True)
class FileTensor:
    """A tensor as the file has it.

    Attributes
    ----------
    model, node
        Where it stands.
    desc
        Description of its bytes: of the value for a Const, of output 0 for the others.
    const
        Place of the bytes of a Const or Constant; None for the others.
    """

    model: OmModel
    node: OmNode
    desc: TensorDesc
    const: ConstNode | None

    @property
    def size_bytes(self) -> int:
        """Bytes of data: as many as the file has, else as shape and type give, else the stored size."""
        if self.const is not None:
            return self.const.size_bytes
        try:
            size_bytes = calc_tensor_mem_size(self.desc.shape, self.desc.format, self.desc.dtype)
        except (FormatError, SizeOverflowError):
            return self.desc.size
        return self.desc.size if size_bytes < 0 else size_bytes

    def content(self, path: Path | None) -> FileRegion | memoryview | None:
        """Return the bytes the device starts with: a region of the file at `path`, or bytes in memory.

        None for a tensor that starts with nothing: a Variable without an initial value, or an external one.
        """
        if self.const is not None:
            if path is not None and self.const.file_offset is not None:
                return FileRegion(path, self.const.file_offset, self.const.size_bytes, self.model.source.state)
            return self.const.data()
        value = self.desc.init_value if self.node.type == VARIABLE else None
        return None if value is None else memoryview(value.data)

    def var_op(self) -> VarOp:
        """Return the node as the variable manager sees it, with a copy of the bytes of a Constant, which it keeps.

        Raises
        ------
        ModelFileError
            Attributes or bytes of the node cannot be read.
        """
        attrs: dict[str, AttrValue] = {}
        for name in _VAR_OP_ATTRS:
            value = plain_value(self.node.attr(name))
            if isinstance(value, int | str):
                attrs[name] = value
            elif isinstance(value, tuple):
                attrs[name] = tuple(item for item in value if isinstance(item, int))
        data = self.const.read() if self.const is not None else None
        return VarOp(self.node.name, self.node.type, self.node.output_descs, self.node.output_i, data, attrs)


def open_model(model: ModelSource, kind: Kind = "model") -> tuple[OmFile, Path | None]:
    """Open a model, or a bundle of them; the path is None for bytes.

    Raises
    ------
    ModelFileError
        As `gevar.om.open_om`.
    """
    if isinstance(model, bytes | bytearray | memoryview):
        return OmFile.from_bytes(model, kind=kind), None
    return open_om(model, kind=kind), Path(model)


def files_inside(om: OmFile) -> Iterator[OmFile]:
    """Yield a file and then the files inside it, each before what is inside that."""
    yield om
    for submodel in om.submodels:
        if submodel.om is not None:
            yield from files_inside(submodel.om)


def file_tensors(om: OmFile) -> Iterator[FileTensor]:
    """Yield the tensors of a file and of the files inside, each file's as `own_tensors`.

    Raises
    ------
    ModelFileError
        As `own_tensors`.
    """
    for inner in files_inside(om):
        yield from own_tensors(inner)


def own_tensors(om: OmFile) -> Iterator[FileTensor]:
    """Yield the Const nodes of every model of a file, then its variables; not those of the files inside.

    Constants without a value are left out, and those of a root graph whose bytes lie with a sub-model.

    Raises
    ------
    ModelFileError
        A constant does not lie inside its file, or a variable has no output.
    """
    for model in om.models:
        for const in model.const_nodes():
            if const.node.type == CONSTANT and _has_place(model, const) and (desc := const.desc) is not None:
                yield FileTensor(model, const.node, desc, const)
    for model in om.models:
        for node in model.variable_nodes():
            if not node.output_descs:
                raise ModelFileError(om.path, None, f"node {node.name}", f"a {node.type} without an output")
            constant = model.const_node(node) if node.type == CONSTANTOP else None
            yield FileTensor(model, node, node.output_descs[0], constant)


def _has_place(model: OmModel, const: ConstNode) -> bool:
    return const.storage == ConstStorage.INLINE or (const.storage != ConstStorage.NONE and model.weights is not None)
