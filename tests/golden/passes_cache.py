"""One entry of the model cache and a session: whether the entry is right, and what it does to the variables."""

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gevar import status
from gevar.compile.graph_rebuild_state_ctrl import GraphRebuildStateCtrl
from gevar.compile.model_cache_files import CacheFiles
from gevar.errors import GevarError
from gevar.graph import ComputeGraph
from gevar.om.root_model_writer import root_model_blob
from gevar.proto.var_manager import VarMatchInfo
from gevar.types import TensorDesc
from gevar.types.format import format_to_serial
from gevar.var import TransNodeInfo, VarManager, VarOp
from gevar.var.var_info_writer import write_desc_info, write_descs
from tests.golden.facts import Place, Report, State
from tests.golden.passes_descs import dtype_of, make_desc
from tests.helpers.cached_models import cache_of, root_model

Json = Mapping[str, Any]
GRAPH_ID = 7
ENTRY_KEYS = ("var_desc_file", "before", "after", "staged", "changed", "road")
EXTENSIONS = frozenset(
    {
        *("size", "weight_size", "data_offset", "real_dim_cnt", "reuse_input", "reuse_input_index", "output_tensor"),
        *("input_tensor", "device_type", "cmps_size", "cmps_tab", "cmps_tab_offset"),
    }
)
"""Fields of a description beside form and origin, which count for a match."""
ANY_DESC: Json = {"format": "ND", "dtype": "float32", "shape": []}
CALL = re.compile(r"(?P<call>\w+)\((?P<name>.+?)(?:, (?P<detail>.+))?\)")
CONTROL_CALLS = frozenset({"SetStateChanged"})
"""Calls to the rebuild control, made in their order when the model was loaded; the others are to the manager."""


class _Recorder(VarManager):
    """A manager that writes down what is done to its variables: call, name, and the argument."""

    def __init__(self) -> None:
        super().__init__(1)
        self.init(0, 1)
        self.calls: list[tuple[str, str, object]] = []

    def renew_cur_var_desc(self, name: str, desc: TensorDesc | None = None, *, op: VarOp | None = None) -> None:
        self.calls.append(("RenewCurVarDesc", name, desc))
        super().renew_cur_var_desc(name, desc, op=op)

    def set_trans_road(self, name: str, road: Any) -> bool:
        self.calls.append(("SetTransRoad", name, road))
        return super().set_trans_road(name, road)

    def set_changed_graph_id(self, name: str, graph_id: int) -> None:
        self.calls.append(("SetChangedGraphId", name, graph_id))
        super().set_changed_graph_id(name, graph_id)


class _ControlRecorder(GraphRebuildStateCtrl):
    """A rebuild control that writes down what has changed."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, str, object]] = []

    def set_state_changed(self, name: str) -> None:
        self.calls.append(("SetStateChanged", name, None))
        super().set_state_changed(name)


def check_case(case: Json, place: Place, report: Report) -> None:
    """Store the entry in a cache, look for it from a session with the variables of the manager, and compare."""
    entry, vm, ctrl = case["entry"], _Recorder(), _ControlRecorder()
    for name, desc in case["manager"].items():
        vm.assign_var_mem(name, None, _desc(desc))
    report.mark((*place, "manager"), case["manager"], State.INPUT)
    for key in ENTRY_KEYS:
        if key in entry:
            report.mark((*place, "entry", key), entry[key], State.INPUT)
    graph = ComputeGraph("main")
    graph.graph_id = GRAPH_ID
    with tempfile.TemporaryDirectory() as folder:
        files = CacheFiles(Path(folder), "k")
        files.save(root_model_blob(root_model(ComputeGraph("main"))).write_to, _match_info(entry))
        files.close()
        try:
            with cache_of(Path(folder), vm, graph, ctrl) as cache:
                matched: bool | str = cache.try_load_model_from_cache() is not None
        except GevarError as error:
            matched = next((name for name, value in vars(status).items() if value == error.status), str(error))
            vm.calls.clear()  # they were taken back
    report.compare((*place, "matched"), case["matched"], matched)
    _compare_refresh(case, vm.calls, ctrl.calls, place, report)


def _compare_refresh(
    case: Json,
    manager_calls: list[tuple[str, str, object]],
    control_calls: list[tuple[str, str, object]],
    place: Place,
    report: Report,
) -> None:
    place, expected = (*place, "refresh"), case["refresh"]
    if len(expected) != len(manager_calls) + len(control_calls):
        report.differ(place, f"expected {len(expected)} calls, found {manager_calls + control_calls}")
    if not expected:
        report.mark(place, expected, State.COMPARED)
    manager, control = iter(manager_calls), iter(control_calls)
    for number, text in enumerate(expected):
        match = CALL.fullmatch(text)
        if match is None:
            continue  # stays unknown
        found = next(control if match["call"] in CONTROL_CALLS else manager, None)
        report.compare((*place, number), text, None if found is None else _text(case["entry"], *found, match["detail"]))


def _text(entry: Json, call: str, name: str, argument: object, detail: str | None) -> str:
    """A call in the words of the file; the argument is told where the file tells it."""
    if detail is None:
        return f"{call}({name})"
    told = str(argument)
    if isinstance(argument, TensorDesc):
        staged, road = entry.get("staged", {}), _road(entry, name)
        if name in staged and argument == _desc(staged[name]):
            told = f"staged {format_to_serial(argument.format)}"
        elif road and argument == road[-1].output:
            told = f"last output {format_to_serial(argument.format)}"
    elif call == "SetChangedGraphId" and argument == GRAPH_ID:
        told = "graph id of the root graph"
    return f"{call}({name}, {told})"


def _match_info(entry: Json) -> bytes | None:
    """The stored descriptions; None where the entry says that it has none."""
    if "var_desc_file" in entry and entry["var_desc_file"] is None:
        return None
    descs = {key: {name: _desc(desc) for name, desc in entry.get(key, {}).items()} for key in ("before", "after")}
    info = VarMatchInfo(
        desc_info_before_compile=write_desc_info(descs["before"], {}),
        desc_info_after_compile=write_desc_info(
            descs["after"], {name: _road(entry, name) for name in entry.get("road", {})}
        ),
    )
    info.desc_info_after_compile.changed_var_names.extend(entry.get("changed", ()))
    staged = {name: _desc(desc) for name, desc in entry.get("staged", {}).items()}
    write_descs(info.desc_info_after_compile.staged_var_tensor_desc_map, staged)
    return info.SerializeToString()


def _road(entry: Json, name: str) -> tuple[TransNodeInfo, ...]:
    """The conversions of a variable; what is not told of a side of a step is as after compilation, else as before."""
    usual = entry.get("after", {}).get(name) or entry.get("before", {}).get(name) or ANY_DESC
    road = []
    for step in entry.get("road", {}).get(name, ()):
        sides = []
        for side in ("input", "output"):
            told = step.get(side)
            described = told if isinstance(told, Mapping) else {**usual, **({"format": told} if told else {})}
            sides.append(_desc(described))
        road.append(TransNodeInfo(step["node_type"], *sides))
    return tuple(road)


def _desc(found: Json) -> TensorDesc:
    fields = {key: value for key, value in found.items() if key in EXTENSIONS}
    if "origin_dtype" in found:
        fields["origin_dtype"] = dtype_of(found["origin_dtype"])
    form = {key: value for key, value in found.items() if key not in EXTENSIONS | {"origin_dtype"}}
    return make_desc(form).replace(**{"size": 0, **fields})
