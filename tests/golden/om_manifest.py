"""Manifests of OM files: what is in each file beside them, or that it must be refused.

The file lists `files`, each with its name, size, digest and the facts of header, partitions, model definition,
constants, weights, kernels, tasks and nested files; or with `expect_error`. A second form adds variables (`truth`),
weight files and bundles.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from gevar import status
from gevar.errors import ModelFileError
from gevar.om.facts import om_facts
from gevar.om.header import HEADER_BYTES, ModelFileHeader
from gevar.om.om_file import open_om
from gevar.types.data_type import DataType
from tests.golden.facts import Json, Place, Report, State
from tests.golden.om_truth import check_truth

DOCUMENTATION = ("about", "source", "source_date", "note")
CLOSED = frozenset({"types", "var_like_nodes"})
"""Objects that must be complete."""
BUNDLE_MODEL_TYPE = 5
CONST_FIELDS = ("name", "dtype", "shape", "layout", "storage", "offset", "size", "crc32")


def matches(document: Json) -> bool:
    """Whether the document has the structure of a manifest of OM files."""
    if not isinstance(document, Mapping) or not isinstance(document.get("files"), list):
        return False
    entries = document["files"]
    named = all(isinstance(entry, Mapping) and isinstance(_name(entry), str) for entry in entries)
    return named and any({"header", "expect_error"} & entry.keys() for entry in entries)


def _name(entry: Mapping[str, Json]) -> Json:
    return entry.get("path", entry.get("name"))


def check(document: Mapping[str, Json], folder: Path, report: Report) -> None:
    """Compare every fact of a manifest with the files in its folder."""
    paths = [folder / _name(entry) for entry in document["files"]]
    found = {
        "file_count": len(paths),
        "total_bytes": sum(path.stat().st_size for path in paths if path.is_file()),
        "status_names": {number: _status(number, name) for number, name in document.get("status_names", {}).items()},
    }
    for key, value in document.items():
        if key in DOCUMENTATION:
            report.mark((key,), value, State.DOCUMENTATION)
        elif key in found:
            report.compare((key,), value, found[key])
    for index, entry in enumerate(document.get("weight_files", [])):
        _check_weight_file(entry, folder, ("weight_files", index), report)
    for index, entry in enumerate(document["files"]):
        _check_entry(entry, folder, ("files", index), report)


def _status(number: str, name: str) -> Json:
    """Return the name where GE's number of it is this one, else its number."""
    value = getattr(status, name, None)
    return name if str(value) == number else value


def _file_facts(path: Path) -> dict[str, Json]:
    data = path.read_bytes()
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _header_facts(path: Path) -> dict[str, Json]:
    """Return the fields of a header, whatever they say; nothing of a file that is too short for one."""
    data = path.read_bytes()[:HEADER_BYTES]
    if len(data) < HEADER_BYTES:
        return {}
    header = asdict(ModelFileHeader.unpack(data))
    return {"header": {**header, "is_unknown_model": header["is_unknow_model"]}}


def _check_weight_file(entry: Mapping[str, Json], folder: Path, place: Place, report: Report) -> None:
    path = folder / str(entry.get("path"))
    if path.is_file():
        report.compare(place, entry, {"path": entry["path"], **_file_facts(path)})
    else:
        report.differ(place, f"file {path} is missing")


def _check_entry(entry: Mapping[str, Json], folder: Path, place: Place, report: Report) -> None:
    for key in DOCUMENTATION:
        if key in entry:
            report.mark((*place, key), entry[key], State.DOCUMENTATION)
    path = folder / _name(entry)
    if not path.is_file():
        report.differ(place, f"file {path} is missing")
        return
    if "truth" in entry:
        check_truth(path, entry["truth"], report, (*place, "truth"))
    named = {key: entry[key] for key in ("name", "path") if key in entry}
    rest = {key: value for key, value in entry.items() if key not in (*DOCUMENTATION, "truth")}
    if "expect_error" in entry:
        report.compare(place, rest, {**named, **_file_facts(path), **_refusal(path, entry["expect_error"])})
        return
    try:
        found = _found(path, entry)
    except ModelFileError as error:
        if not entry.get("truth", {}).get("load_status"):
            report.differ(place, f"refused: {error}")
            return
        found = {**_file_facts(path), **_header_facts(path)}  # a file that GE refuses as well
    report.compare(place, _canonical(rest), {**named, **found}, closed=CLOSED)


def _refusal(path: Path, expected: Json) -> dict[str, Json]:
    """Return the expected text when the file is refused as a model file; its words are not ours."""
    try:
        with open_om(path) as om:
            om_facts(om, deep=True)
    except ModelFileError:
        return {"expect_error": expected}
    return {"expect_error": "no error"}


def _found(path: Path, entry: Mapping[str, Json]) -> dict[str, Json]:
    bundle = entry.get("header", {}).get("modeltype") == BUNDLE_MODEL_TYPE
    with open_om(path, kind="bundle" if bundle else "model") as om:
        return _as_in_manifest(om_facts(om, deep=True))


def _as_in_manifest(facts: Mapping[str, Json]) -> dict[str, Json]:
    """Return facts of gevar in the form of a manifest."""
    found = dict(facts)
    header = found["header"]
    found["header"] = {**header, "is_unknown_model": header["is_unknow_model"]}
    found["models"] = [_model_as_in_manifest(model) for model in facts["models"]]
    submodels = [(sub, _as_in_manifest(sub)) for sub in facts.get("submodels", []) if "header" in sub]
    found["nested_models"] = [
        {**nested, "submodel": sub["name"], "model_type": sub["model_type"]} for sub, nested in submodels
    ]
    found["nested"] = [nested for _, nested in submodels]
    return found


def _model_as_in_manifest(model: Mapping[str, Json]) -> dict[str, Json]:
    found = dict(model)
    if "consts" in model:
        rows = [[const[field] for field in CONST_FIELDS] for const in model["consts"]["list"]]
        found["consts"] = {**model["consts"], "list": rows}
    if "flow_partitions" in model:
        found["flow_partitions"] = [
            [part["type"], part["size"], part["sha256"][:16]] for part in model["flow_partitions"]
        ]
    return found


def _canonical(value: Json) -> Json:
    """Return the expectation with one name for each element type of a constant, where it has two in GE."""
    if isinstance(value, list):
        if len(value) == len(CONST_FIELDS) and isinstance(value[1], str) and value[1].startswith("DT_"):
            dtype = DataType.from_serial(value[1])
            return [value[0], value[1] if dtype is DataType.DT_UNDEFINED else dtype.name, *value[2:]]
        return [_canonical(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _canonical(item) for key, item in value.items()}
    return value
