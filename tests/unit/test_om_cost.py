"""What looking at a large OM file costs: no weight byte read, memory of the structure only."""

import subprocess
import sys
from pathlib import Path

import pytest

from gevar.om import open_om
from gevar.om.op_def import APART_BYTES
from tests.helpers import om_builder as build
from tests.helpers.shared import REPOSITORY

GIB = 1 << 30
MIB = 1 << 20

# Runs in a process of its own; prints what the reading of the file added: peak resident bytes and bytes read.
MEASURE = """
import resource, sys
from gevar.om import open_om
from gevar.om.facts import om_facts
from gevar.proto import ge_ir, task
ge_ir.ModelDef(), task.ModelTaskDef()

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def read_so_far():
    lines = open("/proc/self/io").read().splitlines()
    return int(lines[0].split()[1])

before, read_before = peak(), read_so_far()
with open_om(sys.argv[1]) as om:
    om_facts(om)
    model = om.models[0]
    variables = model.variable_nodes()
    consts = model.const_nodes()
    assert [const.size_bytes for const in consts if const.size_bytes > 1 << 20] == [int(sys.argv[2])]
    views = [const.data() for const in consts]
    assert len(views[0]) == consts[0].size_bytes
    assert [node.name for node in variables][-1] == "v" and variables[-1].output_descs
print(peak() - before, read_so_far() - read_before)
"""


def measure(path: Path, large: int) -> tuple[int, int]:
    """Return peak resident bytes added, and bytes read."""
    command = [sys.executable, "-c", MEASURE, str(path), str(large)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    added, read = map(int, done.stdout.split())
    return added, read


def write_sparse(path: Path, before: bytes, hole_bytes: int, after: bytes) -> None:
    with path.open("wb") as file:
        file.write(before)
        file.seek(hole_bytes, 1)
        file.write(after)


def sparse_weights(path: Path, tasks: bytes = b"") -> None:
    """One GiB of weights, of which one constant takes all but the head."""
    graph = build.graph("g", [build.const("large", 512, GIB - 512), build.variable("v", (2,), 1 << 37)])
    attrs = {"tasks": build.field(7, tasks)} if tasks else None
    model_def, task_def = build.model_def("m", [graph], attrs), build.task_def()
    table = build.table(
        [(0, 0, len(model_def)), (1, len(model_def), GIB), (2, len(model_def) + GIB, len(task_def))], True
    )
    length = len(table) + len(model_def) + GIB + len(task_def)
    write_sparse(path, build.header(model_length=length) + table + model_def, GIB, task_def)


def sparse_inline(path: Path, hole_bytes: int) -> None:
    """A constant kept inline in MODEL_DEF, with the lengths of every message around its data."""

    def around(number: int, value: bytes) -> bytes:
        """A field whose value goes on in the hole."""
        return build.varint(number << 3 | 2) + build.varint(len(value) + hole_bytes) + value

    desc = build.tensor_desc((hole_bytes,), build.DT_UINT8)
    attr = around(12, build.field(1, desc) + around(2, b""))
    op = build.field(1, "large") + build.field(2, "Constant") + around(10, build.field(1, "value") + around(2, attr))
    start = build.field(1, "m") + around(7, build.field(1, "g") + around(6, op))
    end = build.field(7, build.graph("body", [build.variable("v", (2,), 1 << 37)]))
    size = len(start) + hole_bytes + len(end)
    table = build.table([(0, 0, size)], wide=True)
    write_sparse(path, build.header(model_length=len(table) + size) + table + start, hole_bytes, end)


def test_gibibyte_of_weights(tmp_path: Path) -> None:
    path = tmp_path / "weights.om"
    sparse_weights(path)
    added, read = measure(path, GIB - 512)
    assert added < 24 * MIB
    assert read < MIB


def test_gibibyte_of_inline_data(tmp_path: Path) -> None:
    path = tmp_path / "inline.om"
    sparse_inline(path, GIB)
    added, read = measure(path, GIB)
    assert added < 24 * MIB
    assert read < MIB


def test_tasks_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "tasks.om"
    sparse_weights(path, tasks=bytes(64 * MIB))
    added, read = measure(path, GIB - 512)
    assert added < 24 * MIB
    assert read < MIB


@pytest.mark.parametrize("size", [APART_BYTES, 3 * MIB + 5])
def test_inline_data_is_found_where_it_lies(tmp_path: Path, size: int) -> None:
    path = tmp_path / "inline.om"
    sparse_inline(path, size)
    with open_om(path) as om:
        (const,) = om.models[0].const_nodes()
        assert const.file_offset is not None
        with path.open("r+b") as file:
            file.seek(const.file_offset)
            file.write(b"first")
            file.seek(const.file_offset + size - 4)
            file.write(b"last")
        view = const.data()
        assert view[:5] == b"first"
        assert view[-4:] == b"last"
        assert [node.name for node in om.models[0].variable_nodes()] == ["large", "v"]
