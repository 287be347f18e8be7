"""Models that the runtime loads: sizes, memory of the caller, inputs and outputs, refusals, and that nothing is left.

These models are made here or come from the reference; a card takes only those that were compiled for it, so all but
the last test stay on the host runtime.
"""

import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from acl_shim import Device, Runtime
from acl_shim.device_model import ModelSize, load_model, query_model_size
from acl_shim.errors import AclError, StateError
from acl_shim.host import HostControls
from acl_shim.mem_info import AddressRange
from acl_shim.model_codes import GeErrorCode, ModelConfigAttr
from acl_shim.model_config import ModelConfig
from acl_shim.model_desc import ModelTensor
from acl_shim.table import new_cell
from gevar.om import open_om
from gevar.om.partition import PartitionType
from tests.helpers.models import small_model
from tests.helpers.runtime import fail_until_passes, host_runtime, live_now
from tests.helpers.shared import shared_path

WHOLE = "om/nanotrack_head_cann8.om"
EXTERNAL = "om_vars/placeholders_and_combined.om"


@pytest.fixture
def device() -> Device:
    return host_runtime().device(0)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.om"
    small_model(path)
    return path


def code_of(error: pytest.ExceptionInfo[AclError]) -> GeErrorCode:
    return GeErrorCode(error.value.code)


def test_a_model_is_unloaded_in_the_context_it_was_loaded_in(small: Path, device: Device, host: HostControls) -> None:
    """From a thread on another device, which stays current there."""
    trace = small.with_name("trace")
    other, found = host_runtime().device(1), list[int]()

    def unload() -> None:
        other.enter()
        host.adjust(trace=str(trace))
        try:
            model.close()
        finally:
            host.adjust(trace="off")
        cell = new_cell("int32_t *")
        host_runtime().api.aclrtGetDevice(cell)
        found.append(cell[0])

    model = load_model(device, small)
    context = device.lease().context
    thread = threading.Thread(target=unload)
    thread.start()
    thread.join()
    calls = [json.loads(line) for line in trace.read_text().splitlines()]
    names = [call["function"] for call in calls]
    before = calls[names.index("aclmdlUnload") - 1]
    assert (before["function"], before["arguments"]) == ("aclrtSetCurrentContext", {"context": hex(context)})
    assert found == [1]


@pytest.mark.parametrize("name", [WHOLE, "om/vae_atc180.om", "om/a3c_pong_atc175.om", EXTERNAL])
def test_sizes_are_those_of_tasks_and_weights(name: str) -> None:
    path = shared_path(f"data/{name}")
    with open_om(path) as om:
        tasks, weights = om.models[0].task_def(), om.models[0].weights
        assert tasks is not None
        assert weights is not None
        wanted = ModelSize(tasks.memory_size, weights.mem_size)
    assert query_model_size(host_runtime(), path) == wanted
    assert query_model_size(host_runtime(), path.read_bytes()) == wanted


@pytest.mark.parametrize(
    "name",
    [
        *(WHOLE, "om/nanotrack_backbone127_cann8.om", "om/ge_root_model.om", "om_vars/static_128g_compressed.om"),
        *("om_vars/dynamic_shared_variable.om", "om_vars/narrow_32g.om", "om_vars/static_32g_plain.om"),
    ],
)
def test_inputs_and_outputs_are_those_that_the_compiler_listed(name: str, device: Device) -> None:
    path = shared_path(f"data/{name}")
    with open_om(path) as om:
        listed = om.models[0].inout_info()
    assert listed is not None
    with load_model(device, path) as model:
        desc = model.desc()
    for got, wanted in ((desc.inputs, listed.inputs), (desc.outputs, listed.outputs)):
        assert got == tuple(
            ModelTensor(one.name, one.size_bytes, one.dims, one.format, one.data_type) for one in wanted
        )
    assert desc.inputs
    assert desc.outputs


def test_weights_go_to_the_memory_that_is_given(device: Device) -> None:
    path = shared_path(f"data/{WHOLE}")
    size = query_model_size(device.runtime, path)
    with open_om(path) as om:
        part = om.models[0].partition(PartitionType.WEIGHTS_DATA)
        assert part is not None
    content = path.read_bytes()[part.file_offset : part.file_offset + part.mem_size]
    with device.malloc(size.work_bytes) as work, device.malloc(size.weight_bytes) as weights:
        config = ModelConfig(
            work=AddressRange(work.addr, size.work_bytes), weights=AddressRange(weights.addr, size.weight_bytes)
        )
        for source in (path, path.read_bytes(), np.fromfile(path, np.uint8)):
            device.memset(weights.addr, size.weight_bytes, 0, size.weight_bytes)
            with load_model(device, source, config):
                assert weights.read() == content
        short = ModelConfig(work=config.work, weights=AddressRange(weights.addr, size.weight_bytes - 1))
        with pytest.raises(AclError, match=r"memory for weights of \d+ bytes is given") as refused:
            load_model(device, path, short)
        assert code_of(refused) is GeErrorCode.ACL_ERROR_GE_PARAM_INVALID


def test_external_weights_come_from_memory_or_a_folder(device: Device, tmp_path: Path) -> None:
    path = shared_path(f"data/{EXTERNAL}")
    with load_model(device, path) as beside:  # the folder weight beside the model
        assert beside.model_id
    with pytest.raises(AclError) as refused:
        load_model(device, path, ModelConfig(weight_path=tmp_path))
    assert code_of(refused) is GeErrorCode.ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID
    copy = tmp_path / "moved.om"
    copy.write_bytes(path.read_bytes())
    file = path.parent / "weight" / "ph_graph_weight_combined"
    with device.malloc(file.stat().st_size) as block:
        for size_bytes, code in ((block.size_bytes, None), (32, GeErrorCode.ACL_ERROR_GE_PARAM_INVALID)):
            config = ModelConfig(external_weights={file.name: AddressRange(block.addr, size_bytes)})
            if code is None:
                load_model(device, copy, config).close()
                continue
            with pytest.raises(AclError) as refused:
                load_model(device, copy, config)
            assert code_of(refused) is code


def test_options_reach_the_runtime(device: Device, small: Path) -> None:
    with load_model(device, small, ModelConfig(priority=3)) as model:
        assert repr(model).startswith(f"<DeviceModel {model.model_id:#x}")
    with pytest.raises(AclError, match="PRIORITY is out of its range") as refused:
        load_model(device, small, ModelConfig(priority=99))
    assert refused.value.code == 100000
    with pytest.raises(AclError, match="WITHOUT_GRAPH is out of its range"):
        load_model(device, small, ModelConfig(options={ModelConfigAttr.ACL_MDL_WITHOUT_GRAPH_INT32: 2}))
    with pytest.raises(AclError, match="has folders"):
        load_model(device, small, ModelConfig(external_weights={"a/b": AddressRange(1 << 44, 64)}))


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", GeErrorCode.ACL_ERROR_GE_EXEC_MODEL_DATA_SIZE_INVALID),
        (b"IMOD", GeErrorCode.ACL_ERROR_GE_PARAM_INVALID),
        (b"IMODV1.2" + bytes(1016), GeErrorCode.ACL_ERROR_GE_PARAM_INVALID),
    ],
)
def test_what_is_no_model_is_refused_by_name_and_code(
    content: bytes, code: GeErrorCode, device: Device, tmp_path: Path
) -> None:
    path = tmp_path / "bad.om"
    path.write_bytes(content)
    for call in (query_model_size, load_model):
        with pytest.raises(AclError, match=f"path={path}.*{code.name}") as refused:
            call(device.runtime if call is query_model_size else device, path)  # type: ignore[arg-type]
        assert code_of(refused) is code


def test_a_model_ends_once_and_with_its_device(device: Device, small: Path, host: HostControls) -> None:
    before = live_now(host)
    model = load_model(device, small)
    assert host.live().models == 1
    assert model.desc() is model.desc()
    model.close()
    model.close()
    with pytest.raises(StateError, match="DeviceModel on device 0 is closed"):
        model.desc()
    assert live_now(host).models == 0
    assert live_now(host).blocks == before.blocks
    kept = load_model(device, small)
    with pytest.raises(StateError, match="1 DeviceModel"):
        device.reset()
    device.runtime.forget()
    kept.close()
    host.reset()


def test_a_finaliser_unloads(device: Device, small: Path, host: HostControls) -> None:
    load_model(device, small)
    assert live_now(host).models == 0


@pytest.mark.parametrize(
    "function",
    ["aclmdlCreateConfigHandle", "aclmdlSetConfigOpt", "aclmdlLoadWithConfig", "aclmdlGetDesc", "aclmdlGetOutputDims"],
)
def test_any_call_may_fail_and_leaves_nothing(function: str, device: Device, small: Path, host: HostControls) -> None:
    device.enter()

    def load_and_look() -> None:
        with device.malloc(1 << 16) as weights, device.malloc(1 << 16) as work:
            config = ModelConfig(
                work=AddressRange(work.addr, work.size_bytes), weights=AddressRange(weights.addr, weights.size_bytes)
            )
            with load_model(device, small, config) as model:
                assert model.desc().outputs

    assert fail_until_passes(host, function, load_and_look, code=500002) >= 1


def test_a_model_cannot_run_without_a_card(device: Device, small: Path) -> None:
    with load_model(device, small) as model, pytest.raises(StateError, match=r"host backend.* no aclmdlExecute"):
        model.execute([], [])


def test_what_a_model_is_must_be_a_path_or_a_buffer(device: Device) -> None:
    with pytest.raises(TypeError, match="int has no buffer"):
        load_model(device, 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="float has no buffer"):
        query_model_size(device.runtime, 1.5)  # type: ignore[arg-type]


def test_a_runtime_says_whether_it_loads_models(runtime: Runtime) -> None:
    if not runtime.supports("aclmdlLoadWithConfig"):
        pytest.skip(f"{runtime.path} has no model calls")
    path = os.fspath(Path(__file__).parent / "nothing.om")
    with pytest.raises(AclError) as refused:
        query_model_size(runtime, path)
    assert code_of(refused) is GeErrorCode.ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID
