"""A share of the campaign that damages what says where external weights are."""

import random

from tests.helpers import weights_campaign as campaign


def test_campaign() -> None:
    seed = random.SystemRandom().randrange(1, 2**32)
    print(f"seed {seed}")
    assert campaign.run(campaign.FULL_EXAMPLES // 50, seed).examples == campaign.FULL_EXAMPLES // 50


def test_every_outcome_is_seen() -> None:
    seen = campaign.run(800, seed=1)
    assert {kind: set(found) for kind, found in seen.outcomes.items()} == {
        "records": {"found", "VariableError", "LoadError"},
        "options": {"read", "refused"},
        "exports": {"written", "refused"},
    }
    assert seen.outcomes["records"]["found"] >= 30
