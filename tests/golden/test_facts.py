"""Counting and comparing facts."""

from pathlib import Path

import pytest

from tests.golden.facts import Json, Report, State, leaves, load_document, place_text


def compared(expected: Json, actual: Json, closed: frozenset[str] = frozenset()) -> Report:
    report = Report(expected)
    report.compare((), expected, actual, closed=closed)
    return report


def test_leaves() -> None:
    document = {"a": [1, [], {"b": None}], "c": {}, "d": "text", "e": {"f": {"g": True}}}
    assert [(place_text(place), value) for place, value in leaves(document)] == [
        ("a[0]", 1),
        ("a[1]", []),
        ("a[2].b", None),
        ("c", {}),
        ("d", "text"),
        ("e.f.g", True),
    ]
    assert list(leaves(5)) == [((), 5)]
    assert place_text(()) == "the document"


@pytest.mark.parametrize(
    "value", [1, "a", None, True, [], {}, [1, [2, []]], {"a": {"b": [{}]}}, [{"a": 1}, {"a": 2}], 0.5]
)
def test_equal_values_pass(value: Json) -> None:
    report = compared(value, value)
    assert report.passed
    assert report.count(State.COMPARED) == len(report.states) == len(list(leaves(value)))


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (1, 2),
        (1, True),
        (False, 0),
        (None, 0),
        ("1", 1),
        ([1], [1, 2]),
        ([1, 2], [1]),
        ([], [1]),
        ([1], []),
        ([], {}),
        ({}, []),
        ({"a": 1}, [1]),
        ("a", ["a"]),
        (None, {}),
        ({"a": [1]}, {"a": [2]}),
        ({"a": {}}, {"a": 3}),
    ],
)
def test_different_values_fail(expected: Json, actual: Json) -> None:
    report = compared(expected, actual)
    assert not report.passed
    assert len(report.differences) == 1
    assert report.count(State.UNKNOWN) == 0


def test_tuples_are_lists() -> None:
    assert compared([[1, 2]], [(1, 2)]).passed


def test_found_may_have_more_keys_unless_closed() -> None:
    expected, actual = {"types": {"a": 1}}, {"types": {"a": 1, "b": 2}}
    assert compared(expected, actual).passed
    report = compared(expected, actual, frozenset({"types"}))
    assert report.differences == [(("types",), "not in the file: b")]


def test_expected_key_that_is_not_found_stays_unknown() -> None:
    report = compared({"a": 1, "b": {"c": [1, 2]}}, {"a": 1})
    assert not report.passed
    assert report.differences == []
    assert report.count(State.UNKNOWN) == 2


def test_documentation_passes_and_what_is_left_out_fails() -> None:
    report = Report({"about": ["x", "y"], "truth": {"a": 1, "b": 2}})
    report.mark(("about",), ["x", "y"], State.DOCUMENTATION)
    assert not report.passed
    report.mark(("truth",), {"a": 1, "b": 2}, State.LEFT_OUT, "why")
    assert not report.passed
    assert report.reasons == {"why": 2}
    assert (report.count(State.DOCUMENTATION), report.count(State.LEFT_OUT)) == (2, 2)


def test_key_that_comes_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a": {"b": 1, "c": 2, "b": 3}}')
    with pytest.raises(ValueError, match="keys come twice in one object: b"):
        load_document(path)


def test_long_values_are_cut_in_the_text() -> None:
    report = compared("x" * 500, "y" * 500)
    assert len(report.differences[0][1]) < 200
