"""What a load does on a card: the runtime loads the model too, onto the memory that gevar holds, and runs it.

The host runtime plays the card: it has the calls that load, and the four that run are put on top of it here, as a model
that gives back its inputs.
"""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from acl_shim import Runtime
from acl_shim.codes import MemcpyKind
from acl_shim.host import HostControls
from gevar import Session, load_model
from gevar.errors import AclError, OutOfMemoryError, StateError
from gevar.om import open_om
from gevar.session.acl_model import is_runnable
from gevar.session.loading import ExternalWeightAddress
from tests.helpers.models import small_model
from tests.helpers.runtime import host_runtime, live_now
from tests.helpers.shared import shared_path

HEAD = "data/om/nanotrack_head_cann8.om"
EXTERNAL = "data/om_vars/placeholders_and_combined.om"
NAMES = ("aclmdlCreateDataset", "aclmdlDestroyDataset", "aclmdlAddDatasetBuffer", "aclmdlExecute")


class Running:
    """The calls that run a model: datasets are lists of data buffers, and each output gets the bytes of an input."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.datasets: dict[int, list[int]] = {}
        self.executed: list[int] = []
        self.code = 0
        self._new = count(1)

    def aclmdlCreateDataset(self) -> int:
        number = next(self._new)
        self.datasets[number] = []
        return number

    def aclmdlDestroyDataset(self, dataset: int) -> int:
        del self.datasets[dataset]
        return 0

    def aclmdlAddDatasetBuffer(self, dataset: int, data_buffer: int) -> int:
        self.datasets[dataset].append(data_buffer)
        return 0

    def aclmdlExecute(self, model_id: int, inputs: int, outputs: int) -> int:
        self.executed.append(model_id)
        api = self.runtime.api
        for source, target in zip(self.datasets[inputs], self.datasets[outputs], strict=False):
            size = min(api.aclGetDataBufferSizeV2(source), api.aclGetDataBufferSizeV2(target))
            to, at = api.aclGetDataBufferAddr(target), api.aclGetDataBufferAddr(source)
            assert not api.aclrtMemcpy(to, size, at, size, MemcpyKind.ACL_MEMCPY_DEVICE_TO_DEVICE)
        return self.code


@pytest.fixture
def running(host: HostControls, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """The host runtime as a card, whose controls were opened before."""
    assert not host.live().models
    runtime = host_runtime()
    playing = Running(runtime)
    supports = Runtime.supports
    for name in NAMES:
        monkeypatch.setattr(runtime.api, name, getattr(playing, name))
    monkeypatch.setattr(Runtime, "supports", lambda self, name: name in NAMES or supports(self, name))
    monkeypatch.setattr(runtime, "backend", "npu")
    yield playing
    monkeypatch.undo()
    assert not playing.datasets


def calls(host: HostControls) -> dict[str, int]:
    return {name: host.calls(name) for name in ("aclmdlQuerySize", "aclmdlLoadWithConfig", "aclmdlUnload")}


def test_the_runtime_loads_onto_the_weights_of_gevar(running: Running, host: HostControls) -> None:
    path = shared_path(HEAD)
    with Session(running.runtime) as session:
        with load_model(path, session=session) as loaded:
            assert loaded.acl_model is not None
            assert host.live().models == 1
            assert host.live().blocks == 2, "weights and work memory, both of gevar"
            assert loaded.verify(path).differences == ()
            with open_om(path) as om:
                info = om.models[0].inout_info()
            assert info is not None
            assert [tensor.name for tensor in loaded.acl_model.desc.inputs] == [one.name for one in info.inputs]
            assert calls(host) == {"aclmdlQuerySize": 1, "aclmdlLoadWithConfig": 1, "aclmdlUnload": 0}
        assert calls(host)["aclmdlUnload"] == 1
        assert live_now(host).blocks == 0


def test_a_model_in_memory_is_handed_over_as_well(running: Running, host: HostControls) -> None:
    data = shared_path(HEAD).read_bytes()
    with Session(running.runtime) as session, load_model(data, session=session) as loaded:
        assert loaded.acl_model is not None
        assert host.calls("aclmdlQuerySizeFromMem") == 1
        assert host.live().blocks == 2


def test_a_model_runs(running: Running, host: HostControls) -> None:
    with Session(running.runtime) as session, load_model(shared_path(HEAD), session=session) as loaded:
        assert loaded.acl_model is not None
        desc = loaded.acl_model.desc
        random = np.random.default_rng(5)
        inputs = [random.standard_normal(tensor.dims).astype(np.float32) for tensor in desc.inputs]
        blocks = live_now(host).blocks
        outputs = loaded.execute(inputs)
        assert [output.shape for output in outputs] == [tensor.dims for tensor in desc.outputs]
        assert all(output.dtype == np.float32 for output in outputs)
        for given, got in zip(inputs, outputs, strict=True):
            assert np.array_equal(given.ravel()[: got.size], got.ravel())
        assert running.executed == [loaded.acl_model.device_model.model_id]
        assert live_now(host).blocks == blocks
        assert host.live().data_buffers == 0


def test_inputs_are_checked_before_anything_is_copied(running: Running, host: HostControls) -> None:
    with Session(running.runtime) as session, load_model(shared_path(HEAD), session=session) as loaded:
        assert loaded.acl_model is not None
        desc, copies = loaded.acl_model.desc, host.calls("aclrtMemcpy")
        good = [np.zeros(tensor.dims, np.float32) for tensor in desc.inputs]
        with pytest.raises(ValueError, match="1 inputs are given, the model has 2"):
            loaded.execute(good[:1])
        with pytest.raises(ValueError, match=r"input input1 takes 24576 B, 12 B are given"):
            loaded.execute([np.zeros(3, np.float32), *good[1:]])
        assert running.executed == []
        assert host.calls("aclrtMemcpy") == copies


def test_a_model_that_fails_leaves_nothing(running: Running, host: HostControls) -> None:
    with Session(running.runtime) as session, load_model(shared_path(HEAD), session=session) as loaded:
        assert loaded.acl_model is not None
        inputs = [np.zeros(tensor.dims, np.float32) for tensor in loaded.acl_model.desc.inputs]
        blocks = live_now(host).blocks
        running.code = 507011
        with pytest.raises(AclError, match=r"aclmdlExecute\(model_id=\d+\) returned 507011"):
            loaded.execute(inputs)
        host.fail_nth("aclrtMalloc", 3, 207001)
        with pytest.raises(OutOfMemoryError):
            loaded.execute(inputs)
        assert live_now(host).blocks == blocks
        running.code = 0
        assert len(loaded.execute(inputs)) == 2


@pytest.mark.parametrize("function", ["aclmdlQuerySize", "aclmdlSetConfigOpt", "aclmdlLoadWithConfig"])
def test_a_refusal_of_the_runtime_undoes_the_load(function: str, running: Running, host: HostControls) -> None:
    with Session(running.runtime) as session:
        host.fail_nth(function, 1, 500002)
        with pytest.raises(AclError, match=f"{function}.*returned 500002"):
            load_model(shared_path(HEAD), session=session)
        assert live_now(host).blocks == 0
        assert live_now(host).models == 0


def test_what_only_carries_weights_is_not_handed_over(running: Running, host: HostControls, tmp_path: Path) -> None:
    path = tmp_path / "weights.om"
    small_model(path)
    with open_om(path) as om:
        assert not is_runnable(om)
    with Session(running.runtime) as session, load_model(path, session=session) as loaded:
        assert loaded.acl_model is None
        assert host.live().models == 0
        with pytest.raises(StateError, match=f"{path} cannot run: it is a bundle or a flow model, has no tasks, or "):
            loaded.execute([])


def test_external_weights_are_named_to_the_runtime(
    running: Running, host: HostControls, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = shared_path(EXTERNAL)
    monkeypatch.setattr("gevar.session.acl_model.is_runnable", lambda _om: True)
    with Session(running.runtime) as session, load_model(path, session=session) as loaded:
        assert loaded.acl_model is not None
        assert host.calls("aclmdlSetExternalWeightAddress") == 1
    moved = tmp_path / "moved.om"
    moved.write_bytes(path.read_bytes())
    file = path.parent / "weight" / "ph_graph_weight_combined"
    device = running.runtime.device(0)
    with Session(running.runtime) as session, device.malloc(file.stat().st_size) as block:
        block.copy_from(file.read_bytes())
        given = {file.name: ExternalWeightAddress(block.addr, block.size_bytes)}
        with load_model(moved, session=session, external_weights=given) as loaded:
            assert loaded.acl_model is not None
            assert host.calls("aclmdlSetExternalWeightAddress") == 2


def test_a_library_without_the_calls_loads_weights_all_the_same(
    running: Running, monkeypatch: pytest.MonkeyPatch, host: HostControls
) -> None:
    monkeypatch.setattr(Runtime, "supports", lambda _self, name: not name.startswith("aclmdl"))
    with Session(running.runtime) as session, load_model(shared_path(HEAD), session=session) as loaded:
        assert loaded.acl_model is None
        assert host.live().models == 0


def test_the_host_runtime_says_that_there_is_no_card(host: HostControls) -> None:
    with Session(host_runtime()) as session, load_model(shared_path(HEAD), session=session) as loaded:
        assert loaded.acl_model is None
        assert host.live().models == 0
        with pytest.raises(StateError, match=r"there is no card behind .*libascendcl\.so \(host backend\)"):
            loaded.execute([])
    with pytest.raises(StateError, match="was closed"):
        loaded.execute([])


def test_the_runner_of_these_tests_is_like_the_interface() -> None:
    api: Any = host_runtime().api
    for name in NAMES:
        with pytest.raises(StateError, match=f"has no {name}"):
            getattr(api, name)()
