"""pyACL's facade on a runtime: return conventions, scripts in pyACL's manner, errors as codes."""

import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from acl_shim import Runtime
from acl_shim.host import HostControls
from acl_shim.pyacl import acl
from acl_shim.pyacl.acl import _face
from tests.helpers.child import run_python
from tests.helpers.runtime import host_runtime
from tests.helpers.shared import REPOSITORY

MIB = 1 << 20
PROP = {"handleType": 0, "allocationType": 0, "memAttr": 4, "location": {"id": 0, "type": 1}, "reserve": 0}


@pytest.fixture
def rt(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return `acl.rt` over each backend, with device 0 set."""
    monkeypatch.setattr(_face, "_opened", runtime)
    assert acl.init() in (0, acl.ACL_ERROR_REPEAT_INITIALIZE)
    assert acl.rt.set_device(0) == 0
    yield acl.rt
    assert acl.rt.reset_device(0) == 0


class TestConventions:
    def test_no_out_value_gives_the_bare_code(self, rt: Any) -> None:
        code = rt.set_device(0)
        assert (code, type(code)) == (0, int)
        assert rt.reset_device(0) == 0

    def test_out_values_come_first_and_the_code_last(self, rt: Any) -> None:
        assert rt.get_device_count()[1] == 0
        assert rt.get_run_mode() == (acl.ACL_HOST, 0)
        free, total, code = rt.get_mem_info(acl.ACL_HBM_MEM)
        assert 0 < free <= total
        assert code == 0

    def test_a_text_comes_alone(self, rt: Any) -> None:
        assert acl.get_soc_name() == rt.get_soc_name()
        assert acl.get_soc_name().startswith("Ascend")
        rt.free(0)
        assert "aclrtFree" in str(acl.get_recent_err_msg()) or acl.get_recent_err_msg() is None

    def test_a_failure_is_a_code_and_raises_nothing(self, rt: Any) -> None:
        ptr, code = rt.malloc(1 << 60, acl.ACL_MEM_MALLOC_HUGE_FIRST)
        assert code == acl.ACL_ERROR_RT_MEMORY_ALLOCATION
        assert ptr == 0
        assert rt.malloc(0, 0) == (0, acl.ACL_ERROR_INVALID_PARAM)
        assert rt.free(0) == acl.ACL_ERROR_INVALID_PARAM
        assert rt.set_device(1000) == acl.ACL_ERROR_RT_INVALID_DEVICEID

    def test_a_wrong_type_raises_before_the_call(self, rt: Any) -> None:
        for wrong in (
            lambda: rt.malloc("8", 0),
            lambda: rt.malloc(8.0, 0),
            lambda: rt.malloc(8),
            lambda: rt.free(None),
        ):
            with pytest.raises(TypeError):
                wrong()

    def test_init_takes_a_path_or_nothing(self, rt: Any) -> None:
        assert acl.init(None) == acl.ACL_ERROR_REPEAT_INITIALIZE
        with pytest.raises(TypeError, match="config_path is a str"):
            acl.init(3)


class TestPresence:
    def test_dir_lists_what_the_library_has(self, rt: Any, runtime: Runtime) -> None:
        assert {"malloc", "free", "memcpy", "create_stream"} <= set(dir(rt))
        assert ("mem_pool_create" in dir(rt)) == runtime.supports("aclrtMemPoolCreate")
        assert {"init", "finalize", "rt", "util", "ACL_HBM_MEM"} <= set(dir(acl))

    def test_a_name_of_nobody_is_no_attribute(self, rt: Any) -> None:
        with pytest.raises(AttributeError, match=r"module 'acl.rt' has no attribute 'nobody'"):
            rt.nobody  # noqa: B018
        with pytest.raises(AttributeError, match="module 'acl' has no attribute 'nobody'"):
            acl.nobody  # noqa: B018
        assert not hasattr(rt, "nobody")

    def test_the_same_function_each_time(self, rt: Any) -> None:
        assert rt.malloc is rt.malloc


class TestMemory:
    def test_the_round_trip_of_most_scripts(self, rt: Any) -> None:
        source = np.random.default_rng(1).random((3, 5), np.float32)
        size = source.nbytes
        device, code = rt.malloc(size, acl.ACL_MEM_MALLOC_HUGE_FIRST)
        assert code == 0
        host, code = rt.malloc_host(size)
        assert code == 0
        kind = acl.ACL_MEMCPY_HOST_TO_DEVICE
        if "bytes_to_ptr" in dir(acl.util):
            content = source.tobytes()
            assert rt.memcpy(device, size, acl.util.bytes_to_ptr(content), size, kind) == 0
        else:
            assert rt.memcpy(device, size, acl.util.numpy_to_ptr(source), size, kind) == 0
        assert rt.memcpy(host, size, device, size, acl.ACL_MEMCPY_DEVICE_TO_HOST) == 0
        content = acl.util.ptr_to_bytes(host, size)
        assert np.frombuffer(content, np.float32).reshape(source.shape).tolist() == source.tolist()
        assert rt.free(device) == 0
        assert rt.free_host(host) == 0

    def test_the_runtime_writes_through_the_pointer_of_bytes(self, rt: Any) -> None:
        device, _ = rt.malloc(64, 0)
        assert rt.memset(device, 64, 7, 64) == 0
        target = bytes(bytearray(64))
        assert rt.memcpy(acl.util.bytes_to_ptr(target), 64, device, 64, acl.ACL_MEMCPY_DEVICE_TO_HOST) == 0
        assert target == b"\x07" * 64
        assert rt.free(device) == 0

    def test_configs(self, rt: Any) -> None:
        for cfg in ({}, {"numAttrs": 1, "attrs": [{"attr": 1, "value": {"moduleId": 33}}]}):
            ptr, code = rt.malloc_with_cfg(100, 0, cfg)
            assert code == 0
            assert rt.free(ptr) == 0
            ptr, code = rt.malloc_host_with_cfg(100, cfg)
            assert code == 0
            assert rt.free_host(ptr) == 0

    def test_pointer_attributes_are_a_dict(self, rt: Any) -> None:
        ptr, _ = rt.malloc(3 * MIB, acl.ACL_MEM_MALLOC_HUGE_ONLY)
        found, code = rt.pointer_get_attributes(ptr)
        assert code == 0
        assert found["location"] == {"id": 0, "type": acl.ACL_MEM_LOCATION_TYPE_DEVICE}
        assert found["page_size"] == 2 * MIB
        assert len(found["rsv"]) == 4
        assert rt.free(ptr) == 0


class TestContexts:
    def test_the_calls_of_most_scripts(self, rt: Any) -> None:
        context, code = rt.create_context(0)
        assert code == 0
        assert rt.get_context() == (context, 0)
        stream, code = rt.create_stream()
        assert code == 0
        assert rt.synchronize_stream(stream) == 0
        assert rt.destroy_stream(stream) == 0
        assert rt.set_context(context) == 0
        assert rt.destroy_context(context) == 0
        assert rt.destroy_context(context) == acl.ACL_ERROR_RT_CONTEXT_NULL


class TestStreams:
    def test_copies_events_and_callbacks(self, rt: Any) -> None:
        stream, _ = rt.create_stream()
        start, _ = rt.create_event_with_flag(acl.ACL_EVENT_TIME_LINE)
        end, _ = rt.create_event_with_flag(acl.ACL_EVENT_TIME_LINE)
        host, _ = rt.malloc_host(MIB)
        device, _ = rt.malloc(MIB, 0)
        acl.util.ptr_to_numpy(host, (MIB,), 2)[:] = 9
        called: list[object] = []
        assert rt.record_event(start, stream) == 0
        assert rt.memcpy_async(device, MIB, host, MIB, acl.ACL_MEMCPY_HOST_TO_DEVICE, stream) == 0
        assert rt.memset_async(device, MIB, 3, 16, stream) == 0
        assert rt.launch_host_func(stream, called.append, {"any": "thing"}) == 0
        assert rt.record_event(end, stream) == 0
        assert rt.synchronize_stream(stream) == 0
        assert rt.query_event_status(end) == (acl.ACL_EVENT_RECORDED_STATUS_COMPLETE, 0)
        assert rt.stream_query(stream) == (acl.ACL_STREAM_STATUS_COMPLETE, 0)
        elapsed, code = rt.event_elapsed_time(start, end)
        assert (code, type(elapsed)) == (0, float)
        assert elapsed >= 0
        assert called == [{"any": "thing"}]
        assert rt.memcpy(host, MIB, device, 32, acl.ACL_MEMCPY_DEVICE_TO_HOST) == 0
        assert acl.util.ptr_to_bytes(host, 32) == b"\x03" * 16 + b"\x09" * 16
        for event in (start, end):
            assert rt.destroy_event(event) == 0
        assert rt.destroy_stream(stream) == 0
        assert (rt.free(device), rt.free_host(host)) == (0, 0)

    def test_a_callback_runs_on_the_thread_that_serves_the_stream(self, rt: Any) -> None:
        stream, _ = rt.create_stream()
        context, _ = rt.get_context()
        seen: list[int] = []
        done = threading.Event()

        def serve() -> None:
            rt.set_context(context)
            while not done.is_set():
                rt.process_report(50)

        server = threading.Thread(target=serve)
        server.start()
        assert server.ident is not None
        assert rt.subscribe_report(server.ident, stream) == 0
        block = acl.ACL_CALLBACK_BLOCK
        assert rt.launch_callback(lambda data: seen.append(threading.get_ident() + data), 0, block, stream) == 0
        assert rt.synchronize_stream(stream) == 0
        assert seen == [server.ident]
        assert rt.unsubscribe_report(server.ident, stream) == 0
        done.set()
        server.join()
        assert rt.destroy_stream(stream) == 0

    def test_an_exception_of_a_callback_is_logged(self, rt: Any, caplog: pytest.LogCaptureFixture) -> None:
        stream, _ = rt.create_stream()

        def fail(_: object) -> None:
            raise ArithmeticError("in a callback")

        assert rt.launch_host_func(stream, fail, None) == 0
        assert rt.synchronize_stream(stream) == 0
        (record,) = caplog.records
        assert "fail" in record.getMessage()
        assert "in a callback" in str(record.exc_info and record.exc_info[1])
        assert rt.destroy_stream(stream) == 0

    def test_a_callback_that_was_refused_is_not_kept(self, rt: Any) -> None:
        class Callback:
            def __call__(self, _: object) -> None:
                """Never called."""

        before = len([one for one in gc.get_objects() if isinstance(one, Callback)])
        assert rt.launch_host_func(0xBAD0, Callback(), None) != 0
        gc.collect()
        assert len([one for one in gc.get_objects() if isinstance(one, Callback)]) == before


class TestFailedTasks:
    def test_a_callback_gets_the_failed_task(self, host: HostControls, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_face, "_opened", host_runtime())
        rt = acl.rt
        assert rt.set_device(0) == 0
        stream, _ = rt.create_stream()
        ptr, _ = rt.malloc(4096, 0)
        seen: list[tuple[int, ...]] = []

        def on_exception(info: int) -> None:
            getters = (rt.get_error_code_from_exception_info, rt.get_device_id_from_exception_info)
            seen.append(tuple(get(info) for get in getters))

        assert rt.set_exception_info_callback(on_exception) == 0
        host.fail_task(1, 507035)
        assert rt.memset_async(ptr, 4096, 0, 4096, stream) == 0
        assert rt.synchronize_stream(stream) == 507035
        assert seen == [(507035, 0)]
        assert rt.set_exception_info_callback(None) == 0
        host.fail_task(1, 507035)
        assert rt.memset_async(ptr, 4096, 0, 4096, stream) == 0
        assert rt.synchronize_stream(stream) == 507035
        assert len(seen) == 1
        assert (rt.free(ptr), rt.destroy_stream(stream), rt.reset_device(0)) == (0, 0, 0)

    def test_a_callback_gets_streams(self, rt: Any, runtime: Runtime) -> None:
        if not runtime.supports("aclrtRegStreamStateCallback"):
            pytest.skip("the library has no stream callbacks")
        seen: list[tuple[int, int, object]] = []
        assert rt.reg_stream_state_callback("test", lambda *given: seen.append(given), "mine") == 0
        stream, _ = rt.create_stream()
        assert rt.destroy_stream(stream) == 0
        assert rt.reg_stream_state_callback("test", None, None) == 0
        other, _ = rt.create_stream()
        assert rt.destroy_stream(other) == 0
        made, gone = acl.ACL_RT_STREAM_STATE_CREATE_POST, acl.ACL_RT_STREAM_STATE_DESTROY_PRE
        assert seen == [(stream, made, "mine"), (stream, gone, "mine")]

    def test_what_cannot_be_called_is_refused(self, rt: Any) -> None:
        for refuse in (lambda: rt.set_exception_info_callback(3), lambda: rt.reg_stream_state_callback("t", 3, None)):
            with pytest.raises(TypeError, match="callback cannot be called: int"):
                refuse()


class TestTypesAndDescriptions:
    def test_sizes_of_types(self, rt: Any, runtime: Runtime) -> None:
        if not runtime.supports("aclDataTypeSize"):
            pytest.skip("the library has no types")
        assert [acl.data_type_size(one) for one in (acl.ACL_FLOAT, acl.ACL_FLOAT16, acl.ACL_INT64)] == [4, 2, 8]

    def test_float16(self, rt: Any, runtime: Runtime) -> None:
        if not runtime.supports("aclFloatToFloat16"):
            pytest.skip("the library has no conversion")
        for value in (0.0, 1.5, -2.25, 65504.0):
            bits = acl.float_to_float16(value)
            assert bits == int(np.float16(value).view(np.uint16))
            assert acl.float16_to_float(bits) == value
        with pytest.raises(TypeError, match="value is a float, not str"):
            acl.float_to_float16("1")

    def test_a_data_buffer(self, rt: Any, runtime: Runtime) -> None:
        if not runtime.supports("aclCreateDataBuffer"):
            pytest.skip("the library has no data buffers")
        buffer = acl.create_data_buffer(0x1234, 77)
        assert buffer
        assert (acl.get_data_buffer_addr(buffer), acl.get_data_buffer_size_v2(buffer)) == (0x1234, 77)
        assert acl.destroy_data_buffer(buffer) == 0

    def test_a_line_of_the_log(self, rt: Any, host: HostControls, runtime: Runtime, tmp_path: Path) -> None:
        if runtime.backend != "host":
            pytest.skip("only the host runtime says where the lines go")
        file = tmp_path / "log"
        host.adjust(app_log=str(file))
        assert acl.app_log(acl.ACL_INFO, "run", "script.py", 12, "100 % of it") is None
        host.adjust(app_log="off")
        assert "100 % of it" in file.read_text()


class TestVirtualMemory:
    def test_the_documented_order(self, rt: Any) -> None:
        size, code = rt.mem_get_allocation_granularity(PROP, acl.ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM)
        assert (size, code) == (2 * MIB, 0)
        addr, code = rt.reserve_mem_address(2 * size, 0, 0, 1)
        assert code == 0
        handle, code = rt.malloc_physical(size, PROP, 0)
        assert code == 0
        assert rt.map_mem(addr, size, 0, handle, 0) == 0
        assert rt.map_mem(addr, size, 0, handle, 0) == acl.ACL_ERROR_RT_DRV_INTERNAL_ERROR
        assert rt.mem_set_access(addr, size, [{"flags": 3, "location": {"id": 0, "type": 1}}], 1) == 0
        assert rt.mem_get_access(addr, {"id": 0, "type": 1}) == (acl.ACL_RT_MEM_ACCESS_FLAGS_READWRITE, 0)
        assert rt.mem_get_address_range(addr + 5) == (addr, size, 0)
        again, code = rt.mem_retain_allocation_handle(addr)
        assert (again, code) == (handle, 0)
        found, code = rt.mem_get_allocation_properties_from_handle(handle)
        assert code == 0
        assert found["location"] == {"id": 0, "type": 1}
        assert rt.memset(addr, size, 1, size) == 0
        assert rt.unmap_mem(addr) == 0
        assert rt.free_physical(handle) == 0
        assert rt.free_physical(handle) == 0
        assert rt.release_mem_address(addr) == 0

    def test_a_property_needs_all_keys(self, rt: Any) -> None:
        with pytest.raises(TypeError, match="prop lacks the key 'reserve'"):
            rt.malloc_physical(2 * MIB, {key: value for key, value in PROP.items() if key != "reserve"}, 0)


class TestSharing:
    def test_a_key_of_a_block(self, rt: Any) -> None:
        ptr, _ = rt.malloc(2 * MIB, acl.ACL_MEM_MALLOC_HUGE_ONLY)
        key, code = rt.ipc_mem_get_export_key(ptr, 2 * MIB, 65, 1)
        assert code == 0
        assert 0 < len(key) < 65
        assert rt.ipc_mem_close(key) == 0
        assert rt.ipc_mem_get_export_key(ptr, 2 * MIB, 2000, 1) == ("", acl.ACL_ERROR_INVALID_PARAM)
        assert rt.free(ptr) == 0

    def test_a_key_of_physical_memory(self, rt: Any) -> None:
        handle, _ = rt.malloc_physical(2 * MIB, PROP, 0)
        shareable, code = rt.mem_export_to_shareable_handle(handle, acl.ACL_MEM_HANDLE_TYPE_NONE, 0)
        assert code == 0
        pid, code = rt.device_get_bare_tgid()
        assert code == 0
        assert rt.mem_set_pid_to_shareable_handle(shareable, [pid, pid + 1]) == 0
        assert rt.free_physical(handle) == 0

    def test_registered_memory(self, rt: Any) -> None:
        values = np.zeros(3 * 4096, np.uint8)
        start = -(-acl.util.numpy_to_ptr(values) // 4096) * 4096
        device_ptr, code = rt.host_register(start, 4096, acl.ACL_HOST_REGISTER_MAPPED)
        assert code == 0
        assert device_ptr
        assert rt.host_unregister(start) == 0
        assert rt.host_unregister(start) != 0


def test_an_injected_failure_arrives_as_a_code(host: HostControls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEVAR_ACL", "host")
    monkeypatch.setattr(_face, "_opened", None)
    host.fail_nth("aclrtMalloc", 1, 507899)
    assert acl.rt.set_device(0) == 0
    assert acl.rt.malloc(64, 0) == (0, 507899)
    assert acl.rt.reset_device(0) == 0


SCRIPT = """
    import sys
    import acl, numpy as np
    from acl import rt

    ACL_MEM_MALLOC_HUGE_FIRST = 0

    def check(message, code):
        if code:
            raise RuntimeError(f"{message}: {code}, {acl.get_recent_err_msg()}")

    check("init", acl.init())
    check("set_device", acl.rt.set_device(0))
    context, ret = acl.rt.create_context(0)
    check("create_context", ret)
    stream, ret = rt.create_stream()
    check("create_stream", ret)
    data = np.arange(100, dtype=np.int32)
    ptr, ret = acl.rt.malloc(data.nbytes, ACL_MEM_MALLOC_HUGE_FIRST)
    check("malloc", ret)
    check("copy", acl.rt.memcpy(ptr, data.nbytes, acl.util.numpy_to_ptr(data), data.nbytes, 1))
    back, ret = acl.rt.malloc_host(data.nbytes)
    check("copy", acl.rt.memcpy_async(back, data.nbytes, ptr, data.nbytes, 2, stream))
    check("wait", acl.rt.synchronize_stream(stream))
    print(acl.util.ptr_to_numpy(back, (100,), data.dtype.num).sum(), "bytes_to_ptr" in dir(acl.util))
    check("free", acl.rt.free(ptr) or acl.rt.free_host(back) or acl.rt.destroy_stream(stream))
    check("end", acl.rt.destroy_context(context) or acl.rt.reset_device(0) or acl.finalize())
    print(acl.__name__, acl.rt.__name__, acl.finalize())
"""


def test_a_script_finds_the_facade_as_acl() -> None:
    done = run_python(SCRIPT, GEVAR_ACL="host", PYTHONPATH=str(REPOSITORY / "acl_shim" / "pyacl"))
    assert (done.returncode, done.stderr, done.stdout.split()) == (0, "", ["4950", "True", "acl", "acl.rt", "100037"])


def test_a_script_in_a_forked_child_is_told() -> None:
    code = """
    import os, warnings
    import acl
    warnings.simplefilter("ignore", DeprecationWarning)
    acl.rt.set_device(0)
    if os.fork() == 0:
        try:
            acl.rt.set_device(0)
        except Exception as error:
            print(type(error).__name__, "spawn" in str(error), flush=True)
        os._exit(0)
    os.wait()
    print(acl.rt.reset_device(0))
    """
    done = run_python(code, GEVAR_ACL="host", PYTHONPATH=str(REPOSITORY / "acl_shim" / "pyacl"))
    assert (done.returncode, done.stderr, done.stdout.split()) == (0, "", ["StateError", "True", "0"])
