"""Facts of nodes of model files, in the words of `tests.golden.om_truth`."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gevar.errors import FormatError, GevarError, LoadError, SizeOverflowError, VariableError
from gevar.om.consts import ConstNode, ConstStorage
from gevar.om.model import OmModel
from gevar.om.node import CONSTPLACEHOLDER, OmNode
from gevar.session.file_tensors import FileTensor
from gevar.status import FAILED, SUCCESS
from gevar.types import DataType, TensorDesc
from gevar.types.format import format_to_serial, primary_format
from gevar.types.tensor_sizes import calc_tensor_mem_size
from gevar.var.const_place_holder import read_place_holder
from gevar.var.var_key import VarKey
from gevar.var.wire_key import wire_key
from gevar.weights import FileConstantInfo, WeightDirectory, WeightFile, file_constant_info
from gevar.weights.file_constant import FILE_ID, FILE_PATH, LOCATION
from tests.golden.facts import Json, Place, Report
from tests.golden.om_truth_state import accept

Truth = Mapping[str, Any]
Facts = dict[str, Json]
NODE_ATTRS = ("storage_shape", "placement")
SHORT_FILE_EDGE = 32


def desc_facts(desc: TensorDesc) -> Facts:
    try:
        tensor_bytes = calc_tensor_mem_size(desc.shape, desc.format, desc.dtype)
    except (FormatError, SizeOverflowError):
        tensor_bytes = -1
    return {
        "dtype": desc.dtype.to_serial(),
        "format": format_to_serial(primary_format(desc.format)),
        "format_int": int(desc.format),
        "shape": list(desc.shape),
        "size": desc.size,
        "tensor_bytes": tensor_bytes,
        "origin_format_int": int(desc.origin_format),
        **({} if desc.origin_shape is None else {"origin_shape": list(desc.origin_shape)}),
    }


def node_facts(node: OmNode) -> Facts:
    desc = node.output_descs[0]
    return {
        "name": node.name,
        "type": node.type,
        "graph": node.graph_name,
        **desc_facts(desc),
        "output_i": list(node.output_i),
        "key": wire_key(VarKey(node.name, desc.format, desc.dtype)),
    }


def _digest(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def value_facts(node: OmNode, const: ConstNode | None) -> Facts:
    """Facts of the bytes that a variable starts with, or that a Constant has."""
    if const is not None and const.desc is not None:
        return {"weight": const_facts(const)}
    init = node.output_descs[0].init_value
    return {} if init is None else {"init_value": {"bytes": len(init.data), "sha256": _digest(init.data)}}


def const_facts(const: ConstNode) -> Facts:
    desc, is_inline = const.desc, const.storage == ConstStorage.INLINE
    return {
        "name": const.name,
        "source": "inline" if is_inline else "weights_partition",
        "data_offset": const.offset,
        "bytes": const.size_bytes,
        "dtype": None if desc is None else desc.dtype.to_serial(),
        "shape": None if desc is None else list(desc.shape),
        "sha256": _digest(const.data()),
    }


def place_holder_facts(tensor: FileTensor) -> Facts:
    if tensor.node.type != CONSTPLACEHOLDER:
        return {}
    op = tensor.var_op()
    found: Facts = {name: _plain(op.attrs[name]) for name in NODE_ATTRS if name in op.attrs}
    found |= {key: _plain(op.attrs[name]) for key, name in (("attr_size", "size"), ("device_address", "addr"))}
    try:
        read_place_holder(op)
    except ValueError:
        return {**found, "placeholder_status": FAILED}
    return {**found, "placeholder_status": SUCCESS}


def _plain(value: int | str | tuple[int, ...]) -> Json:
    return list(value) if isinstance(value, tuple) else value


# --- external weights -------------------------------------------------------------------------------------------------


def file_constant_facts(
    nodes: Iterable[tuple[OmModel, OmNode]], path: Path, expected: list[Truth], report: Report, place: Place
) -> Facts:
    """Facts of the FileConstants of a file, each read as for a block of its own."""
    directory, found, files = WeightDirectory(None, path), list[Json](), set[str]()
    for number, (model, node) in enumerate(nodes):
        op = FileTensor(model, node, node.output_descs[0], None).var_op()
        facts = {**node_facts(node), **{name: op.attrs.get(name, "") for name in (LOCATION, FILE_PATH, FILE_ID)}}
        found.append(facts)
        try:
            info = file_constant_info(op, {})
        except VariableError as error:
            facts["read_status"] = error.status
            continue
        facts |= {"offset": info.offset, "length": info.length, "alloc_bytes": info.alloc_bytes}
        wanted = expected[number] if number < len(expected) else {}
        facts |= _read_facts(info, directory, path, wanted, report, (*place, "file_constants", number))
        files.add(info.base_name if info.named_by == LOCATION else info.file)
    return {"file_constants": found, "combined": len(files) == 1}


def _read_facts(
    info: FileConstantInfo,
    directory: WeightDirectory,
    path: Path,
    expected: Truth,
    report: Report,
    place: Place,
) -> Facts:
    """Read a weight and return what came of it."""
    facts: Facts = {"resolves_to": f"weight/{info.base_name}"} if info.named_by == LOCATION else {}
    try:
        file = directory.find(info)
        facts["resolves_to"] = str(file.path.relative_to(path.parent.resolve()))
        region = info.region(file)
    except GevarError as error:
        if isinstance(error, LoadError) and error.status is None:
            return facts | _short_facts(info, file, expected, report, place)
        return facts | {"read_status": error.status}
    with file.path.open("rb") as stream:
        stream.seek(region.offset)
        data = stream.read(region.size_bytes)
    return facts | {"read_status": SUCCESS, "read_bytes": len(data), "read_sha256": _digest(data)}


def _short_facts(info: FileConstantInfo, file: WeightFile, expected: Truth, report: Report, place: Place) -> Facts:
    """A file that ends too early: GE reads what there is and calls it success, gevar refuses, as the page says."""
    with file.path.open("rb") as stream:
        stream.seek(info.offset)
        data = stream.read(info.length or info.size_bytes)
    found: Facts = {"read_status": SUCCESS, "read_bytes": len(data), "read_sha256": _digest(data)}
    if all(expected.get(key) == value for key, value in found.items()):
        accept(report, SHORT_FILE_EDGE, len(found))
        return found
    report.differ(place, f"GE's rules read {len(data)} B of a file that is too short, the file says something else")
    return {}


# --- names ------------------------------------------------------------------------------------------------------------


def _pairs(expected: Any, found: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the objects at the same places of two trees."""
    if isinstance(expected, Mapping) and isinstance(found, dict):
        yield expected, found
        for key in expected.keys() & found.keys():
            yield from _pairs(expected[key], found[key])
    elif isinstance(expected, list) and isinstance(found, list):
        for one, other in zip(expected, found, strict=False):
            yield from _pairs(one, other)


def canonical_types(truth: Truth, facts: Facts) -> None:
    """Call a data type that GE has two names for as the file does."""
    for expected, found in _pairs(truth, facts):
        name = expected.get("dtype")
        if isinstance(name, str) and found.get("dtype") == DataType.from_serial(name).to_serial():
            found["dtype"] = name
