"""What GE's loader and variable manager made of a model file, held against gevar's.

The part `truth` of a manifest says for each node in the order of restoring its key, logical address and status, then
the addresses that operators get, what is read of external weights, and the saved state. Here the file is restored node
by node through `ModelRtVarManager`, and loaded as a whole into device memory of the host runtime; both must agree with
it, and the device must hold the bytes of the files.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gevar.errors import AddressError, FormatError, GevarError, ModelFileError
from gevar.om.model import OmModel
from gevar.om.node import CONSTANT, CONSTANTOP, FILECONSTANT, VARIABLE
from gevar.om.om_file import OmFile, open_om
from gevar.om.partition import PartitionType
from gevar.runtime.rt_var_manager import PLACEMENT_HOST, VARIABLE_PLACEMENT
from gevar.session import LoadedModel, Session, load_model
from gevar.session.file_tensors import FileTensor
from gevar.session.model_memory import ModelMemory, TensorPlace, TensorPlaceKind
from gevar.session.runtime_param import RuntimeParam
from gevar.status import SUCCESS
from gevar.types import DevAddr, DeviceId
from gevar.var import VarOp
from gevar.var.wire_key import wire_key
from tests.golden.facts import Json, Place, Report
from tests.golden.om_truth_facts import (
    Facts,
    Truth,
    canonical_types,
    const_facts,
    file_constant_facts,
    node_facts,
    place_holder_facts,
    value_facts,
)
from tests.golden.om_truth_state import saved_state
from tests.helpers.runtime import host_runtime

DEVICE = DeviceId(0)
RESTORED = (VARIABLE, CONSTANTOP)


def check_truth(path: Path, truth: Truth, report: Report, place: Place) -> None:
    """Compare what GE made of a file with what gevar makes of it."""
    if "sub_models" in truth:
        report.compare(place, truth, _bundle_facts(path, truth, report, place))
        return
    try:
        om = open_om(path)
        for model in om.models:
            model.check_decodes()
    except ModelFileError as error:
        report.compare(place, truth, {"load_status": error.status})
        return
    with om, Session(host_runtime()) as session, Session(host_runtime()) as stepwise, ExitStack() as stack:
        found = _restore_file(om, truth, stepwise, [], report, place)
        _load(path, session, found, report, place, stack, om, truth)
        _add_addresses(om, found, truth, stepwise)
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
            _add_addresses(one, told, expected, stepwise)
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
        found.facts |= file_constant_facts(nodes, Path(om.path), truth["file_constants"], report, place)
        found.is_short = report.accepted.total() > accepted
    expected = truth.get("var_manager_info_b64")
    found.facts["var_manager_info_b64"] = saved_state(session.var_manager, expected, found.restored, report)
    canonical_types(truth, found.facts)
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
            "consts": [const_facts(const) for const in consts],
        }

    def _variables(self) -> tuple[list[Json], Json]:
        found: list[Json] = []
        refused: Json = SUCCESS
        for node in self.model.variable_nodes():
            if node.type == FILECONSTANT:
                continue
            const = self.model.const_node(node) if node.type == CONSTANTOP else None
            tensor = FileTensor(self.model, node, node.output_descs[0], const)
            facts = {**node_facts(node), "status": None}
            if refused == SUCCESS:
                restored = restore(tensor.var_op(), self._session)
                facts |= restored
                refused = restored["status"]
            found.append(facts | value_facts(node, const) | place_holder_facts(tensor))
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
                facts: Facts = {**node_facts(node), "status": None}
                if status == SUCCESS:
                    restored = restore(op, session, need_collect=True)
                    facts |= restored
                    status = restored["status"]
                found.append(facts)
    return {"base": base, "size": size, "restore_status": status, "variables": found}


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
    if status not in possible and not _fails_later(refused):
        report.differ((*place, "restore_status"), f"loading gives {status} ({refused}), node by node {possible}")
    state = saved_state(session.var_manager, truth.get("var_manager_info_b64"), found.restored)
    if not (found.is_short or om.header.is_dynamic or state == found.facts["var_manager_info_b64"]):
        report.differ((*place, "var_manager_info_b64"), "loading leaves another state than restoring node by node")
    if loaded is not None:
        _check_bytes(loaded, source, report, place)


def _add_addresses(om: OmFile, found: _Found, truth: Truth, session: Session) -> None:
    """Add where the operators that the file names find their tensors, for models that were restored."""
    models: Any = found.facts["models"]
    for model, facts, wanted in zip(om.models, models, truth.get("models", ()), strict=False):
        if facts["runtime_params_status"] == SUCCESS and facts["restore_status"] == SUCCESS:
            external = {node.output_i[0]: None for node in model.variable_nodes() if node.type == FILECONSTANT}
            memory = ModelMemory(model.name, RuntimeParam.of_model(model), DevAddr(0), external)
            facts["addresses"] = [_op_facts(model, entry, memory, session) for entry in wanted.get("addresses", ())]


def _fails_later(error: GevarError | None) -> bool:
    """Whether a load failed after everything was restored, of which a file tells nothing: at bytes that do not fit."""
    too_long = isinstance(error, ModelFileError) and error.field.startswith("constant ")
    return too_long or isinstance(error, FormatError)


def _statuses(found: _Found) -> set[Json]:
    """Statuses that a load may end with: what fails first of run time parameters, external weights and variables."""
    models: Any = found.facts["models"]
    weights: Any = found.facts.get("file_constants", [])
    if found.is_short:
        return {None}
    early = {one["runtime_params_status"] for one in models} - {SUCCESS}
    early |= {one.get("read_status") for one in weights} - {SUCCESS}
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
    except (AddressError, FormatError):  # a place that is nowhere, or an initial value that does not fit
        return None


def _place_facts(found: TensorPlace, owners: Mapping[int, str]) -> Facts:
    if found.kind is TensorPlaceKind.FILE_CONSTANT:
        return {"kind": str(found.kind), "logical_address": found.logic_addr}
    key = {"key": owners[found.logic_addr]} if found.kind is TensorPlaceKind.VARIABLE else {}
    return {"kind": str(found.kind), "offset": found.offset, **key}
