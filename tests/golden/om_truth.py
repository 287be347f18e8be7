"""What GE's loader and variable manager made of a model file, held against gevar's.

The part `truth` of a manifest says for each node in the order of restoring its key, logical address and status, then
the addresses that operators get, what is read of external weights, and the saved state. Here the file is restored node
by node through `ModelRtVarManager`, and loaded as a whole into device memory of the host runtime; both must agree with
it, and the device must hold the bytes of the files.
"""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gevar.errors import AddressError, FormatError, GevarError, LoadError, ModelFileError, SizeOverflowError
from gevar.om.consts import ConstNode, ConstStorage
from gevar.om.model import OmModel
from gevar.om.node import CONSTANT, CONSTANTOP, CONSTPLACEHOLDER, FILECONSTANT, VARIABLE, OmNode
from gevar.om.om_file import OmFile, open_om
from gevar.om.partition import PartitionType
from gevar.proto import var_manager
from gevar.runtime.rt_var_manager import PLACEMENT_HOST, VARIABLE_PLACEMENT
from gevar.session import LoadedModel, Session, load_model
from gevar.session.file_tensors import FileTensor
from gevar.session.model_memory import ModelMemory, TensorPlace, TensorPlaceKind
from gevar.session.runtime_param import RuntimeParam
from gevar.status import FAILED, SUCCESS
from gevar.types import DataType, DeviceId, TensorDesc
from gevar.types.format import format_to_serial, primary_format
from gevar.types.tensor_sizes import calc_tensor_mem_size
from gevar.var import VarManager, VarOp
from gevar.var.const_place_holder import read_place_holder
from gevar.var.var_key import VarKey
from gevar.var.wire_key import wire_key
from gevar.weights import FileConstantInfo, WeightDirectory, WeightFile, file_constant_info
from tests.golden.facts import Json, Place, Report
from tests.golden.var.differences import sections
from tests.golden.var.values import message_json, same_json
from tests.helpers.runtime import host_runtime

Truth = Mapping[str, Any]
Facts = dict[str, Json]
DEVICE = DeviceId(0)
RESTORED = (VARIABLE, CONSTANTOP)
NODE_ATTRS = ("storage_shape", "placement")
REPLACED_BLOCK_EDGE = 19
SHORT_FILE_EDGE = 32


def check_truth(path: Path, truth: Truth, report: Report, place: Place) -> None:
    """Compare what GE made of a file with what gevar makes of it."""
    if "sub_models" in truth:
        report.compare(place, truth, _bundle_facts(path, truth, report, place))
        return
    try:
        om = open_om(path)
    except ModelFileError as error:
        report.compare(place, truth, {"load_status": error.status})
        return
    with om, Session(host_runtime()) as session, Session(host_runtime()) as stepwise, ExitStack() as stack:
        found = _restore_file(om, truth, stepwise, [], report, place)
        _load(path, session, found, report, place, stack, om, truth)
        if "second_generation" in truth:
            found.facts["second_generation"] = _second_generation(om)
        report.compare(place, truth, found.facts)


def _bundle_facts(path: Path, truth: Truth, report: Report, place: Place) -> Facts:
    try:
        open_om(path).close()
        ordinary: Json = SUCCESS
    except ModelFileError as error:
        ordinary = error.status
    found, restored = list[Json](), list[Facts]()
    with (
        open_om(path, kind="bundle") as om,
        Session(host_runtime()) as session,
        Session(host_runtime()) as stepwise,
        ExitStack() as stack,
    ):
        inner = [submodel.om for submodel in om.submodels if submodel.om is not None]
        for number, (one, expected) in enumerate(zip(inner, truth["sub_models"], strict=False)):
            at, data = (*place, "sub_models", number), one.source.read(0, one.size_bytes, "sub-model")
            told = _restore_file(one, expected, stepwise, restored, report, at)
            _load(data, session, told, report, at, stack, one, expected)
            found.append(told.facts)
        with load_model(path, kind="bundle", session=session) as whole:
            _check_bytes(whole, path, report, place)
        return {
            "ordinary_load_status": ordinary,
            "bundle_variable_size": om.bundle_variable_size,
            "sub_models": found if len(inner) == len(found) else [*found, "more"],
        }


@dataclass
class _Found:
    """What was found of a file: its facts, and what was restored in the session so far, in order."""

    facts: Facts
    restored: list[Facts]
    is_short: bool = False


def _restore_file(
    om: OmFile, truth: Truth, session: Session, before: list[Facts], report: Report, place: Place
) -> _Found:
    """Restore every model of a file node by node, and describe what came of it."""
    models = [_Restore(model, session) for model in om.models]
    if any(one.has_lasting for one in models):
        first = models[0]
        session.rt_var_manager.init(DEVICE, first.param("variable_base"), first.param("variable_size"))
    elsewhere = {model.graphs[0].name for model in om.models[1:]}
    told = [one.facts(elsewhere if one.model is om.models[0] else set()) for one in models]
    status: Json = next((one["restore_status"] for one in told if one["restore_status"]), SUCCESS)
    found = _Found({"load_status": SUCCESS, "models": told, "restore_status": status}, before)
    for one in told:
        variables: Any = one["variables"]
        found.restored.extend(variables)
    if "file_constants" in truth:
        nodes = [(model, node) for model in om.models for node in model.variable_nodes() if node.type == FILECONSTANT]
        accepted = report.accepted.total()
        found.facts |= _file_constant_facts(nodes, Path(om.path), truth["file_constants"], report, place)
        found.is_short = report.accepted.total() > accepted
    expected = truth.get("var_manager_info_b64")
    found.facts["var_manager_info_b64"] = _state(session.var_manager, expected, found.restored, report)
    _canonical_types(truth, found.facts)
    return found


class _Restore:
    """One model, restored node by node."""

    def __init__(self, model: OmModel, session: Session) -> None:
        self.model = model
        self._session = session
        self.runtime_params_status: Json = SUCCESS
        try:
            RuntimeParam.of_model(model)
        except ModelFileError as error:
            self.runtime_params_status = error.status

    def param(self, name: str) -> int:
        attrs = {"variable_base": "task_gen_variable_addr"}
        return self.model.int_attr(attrs.get(name, name))

    @property
    def has_lasting(self) -> bool:
        return bool(self.model.variable_nodes())

    def facts(self, elsewhere: set[str]) -> Facts:
        """Restore; constants of graphs that other models of the file have are told there."""
        weights = self.model.partition_source(PartitionType.WEIGHTS_DATA)
        variables, status = self._variables()
        consts = [
            const
            for const in self.model.const_nodes()
            if const.node.type == CONSTANT and const.node.graph_name not in elsewhere
        ]
        return {
            "name": self.model.name,
            "graph": self.model.graphs[0].name,
            "runtime_params_status": self.runtime_params_status,
            **{name: self.param(name) for name in ("variable_base", "variable_size", "memory_size", "weight_size")},
            "weights_bytes": 0 if weights is None else weights.size_bytes,
            "restore_status": status,
            "variables": variables,
            "consts": [_const_facts(const) for const in consts],
        }

    def _variables(self) -> tuple[list[Json], Json]:
        found: list[Json] = []
        refused: Json = SUCCESS
        for node in self.model.variable_nodes():
            if node.type == FILECONSTANT:
                continue
            const = self.model.const_node(node) if node.type == CONSTANTOP else None
            tensor = FileTensor(self.model, node, node.output_descs[0], const)
            facts = {**_node_facts(node), "status": None}
            if refused == SUCCESS:
                restored = restore(tensor.var_op(), self._session)
                facts |= restored
                refused = restored["status"]
            found.append(facts | _value_facts(node, const) | _place_holder_facts(tensor))
        return found, refused


def restore(op: VarOp, session: Session, *, need_collect: bool = False) -> Facts:
    """Restore one node and return what came of it."""
    if op.op_type not in RESTORED:
        return {"status": SUCCESS}
    vm, desc = session.var_manager, op.output_desc[0]
    known, new_name = vm.is_var_exist(op.name, desc), not vm.is_var_exist(op.name)
    try:
        session.rt_var_manager.restore_device_variables([op], DEVICE, need_collect=need_collect)
    except GevarError as error:
        return {"status": error.status}
    addr = vm.get_var_addr(op.name, desc)
    return {"status": SUCCESS, "already_present": known, "new_name": new_name, "logical_address": addr}


def _second_generation(om: OmFile) -> Facts:
    """The one pass over all models of a file, by name."""
    models = sorted(om.models, key=lambda model: model.name)
    base, size = models[0].int_attr("task_gen_variable_addr"), models[0].int_attr("variable_size")
    found: list[Json] = []
    status: Json = SUCCESS
    with Session(host_runtime()) as session:
        session.rt_var_manager.init(DEVICE, base, size)
        for model in models:
            for node in model.variable_nodes():
                const = model.const_node(node) if node.type == CONSTANTOP else None
                op = FileTensor(model, node, node.output_descs[0], const).var_op() if node.type in RESTORED else None
                if op is None or op.attrs.get(VARIABLE_PLACEMENT) == PLACEMENT_HOST:
                    continue
                facts: Facts = {**_node_facts(node), "status": None}
                if status == SUCCESS:
                    restored = restore(op, session, need_collect=True)
                    facts |= restored
                    status = restored["status"]
                found.append(facts)
    return {"base": base, "size": size, "restore_status": status, "variables": found}


# --- facts of nodes ---------------------------------------------------------------------------------------------------


def _desc_facts(desc: TensorDesc) -> Facts:
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


def _node_facts(node: OmNode) -> Facts:
    desc = node.output_descs[0]
    return {
        "name": node.name,
        "type": node.type,
        "graph": node.graph_name,
        **_desc_facts(desc),
        "output_i": list(node.output_i),
        "key": wire_key(VarKey(node.name, desc.format, desc.dtype)),
    }


def _digest(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def _value_facts(node: OmNode, const: ConstNode | None) -> Facts:
    """Facts of the bytes that a variable starts with, or that a Constant has."""
    if const is not None and const.desc is not None:
        return {"weight": _const_facts(const)}
    init = node.output_descs[0].init_value
    return {} if init is None else {"init_value": {"bytes": len(init.data), "sha256": _digest(init.data)}}


def _const_facts(const: ConstNode) -> Facts:
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


def _place_holder_facts(tensor: FileTensor) -> Facts:
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


def _file_constant_facts(
    nodes: Iterable[tuple[OmModel, OmNode]], path: Path, expected: list[Truth], report: Report, place: Place
) -> Facts:
    directory, found, files = WeightDirectory(None, path), list[Json](), set[Path | None]()
    for number, (model, node) in enumerate(nodes):
        op = FileTensor(model, node, node.output_descs[0], None).var_op()
        facts = _node_facts(node)
        info = file_constant_info(op, {})
        facts |= {"location": info.file, "offset": info.offset, "length": info.length, "alloc_bytes": info.alloc_bytes}
        wanted = expected[number] if number < len(expected) else {}
        files.add(_read_facts(info, directory, path, wanted, facts, report, (*place, "file_constants", number)))
        found.append(facts)
    return {"file_constants": found, "combined": len(files) == 1}


def _read_facts(
    info: FileConstantInfo,
    directory: WeightDirectory,
    path: Path,
    expected: Truth,
    facts: Facts,
    report: Report,
    place: Place,
) -> Path | None:
    """Read a weight as it is read for a block of its own; add what came of it to the facts."""
    try:
        file = directory.find(info)
        facts["resolves_to"] = str(file.path.relative_to(path.parent.resolve()))
        region = info.region(file)
    except GevarError as error:
        facts["read_status"] = error.status
        if isinstance(error, LoadError) and error.status is None:
            facts |= _short_facts(info, file, expected, report, place)
        return None
    with file.path.open("rb") as stream:
        stream.seek(region.offset)
        data = stream.read(region.size_bytes)
    facts |= {"read_status": SUCCESS, "read_bytes": len(data), "read_sha256": _digest(data)}
    return file.path


def _short_facts(info: FileConstantInfo, file: WeightFile, expected: Truth, report: Report, place: Place) -> Facts:
    """A file that ends too early: GE reads what there is and calls it success, gevar refuses, as the page says."""
    with file.path.open("rb") as stream:
        stream.seek(info.offset)
        data = stream.read(info.length or info.size_bytes)
    found: Facts = {"read_status": SUCCESS, "read_bytes": len(data), "read_sha256": _digest(data)}
    if all(expected.get(key) == value for key, value in found.items()):
        _accept(report, SHORT_FILE_EDGE, len(found))
        return found
    report.differ(place, f"GE's rules read {len(data)} B of a file that is too short, the file says something else")
    return {}


# --- loading ----------------------------------------------------------------------------------------------------------


def _load(
    source: Path | bytes,
    session: Session,
    found: _Found,
    report: Report,
    place: Place,
    stack: ExitStack,
    om: OmFile,
    truth: Truth,
) -> None:
    """Load a file into device memory; it must go as node by node. Add the addresses that operators get."""
    refused: GevarError | None = None
    loaded: LoadedModel | None = None
    try:
        loaded = stack.enter_context(load_model(source, session=session))
    except GevarError as error:
        refused = error
    status = SUCCESS if refused is None else refused.status
    possible = _statuses(found)
    if status not in possible:
        report.differ((*place, "restore_status"), f"loading gives {status} ({refused}), node by node {possible}")
    state = _state(session.var_manager, truth.get("var_manager_info_b64"), found.restored)
    if not (found.is_short or om.header.is_dynamic or state == found.facts["var_manager_info_b64"]):
        report.differ((*place, "var_manager_info_b64"), "loading leaves another state than restoring node by node")
    if loaded is not None:
        _check_bytes(loaded, source, report, place)
        models: Any = found.facts["models"]
        for number, (model, memory) in enumerate(zip(om.models, loaded.models, strict=True)):
            wanted = truth["models"][number].get("addresses", []) if number < len(truth["models"]) else []
            models[number]["addresses"] = [_op_facts(model, entry, memory, session) for entry in wanted]


def _statuses(found: _Found) -> set[Json]:
    """Statuses that a load may end with: what fails first of run time parameters, external weights and variables."""
    models: Any = found.facts["models"]
    weights: Any = found.facts.get("file_constants", [])
    if found.is_short:
        return {None}
    early = {one["runtime_params_status"] for one in models} - {SUCCESS}
    early |= {one["read_status"] for one in weights} - {SUCCESS}
    return early or {found.facts["restore_status"]}


def _check_bytes(loaded: LoadedModel, source: Path | bytes, report: Report, place: Place) -> None:
    for difference in loaded.verify(source).differences:
        report.differ(place, f"the device has other bytes than the file: {difference}")


def _op_facts(model: OmModel, entry: Truth, memory: ModelMemory, session: Session) -> Facts:
    named = (node for node in model.nodes() if (node.name, node.graph_name) == (entry.get("op"), entry.get("graph")))
    node = next(named, None)
    if node is None:
        return {"op": None}
    owners = {row.logic_addr: wire_key(row.owner) for row in session.var_manager.table()}
    return {
        "op": node.name,
        "graph": node.graph_name,
        "inputs": _places(lambda: memory.input_places(node, session.var_manager, DEVICE), owners),
        "outputs": _places(lambda: memory.output_places(node, session.var_manager, DEVICE), owners),
    }


def _places(find: Callable[[], list[TensorPlace]], owners: Mapping[int, str]) -> Json:
    try:
        return [_place_facts(found, owners) for found in find()]
    except AddressError:
        return None


def _place_facts(found: TensorPlace, owners: Mapping[int, str]) -> Facts:
    if found.kind is TensorPlaceKind.FILE_CONSTANT:
        return {"kind": str(found.kind), "logical_address": found.logic_addr}
    key = {"key": owners[found.logic_addr]} if found.kind is TensorPlaceKind.VARIABLE else {}
    return {"kind": str(found.kind), "offset": found.offset, **key}


# --- states and names -------------------------------------------------------------------------------------------------


def _state(vm: VarManager, expected: str | None, restored: Iterable[Facts], report: Report | None = None) -> Json:
    """Return the state as the file has it where gevar's is the same, but for the number of the session.

    Variables that share an address by their weight are one block, made for the first; GE makes it anew for each. With a
    report that is counted as a documented difference.
    """
    if not vm.is_var_resource_inited:
        return None
    found = var_manager.VarManagerInfo.FromString(vm.var_manager_to_bytes(extension=False))
    if expected is not None:
        wanted = var_manager.VarManagerInfo.FromString(b64decode(expected))
        found.session_id = wanted.session_id
        replaced = _replace_blocks(found, restored)
        if same_json(message_json(wanted), message_json(found)):
            if report is not None and replaced:
                _accept(report, REPLACED_BLOCK_EDGE, 1)
            return expected
    return b64encode(found.SerializeToString(deterministic=True)).decode()


def _replace_blocks(info: Any, restored: Iterable[Facts]) -> bool:
    """Describe each block by the variable that was restored there last; tell whether that changes anything."""
    changed = False
    for facts in restored:
        if not facts.get("new_name"):
            continue
        block = info.var_resource.var_dev_addr_mgr_map[facts["logical_address"]]
        last = info.var_resource.var_addr_mgr_map[facts["key"]].desc
        if block.desc != last:
            block.desc.CopyFrom(last)
            changed = True
    return changed


def _accept(report: Report, edge: int, count: int) -> None:
    """Count a difference that the page states."""
    assert any(section.edge == edge for section in sections())
    report.accepted[f"edge {edge}"] += count


def _pairs(expected: Any, found: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the objects at the same places of two trees."""
    if isinstance(expected, Mapping) and isinstance(found, dict):
        yield expected, found
        for key in expected.keys() & found.keys():
            yield from _pairs(expected[key], found[key])
    elif isinstance(expected, list) and isinstance(found, list):
        for one, other in zip(expected, found, strict=False):
            yield from _pairs(one, other)


def _canonical_types(truth: Truth, facts: Facts) -> None:
    """Call a data type that GE has two names for as the file does."""
    for expected, found in _pairs(truth, facts):
        name = expected.get("dtype")
        if isinstance(name, str) and found.get("dtype") == DataType.from_serial(name).to_serial():
            found["dtype"] = name
