"""Description of a tensor: element type, format, shape, what they were at the origin, and the fields stored with it."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import index
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Self, TypedDict, Unpack

from gevar.types.data_type import DataType
from gevar.types.format import Format

if TYPE_CHECKING:
    from gevar.proto.ge_ir import AttrDef, TensorDef

_FORMAT_LIMIT: Final = 1 << 32
ATTR_INNER_OFFSET: Final = "_inner_offset"
ATTR_INIT_VALUE: Final = "_init_value"


class TensorDescChanges(TypedDict, total=False):
    """Fields that `TensorDesc.replace` takes: those of `TensorDesc`."""

    dtype: DataType
    format: int
    shape: tuple[int, ...]
    origin_format: int
    origin_shape: tuple[int, ...] | None
    origin_dtype: DataType
    size: int
    weight_size: int
    data_offset: int
    real_dim_cnt: int
    reuse_input: bool
    reuse_input_index: int
    output_tensor: bool
    input_tensor: bool
    device_type: str
    cmps_size: int
    cmps_tab: str
    cmps_tab_offset: int
    attrs: Mapping[str, "AttrDef"]
    attr_groups: bytes


_NO_ATTRS: Final[Mapping[str, "AttrDef"]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TensorDesc:
    """Describe one tensor, as an input, an output or a variable.

    A value: it never changes, compares by content, and can be a key. The messages in `attrs` belong to the description;
    nobody changes them.

    Attributes
    ----------
    dtype : DataType
        Element type.
    format : int
        Full 32-bit format value: primary format, sub-format and C0 code (see `gevar.types.format`).
    shape : tuple of int
        Dimensions in memory (storage shape), in elements; negative means unknown, empty means a scalar.
    origin_format, origin_shape, origin_dtype
        The same as the framework sees the tensor. `origin_shape` is None and `origin_dtype` is `DT_UNDEFINED` where
        they were never set.
    size : int
        Stored size in bytes, given by whoever made the description (GE: GetSize). All arithmetic of variable memory
        uses it; it is not computed from the shape.
    weight_size : int
        Bytes of a constant's data.
    data_offset : int
        Place of a constant's data in the weights of its model, in bytes.
    real_dim_cnt, reuse_input, reuse_input_index, output_tensor, input_tensor, device_type, cmps_size, cmps_tab, \
cmps_tab_offset
        Fields that GE stores with the description. `device_type` is "NPU" or "CPU".
    attrs : mapping of str to AttrDef
        User attributes, without the names under which a message carries the fields above.
    attr_groups : bytes
        The message `AttrGroups` in wire form, empty where there is none.

    Source: GE source, graph_metadef/graph/normal_graph/ge_tensor.cc, GeTensorDesc.

    Examples
    --------
    >>> desc = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (2, 3), size=64)
    >>> desc.same_description(desc.replace(size=32))
    True
    """

    dtype: DataType
    format: int
    shape: tuple[int, ...]
    origin_format: int = Format.FORMAT_ND
    origin_shape: tuple[int, ...] | None = None
    origin_dtype: DataType = DataType.DT_UNDEFINED
    size: int = 0
    weight_size: int = 0
    data_offset: int = 0
    real_dim_cnt: int = 0
    reuse_input: bool = False
    reuse_input_index: int = 0
    output_tensor: bool = False
    input_tensor: bool = False
    device_type: str = "NPU"
    cmps_size: int = 0
    cmps_tab: str = ""
    cmps_tab_offset: int = 0
    attrs: Mapping[str, "AttrDef"] = field(default_factory=lambda: _NO_ATTRS, hash=False)
    attr_groups: bytes = b""

    def __post_init__(self) -> None:
        """Take any sequence of integers as a shape and any mapping as attributes, and keep own copies of them.

        Raises
        ------
        ValueError
            The format has more than 32 bits.
        """
        object.__setattr__(self, "shape", tuple(map(index, self.shape)))
        if self.format >= _FORMAT_LIMIT:
            raise ValueError(f"format is {self.format}; give a value of 32 bits")
        if self.origin_shape is not None:
            object.__setattr__(self, "origin_shape", tuple(map(index, self.origin_shape)))
        if self.attrs is not _NO_ATTRS:
            object.__setattr__(self, "attrs", MappingProxyType(dict(self.attrs)) if self.attrs else _NO_ATTRS)

    @property
    def inner_offset(self) -> int:
        """Distance in bytes from the start of the variable this tensor lies in (attribute `_inner_offset`); else 0."""
        attr = self.attrs.get(ATTR_INNER_OFFSET)
        return 0 if attr is None else attr.i

    @property
    def init_value(self) -> "TensorDef | None":
        """Tensor that a variable starts with (attribute `_init_value`), None where there is none."""
        attr = self.attrs.get(ATTR_INIT_VALUE)
        return attr.t if attr is not None and attr.WhichOneof("value") == "t" else None

    def same_description(self, other: "TensorDesc") -> bool:
        """Tell whether format (the full value), element type and dimensions are equal; size and origin do not count.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::AssignVarMem.
        """
        return self.format == other.format and self.dtype == other.dtype and self.shape == other.shape

    def replace(self, **changes: Unpack[TensorDescChanges]) -> Self:
        """Return the description with some fields changed.

        Examples
        --------
        >>> TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (2,)).replace(shape=(3,)).shape
        (3,)
        """
        return dataclasses.replace(self, **changes)
