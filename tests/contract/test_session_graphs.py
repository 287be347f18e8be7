"""Training over two graphs that share variables, on a runtime: the same numbers as plain numpy, step by step."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from acl_shim.host import HostControls
from gevar import Session
from gevar.errors import LoadError, StateError
from gevar.formats import transfer
from gevar.graph import AttrValue, ComputeGraph, OpDesc
from gevar.session.caller_device import current_context
from gevar.session.graph_compiler import CompiledGraph
from gevar.types import DataType, DeviceId, Format, TensorDesc
from gevar.types.format import primary_format
from tests.helpers.runtime import host_runtime, live_now
from tests.helpers.training_graphs import (
    F32,
    FEATURES,
    FORMS,
    SCALAR,
    SHAPE,
    NumpyTraining,
    W,
    const,
    data,
    op,
    outputs,
    predict,
    update,
    variable,
)

STEPS = 5
Floats = npt.NDArray[np.float32]


def _stored(session: Session, name: str = "w") -> bytes:
    """The bytes of a variable as they lie on the device."""
    vm = session.var_manager
    desc = vm.get_cur_var_desc(name)
    value = np.empty(int(np.prod(desc.shape)) * 4, np.uint8)
    vm.read_var_memory(vm.get_var_addr(name, desc), value)
    return value.tobytes()


class Training:
    """Five steps in a session and in numpy, compared after every run; keeps what was compiled."""

    def __init__(self, session: Session, forms: Sequence[str], cache: Path | None = None) -> None:
        self.session, self.forms = session, forms
        self.compiled: list[CompiledGraph] = []
        for graph_id, graph in ((1, predict()), (2, update(forms))):
            options = {"ge.graph_compiler_cache_dir": str(cache), "ge.graph_key": f"g{graph_id}"} if cache else {}
            session.add_graph(graph_id, graph.to_proto(), options)
        self._random = np.random.default_rng(7)
        self.numpy = NumpyTraining(self._floats(SHAPE))
        self._compile(1)
        session.var_manager.write("w", self.numpy.w)
        session.var_manager.write("step", np.zeros(1, np.int32))

    def _floats(self, shape: tuple[int, ...]) -> Floats:
        return self._random.standard_normal(shape).astype(np.float32)

    def _compile(self, graph_id: int) -> None:
        found = self.session.compile(graph_id)
        if not any(found is known for known in self.compiled):
            self.compiled.append(found)

    def step(self) -> None:
        x, gradient = self._floats((2, FEATURES)), self._floats(SHAPE)
        self._compile(1)
        y, count = self.session.run(1, [x])
        assert np.array_equal(y, self.numpy.predict(x))
        assert count.tolist() == [self.numpy.step]
        self._compile(2)
        made = self.session.run(2, {"gradient": gradient})
        before = self.numpy.update(gradient)
        for form, array in zip(self.forms[1:], made, strict=False):
            assert np.array_equal(array, transfer(before + before, W, FORMS[form])), form
        self.check()

    def check(self) -> None:
        """The variable through the manager: as the framework sees it, and as it is stored."""
        vm = self.session.var_manager
        assert np.array_equal(vm.read("w", format=Format.FORMAT_NCHW), self.numpy.w)
        form = FORMS[self.forms[0]] if len(self.compiled) > 1 else W
        stored = self.numpy.w if form is W else transfer(self.numpy.w, W, form)
        assert _stored(self.session) == stored.tobytes()
        assert vm.read("step").tolist() == [self.numpy.step]
        vm.check()


@pytest.mark.parametrize(
    "forms", [["NC1HWC0", "FRACTAL_Z"], ["FRACTAL_Z", "NC1HWC0"], ["NC1HWC0"], ["FRACTAL_Z"], ["NCHW", "FRACTAL_Z"]]
)
def test_five_steps_give_the_numbers_of_numpy(host: HostControls, forms: list[str]) -> None:
    with Session(host_runtime()) as session:
        training = Training(session, forms)
        for _ in range(STEPS):
            training.step()
        is_changed = forms[0] != "NCHW"
        # the first graph is compiled again once, and the bytes are converted once
        assert [one.graph_id for one in training.compiled] == ([1, 2, 1] if is_changed else [1, 2])
        assert sum(len(one.converted) for one in training.compiled) == int(is_changed)
        assert primary_format(session.var_manager.get_cur_var_desc("w").format) == primary_format(
            FORMS[forms[0]].format
        )


def test_a_second_start_compiles_nothing_and_gives_the_same(host: HostControls, tmp_path: Path) -> None:
    tables, stored, states = [], [], []
    for start in range(2):
        with Session(host_runtime()) as session:
            training = Training(session, ["NC1HWC0", "FRACTAL_Z"], tmp_path)
            for _ in range(STEPS):
                training.step()
            assert [one.is_from_cache for one in training.compiled] == [start == 1] * 3
            assert [one.converted for one in training.compiled] == [(), ("w",), ()]
            assert all(bool(one.log.records) == (start == 0) for one in training.compiled)
            tables.append([(row.key, row.logic_addr, row.capacity_bytes) for row in session.var_manager.table()])
            stored.append(_stored(session))
            states.append(session.var_manager.var_desc_info_to_serial().SerializeToString(deterministic=True))
    assert (tables[0], stored[0], states[0]) == (tables[1], stored[1], states[1])


def test_a_graph_that_comes_again_converts_nothing_again(host: HostControls, tmp_path: Path) -> None:
    """Its model is found in the cache, where it tells of the conversion that the bytes have behind them."""
    with Session(host_runtime()) as session:
        training = Training(session, ["FRACTAL_Z"], tmp_path)
        training.step()
        for _ in range(2):
            session.remove_graph(2)
            options = {"ge.graph_compiler_cache_dir": str(tmp_path), "ge.graph_key": "g2"}
            session.add_graph(2, update(["FRACTAL_Z"]), options)
            compiled = session.compile(2)
            assert (compiled.is_from_cache, compiled.converted) == (True, ())
            training.check()
            training.step()


def test_a_cached_model_of_other_weights_is_compiled_anew(host: HostControls, tmp_path: Path) -> None:
    """One byte of a constant differs; the other start still finds its own."""
    desc = TensorDesc(F32, Format.FORMAT_ND, (4,))
    options = {"ge.graph_compiler_cache_dir": str(tmp_path), "ge.graph_key": "k"}
    for number, (value, is_known) in enumerate([(1.0, False), (1.5, False), (1.0, True), (1.5, True)]):
        graph = ComputeGraph("main")
        x, c = data(graph, "x", 0, desc), const(graph, "c", np.full(4, value, np.float32), desc)
        with Session(host_runtime(), options=options) as session:
            session.add_graph(1, outputs(graph, op(graph, "sum", "Add", [x, c], desc)))
            assert session.compile(1).is_from_cache == is_known, number
            assert session.run(1, [np.ones(4, np.float32)])[0].tolist() == [value + 1] * 4


def test_bytes_are_converted_when_the_graph_is_compiled(host: HostControls) -> None:
    """So that nobody reads or writes a variable in a form that its bytes do not have yet."""
    with Session(host_runtime()) as session:
        training = Training(session, ["NC1HWC0"])
        session.compile(2)
        assert np.array_equal(session.var_manager.read("w", format=Format.FORMAT_NCHW), training.numpy.w)
        training.numpy.w += 1
        session.var_manager.write("w", training.numpy.w, format=Format.FORMAT_NCHW)
        training.step()  # runs the first graph before the second one


def test_the_graph_that_changes_a_variable_may_come_first(host: HostControls) -> None:
    rng = np.random.default_rng(1)
    gradient, x = rng.standard_normal(SHAPE).astype(np.float32), rng.standard_normal((2, FEATURES)).astype(np.float32)
    with Session(host_runtime()) as session:
        session.add_graph(2, update(["FRACTAL_Z"]))
        assert session.compile(2).converted == ()
        reference = NumpyTraining(rng.standard_normal(SHAPE).astype(np.float32))
        session.var_manager.write("w", reference.w, format=Format.FORMAT_NCHW)
        session.run(2, [gradient])
        reference.update(gradient)
        session.add_graph(1, predict())
        assert session.compile(1).converted == ()
        session.var_manager.write("step", np.zeros(1, np.int32))
        y, _ = session.run(1, {"x": x})
        assert np.array_equal(y, reference.predict(x))
        assert not session.compile(2).converted


def test_a_third_graph_finds_the_changed_variable(host: HostControls) -> None:
    """It wants a form that the variable, which changes once, does not get."""
    with Session(host_runtime()) as session:
        training = Training(session, ["NC1HWC0"])
        training.step()
        session.add_graph(3, update(["FRACTAL_Z"]))
        gradient = np.ones(SHAPE, np.float32)
        session.run(3, [gradient])
        training.numpy.update(gradient)
        training.check()
        assert session.compile(3).converted == ()
        training.step()


def test_initial_values_follow_the_conversion(host: HostControls) -> None:
    from gevar.proto import ge_ir
    from gevar.proto.tensor_descriptor import tensor_desc_to_proto

    value = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE)
    tensor = ge_ir.TensorDef(desc=tensor_desc_to_proto(W), data=value.tobytes())
    for order in ((1, 2), (2, 1)):
        graphs = {1: predict(), 2: update(["NC1HWC0", "FRACTAL_Z"])}
        for graph in graphs.values():
            desc = graph["w"].op_desc.output_desc(0).replace(attrs={"_init_value": ge_ir.AttrDef(t=tensor)})
            graph["w"].op_desc.update_output_desc(0, desc)
        with Session(host_runtime()) as session:
            for graph_id in order:
                session.add_graph(graph_id, graphs[graph_id])
                session.compile(graph_id)
            assert np.array_equal(session.var_manager.read("w", format=Format.FORMAT_NCHW), value)
            session.run(2, [np.zeros(SHAPE, np.float32)])
            expected = value - value * np.float32(0.25)
            assert np.array_equal(session.var_manager.read("w", format=Format.FORMAT_NCHW), expected)


def test_a_form_of_the_same_size_is_converted_in_place(host: HostControls) -> None:
    plain = TensorDesc(F32, Format.FORMAT_NCHW, (2, 32, 2, 2), Format.FORMAT_NCHW, (2, 32, 2, 2))
    stored = plain.replace(format=FORMS["NC1HWC0"].format, shape=(2, 2, 2, 2, 16))
    value = np.arange(256, dtype=np.float32).reshape(plain.shape)
    with Session(host_runtime()) as session:
        session.add_graph(1, _double(plain))
        session.add_graph(2, _double(plain, stored))
        session.compile(1)
        session.var_manager.write("w", value)
        before = session.var_manager.get_var_addr("w", plain)
        [doubled] = session.run(2)
        assert np.array_equal(doubled, transfer(value + value, plain, stored))
        vm = session.var_manager
        assert vm.get_var_addr("w", vm.get_cur_var_desc("w")) == before
        assert _stored(session) == transfer(value, plain, stored).tobytes()
        assert np.array_equal(session.run(1)[0], value + value)


def _double(plain: TensorDesc, stored: TensorDesc | None = None) -> ComputeGraph:
    graph = ComputeGraph("double")
    w = variable(graph, "w", plain)
    here = w if stored is None else op(graph, "in", "TransData", [w], stored)
    return outputs(graph, op(graph, "doubled", "Add", [here, here], stored or plain))


def test_a_road_that_moves_no_byte_over_two_graphs(host: HostControls) -> None:
    """The variable is in its new form at once, and not there in its first one any more."""
    flat = TensorDesc(F32, Format.FORMAT_ND, (4, 180), Format.FORMAT_ND, (4, 180))
    second = ComputeGraph("second")
    here = op(second, "in", "Reshape", [variable(second, "w", W)], flat)
    outputs(second, op(second, "doubled", "Add", [here, here], flat))
    value = np.arange(720, dtype=np.float32).reshape(SHAPE)
    with Session(host_runtime()) as session:
        session.add_graph(1, _double(W))
        session.add_graph(2, second)
        session.compile(1)
        session.var_manager.write("w", value)
        assert session.compile(2).converted == ("w",)
        assert np.array_equal(session.run(2)[0], (value + value).reshape(flat.shape))
        assert np.array_equal(session.run(1)[0], value + value)
        assert _stored(session) == value.tobytes()


def test_an_initialising_graph_and_writers_behind_each_other(host: HostControls) -> None:
    """Assign, AssignAdd and AssignSub in one chain, and an Assign that the passes remove."""
    desc = TensorDesc(F32, Format.FORMAT_ND, (3,))
    first = np.array([1, 2, 3], np.float32)
    graph = ComputeGraph("init")
    v, other = variable(graph, "v", desc), variable(graph, "computed", desc)
    start, one = const(graph, "start", first, desc), const(graph, "two", np.array(2, np.float32), SCALAR)
    chain = op(graph, "set", "Assign", [v, start], desc)
    chain = op(graph, "more", "AssignAdd", [chain, one], desc)
    chain = op(graph, "less", "AssignSub", [chain, start], desc)
    product = op(graph, "product", "Mul", [data(graph, "x", 0, desc), start], desc)
    op(graph, "kept", "Assign", [other, product], desc)
    with Session(host_runtime()) as session:
        session.add_graph(0, outputs(graph, chain))
        [value] = session.run(0, [first])
        assert value.tolist() == session.var_manager.read("v").tolist() == [2, 2, 2]
        assert session.var_manager.read("computed").tolist() == [1, 4, 9]
        assert "kept" not in session.compile(0).graph
        assert session.run(0, [first * 2])[0].tolist() == [2, 2, 2]
        assert session.var_manager.read("computed").tolist() == [2, 8, 18]


def test_casts_of_a_variable(host: HostControls) -> None:
    """A road of two steps, and halves as numpy rounds them."""
    half = FORMS["NC1HWC0"].replace(dtype=DataType.DT_FLOAT16)
    value = np.random.default_rng(3).standard_normal(SHAPE).astype(np.float32)
    graph = ComputeGraph("halves")
    w = variable(graph, "w", W)
    here = op(graph, "in", "TransData", [w], FORMS["NC1HWC0"])
    halves = op(graph, "halves", "Cast", [here], half)
    outputs(graph, op(graph, "sum", "Add", [halves, halves], half))
    with Session(host_runtime()) as session:
        session.add_graph(1, predict())
        session.add_graph(2, graph)
        session.compile(1)
        session.var_manager.write("w", value)
        assert session.compile(2).converted == ("w",)
        wanted = np.asarray(transfer(value.astype(np.float16), half.replace(format=0, shape=SHAPE), half), np.float16)
        assert np.array_equal(session.run(2)[0], wanted + wanted)
        road = session.var_manager.get_trans_road("w")
        assert road is not None
        assert [step.node_type for step in road] == ["TransData", "Cast"]


def test_a_file_constant(host: HostControls, tmp_path: Path) -> None:
    desc = TensorDesc(F32, Format.FORMAT_ND, (4,), size=16)
    value = np.array([1, 2, 3, 4], np.float32)
    (tmp_path / "w.bin").write_bytes(value.tobytes())
    attrs: dict[str, AttrValue] = {"location": "w.bin", "offset": 0, "length": 16}
    graph = ComputeGraph("file")
    source = graph.add_node(OpDesc("c", "FileConstant", outputs=[desc], attrs=attrs))
    outputs(graph, op(graph, "sum", "Add", [source, source], desc))
    with Session(host_runtime()) as session:
        session.add_graph(1, graph, {"ge.externalWeightDir": str(tmp_path)})
        assert session.run(1)[0].tolist() == (value + value).tolist()
        session.var_manager.free_var_memory()
        assert session.run(1)[0].tolist() == (value + value).tolist()
    with Session(host_runtime()) as session:
        session.add_graph(1, graph)
        with pytest.raises(LoadError, match="no directory is known"):
            session.run(1)


def test_runs_leave_no_memory_behind(host: HostControls) -> None:
    with Session(host_runtime()) as session:
        training = Training(session, ["NC1HWC0"])
        training.step()
        training.step()
        before = live_now(host)
        for _ in range(3):
            training.step()
        assert live_now(host) == before
        session.remove_graph(1)
        session.remove_graph(2)
        assert np.array_equal(session.var_manager.read("w", format=Format.FORMAT_NCHW), training.numpy.w)
        session.add_graph(2, update(["NC1HWC0"]))
        session.run(2, [np.zeros(SHAPE, np.float32)])
        training.numpy.update(np.zeros(SHAPE, np.float32))
        assert np.array_equal(session.var_manager.read("w", format=Format.FORMAT_NCHW), training.numpy.w)


def test_memory_that_was_freed_is_got_again(host: HostControls) -> None:
    with Session(host_runtime()) as session:
        training = Training(session, ["NC1HWC0"])
        training.step()
        session.var_manager.free_var_memory()
        session.var_manager.write("w", training.numpy.w, format=Format.FORMAT_NCHW)
        session.var_manager.write("step", np.ones(1, np.int32))
        training.step()


def test_variables_sleep_between_runs(host: HostControls) -> None:
    with Session(host_runtime()) as session:
        training = Training(session, ["NC1HWC0"])
        training.step()
        session.sleep()
        with pytest.raises(StateError, match="sleep on device 0: call wake"):
            session.run(2, [np.zeros(SHAPE, np.float32)])
        session.wake()
        training.check()
        training.step()


def test_graphs_run_on_the_device_of_the_session(host: HostControls) -> None:
    host.configure(devices=2)
    runtime = host_runtime()
    with Session(runtime, options={"ge.exec.deviceId": "1"}) as session:
        graph = ComputeGraph("main")
        desc = TensorDesc(F32, Format.FORMAT_ND, (2,))
        start = const(graph, "one", np.ones(2, np.float32), desc)
        session.add_graph(0, outputs(graph, op(graph, "set", "Assign", [variable(graph, "v", desc), start], desc)))
        runtime.device(0).enter()
        before = current_context(runtime)
        assert session.run(0)[0].tolist() == [1, 1]
        assert current_context(runtime) == before
        assert session.var_manager.read("v", DeviceId(1)).tolist() == [1, 1]
        addr = session.var_manager["v"].logic_addr
        assert session.var_manager.get_var_mgr_info(addr, DeviceId(0)) is None


def test_an_assign_in_the_plain_form_keeps_the_variable_as_it_is(host: HostControls) -> None:
    """The variable is read through a conversion and written as it is: nothing is folded, the numbers are right."""
    graph = ComputeGraph("main")
    w = variable(graph, "w", W)
    here = op(graph, "in", "TransData", [w], FORMS["FRACTAL_Z"])
    doubled = op(graph, "doubled", "Add", [here, here], FORMS["FRACTAL_Z"])
    back = op(graph, "back", "TransData", [doubled], W)
    outputs(graph, op(graph, "set", "Assign", [w, back], W))
    value = np.random.default_rng(5).standard_normal(SHAPE).astype(np.float32)
    with Session(host_runtime()) as session:
        session.add_graph(1, graph)
        session.compile(1)
        session.var_manager.write("w", value)
        for _ in range(3):
            value = value + value
            assert np.array_equal(session.run(1)[0], value)
            assert _stored(session) == value.tobytes()
        assert session.var_manager.get_trans_road("w") is None


def test_threads_run_one_after_another(host: HostControls) -> None:
    with Session(host_runtime()) as session:
        Training(session, ["NC1HWC0"])
        x, gradient = np.zeros((2, FEATURES), np.float32), np.zeros(SHAPE, np.float32)

        def work(graph_id: int) -> None:
            for _ in range(5):
                session.run(graph_id, [x if graph_id == 1 else gradient])

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, (1, 2, 1, 2)))
        assert session.var_manager.read("step").tolist() == [10]
        session.var_manager.check()
