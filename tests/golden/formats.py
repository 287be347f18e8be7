"""Vectors of storage formats and casts, each with the result that GE gave.

The file lists `registered_pairs`, `data_cases`, `error_cases`, `shape_cases` and `cast_cases`. Element i of a source
has the value (i mod period) + 1. Where gevar's answer is not GE's, a row of `docs/differences.md` must say so, and data
must be what the formulas of `tests.golden.formats_reference` give.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gevar.errors import FormatError
from gevar.formats import cast, cast_supported, infer_shape, supported, transfer
from gevar.status import SUCCESS
from gevar.types import DataType, Format, TensorDesc
from gevar.types.format import c0, primary_format, sub_format
from tests.golden.facts import Json, Place, Report, State
from tests.golden.formats_differences import UNDEFINED_CASTS, Case, allowed, rows_of_page
from tests.golden.formats_reference import to_plain, to_stored

Array = npt.NDArray[np.generic]
Entry = Mapping[str, Any]

DOCUMENTATION = ("title", "provenance")
CONVENTIONS = (
    "element_order",
    "byte_order",
    "source_data",
    "format_int",
    "dst_data",
    "bfloat16",
    "casts",
    "status",
    "shape_inference",
)
CASES = ("data_cases", "error_cases", "shape_cases", "cast_cases")
TEXT = ("id", "checked", "why", "note")
ALL_FLOAT16 = "every 16-bit pattern 0..65535 in order"
OTHER_NAMES = {"float32": DataType.DT_FLOAT, "float64": DataType.DT_DOUBLE, "bfloat16": DataType.DT_BF16}
DEFAULT_PERIOD = 127
"""Period of the source of a case that is refused, or of which only the size is compared."""


def matches(document: Json) -> bool:
    """Whether the document has the structure of format vectors."""
    if not isinstance(document, Mapping) or not any(key in document for key in CASES):
        return False
    return all(isinstance(document.get(key, []), list) for key in (*CASES, "registered_pairs"))


def check(document: Mapping[str, Any], folder: Path, report: Report) -> None:
    """Compare every case of a file."""
    for key in DOCUMENTATION:
        if key in document:
            report.mark((key,), document[key], State.DOCUMENTATION)
    for key in CONVENTIONS:
        if key in document.get("conventions", {}):
            report.mark(("conventions", key), document["conventions"][key], State.DOCUMENTATION)
    for index, pair in enumerate(document.get("registered_pairs", [])):
        found = [*pair] if all(f"FORMAT_{name}" in Format.__members__ for name in pair) else []
        if found and not supported(*(Format[f"FORMAT_{name}"] for name in pair)):
            found = []
        report.compare(("registered_pairs", index), pair, found)
    checks = zip(CASES, (_check_data, _check_error, _check_shape, _check_cast), strict=True)
    for key, one in checks:
        for index, entry in enumerate(document.get(key, [])):
            place = (key, index)
            for text in TEXT:
                if text in entry:
                    report.mark((*place, text), entry[text], State.DOCUMENTATION)
            try:
                one(entry, place, report)
            except (ArithmeticError, KeyError, TypeError, ValueError) as error:
                report.differ(place, f"{entry.get('id')}: {type(error).__name__}: {error}")


def _dtype(name: str) -> DataType:
    return OTHER_NAMES[name] if name in OTHER_NAMES else DataType[f"DT_{name.upper()}"]


def _described(entry: Entry) -> tuple[dict[str, Json], Case]:
    """The inputs of a case as they follow from its numbers, and the case itself."""
    src, dst = int(entry["src_format_int"]), int(entry["dst_format_int"])
    dtype = _dtype(entry["dtype"])
    inputs: dict[str, Json] = {
        "src_format": Format(primary_format(src)).name.removeprefix("FORMAT_"),
        "dst_format": Format(primary_format(dst)).name.removeprefix("FORMAT_"),
        "src_format_int": src,
        "dst_format_int": dst,
        "groups": max(1, sub_format(src), sub_format(dst)),
        "dtype": entry["dtype"],
        "dtype_int": int(dtype),
        "src_shape": entry["src_shape"],
    }
    cube = max(c0(src), c0(dst))
    if cube < 0 and entry.get("c0") is not None:
        cube = 32 if dtype.size_code == 1 else 16  # FRACTAL_Z_C04 has it from the data type
    inputs["c0"] = cube if cube > 0 else None
    shape = entry.get("dst_shape")
    return inputs, Case(
        src,
        dst,
        dtype,
        tuple(entry["src_shape"]),
        None if shape is None else tuple(shape),
        entry.get("status", SUCCESS),
    )


def _source(case: Case, period: int) -> Array:
    count = int(np.prod(case.src_shape, dtype=np.int64)) if min(case.src_shape, default=0) >= 0 else 0
    values = (np.arange(count) % period + 1).astype(np.float64)
    return values.astype(case.dtype.to_numpy())


def _converted(case: Case, period: int) -> tuple[int, Array | None]:
    """Status and result of gevar."""
    src = TensorDesc(case.dtype, case.src_format, case.src_shape)
    dst = TensorDesc(case.dtype, case.dst_format, case.dst_shape or ())
    try:
        return SUCCESS, transfer(_source(case, period), src, dst)
    except FormatError as error:
        return int(error.status if error.status is not None else -1), None


def _inferred(case: Case) -> tuple[int, list[int] | None]:
    try:
        shape = infer_shape(TensorDesc(case.dtype, case.src_format, case.src_shape), case.dst_format)
    except FormatError as error:
        return int(error.status if error.status is not None else -1), None
    return SUCCESS, [*shape]


def _by_formulas(case: Case, period: int, shape: Sequence[int]) -> Array:
    """The result that the formulas give for a case that GE has otherwise."""
    names = [Format(number).name.removeprefix("FORMAT_") for number in case.pair]
    cube, groups = max(c0(case.src_format), c0(case.dst_format), 1), max(case.groups, 1)
    source = _source(case, period).reshape(case.src_shape)
    if len(case.src_shape) > len(shape) or names[0].startswith("FRACTAL"):
        return to_plain(source, names[1], shape, names[0], cube, groups)
    return to_stored(source, names[0], names[1], cube, groups)


def _accept(case: Case, status: int, result: Array | None, period: int, place: Place, report: Report) -> bool:
    """Whether a difference is one of the page, with the answer that it promises."""
    row = allowed(case)
    if row is None or row[1] != status:
        return False
    if result is not None and not np.array_equal(
        result.view(np.uint8), _by_formulas(case, period, result.shape).view(np.uint8)
    ):
        report.differ(place, f"{row[0]}: the data is not what the formulas give")
    report.accepted[row[0]] += 1
    return True


def _check_data(entry: Entry, place: Place, report: Report) -> None:
    inputs, case = _described(entry)
    period = int(entry["src_period"])
    status, result = _converted(case, period)
    inference = _inferred(case)
    told = "ok" if inference == (SUCCESS, [*(case.dst_shape or ())]) else f"status {inference[0]}"
    found: dict[str, Json] = {**inputs, "src_period": period, "shape_inference": told}
    if result is not None:
        found |= _facts(result, entry)
    plain = {key: value for key, value in entry.items() if key not in TEXT}
    same = all(key in found and found[key] == value for key, value in plain.items())
    if not same and _accept(case, status, result, period, place, report):
        for key in found:
            if key in plain:
                report.mark((*place, key), plain[key], State.COMPARED)
        return
    if status != SUCCESS:
        report.differ(place, f"{entry.get('id')}: refused with status {status}")
    report.compare(place, plain, found)


def _facts(result: Array, entry: Entry) -> dict[str, Json]:
    """What a file may state of a result; elements as numbers."""
    values = result.astype(np.float64).reshape(-1)
    filled = np.flatnonzero(values)
    facts: dict[str, Json] = {
        "dst_shape": [*result.shape],
        "dst_bytes": result.nbytes,
        "dst_sha256": hashlib.sha256(result.tobytes()).hexdigest(),
        "dst_nonzero_count": len(filled),
    }
    if "dst_data" in entry:
        facts["dst_data"] = values.tolist()
    if "dst_nonzero" in entry:
        facts["dst_nonzero"] = [[int(index), float(values[index])] for index in filled]
    return facts


def _check_error(entry: Entry, place: Place, report: Report) -> None:
    inputs, case = _described(entry)
    status, result = _converted(case, DEFAULT_PERIOD)
    shape = [*case.dst_shape] if case.dst_shape is not None else None
    found: dict[str, Json] = {
        **inputs,
        "dst_shape": shape,
        "status": status,
        "dst_bytes": 0 if result is None else result.nbytes,
    }
    _compare_status(entry, case, found, result, place, report)


def _check_shape(entry: Entry, place: Place, report: Report) -> None:
    inputs, case = _described(entry)
    case = replace(case, inference=True)
    status, shape = _inferred(case)
    found: dict[str, Json] = {**inputs, "status": status, "dst_shape": shape}
    _compare_status(entry, case, found, None, place, report)


def _compare_status(
    entry: Entry, case: Case, found: dict[str, Json], result: Array | None, place: Place, report: Report
) -> None:
    plain = {key: value for key, value in entry.items() if key not in TEXT}
    same = all(key in found and found[key] == value for key, value in plain.items())
    shape = found["dst_shape"]
    if case.inference and case.groups > 1 and shape is not None and shape != [*case.shape_by_formulas()]:
        report.differ(place, f"shape {shape} is not what the formulas give")
    if not same and _accept(case, int(str(found["status"])), result, DEFAULT_PERIOD, place, report):
        found |= {key: plain[key] for key in ("status", "dst_bytes", "dst_shape") if key in plain}
    report.compare(place, plain, found)


def _check_cast(entry: Entry, place: Place, report: Report) -> None:
    src, dst = _dtype(entry["src_dtype"]), _dtype(entry["dst_dtype"])
    found: dict[str, Json] = {
        "src_dtype": entry["src_dtype"],
        "dst_dtype": entry["dst_dtype"],
        "src_dtype_int": int(src),
        "dst_dtype_int": int(dst),
    }
    source = _cast_source(entry, src)
    status: int = SUCCESS
    try:
        result, _ = cast(source, src, dst)
    except FormatError as error:
        status = int(error.status if error.status is not None else -1)
        result = np.empty(0, np.uint8)
    if "status" in entry:
        found["status"] = status
    elif not cast_supported(src, dst):
        report.differ(place, f"{entry.get('id')}: there is no such cast")
        return
    found["dst_sha256"] = hashlib.sha256(result.tobytes()).hexdigest()
    found["dst_raw"] = _raw(result, dst).tolist()
    if "src_raw" in entry:
        found["src_raw"] = _raw(source, src).tolist()
        _take_undefined(entry, src, dst, source, found, report)
    elif entry.get("src") == ALL_FLOAT16:
        found["src"] = ALL_FLOAT16
    report.compare(place, {key: value for key, value in entry.items() if key not in TEXT}, found)


def _cast_source(entry: Entry, dtype: DataType) -> Array:
    element = dtype.to_numpy()
    raw = element if element.kind in "iu" else np.dtype(f"u{element.itemsize}")
    patterns = entry["src_raw"] if "src_raw" in entry else range(1 << 16)
    return np.array([*patterns], raw).view(element)


def _raw(array: Array, dtype: DataType) -> Array:
    element = dtype.to_numpy()
    return array if element.kind in "iu" else array.view(f"u{element.itemsize}")


def _take_undefined(
    entry: Entry, src: DataType, dst: DataType, source: Array, found: dict[str, Any], report: Report
) -> None:
    """Leave elements that GE's rules leave open as the file has them, where the page says so."""
    if UNDEFINED_CASTS not in rows_of_page():
        return
    for index, (expected, value) in enumerate(zip(entry.get("dst_raw", []), source, strict=False)):
        if found["dst_raw"][index] != expected and is_undefined(src, dst, float(value)):  # type: ignore[arg-type]
            found["dst_raw"][index] = expected
            report.accepted[UNDEFINED_CASTS] += 1


def is_undefined(src: DataType, dst: DataType, value: float) -> bool:
    """Whether GE's source leaves the cast of a value open."""
    if src in (DataType.DT_FLOAT, DataType.DT_DOUBLE) and dst is DataType.DT_INT32:
        return not -(2.0**31) - 1 < value < 2.0**31
    return (src, dst) == (DataType.DT_INT32, DataType.DT_FLOAT16) and value == -(2.0**31)
