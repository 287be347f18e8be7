"""What GE made of model files, held against gevar: right truths pass, and every wrong fact is found."""

import copy
import json
import shutil
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, cast

import pytest

from gevar.proto import var_manager
from gevar.var import VarManager
from tests.golden import om_manifest, runner
from tests.golden.facts import Json, Place, Report, State, leaves, load_document
from tests.golden.om_truth_state import saved_state
from tests.helpers import om_builder as build
from tests.helpers.shared import shared_path
from tests.helpers.var_memory import FakeMemory, constant, make_desc, make_manager

MANIFEST = "data/om_vars/manifest.json"
GUARD = 2048


def entry_of(name: str) -> dict[str, Any]:
    """An entry of the shared manifest, with its truth only."""
    document: Any = load_document(shared_path(MANIFEST))
    entry = next(one for one in document["files"] if one["name"] == name)
    modeltype = {"modeltype": entry["header"]["modeltype"]}
    return {"name": name, "header": modeltype, "truth": copy.deepcopy(entry["truth"])}


def report_of(entry: dict[str, Any], folder: Path | None = None) -> Report:
    document = {"files": [entry]}
    report = Report(document)
    om_manifest.check(document, shared_path("data/om_vars") if folder is None else folder, report)
    return report


def at(tree: Any, place: Place) -> Any:
    for step in place:
        tree = tree[step]
    return tree


def changed(value: Json) -> Json:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return "other" if value is None or isinstance(value, str) else value


FILES = [
    "static_128g_compressed.om",
    "static_32g_plain.om",
    "placeholders_and_combined.om",
    "file_constants_paths.om",
    "dynamic_shared_variable.om",
    "bundle_two_models.om",
    "refused_name_grown.om",
]


@pytest.mark.parametrize("name", FILES)
def test_every_changed_fact_is_found(name: str) -> None:
    entry = entry_of(name)
    assert report_of(entry).passed
    places = [place for place, value in leaves(entry["truth"]) if changed(value) != value]
    named = ("op", "graph")  # say which operator is asked for; a wrong one is told as missing
    picked = places[:: max(1, len(places) // 40)]
    wrong = copy.deepcopy(entry)
    for place in picked:
        at(wrong["truth"], place[:-1])[place[-1]] = changed(at(entry["truth"], place))
        if place[-1] == "var_manager_info_b64":
            at(wrong["truth"], place[:-1])[place[-1]] = _other_state(at(entry["truth"], place))
    report = report_of(wrong)
    found = {place[3:] for place, _ in report.differences}
    unreached = {place[3:] for place, state in report.states.items() if state is State.UNKNOWN}
    missed = [place for place in picked if place not in found | unreached and place[-1] not in named]
    assert missed == []
    assert not report.passed


def _other_state(text: str) -> str:
    info = var_manager.VarManagerInfo.FromString(b64decode(text))
    info.var_mem_max_size += 1
    return b64encode(info.SerializeToString()).decode()


@pytest.mark.parametrize("kind", ["models", "variables"])
def test_missing_or_surplus_parts_are_found(kind: str) -> None:
    for change in ("pop", "append"):
        entry = entry_of("static_32g_plain.om")
        models = entry["truth"]["models"]
        part = models if kind == "models" else models[0]["variables"]
        getattr(part, change)(*([] if change == "pop" else [part[0]]))
        assert not report_of(entry).passed, change


def test_an_unknown_key_of_the_truth_fails() -> None:
    entry = entry_of("narrow_32g.om")
    entry["truth"]["models"][0]["surprise"] = 1
    report = report_of(entry)
    assert report.differences == []
    assert [place[-1] for place, state in report.states.items() if state is State.UNKNOWN] == ["surprise"]


def with_weights(folder: Path, name: str) -> dict[str, Any]:
    """Copy a file and the weights to a folder of one's own."""
    shutil.copyfile(shared_path(f"data/om_vars/{name}"), folder / name)
    (folder / "weight").mkdir()
    for weight in shared_path("data/om_vars/weight").iterdir():
        shutil.copyfile(weight, folder / "weight" / weight.name)
    return entry_of(name)


def test_a_weight_file_that_is_too_short_differs_as_documented(tmp_path: Path) -> None:
    entry = with_weights(tmp_path, "file_constants_paths.om")
    file = tmp_path / "weight" / "layers.bin"
    file.write_bytes(file.read_bytes()[: 2048 + 60])  # the last of three weights in it has 100 B at 2048
    truth = entry["truth"]["file_constants"][3]
    truth |= {"read_bytes": 60, "read_sha256": _sha256(file.read_bytes()[2048:])}
    entry["truth"]["models"][0].pop("addresses")
    report = report_of(entry, tmp_path)
    assert report.passed
    assert report.accepted == {"edge 32": 3}
    truth["read_bytes"] = 61
    assert not report_of(entry, tmp_path).passed


def test_a_weight_file_that_is_not_there_fails_as_in_ge(tmp_path: Path) -> None:
    entry = with_weights(tmp_path, "file_constants_paths.om")
    (tmp_path / "weight" / "other.bin").unlink()
    entry["truth"]["models"][0].pop("addresses")
    truth = entry["truth"]["file_constants"][2]
    for key in ("resolves_to", "read_bytes", "read_sha256"):
        del truth[key]
    assert [place[3:] for place, _ in report_of(entry, tmp_path).differences] == [("file_constants", 2, "read_status")]
    truth["read_status"] = 0xFFFFFFFF
    assert report_of(entry, tmp_path).passed


def test_a_bundle_that_is_opened_in_the_ordinary_way() -> None:
    entry = entry_of("bundle_two_models.om")
    entry["truth"]["ordinary_load_status"] = 0
    assert [place[3:] for place, _ in report_of(entry).differences] == [("ordinary_load_status",)]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"IMOD" + bytes(100), 145006),
        (build.g3([(0, b"\x3a\xff\xff"), (1, b"")]), 545002),
        (build.g3([(0, build.model_def("m", [build.graph("g", [build.field(1, "a") + b"\x1a\xff"])]))]), 545002),
        (build.g3([(0, b"")] * 9), 145000),
    ],
    ids=["short", "model", "operator", "nine partitions"],
)
def test_a_file_that_is_refused_before_anything_is_restored(tmp_path: Path, data: bytes, status: int) -> None:
    (tmp_path / "bad.om").write_bytes(data)
    header = {"version": 0x20000000} if len(data) > 256 else {}
    entry = {"name": "bad.om", "size": len(data), "header": header, "truth": {"load_status": status}}
    report = report_of(entry, tmp_path)
    assert report.differences == []
    assert report.passed or header == {}
    entry["truth"]["load_status"] += 1
    assert [place[3:] for place, _ in report_of(entry, tmp_path).differences] == [("load_status",)]


def test_variables_that_overlap_are_no_agreement(tmp_path: Path) -> None:
    """GE restores a variable over another one and says nothing; that is told, not passed over."""
    desc = build.tensor_desc((4,), size=64)
    ops = [build.op(name, "Variable", {}, [desc], output_i=[1 << 35]) for name in ("a", "b")]
    attrs = {"task_gen_variable_addr": build.attr_i(1 << 35), "variable_size": build.attr_i(GUARD)}
    graph = build.graph("g", ops)
    (tmp_path / "two.om").write_bytes(build.g3([(0, build.model_def("m", [graph], attrs))]))
    variables = [{"name": name, "status": 0} for name in ("a", "b")]
    truth = {"load_status": 0, "restore_status": 0, "models": [{"name": "m", "variables": variables}]}
    report = report_of({"name": "two.om", "header": {}, "truth": truth}, tmp_path)
    assert ("models", 0, "variables", 1, "status") in [place[3:] for place, _ in report.differences]


def test_the_command_says_that_all_facts_agree(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main([str(shared_path(MANIFEST))]) == 0
    output = capsys.readouterr().out
    assert "0 not compared, 0 unknown or unreached, 0 differences" in output
    assert "differs as documented, edge 19: 1 facts" in output
    assert json.loads(shared_path(MANIFEST).read_text())["file_count"] > 5


def _sha256(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


def test_only_a_block_of_several_variables_may_be_described_by_another_one() -> None:
    vm, forms = make_manager(FakeMemory()), [make_desc(16, shape=shape) for shape in ((4,), (2, 2), (4,))]
    for name, form in zip("abc", forms, strict=True):
        vm.assign_var_mem(name, constant(name, b"1" * 16 if name < "c" else b"2" * 16, form), form)
    info = var_manager.VarManagerInfo.FromString(vm.var_manager_to_bytes(extension=False))
    by_name = {key[0]: (key, record) for key, record in info.var_resource.var_addr_mgr_map.items()}
    restored: list[dict[str, Any]] = [
        {"new_name": True, "key": key, "logical_address": record.address} for key, record in by_name.values()
    ]
    restored.sort(key=lambda facts: facts["key"])
    expected = var_manager.VarManagerInfo.FromString(info.SerializeToString())
    blocks = expected.var_resource.var_dev_addr_mgr_map
    blocks[by_name["b"][1].address].desc.CopyFrom(by_name["b"][1].desc)  # GE's: the variable that came last
    text = b64encode(expected.SerializeToString()).decode()
    report = Report({})
    assert saved_state(vm, text, restored, report) == text
    assert report.accepted == {"edge 19": 1}
    for name in "ac":  # whose block gevar describes wrongly
        wrong = var_manager.VarManagerInfo.FromString(info.SerializeToString())
        wrong.var_resource.var_dev_addr_mgr_map[by_name[name][1].address].desc.size += 1
        report = Report({})
        assert saved_state(cast(VarManager, Told(wrong.SerializeToString())), text, restored, report) != text
        assert not report.accepted


class Told:
    """A manager that says this of its state."""

    is_var_resource_inited = True

    def __init__(self, data: bytes) -> None:
        self.var_manager_to_bytes = lambda extension: data
