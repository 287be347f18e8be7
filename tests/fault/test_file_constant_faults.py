"""Each call of the runtime fails once while a graph brings its FileConstants: nothing is left, the next try works."""

from pathlib import Path

import numpy as np
import pytest

from acl_shim.host import HostControls
from gevar import Session
from gevar.errors import GevarError
from gevar.graph import AttrValue, ComputeGraph, OpDesc
from gevar.runtime import FileConstantFiles, LoweringGlobalData, ModelExecutor, RtSession, lowering_file_constant
from gevar.types import DeviceId, Format, TensorDesc
from gevar.var import VarOp
from gevar.weights import WeightDirectory
from tests.helpers.runtime import fail_until_passes, host_runtime
from tests.helpers.training_graphs import F32, op, outputs

FUNCTIONS = ("aclrtMallocWithCfg", "aclrtMemcpy", "aclrtMallocHost")
ROW = TensorDesc(F32, Format.FORMAT_ND, (4,), size=16)
VALUES = np.arange(8, dtype=np.float32)
SLICES: list[dict[str, int | str]] = [
    {"location": "w.bin", "length": 16},
    {"location": "w.bin", "offset": 16},
    {"location": "v.bin"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("w.bin", "v.bin"):
        (tmp_path / name).write_bytes(VALUES.tobytes())
    return tmp_path


def graph_of_slices() -> ComputeGraph:
    graph = ComputeGraph("g")
    nodes = []
    for number, place in enumerate(SLICES):
        attrs: dict[str, AttrValue] = dict(place)
        node = graph.add_node(OpDesc(f"c{number}", "FileConstant", outputs=[ROW], attrs=attrs))
        nodes.append(op(graph, f"twice{number}", "Add", [node, node], ROW))
    return outputs(graph, *nodes)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("is_grown", [True, False])
def test_a_graph_of_a_session(host: HostControls, folder: Path, function: str, is_grown: bool) -> None:
    """Also in one session, where the graph is tried again; with variables in memory that grows, or in plain blocks."""
    wanted = [VALUES[:4] * 2, VALUES[4:] * 2, VALUES[:4] * 2]

    def session() -> Session:
        opened = Session(host_runtime(), options={"ge.externalWeightDir": str(folder)})
        opened.add_graph(1, graph_of_slices())
        if not is_grown:
            opened.compile(1)
            opened.var_manager.free_var_memory()
        return opened

    def operation() -> None:
        with session() as opened:
            assert np.array_equal(opened.run(1), wanted)

    operation()
    failed = fail_until_passes(host, function, operation)
    with session() as opened:
        for number in range(1, failed + 1):
            host.fail_nth(function, number, 507899)
            try:
                opened.run(1)
            except GevarError:
                assert opened.memory_manager.counts.live_blocks == 0
            host.clear_failures()
            assert np.array_equal(opened.run(1), wanted)
            opened.remove_graph(1)
            opened.var_manager.free_var_memory()
            assert opened.memory_manager.counts.live_blocks == 0
            opened.add_graph(1, graph_of_slices())


@pytest.mark.parametrize("function", FUNCTIONS[:2])
def test_an_init_part_without_variables(host: HostControls, folder: Path, function: str) -> None:
    with Session(host_runtime()) as session:

        def operation() -> None:
            shared, files = LoweringGlobalData(), FileConstantFiles(WeightDirectory(folder, None))
            shapes = {"shape": (4,), "original_shape": (4,)}
            holders = [
                lowering_file_constant(
                    VarOp(f"c{number}", "FileConstant", (ROW,), attrs={**shapes, **place}), files, shared
                ).addr
                for number, place in enumerate(SLICES)
            ]
            with ModelExecutor(shared.graph, RtSession(session.id), session.memory_manager, DeviceId(0)) as executor:
                executor.load()
                assert executor.execute(holders)[1] == VALUES[4:].tobytes()

        operation()
        assert fail_until_passes(host, function, operation) >= len(SLICES)
        assert session.memory_manager.counts.live_blocks == 0
