"""The harness of the benchmarks: alternation, promises, the exit code and what is written. Nothing is timed."""

import json
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import page_cache, rows
from benchmarks.harness import Promise, Row, alternate, scratch_folder


def row(name: str, figure: float, faults: tuple[str, ...] = ()) -> Row:
    return Row(
        name=name,
        backend="host",
        unit="GB/s",
        subject=(1.0, 5.0, 2.0),
        reference=(4.0, 4.0, 4.0),
        figure=figure,
        figure_unit="% of it",
        promise=Promise("at least 80 %", 80, at_most=False),
        faults=faults,
    )


def test_both_are_measured_in_turn_and_the_first_round_is_dropped() -> None:
    order: list[str] = []

    def measure(name: str) -> float:
        order.append(name)
        return float(len(order))

    subject, reference = alternate(lambda: measure("s"), lambda: measure("r"), 5)
    assert order == ["r", "s", "s", "r", "r", "s", "s", "r", "r", "s", "s", "r"]
    assert subject == (3, 6, 7, 10, 11)
    assert reference == (4, 5, 8, 9, 12)


def test_fewer_than_five_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 5"):
        alternate(lambda: 0, lambda: 0, 4)


@pytest.mark.parametrize(
    ("at_most", "figure", "kept"), [(True, 80, True), (True, 81, False), (False, 80, True), (False, 79, False)]
)
def test_promises(at_most: bool, figure: float, kept: bool) -> None:
    assert Promise("", 80, at_most=at_most).holds(figure) is kept


def test_a_fault_breaks_a_promise_whatever_the_figure() -> None:
    assert row("good", 90).kept
    assert not row("faulty", 90, ("3 pages were read",)).kept


@pytest.mark.parametrize(("figure", "check", "code"), [(90, True, 0), (70, True, 1), (70, False, 0)])
def test_the_exit_code_tells_of_missed_promises(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    figure: float,
    check: bool,
    code: int,
) -> None:
    monkeypatch.setattr(command, "measure", lambda name: row(name, figure if name == "upload-fresh" else 95))
    path = tmp_path / "rows.json"
    arguments = ["--json", str(path), "upload-touched", "upload-fresh", *(["--check"] if check else [])]
    assert command.main(arguments) == code
    output, errors = capsys.readouterr()
    assert ("MISSED" in output) is (figure < 80)
    assert errors == ("missed: upload-fresh: at least 80 %, got 70.0 % of it\n" if code else "")
    report = json.loads(path.read_text())
    assert {"commit", "cpu_count", "python", "kernel"} <= set(report)
    assert [(entry["name"], entry["backend"], entry["kept"]) for entry in report["rows"]] == [
        ("upload-touched", "host", True),
        ("upload-fresh", "host", figure >= 80),
    ]
    assert report["rows"][0]["subject_median"] == 2.0


def test_a_row_is_measured_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BENCHMARKS", {})  # which another process does not see
    found = rows.measure("import-time")
    assert (found.name, found.backend, len(found.subject)) == ("import-time", "none", len(found.reference))


def test_an_unknown_row_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(["import-time", "nonsense"])
    assert caught.value.code == 2
    assert "no row named nonsense" in capsys.readouterr().err


def test_every_row_has_a_function() -> None:
    for module, function in rows.BENCHMARKS.values():
        source = Path(*module.split(".")).with_suffix(".py")
        assert f"def {function}() -> Row" in (Path(command.__file__).parents[1] / source).read_text()


def test_the_page_cache_shows_what_was_read() -> None:
    with scratch_folder() as folder:
        path = folder / "sparse"
        with path.open("wb") as file:
            file.truncate(256 << 20)
        page_cache.drop(path)
        if not page_cache.shows_reads(path, 128 << 20):
            pytest.skip("this file system does not keep holes in the page cache")
        assert page_cache.resident_pages(path, 0, 256 << 20) == 0
        with path.open("rb") as file:
            file.seek(128 << 20)
            assert file.read(1) == b"\0"
        assert page_cache.resident_pages(path, 128 << 20, (128 << 20) + page_cache.PAGE_BYTES) == 1
        assert page_cache.resident_pages(path, 0, 64 << 20) == 0
