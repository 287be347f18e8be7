"""How long does ``import gevar`` take when numpy is there already?"""

import statistics
from pathlib import Path

from benchmarks.harness import REPOSITORY, Promise, Row, alternate, run_python, scratch_folder

ROUNDS = 15
_CODE = "import numpy, time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"


def _import_ms(module: str, folder: Path) -> float:
    """Import the module in a fresh process and return the milliseconds that took."""
    return float(run_python(_CODE.format(module=module), folder=folder).stdout) * 1000


def import_time() -> Row:
    with scratch_folder() as folder:
        (folder / "empty_module.py").touch()
        subject, reference = alternate(
            lambda: _import_ms("gevar", REPOSITORY), lambda: _import_ms("empty_module", folder), ROUNDS
        )
    return Row(
        name="import-time",
        backend="none",
        unit="ms",
        subject=subject,
        reference=reference,
        figure=statistics.median(subject) - statistics.median(reference),
        figure_unit="ms more than an empty module",
        promise=Promise("under 150 ms", 150, at_most=True),
        conditions={"process": "fresh", "numpy": "imported before"},
    )
