"""A share of the campaign over damaged OM files, with a new seed each time."""

from tests.helpers import om_campaign
from tests.helpers.om_mutations import outcome


def test_campaign() -> None:
    seen = om_campaign.run(om_campaign.FULL_EXAMPLES // om_campaign.SHARE)
    assert seen.examples >= om_campaign.FULL_EXAMPLES // om_campaign.SHARE
    # the damage must be deep enough to be read sometimes and refused for different reasons
    assert seen.read > seen.examples / 50
    assert len(seen.refused) > 5


def test_seed_files_are_sound() -> None:
    files = om_campaign.seed_files()
    assert len(files) >= 8
    assert [outcome(data, kind) for data, kind in files] == [None] * len(files)


def test_a_seed_gives_the_same_campaign() -> None:
    first, second = (om_campaign.run(60, seed_number=7) for _ in range(2))
    assert first == second
