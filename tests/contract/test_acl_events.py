"""Events: record, query, wait, times; contexts of their own."""

import gc
from collections.abc import Iterator

import pytest

from acl_shim import Device, Stream
from acl_shim.errors import AclError, StateError
from acl_shim.host import HostControls
from acl_shim.stream_codes import EventFlag
from tests.helpers.runtime import host_runtime, live_now

SYNC, TIME_LINE = EventFlag.ACL_EVENT_SYNC, EventFlag.ACL_EVENT_TIME_LINE


@pytest.fixture
def stream(device: Device) -> Iterator[Stream]:
    with device.create_stream() as made:
        yield made


class TestLife:
    @pytest.mark.parametrize(
        ("flags", "extended"), [(0, False), (SYNC, False), (TIME_LINE, False), (SYNC | TIME_LINE, True)]
    )
    def test_every_kind_can_be_recorded_and_waited_for(
        self, device: Device, stream: Stream, flags: int, extended: bool
    ) -> None:
        with device.malloc(64) as block, device.create_event(flags, extended=extended) as event:
            assert event.handle
            stream.memset_async(block.addr, 64, 1, 64)
            stream.record(event)
            event.synchronize()
            assert event.query()
            assert block.read(1) == b"\x01"
        assert event.closed

    def test_an_extended_event_needs_flags(self, device: Device) -> None:
        with pytest.raises(ValueError, match="flags are 0"):
            device.create_event(extended=True)

    def test_flags_that_are_none_are_refused_by_the_runtime(self, device: Device) -> None:
        with pytest.raises(AclError) as caught:
            device.create_event(0x1000)
        assert (caught.value.code, caught.value.call) == (107000, "aclrtCreateEventWithFlag")
        assert caught.value.arguments == {"flags": 0x1000, "device_id": device.id}

    def test_a_closed_event_refuses_every_use(self, device: Device, stream: Stream) -> None:
        event, other = device.create_event(), device.create_event()
        event.close()
        event.close()
        for use in (
            lambda: event.handle,
            lambda: event.record(stream),
            event.query,
            event.synchronize,
            event.timestamp_us,
            lambda: event.elapsed_ms(other),
            lambda: other.elapsed_ms(event),
            lambda: stream.wait_event(event),
            lambda: event.reset(stream),
        ):
            with pytest.raises(StateError, match="Event on device 0 is closed"):
                use()
        other.close()

    def test_the_finaliser_gives_back(self, device: Device) -> None:
        for _ in range(5):
            device.create_event()
        gc.collect()
        assert not device._enter().owned


class TestStatus:
    def test_what_never_recorded(self, device: Device) -> None:
        with device.create_event() as plain, device.create_event(SYNC, extended=True) as extended:
            assert not plain.query()
            assert extended.query()
            plain.synchronize()
            extended.synchronize(1)

    def test_it_is_ready_once_the_stream_is_there(self, host: HostControls) -> None:
        device = host_runtime().device()
        with device.create_stream() as stream, device.create_event() as event:
            host.hold()
            event.record(stream)
            assert not event.query()
            host.release()
            event.synchronize(10)
            assert event.query()

    def test_it_can_be_recorded_again(self, host: HostControls) -> None:
        device = host_runtime().device()
        with device.create_stream() as stream, device.create_event() as event:
            event.record(stream)
            event.synchronize()
            host.hold()
            event.record(stream)
            assert not event.query()
            host.release()
            event.synchronize(10)

    def test_reset_and_wait_status(self, device: Device, stream: Stream) -> None:
        with device.create_stream() as waiter, device.create_event(SYNC) as event:
            event.record(stream)
            waiter.wait_event(event)
            waiter.synchronize()
            if device.runtime.supports("aclrtQueryEventWaitStatus"):
                assert event.query_wait()
            event.reset(waiter)
            waiter.synchronize()

    def test_an_extended_event_is_not_reset(self, device: Device, stream: Stream) -> None:
        with device.create_event(SYNC, extended=True) as event:
            event.record(stream)
            with pytest.raises(AclError) as caught:
                event.reset(stream)
            assert (caught.value.code, caught.value.call) == (207000, "aclrtResetEvent")

    def test_an_event_without_sync_is_not_waited_for(self, device: Device, stream: Stream) -> None:
        with device.create_event(TIME_LINE) as event:
            event.record(stream)
            with pytest.raises(AclError) as caught:
                stream.wait_event(event)
            assert (caught.value.code, caught.value.call) == (207000, "aclrtStreamWaitEvent")


class TestTimes:
    def test_elapsed_time_and_timestamps(self, device: Device, stream: Stream) -> None:
        with device.create_event(TIME_LINE) as start, device.create_event(TIME_LINE) as end, device.malloc(64) as block:
            start.record(stream)
            for _ in range(20):
                stream.memset_async(block.addr, 64, 1, 64)
            end.record(stream)
            stream.synchronize()
            elapsed = start.elapsed_ms(end)
            assert elapsed >= 0
            assert end.timestamp_us() >= start.timestamp_us() > 0
            assert elapsed == pytest.approx((end.timestamp_us() - start.timestamp_us()) / 1000, abs=0.01)

    def test_a_delay_shows(self, host: HostControls) -> None:
        device = host_runtime().device()
        host.delay_task("aclrtMemsetAsync", 0.02)
        with (
            device.create_stream() as stream,
            device.create_event(TIME_LINE) as start,
            device.create_event(TIME_LINE) as end,
            device.malloc(64) as block,
        ):
            start.record(stream)
            stream.memset_async(block.addr, 64, 1, 64)
            end.record(stream)
            stream.synchronize()
            assert start.elapsed_ms(end) >= 20

    def test_what_never_recorded_has_no_time(self, device: Device, stream: Stream) -> None:
        with device.create_event(TIME_LINE) as start, device.create_event(TIME_LINE) as end:
            start.record(stream)
            stream.synchronize()
            with pytest.raises(AclError) as caught:
                start.elapsed_ms(end)
            assert (caught.value.code, caught.value.call) == (507000, "aclrtEventElapsedTime")
            assert caught.value.arguments["end"] == end.handle

    def test_what_is_not_reached_yet_has_no_time(self, host: HostControls) -> None:
        device = host_runtime().device()
        with (
            device.create_stream() as stream,
            device.create_event(TIME_LINE) as start,
            device.create_event(TIME_LINE) as end,
        ):
            start.record(stream)
            stream.synchronize()
            host.hold()
            end.record(stream)
            with pytest.raises(AclError) as caught:
                start.elapsed_ms(end)
            assert caught.value.code == 107006
            host.release()
            stream.synchronize()


class TestContexts:
    def test_it_has_streams_of_its_own(self, device: Device) -> None:
        with device.malloc(256) as block, device.create_context() as context:
            with context.create_stream() as stream, context.create_event() as event:
                assert stream.device is device
                assert stream.scope is context
                stream.memset_async(block.addr, 256, 4, 256)
                stream.record(event)
                event.synchronize()
            context.default_stream.memset_async(block.addr, 256, 5, 128)
            context.synchronize()
            assert block.read() == b"\x05" * 128 + b"\x04" * 128
        assert context.closed

    def test_calls_switch_between_contexts(self, device: Device) -> None:
        with (
            device.malloc(64) as block,
            device.create_context() as context,
            context.create_stream() as inner,
            device.create_stream() as outer,
        ):
            for value in range(5):
                inner.memset_async(block.addr, 64, value, 32)
                outer.memset_async(block.addr + 32, 32, value + 100, 32)
                inner.synchronize()
                outer.synchronize()
                assert block.read() == bytes([value]) * 32 + bytes([value + 100]) * 32

    def test_an_event_of_one_context_orders_streams_of_two(self, device: Device) -> None:
        with (
            device.malloc(64) as block,
            device.create_context() as context,
            context.create_event() as event,
            context.create_stream() as first,
            device.create_stream() as second,
        ):
            first.memset_async(block.addr, 64, 1, 64)
            event.record(first)
            second.wait_event(event)
            second.memset_async(block.addr, 64, 2, 32)
            second.synchronize()
            assert block.read() == b"\x02" * 32 + b"\x01" * 32

    def test_it_does_not_close_while_a_stream_is_open(self, device: Device) -> None:
        context = device.create_context()
        stream, event = context.create_stream(), context.create_event()
        with pytest.raises(StateError, match="Context on device 0 is in use by 1 Stream, 1 Event: close them first"):
            context.close()
        assert not context.closed
        stream.close()
        event.close()
        context.close()

    def test_a_closed_context_refuses_every_use(self, device: Device) -> None:
        context = device.create_context()
        context.close()
        context.close()
        for use in (context.enter, context.create_stream, context.synchronize, lambda: context.handle):
            with pytest.raises(StateError, match="Context on device 0 is closed"):
                use()

    def test_a_stream_keeps_its_context(self, device: Device) -> None:
        stream = device.create_context().create_stream()
        gc.collect()
        stream.synchronize()
        stream.close()
        del stream
        gc.collect()
        assert not device._enter().owned

    def test_a_context_in_a_cycle_with_its_streams_goes_as_a_whole(self, host: HostControls) -> None:
        device = host_runtime().device()
        for order in (0, 1):
            context = device.create_context()
            ring: list[object] = [context, context.create_stream(), context.create_event()]
            if order:
                ring.reverse()
            ring.append(ring)
            del context, ring
            gc.collect()
            assert not device._enter().owned
        live = live_now(host)
        assert (live.contexts, live.streams, live.events) == (0, 0, 0)

    def test_a_reset_of_the_device_by_others_ends_it(self, host: HostControls) -> None:
        device = host_runtime().device(1)
        context = device.create_context()
        stream = context.create_stream()
        device.runtime.check(device.runtime.api.aclrtResetDeviceForce(device.id), "aclrtResetDeviceForce", {})
        with pytest.raises(StateError, match="was reset by other code"):
            device.mem_info()
        stream.close()
        context.close()
        assert (stream.closed, context.closed) == (True, True)


class TestFigures:
    def test_of_a_device(self, device: Device) -> None:
        runtime = device.runtime
        if runtime.supports("aclrtGetDeviceInfo"):
            assert device.info(301) > 0
            with pytest.raises(AclError):
                device.info(999999)
        if runtime.supports("aclrtDeviceGetUuid"):
            assert len(device.uuid()) == 16
        if runtime.supports("aclrtQueryDeviceStatus"):
            assert device.status().name == "ACL_RT_DEVICE_STATUS_NORMAL"
        if runtime.supports("aclrtGetMemUsageInfo"):
            assert isinstance(device.mem_usage(), list)
