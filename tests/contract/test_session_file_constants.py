"""FileConstants of graphs that a session runs: the kernel of the init part, files by every name, names that meet."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from acl_shim.host import HostControls
from gevar import Session, load_model
from gevar.errors import GraphError, LoadError, VariableError
from gevar.graph import AttrValue, ComputeGraph, Node, OpDesc
from gevar.om import convert_const_to_file_const, write_om
from gevar.proto.ge_ir import AttrDef
from gevar.runtime.kernels import Kernel, KernelContext
from gevar.session import graph_executor, graph_lowering
from gevar.status import PARAM_INVALID, UNSUPPORTED
from gevar.types import Format, TensorDesc
from tests.helpers.runtime import host_runtime
from tests.helpers.training_graphs import F32, const, op, outputs

ROW = TensorDesc(F32, Format.FORMAT_ND, (4,), size=16)
VALUES = np.arange(8, dtype=np.float32)
KERNEL = "FileConstantKernel"
WEIGHTS = "ge.externalWeightDir"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("weights", "others"):
        (tmp_path / name).mkdir()
    (tmp_path / "weights" / "w.bin").write_bytes(VALUES.tobytes())
    (tmp_path / "others" / "w.bin").write_bytes((VALUES * 10).tobytes())
    (tmp_path / "w.bin").write_bytes((VALUES * 100).tobytes())
    return tmp_path


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The ids that the kernel of FileConstants was asked for."""
    found: list[object] = []
    kernel: Kernel = graph_lowering.GRAPH_KERNELS[KERNEL]

    def count(context: KernelContext, inputs: Sequence[object], value: object) -> tuple[object, ...]:
        found.append(inputs[1])
        return kernel(context, inputs, value)

    monkeypatch.setattr(graph_executor, "GRAPH_KERNELS", {**graph_lowering.GRAPH_KERNELS, KERNEL: count})
    return found


def weight(graph: ComputeGraph, name: str, **attrs: AttrValue) -> Node:
    return graph.add_node(OpDesc(name, "FileConstant", outputs=[ROW], attrs=attrs))


def doubled(*nodes: dict[str, AttrValue], name: str = "g") -> ComputeGraph:
    """A graph with FileConstants, each of which it gives twice its value of."""
    graph = ComputeGraph(name)
    sources = [weight(graph, f"w{number}", **attrs) for number, attrs in enumerate(nodes)]
    return outputs(graph, *(op(graph, f"twice_{node.name}", "Add", [node, node], ROW) for node in sources))


def bins(**files: Path) -> str:
    records = [{"value_bin_id": name, "value_bin_file": str(path)} for name, path in files.items()]
    return json.dumps({"value_bins": records})


def test_a_const_in_a_file_of_its_own_gives_the_same(host: HostControls, folder: Path) -> None:
    graph = ComputeGraph("g")
    node = const(graph, "a/w", VALUES[4:], ROW)
    outputs(graph, op(graph, "twice", "Add", [node, node], ROW))
    assert convert_const_to_file_const(node, folder / "weights") == folder / "weights" / "a_w"
    with Session(host_runtime(), options={WEIGHTS: str(folder / "weights")}) as session:
        session.add_graph(1, graph)
        [found] = session.run(1)
        assert found.tolist() == (VALUES[4:] * 2).tolist()


# --- the kernel ------------------------------------------------------------------------------------------------------


def test_the_init_part_asks_the_session_once_per_load(host: HostControls, folder: Path, calls: list[object]) -> None:
    with Session(host_runtime(), options={WEIGHTS: str(folder / "weights")}) as session:
        session.add_graph(1, doubled({"location": "w.bin", "length": 16}, {"location": "w.bin", "offset": 16}))
        for _ in range(2):
            first, second = session.run(1)
            assert first.tolist() == (VALUES[:4] * 2).tolist()
            assert second.tolist() == (VALUES[4:] * 2).tolist()
        assert calls == ["w0", "w1"]
        session.var_manager.free_var_memory()
        assert session.run(1)[0].tolist() == (VALUES[:4] * 2).tolist()
        assert calls == ["w0", "w1"] * 2


@pytest.mark.parametrize("kinds", [["FileConstant"], ["Constant"], None])
def test_what_was_discarded_is_brought_again(host: HostControls, folder: Path, kinds: list[str] | None) -> None:
    """The memory is where it was, without the bytes."""
    graph = ComputeGraph("g")
    sources = [weight(graph, "w", location="w.bin"), const(graph, "c", VALUES[4:], ROW, "Constant")]
    outputs(graph, *(op(graph, f"twice_{node.name}", "Add", [node, node], ROW) for node in sources))
    wanted = [VALUES[:4] * 2, VALUES[4:] * 2]
    with Session(host_runtime(), options={WEIGHTS: str(folder / "weights")}) as session:
        session.add_graph(1, graph)
        assert np.array_equal(session.run(1), wanted)
        for _ in range(2):
            session.sleep(kinds, "discard")
            session.wake()
            assert np.array_equal(session.run(1), wanted)
        assert session.var_manager.is_var_ready("w", ROW)


def test_nodes_of_one_slice_ask_once(host: HostControls, folder: Path, calls: list[object]) -> None:
    """Edge 12: the length counts."""
    slices: list[dict[str, AttrValue]] = [
        {"location": "w.bin", "length": 16},
        {"location": "w.bin", "length": 16, "offset": 0},
        {"location": "w.bin", "length": 16, "offset": 4},
        {"location": "w.bin"},
    ]
    with Session(host_runtime(), options={WEIGHTS: str(folder / "weights")}) as session:
        session.add_graph(1, doubled(*slices))
        wanted = [VALUES[start : start + 4] * 2 for start in (0, 0, 1, 0)]
        assert np.array_equal(session.run(1), wanted)
        assert calls == ["w0", "w2", "w3"]


def test_a_location_and_a_path_of_one_name_are_two_files(host: HostControls, folder: Path) -> None:
    with Session(host_runtime(), options={WEIGHTS: str(folder / "weights")}) as session:
        session.add_graph(1, doubled({"location": "w.bin"}, {"file_path": "w.bin"}))
        assert np.array_equal(session.run(1), [VALUES[:4] * 2, VALUES[:4] * 200])


@pytest.mark.parametrize("attr", ["shape", "original_shape"])
def test_a_shape_that_is_none(host: HostControls, folder: Path, attr: str) -> None:
    with Session(host_runtime(), options={WEIGHTS: str(folder / "weights")}) as session:
        session.add_graph(1, doubled({"location": "w.bin", attr: "4"}))
        with pytest.raises(VariableError, match=rf"w0.*attribute {attr} is '4'") as caught:
            session.run(1)
        assert caught.value.status == PARAM_INVALID
        assert session.memory_manager.counts.live_blocks == 0


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["session", "graph"])
def test_files_by_id(host: HostControls, folder: Path, level: str) -> None:
    options = {"ge.exec.value_bins": bins(one=folder / "others" / "w.bin")}
    with Session(host_runtime(), options=options if level == "session" else {}) as session:
        session.add_graph(1, doubled({"file_id": "one"}), options if level == "graph" else {})
        assert session.run(1)[0].tolist() == (VALUES[:4] * 20).tolist()


def test_the_graphs_option_counts_before_that_of_the_session(host: HostControls, folder: Path) -> None:
    with Session(host_runtime(), options={"ge.exec.value_bins": bins(one=folder / "none")}) as session:
        session.add_graph(1, doubled({"file_id": "one"}), {"ge.exec.value_bins": bins(one=folder / "w.bin")})
        assert session.run(1)[0].tolist() == (VALUES[:4] * 200).tolist()


def test_an_option_that_cannot_be_read(host: HostControls, folder: Path) -> None:
    with Session(host_runtime()) as session:
        session.add_graph(1, doubled({"file_path": "w.bin"}), {"ge.exec.value_bins": "{"})
        with pytest.raises(ValueError, match=r"ge\.exec\.value_bins is no JSON"):
            session.compile(1)
        assert session.var_manager.table() == ()


def test_a_path_in_the_directory_of_weights(host: HostControls, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts for a graph that names files by path only, too."""
    monkeypatch.chdir(folder / "others")
    path = str(folder / "weights" / "w.bin")
    with Session(host_runtime(), options={WEIGHTS: str(folder / "weights")}) as session:
        session.add_graph(1, doubled({"file_path": path}))
        assert session.run(1)[0].tolist() == (VALUES[:4] * 2).tolist()
    with Session(host_runtime()) as session:
        session.add_graph(1, doubled({"file_path": path}))
        with pytest.raises(LoadError, match="outside the directories"):
            session.run(1)


@pytest.mark.parametrize(
    ("attrs", "error", "words"),
    [
        ({"location": "w.bin", "offset": 20}, LoadError, r"weights/w\.bin.*offset 20.*there are 32 B"),
        ({"location": "w.bin", "length": 15}, VariableError, "length of 15 B at 0 .*tensor of 16 B"),
        ({"location": "w.bin", "length": 97}, VariableError, "length of 97 B is larger than its output of"),
        ({"location": "w.bin", "offset": -4}, VariableError, "16 B at -4|0 B at -4"),
        ({"location": "."}, LoadError, "names no file"),
        ({"file_path": "others"}, LoadError, "not a regular file"),
        ({"file_id": "none"}, VariableError, "no file for its file_id 'none'"),
    ],
)
def test_what_cannot_be_loaded_leaves_nothing(
    host: HostControls, folder: Path, attrs: dict[str, AttrValue], error: type[Exception], words: str
) -> None:
    with Session(host_runtime(), options={WEIGHTS: str(folder / "weights")}) as session:
        session.add_graph(1, doubled(attrs))
        with pytest.raises(error, match=words):
            session.run(1)
        assert session.var_manager.get_var_malloc_mem_size() == 0
        assert session.memory_manager.counts.live_blocks == 0


# --- names that meet -------------------------------------------------------------------------------------------------


def test_graphs_that_mean_other_bytes_by_one_name(host: HostControls, folder: Path) -> None:
    """GE gives the second graph the bytes of the first."""
    with Session(host_runtime(), options={WEIGHTS: str(folder / "weights")}) as session:
        session.add_graph(1, doubled({"location": "w.bin"}))
        session.add_graph(2, doubled({"location": "w.bin", "offset": 16}))
        session.add_graph(3, doubled({"location": "w.bin"}), {WEIGHTS: str(folder / "others")})
        session.add_graph(4, doubled({"location": "stage/w.bin", "offset": 0}))
        session.run(1)
        for graph, words in ((2, r"from 0 on of .*from 16 on of"), (3, r"weights/w\.bin .*others/w\.bin")):
            with pytest.raises(VariableError, match=f"'w0'.*{words}.*; rename it") as caught:
                session.run(graph)
            assert caught.value.status == PARAM_INVALID
        for graph in (4, 1):
            assert session.run(graph)[0].tolist() == (VALUES[:4] * 2).tolist()
        session.var_manager.free_var_memory()  # what was loaded is forgotten with the memory
        assert session.run(2)[0].tolist() == (VALUES[4:] * 2).tolist()


def test_equal_bytes_of_another_place_are_the_same(host: HostControls, folder: Path, calls: list[object]) -> None:
    """A folder that was copied, for a graph or a model; they are compared with what is on the device."""
    other = folder / "others" / "w.bin"
    other.write_bytes((folder / "weights" / "w.bin").read_bytes())
    with Session(host_runtime(), options={"ge.exec.variable_acc": "False"}) as session:
        session.add_graph(1, doubled({"location": "w.bin"}), {WEIGHTS: str(folder / "weights")})
        session.add_graph(2, doubled({"location": "w.bin"}), {WEIGHTS: str(folder / "others")})
        for graph in (1, 2):
            assert session.run(graph)[0].tolist() == (VALUES[:4] * 2).tolist()
        write_om(folder / "m.om", session.get_compiled_model(1))
        with load_model(folder / "m.om", session=session, weight_dir=folder / "others") as loaded:
            assert loaded.tensor("w0").sharing == "shared: variable of the session"
            assert loaded.upload.size_bytes == 0
        other.write_bytes(VALUES[:3].tobytes() + b"else")
        with pytest.raises(
            VariableError, match=r"'w0': the session has .*weights/w\.bin .* for it on device 0, which are not"
        ):
            load_model(folder / "m.om", session=session, weight_dir=folder / "others")
        assert session.run(1)[0].tolist() == (VALUES[:4] * 2).tolist()
        assert calls == ["w0"] * 2


def test_a_file_that_changed_under_a_session(host: HostControls, folder: Path) -> None:
    """Another graph of the name gets what the file has, or an error; GE gives it what was brought before."""
    path = folder / "weights" / "w.bin"
    with Session(host_runtime(), options={WEIGHTS: str(folder / "weights")}) as session:
        session.add_graph(1, doubled({"location": "w.bin"}))
        session.add_graph(2, doubled({"location": "w.bin"}))
        session.run(1)
        path.write_bytes(VALUES.tobytes())
        assert session.run(2)[0].tolist() == (VALUES[:4] * 2).tolist()
        session.remove_graph(2)
        path.write_bytes((VALUES * 3).tobytes())
        session.add_graph(3, doubled({"location": "w.bin"}))
        with pytest.raises(
            VariableError, match=r"'w0'.*w\.bin .changed at .*; rename it, or call free_var_memory first"
        ):
            session.run(3)
        assert session.run(1)[0].tolist() == (VALUES[:4] * 2).tolist()
        session.var_manager.free_var_memory()
        assert session.run(3)[0].tolist() == (VALUES[:4] * 6).tolist()


@pytest.mark.parametrize("is_same", [True, False])
def test_a_name_that_two_graphs_of_a_model_have(host: HostControls, folder: Path, is_same: bool) -> None:
    body = ComputeGraph("body")
    inner = weight(body, "w0", location="w.bin", offset=0 if is_same else 16)
    end = body.add_node(OpDesc("end", "NetOutput", inputs=[ROW.replace(attrs={"_parent_node_index": AttrDef(i=0)})]))
    op(body, "inner", "Add", [inner, inner], ROW).out_data_anchor(0).link_to(end.in_data_anchor(0))
    graph = ComputeGraph("main")
    outer = weight(graph, "w0", location="w.bin", offset=0)
    call = graph.add_node(OpDesc("call", "PartitionedCall", outputs=[ROW]))
    graph.add_subgraph(call, body)
    outputs(graph, op(graph, "sum", "Add", [outer, call], ROW))
    with Session(host_runtime(), options={WEIGHTS: str(folder / "weights")}) as session:
        session.add_graph(1, graph)
        if is_same:
            assert session.run(1)[0].tolist() == (VALUES[:4] * 3).tolist()
            return
        with pytest.raises(GraphError, match="has a FileConstant of this name, too; rename one") as caught:
            session.run(1)
        assert (caught.value.node, caught.value.status) == ("w0", UNSUPPORTED)
