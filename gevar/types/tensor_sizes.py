"""Sizes of tensors: elements, exact bytes, and bytes with the padding that compilation adds.

All counts and sizes are what GE keeps in a signed 64-bit integer; -1 is GE's word for "not known".

Source: GE source, graph_metadef/graph/utils/tensor_size_utils.cc and tensor_utils.cc; metadef source,
inc/external/graph/types.h, GetSizeInBytes.
"""

from collections.abc import Sequence
from typing import Final

from gevar.align import INT64_MAX, TENSOR_ALIGN_BYTES
from gevar.errors import FormatError, SizeOverflowError
from gevar.status import FAILED
from gevar.types.data_type import STRING_ELEMENT_BYTES, DataType
from gevar.types.format import Format, format_to_serial, primary_format
from gevar.types.tensor_desc import TensorDesc

UNKNOWN: Final = -1
"""Count or size of a tensor with an unknown dimension."""

ATTR_NO_TILING: Final = "_tensor_no_tiling_mem_type"
ATTR_MAX_SHAPE: Final = "_tensor_max_shape"
ATTR_SHAPE_RANGE: Final = "shape_range"

_COUNTABLE: Final = frozenset(
    {
        Format.FORMAT_ND,
        Format.FORMAT_MD,
        Format.FORMAT_NCHW,
        Format.FORMAT_NHWC,
        Format.FORMAT_HWCN,
        Format.FORMAT_CHWN,
        Format.FORMAT_C1HWC0,
        Format.FORMAT_C1HWNCoC0,
        Format.FORMAT_NC1HWC0,
        Format.FORMAT_FRACTAL_Z,
        Format.FORMAT_FILTER_HWCK,
        Format.FORMAT_FRACTAL_NZ,
        Format.FORMAT_FRACTAL_NZ_C0_2,
        Format.FORMAT_FRACTAL_NZ_C0_4,
        Format.FORMAT_FRACTAL_NZ_C0_8,
        Format.FORMAT_FRACTAL_NZ_C0_16,
        Format.FORMAT_FRACTAL_NZ_C0_32,
        Format.FORMAT_FRACTAL_ZZ,
        Format.FORMAT_NDHWC,
        Format.FORMAT_NCDHW,
        Format.FORMAT_DHWCN,
        Format.FORMAT_DHWNC,
        Format.FORMAT_FRACTAL_Z_3D,
        Format.FORMAT_FRACTAL_Z_3D_TRANSPOSE,
        Format.FORMAT_NDC1HWC0,
        Format.FORMAT_FRACTAL_Z_C04,
        Format.FORMAT_FRACTAL_ZN_LSTM,
        Format.FORMAT_NC1HWC0_C04,
        Format.FORMAT_ND_RNN_BIAS,
        Format.FORMAT_FRACTAL_ZN_RNN,
        Format.FORMAT_NYUV,
        Format.FORMAT_NYUV_A,
        Format.FORMAT_NCL,
        Format.FORMAT_FRACTAL_Z_WINO,
    }
)
"""Primary formats that GE counts the elements of."""


def element_count(shape: Sequence[int], fmt: int) -> int:
    """Return the number of elements of a storage shape, -1 when it is unknown.

    Dimensions are looked at from the left: the first negative one makes the count unknown, the first zero makes it 0,
    before anything else is looked at. So (-1, 0) is unknown while (0, -1) has 0 elements. A scalar has 1.

    Raises
    ------
    FormatError
        GE does not count this format (status FAILED).
    SizeOverflowError
        The product does not fit into 63 bits (status FAILED).

    Source: GE source, graph_metadef/graph/utils/tensor_size_utils.cc, CalcTensorElementCnt.
    """
    for dim in shape:
        if dim < 0:
            return UNKNOWN
        if dim == 0:
            return 0
    if primary_format(fmt) not in _COUNTABLE:
        raise FormatError(
            f"shape {tuple(shape)} in format {format_to_serial(fmt)} ({fmt})",
            "elements of this format cannot be counted; use a storage format such as ND or NC1HWC0",
            status=FAILED,
        )
    count = 1
    for dim in shape:
        count *= dim
        if count > INT64_MAX:
            raise SizeOverflowError(f"the product of shape {tuple(shape)}", count, INT64_MAX, status=FAILED)
    return count


def shape_size(shape: Sequence[int]) -> int:
    """Return the product of the dimensions; 0 for a scalar, -1 when a dimension is unknown or the product too large.

    Source: GE source, graph_metadef/graph/normal_graph/ge_tensor.cc, GeShape::GetShapeSize.
    """
    if not shape:
        return 0
    size = 1
    for dim in shape:
        if dim < 0:
            return UNKNOWN
        size *= dim
        if size > INT64_MAX:
            return UNKNOWN
    return size


def calc_tensor_mem_size(shape: Sequence[int], fmt: int, dtype: DataType) -> int:
    """Return the exact bytes of a tensor; -1 when the shape is unknown, the type has no size or the size too large.

    Types smaller than a byte are packed: the bits of all elements, rounded up to whole bytes. One element of
    `DT_STRING` and `DT_STRING_REF` takes 16 bytes.

    Raises
    ------
    FormatError, SizeOverflowError
        The elements cannot be counted, as in `element_count`.

    Source: GE source, graph_metadef/graph/utils/tensor_size_utils.cc, CalcTensorMemSize.

    Examples
    --------
    >>> calc_tensor_mem_size((2, 3), Format.FORMAT_ND, DataType.DT_FLOAT)
    24
    >>> calc_tensor_mem_size((3,), Format.FORMAT_ND, DataType.DT_INT4)
    2
    """
    count = element_count(shape, fmt)
    if count < 0:
        return UNKNOWN
    if dtype in (DataType.DT_STRING, DataType.DT_STRING_REF):
        bits = STRING_ELEMENT_BYTES * 8
    elif dtype.element_bits is None:
        return UNKNOWN
    else:
        bits = dtype.element_bits
    size_bytes = -(-count * bits // 8)
    return size_bytes if size_bytes <= INT64_MAX else UNKNOWN


def tensor_size_in_bytes(desc: TensorDesc) -> int:
    """Return the exact bytes that a description needs.

    A tensor marked `_tensor_no_tiling_mem_type` may have unknown dimensions: their largest values are taken, from
    `_tensor_max_shape`, else from the upper bounds of `shape_range`.

    Raises
    ------
    FormatError
        The size is not known: a dimension is unknown, the type has no size, the size does not fit, or GE does not
        count the format (status FAILED).
    SizeOverflowError
        The number of elements does not fit into 63 bits (status FAILED).

    Source: GE source, graph_metadef/graph/utils/tensor_size_utils.cc, GetTensorSizeInBytes.
    """
    shape = desc.shape
    if any(dim < 0 for dim in shape) and ATTR_NO_TILING in desc.attrs and desc.attrs[ATTR_NO_TILING].b:
        shape = _largest_shape(desc)
    size_bytes = calc_tensor_mem_size(shape, desc.format, desc.dtype)
    if size_bytes < 0:
        if any(dim < 0 for dim in shape):
            rule = "unknown shape, so the size is not known; give every dimension"
        elif desc.dtype.element_bits is None:
            rule = "elements of this type have no fixed size; use another type"
        else:
            rule = "the size in bytes does not fit into 63 bits; use smaller dimensions"
        raise FormatError(f"{desc.dtype.name} tensor of shape {shape}", rule, status=FAILED)
    return size_bytes


def padding_bytes(desc: TensorDesc) -> int:
    """Return how many of the bytes that a tensor takes in its storage format hold no element of it.

    0 where the description does not tell its origin, or has its format, or one of the sizes is not known.

    Examples
    --------
    >>> desc = TensorDesc(
    ...     DataType.DT_FLOAT16,
    ...     Format.FORMAT_NC1HWC0,
    ...     (1, 1, 2, 2, 16),
    ...     origin_format=Format.FORMAT_NCHW,
    ...     origin_shape=(1, 3, 2, 2),
    ... )
    >>> padding_bytes(desc)
    104
    """
    if desc.origin_shape is None or primary_format(desc.format) == primary_format(desc.origin_format):
        return 0
    try:
        held_bytes = calc_tensor_mem_size(desc.origin_shape, desc.origin_format, desc.dtype)
        size_bytes = calc_tensor_mem_size(desc.shape, desc.format, desc.dtype)
    except (FormatError, SizeOverflowError):
        return 0
    return max(size_bytes - held_bytes, 0) if held_bytes >= 0 else 0


def _largest_shape(desc: TensorDesc) -> tuple[int, ...]:
    """The shape with unknown dimensions replaced by their largest values."""
    if ATTR_MAX_SHAPE in desc.attrs:
        largest = list(desc.attrs[ATTR_MAX_SHAPE].list.i)
    elif ATTR_SHAPE_RANGE in desc.attrs:
        ranges = desc.attrs[ATTR_SHAPE_RANGE].list_list_int.list_list_i
        largest = [bounds.list_i[-1] for bounds in ranges if bounds.list_i]
    else:
        return desc.shape
    if len(largest) != len(desc.shape):
        raise FormatError(
            f"shape {desc.shape}",
            f"{len(largest)} largest dimensions are given for {len(desc.shape)}; give one for each",
            status=FAILED,
        )
    return tuple(most if dim < 0 else dim for dim, most in zip(desc.shape, largest, strict=True))


def tensor_memory_size_in_bytes(desc: TensorDesc) -> int:
    """Return the bytes of a tensor with 32 spare bytes, rounded up to 32: ((size + 63) // 32) * 32.

    Raises
    ------
    FormatError, SizeOverflowError
        As `tensor_size_in_bytes`.

    Source: GE source, graph_metadef/graph/utils/tensor_size_utils.cc, GetTensorMemorySizeInBytes.
    """
    return tensor_memory_size_with_auto_padding(tensor_size_in_bytes(desc))


def tensor_memory_size_with_auto_padding(size_bytes: int, pad_bytes: int = 32) -> int:
    """Return a size in bytes with the padding of the SoC: ((size + 32 + pad - 1) // 32) * 32, at least 32.

    A size so near to 2**63 that the result would not fit stays as it is.

    Parameters
    ----------
    size_bytes
        Exact size of the tensor.
    pad_bytes
        The SoC's property AICoreSpec/padding_size.

    Source: GE source, graph_metadef/graph/utils/tensor_size_utils.cc, GetTensorMemorySizeInBytesWithAutoPadding.

    Examples
    --------
    >>> [tensor_memory_size_with_auto_padding(size) for size in (0, 1, 32, 33, 100)]
    [32, 64, 64, 96, 160]
    """
    padded = size_bytes + TENSOR_ALIGN_BYTES + pad_bytes - 1
    if padded > INT64_MAX:
        return size_bytes
    return max(padded // TENSOR_ALIGN_BYTES * TENSOR_ALIGN_BYTES, TENSOR_ALIGN_BYTES)
