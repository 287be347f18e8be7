"""A share of the campaign over device memory, with a new seed each time."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from gevar.memory.expandable_sleep import Sleep
from tests.helpers.memory_campaign import FULL_RUNS, SHARE, STEPS
from tests.helpers.memory_machine import GrowingMemory
from tests.helpers.session_machine import SessionMachine

_share = settings(max_examples=FULL_RUNS // SHARE, stateful_step_count=STEPS, deadline=None)

TestGrowingMemory = GrowingMemory.TestCase
TestGrowingMemory.settings = _share
TestSessionMachine = SessionMachine.TestCase
TestSessionMachine.settings = _share


@pytest.mark.parametrize("machine", [GrowingMemory, SessionMachine])
def test_lost_bytes_are_found_out(machine: type[RuleBasedStateMachine], monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine finds it when memory wakes without its bytes."""
    monkeypatch.setattr(Sleep, "restore", lambda sleep, device, blocks: None)
    some = settings(
        max_examples=200,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    found: type[RuleBasedStateMachine] = type("Found", (machine,), {})
    with pytest.raises(AssertionError):
        run_state_machine_as_test(found, settings=some)
