"""Exports of any model into a folder of any state, held against the rules; see `tests.helpers.export_models`."""

import random

from tests.helpers.export_models import FULL_EXPORTS, run


def test_exports_are_what_the_rules_say() -> None:
    """A fiftieth of the campaign."""
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    seen = run(FULL_EXPORTS // 50, seed)
    assert seen["in mode 1"]
    assert seen["in mode 2"]
    assert seen["without room"]
