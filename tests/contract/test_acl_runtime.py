"""What every backend's runtime answers about itself and its devices."""

import pickle

import pytest

from acl_shim import Device, Runtime, open_runtime
from acl_shim.api_types import ContextHandle
from acl_shim.codes import LastErrLevel, RunMode
from acl_shim.errors import AclError, OutOfMemoryError, StateError
from acl_shim.table import NULL, new_cell


def test_it_says_what_it_is(runtime: Runtime) -> None:
    assert runtime.backend in ("host", "npu")
    assert runtime.path.is_file()
    assert runtime.reason
    assert (runtime.version is not None) == (runtime.backend == "host")
    assert not runtime.closed


def test_it_is_opened_once(runtime: Runtime) -> None:
    assert open_runtime(runtime.backend) is runtime
    assert open_runtime(str(runtime.path)) is runtime


def test_it_has_a_product_name_and_devices(runtime: Runtime) -> None:
    assert runtime.soc_name().startswith("Ascend")
    assert runtime.device_count() >= 1
    assert runtime.run_mode() is RunMode.ACL_HOST


def test_supports_knows_functions_of_the_library(runtime: Runtime) -> None:
    assert runtime.supports("aclrtMalloc")
    assert not runtime.supports("aclrtNobodyHasThis")
    assert runtime.supports("hostacl_version") == (runtime.backend == "host")


class TestDevice:
    def test_the_same_number_is_the_same_device(self, runtime: Runtime) -> None:
        assert runtime.device(0) is runtime.device()
        assert runtime.device().id == 0
        assert runtime.device().runtime is runtime

    def test_every_number_below_the_count_is_a_device(self, runtime: Runtime) -> None:
        for number in range(runtime.device_count()):
            assert runtime.device(number).mem_info().total_bytes > 0

    @pytest.mark.parametrize("number", [-1, 64, 1 << 40])
    def test_another_number_is_refused_with_number_and_count(self, runtime: Runtime, number: int) -> None:
        with pytest.raises(AclError) as caught:
            runtime.device(number)
        assert caught.value.code == 107001
        assert caught.value.arguments == {"device_id": number, "device_count": runtime.device_count()}
        assert "use an id from 0 to the device count less 1" in str(caught.value)

    @pytest.mark.parametrize("number", ["0", 0.0, None])
    def test_what_is_no_number_is_refused(self, runtime: Runtime, number: object) -> None:
        with pytest.raises(TypeError):
            runtime.device(number)  # type: ignore[arg-type]

    def test_a_use_makes_its_device_current(self, runtime: Runtime) -> None:
        for number in range(runtime.device_count()):
            runtime.device(number).mem_info()
            current = new_cell("int32_t *")
            runtime.check(runtime.api.aclrtGetDevice(current), "aclrtGetDevice", {})
            assert current[0] == number

    def test_an_explicit_context_of_other_code_does_not_disturb(self, device: Device) -> None:
        api, check = device.runtime.api, device.runtime.check
        with device.malloc(64) as block:
            context = new_cell("uintptr_t *")
            check(api.aclrtCreateContext(context, device.id), "aclrtCreateContext", {})
            block.copy_from(b"x" * 64)
            assert block.read() == b"x" * 64
            check(api.aclrtDestroyContext(ContextHandle(context[0])), "aclrtDestroyContext", {})
            assert block.read() == b"x" * 64

    def test_reset_gives_back_and_the_next_use_takes_again(self, device: Device) -> None:
        for _ in range(3):
            with device.malloc(64) as block:
                block.copy_from(b"y" * 64)
            device.reset()

    def test_reset_leaves_the_count_of_other_code(self, device: Device) -> None:
        runtime, api = device.runtime, device.runtime.api
        runtime.check(api.aclrtSetDevice(device.id), "aclrtSetDevice", {})
        addr = new_cell("uintptr_t *")
        runtime.check(api.aclrtMalloc(addr, 4096, 0), "aclrtMalloc", {})
        device.mem_info()
        device.reset()
        runtime.check(api.aclrtMemset(addr[0], 4096, 7, 4096), "aclrtMemset", {})
        runtime.check(api.aclrtFree(addr[0]), "aclrtFree", {})
        runtime.check(api.aclrtResetDevice(device.id), "aclrtResetDevice", {})

    def test_a_reset_by_other_code_is_told_and_survived(self, device: Device) -> None:
        block = device.malloc(4096)
        pinned = device.malloc_host(4096)
        device.runtime.check(device.runtime.api.aclrtResetDeviceForce(device.id), "aclrtResetDeviceForce", {})
        with pytest.raises(StateError, match=f"device {device.id} was reset by other code of this process"):
            block.read()
        block.close()
        pinned.close()
        with device.malloc(4096) as again:
            again.copy_from(b"z" * 4096)
            assert again.read() == b"z" * 4096


class TestErrors:
    def test_a_code_becomes_an_error_with_call_arguments_and_text(self, device: Device) -> None:
        runtime = device.runtime
        device.mem_info()
        code = runtime.api.aclrtFree(0)
        with pytest.raises(AclError) as caught:
            runtime.check(code, "aclrtFree", {"addr": 0})
        error = caught.value
        assert (error.code, error.name, error.call) == (100000, "ACL_ERROR_INVALID_PARAM", "aclrtFree")
        assert error.arguments == {"addr": 0}
        assert error.text
        assert " ".join(error.text.split()) in str(error)
        assert str(pickle.loads(pickle.dumps(error))) == str(error)

    def test_the_text_is_read_once(self, device: Device) -> None:
        runtime = device.runtime
        device.mem_info()
        runtime.error(runtime.api.aclrtFree(0), "aclrtFree", {})
        assert runtime.recent_text() is None

    def test_a_given_text_is_used_as_it_is(self, runtime: Runtime) -> None:
        assert runtime.error(107000, "f", {}, text="mine").text == "mine"
        assert runtime.error(107000, "f", {}, text="").text is None

    def test_no_code_is_no_error(self, runtime: Runtime) -> None:
        runtime.check(0, "aclrtFree", {})

    def test_out_of_memory_without_figures(self, runtime: Runtime) -> None:
        with pytest.raises(OutOfMemoryError):
            runtime.check(207001, "aclrtCreateStream", {})

    def test_the_last_error_of_a_thread_is_read_and_cleared(self, device: Device) -> None:
        api = device.runtime.api
        device.mem_info()
        api.aclrtGetLastError(LastErrLevel.ACL_RT_THREAD_LEVEL)
        code = api.aclrtFree(0x7FF0_0000_0000_0000)
        assert code
        assert api.aclrtPeekAtLastError(0) == code
        assert api.aclrtGetLastError(0) == code
        assert api.aclrtPeekAtLastError(0) == 0
        device.runtime.recent_text()


class TestStart:
    def test_an_earlier_init_of_other_code_is_fine(self, runtime: Runtime) -> None:
        assert runtime.api.aclInit(NULL) in (0, 100002)
        runtime.start()
        runtime.start()
        assert runtime.device().mem_info().total_bytes > 0
        if runtime.supports("aclFinalizeReference"):
            left = new_cell("uint64_t *")
            assert runtime.api.aclFinalizeReference(left) == 0
            assert left[0] >= 1

    def test_close_refuses_while_a_buffer_is_open(self, runtime: Runtime) -> None:
        with runtime.device().malloc(64) as block:
            with pytest.raises(StateError, match="in use by 1 DeviceBuffer"):
                runtime.close()
            assert not runtime.closed
            block.copy_from(b"still open" + bytes(54))
            assert block.read(10) == b"still open"
