"""Values of variables in another format or data type than the one they are stored in.

A storage format is converted to the format the framework sees first, and from there to any other one.
"""

import logging
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gevar.errors import FormatError
from gevar.formats import OnLoss, cast, infer_shape, supported, transfer
from gevar.types import DataType, TensorDesc
from gevar.types.format import primary_format

Array = npt.NDArray[Any]

_log: Final = logging.getLogger("gevar.var")


def to_form(
    name: str, value: Array, desc: TensorDesc, desc_format: int | None, dtype: DataType | None, on_loss: OnLoss
) -> Array:
    """Return a variable's value in a format and a data type, those of its description where None.

    Parameters
    ----------
    name
        Name of the variable.
    value
        Its value, as it is stored.
    desc
        Its description.
    desc_format, dtype
        What is wanted.
    on_loss
        As `gevar.formats.cast`.

    Raises
    ------
    FormatError
        There is no such conversion, or `on_loss` refuses what would be lost.
    """
    if desc_format is not None:
        value = _reformed(value, desc, _form_of(desc, desc_format))
    return _cast(name, value, desc.dtype, desc.dtype if dtype is None else dtype, on_loss)


def from_form(
    name: str, value: Array, desc: TensorDesc, desc_format: int | None, dtype: DataType | None, on_loss: OnLoss
) -> Array:
    """Return a value as a variable stores it, from a format and a data type; the reverse of `to_form`."""
    value = _cast(name, value, desc.dtype if dtype is None else dtype, desc.dtype, on_loss)
    if desc_format is None:
        return value
    return _reformed(value, desc.replace(format=desc_format, shape=value.shape), desc)


def _form_of(desc: TensorDesc, desc_format: int) -> TensorDesc:
    """A variable's description in another format."""
    if primary_format(desc_format) == primary_format(desc.format):
        return desc
    origin = _origin(desc)
    if primary_format(desc_format) == primary_format(origin.format):
        return origin
    source = desc if supported(desc.format, desc_format) and _is_plain(desc) else origin
    return desc.replace(format=desc_format, shape=infer_shape(source, desc_format))


def _is_plain(desc: TensorDesc) -> bool:
    return primary_format(desc.format) == primary_format(desc.origin_format)


def _origin(desc: TensorDesc) -> TensorDesc:
    """A variable's description as the framework sees it; its own where it says nothing of that."""
    if desc.origin_shape is None:
        return desc
    return desc.replace(format=desc.origin_format, shape=desc.origin_shape)


def _reformed(value: Array, source: TensorDesc, target: TensorDesc) -> Array:
    """Convert between two forms of a variable; by way of the framework's where there is no other."""
    if primary_format(source.format) == primary_format(target.format):
        if value.shape != target.shape:
            rule = f"the array has shape {list(value.shape)}; give one of {list(target.shape)}"
            raise FormatError(f"{source.dtype.name} {list(source.shape)}", rule)
        return value
    origin = _origin(target)
    if not supported(source.format, target.format) and primary_format(origin.format) not in (
        primary_format(source.format),
        primary_format(target.format),
    ):
        return transfer(transfer(value, source, origin), origin, target)
    return transfer(value, source, target)


def _cast(name: str, value: Array, source: DataType, target: DataType, on_loss: OnLoss) -> Array:
    """Cast elements, and tell of those that are lost."""
    if source == target:
        return value
    result, counts = cast(np.ascontiguousarray(value), source, target, on_loss=on_loss)
    if counts.lost:
        _log.warning("variable %r, %s to %s: %s", name, source.name, target.name, counts)
    return result
