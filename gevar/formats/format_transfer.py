"""Conversion of a tensor between formats, shape inference, and the question which pairs there are.

Source: GE source, base/formats/formats.cc, TransDataFormat, TransTensorShape, IsTransFormatSupport.
Differs: the section on formats in docs/differences.md.
"""

from math import prod

import numpy as np
import numpy.typing as npt

from gevar.formats.conversion import Conversion, Rules
from gevar.formats.layouts import BACKWARD, FORWARD
from gevar.formats.matching_views import matching_views, padding
from gevar.formats.strided_copy import copy_elements, raw_type
from gevar.status import ACL_ERROR_GE_PARAM_INVALID
from gevar.types import TensorDesc
from gevar.types.format import primary_format

_Array = npt.NDArray[np.generic]


def supported(src: int, dst: int) -> bool:
    """Tell whether data is converted from one format value to another; C0 and sub-format do not count.

    Source: GE source, base/formats/formats.cc, IsTransFormatSupport.

    Examples
    --------
    >>> from gevar.types import Format
    >>> supported(Format.FORMAT_NCHW, Format.FORMAT_NC1HWC0), supported(Format.FORMAT_ND, Format.FORMAT_NCHW)
    (True, False)
    """
    key = primary_format(src), primary_format(dst)
    return key in FORWARD or key in BACKWARD


def infer_shape(src_desc: TensorDesc, dst_format: int) -> tuple[int, ...]:
    """Return the shape that a plain tensor has in another format, in elements.

    Parameters
    ----------
    src_desc
        Description of the plain tensor: element type, format, shape.
    dst_format
        Full 32-bit format value of the destination, with its C0 and, for FRACTAL_Z, its groups.

    Raises
    ------
    FormatError
        The pair has no shape inference (ACL_ERROR_GE_FORMAT_INVALID; a plain shape does not follow from a stored one),
        or the source breaks a rule: element type, dimensions, C0 or groups.

    Source: GE source, base/formats/formats.cc, TransTensorShape.

    Examples
    --------
    >>> from gevar.types import DataType, Format
    >>> from gevar.types.format import format_from_c0
    >>> src = TensorDesc(DataType.DT_FLOAT16, Format.FORMAT_NCHW, (1, 20, 2, 2))
    >>> infer_shape(src, format_from_c0(Format.FORMAT_NC1HWC0, 5))
    (1, 2, 2, 2, 16)
    """
    return Rules(src_desc, None, dst_format).forward().stored_shape


def transfer(array: _Array, src_desc: TensorDesc, dst_desc: TensorDesc, *, out: _Array | None = None) -> _Array:
    """Return the elements of a tensor in another format; padding is zero bytes, on the way back it is passed over.

    Elements are moved bit for bit. Beside the result it takes less than 1 MiB of memory, whatever the size.

    Parameters
    ----------
    array
        The elements, contiguous: an array of the source shape, or one dimension of as many elements. Its element type
        is that of `src_desc`, or an unsigned integer or raw bytes of the same width.
    src_desc, dst_desc
        Descriptions: element type, format with C0 and groups, shape. Element types are equal. The shape of the
        destination may be empty where it follows from the source and GE does not ask for it: FRACTAL_Z and its 3D and
        C04 kin, and transposes.
    out
        Contiguous memory for the result, which does not overlap `array`: as many elements of the same width.

    Returns
    -------
    numpy.ndarray
        `out`, or a new array of the destination shape; the element type is that of `array`.

    Raises
    ------
    FormatError
        There is no such conversion, or descriptions and data break a rule. It names both descriptions, and its status
        is GE's.
    ValueError
        `array` or `out` is not contiguous, or they overlap.

    After failure: nothing is written.
    Thread safety: any number of threads, on different `out`.
    Source: GE source, base/formats/formats.cc, TransDataFormat.

    Examples
    --------
    >>> from gevar.types import DataType, Format
    >>> src = TensorDesc(DataType.DT_INT32, Format.FORMAT_NHWC, (1, 1, 2, 3))
    >>> transfer(np.arange(6, dtype=np.int32), src, src.replace(format=Format.FORMAT_NCHW, shape=())).tolist()
    [[[[0, 3]], [[1, 4]], [[2, 5]]]]
    """
    rules = Rules(src_desc, dst_desc, dst_desc.format)
    conversion, forward = rules.complete()
    _check_data(rules, array, src_desc)
    shape = conversion.stored_shape if forward else conversion.plain_shape
    elements = array.reshape(-1).view(raw_type(array.itemsize))
    if out is None:
        out = np.empty(shape, array.dtype)
    target = _checked_out(rules, out, array, prod(shape))
    if prod(conversion.plain_shape):
        _move(conversion, elements, target, forward)
    elif forward:
        _clear(target)
    return out


def _move(conversion: Conversion, elements: _Array, target: _Array, forward: bool) -> None:
    """Copy every element to its place, and fill the rest with zeros."""
    if forward:
        for rest in padding(conversion, target):
            _clear(rest)
        for plain, stored in matching_views(conversion, elements, target, padded=True):
            copy_elements(stored, plain, target, elements)
    else:
        for plain, stored in matching_views(conversion, target, elements, padded=False):
            copy_elements(plain, stored, target, elements)


def _clear(part: _Array) -> None:
    """Make all bytes zero."""
    part[...] = np.zeros((), part.dtype)


def _check_data(rules: Rules, array: _Array, src: TensorDesc) -> None:
    """Hold an array against its description."""
    wanted = src.dtype.to_numpy()
    if array.dtype not in (wanted, np.dtype(f"V{wanted.itemsize}")) and array.dtype.str[1:] != f"u{wanted.itemsize}":
        rule = f"the array has elements of {array.dtype}; give {wanted}, or unsigned integers of {wanted.itemsize} B"
        raise rules.error(rule, ACL_ERROR_GE_PARAM_INVALID)
    if array.shape != src.shape and (array.ndim != 1 or array.size != prod(src.shape)):
        size_bytes = prod(src.shape) * wanted.itemsize
        rule = (
            f"the array has shape {list(array.shape)} and {array.nbytes} B, the source {list(src.shape)} and "
            f"{size_bytes} B; give one of the source's"
        )
        raise rules.error(rule, ACL_ERROR_GE_PARAM_INVALID)
    if not array.flags.c_contiguous:
        raise ValueError(f"the array of shape {array.shape} is not contiguous; pass numpy.ascontiguousarray of it")


def _checked_out(rules: Rules, out: _Array, array: _Array, count: int) -> _Array:
    """The memory for the result as raw elements."""
    if out.itemsize != array.itemsize or out.size != count:
        rule = f"out has {out.size} elements of {out.itemsize} B; {count} of {array.itemsize} B are written"
        raise rules.error(rule, ACL_ERROR_GE_PARAM_INVALID)
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise ValueError(f"out of shape {out.shape} is not contiguous or not writable; pass other memory")
    if np.may_share_memory(out, array):
        raise ValueError("out overlaps the array; pass other memory")
    return out.reshape(-1).view(raw_type(out.itemsize))
