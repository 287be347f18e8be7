"""Streams: order of tasks, asynchronous copies and fills, waits, life of what tasks use."""

import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from acl_shim import BatchCopy, Device, DeviceBuffer, Stream
from acl_shim.codes import MemcpyKind
from acl_shim.errors import AclError, StateError
from acl_shim.host import HostControls
from acl_shim.stream_codes import StreamFlag, WaitValueFlag
from acl_shim.stream_tasks import StreamTasks
from acl_shim.table import new_cell
from tests.helpers.runtime import host_runtime, live_now

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture
def stream(device: Device) -> Iterator[Stream]:
    with device.create_stream() as made:
        yield made


@pytest.fixture
def block(device: Device) -> Iterator[DeviceBuffer]:
    with device.malloc(MIB) as made:
        device.memset(made.addr, MIB, 0, MIB)
        yield made


def kept(stream: Stream) -> int:
    """Return how many objects a stream keeps for its tasks."""
    return len(stream._queued._kept)


def streams_of(device: Device) -> list[StreamTasks]:
    return [device.create_stream(), device.default_stream]


class TestLife:
    def test_a_stream_has_a_handle_and_a_number(self, device: Device, stream: Stream) -> None:
        assert stream.handle
        assert stream.device is device
        with device.create_stream() as other:
            assert other.handle != stream.handle
            assert other.id != stream.id
        assert other.closed

    def test_priority_and_flags(self, device: Device) -> None:
        if not device.runtime.supports("aclrtStreamGetPriority"):
            pytest.skip("the library does not tell the priority")
        least, greatest = device.stream_priorities()
        assert (least, greatest) == (7, 0)
        for wanted, got in ((0, 0), (3, 3), (7, 7), (99, 7)):
            with device.create_stream(wanted, StreamFlag.ACL_STREAM_FAST_LAUNCH) as made:
                assert made.priority == got
                assert made.flags & StreamFlag.ACL_STREAM_FAST_LAUNCH

    def test_a_closed_stream_refuses_every_use(self, device: Device, block: DeviceBuffer) -> None:
        made, event = device.create_stream(), device.create_event()
        made.close()
        made.close()
        uses: list[Callable[[], object]] = [
            lambda: made.handle,
            lambda: made.id,
            made.synchronize,
            made.query,
            lambda: made.memset_async(block.addr, 4, 0, 4),
            lambda: block.copy_from_async(b"x", made),
            lambda: made.launch_host_func(print),
            lambda: made.wait_event(event),
            lambda: event.record(made),
            lambda: made.record(event),
            lambda: made.value_write(block.addr, 1),
        ]
        for use in uses:
            with pytest.raises(StateError, match="Stream on device 0 is closed: make a new one"):
                use()
        event.close()

    def test_close_waits_for_the_tasks(self, device: Device, block: DeviceBuffer) -> None:
        with device.create_stream() as made:
            made.memset_async(block.addr, MIB, 7, MIB)
        assert block.read(4) == b"\x07" * 4

    def test_the_finaliser_gives_back(self, device: Device) -> None:
        for _ in range(5):
            device.create_stream()
        gc.collect()
        assert not device._enter().owned

    def test_it_shows_what_it_is(self, device: Device, stream: Stream) -> None:
        assert repr(stream) == f"<Stream {stream.handle:#x} on device 0>"
        assert repr(device.default_stream) == f"<DefaultStream of {device!r}>"

    def test_a_device_in_use_by_a_stream_is_not_reset(self, device: Device, stream: Stream) -> None:
        with pytest.raises(StateError, match="in use by 1 Stream: close them first"):
            device.reset()


class TestCopies:
    def test_in_and_out(self, device: Device, block: DeviceBuffer) -> None:
        content = np.random.default_rng(3).bytes(MIB)
        for stream in streams_of(device):
            target = bytearray(MIB)
            block.copy_from_async(content, stream)
            block.copy_to_async(target, stream)
            stream.synchronize()
            assert target == content

    def test_pinned_memory(self, device: Device, stream: Stream, block: DeviceBuffer) -> None:
        with device.malloc_host(MIB) as source, device.malloc_host(MIB) as target:
            source.view[:] = np.random.default_rng(4).bytes(MIB)
            block.copy_from_async(source.view, stream)
            block.copy_to_async(target.view, stream)
            stream.synchronize()
            assert bytes(target.view) == bytes(source.view)

    @pytest.mark.parametrize("dtype", [np.int8, np.float32, ml_dtypes.bfloat16])
    def test_arrays(self, stream: Stream, block: DeviceBuffer, dtype: Any) -> None:
        values = np.arange(60).reshape(3, 4, 5).astype(dtype)
        again = np.zeros_like(values)
        block.copy_from_async(values, stream, offset_bytes=128)
        block.copy_to_async(again, stream, offset_bytes=128)
        stream.synchronize()
        assert again.tobytes() == values.tobytes()

    def test_raw_addresses(self, device: Device, stream: Stream, block: DeviceBuffer) -> None:
        target = bytearray(5)
        stream.memcpy_in_async(block.addr + 10, 90, b"hello")
        stream.memcpy_async(block.addr + 100, 5, block.addr + 10, 5, MemcpyKind.ACL_MEMCPY_DEVICE_TO_DEVICE)
        stream.memcpy_out_async(target, block.addr + 100)
        stream.synchronize()
        assert target == b"hello"

    def test_nothing(self, stream: Stream, block: DeviceBuffer) -> None:
        block.copy_from_async(b"", stream, offset_bytes=MIB)
        block.copy_to_async(bytearray(), stream)
        stream.memset_async(block.addr, 0, 0, 0)
        stream.memcpy_batch_async([], MemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE)
        stream.synchronize()

    def test_fills(self, device: Device, stream: Stream, block: DeviceBuffer) -> None:
        stream.memset_async(block.addr, MIB, 5, 16)
        if device.runtime.supports("aclrtMemsetD32Async"):
            stream.memset_d32_async(block.addr + 4, MIB - 4, 0x01020304, 2)
            stream.synchronize()
            assert block.read(16) == b"\x05" * 4 + b"\x04\x03\x02\x01" * 2 + b"\x05" * 4
        else:
            stream.synchronize()
            assert block.read(16) == b"\x05" * 16

    def test_rows(self, device: Device, stream: Stream, block: DeviceBuffer) -> None:
        if not device.runtime.supports("aclrtMemcpy2dAsync"):
            pytest.skip("the library copies no rows")
        with device.malloc_host(64) as pinned:
            pinned.view[:] = bytes(range(64))
            kind = MemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE
            stream.memcpy_2d_async(block.addr, 100, pinned.addr, 16, 8, 4, kind)
            stream.synchronize()
        for row in range(4):
            assert block.read(8, offset_bytes=100 * row) == bytes(range(16 * row, 16 * row + 8))
        assert block.read(92, offset_bytes=8) == bytes(92)

    def test_a_batch(self, device: Device, stream: Stream, block: DeviceBuffer) -> None:
        if not device.runtime.supports("aclrtMemcpyBatchAsync"):
            pytest.skip("the library makes no batches")
        with device.malloc_host(64) as pinned:
            pinned.view[:] = bytes(range(64))
            copies = [BatchCopy(block.addr + 1000 * number, 100, pinned.addr + 8 * number, 8) for number in range(8)]
            stream.memcpy_batch_async(copies, MemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE)
            stream.synchronize()
        for number in range(8):
            assert block.read(8, offset_bytes=1000 * number) == bytes(range(8 * number, 8 * number + 8))

    @pytest.mark.parametrize(("size_bytes", "offset_bytes"), [(MIB + 1, 0), (1, MIB), (1, -1)])
    def test_what_does_not_fit_is_refused_with_the_numbers(
        self, stream: Stream, block: DeviceBuffer, size_bytes: int, offset_bytes: int
    ) -> None:
        message = f"{size_bytes} B at offset {offset_bytes} B does not fit the buffer of {MIB} B"
        with pytest.raises(ValueError, match=f"source of {message}"):
            block.copy_from_async(bytes(size_bytes), stream, offset_bytes=offset_bytes)
        with pytest.raises(ValueError, match=f"destination of {message}"):
            block.copy_to_async(bytearray(size_bytes), stream, offset_bytes=offset_bytes)
        with pytest.raises(ValueError, match=f"source of 5 B does not fit the 4 B at {block.addr:#x}"):
            stream.memcpy_in_async(block.addr, 4, b"12345")

    def test_what_is_no_memory_of_the_host_is_refused(self, stream: Stream, block: DeviceBuffer) -> None:
        with pytest.raises(TypeError, match="list has no buffer"):
            block.copy_from_async([1], stream)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="not C-contiguous"):
            block.copy_from_async(np.zeros((4, 4)).T, stream)
        with pytest.raises(ValueError, match="bytes is read-only"):
            block.copy_to_async(b"1234", stream)
        assert kept(stream) == 0

    def test_a_refusal_of_the_runtime_names_the_arguments(self, device: Device, stream: Stream) -> None:
        with pytest.raises(AclError) as caught:
            stream.memcpy_async(0, 16, 0, 16)
        assert (caught.value.code, caught.value.call) == (100000, "aclrtMemcpyAsync")
        assert caught.value.arguments["device_id"] == device.id
        assert caught.value.arguments["count_bytes"] == 16


class TestOrder:
    def test_tasks_of_a_stream_run_in_order(self, stream: Stream, block: DeviceBuffer) -> None:
        for value in range(200):
            stream.memset_async(block.addr, MIB, value % 256, 64)
        stream.synchronize()
        assert block.read(64) == bytes([199]) * 64

    def test_one_stream_waits_for_another(self, device: Device, block: DeviceBuffer) -> None:
        with device.create_stream() as first, device.create_stream() as second, device.create_event() as event:
            for value in range(1, 50):
                first.memset_async(block.addr, MIB, value, MIB)
                event.record(first)
                second.wait_event(event)
                target = bytearray(64)
                block.copy_to_async(target, second, offset_bytes=MIB - 64)
                second.synchronize()
                assert target == bytes([value]) * 64

    def test_a_stream_waits_for_a_value_that_another_writes(self, device: Device, block: DeviceBuffer) -> None:
        if not device.runtime.supports("aclrtValueWait"):
            pytest.skip("the library waits for no values")
        with device.create_stream() as first, device.create_stream() as second:
            first.value_wait(block.addr, 7, WaitValueFlag.ACL_STREAM_WAIT_VALUE_EQ)
            first.memset_async(block.addr + 64, 64, 9, 64)
            assert not first.query()
            second.value_write(block.addr, 7)
            first.synchronize(10)
            assert block.read(64, offset_bytes=64) == b"\x09" * 64
            assert int.from_bytes(block.read(8), "little") == 7

    @pytest.mark.parametrize(
        ("flag", "value", "word"),
        [
            (WaitValueFlag.ACL_STREAM_WAIT_VALUE_GEQ, 5, 6),
            (WaitValueFlag.ACL_STREAM_WAIT_VALUE_EQ, (1 << 64) - 1, (1 << 64) - 1),
            (WaitValueFlag.ACL_STREAM_WAIT_VALUE_AND, 0b110, 0b100),
            (WaitValueFlag.ACL_STREAM_WAIT_VALUE_NOR, 0b110, 0b001),
        ],
    )
    def test_every_comparison(
        self, device: Device, stream: Stream, block: DeviceBuffer, flag: WaitValueFlag, value: int, word: int
    ) -> None:
        if not device.runtime.supports("aclrtValueWait"):
            pytest.skip("the library waits for no values")
        stream.value_write(block.addr, word)
        stream.value_wait(block.addr, value, flag)
        stream.synchronize(10)

    def test_a_notify_lets_a_stream_go_on(self, device: Device, block: DeviceBuffer) -> None:
        if not device.runtime.supports("aclrtCreateNotify"):
            pytest.skip("the library has no notifies")
        with device.create_stream() as first, device.create_stream() as second, device.create_notify() as notify:
            for value in (1, 2):
                notify.wait(first)
                first.memset_async(block.addr, 64, value, 64)
                assert not first.query()
                notify.record(second)
                first.synchronize(10)
                assert block.read(64) == bytes([value]) * 64

    def test_a_device_waits_for_all_its_streams(self, device: Device, block: DeviceBuffer) -> None:
        with device.create_stream() as first, device.create_stream() as second:
            first.memset_async(block.addr, 64, 1, 64)
            second.memset_async(block.addr + 64, 64, 2, 64)
            device.default_stream.memset_async(block.addr + 128, 64, 3, 64)
            device.synchronize()
            assert first.query()
            assert second.query()
            assert block.read(192) == b"\x01" * 64 + b"\x02" * 64 + b"\x03" * 64


class TestTimeouts:
    @pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), 3e6])
    def test_a_timeout_out_of_range_is_refused_before_the_call(
        self, device: Device, stream: Stream, timeout_s: float
    ) -> None:
        with device.create_event() as event:
            for wait in (stream.synchronize, event.synchronize, device.synchronize):
                with pytest.raises(ValueError, match="timeout_s is"):
                    wait(timeout_s)

    def test_time_that_is_over(self, host: HostControls) -> None:
        device = host_runtime().device()
        with device.malloc(64) as block, device.create_stream() as stream, device.create_event() as event:
            host.hold()
            stream.memset_async(block.addr, 64, 1, 64)
            event.record(stream)
            for wait, code, call in (
                (stream.synchronize, 507046, "aclrtSynchronizeStreamWithTimeout"),
                (device.synchronize, 507046, "aclrtSynchronizeDeviceWithTimeout"),
                (event.synchronize, 507047, "aclrtSynchronizeEventWithTimeout"),
            ):
                with pytest.raises(AclError) as caught:
                    wait(0.01)
                assert (caught.value.code, caught.value.call) == (code, call)
                assert caught.value.arguments["timeout_ms"] == 10
            host.release()
            stream.synchronize(10)
            event.synchronize(10)
            device.synchronize(10)
            assert block.read(4) == b"\x01" * 4


class TestWhatTasksUse:
    """Memory of queued tasks lives until the stream has passed them; held streams show it."""

    @pytest.fixture
    def held(self, host: HostControls) -> Iterator[Stream]:
        with host_runtime().device().create_stream() as made:
            host.hold()
            yield made
            host.release()

    def test_host_memory_is_kept_and_dropped(self, host: HostControls, held: Stream) -> None:
        device = held.device
        with device.malloc(4096) as block:
            pinned = device.malloc_host(4096)
            pinned.view[:] = b"k" * 4096
            block.copy_from_async(pinned.view, held)
            pinned.close()
            del pinned
            gc.collect()
            assert (kept(held), live_now(host).host_blocks) == (1, 1)
            host.release()
            held.synchronize()
            assert (kept(held), live_now(host).host_blocks) == (0, 0)
            assert block.read() == b"k" * 4096

    def test_device_memory_is_kept_and_dropped(self, host: HostControls, held: Stream) -> None:
        with held.device.malloc_host(4096) as pinned:
            block = held.device.malloc(4096)
            block.copy_to_async(pinned.view, held)
            del block
            gc.collect()
            assert host.live().blocks == 1
            host.release()
            held.synchronize()
            assert live_now(host).blocks == 0

    @pytest.mark.parametrize("notice", ["query", "event", "event query", "device", "close", "destroy_force"])
    def test_every_way_to_notice(self, host: HostControls, held: Stream, notice: str) -> None:
        device = held.device
        stream, event = device.create_stream(), device.create_event()
        with device.malloc_host(64) as pinned, device.malloc(64) as block:
            host.hold()
            block.copy_from_async(pinned.view, stream)
            event.record(stream)
            assert (stream.query(), event.query(), kept(stream)) == (False, False, 1)
            host.release()
            if notice == "query":
                while not stream.query():
                    pass
            elif notice == "event":
                event.synchronize()
            elif notice == "event query":
                while not event.query():
                    pass
            elif notice == "device":
                device.synchronize()
            else:
                getattr(stream, notice)()
            assert kept(stream) == 0
            event.close()
            stream.close()

    def test_an_event_drops_only_what_lies_before_it(self, host: HostControls, held: Stream) -> None:
        device = held.device
        with device.malloc_host(64) as pinned, device.malloc(64) as block, device.create_event() as event:
            block.copy_from_async(pinned.view, held)
            event.record(held)
            block.copy_from_async(pinned.view, held)
            block.copy_from_async(pinned.view, held)
            host.release()
            event.synchronize()
            assert kept(held) == 2
            held.synchronize()
            assert kept(held) == 0

    def test_many_tasks_without_a_wait_do_not_gather(self, device: Device, stream: Stream) -> None:
        with device.malloc(64) as block, device.malloc_host(64) as pinned:
            most = 0
            for _ in range(2000):
                block.copy_from_async(pinned.view, stream)
                most = max(most, kept(stream))
            stream.synchronize()
            assert most < 1500

    def test_a_forced_end_drops_tasks(self, host: HostControls, held: Stream) -> None:
        device = held.device
        stream = device.create_stream()
        with device.malloc(64) as block:
            device.memset(block.addr, 64, 1, 64)
            host.hold()
            for _ in range(50):
                stream.memset_async(block.addr, 64, 2, 64)
            stream.destroy_force()
            stream.destroy_force()
            assert stream.closed
            host.release()

    def test_a_reset_of_the_host_runtime_drops_everything(self, host: HostControls, held: Stream) -> None:
        device = held.device
        with device.malloc(64) as block:
            block.copy_from_async(device.malloc_host(64).view, held)
            assert kept(held) == 1
            host.reset()
            assert kept(held) == 0
        held.close()
        assert held.closed


class TestFailedTasks:
    def test_a_failure_comes_out_where_somebody_waits(self, host: HostControls) -> None:
        device = host_runtime().device()
        with device.malloc(64) as block, device.create_stream() as stream:
            host.fail_task(1, 507035)
            stream.memset_async(block.addr, 64, 1, 64)
            with pytest.raises(AclError) as caught:
                stream.synchronize()
            assert (caught.value.code, caught.value.call) == (507035, "aclrtSynchronizeStream")
            assert caught.value.arguments["stream"] == stream.handle
            stream.memset_async(block.addr, 64, 2, 64)
            stream.synchronize()
            assert block.read(1) == b"\x02"

    def test_memory_that_is_freed_too_early_is_an_error_of_the_task(self, host: HostControls) -> None:
        device = host_runtime().device()
        with device.create_stream() as stream:
            block = device.malloc(4096)
            host.hold()
            stream.memset_async(block.addr, 4096, 1, 4096)
            block.close()
            host.release()
            with pytest.raises(AclError):
                stream.synchronize()

    def test_tasks_behind_a_failure_are_dropped_where_that_is_asked(self, host: HostControls) -> None:
        device = host_runtime().device()
        with device.malloc(64) as block:
            stream = device.create_stream()
            stream.stop_on_failure()
            device.memset(block.addr, 64, 0, 64)
            host.hold()
            host.fail_task(1, 507035)
            stream.memset_async(block.addr, 64, 1, 64)
            stream.memset_async(block.addr, 64, 2, 64)
            host.release()
            with pytest.raises(AclError):
                stream.synchronize()
            assert block.read(1) == b"\0"
            stream.destroy_force()


class TestThreads:
    def test_many_threads_with_a_stream_each(self, device: Device) -> None:
        start = threading.Barrier(8)

        def work(number: int) -> bool:
            random = np.random.default_rng(number)
            start.wait()
            with device.create_stream() as stream, device.malloc_host(64 * KIB) as pinned, device.malloc(MIB) as block:
                for _ in range(20):
                    size = int(random.integers(1, 64 * KIB))
                    pinned.view[:size] = random.bytes(size)
                    content = bytes(pinned.view[:size])
                    target = bytearray(size)
                    block.copy_from_async(pinned.view[:size], stream, offset_bytes=number)
                    block.copy_to_async(target, stream, offset_bytes=number)
                    stream.synchronize()
                    if target != content:
                        return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(8)))

    def test_many_threads_share_a_stream(self, device: Device, stream: Stream) -> None:
        part = 4 * KIB
        with device.malloc(part * 8) as block, ThreadPoolExecutor(8) as pool:

            def work(number: int) -> None:
                for value in range(50):
                    block.copy_from_async(bytes([value ^ number]) * part, stream, offset_bytes=number * part)
                    if value % 7 == 0:
                        stream.synchronize()

            list(pool.map(work, range(8)))
            stream.synchronize()
            assert kept(stream) == 0
            for number in range(8):
                assert block.read(part, offset_bytes=number * part) == bytes([49 ^ number]) * part

    def test_streams_are_dropped_on_many_threads(self, device: Device) -> None:
        def work(_: int) -> None:
            for _ in range(20):
                device.create_stream()
                device.create_event()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert not device._enter().owned

    def test_a_stream_of_a_device_that_others_reset_closes_without_a_call(self, host: HostControls) -> None:
        device = host_runtime().device(1)
        made = device.create_stream()
        device.runtime.check(device.runtime.api.aclrtResetDeviceForce(device.id), "aclrtResetDeviceForce", {})
        made.close()
        assert made.closed
        assert host.calls("aclrtDestroyStream") == 0

    def test_a_finaliser_leaves_the_current_context(self, device: Device) -> None:
        made = [device.create_stream()]
        with device.create_context() as context:
            context.enter()
            made.clear()
            gc.collect()
            current = new_cell("uintptr_t *")
            device.runtime.check(device.runtime.api.aclrtGetCurrentContext(current), "aclrtGetCurrentContext", {})
            assert current[0] == context.handle
        assert not device._enter().owned

    def test_a_stream_is_closed_while_another_context_is_current(self, device: Device) -> None:
        made = device.create_stream()
        with device.create_context() as context:
            context.enter()
            made.close()
            assert made.closed


def test_streams_of_two_devices(device: Device) -> None:
    if device.runtime.device_count() < 2:
        pytest.skip("needs two devices")
    other = device.runtime.device(1)
    with (
        device.malloc(64) as here,
        other.malloc(64) as there,
        device.create_stream() as first,
        other.create_stream() as second,
    ):
        first.memset_async(here.addr, 64, 1, 64)
        second.memset_async(there.addr, 64, 2, 64)
        first.synchronize()
        second.synchronize()
        assert (here.read(1), there.read(1)) == (b"\x01", b"\x02")


class TestStops:
    def test_an_abort_drops_tasks_and_what_they_use(self, host: HostControls) -> None:
        device, called = host_runtime().device(0), []
        with (
            device.create_stream() as stream,
            device.malloc(KIB) as block,
            device.malloc_host(KIB) as pinned,
        ):
            device.memset(block.addr, KIB, 1, KIB)
            host.hold()
            block.copy_from_async(pinned, stream)  # other memory is copied at once
            stream.launch_host_func(lambda: called.append(1))
            stream.abort()
            assert stream.query()
            assert kept(stream) == 0
            assert not stream._queued.planned()
            host.release()
            stream.launch_host_func(lambda: called.append(2))
            stream.synchronize()
            assert called == [2]
            assert set(block.read()) == {1}

    def test_a_stop_ends_a_wait_and_the_stream_goes_on(self, host: HostControls) -> None:
        device = host_runtime().device(0)
        with device.create_stream() as stream, device.create_notify() as notify, device.malloc(KIB) as block:
            notify.wait(stream)
            stream.memset_async(block.addr, KIB, 7, KIB)
            with pytest.raises(AclError, match="507046"):
                stream.synchronize(0.02)
            stream.stop()
            stream.synchronize()
            assert set(block.read()) == {7}

    def test_an_abort_of_the_device_reaches_every_stream(self, host: HostControls) -> None:
        device, called = host_runtime().device(0), []
        with device.create_stream() as first, device.create_context() as context, context.create_stream() as second:
            host.hold()
            for stream in (first, second, device.default_stream):
                stream.launch_host_func(lambda: called.append(1))
            device.abort_tasks(20)
            host.release()
            assert first.query()
            assert second.query()
            device.synchronize()
        assert called == []

    def test_a_time_out_is_checked(self, host: HostControls) -> None:
        with pytest.raises(ValueError, match="timeout_s is 0"):
            host_runtime().device(0).abort_tasks(0)

    def test_a_closed_stream_is_refused(self, host: HostControls) -> None:
        stream = host_runtime().device(0).create_stream()
        stream.close()
        for call in (stream.abort, stream.stop):
            with pytest.raises(StateError, match="Stream on device 0 is closed"):
                call()
