"""Writing made-up sequences in the form of the recorded ones; the results are those of the model of GE.

What is written is decided by a `Choice`: a seeded generator of random numbers, or hypothesis.
"""

import random
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from tests.golden.var.ge_pool import ModelManager, ModelPool
from tests.golden.var.operations import Replay
from tests.golden.var.values import Tree

T = TypeVar("T")
Step = dict[str, Any]


class Choice(Protocol):
    """Where decisions come from."""

    def below(self, count: int) -> int:
        """Return a number from 0 up to, not including, `count`."""


class Seeded:
    """Decisions of a seeded generator of random numbers."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, count: int) -> int:
        return self._random.randrange(count)


@dataclass
class Writer:
    """Writes the steps of one sequence, and does them on the model of GE."""

    choice: Choice
    steps: list[Step] = field(default_factory=list)
    pool: ModelPool = field(default_factory=ModelPool)

    def __post_init__(self) -> None:
        self.replay = Replay(self.pool, self.message)

    def message(self, index: int) -> bytes:
        return b64decode(self.steps[index]["result"]["bytes_b64"])

    def do(self, operation: str, /, **args: Any) -> Step:
        """Write a step, with the result of the model."""
        step: Step = {"op": operation, "args": args, "result": {}}
        step["result"] = self.replay.step(operation, args)
        self.steps.append(step)
        return step

    def pick(self, items: Sequence[T]) -> T:
        return items[self.choice.below(len(items))]

    def chance(self, count: int) -> bool:
        """Whether something happens that happens once in `count` times."""
        return self.choice.below(count) == 1 % count

    def manager(self, args: Tree) -> ModelManager:
        manager = self.replay.held.get(args.get("handle", "")) or self.pool.manager(args.get("session", 1))
        assert isinstance(manager, ModelManager)
        return manager

    def sequence(self, name: str, topic: str) -> Step:
        """Return what was written, in the form of a file."""
        return {"name": name, "topic": topic, "notes": "", "steps": self.steps}
