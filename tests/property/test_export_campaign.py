"""A share of the campaign that kills one of two writers of external weights."""

import random

from tests.helpers import export_campaign as campaign


def test_campaign() -> None:
    seed = random.SystemRandom().randrange(1, 2**32)
    print(f"seed {seed}")
    seen = campaign.run(campaign.FULL_KILLS // 25, seed)
    assert seen.kills.total() == campaign.FULL_KILLS // 25


def test_killed_writers_are_seen() -> None:
    seen = campaign.run(8, seed_number=1)
    assert set(seen.kills) == {"line", "interrupt", "seconds"}
    assert seen.survived < 8
    assert seen.models >= 8
    assert seen.regions >= 8
