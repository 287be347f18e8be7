"""Variables of a loaded model in the execution graph, on a runtime: looked up once per load, used in every run."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from acl_shim.host import HostControls
from gevar import Session, load_model
from gevar.errors import GevarError, VariableError
from gevar.om import open_om
from gevar.runtime import LoweringGlobalData, ModelExecutor, lowering_copy, lowering_variable
from gevar.session.file_tensors import file_tensors
from gevar.types import DeviceId
from gevar.var import VarOp
from gevar.var.var_op import REF_VAR_SRC_VAR_NAME
from tests.helpers.models import small_model
from tests.helpers.runtime import fail_until_passes, host_runtime, live_now

D0, D1 = DeviceId(0), DeviceId(1)


class Small:
    """The small model's file, its values and its nodes, and a graph that copies `start` to memory and back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.values = small_model(path)
        with open_om(path) as om:
            self.ops = {tensor.node.name: tensor.var_op() for tensor in file_tensors(om)}
        self.shared = LoweringGlobalData()
        self.start = lowering_variable(self.ops["start"], self.shared)
        self.scale = lowering_variable(self.ops["scale"], self.shared)
        outputs = self.ops["start"].output_desc  # 60 bytes of data in 96 of memory
        self.copy = lowering_copy(VarOp("id", "Identity", outputs), self.start, self.shared)
        assign = VarOp("assign", "Assign", outputs, attrs={REF_VAR_SRC_VAR_NAME: "start"})
        self.assign = lowering_copy(assign, self.copy, self.shared)

    def executor(self, session: Session, device_id: DeviceId = D0) -> ModelExecutor:
        return ModelExecutor(self.shared.graph, session.rt_session, session.memory_manager, device_id)


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path / "small.om")


def test_runs_see_what_variables_hold_now(host: HostControls, small: Small) -> None:
    host.configure(devices=2)
    with Session(host_runtime()) as session:
        models = [load_model(small.path, session=session, device_id=device) for device in (D0, D1)]
        models[1].write("start", np.full((3, 5), 7, np.float32))
        outputs = [small.start.addr, small.scale.addr, small.copy.addr, small.assign.addr]
        expected = [small.values["start"].tobytes(), np.full((3, 5), 7, np.float32).tobytes()]
        for device, start in zip((D0, D1), expected, strict=True):
            with small.executor(session, device) as executor:
                executor.load()
                for _ in range(3):
                    wanted = [start, small.values["scale"].tobytes(), start, start]
                    got = executor.execute(outputs)
                    assert [value[: len(data)] for value, data in zip(got, wanted, strict=True)] == wanted
        models[0].write("start", np.zeros((3, 5), np.float32))
        with small.executor(session) as executor:
            executor.load()
            assert executor.execute([small.copy.addr])[0][:60] == bytes(60)


def test_a_run_leaves_no_memory_behind(host: HostControls, small: Small) -> None:
    with Session(host_runtime()) as session, load_model(small.path, session=session):
        before = live_now(host)
        with small.executor(session) as executor:
            executor.load()
            assert live_now(host) == before
            for _ in range(5):
                executor.execute([small.copy.addr])
            assert live_now(host) == before


def test_a_model_that_is_not_on_the_device(host: HostControls, small: Small) -> None:
    host.configure(devices=2)
    with Session(host_runtime()) as session, load_model(small.path, session=session):
        executor = small.executor(session, D1)
        with pytest.raises(VariableError, match="not restored on device 1"):
            executor.load()
        assert not executor.is_loaded


@pytest.mark.parametrize("function", ["aclrtMallocWithCfg", "aclrtMemcpy"])
def test_each_call_of_a_run_fails_once(host: HostControls, small: Small, function: str) -> None:
    with Session(host_runtime()) as session, load_model(small.path, session=session) as loaded:
        with small.executor(session) as executor:
            executor.load()
            run: Callable[[], object] = lambda: executor.execute([small.assign.addr])  # noqa: E731
            assert fail_until_passes(host, function, run) >= 1
        assert np.array_equal(loaded.read("start"), small.values["start"])


def test_a_closed_session_has_no_variables(host: HostControls, small: Small) -> None:
    session = Session(host_runtime())
    load_model(small.path, session=session)
    executor = small.executor(session)
    session.close()
    with pytest.raises(GevarError, match="has no variables"):
        executor.load()
