"""The case by hand of every block on the page of differences."""

import pytest

from tests.golden.var.comparison import Verdict
from tests.golden.var.differences import differences
from tests.golden.var.edge_cases import EDGES
from tests.golden.var.values import UnknownForm
from tests.golden.var.verdicts import altered, judged


@pytest.mark.parametrize("name", EDGES)
def test_the_case_of_a_block_is_right_and_matches_it(name: str) -> None:
    findings = judged(EDGES[name])
    assert [finding.problems for finding in findings] == [[]] * len(findings)
    assert not any(finding.missed for finding in findings)
    assert name in {block.name for finding in findings for block in finding.matched}


def test_every_block_has_a_case_or_says_why_there_is_none() -> None:
    assert {block.name for block in differences() if not block.unseen} == EDGES.keys()


@pytest.mark.parametrize("name", EDGES)
def test_without_its_block_a_case_is_not_documented(name: str) -> None:
    """It fails, or the difference follows from another one before it."""
    blocks = [block for block in differences() if block.name != name]
    before, without = judged(EDGES[name]), judged(EDGES[name], blocks)
    changed = {new.verdict for old, new in zip(before, without, strict=True) if old.verdict is not new.verdict}
    assert changed <= {Verdict.WRONG, Verdict.FOLLOWS}
    assert changed


@pytest.mark.parametrize("name", EDGES)
def test_an_altered_result_of_a_case_fails(name: str) -> None:
    """Every result of the last two steps, also where gevar gives another one."""
    for index in range(max(0, len(EDGES[name]) - 2), len(EDGES[name])):
        for other in altered(EDGES[name][index]["result"]):
            steps = [*EDGES[name][:index], {**EDGES[name][index], "result": other}]
            try:
                finding = judged(steps)[-1]
            except UnknownForm:
                continue
            if finding.verdict is not Verdict.WRONG:  # the altered result is what gevar answers
                assert finding.verdict is Verdict.EQUAL, (index, other)
                assert finding.missed == ["GE's"]
