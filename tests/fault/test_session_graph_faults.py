"""A graph that cannot be compiled, loaded or run: variables, their bytes, memory and rebuild control are as before."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from acl_shim.host import HostControls
from gevar import Session
from gevar.errors import AclError, GevarError, GraphError, ModelFileError, StateError, VariableError
from gevar.formats import transfer
from gevar.graph import ComputeGraph, OpDesc
from gevar.om import open_om, write_om
from gevar.proto import ge_ir
from gevar.session import graph_compiler
from gevar.session.graph_executor import GraphExecutor
from gevar.status import PARAM_INVALID, UNSUPPORTED
from gevar.types import DataType, DeviceId, Format, TensorDesc
from tests.helpers.runtime import host_runtime, live_now
from tests.helpers.training_graphs import (
    F32,
    FORMS,
    SHAPE,
    NumpyTraining,
    W,
    data,
    op,
    outputs,
    predict,
    update,
    variable,
)

START = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE)
STEP = np.zeros(1, np.int32)
ROW = TensorDesc(F32, Format.FORMAT_ND, (4,))


def _state(session: Session, *names: str) -> list[object]:
    """All that the manager keeps, the bytes of variables, and which graphs are to be compiled again."""
    vm = session.var_manager
    control = session._graph_session().rebuild_ctrl
    marks = [control.is_graph_need_rebuild(graph_id) for graph_id in (1, 2)]
    permits = [control.is_var_permit_to_change_formats(name) for name in names]
    vm.check()
    return [vm.var_manager_to_bytes(), vm.table(), vm.get_var_malloc_mem_size(), marks, permits] + [
        vm.read(name).tobytes() for name in names
    ]


def _started(session: Session, *graphs: ComputeGraph) -> None:
    """The first graph has run, so its variables have bytes; the others are added."""
    session.add_graph(1, predict())
    session.compile(1)
    session.var_manager.write("w", START)
    session.var_manager.write("step", STEP)
    session.run(1, [np.zeros((2, 180), np.float32)])
    for number, graph in enumerate(graphs, 2):
        session.add_graph(number, graph)


# -- each call to the device fails once


CALLS = ["aclrtMallocWithCfg", "aclrtMallocPhysical", "aclrtMapMem", "aclrtMemcpy"]


def _fail_each(host: HostControls, function: str, call: Callable[[], object], session: Session) -> int:
    """Fail call 1, 2, 3 … of a function until all go well; after each failure everything is as before."""
    before, alive = _state(session, "w", "step"), live_now(host)
    for n in count(1):
        host.fail_nth(function, n, 507899)
        try:
            call()
        except GevarError:
            host.clear_failures()
        else:
            host.clear_failures()
            return n - 1
        assert _state(session, "w", "step") == before, n
        assert live_now(host) == alive, n
    raise AssertionError("unreachable")


@pytest.mark.parametrize("function", CALLS)
def test_each_call_of_a_compilation_fails_once(host: HostControls, function: str) -> None:
    with Session(host_runtime()) as session:
        _started(session, update(["NC1HWC0", "FRACTAL_Z"]))
        failures = _fail_each(host, function, lambda: session.compile(2), session)
        assert failures > 0 or function != "aclrtMemcpy"
        assert session.compile(2).converted == ("w",)
        assert np.array_equal(session.var_manager.read("w", format=Format.FORMAT_NCHW), START)


def test_a_conversion_in_place_that_fails_leaves_the_old_bytes(host: HostControls) -> None:
    """Two variables change; the first is converted in its own memory before the second fails."""
    plain = TensorDesc(F32, Format.FORMAT_NCHW, (2, 32, 2, 2), Format.FORMAT_NCHW, (2, 32, 2, 2))
    stored = plain.replace(format=FORMS["NC1HWC0"].format, shape=(2, 2, 2, 2, 16))
    first, second = ComputeGraph("first"), ComputeGraph("second")
    for name in ("w", "step"):
        v = variable(first, name, plain)
        op(first, f"{name}_sum", "Add", [v, v], plain)
        here = op(second, f"{name}_in", "TransData", [variable(second, name, plain)], stored)
        op(second, f"{name}_sum", "Add", [here, here], stored)
    value = np.arange(256, dtype=np.float32).reshape(plain.shape)
    with Session(host_runtime()) as session:
        session.add_graph(1, first)
        session.add_graph(2, second)
        session.compile(1)
        for name in ("w", "step"):
            session.var_manager.write(name, value)
        assert _fail_each(host, "aclrtMemcpy", lambda: session.compile(2), session) >= 4
        for name in ("w", "step"):
            assert np.array_equal(session.var_manager.read(name, format=Format.FORMAT_NCHW), value)
            assert session.var_manager.read(name).shape == stored.shape


@pytest.mark.parametrize("function", CALLS)
def test_each_call_of_a_load_fails_once(host: HostControls, function: str) -> None:
    with Session(host_runtime()) as session:
        _started(session, update(["NC1HWC0"]))
        compiled = session.compile(2)
        load = lambda: GraphExecutor(session, compiled, ["gradient"], DeviceId(0)).close()  # noqa: E731
        assert _fail_each(host, function, load, session) > 0 or not function.startswith("aclrtMemcpy")


def test_each_copy_of_a_run_fails_once(host: HostControls) -> None:
    with Session(host_runtime()) as session:
        _started(session, update(["NC1HWC0"]))
        reference = NumpyTraining(START)
        session.compile(2)
        session.run(2, [np.zeros(SHAPE, np.float32)])
        alive = live_now(host)
        before = transfer(START, W, FORMS["NC1HWC0"]).tobytes()
        reference.update(START)
        after = transfer(reference.w, W, FORMS["NC1HWC0"]).tobytes()
        seen = []
        for n in count(1):
            session.var_manager.write("w", START, format=Format.FORMAT_NCHW)
            host.fail_nth("aclrtMemcpy", n, 507899)
            try:
                session.run(2, [START])
            except AclError:
                host.clear_failures()
            else:
                host.clear_failures()
                break
            seen.append(session.var_manager.read("w").tobytes())
            assert live_now(host) == alive, n
        assert seen[0] == before
        assert seen[-1] == after  # the copy of an output failed, when all was done
        assert set(seen) == {before, after}
        assert session.var_manager.read("w").tobytes() == after


# -- compilations that fail late


@pytest.mark.parametrize("where", ["place_weights", "trans_all_var_data", "VarMemAssignUtil"])
def test_what_the_passes_did_is_taken_back(
    host: HostControls, monkeypatch: pytest.MonkeyPatch, where: str, tmp_path: Path
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise VariableError("w", "no luck")

    with Session(host_runtime()) as session:
        _started(session, update(["NC1HWC0"]))
        before, alive = _state(session, "w", "step"), live_now(host)
        with monkeypatch.context() as patch:
            patch.setattr(graph_compiler, where, fail)
            with pytest.raises(VariableError, match="no luck"):
                session.compile(2)
        assert _state(session, "w", "step") == before
        assert live_now(host) == alive
        assert session.run(1, [np.zeros((2, 180), np.float32)])[1].tolist() == [2]
        assert session.compile(2).converted == ("w",)


def test_a_cache_that_is_not_there(host: HostControls, tmp_path: Path) -> None:
    options = {"ge.graph_compiler_cache_dir": str(tmp_path / "gone"), "ge.graph_key": "k"}
    with Session(host_runtime(), options=options) as session:
        session.add_graph(1, predict())
        with pytest.raises(ModelFileError, match="gone"):
            session.run(1, [np.zeros((2, 180), np.float32)])
        (tmp_path / "gone").mkdir()
        session.compile(1)
        assert (tmp_path / "gone" / "k.idx").exists()


def test_a_damaged_entry_is_an_error(host: HostControls, tmp_path: Path) -> None:
    options = {"ge.graph_compiler_cache_dir": str(tmp_path), "ge.graph_key": "k"}
    for start in range(2):
        with Session(host_runtime(), options=options) as session:
            session.add_graph(1, predict())
            if start == 0:
                session.compile(1)
                continue
            [model] = tmp_path.glob("*.om")
            model.write_bytes(model.read_bytes()[:100])
            with pytest.raises(ModelFileError, match=model.name):
                session.compile(1)
            assert session.var_manager.table() == ()


def test_a_cached_model_of_another_graph_is_refused(host: HostControls, tmp_path: Path) -> None:
    """Under a key that two graphs have, or put there by hand; the session is as before, and goes on without it."""
    options = {"ge.graph_compiler_cache_dir": str(tmp_path), "ge.graph_key": "k"}
    with Session(host_runtime(), options=options) as session:
        session.add_graph(1, update(["NCHW"]))
        session.compile(1)
    with Session(host_runtime(), options=options) as session:
        _started_without_cache(session)
        session.add_graph(2, predict(), {"ge.graph_key": "k"})
        before, alive = _state(session, "w", "step"), live_now(host)
        takes = r"takes \{'gradient': 'DT_FLOAT \[4, 20, 3, 3\]'\} and gives 1 outputs, the graph \{'x': .*ge.graph_key"
        with pytest.raises(GraphError, match=takes) as caught:
            session.compile(2)
        assert caught.value.graph == "update"
        assert _state(session, "w", "step") == before
        assert live_now(host) == alive
        session.remove_graph(2)
        session.add_graph(2, predict(), {"ge.graph_key": "own"})
        session.run(2, [np.zeros((2, 180), np.float32)])


def _started_without_cache(session: Session) -> None:
    session.add_graph(1, predict(), {"ge.graph_key": ""})
    session.compile(1)
    session.var_manager.write("w", START)
    session.var_manager.write("step", STEP)


# -- graphs and inputs that are refused


def _one(kind: str, source: TensorDesc, target: TensorDesc, second: TensorDesc | None = None) -> ComputeGraph:
    graph = ComputeGraph("one")
    sources = [data(graph, f"x{n}", n, desc) for n, desc in enumerate((source, second)) if desc is not None]
    return outputs(graph, op(graph, "it", kind, sources, target))


HALF = ROW.replace(dtype=DataType.DT_FLOAT16)
SQUARE = ROW.replace(shape=(2, 2))
REFUSED = {
    "no kernel": (_one("Softmax", ROW, ROW), "Softmax"),
    "unknown shape": (_one("Identity", ROW.replace(shape=(-1,)), ROW), "unknown dimension"),
    "packed type": (_one("Identity", ROW.replace(dtype=DataType.DT_INT4), ROW), "DT_INT4 has no element"),
    "one input": (_one("Add", ROW, ROW), "1 inputs are linked; it takes 2"),
    "types": (_one("Mul", ROW, ROW, HALF), "put a Cast before it"),
    "formats": (_one("Sub", FORMS["FRACTAL_Z"], W, W), "put a TransData before it"),
    "shapes": (_one("Sub", ROW, ROW, ROW.replace(shape=(3,))), "do not fit"),
    "output shape": (_one("Sub", ROW, ROW.replace(shape=(2,)), ROW), r"make \[4\], not \[2\]"),
    "no cast": (_one("Cast", ROW, ROW.replace(dtype=DataType.DT_BOOL)), "there is none of DT_FLOAT"),
    "reshape": (_one("Reshape", ROW, ROW.replace(shape=(3,))), "has other bytes"),
    "transfer": (_one("TransData", W, FORMS["NC1HWC0"].replace(shape=(4, 1, 3, 3, 16))), "shape"),
    "vectors": (_one("MatMul", ROW, ROW, ROW), "takes two matrices"),
    "inner size": (_one("MatMul", ROW.replace(shape=(2, 3)), SQUARE, SQUARE), "do not make"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_node_that_cannot_be_computed_is_named_before_anything_runs(host: HostControls, case: str) -> None:
    graph, why = REFUSED[case]
    with Session(host_runtime()) as session:
        session.add_graph(1, graph)
        state = session.var_manager.var_manager_to_bytes()
        with pytest.raises(GraphError, match=why) as caught:
            session.run(1, [np.zeros(4, np.float32)])
        assert caught.value.node in ("it", "x0")
        assert caught.value.status == UNSUPPORTED
        assert "one" in str(caught.value)
        assert session.var_manager.var_manager_to_bytes() == state


def test_a_node_behind_variables_is_refused_before_they_are_written(host: HostControls) -> None:
    graph = predict()
    op(graph, "odd", "Softmax", [graph["y"]], graph["y"].op_desc.output_desc(0))
    with Session(host_runtime()) as session:
        session.add_graph(1, graph)
        with pytest.raises(GraphError, match="Softmax"):
            session.run(1, [np.zeros((2, 180), np.float32)])
        assert session.var_manager.table() == ()
        assert not session.var_manager.is_var_exist("step")


def test_inputs_that_do_not_fit(host: HostControls) -> None:
    with Session(host_runtime()) as session:
        session.add_graph(1, predict())
        x = np.zeros((2, 180), np.float32)
        for inputs, why in (
            ([], r"takes 1 inputs, \['x'\]; 0 are given"),
            ([x, x], "2 are given"),
            ({"y": x}, r"\['x'\] are missing, \['y'\] are unknown"),
            ([x.astype(np.float64)], r"'x' of graph 1 is float64 \[2, 180\], 2880 B; give float32 \[2, 180\]"),
            ([x[:1]], r"\[1, 180\], 720 B; give float32 \[2, 180\]"),
        ):
            with pytest.raises(ValueError, match=why):
                session.run(1, inputs)
        session.var_manager.write("w", START)
        session.var_manager.write("step", STEP)
        assert session.run(1, [x])[1].tolist() == [1]  # the failed runs did not count


def test_ids_options_and_sessions_that_are_wrong(host: HostControls) -> None:
    session = Session(host_runtime())
    with session:
        session.add_graph(7, predict())
        with pytest.raises(GraphError, match="id 7 is taken") as caught:
            session.add_graph(7, predict())
        assert caught.value.status == PARAM_INVALID
        for call in (session.compile, session.run, session.remove_graph):
            with pytest.raises(GraphError, match=r"id 8 is not in .*, which has \[7\]"):
                call(8)
        with pytest.raises(ValueError, match=r"0\.\.4294967295"):
            session.add_graph(1 << 32, predict())
        with pytest.raises(TypeError, match="not str"):
            session.add_graph(8, "graph")  # type: ignore[arg-type]
        broken = ge_ir.GraphDef(name="broken", op=[ge_ir.OpDef(name="a", type="Add", input=["gone:0"])])
        with pytest.raises(GraphError, match="gone"):
            session.add_graph(8, broken)
        session.add_graph(8, predict())  # nothing of the broken one stayed
    with pytest.raises(StateError, match="closed"):
        session.run(7)
    for device, error in (("one", ValueError), ("9", AclError)):
        with (
            Session(host_runtime(), options={"ge.exec.deviceId": device}) as session,
            pytest.raises(error, match="is 'one'" if device == "one" else "107001"),
        ):
            session.add_graph(1, predict())


def test_a_model_is_read_back_unless_variables_may_change(host: HostControls, tmp_path: Path) -> None:
    with Session(host_runtime()) as session:
        session.add_graph(1, predict())
        session.add_graph(2, predict(), {"ge.exec.variable_acc": "True"})
        for number in (1, 2, 3):
            with pytest.raises(GraphError) as caught:
                session.get_compiled_model(number)
            assert caught.value.status == (UNSUPPORTED if number == 2 else PARAM_INVALID)
        compiled = session.compile(1)
        assert session.get_compiled_model(1) is compiled.model
        write_om(tmp_path / "one.om", session.get_compiled_model(1))
        with open_om(tmp_path / "one.om") as om:
            assert om.models[0].name == "predict"
        session.compile(2)
        with pytest.raises(GraphError, match=r"set it to False"):
            session.get_compiled_model(2)


def test_a_changed_copy_of_a_graph_does_not_count(host: HostControls) -> None:
    """The session has a copy: what the caller does with the graph afterwards is nothing to it, nor the other way."""
    graph = _one("Identity", ROW, ROW)
    message = graph.to_proto()
    with Session(host_runtime()) as session:
        session.add_graph(1, graph)
        graph.add_node(OpDesc("late", "Softmax", inputs=[ROW], outputs=[ROW]))
        assert session.run(1, [np.ones(4, np.float32)])[0].tolist() == [1] * 4
        graph.remove_node(graph["late"])
        assert graph.to_proto() == message
