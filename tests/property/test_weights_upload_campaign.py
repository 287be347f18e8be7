"""A share of the campaign that holds uploads against plain numpy, with faults of files, readers and callers."""

import random

from tests.helpers import upload_campaign as campaign


def test_campaign() -> None:
    seed = random.SystemRandom().randrange(1, 2**32)
    print(f"seed {seed}")
    assert campaign.run(campaign.FULL_UPLOADS // 50, seed).outcomes.total() == campaign.FULL_UPLOADS // 50


def test_every_outcome_is_seen() -> None:
    seen = campaign.run(200, seed=1).outcomes
    wanted = {"error": "LoadError", "end": "LoadError", "cancel": "StateError", "digest": "LoadError"}
    wanted |= {"progress": "Stopped", "reader": "RuntimeError"}
    assert {f"{fault}: {outcome}" for fault, outcome in wanted.items()} <= set(seen)
    assert seen["good"] >= 50
