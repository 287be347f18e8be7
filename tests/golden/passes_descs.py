"""Tensor descriptions of compile-side expectations, and back."""

from collections.abc import Mapping
from math import prod
from typing import Any

from gevar.proto.ge_ir import AttrDef, AttrDef_ListValue
from gevar.types import DataType, Format, TensorDesc
from gevar.types.format import c0, format_from_c0, primary_format

Json = Mapping[str, Any]
FORM = frozenset({"format", "dtype", "shape", "origin_format", "origin_shape", "name", "c0"})
"""Keys of a description that are no attributes of it; the name is that of the input or output."""

_DTYPES = {"float32": DataType.DT_FLOAT, "float64": DataType.DT_DOUBLE, "bfloat16": DataType.DT_BF16}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def dtype_of(name: str) -> DataType:
    """Return the data type of a name in the file."""
    return _DTYPES[name] if name in _DTYPES else DataType[f"DT_{name.upper()}"]


def dtype_name(dtype: DataType) -> str:
    """Return the name in the file of a data type."""
    return _NAMES.get(dtype, dtype.name.removeprefix("DT_").lower())


def make_desc(found: Json, before: TensorDesc | None = None) -> TensorDesc:
    """Make a description.

    Descriptions of a road lack the origin. A plain format is its own origin there; one that carries C0 has that of the
    description before it, from which it was made.
    """
    fmt = int(Format[f"FORMAT_{found['format']}"])
    if "c0" in found:
        fmt = format_from_c0(fmt, int(found["c0"]).bit_length())
    shape, dtype = tuple(found["shape"]), dtype_of(found["dtype"])
    if "origin_format" in found:
        origin = int(Format[f"FORMAT_{found['origin_format']}"]), tuple(found["origin_shape"])
    elif "c0" in found and before is not None and before.origin_shape is not None:
        origin = before.origin_format, before.origin_shape
    else:
        origin = fmt, shape
    size = max(prod(shape), 0) * max(dtype.size_code, 1)
    return TensorDesc(
        *(dtype, fmt, shape),
        origin_format=origin[0],
        origin_shape=origin[1],
        size=size,
        attrs={key: _attr(value) for key, value in found.items() if key not in FORM},
    )


def desc_facts(desc: TensorDesc) -> dict[str, Any]:
    """Return a description in the form of the file, without the name."""
    facts: dict[str, Any] = {
        "format": _format_name(desc.format),
        "dtype": dtype_name(desc.dtype),
        "shape": list(desc.shape),
        "origin_format": _format_name(desc.origin_format),
        "origin_shape": None if desc.origin_shape is None else list(desc.origin_shape),
    }
    if c0(desc.format) > 0:
        facts["c0"] = c0(desc.format)
    return facts | {name: _attr_fact(attr) for name, attr in desc.attrs.items()}


def _format_name(fmt: int) -> str:
    return Format(primary_format(fmt)).name.removeprefix("FORMAT_")


def _attr(value: Any) -> AttrDef:
    if isinstance(value, bool):
        return AttrDef(b=value)
    if isinstance(value, int):
        return AttrDef(i=value)
    if isinstance(value, str):
        return AttrDef(s=value.encode())
    return AttrDef(list=AttrDef_ListValue(i=value))


def _attr_fact(attr: AttrDef) -> Any:
    kind = attr.WhichOneof("value")
    if kind == "list":
        return list(attr.list.i)
    return attr.s.decode() if kind == "s" else getattr(attr, kind or "s")
