"""A share of the campaign over damaged states, with a new seed each time."""

import pytest

from gevar.var import VarManager
from tests.helpers import var_campaign
from tests.helpers.var_states import full_manager, state_bytes


def test_campaign() -> None:
    seen = var_campaign.run(var_campaign.FULL_EXAMPLES // var_campaign.SHARE)
    assert seen.examples >= var_campaign.FULL_EXAMPLES // var_campaign.SHARE
    # the damage must be deep enough to be restored sometimes and refused for different reasons
    assert seen.restored > seen.examples / 20
    assert len(seen.refused) > 4


def test_seed_states_are_sound() -> None:
    states = var_campaign.seed_states()
    assert [var_campaign.outcome(data, VarManager(1)) for data in states] == [None] * len(states)


def test_a_seed_gives_the_same_campaign() -> None:
    first, second = (var_campaign.run(60, seed_number=7) for _ in range(2))
    assert first == second


def test_a_refusal_that_changes_something_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    data = state_bytes(full_manager())
    monkeypatch.setattr("gevar.var.var_serial.check_mergeable", lambda tables, incoming: None)
    vm = full_manager()
    vm.set_changed_graph_id("v", 9)
    with pytest.raises(AssertionError):
        assert var_campaign.outcome(data, vm) is not None
