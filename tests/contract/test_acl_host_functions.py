"""Python functions on streams: order, threads, what they raise, what becomes of them at the end."""

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest

from acl_shim import Device, Stream
from acl_shim.errors import AclError, HostFunctionError
from acl_shim.host import HostControls
from acl_shim.queued import _planned
from tests.helpers.child import expect_output, run_python
from tests.helpers.runtime import host_runtime


@pytest.fixture
def stream(device: Device) -> Iterator[Stream]:
    if not device.runtime.supports("aclrtLaunchHostFunc"):
        pytest.skip("the library calls no functions")
    with device.create_stream() as made:
        yield made


class TestOrder:
    def test_functions_run_in_stream_order(self, device: Device, stream: Stream) -> None:
        seen: list[bytes] = []
        with device.malloc_host(16) as pinned, device.malloc(16) as block:
            for value in range(20):
                stream.memset_async(block.addr, 16, value, 16)
                block.copy_to_async(pinned.view, stream)
                stream.launch_host_func(lambda: seen.append(bytes(pinned.view)))
            stream.synchronize()
        assert seen == [bytes([value]) * 16 for value in range(20)]

    def test_tasks_behind_a_function_wait_for_it(self, device: Device, stream: Stream) -> None:
        started, go_on = threading.Event(), threading.Event()

        def wait() -> None:
            started.set()
            go_on.wait(10)

        with device.malloc(16) as block:
            device.memset(block.addr, 16, 0, 16)
            stream.launch_host_func(wait)
            stream.memset_async(block.addr, 16, 1, 16)
            assert started.wait(10)
            assert not stream.query()
            assert block.read(1) == b"\0"
            go_on.set()
            stream.synchronize()
            assert block.read(1) == b"\x01"

    def test_it_runs_on_another_thread(self, stream: Stream) -> None:
        seen: list[int] = []
        stream.launch_host_func(lambda: seen.append(threading.get_ident()))
        stream.synchronize()
        assert len(seen) == 1
        assert seen[0] != threading.get_ident()

    def test_the_default_stream_calls_as_well(self, device: Device, stream: Stream) -> None:
        seen: list[int] = []
        device.default_stream.launch_host_func(lambda: seen.append(1))
        device.synchronize()
        assert seen == [1]

    def test_functions_of_many_streams(self, device: Device, stream: Stream) -> None:
        counts = [0] * 8
        streams = [device.create_stream() for _ in counts]

        def add(number: int) -> None:
            counts[number] += 1

        for _ in range(50):
            for number, one in enumerate(streams):
                one.launch_host_func(lambda number=number: add(number))  # type: ignore[misc]
        for one in streams:
            one.close()
        assert counts == [50] * 8


class TestExceptions:
    def test_what_a_function_raises_is_raised_to_who_waits(self, device: Device, stream: Stream) -> None:
        def fail() -> None:
            raise ArithmeticError("on the stream")

        seen: list[int] = []
        stream.launch_host_func(fail)
        stream.launch_host_func(lambda: seen.append(1))
        with pytest.raises(HostFunctionError, match="raised ArithmeticError: on the stream") as caught:
            stream.synchronize()
        assert isinstance(caught.value.__cause__, ArithmeticError)
        assert caught.value.errors == (caught.value.__cause__,)
        assert seen == [1]
        stream.synchronize()

    @pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
    def test_exceptions_that_end_programs_stay_on_the_stream(self, stream: Stream, kind: type[BaseException]) -> None:
        def end() -> None:
            raise kind("no end")

        stream.launch_host_func(end)
        with pytest.raises(HostFunctionError) as caught:
            stream.synchronize()
        assert isinstance(caught.value.errors[0], kind)

    def test_all_are_kept(self, stream: Stream) -> None:
        for number in range(3):
            stream.launch_host_func(lambda number=number: [][number])  # type: ignore[misc]
        with pytest.raises(HostFunctionError, match="3 functions did") as caught:
            stream.synchronize()
        assert [type(error) for error in caught.value.errors] == [IndexError] * 3

    def test_close_raises_them_and_closes(self, device: Device, stream: Stream) -> None:
        made = device.create_stream()
        made.launch_host_func(lambda: 1 // 0)
        with pytest.raises(HostFunctionError):
            made.close()
        assert made.closed
        made.close()

    def test_a_wait_for_the_device_raises_them(self, device: Device, stream: Stream) -> None:
        stream.launch_host_func(lambda: 1 // 0)
        with pytest.raises(HostFunctionError):
            device.synchronize()
        stream.synchronize()

    def test_the_finaliser_logs_them(self, device: Device, stream: Stream, caplog: pytest.LogCaptureFixture) -> None:
        device.create_stream().launch_host_func(lambda: 1 // 0)
        gc.collect()
        (record,) = caplog.records
        assert "ZeroDivisionError" in record.getMessage()

    def test_a_reset_logs_what_nobody_waited_for(self, device: Device, caplog: pytest.LogCaptureFixture) -> None:
        device.default_stream.launch_host_func(lambda: 1 // 0)
        device.reset()
        (record,) = caplog.records
        assert "nobody waited for it" in record.getMessage()
        assert record.exc_info
        assert record.exc_info[0] is ZeroDivisionError


class TestWhatIsKept:
    def test_a_function_lives_until_it_ran(self, stream: Stream) -> None:
        class Function:
            def __call__(self) -> None:
                """Do nothing."""

        function = Function()
        watch = weakref.ref(function)
        stream.launch_host_func(function)
        del function
        stream.synchronize()
        gc.collect()
        assert watch() is None
        assert not stream._queued._keys

    def test_a_refused_function_is_forgotten(self, host: HostControls) -> None:
        before = len(_planned)
        with host_runtime().device().create_stream() as stream:
            host.fail_nth("aclrtLaunchHostFunc", 1, 507899)
            with pytest.raises(AclError):
                stream.launch_host_func(print)
            assert (len(_planned), stream._queued._keys) == (before, set())

    def test_a_dropped_function_is_forgotten(self, host: HostControls) -> None:
        before = len(_planned)
        stream = host_runtime().device().create_stream()
        host.hold()
        for _ in range(5):
            stream.launch_host_func(lambda: pytest.fail("dropped functions are not called"))
        assert len(_planned) == before + 5
        stream.destroy_force()
        host.release()
        assert len(_planned) == before

    def test_what_cannot_be_called_is_refused(self, stream: Stream) -> None:
        with pytest.raises(TypeError, match="int cannot be called"):
            stream.launch_host_func(3)  # type: ignore[arg-type]


OPEN = """
    import sys, time, threading
    from acl_shim import open_runtime
    from acl_shim.host import host_controls
    runtime = open_runtime("host")
    device = runtime.device()
    stream = device.create_stream()
"""


class TestEndOfTheInterpreter:
    def test_a_function_that_runs_is_waited_for(self) -> None:
        code = """
    started = threading.Event()

    def slow():
        started.set()
        time.sleep(0.3)
        print("through", flush=True)

    stream.launch_host_func(slow)
    started.wait()
    print("end", flush=True)
"""
        expect_output(OPEN + code, "end\nthrough")

    def test_a_function_that_has_not_begun_is_not_called(self) -> None:
        code = """
    host_controls(runtime).hold()
    stream.launch_host_func(lambda: print("called", flush=True))
    print("end", flush=True)
    import atexit
    atexit.register(lambda: None)
"""
        expect_output(OPEN + code, "end")

    def test_many_functions_while_it_ends(self) -> None:
        code = """
    for _ in range(2000):
        stream.launch_host_func(lambda: None)
        device.default_stream.launch_host_func(lambda: None)
    print("end", flush=True)
"""
        for _ in range(3):
            expect_output(OPEN + code, "end")

    def test_a_stream_that_never_ends_does_not_keep_the_process(self) -> None:
        code = """
    block = device.malloc(64)
    device.memset(block.addr, 64, 0, 64)
    device.default_stream.value_wait(block.addr, 1)
    block.close()
    stream.close()
    print("end", flush=True)
"""
        expect_output(OPEN + code, "end")

    def test_errors_that_nobody_saw_are_logged(self) -> None:
        code = """
    device.default_stream.launch_host_func(lambda: 1 // 0)
    while not device.default_stream.query():
        pass
    stream.close()
    print("end", flush=True)
"""
        done = run_python(OPEN + code)
        assert (done.returncode, done.stdout.strip()) == (0, "end")
        assert "nobody waited for it" in done.stderr
        assert "ZeroDivisionError" in done.stderr

    def test_a_fork_while_a_function_runs(self) -> None:
        code = """
    import os, warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    started, go_on = threading.Event(), threading.Event()

    def slow():
        started.set()
        go_on.wait()

    stream.launch_host_func(slow)
    started.wait()
    child = os.fork()
    if child == 0:
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    go_on.set()
    stream.synchronize()
"""
        expect_output(OPEN + code, "0")
