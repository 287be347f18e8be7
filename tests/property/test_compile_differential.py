"""Programs over shared variables give the numbers of plain numpy, whatever the passes fold, in any order of graphs."""

import random

from hypothesis import event, given, settings

from tests.helpers import compile_campaign as campaign
from tests.helpers.variable_programs import Program, programs


@settings(max_examples=30, deadline=None)
@given(programs())
def test_numbers_are_those_of_numpy(program: Program) -> None:
    event(f"{campaign.once(program, {})} roads")


@settings(max_examples=10, deadline=None)
@given(programs())
def test_nothing_is_folded_where_that_is_switched_off(program: Program) -> None:
    assert campaign.once(program, {"ge.exec.variable_acc": "False"}) == 0


@settings(max_examples=10, deadline=None)
@given(programs())
def test_a_session_that_was_stored_goes_on_elsewhere(program: Program) -> None:
    campaign.stored_and_restored(program)


@settings(max_examples=10, deadline=None)
@given(programs())
def test_a_second_start_finds_all_and_gives_the_same(program: Program) -> None:
    campaign.twice_from_one_cache(program)


def test_campaign() -> None:
    seed = random.SystemRandom().randrange(1, 2**32)
    print(f"seed {seed}")
    count = campaign.FULL_PROGRAMS // campaign.SHARE
    seen = campaign.run(count, seed)
    assert seen.programs >= count
    assert seen.roads.total() == seen.programs
