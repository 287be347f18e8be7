"""Threads: the right device on each, copies from many at once, owners that change hands."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from acl_shim import Device, DeviceBuffer, Runtime
from acl_shim.table import new_cell

THREADS = 8


def in_new_thread(work: Callable[[], object]) -> None:
    """Run work on a thread that has no device yet; raise what it raises."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def test_a_new_thread_needs_no_set_up(device: Device) -> None:
    with device.malloc(64) as block:
        in_new_thread(lambda: block.copy_from(b"t" * 64))
        assert block.read() == b"t" * 64


def test_a_use_makes_its_device_current_on_the_calling_thread_only(runtime: Runtime) -> None:
    if runtime.device_count() < 2:
        pytest.skip("needs two devices")
    first, second = runtime.device(0), runtime.device(1)
    first.mem_info()
    in_new_thread(second.mem_info)
    current = new_cell("int32_t *")
    runtime.check(runtime.api.aclrtGetDevice(current), "aclrtGetDevice", {})
    assert current[0] == 0


def test_a_buffer_of_another_device_than_the_current_one(runtime: Runtime) -> None:
    if runtime.device_count() < 2:
        pytest.skip("needs two devices")
    with runtime.device(0).malloc(64) as first, runtime.device(1).malloc(64) as second:
        assert second.device.pointer_attributes(second.addr).device_id == 1
        assert second.device.pointer_attributes(first.addr).device_id == 0
        for number in range(3):
            first.copy_from(bytes([number]) * 64)
            second.copy_from(bytes([number + 100]) * 64)
            assert first.read() == bytes([number]) * 64
            assert second.read() == bytes([number + 100]) * 64


def test_copies_from_many_threads_to_every_device(runtime: Runtime) -> None:
    devices = [runtime.device(number) for number in range(runtime.device_count())]
    start = threading.Barrier(THREADS)

    def work(number: int) -> int:
        random = np.random.default_rng(number)
        start.wait()
        for round_ in range(30):
            device = devices[(number + round_) % len(devices)]
            content = random.bytes(int(random.integers(1, 1 << 18)))
            with device.malloc(len(content)) as block, device.malloc_host(len(content)) as pinned:
                pinned.view[:] = content
                block.copy_from(pinned.view)
                assert block.read() == content
                device.memset(block.addr, block.size_bytes, number, block.size_bytes)
                block.copy_to(pinned.view)
                assert bytes(pinned.view) == bytes([number]) * len(content)
        return number

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(work, range(THREADS))) == list(range(THREADS))


def test_many_threads_share_one_buffer(device: Device) -> None:
    part = 1 << 16
    with device.malloc(part * THREADS) as block, ThreadPoolExecutor(THREADS) as pool:

        def work(number: int) -> bytes:
            for value in range(20):
                block.copy_from(bytes([value ^ number]) * part, offset_bytes=number * part)
            return block.read(part, offset_bytes=number * part)

        for number, content in enumerate(pool.map(work, range(THREADS))):
            assert content == bytes([19 ^ number]) * part


def test_a_block_made_on_one_thread_is_closed_on_another(device: Device) -> None:
    made: list[DeviceBuffer] = []
    in_new_thread(lambda: made.extend(device.malloc(4096) for _ in range(10)))
    for block in made:
        in_new_thread(block.close)
    assert all(block.closed for block in made)
    assert not device._enter().owned


def test_the_first_use_by_many_threads_takes_the_device_once(device: Device) -> None:
    device.reset()
    start = threading.Barrier(THREADS)

    def work(_: int) -> int:
        start.wait()
        return id(device._enter())

    with ThreadPoolExecutor(THREADS) as pool:
        assert len(set(pool.map(work, range(THREADS)))) == 1
    device.reset()


def test_buffers_are_dropped_on_many_threads(device: Device) -> None:
    def work(_: int) -> None:
        for _ in range(50):
            device.malloc(4096)
            device.malloc_host(4096)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    assert not device._enter().owned
