"""Made-up sequences of calls: a share of the campaign with a new seed, and a few that hypothesis chooses."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.golden.var.comparison import Verdict
from tests.golden.var.correct_use import TOPICS, correct_sequence
from tests.golden.var.edge_cases import EDGES
from tests.golden.var.operations import OPERATIONS
from tests.golden.var.rough_use import rough_sequence
from tests.golden.var.sequence_campaign import (
    FULL_SEQUENCES,
    SHARE,
    Disagreement,
    Seen,
    compare,
    made_up,
    quiet,
    run,
)
from tests.golden.var.writing import Seeded


def test_campaign() -> None:
    seen = run(FULL_SEQUENCES // SHARE)
    assert seen.sequences == FULL_SEQUENCES // SHARE
    assert set(seen.correct) == {Verdict.EQUAL}
    assert seen.correct.total() > 20 * seen.sequences
    # rough use must go far enough to meet the differences, and not so far that nothing is left to compare
    assert len(seen.blocks) > 20
    assert seen.rough[Verdict.EQUAL] > seen.rough.total() / 2
    assert seen.rough[Verdict.FOLLOWS] < seen.rough.total() / 6


class Drawn:
    """Decisions that hypothesis takes, so that it finds the smallest sequence."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def below(self, count: int) -> int:
        return self._data.draw(st.integers(0, count - 1))


@given(st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_hypothesis_chooses(data: st.DataObject) -> None:
    with quiet():
        compare(rough_sequence(Drawn(data), 12), Seen())


def test_a_seed_gives_the_same_sequence() -> None:
    assert made_up(Seeded(5)) == made_up(Seeded(5))
    assert run(3, seed=11) == run(3, seed=11)


@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_of_correct_use_is_long_and_varied(topic: str) -> None:
    steps = correct_sequence(Seeded(1), topic, 150)["steps"]
    assert len({step["op"] for step in steps}) > 15
    assert sum(step["result"].get("status", 0) == 0 for step in steps) > len(steps) * 0.9
    with quiet():
        compare(correct_sequence(Seeded(2), topic, 60), Seen())


def test_rough_use_has_every_operation_right_and_wrong() -> None:
    statuses: dict[str, set[bool]] = {}
    for seed in range(40):
        for step in rough_sequence(Seeded(seed), 80)["steps"]:
            statuses.setdefault(step["op"], set()).add(step["result"].get("status", 0) == 0)
    assert statuses.keys() == OPERATIONS.keys()
    both = {op for op, seen in statuses.items() if seen == {True, False}}
    assert both > {"AssignVarMem", "RestoreVarMem", "SetVarAddr", "GetVarAddr", "RenewCurVarDesc", "GetCurVarDesc"}
    assert both > {"VarManagerToSerial", "VarManagerToDeserial", "GetAllVariables", "FreeVarMemory", "SetTransRoad"}


def test_a_wrong_answer_is_found_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gevar.var.VarManager.get_var_malloc_mem_size", lambda *_: 5)
    with pytest.raises(Disagreement, match=r"sequence of seed \d+: .*GetVarMallocMemSize.*expected"):
        run(20, seed=3)


def test_a_wrong_rule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """GE's model and the careful one must both be right."""
    monkeypatch.setattr("tests.golden.var.careful_tables.CarefulManager.get_var_malloc_mem_size", lambda *_: 5)
    with pytest.raises(Disagreement):
        run(20, seed=3)


def test_correct_use_that_differs_is_found() -> None:
    sequence = {"name": "a variable that grows", "topic": "plain", "steps": EDGES["edge 8.2"]}
    with quiet(), pytest.raises(Disagreement, match="correct use, and yet"):
        compare(sequence, Seen())
