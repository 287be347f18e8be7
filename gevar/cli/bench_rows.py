"""What all measurements of `gevar bench` share: the row, its options, how it is timed and shown."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import click

from acl_shim import Runtime
from gevar.cli.output import print_banner, print_json, print_table

_LARGEST = (1 << 63) - 1
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

rounds_option = click.option(
    "--rounds", default=5, show_default=True, type=click.IntRange(1), help="Rounds of each row."
)
device_option = click.option("--device", "device_id", default=0, show_default=True, metavar="N", help="Device to use.")


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One line: what was measured, figures of each round in `unit`, and those of the reference."""

    name: str
    unit: str
    values: tuple[float, ...]
    reference_name: str
    reference: tuple[float, ...]

    def cells(self) -> list[str]:
        """Return the line for people: median, spread, and the median of the reference."""
        spread = f"{min(self.values):.2f}…{max(self.values):.2f}"
        ours, plain = f"{median(self.values):.2f} {self.unit}", f"{median(self.reference):.2f} {self.unit}"
        return [self.name, ours, spread, plain, self.reference_name]

    def facts(self) -> dict[str, object]:
        """Return the line for programs."""
        figures = {"median": median(self.values), "min": min(self.values), "max": max(self.values)}
        reference = {"name": self.reference_name, "median": median(self.reference)}
        return {"name": self.name, "unit": self.unit, **figures, "rounds": len(self.values), "reference": reference}


def size_option(text: str) -> int:
    """Return the bytes that a text means: a number, with K, M or G behind it or nothing.

    Raises
    ------
    click.BadParameter
        It means none, or one of more than 2^63 - 1 bytes.
    """
    text = text.strip().upper()
    number, unit = (text[:-1], text[-1]) if text[-1:] in ("K", "M", "G") else (text, "")
    if not number.isdecimal() or not int(number):
        raise click.BadParameter(f"{text!r} is no size: give bytes, or a number with K, M or G")
    size = int(number) * _UNITS[unit]
    if size > _LARGEST:
        raise click.BadParameter(f"{text} is more than {_LARGEST} B: give a smaller size")
    return size


def alternate(
    ours: Callable[[], object], plain: Callable[[], object], rounds: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Time both in turn, after one round that does not count; seconds."""
    pairs = list(_pairs(ours, plain, rounds + 1))[1:]
    return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)


def _pairs(ours: Callable[[], object], plain: Callable[[], object], rounds: int) -> Iterator[tuple[float, float]]:
    for _ in range(rounds):
        start = time.perf_counter()
        ours()
        between = time.perf_counter()
        plain()
        yield between - start, time.perf_counter() - between


def us_each(seconds: tuple[float, ...], count: int) -> tuple[float, ...]:
    """Return microseconds for each of so many."""
    return tuple(one / max(count, 1) * 1e6 for one in seconds)


def print_rows(runtime: Runtime, rows: list[BenchRow], *, as_json: bool) -> None:
    """Show rows under the name of their backend."""
    if as_json:
        facts = {"backend": runtime.backend, "library": str(runtime.path), "soc_name": runtime.soc_name()}
        print_json({**facts, "rows": [row.facts() for row in rows]})
        return
    print_banner(runtime)
    columns = [("what", "left"), ("median", "right"), ("spread", "right"), ("reference", "right"), ("which is", "left")]
    print_table(columns, [row.cells() for row in rows])
