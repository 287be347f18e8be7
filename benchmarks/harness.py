"""What all rows share: alternating measurement, the row itself, where scratch files go."""

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

REPOSITORY = Path(__file__).resolve().parents[1]
BUILD = REPOSITORY / "build"

Measure = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Promise:
    """A bound on the figure of a row."""

    text: str
    limit: float
    at_most: bool

    def holds(self, figure: float) -> bool:
        return figure <= self.limit if self.at_most else figure >= self.limit


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. ``figure`` is what the promise is about, made from both series.

    A row with a `spread`, between which figures half of the rounds lie, has no verdict where the promise lies within.
    """

    name: str
    backend: str
    unit: str
    subject: tuple[float, ...]
    reference: tuple[float, ...]
    figure: float
    figure_unit: str
    promise: Promise
    conditions: Mapping[str, str | int | float] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    spread: tuple[float, float] | None = None

    @property
    def kept(self) -> bool | None:
        """Whether the promise is kept; None where the rounds do not agree on it."""
        if self.spread and not self.faults and len(set(map(self.promise.holds, self.spread))) > 1:
            return None
        return self.promise.holds(self.figure) and not self.faults

    @property
    def verdict(self) -> str:
        return {True: "kept", False: "MISSED", None: "no verdict: within the spread"}[self.kept]

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "backend": self.backend,
            "unit": self.unit,
            "subject": list(self.subject),
            "reference": list(self.reference),
            "subject_median": statistics.median(self.subject),
            "reference_median": statistics.median(self.reference),
            "figure": self.figure,
            "figure_unit": self.figure_unit,
            "promise": self.promise.text,
            "kept": self.kept,
            "spread": list(self.spread) if self.spread else None,
            "faults": list(self.faults),
            "conditions": dict(self.conditions),
        }


def alternate(subject: Measure, reference: Measure, rounds: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Measure both in turn, changing who goes first; one round beforehand is not counted."""
    if rounds < 5:
        raise ValueError(f"a median of {rounds} rounds says too little; at least 5")
    values: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        for which in (0, 1) if number % 2 else (1, 0):
            values[which].append((subject, reference)[which]())
    return tuple(values[0][1:]), tuple(values[1][1:])


def run_python(code: str, *arguments: str, folder: Path = REPOSITORY) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter with a folder on its path; its own words are in the error if it fails."""
    command = [sys.executable, "-c", code, *arguments]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"a measured process ended with {result.returncode}:\n{result.stderr}")
    return result


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Give a folder on the repository's disk, gone afterwards: the page cache of a memory file system tells nothing."""
    BUILD.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix="bench-", dir=BUILD) as folder:
        yield Path(folder)


def commit() -> str:
    """Return the commit measured, with a plus sign when files differ from it."""
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=10", "--exclude=*"],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def cpu_count() -> int:
    """Return the cores this process may use."""
    return len(os.sched_getaffinity(0))
