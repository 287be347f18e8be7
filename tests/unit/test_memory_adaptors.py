"""Adaptors around a resource: limit, peaks, who holds what, failure hook, log and replay."""

import io
import json
import threading

import pytest

from gevar.errors import AclError, OutOfMemoryError, StateError
from gevar.memory import (
    FailureCallbackResourceAdaptor,
    Holder,
    LimitingResourceAdaptor,
    LoggingResourceAdaptor,
    MemoryShortageError,
    StatisticsResourceAdaptor,
    TrackingResourceAdaptor,
    replay_log,
)
from gevar.types import DevAddr, DeviceId
from tests.helpers.memory_resource import FakeResource


def test_peaks_are_measured_piece_by_piece() -> None:
    adaptor = StatisticsResourceAdaptor(FakeResource())
    a, b = adaptor.allocate(100), adaptor.allocate(50)
    adaptor.free(a)
    before = adaptor.reset_peak()
    assert (before.peak_bytes, before.peak_count, before.current_bytes) == (150, 2, 50)
    adaptor.allocate(30)
    assert (adaptor.statistics.peak_bytes, adaptor.statistics.peak_count) == (80, 2)
    adaptor.free(b)
    assert adaptor.statistics.total_bytes == 180


def test_each_adaptor_counts_what_goes_through_it() -> None:
    upstream = FakeResource()
    mine, other = StatisticsResourceAdaptor(upstream), StatisticsResourceAdaptor(upstream)
    addr = mine.allocate(100)
    other.allocate(1)
    other.free(addr)  # it is passed on, and counted where it came from: nowhere here
    assert (mine.statistics.current_bytes, other.statistics.current_bytes) == (100, 1)
    assert upstream.statistics.current_bytes == 1


def test_a_refused_free_changes_nothing() -> None:
    upstream = FakeResource()
    adaptor = TrackingResourceAdaptor(StatisticsResourceAdaptor(upstream))
    addr = adaptor.allocate(100, "kept")
    upstream.refuse_free = 1
    with pytest.raises(AclError):
        adaptor.free(addr)
    assert [block.tag for block in adaptor.blocks()] == ["kept"]
    assert adaptor.statistics.current_bytes == adaptor.upstream.statistics.current_bytes == 100
    adaptor.free(addr)
    assert adaptor.blocks() == []


def test_a_limit_is_kept_to_the_byte() -> None:
    upstream = FakeResource()
    adaptor = LimitingResourceAdaptor(upstream, 100)
    a = adaptor.allocate(60)
    adaptor.allocate(40)
    with pytest.raises(MemoryShortageError, match="raise the limit") as caught:
        adaptor.allocate(1)
    assert (caught.value.code, caught.value.requested_bytes, caught.value.free_bytes) == (207001, 1, 0)
    assert caught.value.total_bytes == 100
    assert len(upstream.asked) == 2
    adaptor.free(a)
    with pytest.raises(OutOfMemoryError):
        adaptor.allocate(61)
    adaptor.allocate(60)
    with pytest.raises(ValueError, match="limit_bytes is -1"):
        LimitingResourceAdaptor(upstream, -1)


def test_a_failed_request_does_not_count_against_the_limit() -> None:
    adaptor = LimitingResourceAdaptor(FakeResource(capacity=10), 100)
    for _ in range(20):
        with pytest.raises(OutOfMemoryError):
            adaptor.allocate(50)
    adaptor.allocate(10)


def test_threads_together_stay_below_the_limit() -> None:
    upstream = FakeResource()
    inside, asked, go_on = upstream.allocate, threading.Event(), threading.Event()

    def slow(size_bytes: int, tag: str = "") -> DevAddr:
        asked.set()
        assert go_on.wait(30)
        return inside(size_bytes, tag)

    upstream.allocate = slow  # type: ignore[method-assign]
    adaptor, refused = LimitingResourceAdaptor(upstream, 100), list[int]()

    def first() -> None:
        adaptor.allocate(60)

    thread = threading.Thread(target=first)
    thread.start()
    assert asked.wait(30)
    try:
        adaptor.allocate(60)
    except OutOfMemoryError:
        refused.append(60)
    go_on.set()
    thread.join(30)
    assert refused == [60]
    assert adaptor.statistics.current_bytes == 60


def test_who_holds_what() -> None:
    adaptor = TrackingResourceAdaptor(FakeResource(), with_stacks=True)
    a = adaptor.allocate(100, "weights")
    adaptor.allocate(300, 'odd "name"\nwith two lines')
    adaptor.allocate(50, "weights")
    adaptor.allocate(1)
    assert adaptor.holders(2) == (Holder('odd "name"\nwith two lines', 300, 1), Holder("weights", 150, 2))
    block = adaptor.blocks()[0]
    assert (block.dev_addr, block.size_bytes, block.tag) == (a, 100, "weights")
    assert "test_who_holds_what" in block.stack[-1]
    report = adaptor.report()
    assert f"{a:#x} 100 B 'weights'" in report
    assert "\\nwith" in report
    adaptor.free(a)
    assert len(adaptor.blocks()) == 3
    assert TrackingResourceAdaptor(FakeResource()).report() == ""


def test_no_stacks_unless_asked() -> None:
    adaptor = TrackingResourceAdaptor(FakeResource())
    adaptor.allocate(1)
    assert adaptor.blocks()[0].stack == ()


@pytest.mark.parametrize("device", [0, 1])
def test_the_failure_hook_fires_for_every_device_and_may_free(device: int) -> None:
    upstream = FakeResource(capacity=100, device=DeviceId(device))
    held = [upstream.allocate(40), upstream.allocate(40)]
    calls: list[tuple[int, int, int]] = []

    def on_failure(size: int, device_id: DeviceId, error: OutOfMemoryError) -> bool:
        calls.append((size, device_id, error.code))
        if held:
            upstream.free(held.pop())
            return True
        return False

    adaptor = FailureCallbackResourceAdaptor(upstream, on_failure)
    adaptor.allocate(90)
    assert calls == [(90, device, 207001)] * 2
    with pytest.raises(OutOfMemoryError):
        adaptor.allocate(90)
    assert len(calls) == 3
    with pytest.raises(ValueError):
        adaptor.allocate(0)
    assert len(calls) == 3


def test_what_the_hook_raises_comes_through() -> None:
    def on_failure(size: int, device_id: DeviceId, error: OutOfMemoryError) -> bool:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        FailureCallbackResourceAdaptor(FakeResource(capacity=1), on_failure).allocate(2)


def test_requests_and_answers_are_logged_as_json_lines() -> None:
    file, time = io.StringIO(), iter(range(100))
    adaptor = LoggingResourceAdaptor(FakeResource(capacity=100), file, lambda: float(next(time)))
    addr = adaptor.allocate(60, "a")
    with pytest.raises(OutOfMemoryError):
        adaptor.allocate(60, "b")
    with pytest.raises(ValueError):
        adaptor.allocate(0, "c")
    adaptor.free(addr)
    with pytest.raises(StateError):
        adaptor.free(addr)
    entries = [json.loads(line) for line in file.getvalue().splitlines()]
    thread = threading.get_ident()
    shared = [{"time_s": float(n), "thread": thread, "device_id": 0} for n in range(1, 6)]
    assert entries == [
        {**shared[0], "action": "allocate", "result": "ok", "size_bytes": 60, "tag": "a", "addr": addr},
        {
            **shared[1],
            "action": "allocate",
            "result": "OutOfMemoryError",
            "size_bytes": 60,
            "tag": "b",
            "code": 207001,
        },
        {**shared[2], "action": "allocate", "result": "ValueError", "size_bytes": 0, "tag": "c"},
        {**shared[3], "action": "free", "result": "ok", "addr": addr},
        {**shared[4], "action": "free", "result": "StateError", "addr": addr},
    ]


def test_a_log_is_played_again() -> None:
    file = io.StringIO()
    adaptor = LoggingResourceAdaptor(FakeResource(capacity=1000), file)
    a, b = adaptor.allocate(100, "a"), adaptor.allocate(200, "b")
    with pytest.raises(OutOfMemoryError):
        adaptor.allocate(5000)
    adaptor.free(a)
    c = adaptor.allocate(300, "c")
    adaptor.free(c)
    adaptor.free(b)
    adaptor.allocate(7, "left")
    lines = file.getvalue().splitlines()
    target = FakeResource()
    result = replay_log(lines, target)
    assert (result.allocated, result.freed, result.refused, result.skipped) == (4, 3, 0, 1)
    assert target.asked == [(100, "a"), (200, "b"), (300, "c"), (7, "left")]
    assert result.leaked == target.live
    small = replay_log(lines, FakeResource(capacity=250))
    assert (small.allocated, small.freed, small.refused, small.skipped) == (2, 1, 2, 3)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "no json",
        "[]",
        "null",
        "{}",
        '{"action": "allocate"}',
        '{"action": "grow", "result": "ok"}',
        '{"action": "allocate", "result": "ok", "size_bytes": "5", "addr": 1}',
        '{"action": "free", "result": "ok", "addr": null}',
        "[" * 100_000,
    ],
)
def test_a_line_that_is_no_request(line: str) -> None:
    good = '{"action": "allocate", "result": "ok", "size_bytes": 5, "addr": 1}'
    target = FakeResource()
    with pytest.raises(ValueError, match="line 2 of the log"):
        replay_log([good, line], target)
    assert not target.live
