"""What the manager needs to know of a node, and nothing else of the graph."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from gevar.types import DataType, TensorDesc
from gevar.types.data_type import UNSUPPORTED_SIZE

VARIABLE: Final = "Variable"
CONSTANTOP: Final = "Constant"
FILECONSTANT: Final = "FileConstant"
CONSTPLACEHOLDER: Final = "ConstPlaceHolder"

REF_VAR_SRC_VAR_NAME: Final = "ref_var_src_var_name"
"""Attribute of an op or of its output 0: the variable that the node is a reference to."""

AttrValue = int | str | tuple[int, ...]
"""Value of an op attribute; a data type is its `DataType` (a number), a list of integers a tuple."""

Bytes = bytes | bytearray | memoryview
"""Contiguous bytes in host memory."""


@dataclass(frozen=True, slots=True, eq=False)
class VarOp:
    """A node with lasting memory, as the manager sees it.

    Attributes
    ----------
    name, op_type : str
        Name of the node and type of its op (`VARIABLE`, `CONSTANTOP`, ...).
    output_desc : tuple of TensorDesc
        Descriptions of the outputs.
    output_offsets : tuple of int
        Logical addresses of the outputs, where they are known.
    value : bytes-like or None
        Data of the tensor attribute ``value`` (a constant's weight). It is kept, not copied: its bytes must not change
        while a manager knows the op.
    attrs : mapping
        Other attributes of the op by GE's names.

    Source: GE source, graph_metadef/graph/normal_graph, OpDesc.

    Examples
    --------
    >>> op = VarOp("w", FILECONSTANT, attrs={"location": "w.bin", "length": 64})
    >>> op.file_slice
    ('w.bin', 0, 64)
    """

    name: str
    op_type: str
    output_desc: tuple[TensorDesc, ...] = ()
    output_offsets: tuple[int, ...] = ()
    value: Bytes | None = field(default=None, repr=False)
    attrs: Mapping[str, AttrValue] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def size_code(self) -> int:
        """Element size code of output 0: bytes, or 1000 + bits; -1 without an output or a fixed size."""
        return self.output_desc[0].dtype.size_code if self.output_desc else UNSUPPORTED_SIZE

    @property
    def ref_source(self) -> str | None:
        """Name of the variable that this node is a reference to; None for a node that is none.

        Source: GE source, base/graph/build/memory/var_mem_assign_util.cc, AssignMemory2HasRefAttrNode.
        """
        source = self.attrs.get(REF_VAR_SRC_VAR_NAME)
        if source is None and self.output_desc:
            attr = self.output_desc[0].attrs.get(REF_VAR_SRC_VAR_NAME)
            source = None if attr is None else attr.s.decode(errors="replace")
        return source if isinstance(source, str) and source else None

    @property
    def file_slice(self) -> tuple[str, int, int] | None:
        """Path, offset and length in bytes of a file constant with a `location`; None for every other op.

        Raises
        ------
        ValueError
            One of the three attributes has the wrong type.
        """
        if self.op_type != FILECONSTANT:
            return None
        path = self.attrs.get("location", "")
        if not isinstance(path, str):
            raise ValueError(f"op {self.name!r}: attribute location is {path!r}; give a path")
        return (path, self.int_attr("offset", 0), self.int_attr("length", 0)) if path else None

    def int_attr(self, name: str, default: int | None = None) -> int:
        """Return an integer attribute.

        Raises
        ------
        ValueError
            The attribute is not an integer, or missing while there is no default.
        """
        value = self.attrs.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"op {self.name!r}: attribute {name} is {value!r}; give an integer")
        return value

    def ints_attr(self, name: str) -> tuple[int, ...]:
        """Return an attribute that is a list of integers.

        Raises
        ------
        ValueError
            The attribute is missing or not a tuple of integers.
        """
        value = self.attrs.get(name)
        if not isinstance(value, tuple) or not all(isinstance(item, int) for item in value):
            raise ValueError(f"op {self.name!r}: attribute {name} is {value!r}; give a tuple of integers")
        return value

    def dtype_attr(self, name: str) -> DataType:
        """Return an attribute that is a data type.

        Raises
        ------
        ValueError
            The attribute is missing or not an integer. A number without a type gives `DT_UNDEFINED`.
        """
        return DataType.from_number(self.int_attr(name))
