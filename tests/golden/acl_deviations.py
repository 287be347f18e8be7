"""Where the strict profile of the host runtime departs from a card: the table in the documentation, read as a rule."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.golden.facts import Json
from tests.helpers.shared import REPOSITORY

PAGE = REPOSITORY / "docs" / "host_runtime.md"
COLUMNS = ("deviation", "function", "part", "card", "strict")
PARTS = ("ret", "figure", "change", "bytes")
"""Return code; free memory that is stated; its change between two statements; whether a host_check finds its bytes."""
TRUTH = {"true": True, "false": False}
NUMBER = re.compile(r"-?\d+")
FROM_CARD = re.compile(r"card ([+-]) (\d+)")


@dataclass(frozen=True)
class Deviation:
    """One row: what a call gives on a card and under the strict profile."""

    name: str
    function: str
    part: str
    card: str
    strict: str

    def covers(self, function: str, part: str, expected: Json, found: Json) -> bool:
        """Return whether a difference is the one of this row."""
        if (function, part) != (self.function, self.part):
            return False
        if not isinstance(expected, int) or not isinstance(found, int):
            return False
        return _fits(self.card, expected, expected) and _fits(self.strict, found, expected)


def _fits(cell: str, value: int, card: int) -> bool:
    """Return whether a number is what a cell says: any, a number, or the card's number with a change."""
    if cell == "any":
        return True
    if cell in TRUTH:
        return value is TRUTH[cell]
    if relative := FROM_CARD.fullmatch(cell):
        return value - card == int(relative[1] + relative[2])
    return value == int(cell)


@dataclass
class Deviations:
    """The rows that are accepted, and those that have occurred."""

    rows: Sequence[Deviation] = ()
    occurred: set[Deviation] = field(default_factory=set)

    def name_of(self, function: str, part: str, expected: Json, found: Json) -> str | None:
        """Return the name of the deviation that a difference is, or None where none is listed."""
        covering = [row for row in self.rows if row.covers(function, part, expected, found)]
        self.occurred.update(covering)
        return covering[0].name if covering else None

    def missing(self) -> list[Deviation]:
        """Return the rows that have not occurred."""
        return [row for row in self.rows if row not in self.occurred]


@cache
def strict_deviations(page: Path) -> tuple[Deviation, ...]:
    """Read the table of deviations from the page.

    Raises
    ------
    ValueError
        The page has no such table, or a row is not understood.
    """
    rows: list[Deviation] = []
    header = False
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = tuple(cell.strip().strip("`") for cell in line.strip().strip("|").split("|"))
        if cells == COLUMNS:
            header = True
        elif header and not line.startswith("|"):
            break
        elif header and set("".join(cells)) != {"-"}:
            rows.append(_row(page, cells))
    if not rows:
        raise ValueError(f"{page}: no table of deviations with the columns {', '.join(COLUMNS)}")
    return tuple(rows)


def _row(page: Path, cells: tuple[str, ...]) -> Deviation:
    if len(cells) != len(COLUMNS) or cells[2] not in PARTS:
        raise ValueError(f"{page}: a row of the table of deviations is not understood: {' | '.join(cells)}")
    for cell in cells[3:]:
        if not (cell in TRUTH or cell == "any" or NUMBER.fullmatch(cell) or FROM_CARD.fullmatch(cell)):
            raise ValueError(f"{page}: {cell!r} is neither a number, true, false, any, nor card + number")
    return Deviation(*cells)
