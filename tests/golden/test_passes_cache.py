"""The comparers of rebuild control and model cache: small files that are right, and each fact of them made wrong."""

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.golden import runner
from tests.golden.facts import Report, place_text

ND = {"format": "ND", "dtype": "int16", "shape": [4, 4], "origin_format": "ND", "origin_shape": [4, 4]}
NHWC = {**ND, "format": "NHWC", "origin_format": "NHWC"}
REBUILD = {
    "id": "r",
    "graphs": {"1": ["a"], "2": ["a", "b"], "1b": ["c"]},
    "steps": [
        *(["add_graph", 1], ["add_graph", 2], ["permit", "a", True], ["set_changed", "a"], ["permit", "a", False]),
        *(["needs_rebuild", 1, True], ["needs_rebuild", 2, True], ["build_end", 1], ["needs_rebuild", 1, False]),
        *(["remove_graph", 2], ["needs_rebuild", 2, False], ["add_graph_as", 1, "1b"], ["add_resource", 1, "q"]),
        *(["set_changed", "q"], ["needs_rebuild", 1, True]),
    ],
}
CACHE = {
    "id": "c",
    "entry": {
        "before": {"v": ND, "u": ND},
        "after": {"v": NHWC, "u": NHWC},
        "staged": {"v": {**ND, "format": "NCHW"}},
        "changed": ["v", "u"],
        "road": {"v": [{"node_type": "TransData"}], "u": [{"node_type": "ReFormat", "input": ND, "output": "NHWC"}]},
    },
    "manager": {"v": ND, "u": ND},
    "matched": True,
    "refresh": [
        "RenewCurVarDesc(v, staged NCHW)",
        *("SetTransRoad(v)", "SetChangedGraphId(v, graph id of the root graph)", "SetStateChanged(v)"),
        *("SetTransRoad(u)", "SetChangedGraphId(u)", "SetStateChanged(u)", "RenewCurVarDesc(u, last output NHWC)"),
    ],
}
Check = Callable[[dict[str, Any]], Report]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    def run(document: dict[str, Any]) -> Report:
        (tmp_path / "cases.json").write_text(json.dumps(document))
        return runner.check_file(tmp_path / "cases.json")

    return run


@pytest.fixture
def document() -> dict[str, Any]:
    return copy.deepcopy({"rebuild_sequences": [REBUILD], "cache_match_cases": [CACHE]})


def set_in(document: Any, place: Sequence[str | int], value: object) -> None:
    for step in place[:-1]:
        document = document[step]
    document[place[-1]] = value


def test_right_cases_pass(document: dict[str, Any], check: Check) -> None:
    report = check(document)
    assert report.differences == []
    assert report.passed


SEQUENCE, ENTRY = ("rebuild_sequences", 0), ("cache_match_cases", 0)
WRONG = {
    "permit": ((*SEQUENCE, "steps", 2, 2), False),
    "rebuild": ((*SEQUENCE, "steps", 6, 2), False),
    "a name is missing": ((*SEQUENCE, "graphs", "1"), ["z"]),
    "a resource is missing": ((*SEQUENCE, "steps", 12, 2), "z"),
    "matched": ((*ENTRY, "matched"), False),
    "fails": ((*ENTRY, "matched"), "FAILED"),
    "another call": ((*ENTRY, "refresh", 1), "SetChangedGraphId(v)"),
    "another name": ((*ENTRY, "refresh", 4), "SetTransRoad(v)"),
    "another detail": ((*ENTRY, "refresh", 0), "RenewCurVarDesc(v, staged NHWC)"),
    "another graph": ((*ENTRY, "refresh", 2), "SetChangedGraphId(v, 3)"),
    "last output": ((*ENTRY, "refresh", 7), "RenewCurVarDesc(u, last output ND)"),
    "state of another": ((*ENTRY, "refresh", 3), "SetStateChanged(u)"),
    "fewer calls": ((*ENTRY, "refresh"), CACHE["refresh"][:-1]),  # type: ignore[index]
    "no call": ((*ENTRY, "refresh"), []),
    "another manager": ((*ENTRY, "manager", "v"), {**ND, "shape": [2, 8]}),
    "another size": ((*ENTRY, "manager", "v"), {**ND, "size": 1}),
    "no road": ((*ENTRY, "entry", "road"), {}),
    "no descriptions": ((*ENTRY, "entry", "var_desc_file"), None),
    "a number of a step": ((*SEQUENCE, "steps", 2, 2), 1),
}


@pytest.mark.parametrize("which", WRONG)
def test_a_wrong_fact_is_found(which: str, document: dict[str, Any], check: Check) -> None:
    place, value = WRONG[which]
    set_in(document, place, value)
    report = check(document)
    assert not report.passed
    assert report.differences
    assert all(place_text(found).startswith(place_text(place[:2])) for found, _ in report.differences)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ((*SEQUENCE, "steps", 0), ["compile_graph", 1]),
        ((*SEQUENCE, "more"), 1),
        ((*ENTRY, "entry", "more"), 1),
        ((*ENTRY, "more"), {"a": 1}),
        ((*ENTRY, "refresh", 1), "set the road of v"),
    ],
)
def test_words_that_are_not_known_fail(
    place: Sequence[str | int], value: object, document: dict[str, Any], check: Check
) -> None:
    set_in(document, place, value)
    report = check(document)
    assert not report.passed
    assert [text for text in runner.summary(report).split(", ") if text.startswith("0 unknown")] == []


@pytest.mark.parametrize(
    ("entry", "manager", "matched"),
    [
        ({"after": {"v": ND}}, {"v": ND}, True),
        ({"after": {"v": ND}}, {}, True),  # nothing is stored before, which is right for every session
        ({"before": {"w": ND}, "after": {"v": ND}}, {}, False),
        ({"before": {"v": {**ND, "c0": 16}}, "after": {"v": NHWC}}, {"v": ND}, False),
        ({"before": {"v": {**ND, "origin_dtype": "int8"}}, "after": {"v": NHWC}}, {"v": ND}, False),
        ({"before": {"v": {**ND, "weight_size": 3}}, "after": {"v": NHWC}}, {"v": {**ND, "weight_size": 3}}, True),
        ({"var_desc_file": None}, {"v": ND}, True),
    ],
)
def test_matching(entry: dict[str, Any], manager: dict[str, Any], matched: bool, check: Check) -> None:
    case = {"id": "c", "entry": entry, "manager": manager, "matched": matched, "refresh": []}
    assert check({"cache_match_cases": [case]}).passed
    assert not check({"cache_match_cases": [{**case, "matched": not matched}]}).passed
