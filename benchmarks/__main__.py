"""Run the benchmarks: ``python -m benchmarks [--check] [--json PATH] [NAME…]``."""

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import cast

from benchmarks.harness import BUILD, Row, commit, cpu_count

#: Row name -> module and function. Modules are imported when their row is run.
BENCHMARKS = {
    "import-time": ("benchmarks.import_time", "import_time"),
    "inspect-memory": ("benchmarks.inspect_memory", "inspect_memory"),
    "inspect-nodes": ("benchmarks.inspect_costs", "inspect_nodes"),
    "open-sparse": ("benchmarks.inspect_costs", "open_sparse"),
    "graph-read": ("benchmarks.graph_costs", "graph_read"),
    "graph-memory": ("benchmarks.graph_costs", "graph_memory"),
    "upload-touched": ("benchmarks.upload_speed", "upload_touched"),
    "upload-fresh": ("benchmarks.upload_speed", "upload_fresh"),
    "upload-small": ("benchmarks.upload_regions", "upload_small"),
    "upload-scattered": ("benchmarks.upload_regions", "upload_scattered"),
    "upload-cold": ("benchmarks.upload_cold", "upload_cold"),
    "upload-memory": ("benchmarks.upload_memory", "upload_memory"),
    "upload-digests": ("benchmarks.upload_digests", "upload_digests"),
    "upload-safetensors": ("benchmarks.upload_safetensors", "upload_safetensors"),
    "upload-second": ("benchmarks.second_load", "upload_second"),
    "malloc-free": ("benchmarks.runtime_costs", "malloc_free"),
    "map-unmap": ("benchmarks.runtime_costs", "map_unmap"),
    "device-copy": ("benchmarks.runtime_costs", "device_copy"),
    "many-live": ("benchmarks.runtime_costs", "many_live"),
    "table-call": ("benchmarks.runtime_costs", "table_call"),
    "face-call": ("benchmarks.runtime_costs", "face_call"),
    "face-small": ("benchmarks.runtime_costs", "face_small"),
    "var-assign": ("benchmarks.var_costs", "var_assign"),
    "var-assign-many": ("benchmarks.var_costs", "var_assign_many"),
    "var-get-addr": ("benchmarks.var_costs", "var_get_addr"),
    "var-loaded": ("benchmarks.var_costs", "var_loaded"),
    "var-constants": ("benchmarks.var_costs", "var_constants"),
    "var-to-bytes": ("benchmarks.var_costs", "var_to_bytes"),
    "var-from-bytes": ("benchmarks.var_costs", "var_from_bytes"),
    "var-memory": ("benchmarks.var_costs", "var_memory"),
    "resolve": ("benchmarks.resolution", "resolve"),
    "resolve-many": ("benchmarks.resolution", "resolve_many"),
    "resolve-threads": ("benchmarks.resolution", "resolve_threads"),
    "giant-pages": ("benchmarks.page_reads", "giant_pages"),
    "pass-growth": ("benchmarks.pass_costs", "pass_growth"),
    "memory-page": ("benchmarks.memory_costs", "memory_page"),
    "memory-touch": ("benchmarks.memory_costs", "memory_first_touch"),
    "memory-growth": ("benchmarks.memory_costs", "memory_growth"),
    "memory-random": ("benchmarks.memory_costs", "memory_random"),
    "format-4d": ("benchmarks.format_speed", "format_4d"),
    "format-4d-bytes": ("benchmarks.format_speed", "format_4d_bytes"),
    "format-matrix": ("benchmarks.format_speed", "format_matrix"),
    "format-cast": ("benchmarks.format_speed", "format_cast"),
    "format-memory": ("benchmarks.format_speed", "format_memory"),
}


def _run(name: str) -> Row:
    module, function = BENCHMARKS[name]
    return cast("Callable[[], Row]", getattr(import_module(module), function))()


def _print_table(rows: Sequence[Row]) -> None:
    """Print one table for each backend: figures of different backends do not compare."""
    for backend in dict.fromkeys(row.backend for row in rows):
        print(f"backend {backend}" if backend != "none" else "no backend")
        for row in (row for row in rows if row.backend == backend):
            subject, reference = statistics.median(row.subject), statistics.median(row.reference)
            print(
                f"  {row.name:<16} gevar {subject:9.2f} {row.unit:<5} reference {reference:9.2f} {row.unit:<5} "
                f"n={len(row.subject):<3} {row.figure:8.1f} {row.figure_unit} "
                f"({row.promise.text}: {row.verdict})"
            )
            for fault in row.faults:
                print(f"  {'':<16} {fault}")


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
    rows = [_run(name) for name in options.names or BENCHMARKS]
    _print_table(rows)
    _write_json(options.json, rows)
    missed = [row for row in rows if row.kept is False]
    if not options.check:
        return 0
    for row in missed:
        print(f"missed: {row.name}: {row.promise.text}, got {row.figure:.1f} {row.figure_unit}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
