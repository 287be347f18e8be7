"""Run the benchmarks: ``python -m benchmarks [--check] [--json PATH] [NAME…]``."""

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import BUILD, Row, commit, cpu_count
from benchmarks.rows import BENCHMARKS, measure


def _print_row(row: Row) -> None:
    """Print a row with its backend: figures of different backends do not compare."""
    subject, reference = statistics.median(row.subject), statistics.median(row.reference)
    backend = row.backend if row.backend != "none" else "-"
    print(
        f"{row.name:<18} {backend:<5} gevar {subject:9.2f} {row.unit:<5} reference {reference:9.2f} {row.unit:<5} "
        f"n={len(row.subject):<3} {row.figure:8.1f} {row.figure_unit} ({row.promise.text}: {row.verdict})",
        flush=True,
    )
    for fault in row.faults:
        print(f"{'':<18} {fault}", flush=True)


def _write_json(path: Path, rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "commit": commit(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpu_count": cpu_count(),
        "machine": platform.machine(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "rows": [row.as_json() for row in rows],
    }
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure the promises of speed and memory.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"rows to run; all without a name: {', '.join(BENCHMARKS)}"
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 when a promise is missed, and name it")
    parser.add_argument(
        "--json", type=Path, default=BUILD / "bench.json", metavar="PATH", help="where to write the rows"
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no row named {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    rows = []
    for name in options.names or BENCHMARKS:
        rows.append(measure(name))
        _print_row(rows[-1])
    _write_json(options.json, rows)
    missed = [row for row in rows if row.kept is False]
    if not options.check:
        return 0
    for row in missed:
        print(f"missed: {row.name}: {row.promise.text}, got {row.figure:.1f} {row.figure_unit}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
