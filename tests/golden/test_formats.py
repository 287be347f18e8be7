"""The runner of format vectors, over the shared file and over small ones that are right or wrong."""

import copy
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.golden import formats, runner
from tests.golden.facts import Json, Report, State, leaves, load_document, place_text
from tests.golden.formats_differences import RULES, UNDEFINED_CASTS, rows_of_page
from tests.golden.formats_reference import to_plain, to_stored
from tests.helpers.shared import REPOSITORY, shared_path

Document = dict[str, Json]
NCHW, NHWC, HWCN = 0, 1, 16
C0_16 = 5 << 24


def data_case(**more: Json) -> Document:
    """NCHW to NC1HWC0 with everything that a file may state."""
    source = (np.arange(10) % 7 + 1).astype(np.float16).reshape(1, 5, 1, 2)
    result = to_stored(source, "NCHW", "NC1HWC0", 4)
    flat = result.reshape(-1)
    return {
        "id": "one",
        "checked": "reference",
        "src_format": "NCHW",
        "dst_format": "NC1HWC0",
        "src_format_int": NCHW,
        "dst_format_int": 3 << 24 | 3,
        "c0": 4,
        "groups": 1,
        "dtype": "float16",
        "dtype_int": 1,
        "src_shape": [1, 5, 1, 2],
        "dst_shape": [1, 2, 1, 2, 4],
        "src_period": 7,
        "dst_sha256": hashlib.sha256(result.tobytes()).hexdigest(),
        "dst_bytes": 32,
        "dst_data": flat.astype(int).tolist(),
        "dst_nonzero_count": 10,
        "dst_nonzero": [[int(index), int(flat[index])] for index in np.flatnonzero(flat)],
        "shape_inference": "ok",
        **more,
    }


def error_case(**more: Json) -> Document:
    return {
        "id": "wrong",
        "why": "C1 is not that",
        "src_format": "NCHW",
        "dst_format": "NC1HWC0",
        "src_format_int": NCHW,
        "dst_format_int": C0_16 | 3,
        "dtype": "float32",
        "src_shape": [1, 3, 2, 2],
        "dst_shape": [1, 2, 2, 2, 16],
        "c0": 16,
        "status": 145021,
        "dst_bytes": 0,
        **more,
    }


def shape_case(**more: Json) -> Document:
    return {
        "id": "shape",
        "note": "",
        "src_format": "NCHW",
        "dst_format": "NC1HWC0",
        "src_format_int": NCHW,
        "dst_format_int": 3,
        "dtype": "int8",
        "src_shape": [1, 33, 2, 2],
        "status": 0,
        "dst_shape": [1, 2, 2, 2, 32],
        **more,
    }


def cast_case(**more: Json) -> Document:
    return {
        "id": "cast",
        "src_dtype": "float32",
        "dst_dtype": "int32",
        "src_dtype_int": 0,
        "dst_dtype_int": 3,
        "src_raw": [0x3FC00000, 0xBFC00000],
        "dst_raw": [1, -1],
        "checked": "reference",
        **more,
    }


def document(**more: Json) -> Document:
    return {
        "title": "made by a test",
        "conventions": {"byte_order": "little-endian"},
        "registered_pairs": [["NCHW", "NHWC"], ["ND", "FRACTAL_Z"]],
        "data_cases": [data_case()],
        "error_cases": [error_case()],
        "shape_cases": [shape_case()],
        "cast_cases": [cast_case()],
        **more,
    }


@pytest.fixture
def check(tmp_path: Path) -> Callable[[Json], Report]:
    def run(found: Json) -> Report:
        path = tmp_path / "vectors.json"
        path.write_text(json.dumps(found))
        return runner.check_file(path)

    return run


def findings(report: Report) -> str:
    unknown = [place_text(place) for place, state in report.states.items() if state is State.UNKNOWN]
    return "\n".join([f"{place_text(place)}: {text}" for place, text in report.differences] + unknown)


# --- the shared file --------------------------------------------------------------------------------------------------


def test_shared_vectors(capsys: pytest.CaptureFixture[str]) -> None:
    path = shared_path("golden/formats.json")
    assert runner.main([str(path)]) == 0
    assert "0 not compared, 0 unknown or unreached, 0 differences" in capsys.readouterr().out
    report = runner.check_file(path)
    told = {place[-1] for place, state in report.states.items() if state is State.DOCUMENTATION and len(place) == 3}
    assert told == {"id", "checked", "why", "note", *load_document(path)["conventions"]["status"]}
    assert not report.accepted


INPUTS = ("src_shape", "src_raw", "src_period", "src_format_int", "dst_format_int")
"""Numbers that may change without another result."""


def test_every_changed_fact_of_the_shared_vectors_is_found() -> None:
    path = shared_path("golden/formats.json")
    found = load_document(path)
    right = runner.check_file(path)
    told = [place for place, state in right.states.items() if state is State.COMPARED and place[2] not in INPUTS]
    picked = [place for place in told if place[0] != "error_cases" or place[2] != "dst_shape"]
    picked = picked[:: max(1, len(picked) // 400)]
    changed = copy.deepcopy(found)
    for place in picked:
        holder = changed
        for step in place[:-1]:
            holder = holder[step]
        value = holder[place[-1]]
        holder[place[-1]] = value + 1 if isinstance(value, int | float) else "other"
    wrong = Report(changed)
    formats.check(changed, path.parent, wrong)
    cases = {place[:2] for place, _ in wrong.differences}
    cases |= {place[:2] for place, state in wrong.states.items() if state is State.UNKNOWN}
    assert {place[:2] for place in picked} <= cases


# --- own files --------------------------------------------------------------------------------------------------------


def test_right_vectors_pass(check: Callable[[Json], Report]) -> None:
    report = check(document())
    assert findings(report) == ""
    assert report.passed
    assert report.count(State.DOCUMENTATION) == 10


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("data_cases", "dst_sha256", "0" * 64),
        ("data_cases", "dst_bytes", 33),
        ("data_cases", "dst_data", [0] * 16),
        ("data_cases", "dst_nonzero_count", 9),
        ("data_cases", "dst_nonzero", [[0, 1]]),
        ("data_cases", "shape_inference", "status 145020"),
        ("data_cases", "src_period", 6),
        ("data_cases", "dst_shape", [1, 2, 1, 2, 8]),
        ("data_cases", "dtype_int", 0),
        ("data_cases", "c0", 8),
        ("data_cases", "groups", 2),
        ("data_cases", "src_format", "NHWC"),
        ("data_cases", "dtype", "float17"),
        ("error_cases", "status", 145022),
        ("error_cases", "dst_bytes", 16),
        ("error_cases", "dst_shape", [1, 1, 2, 2, 16]),
        ("error_cases", "c0", None),
        ("shape_cases", "status", 145021),
        ("shape_cases", "dst_shape", [1, 3, 2, 2, 16]),
        ("shape_cases", "dst_shape", None),
        ("shape_cases", "dst_format", "NHWC"),
        ("cast_cases", "dst_raw", [1, 0]),
        ("cast_cases", "dst_raw", [1]),
        ("cast_cases", "dst_dtype_int", 4),
        ("cast_cases", "dst_dtype", "bool"),
        ("registered_pairs", 1, "NCHW"),
    ],
)
def test_a_wrong_fact_fails(check: Callable[[Json], Report], kind: str, key: str | int, value: Json) -> None:
    found = document()
    found[kind][0][key] = value
    report = check(found)
    assert not report.passed
    assert all(place[:2] == (kind, 0) for place, _ in report.differences)
    assert report.differences


@pytest.mark.parametrize("kind", ["data_cases", "error_cases", "shape_cases", "cast_cases"])
def test_an_unknown_key_of_a_case_fails(check: Callable[[Json], Report], kind: str) -> None:
    found = document()
    found[kind][0]["surprise"] = {"a": [1]}
    report = check(found)
    assert not report.passed
    assert findings(report) == f"{kind}[0].surprise.a[0]"


@pytest.mark.parametrize("key", ["surprise", "road_cases"])
def test_an_unknown_key_of_the_file_fails(check: Callable[[Json], Report], key: str) -> None:
    report = check(document(**{key: [{"a": 1}]}))
    assert not report.passed
    assert findings(report) == f"{key}[0].a"


def test_an_unknown_convention_fails(check: Callable[[Json], Report]) -> None:
    assert not check(document(conventions={"padding": "ones"})).passed


@pytest.mark.parametrize("kind", ["data_cases", "error_cases", "shape_cases", "cast_cases"])
def test_a_case_without_its_numbers_fails(check: Callable[[Json], Report], kind: str) -> None:
    report = check(document(**{kind: [{"id": "half"}]}))
    assert not report.passed
    assert "KeyError" in findings(report)


def test_a_pair_that_there_is_not_fails(check: Callable[[Json], Report]) -> None:
    report = check(document(registered_pairs=[["NC1HWC0", "FRACTAL_Z"]]))
    assert [place for place, _ in report.differences] == [("registered_pairs", 0)]


@pytest.mark.parametrize("text", ['{"data_cases": 1}', '{"cases": []}', "[1]"])
def test_another_structure_is_not_taken(text: str) -> None:
    assert not formats.matches(json.loads(text))


def test_every_pattern_of_float16_by_its_digest(check: Callable[[Json], Report]) -> None:
    digest = hashlib.sha256(np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32).tobytes()).hexdigest()
    case = cast_case(
        src_dtype="float16", dst_dtype="float32", src_dtype_int=1, dst_dtype_int=0, src=formats.ALL_FLOAT16
    )
    del case["src_raw"], case["dst_raw"]
    report = check(document(cast_cases=[{**case, "dst_sha256": digest}]))
    assert [place[-1] for place, _ in report.differences] == ["dst_sha256"]  # numpy keeps infinity, GE does not
    report = check(document(cast_cases=[{**case, "src": "every pattern", "dst_sha256": digest}]))
    assert ("cast_cases", 0, "src") in [place for place, state in report.states.items() if state is State.UNKNOWN]


# --- differences ------------------------------------------------------------------------------------------------------


def test_rows_of_the_page_are_those_of_the_runner() -> None:
    assert sorted(rows_of_page()) == sorted([*RULES, UNDEFINED_CASTS])


def test_tests_that_the_rows_name_are_there() -> None:
    section = (REPOSITORY / "docs" / "differences.md").read_text(encoding="utf-8").split("## Formats and casts\n")[1]
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", section.split("\n## ")[0])
    assert len(named) == len(rows_of_page())
    for path, name in named:
        assert re.search(rf"^def {name}\(", (REPOSITORY / path).read_text(encoding="utf-8"), re.MULTILINE), name


DIFFERENT = {
    "added-pairs": error_case(
        src_format="HWCN",
        src_format_int=HWCN,
        src_shape=[2, 2, 3, 1],
        dst_shape=[1, 1, 2, 2, 16],
        status=145020,
    ),
    "grouped-filters": error_case(
        src_format="NHWC",
        src_format_int=NHWC,
        dst_format="FRACTAL_Z",
        dst_format_int=C0_16 | 2 << 8 | 4,
        src_shape=[34, 1, 1, 16],
        dst_shape=[1, 3, 16, 16],
        status=0,
        dst_bytes=3072,
    ),
    "uneven-groups": error_case(
        src_format="HWCN",
        src_format_int=HWCN,
        dst_format="FRACTAL_Z",
        dst_format_int=C0_16 | 4 << 8 | 4,
        src_shape=[1, 1, 2, 6],
        dst_shape=[1, 1, 16, 16],
        status=0,
        dst_bytes=1024,
    ),
    "bf16-diagonal": error_case(
        src_format="HWCN",
        src_format_int=HWCN,
        dst_format="C1HWNCoC0",
        dst_format_int=3 << 24 | 25,
        c0=4,
        dtype="bfloat16",
        src_shape=[1, 1, 5, 2],
        dst_shape=[2, 1, 1, 2, 4, 4],
        status=145022,
    ),
    "missing-shape": error_case(
        src_format="NHWC",
        src_format_int=NHWC,
        dst_format="FRACTAL_Z",
        dst_format_int=C0_16 | 4,
        src_shape=[1, 2, 2, 3],
        dst_shape=[],
        status=245000,
    ),
    "empty-c04": error_case(
        src_format="FRACTAL_Z_C04",
        src_format_int=13,
        dst_format="HWCN",
        dst_format_int=HWCN,
        dtype="float16",
        c0=None,
        src_shape=[1, 0, 16, 16],
        dst_shape=[2, 2, 3, 0],
        status=545000,
    ),
}


@pytest.mark.parametrize("row", DIFFERENT)
def test_a_difference_of_the_page_is_accepted_and_counted(check: Callable[[Json], Report], row: str) -> None:
    report = check(document(error_cases=[DIFFERENT[row]]))
    assert findings(report) == ""
    assert report.accepted[row] == 1


@pytest.mark.parametrize("row", DIFFERENT)
def test_a_difference_that_the_page_does_not_have_fails(
    check: Callable[[Json], Report], row: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.golden.formats_differences.rows_of_page", list)
    assert not check(document(error_cases=[DIFFERENT[row]])).passed


def test_grouped_filters_that_ge_lays_out_without_groups(check: Callable[[Json], Report]) -> None:
    ours = {**DIFFERENT["grouped-filters"], "dst_shape": [2, 3, 16, 16], "status": 145021, "dst_bytes": 0}
    back = {**ours, "src_shape": [2, 3, 16, 16], "dst_shape": [34, 1, 1, 16]}
    for key in ("format", "format_int"):
        back[f"src_{key}"], back[f"dst_{key}"] = ours[f"dst_{key}"], ours[f"src_{key}"]
    inferred = shape_case(**{key: ours[key] for key in ours if key.startswith(("src", "dst_format"))})
    inferred |= {"dst_shape": [1, 3, 16, 16]}
    report = check(document(error_cases=[ours, back], shape_cases=[inferred]))
    assert findings(report) == ""
    assert report.accepted["grouped-filters"] == 3


def test_data_of_an_accepted_difference_is_held_against_the_formulas(
    check: Callable[[Json], Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.golden.formats.to_stored", lambda source, *_: np.ones((1, 1, 2, 2, 16), source.dtype))
    report = check(document(error_cases=[DIFFERENT["added-pairs"]]))
    assert "the data is not what the formulas give" in findings(report)


def test_casts_that_ge_leaves_open(check: Callable[[Json], Report]) -> None:
    beyond = cast_case(src_raw=[0x4F000000, 0x7FC00000, 0x3F800000], dst_raw=[-(2**31), -(2**31), 1])
    report = check(document(cast_cases=[beyond]))
    assert findings(report) == ""
    assert report.accepted[UNDEFINED_CASTS] == 2
    wrong = cast_case(src_raw=[0x4EFFFFFF], dst_raw=[-(2**31)])
    assert not check(document(cast_cases=[wrong])).passed


def test_formulas_there_and_back() -> None:
    source = np.arange(2 * 3 * 5 * 7, dtype=np.int32).reshape(2, 3, 5, 7)
    for stored in ("NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ", "FRACTAL_ZZ", "HWCN"):
        there = to_stored(source, "NCHW", stored, 4)
        assert (to_plain(there, "NCHW", source.shape, stored, 4) == source).all()
        assert np.count_nonzero(there) == source.size - 1


def test_leaves_of_a_case_are_all_compared(check: Callable[[Json], Report]) -> None:
    report = check(document())
    compared = {place for place, state in report.states.items() if state is State.COMPARED}
    for kind in formats.CASES:
        entry = document()[kind][0]
        plain = {key: value for key, value in entry.items() if key not in formats.TEXT}
        assert {place for place, _ in leaves(plain, (kind, 0))} <= compared
