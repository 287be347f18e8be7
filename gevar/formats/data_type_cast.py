"""Casts of elements between data types, with GE's results, and a count of what is lost.

Source: GE source, base/common/datatype_transfer; base/formats/formats.cc, TransTensorDataType.
Differs: the section on casts in docs/differences.md.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from gevar.errors import FormatError
from gevar.formats import cast_loops as loops
from gevar.formats.cast_counts import NOTHING_LOST, CastCounts
from gevar.status import ACL_ERROR_GE_DATATYPE_INVALID, ACL_ERROR_GE_PARAM_INVALID
from gevar.types import DataType

OnLoss = Literal["ge", "ieee", "raise"]

BLOCK_ELEMENTS: Final = 1 << 16
"""Elements that are cast at a time: what a cast needs beside them stays in the cache."""

TABLE_BLOCK_ELEMENTS: Final = 1 << 20
"""The same for a cast by a table, whose loop goes by parts of its own."""

_Array = npt.NDArray[np.generic]
_Loop = Callable[[npt.NDArray[Any], npt.NDArray[Any], bool], CastCounts]

_FLOAT, _FLOAT16, _DOUBLE, _BF16 = DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_DOUBLE, DataType.DT_BF16
_INT8, _UINT8, _INT32, _INT64 = DataType.DT_INT8, DataType.DT_UINT8, DataType.DT_INT32, DataType.DT_INT64
_HIFLOAT8 = DataType.DT_HIFLOAT8
_FLOAT8 = (DataType.DT_FLOAT8_E5M2, DataType.DT_FLOAT8_E4M3FN, DataType.DT_FLOAT8_E8M0)


def _by_pattern(source: DataType, *destinations: DataType) -> dict[tuple[DataType, DataType], _Loop]:
    """Casts by a table; these, and they alone, are partial functions."""
    return {(source, one): partial(loops.by_pattern, source, one) for one in destinations}


CASTS: Final[dict[tuple[DataType, DataType], _Loop]] = {
    (_FLOAT, _FLOAT16): loops.float_to_float16,
    (_FLOAT, _INT32): loops.real_to_int32,
    (_FLOAT, _HIFLOAT8): partial(loops.float_to_byte, _HIFLOAT8),
    (_FLOAT16, _FLOAT): loops.float16_to_float,
    (_FLOAT16, _INT32): loops.float16_to_int32,
    **_by_pattern(_FLOAT16, _HIFLOAT8),
    (_INT32, _FLOAT): loops.exact,
    (_INT32, _FLOAT16): loops.int32_to_float16,
    (_INT32, _UINT8): loops.low_bits,
    (_INT32, _INT8): loops.low_bits,
    (_INT32, _INT64): loops.exact,
    (_INT32, _DOUBLE): loops.exact,
    (_UINT8, _FLOAT): loops.exact,
    (_UINT8, _INT32): loops.exact,
    (_INT8, _FLOAT): loops.exact,
    (_INT8, _INT32): loops.exact,
    (_INT64, _INT32): loops.low_bits,
    (_DOUBLE, _INT32): loops.real_to_int32,
    **_by_pattern(_HIFLOAT8, _FLOAT, _FLOAT16),
}
"""GE's pairs."""

ADDED_CASTS: Final[dict[tuple[DataType, DataType], _Loop]] = {
    (_FLOAT, _BF16): loops.float_to_bf16,
    (_BF16, _FLOAT): loops.bf16_to_float,
    **{(_FLOAT, one): partial(loops.float_to_byte, one) for one in _FLOAT8},
    **_by_pattern(_FLOAT16, _BF16, *_FLOAT8),
    **_by_pattern(_BF16, _FLOAT16, *_FLOAT8),
    **{key: loop for one in _FLOAT8 for key, loop in _by_pattern(one, _FLOAT, _FLOAT16, _BF16).items()},
}
"""Pairs that GE does not have; NaN and infinity stay where the destination has them."""

_ALL: Final = CASTS | ADDED_CASTS


def cast_supported(src: DataType, dst: DataType) -> bool:
    """Tell whether elements are cast from one data type to another; a type is not cast to itself.

    Source: GE source, base/formats/formats.cc, IsTransDataTypeSupport.

    Examples
    --------
    >>> cast_supported(DataType.DT_FLOAT, DataType.DT_FLOAT16), cast_supported(DataType.DT_BOOL, DataType.DT_INT8)
    (True, False)
    """
    return (src, dst) in _ALL


def cast(
    array: _Array, src: DataType, dst: DataType, *, on_loss: OnLoss = "ge", out: _Array | None = None
) -> tuple[_Array, CastCounts]:
    """Return elements in another data type, and what was lost.

    Beside the result it takes a few MiB of memory, whatever the size.

    Parameters
    ----------
    array
        The elements, contiguous, of any shape. Its element type is that of `src`, or an unsigned integer of the same
        width.
    src, dst
        Data types; `cast_supported` tells which.
    on_loss
        What becomes of NaN, infinity and numbers that are out of range: with `"ge"` GE's result bit for bit, mostly
        large finite numbers; `"ieee"` keeps NaN and infinity where the destination has them, and makes infinity of
        what is too large; `"raise"` refuses elements whose value would be lost.
    out
        Contiguous memory for the result, which does not overlap `array`: as many elements of the destination's width.

    Returns
    -------
    numpy.ndarray, CastCounts
        `out`, or a new array of the shape of `array`; and the counts.

    Raises
    ------
    FormatError
        There is no such cast (ACL_ERROR_GE_DATATYPE_INVALID), data or `out` are not of these types, or `on_loss` is
        `"raise"` and something would be lost (ACL_ERROR_GE_PARAM_INVALID).
    ValueError
        `array` or `out` is not contiguous, they overlap, or `on_loss` is unknown.

    After failure: nothing is written.
    Thread safety: any number of threads, on different `out`.
    Source: GE source, base/formats/formats.cc, TransTensorDataType.

    Examples
    --------
    >>> values, counts = cast(np.array([1.5, np.inf], np.float32), DataType.DT_FLOAT, DataType.DT_FLOAT16)
    >>> values.tolist(), counts.saturated
    ([1.5, 65504.0], 1)
    """
    loop = _ALL.get((src, dst))
    if loop is None:
        rule = "there is no cast between these data types"
        raise FormatError(src.name, rule, destination=dst.name, status=ACL_ERROR_GE_DATATYPE_INVALID)
    if on_loss not in ("ge", "ieee", "raise"):
        raise ValueError(f"on_loss is {on_loss!r}; give 'ge', 'ieee' or 'raise'")
    elements = _elements(array, src, src, dst, "the array")
    if out is None:
        out = np.empty(array.shape, dst.to_numpy())
    elif out.size != array.size or np.may_share_memory(out, array):
        raise ValueError(f"out has {out.size} elements and may overlap the array of {array.size}; pass other memory")
    target = _elements(out, dst, src, dst, "out")
    if on_loss == "raise":
        _refuse(_run(loop, elements, None, dst), src, dst)
    return out, _run(loop, elements, target, dst, ieee=on_loss == "ieee")


def _run(loop: _Loop, elements: _Array, target: _Array | None, dst: DataType, *, ieee: bool = False) -> CastCounts:
    """Cast block by block; without a target only count."""
    counts = NOTHING_LOST
    step = min(TABLE_BLOCK_ELEMENTS if isinstance(loop, partial) else BLOCK_ELEMENTS, max(1, len(elements)))
    spare = np.empty(step if target is None else 0, dst.to_numpy())
    with np.errstate(all="ignore"):  # NaN and overflow are counted
        for start in range(0, len(elements), step):
            block = elements[start : start + step]
            part = spare[: len(block)] if target is None else target[start : start + step]
            lost = loop(block, part, ieee)
            if lost is not NOTHING_LOST:
                counts += lost
    return counts


def _refuse(counts: CastCounts, src: DataType, dst: DataType) -> None:
    if counts.lost:
        rule = f"{counts.lost} values would be lost ({counts}); give on_loss 'ge' or 'ieee' to go on"
        raise FormatError(src.name, rule, destination=dst.name, status=ACL_ERROR_GE_PARAM_INVALID)


def _elements(array: _Array, dtype: DataType, src: DataType, dst: DataType, name: str) -> _Array:
    """The elements of an array in one row, with the numpy type of a data type."""
    wanted = dtype.to_numpy()
    if array.dtype != wanted and array.dtype.str[1:] != f"u{wanted.itemsize}":
        rule = f"{name} has elements of {array.dtype}; give {wanted}, or unsigned integers of {wanted.itemsize} B"
        raise FormatError(src.name, rule, destination=dst.name, status=ACL_ERROR_GE_PARAM_INVALID)
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} of shape {array.shape} is not contiguous; pass numpy.ascontiguousarray of it")
    return array.reshape(-1).view(wanted)
