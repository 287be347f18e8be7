"""How long does it take to look at a model: one with many operators, and one with many gibibytes of weights?

`inspect-nodes` is the whole command in a fresh process, start of the interpreter included, over the model of 100 000
nodes of `graph_costs` behind a header and a table; beside it protobuf's parse of the model definition alone. Operators
are counted from an outline of the graph; no IR is made, and of an operator nothing but its names is decoded.

`open-sparse` opens a sparse model and gathers its facts, without weights being read, so that the time must not grow
with them.
"""

import statistics
from pathlib import Path
from time import perf_counter

from benchmarks.graph_costs import NODES, write_message, write_model
from benchmarks.harness import Promise, Row, alternate, run_python, scratch_folder
from benchmarks.inspect_memory import CONSTS
from benchmarks.inspect_memory import _write_model as write_sparse
from gevar.om import open_om
from gevar.om.facts import om_facts

ROUNDS = 5
OPENS = 40
LARGE_GIB = 20
_GIB, _MIB = 1 << 30, 1 << 20
_COMMAND = "import sys; from gevar.cli.main import main; sys.argv = ['gevar', 'inspect', sys.argv[1]]; main()"
_PARSE = """
import sys
from time import perf_counter
from gevar.proto import ge_ir
data = open(sys.argv[1], "rb").read()
ge_ir.ModelDef()
start = perf_counter()
ge_ir.ModelDef.FromString(data)
print(perf_counter() - start)
"""


def inspect_nodes() -> Row:
    with scratch_folder() as folder:
        message, path = folder / "large.pb", folder / "large.om"
        size_bytes = write_message(message)
        write_model(path, message)
        told = run_python(_COMMAND, str(path)).stdout

        def command() -> float:
            start = perf_counter()
            run_python(_COMMAND, str(path))
            return perf_counter() - start

        subject, reference = alternate(command, lambda: float(run_python(_PARSE, str(message)).stdout), ROUNDS)
    return Row(
        name="inspect-nodes",
        backend="none",
        unit="s",
        subject=subject,
        reference=reference,
        figure=statistics.median(subject),
        figure_unit="s",
        promise=Promise("under 2 s", 2, at_most=True),
        conditions={"nodes": NODES, "model_mib": size_bytes / _MIB, "reference": "protobuf's parse of the whole"},
        faults=() if f"{NODES} nodes" in told else ("the command did not tell the nodes",),
    )


def open_sparse() -> Row:
    def opening(path: Path) -> float:
        start = perf_counter()
        for _ in range(OPENS):
            with open_om(path) as om:
                om_facts(om)
        return (perf_counter() - start) / OPENS * 1e3

    with scratch_folder() as folder:
        large, small = folder / "large.om", folder / "small.om"
        write_sparse(large, LARGE_GIB * _GIB // CONSTS)
        write_sparse(small, LARGE_GIB * _MIB // CONSTS)
        on_disk, size_bytes = large.stat().st_blocks * 512, large.stat().st_size
        subject, reference = alternate(lambda: opening(large), lambda: opening(small), ROUNDS)
    ratios = [one / other for one, other in zip(subject, reference, strict=True)]
    return Row(
        name="open-sparse",
        backend="none",
        unit="ms",
        subject=subject,
        reference=reference,
        figure=statistics.median(ratios),
        figure_unit="x",
        promise=Promise("at most 1.2x", 1.2, at_most=True),
        conditions={
            "model": f"{LARGE_GIB} GiB of weights, sparse",
            "reference model": f"{LARGE_GIB} MiB of weights",
            "on_disk_bytes": on_disk,
        },
        faults=() if size_bytes > LARGE_GIB * _GIB else ("the large model is too small",),
    )
