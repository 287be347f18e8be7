"""The machine-readable blocks of `docs/differences.md`: what gevar answers where GE's answer is not sound.

The page itself says how a block is written. Here blocks are read, checked, and matched with steps.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gevar import status as status_numbers
from tests.golden.var.fact_words import Fact, Facts
from tests.golden.var.operations import OPERATIONS
from tests.golden.var.state_facts import known_facts
from tests.golden.var.traces import TRACES
from tests.golden.var.values import same_json
from tests.helpers.shared import REPOSITORY

PAGE = REPOSITORY / "docs" / "differences.md"
EDGES = range(1, 45)
HEADING = re.compile(r"## Edge (\d+): (.+)")
BLOCK_KEYS = frozenset({"operations", "when", "ge", "gevar", "leaves", "unseen"})
# A value of the form "$fact" is that fact of the step.
RULES = "*"
"""Value of a result that is whatever gevar's rules come to; the runner knows the rules."""
NOT_THERE = "absent"
"""Value of a key that the result does not have."""
NOTHING = "null"
"""Value of a key that the result has as null."""
RESULT_KEYS = frozenset(
    {"status", "value", "addr", "memory_type", "events", "tensor", "bytes_hex", "names", "graph_id"}
)
RESULT_KEYS |= {"message", "bytes_b64", "variables", "size"}

OPERAND = r"(?:[a-z_][a-z0-9_]*|-?\d+|'[^']*')"
COMPARISON = re.compile(rf"({OPERAND})\s*(==|!=|<=|>=|<|>)\s*({OPERAND})")
ORDERS: Mapping[str, frozenset[int]] = {
    "<": frozenset({-1}),
    "<=": frozenset({-1, 0}),
    "==": frozenset({0}),
    "!=": frozenset({-1, 1}),
    ">=": frozenset({0, 1}),
    ">": frozenset({1}),
}


class MalformedPage(ValueError):
    """The page, or a block on it, is not as it should be."""


@dataclass(frozen=True)
class Condition:
    """One condition: a comparison of two facts or values; a bare fact is compared with true."""

    left: str
    orders: frozenset[int]
    right: str

    @classmethod
    def parse(cls, text: str) -> "Condition":
        if re.fullmatch(r"[a-z_][a-z0-9_]*", text):
            return cls(text, ORDERS["=="], "true")
        if (match := re.fullmatch(r"not ([a-z_][a-z0-9_]*)", text)) is not None:
            return cls(match[1], ORDERS["=="], "false")
        match = COMPARISON.fullmatch(text)
        if match is None:
            raise MalformedPage(f"condition {text!r} is neither a fact, a fact with not, nor a comparison")
        return cls(match[1], ORDERS[match[2]], match[3])

    @property
    def facts(self) -> Iterator[str]:
        return (side for side in (self.left, self.right) if side.isidentifier() and side not in ("true", "false"))

    def holds(self, facts: Facts) -> bool:
        one, other = _operand(self.left, facts), _operand(self.right, facts)
        if isinstance(one, int) and isinstance(other, int):
            return (one > other) - (one < other) in self.orders
        return (0 if one == other else 1) in self.orders

    def excludes(self, other: "Condition") -> bool:
        """Whether the two can never hold together."""
        if (self.left, self.right) == (other.left, other.right):
            return not self.orders & other.orders
        if (self.left, self.right) == (other.right, other.left):
            return not self.orders & {-order for order in other.orders}
        fixed = [side for side in (self.right, other.right) if not side.isidentifier() or side in ("true", "false")]
        return (
            self.left == other.left
            and len(fixed) == 2
            and self.orders == other.orders == ORDERS["=="]
            and self.right != other.right
        )


def _operand(text: str, facts: Facts) -> Fact:
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("'"):
        return text[1:-1]
    return facts[text] if text.isidentifier() else int(text)


@dataclass(frozen=True)
class Difference:
    """One block: where gevar's answer or its state is another than GE's, and what it is.

    `unseen` says why no recorded sequence can show the difference; such a block has nothing else.
    """

    edge: int
    number: int
    operations: tuple[str, ...]
    when: tuple[Condition, ...]
    ge: Mapping[str, Any]
    gevar: Mapping[str, Any]
    leaves: frozenset[str]
    unseen: str = ""

    @property
    def name(self) -> str:
        return f"edge {self.edge}.{self.number}"

    @property
    def _asks_life(self) -> bool:
        """Whether the block itself says of which managers it speaks; else they are initialised, there and here."""
        return any(fact in ("initialised", "gevar_initialised") for one in self.when for fact in one.facts)

    def matches(self, op: str, facts: Facts, ge_result: Mapping[str, Any]) -> bool:
        """Whether a step is one this block speaks of."""
        if op not in self.operations or not all(condition.holds(facts) for condition in self.when):
            return False
        if not self._asks_life and not (facts.get("initialised", True) and facts.get("gevar_initialised", True)):
            return False
        return all(_is(ge_result, key, value) for key, value in self.ge.items())

    def expected(self, facts: Facts) -> Mapping[str, Any]:
        """Return what the block says of gevar's answer to a step, with the facts of that step filled in."""
        return {key: facts[value[1:]] if _is_fact(value) else value for key, value in self.gevar.items()}

    def holds(self, result: Mapping[str, Any], facts: Facts) -> bool:
        """Whether a result of gevar is as the block says."""
        return all(value == RULES or _is(result, key, value) for key, value in self.expected(facts).items())

    @property
    def is_open(self) -> bool:
        """Whether no result can contradict the block, so that a difference must show that it is right."""
        return all(value == RULES or _is(self.ge, key, value) for key, value in self.gevar.items())

    @property
    def _facts(self) -> frozenset[str]:
        """All facts that the block asks for."""
        asked = {name for condition in self.when for name in condition.facts}
        return frozenset(asked | {value[1:] for value in self.gevar.values() if _is_fact(value)})

    def faults(self) -> Iterator[str]:
        """Yield what keeps the block from ever matching, or from saying anything."""
        if self.unseen:
            if self.operations or self.when or self.ge or self.gevar or self.leaves:
                yield "it is unseen, and yet says what differs"
            return
        if not self.operations:
            yield "it has neither operations nor a reason why no sequence shows it"
        for op in self.operations:
            if op not in OPERATIONS:
                yield f"{op} is no operation"
            for fact in self._facts - known_facts(op):
                yield f"{fact} is no fact of {op}"
        for index, one in enumerate(self.when):
            if any(one.excludes(other) for other in self.when[:index]):
                yield "its conditions exclude each other"
        yield from (f"{trace} is no part of the state" for trace in self.leaves - TRACES.keys())
        yield from (f"{key} is no part of a result" for key in (self.ge.keys() | self.gevar.keys()) - RESULT_KEYS)
        if not self.leaves and all(same_json(self.ge.get(key), value) for key, value in self.gevar.items()):
            yield "gevar's answer is GE's, and nothing is left behind"


def _is_fact(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("$")


def _is(result: Mapping[str, Any], key: str, value: Any) -> bool:
    if value == NOT_THERE:
        return key not in result
    return key in result and same_json(result[key], None if value == NOTHING else value)


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    edge: int
    title: str
    text: str
    differences: tuple[Difference, ...]

    @property
    def tests(self) -> Sequence[str]:
        return re.findall(r"`(tests/\S+?\.py::\w+)`", self.text)


@cache
def sections(page: Path = PAGE) -> tuple[Section, ...]:
    """Read the page.

    Raises
    ------
    MalformedPage
        A block is not TOML, has an unknown key, or could never match.
    """
    found: list[Section] = []
    parts = re.split(r"^(?=## )", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for part in parts:
        heading = HEADING.match(part)
        if heading is None:
            continue
        edge = int(heading[1])
        blocks = re.findall(r"^```toml\n(.*?)^```$", part, flags=re.MULTILINE | re.DOTALL)
        read = tuple(_difference(edge, number, text) for number, text in enumerate(blocks, 1))
        found.append(Section(edge, heading[2], part, read))
    return tuple(found)


def differences(page: Path = PAGE) -> tuple[Difference, ...]:
    """Return all blocks of the page."""
    return tuple(difference for section in sections(page) for difference in section.differences)


def _difference(edge: int, number: int, text: str) -> Difference:
    try:
        block = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise MalformedPage(f"edge {edge}, block {number}: {error}") from error
    if unknown := block.keys() - BLOCK_KEYS:
        raise MalformedPage(f"edge {edge}, block {number}: unknown keys: {', '.join(sorted(unknown))}")
    difference = Difference(
        edge,
        number,
        tuple(block.get("operations", ())),
        tuple(Condition.parse(condition) for condition in block.get("when", ())),
        _numbers(block.get("ge", {})),
        _numbers(block.get("gevar", {})),
        frozenset(block.get("leaves", ())),
        block.get("unseen", ""),
    )
    faults = list(difference.faults())
    if edge not in EDGES:
        faults.append(f"there is no edge {edge}")
    if faults:
        raise MalformedPage(f"{difference.name}: {'; '.join(faults)}")
    return difference


def _numbers(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a result with the number of its status instead of GE's name of it."""
    name = result.get("status")
    if not isinstance(name, str) or name in (RULES, NOT_THERE) or _is_fact(name):
        return result
    number = getattr(status_numbers, name, None)
    if not isinstance(number, int):
        raise MalformedPage(f"{name} is no status")
    return {**result, "status": number}
