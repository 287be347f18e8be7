"""A share of the campaign that loads models with external weights and holds them against the rules."""

import random

import pytest

from gevar.weights import value_bins
from tests.helpers import file_constant_campaign as campaign
from tests.helpers import file_constant_rules as rules


def test_campaign() -> None:
    seed = random.SystemRandom().randrange(1, 2**32)
    print(f"seed {seed}")
    assert campaign.run(campaign.FULL_EXAMPLES // 50, seed).outcomes.total() >= 300


def test_every_outcome_is_seen() -> None:
    seen = campaign.run(20, seed=1).outcomes
    assert set(seen) == {f"{kind} {end}" for kind in campaign.KINDS for end in ("loaded", "refused")}
    assert min(seen.values()) >= 5


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"b": [{"value_bin_id": "i", "value_bin_file": "1"}], "c": [{"value_bin_id": "i", "value_bin_file": "2"}]}',
        '{"b": [{"value_bin_id": "i"}, {"value_bin_file": "f"}, {"value_bin_id": "i", "value_bin_file": "f"}]}',
        '{"b": []}',
        "[]",
        "null",
        "1",
        '"b"',
        '{"b": {}}',
        '{"b": null}',
        '{"b": [[]]}',
        '{"b": [{"value_bin_id": null}]}',
        '{"b": [{"value_bin_file": ["f"]}]}',
        "{",
        "{} {}",
    ],
)
def test_the_option_is_read_as_the_rules_say(text: str) -> None:
    try:
        wanted = rules.ids_of(text)
    except rules.Refusal:
        with pytest.raises(ValueError, match=r"ge\.exec\.value_bins"):
            value_bins(text)
        return
    assert value_bins(text) == wanted
