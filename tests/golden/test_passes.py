"""The runner over compile-side expectations: the shared file, and small ones that are right or wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.golden import passes, runner
from tests.golden.facts import Report, State, place_text
from tests.helpers.shared import REPOSITORY, shared_path

Document = dict[str, Any]
Change = Callable[[Document], None]

N4 = {
    "format": "NCHW",
    "dtype": "float16",
    "shape": [1, 3, 2, 2],
    "origin_format": "NCHW",
    "origin_shape": [1, 3, 2, 2],
}
N5 = {**N4, "format": "NC1HWC0", "shape": [1, 1, 2, 2, 16], "c0": 16}
ROAD = [{"node_type": "TransData", "input": {k: N4[k] for k in ("format", "dtype", "shape")}, "output": N5}]


def node(name: str, op_type: str, inputs: list[Any], outputs: list[Any], **attrs: object) -> Document:
    found = {"name": name, "type": op_type, "inputs": inputs, "outputs": outputs}
    return found | ({"attrs": attrs} if attrs else {})


def manager(**tables: Any) -> Document:
    empty: Document = {
        "current_desc": {},
        "trans_road": {},
        "changed_graph_id": {},
        "staged_desc": {},
        "change_times": {},
    }
    return empty | {"graphs_to_rebuild": []} | tables


@pytest.fixture
def document() -> Document:
    """Three cases, all facts right: one folded, one unchanged, one that fails."""
    before: Document = {
        "graph_id": 1,
        "nodes": [
            *(node("w", "Variable", [], [N4]), node("t", "TransData", [N4], [N5])),
            *(node("r", "Relu", [{**N5, "name": "x"}], [N5]), node("n", "NoOp", [], [])),
        ],
        "edges": ["w:0 -> t:0", "t:0 -> r:0", "n => r"],
    }
    after = {
        "graph_id": 1,
        "nodes": [before["nodes"][3], {**before["nodes"][0], "outputs": [N5]}, before["nodes"][2]],
        "edges": ["n => r", "w:0 -> r:0", "n => r"],
    }
    known = {"w": N4}
    folded = {
        "id": "folded",
        "passes": ["VariableOpPass"],
        "title": "t",
        "basis": "b",
        "note": "n",
        "input_graph": before,
        "expected_status": "SUCCESS",
        "expected_graph": after,
        "var_manager_before": manager(current_desc=known),
        "var_manager_after": manager(
            current_desc=known,
            trans_road={"w": ROAD},
            changed_graph_id={"w": 1},
            staged_desc={"1": known},
            change_times={"w": 1},
            graphs_to_rebuild=[1, 7],
        ),
    }
    unchanged = {"id": "same", "passes": ["RefIdentityDeleteOpPass"], "input_graph": before}
    lost = {"graph_id": 1, "nodes": [node("r", "Variable", [], [N4], ref_var_src_var_name="v")], "edges": []}
    whole = {
        "title": "made by a test",
        "conventions": {"graph": "as it says"},
        "graph_cases": [
            folded,
            unchanged | {"expected_status": "SUCCESS", "expected_graph": "unchanged"},
            {"id": "lost", "passes": ["VariableRefDeleteOpPass"], "input_graph": lost, "expected_status": "FAILED"},
        ],
    }
    apart: Document = json.loads(json.dumps(whole))  # so that one part can be changed without another
    return apart


@pytest.fixture
def check(tmp_path: Path) -> Callable[[Document], Report]:
    def run(found: Document) -> Report:
        path = tmp_path / "passes.json"
        path.write_text(json.dumps(found))
        return runner.check_file(path)

    return run


def findings(report: Report) -> str:
    unknown = [place_text(place) for place, state in report.states.items() if state is State.UNKNOWN]
    return "\n".join([f"{place_text(place)}: {text}" for place, text in report.differences] + unknown)


def test_the_shared_file_agrees() -> None:
    report = runner.check_file(shared_path("golden/passes.json"))
    assert findings(report) == ""
    assert report.count(State.COMPARED) > 2700
    assert report.passed


def test_right_cases_pass(document: Document, check: Callable[[Document], Report]) -> None:
    report = check(document)
    assert findings(report) == ""
    assert report.passed


def first(document: Document) -> Document:
    case: Document = document["graph_cases"][0]
    return case


def set_in(place: list[str | int], value: object) -> Change:
    """Change one fact of the first case."""

    def change(document: Document) -> None:
        target: Any = first(document)
        for step in place[:-1]:
            target = target[step]
        target[place[-1]] = value

    return change


WRONG: dict[str, tuple[Change, str]] = {
    "status": (set_in(["expected_status"], "FAILED"), 'expected "FAILED", found "SUCCESS"'),
    "node type": (set_in(["expected_graph", "nodes", 2, "type"], "Add"), 'expected "Add", found "Relu"'),
    "node more": (lambda d: first(d)["expected_graph"]["nodes"].append(node("x", "NoOp", [], [])), "no node x"),
    "node less": (lambda d: first(d)["expected_graph"]["nodes"].pop(0), "not in the file: n"),
    "shape": (set_in(["expected_graph", "nodes", 1, "outputs", 0, "shape"], [1, 1, 2, 2, 8]), "expected 8, found 16"),
    "c0": (set_in(["expected_graph", "nodes", 1, "outputs", 0, "c0"], 8), "expected 8, found 16"),
    "c0 left out": (lambda d: first(d)["expected_graph"]["nodes"][1]["outputs"][0].pop("c0"), "not in the file: c0"),
    "name": (set_in(["expected_graph", "nodes", 2, "inputs", 0, "name"], "y"), 'expected "y", found "x"'),
    "outputs": (set_in(["expected_graph", "nodes", 0, "outputs"], [N4]), "outputs"),
    "outputs left out": (lambda d: first(d)["expected_graph"]["nodes"][1].pop("outputs"), "outputs: not in the file"),
    "attribute": (set_in(["expected_graph", "nodes", 0, "attrs"], {"a": 1}), "attrs.a"),
    "edge more": (lambda d: first(d)["expected_graph"]["edges"].append("n => w"), "no such edge"),
    "edge less": (lambda d: first(d)["expected_graph"].update(edges=["w:0 -> r:0"]), "not in the file: n => r"),
    "unchanged": (set_in(["expected_graph"], "unchanged"), 'expected "unchanged", found "changed"'),
    "subgraph": (
        set_in(["expected_graph", "subgraphs"], {"f": {"graph_id": 1, "nodes": [], "edges": []}}),
        "not there",
    ),
    "graph id": (set_in(["expected_graph", "graph_id"], 2), "expected 2, found 1"),
    "road": (set_in(["var_manager_after", "trans_road", "w", 0, "node_type"], "Cast"), 'expected "Cast"'),
    "road left out": (set_in(["var_manager_after", "trans_road"], {}), "not in the file: w"),
    "road c0": (
        lambda d: first(d)["var_manager_after"]["trans_road"]["w"][0]["output"].pop("c0"),
        "its format carries C0 16",
    ),
    "marked": (set_in(["var_manager_after", "graphs_to_rebuild"], []), "graphs_to_rebuild"),
    "staged": (set_in(["var_manager_after", "staged_desc"], {}), "not in the file: 1"),
    "counted": (set_in(["var_manager_after", "change_times", "w"], 2), "expected 2, found 1"),
    "current": (set_in(["var_manager_after", "current_desc", "w", "format"], "ND"), 'expected "ND", found "NCHW"'),
    "unknown key of a case": (set_in(["more"], 1), "graph_cases[0].more"),
    "unknown key of a graph": (set_in(["expected_graph", "more"], 1), "expected_graph.more"),
    "unknown key of a manager": (set_in(["var_manager_after", "more"], 1), "var_manager_after.more"),
}


@pytest.mark.parametrize("which", list(WRONG))
def test_a_wrong_fact_is_found(which: str, document: Document, check: Callable[[Document], Report]) -> None:
    change, words = WRONG[which]
    change(document)
    report = check(document)
    assert not report.passed
    assert words in findings(report)


def test_a_kind_without_a_comparer_fails(
    document: Document, check: Callable[[Document], Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "COMPARERS", {"graph_cases": passes.COMPARERS["graph_cases"]})
    document["trans_var_data_cases"] = [{"id": "x", "basis": "b", "value": 1}]
    report = check(document)
    assert report.reasons == {"nothing compares trans_var_data_cases": 1}
    assert not report.passed


def test_a_kind_that_is_not_known_fails(document: Document, check: Callable[[Document], Report]) -> None:
    document["strange_cases"] = [{"id": "x", "value": 1}]
    report = check(document)
    assert "strange_cases[0].value" in findings(report)
    assert not report.passed


def test_a_case_that_is_not_understood_fails_alone(document: Document, check: Callable[[Document], Report]) -> None:
    document["graph_cases"][0]["expected_graph"] = "another"
    report = check(document)
    assert [(place, "not understood" in text) for place, text in report.differences] == [(("graph_cases", 0), True)]
    assert {place[1] for place, state in report.states.items() if state is State.UNKNOWN} == {0}


def test_each_row_of_the_page_of_differences_names_a_test_that_is_there() -> None:
    page = (REPOSITORY / "docs" / "differences.md").read_text()
    section = page.split("## Passes over graphs\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    assert len(rows) == 4
    for row in rows:
        path, name = row[-1].strip(" `").split("::")
        assert f"def {name}(" in (REPOSITORY / path).read_text()


def test_running_numbers_of_inserted_nodes_are_those_of_the_file(check: Callable[[Document], Report]) -> None:
    last = {**N5, "dtype": "float32"}
    road = [*ROAD, {"node_type": "Cast", "input": N5, "output": last}]
    expected_nodes = [
        node("w", "Variable", [], [last]),
        node("w_trans_7", "Cast", [last], [N5], _inserted_by_ge=True),
        node("w_trans_8", "TransData", [N5], [N4], _inserted_by_ge=True),
        node("r", "Relu", [N4], [N4]),
    ]
    known = manager(current_desc={"w": N4}, trans_road={"w": road}, changed_graph_id={"w": 1})
    case = {
        "id": "later",
        "passes": ["UpdateVariableFormats"],
        "expected_status": "SUCCESS",
        "input_graph": {
            "graph_id": 2,
            "edges": ["w:0 -> r:0"],
            "nodes": [node("w", "Variable", [], [N4]), node("r", "Relu", [N4], [N4])],
        },
        "expected_graph": {
            "graph_id": 2,
            "nodes": expected_nodes,
            "edges": ["w:0 -> w_trans_7:0", "w_trans_7:0 -> w_trans_8:0", "w_trans_8:0 -> r:0"],
        },
        "var_manager_before": known,
        "var_manager_after": known,
    }
    assert findings(check({"graph_cases": [case]})) == ""
