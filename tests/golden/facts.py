"""Counting and comparing the facts of an expectation file.

A fact is a leaf of the JSON tree: a scalar, or an empty list or object. Every fact of a file ends in exactly one state;
one that nothing has looked at is an error, so a key that a schema does not know can never pass unnoticed.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
Place = tuple[str | int, ...]


class State(Enum):
    """What became of a fact."""

    COMPARED = "compared"
    INPUT = "input"
    DOCUMENTATION = "documentation"
    LEFT_OUT = "not compared"
    UNKNOWN = "unknown"


def load_document(path: Path) -> Json:
    """Read a JSON file; a key that comes twice in one object is refused, since it would hide a fact."""

    def distinct(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        found = dict(pairs)
        if len(found) != len(pairs):
            twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
            raise ValueError(f"{path}: keys come twice in one object: {', '.join(twice)}")
        return found

    document: Json = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=distinct)
    return document


def leaves(value: Json, place: Place = ()) -> Iterator[tuple[Place, Json]]:
    """Yield every fact with its place."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from leaves(item, (*place, key))
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        for index, item in enumerate(value):
            yield from leaves(item, (*place, index))
    else:
        yield place, value


def place_text(place: Place) -> str:
    """Return a place as a path inside the JSON, such as `files[2].header.length`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return text.removeprefix(".") or "the document"


@dataclass
class Report:
    """States of the facts of one file, the differences found, and how often a documented difference was accepted.

    `steps` counts what became of whole steps, where a file has them.
    """

    document: Json
    states: dict[Place, State] = field(init=False)
    differences: list[tuple[Place, str]] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    steps: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.states = dict.fromkeys((place for place, _ in leaves(self.document)), State.UNKNOWN)

    def count(self, state: State) -> int:
        """Return how many facts are in a state."""
        return sum(found is state for found in self.states.values())

    @property
    def passed(self) -> bool:
        """Whether every fact was compared and equal, or was done as it says, or is documentation."""
        good = self.count(State.COMPARED) + self.count(State.INPUT) + self.count(State.DOCUMENTATION)
        return not self.differences and good == len(self.states)

    def compare(self, place: Place, expected: Json, actual: Json, *, closed: frozenset[str] = frozenset()) -> None:
        """Compare a part of the document with what was found.

        An object found may have more keys than the expected one, but not where the key it lies under is in `closed`.
        A key that was not found stays unknown. Lists must have equal lengths.
        """
        if isinstance(expected, Mapping) and isinstance(actual, Mapping):
            if place and place[-1] in closed and actual.keys() - expected.keys():
                self.differ(place, f"not in the file: {', '.join(sorted(actual.keys() - expected.keys()))}")
            for key, item in expected.items():
                if key in actual:
                    self.compare((*place, key), item, actual[key], closed=closed)
            self._mark_leaf(place)
        elif _is_list(expected) and _is_list(actual) and len(expected) == len(actual):
            for index, (item, found) in enumerate(zip(expected, actual, strict=True)):
                self.compare((*place, index), item, found, closed=closed)
            self._mark_leaf(place)
        else:
            self.mark(place, expected, State.COMPARED)
            if not _equal(expected, actual):
                self.differ(place, f"expected {_short(expected)}, found {_short(actual)}")

    def differ(self, place: Place, text: str) -> None:
        """Record a difference."""
        self.differences.append((place, text))

    def mark(self, place: Place, value: Json, state: State, reason: str = "") -> None:
        """Put every fact of a part of the document into a state; a reason is counted."""
        for leaf, _ in leaves(value, place):
            self.states[leaf] = state
            if reason:
                self.reasons[reason] += 1

    def _mark_leaf(self, place: Place) -> None:
        """An empty list or object is a fact of its own."""
        if place in self.states:
            self.states[place] = State.COMPARED


def _is_list(value: Json) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _equal(expected: Json, actual: Json) -> bool:
    """Equal in value and kind: true is not 1."""
    if isinstance(expected, Mapping | list | tuple) or isinstance(actual, Mapping | list | tuple):
        return False  # the caller has compared equal shapes already
    return expected == actual and isinstance(expected, bool) == isinstance(actual, bool)


def _short(value: Json) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."
