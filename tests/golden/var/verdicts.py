"""Verdicts on steps that are written by hand."""

from collections.abc import Sequence

from tests.golden.var.comparison import Comparison, Judgement
from tests.golden.var.differences import Difference, differences
from tests.golden.var.hand_made import Made


def judged(steps: Sequence[Made], blocks: Sequence[Difference] | None = None) -> list[Judgement]:
    """Return the verdict on each step, by the blocks of the page or by others."""
    comparison = Comparison(lambda index: b"", differences() if blocks is None else blocks)
    return [comparison.judge(one["op"], one["args"], one["result"]) for one in steps]


def altered(result: Made) -> list[Made]:
    """Results that are not this one: another value, a key less, a key more of those that results have."""
    others = [{**result, "value": 7}]
    for key, value in result.items():
        others.append({name: kept for name, kept in result.items() if name != key})
        other = 1 if value in (0, True, None) else None if isinstance(value, dict) else ["x"]
        others.append({**result, key: other})
    return others
