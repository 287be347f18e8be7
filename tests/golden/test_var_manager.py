"""The runner of recorded sequences of variable managers: over the shared files, and over small ones made by hand."""

import copy
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.golden import runner, var_manager
from tests.golden.facts import Report, State
from tests.golden.var.comparison import Verdict
from tests.golden.var.edge_cases import EDGES, LARGE, SMALL
from tests.golden.var.hand_made import (
    HOLDER_ADDR,
    Made,
    assign,
    begun,
    constant,
    device_malloc,
    document,
    found,
    holder,
    piece,
    resolve,
    restore,
    started,
    step,
    tensor,
)
from tests.golden.var.sources import SPACES
from tests.golden.var.verdicts import altered, judged
from tests.golden.var.writing import Seeded, Writer
from tests.helpers.shared import shared_path


def checked(*sequences: Sequence[Made], **more: Any) -> Report:
    """The report on a file of these sequences."""
    made = {**document(*sequences), **more}
    report = Report(made)
    assert var_manager.matches(made)
    var_manager.check(made, Path(), report)
    return report


WORKED = begun(
    assign("a", tensor(24)),
    found("a", tensor(24), 0),
    assign("b", tensor(600)),
    found("b", tensor(600), 1536),
    assign("c1", tensor(24), op=constant()),
    found("c1", tensor(24), 3584),
    assign("c2", tensor(24), op=constant()),
    found("c2", tensor(24), 3584),
    assign("p", tensor(24), op=holder()),
    found("p", tensor(24), 5120),
    step("GetVarMemSize", {"value": 5120}),
    step("GetVarConstPlaceHolderMemSize", {"value": 1536}),
    step("IsVarAddr", {"value": True}, addr=0),
    step("IsVarAddr", {"value": False}, addr=8),
    step("GetVarMemType", {"value": 2}, addr=1536),
    step("GetVarMemType", {"value": 256}, addr=1),
    resolve(8, {"addr": piece("device", 0, 520), "events": [device_malloc(0)]}),
    resolve(23, {"addr": piece("device", 0, 535)}),
    resolve(24, {"addr": None}),
    resolve(5120, {"addr": {"space": "absolute", "off": HOLDER_ADDR}}),
    resolve(1536, {"addr": piece("device", 1), "events": [device_malloc(1, 2048)]}),
    step("GetVarMallocMemSize", {"value": 3584}),
    step("GetVarMallocSize", {"status": 0, "size": 1536}, tensor=tensor(24)),
)
"""The first worked example of the rules: sizes, sharing, resolution."""
FORMS = begun(
    assign("v", tensor(100, "NCHW")),
    assign("v", tensor(100, "ND")),
    found("v", tensor(100, "NCHW"), 0),
    found("v", tensor(100, "ND"), 0),
    assign("u", tensor(100, "NCHW")),
    assign("u", tensor(200, "ND")),
    found("u", tensor(100, "NCHW"), 1536),
    found("u", tensor(200, "ND"), 3072),
    step("RenewCurVarDesc", var="u", tensor=tensor(fmt="NHWC")),
    found("u", tensor(200, "ND"), None),
    found("u", tensor(200, "NHWC"), 3072),
    step("IsVarExist", {"value": True}, var="u"),
    step("IsVarExist", {"value": False}, var="u", tensor=tensor(fmt="ND")),
)
"""Other forms of a variable."""
REGION = begun(
    step("SetExternalVar", size=5120),
    assign("a", tensor(24)),
    assign("b", tensor(2000)),
    resolve(0, {"addr": {"space": "external", "off": 0}}),
    resolve(5119, {"addr": {"space": "external", "off": 5119}}),
    resolve(5120, {"addr": None}),
    step("SetExternalVar", size=None),
    resolve(0, {"addr": piece("device", 0), "events": [device_malloc(0)]}),
)
"""External memory of exactly the assigned bytes."""
RESTORED = begun(
    step("SetVarMemMaxSize", {}, value=20480),
    restore("v", tensor(64), 2048),
    found("v", tensor(64), 2048),
    restore("u", tensor(64), 20480, {"status": 1343225857}),
    restore("u", tensor(64), -1, {"status": 1343225857}),
    restore("v", tensor(64, "NCHW"), 9999),
    found("v", tensor(64, "NCHW"), 2048),
    restore("v", tensor(65, "NHWC"), 2048, {"status": 1343225857}),
    step("GetVarMemSize", {"value": 0}),
)
SOUND = {"worked": WORKED, "forms": FORMS, "region": REGION, "restored": RESTORED}


@pytest.mark.parametrize("name", SOUND)
def test_examples_of_the_rules_are_equal_in_every_step(name: str) -> None:
    report = checked(SOUND[name])
    assert report.passed, report.differences
    assert report.steps == {Verdict.EQUAL.value: len(SOUND[name])}
    assert not report.accepted


@pytest.mark.parametrize("name", SOUND)
def test_an_altered_result_fails(name: str) -> None:
    for index, one in enumerate(SOUND[name]):
        for other in altered(one["result"]):
            steps = copy.deepcopy(SOUND[name][: index + 1])
            steps[index]["result"] = other
            report = checked(steps)
            assert not report.passed, (index, one["op"], other)
            assert [place for place, _ in report.differences] == [("sequences", 0, "steps", index)]


def test_shared_file_of_correct_use_agrees_in_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    report = runner.check_file(shared_path("golden/var_manager_valid.json"))
    assert report.passed, report.differences[:5]
    assert set(report.steps) == {Verdict.EQUAL.value}
    assert report.steps.total() > 2000
    assert not report.accepted
    runner.print_findings(report)
    assert f"{report.steps.total()} equal to GE" in capsys.readouterr().out


def test_shared_file_of_every_topic_agrees_but_where_the_page_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    report = runner.check_file(shared_path("golden/var_manager.json"))
    assert report.passed, report.differences[:5]
    follows = report.steps[Verdict.FOLLOWS.value]
    assert 0 < follows < report.steps.total() / 10
    assert report.steps[Verdict.DOCUMENTED.value] < report.steps.total() / 10
    assert report.count(State.LEFT_OUT) == report.count(State.UNKNOWN) == 0
    runner.print_findings(report)
    shown = capsys.readouterr().out
    assert f"{follows} differ as follows from a documented difference" in shown
    assert "differs as documented, edge 8.1: " in shown


@pytest.mark.parametrize("name", EDGES)
def test_the_verdict_on_a_case_is_counted(name: str) -> None:
    report = checked(EDGES[name])
    assert report.passed
    assert report.steps.total() == len(EDGES[name])
    expected = Counter(finding.verdict.value for finding in judged(EDGES[name]))
    assert report.steps == expected


FIRST = {"addr": piece("device", 0, 612), "events": [device_malloc(0, 2048)]}
GROWN_BY = step("GetVarMallocMemSize", {"value": 2048})


def test_a_moved_block_is_the_same_block() -> None:
    steps = begun(restore("v", SMALL, 512), assign("u", LARGE), found("u", LARGE, 0), resolve(100, FIRST), GROWN_BY)
    verdicts = [finding.verdict for finding in judged(steps)]
    assert verdicts[-3:] == [Verdict.MOVED, Verdict.EQUAL, Verdict.EQUAL]


def test_a_moved_block_whose_inner_offset_is_wrong_fails() -> None:
    steps = begun(restore("v", SMALL, 512), assign("u", LARGE), found("u", LARGE, 1))
    assert judged(steps)[-1].verdict is Verdict.WRONG


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (step("GetVarMemSize", {"value": 0}) | {"op": "Resize"}, "Resize is no operation of the schema"),
        (step("GetVarMemSize", {"value": 0}, device_id=0), "GetVarMemSize has unknown keys: device_id"),
        (assign("v", {**SMALL, "pad": 1}), "a tensor has unknown keys: pad"),
        (assign("v", SMALL, op={"name": "v", "type": "Variable", "id": 1}), "an operator has unknown keys: id"),
        (assign("v", SMALL, op={"name": "v", "type": "Variable", "attrs": {"a": {"float": 1}}}), "unknown form of an"),
        (step("SaveBroadCastInfo", info={"var_name": "v", "rank": 1}), "a broadcast has unknown keys: rank"),
        (step("GetVarMemSize", {"value": 0}, handle="kept"), "no step before this one holds a manager as kept"),
        (step("VarManagerToDeserial", from_step=0), "step 0 has no message"),
        (step("VarManagerToDeserial", from_step=9), "step 9 has no message"),
        (step("CheckAndSetVarLoaded", {"value": False}, op=None), "CheckAndSetVarLoaded has no operator"),
        (step("Init", version=0), ""),
        (assign("v", {**SMALL, "dtype": "DT_WORD"}), "DT_WORD is no data type"),
        (assign("v", {**SMALL, "format": "NXYZ"}), "NXYZ is no format"),
        (
            step("VarDescInfoToSerial", {"status": 0, "bytes_b64": "CgA=", "message": {"a": 1}}),
            "bytes_b64 and message of a result are not one message",
        ),
        (
            step("VarDescInfoToSerial", {"status": 0, "bytes_b64": "/w==", "message": {}}),
            "VarDescInfoToSerial is not understood: DecodeError",
        ),
        (step("VarManagerToDeserial", bytes_b64="/w=="), "VarManagerToDeserial is not understood: DecodeError"),
    ],
)
def test_what_the_schema_does_not_know_fails(given: Made, words: str) -> None:
    report = checked(begun(given, step("GetVarMallocMemSize", {"value": 0})))
    if not words:
        assert report.passed
        return
    assert not report.passed
    assert words in report.differences[0][1]
    assert len(report.differences) == 1, "what comes after is not reached"
    assert report.count(State.UNKNOWN) > 0


@pytest.mark.parametrize("key", ["rows", "extra"])
def test_an_unknown_key_of_the_file_or_of_a_step_fails(key: str) -> None:
    assert checked(started()).passed
    assert not checked(started(), **{key: 1}).passed
    steps = started()
    steps[1] = {**steps[1], key: 1}
    assert not checked(steps).passed


def test_constants_and_enumerations_are_compared() -> None:
    constants = {"align": 512, "guard_per_variable": 1024, "logic_base_default": 32 << 30}
    enums = {"status": {"SUCCESS": 0, "FAILED": 4294967295}, "format": {"ND": 2}, "op_type": {"VARIABLE": "Variable"}}
    assert checked(started(), constants=constants, enums=enums).passed
    assert not checked(started(), constants={**constants, "align": 256}).passed
    assert not checked(started(), constants={"pages": 3}).passed
    assert not checked(started(), enums={"status": {"SUCCESS": 1}}).passed
    assert not checked(started(), enums={"status": {"NO_SUCH": 1}}).passed
    assert not checked(started(), enums={"pages": {"HUGE": 1}}).passed


@pytest.mark.parametrize("made", [None, [], {}, {"sequences": []}, {"sequences": [{"steps": [{"op": "Init"}]}]}])
def test_another_structure_is_another_schema(made: Any) -> None:
    assert not var_manager.matches(made)


def test_a_result_that_gevar_never_gives_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that no caller expects is an answer of its own."""

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("broken")

    monkeypatch.setattr("gevar.var.VarManager.is_var_addr", broken)
    finding = judged(begun(step("IsVarAddr", {"value": False}, addr=0)))[-1]
    assert finding.verdict is Verdict.WRONG
    assert "ZeroDivisionError" in finding.problems[0]


def test_a_rule_that_gevar_breaks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong answer of gevar fails, whether GE's answer is right or a block states another one."""
    monkeypatch.setattr("gevar.var.VarManager.get_var_malloc_size", lambda *_: 5)
    assert judged(WORKED)[-1].verdict is Verdict.WRONG
    assert judged(EDGES["edge 44.3"])[-1].verdict is Verdict.WRONG


def test_memory_of_pools_has_other_addresses_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages hold the addresses of whoever recorded them, also where another session reads them."""
    desc = tensor(40)
    reader: Made = {"session": 9}
    steps = begun(
        assign("h", desc, memory_type=129),
        assign("v", SMALL),
        assign("r", desc, memory_type=3),
        step("VarManagerToSerial"),
        step("VarManagerToDeserial", from_step=6, **reader),
        step("VarManagerToSerial", **reader),
        *(step("GetVarAddr", var=name, tensor=desc, **reader) for name in ("h", "r")),
        step("GetVarAddr", var="v", tensor=SMALL, **reader),
        step("VarManagerToSerial"),
    )
    with monkeypatch.context() as patch:
        for number, space in enumerate(SPACES, 32):
            patch.setitem(SPACES, space, number << 56)
        writer = Writer(Seeded(0))
        for one in steps:
            writer.do(one["op"], **one["args"])
    report = checked(writer.steps)
    assert report.passed, report.differences
    assert report.steps == {Verdict.EQUAL.value: 10, Verdict.FOLLOWS.value: 3}
    assert report.accepted == {"follows from edge 24.4": 3}
