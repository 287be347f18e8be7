"""Made-up sequences, as often as asked: gevar, GE's rules and the page of differences must fit in every step."""

import logging
import random
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.golden.var.comparison import Comparison, Verdict
from tests.golden.var.correct_use import TOPICS, correct_sequence
from tests.golden.var.differences import differences
from tests.golden.var.rough_use import rough_sequence
from tests.golden.var.writing import Choice, Seeded, Step

FULL_SEQUENCES = 5_000
SHARE = 50
"""The tests run one part in so many of the full number."""
STEPS = (30, 60, 120)


class Disagreement(AssertionError):
    """A step that is not GE's, and that the page of differences does not account for."""


@dataclass
class Seen:
    """What became of the steps of rough and of correct use, and the blocks of the page that were met."""

    sequences: int = 0
    rough: Counter[Verdict] = field(default_factory=Counter)
    correct: Counter[Verdict] = field(default_factory=Counter)
    blocks: set[str] = field(default_factory=set)


def made_up(choice: Choice) -> Step:
    """Return a sequence: as often of rough use as of correct use of any topic."""
    length = STEPS[choice.below(len(STEPS))]
    topic = choice.below(2 * len(TOPICS))
    return correct_sequence(choice, TOPICS[topic], length) if topic < len(TOPICS) else rough_sequence(choice, length)


def compare(sequence: Step, seen: Seen) -> None:
    """Hold gevar against a sequence.

    Raises
    ------
    Disagreement
        A step is wrong, or one of the models does not come to the answer; or a step of correct use is not GE's.
    """
    steps, is_rough = sequence["steps"], sequence["topic"] not in TOPICS
    counts = seen.rough if is_rough else seen.correct
    comparison = Comparison(lambda index: b64decode(steps[index]["result"]["bytes_b64"]), differences())
    for index, step in enumerate(steps):
        finding = comparison.judge(step["op"], step["args"], step["result"])
        what = f"{sequence['name']}, step {index}, {step['op']}({step['args']})"
        if finding.problems or finding.missed:
            raise Disagreement(f"{what}: {'; '.join(finding.problems)} {finding.missed}")
        if not is_rough and finding.verdict is not Verdict.EQUAL:
            raise Disagreement(f"{what}: correct use, and yet {finding.verdict.value}: {finding.matched}")
        counts[finding.verdict] += 1
        seen.blocks |= {block.name for block in finding.matched}
    seen.sequences += 1


@contextmanager
def quiet() -> Iterator[None]:
    """Keep what gevar has to say of rough use out of the log."""
    log = logging.getLogger("gevar")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


def run(sequences: int, seed: int | None = None) -> Seen:
    """Make up and compare sequences; print the seed, so that a disagreement can be met again.

    Raises
    ------
    Disagreement
        As `compare`; the text says which sequence it was.
    """
    first = random.SystemRandom().randrange(2**32) if seed is None else seed
    print(f"var_sequences: {sequences} sequences from seed {first}")
    seen = Seen()
    with quiet():
        for number in range(first, first + sequences):
            try:
                compare(made_up(Seeded(number)), seen)
            except Exception as error:
                raise Disagreement(f"sequence of seed {number}: {error}") from error
    return seen
