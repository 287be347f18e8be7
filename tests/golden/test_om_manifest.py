"""The runner of expectation files, over the shared manifests and over small ones that are right or wrong."""

import copy
import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gevar.om.facts import om_facts
from gevar.om.om_file import open_om
from tests.golden import om_manifest, runner
from tests.golden.facts import Json, Report, State, leaves, load_document, place_text
from tests.helpers import om_builder as build
from tests.helpers.shared import REPOSITORY, shared_path

ORDINARY = build.small_partitions()
Document = dict[str, Json]


def entry_of(path: Path, **more: Json) -> Document:
    """An entry with the facts that the file has, in the form of a manifest."""
    data = path.read_bytes()
    kind = "bundle" if data[82] == 5 and data[:4] == bytes(4) else "model"
    with open_om(path, kind=kind) as om:
        found = om_manifest._as_in_manifest(om_facts(om, deep=True))
    keys = ("size", "sha256", "header", "table_entry_bytes", "end_of_last_partition", "models", "var_like_nodes")
    picked = {key: found[key] for key in keys if key in found}
    rest = {key: found[key] for key in ("attr_name_levels", "graph_decodes", "bundle_variable_size") if key in found}
    entry: Document = json.loads(json.dumps({"name": path.name, **picked, **rest, **more}))
    return entry


@pytest.fixture
def manifest(tmp_path: Path) -> Document:
    """A manifest of five files and a weight file, all facts right."""
    nested = build.g3(ORDINARY)
    files = {
        "plain.om": nested,
        "narrow.om": build.g2(ORDINARY),
        "flow.om": build.flow(build.model_def("r", []), [("a", "NPU", nested)]),
        "bundle.om": build.bundle([nested]),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "text.om").write_bytes(b"no model")
    (tmp_path / "weight").mkdir()
    (tmp_path / "weight" / "w.bin").write_bytes(b"weights")
    entries = [entry_of(tmp_path / name) for name in files]
    text = {"name": "text.om", "note": "text", "size": 8, "sha256": hashlib.sha256(b"no model").hexdigest()}
    document: Document = {
        "about": "made by a test",
        "file_count": 5,
        "total_bytes": sum(map(len, files.values())) + 8,
        "status_names": {"0": "SUCCESS", "1343225857": "PARAM_INVALID", "4294967295": "FAILED"},
        "weight_files": [{"path": "weight/w.bin", "size": 7, "sha256": hashlib.sha256(b"weights").hexdigest()}],
        "files": [*entries, {**text, "expect_error": "not a model"}],
    }
    return document


@pytest.fixture
def check(tmp_path: Path) -> Callable[[Document], Report]:
    def run(document: Document) -> Report:
        path = tmp_path / "expectations.json"
        path.write_text(json.dumps(document))
        return runner.check_file(path)

    return run


def findings(report: Report) -> str:
    unknown = [place_text(place) for place, state in report.states.items() if state is State.UNKNOWN]
    return "\n".join([f"{place_text(place)}: {text}" for place, text in report.differences] + unknown)


# --- the shared files -------------------------------------------------------------------------------------------------


def test_shared_manifest_of_real_files(capsys: pytest.CaptureFixture[str]) -> None:
    path = shared_path("data/om/manifest.json")
    assert runner.main([str(path)]) == 0
    output = capsys.readouterr().out
    assert "0 not compared, 0 unknown or unreached, 0 differences" in output
    report = runner.check_file(path)
    documentation = {place[-1] for place, state in report.states.items() if state is State.DOCUMENTATION}
    assert documentation == {"about", "source", "source_date", "note"}
    assert report.count(State.COMPARED) + report.count(State.DOCUMENTATION) == len(report.states) > 4000


def test_shared_manifest_of_files_with_variables() -> None:
    report = runner.check_file(shared_path("data/om_vars/manifest.json"))
    assert findings(report) == ""
    assert report.passed
    assert report.count(State.LEFT_OUT) == 0
    assert report.accepted == {"edge 19": 1}


@pytest.mark.parametrize("file", ["data/om/manifest.json", "data/om_vars/manifest.json"])
def test_every_changed_number_of_a_shared_manifest_is_found(file: str) -> None:
    path = shared_path(file)
    document = load_document(path)
    report = runner.check_file(path)
    numbers = [
        place
        for place, value in leaves(document)
        if report.states[place] is State.COMPARED
        and isinstance(value, int)
        and "modeltype" not in place  # decides how a file is opened
    ]
    assert len(numbers) > 500
    changed = copy.deepcopy(document)
    picked = numbers[:: max(1, len(numbers) // 200)]
    for place in picked:
        holder = changed
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = not holder[place[-1]] if isinstance(holder[place[-1]], bool) else holder[place[-1]] + 1
    wrong = Report(changed)
    om_manifest.check(changed, path.parent, wrong)
    found = {place for place, _ in wrong.differences}
    assert {place for place in picked if place not in found} == set()


# --- own files --------------------------------------------------------------------------------------------------------


def test_right_manifest_passes(manifest: Document, check: Callable[[Document], Report]) -> None:
    report = check(manifest)
    assert findings(report) == ""
    assert report.passed
    assert report.count(State.DOCUMENTATION) == 2
    assert report.count(State.COMPARED) == len(report.states) - 2


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("file_count",), 6),
        (("total_bytes",), 1),
        (("status_names", "0"), "FAILED"),
        (("weight_files", 0, "size"), 8),
        (("weight_files", 0, "sha256"), "0" * 64),
        (("files", 0, "size"), 1),
        (("files", 0, "sha256"), "0" * 64),
        (("files", 0, "header", "name"), "other"),
        (("files", 0, "header", "is_unknown_model"), 1),
        (("files", 0, "header", "version"), True),
        (("files", 0, "table_entry_bytes"), 12),
        (("files", 0, "models", 0, "partitions", 1, "file_offset"), 0),
        (("files", 0, "models", 0, "model_def", "attrs", "memory_size"), 2049),
        (("files", 0, "models", 0, "model_def", "attrs", "target_type"), "LITE"),
        (("files", 0, "models", 0, "model_def", "compressed_attrs"), True),
        (("files", 0, "models", 0, "model_def", "compressed_attrs"), 0),
        (("files", 0, "models", 0, "model_def", "graphs", 1, "types", "Const"), 2),
        (("files", 0, "models", 0, "consts", "by_data_offset", 1), 69),
        (("files", 0, "models", 0, "consts", "list", 0, 7), "00000000"),
        (("files", 0, "models", 0, "consts", "list", 0, 5), None),
        (("files", 0, "models", 0, "weights", "sha256"), "0" * 64),
        (("files", 0, "models", 0, "kernels", "count"), 3),
        (("files", 0, "models", 0, "task", "tasks"), 3),
        (("files", 0, "models", 0, "inout_tlv", "blocks", 0, 1), 0),
        (("files", 0, "var_like_nodes", "Variable"), 3),
        (("files", 0, "graph_decodes"), False),
        (("files", 1, "table_entry_bytes"), 24),
        (("files", 2, "models", 0, "flow_partitions", 0, 2), "0" * 16),
        (("files", 3, "bundle_variable_size"), 513),
    ],
)
def test_wrong_fact_fails(
    manifest: Document, check: Callable[[Document], Report], place: tuple[str | int, ...], value: Json
) -> None:
    holder = manifest
    for step in place[:-1]:
        holder = holder[step]
    assert holder[place[-1]] != value or type(holder[place[-1]]) is not type(value)
    holder[place[-1]] = value
    report = check(manifest)
    assert not report.passed
    assert [found for found, _ in report.differences] == [place]


@pytest.mark.parametrize(
    "place",
    [
        (),
        ("files", 0),
        ("files", 0, "header"),
        ("files", 0, "models", 0),
        ("files", 0, "models", 0, "partitions", 0),
        ("files", 0, "models", 0, "model_def"),
        ("files", 0, "models", 0, "model_def", "attrs"),
        ("files", 0, "models", 0, "consts"),
        ("files", 0, "models", 0, "task"),
        ("files", 0, "models", 0, "model_def", "graphs", 0, "types"),
        ("files", 4),
        ("weight_files", 0),
    ],
)
@pytest.mark.parametrize("value", [1, {}, [], {"inner": [1]}], ids=str)
def test_unknown_key_fails(
    manifest: Document, check: Callable[[Document], Report], place: tuple[str | int, ...], value: Json
) -> None:
    holder = manifest
    for step in place:
        holder = holder[step]
    holder["surprise"] = value
    report = check(manifest)
    assert not report.passed
    unknown = [found for found, state in report.states.items() if state is State.UNKNOWN]
    assert [found[: len(place) + 1] for found in unknown] == [(*place, "surprise")]


@pytest.mark.parametrize("name", ["plain.om", "text.om", "weight/w.bin"])
def test_missing_file_fails(tmp_path: Path, manifest: Document, check: Callable[[Document], Report], name: str) -> None:
    (tmp_path / name).unlink()
    report = check(manifest)
    assert not report.passed
    assert f"file {tmp_path / name} is missing" in findings(report)


def test_missing_element_fails(manifest: Document, check: Callable[[Document], Report]) -> None:
    manifest["files"][0]["models"][0]["consts"]["list"].pop()
    del manifest["files"][1]["models"][0]["model_def"]["graphs"][0]["types"]["Const"]
    report = check(manifest)
    assert [place_text(place) for place, _ in report.differences] == [
        "files[0].models[0].consts.list",
        "files[1].models[0].model_def.graphs[0].types",
    ]


def test_element_too_many_fails(manifest: Document, check: Callable[[Document], Report]) -> None:
    models = manifest["files"][0]["models"]
    models.append(models[0])
    report = check(manifest)
    assert [place for place, _ in report.differences] == [("files", 0, "models")]


def test_file_that_should_be_refused_but_is_read(
    tmp_path: Path, manifest: Document, check: Callable[[Document], Report]
) -> None:
    (tmp_path / "text.om").write_bytes((tmp_path / "plain.om").read_bytes())
    report = check(manifest)
    assert ("files", 4, "expect_error") in [place for place, _ in report.differences]


def test_file_that_should_be_read_but_is_refused(
    tmp_path: Path, manifest: Document, check: Callable[[Document], Report]
) -> None:
    (tmp_path / "plain.om").write_bytes(b"no model")
    report = check(manifest)
    assert not report.passed
    assert "files[0]: refused: " in findings(report)


def test_two_names_of_one_element_type(tmp_path: Path, check: Callable[[Document], Report]) -> None:
    desc = build.tensor_desc((2,), 27, weight_size=4, data_offset=1024)
    graph = build.graph("g", [build.op("c", "Const", {"value": build.attr_t(build.tensor(desc))})])
    path = tmp_path / "bf16.om"
    path.write_bytes(build.g3([(0, build.model_def("m", [graph])), (1, build.WEIGHTS)]))
    entry = entry_of(path)
    row = entry["models"][0]["consts"]["list"][0]
    for name, passed in (("DT_BF16", True), ("DT_BFLOAT16", True), ("DT_FLOAT16", False), ("DT_NEW", False)):
        row[1] = name
        assert check({"files": [entry]}).passed is passed


# --- the runner -------------------------------------------------------------------------------------------------------


def test_main_counts_and_fails_as_a_whole(
    tmp_path: Path, manifest: Document, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(manifest))
    manifest["file_count"] = 9
    bad.write_text(json.dumps(manifest))
    assert runner.main([str(good)]) == 0
    assert runner.main([str(good), str(bad)]) == 1
    output = capsys.readouterr().out
    assert f"{good}: passed: " in output
    assert f"{bad}: FAILED: " in output
    assert "  file_count: expected 9, found 5" in output
    assert "1 of 2 files passed" in output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "Expecting property name"),
        ("[]", "no known schema"),
        ('{"files": []}', "no known schema"),
        ('{"files": [{"name": "a.om"}]}', "no known schema"),
        ('{"files": [{"header": {}}]}', "no known schema"),
        ('{"about": 1, "about": 2}', "keys come twice in one object: about"),
    ],
)
def test_file_that_is_no_expectation(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    assert runner.main([str(path)]) == 1
    assert words in capsys.readouterr().out


def test_missing_expectation_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main([str(tmp_path / "none.json")]) == 1
    assert "FAILED" in capsys.readouterr().out


def test_script_from_another_folder(tmp_path: Path, manifest: Document) -> None:
    (tmp_path / "tests").mkdir()  # must not hide the project's own
    (tmp_path / "m.json").write_text(json.dumps(manifest))
    script = REPOSITORY / "scripts" / "golden"
    done = subprocess.run([script, "m.json"], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("m.json: passed: ")


def test_script_without_environment_says_so_in_one_line(tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    for name in ("golden", "setup.sh"):
        (scripts / name).write_bytes((REPOSITORY / "scripts" / name).read_bytes())
    (scripts / "golden").chmod(0o755)
    done = subprocess.run([scripts / "golden", "m.json"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "run ./scripts/test" in done.stderr
