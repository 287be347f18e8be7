"""Host memory: the pool for variables on the host, shared memory between processes, pinned staging buffers."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from acl_shim.host import HostControls
from gevar.errors import OutOfMemoryError, StateError
from gevar.memory import DeviceMemoryManager, HostMemAllocator, HostMemManager, PinnedStagingPool
from gevar.memory.host_mem_manager import SHARED_MEMORY_FOLDER, shared_memory_name
from gevar.status import FAILED, GE_GRAPH_FREE_FAILED, PARAM_INVALID
from gevar.types import DevAddr, MemType
from tests.helpers.open_files import open_files
from tests.helpers.runtime import host_runtime, live_now

MIB = 1 << 20


def test_host_memory_is_zeroed_aligned_and_its_own() -> None:
    pool = HostMemAllocator()
    addrs = [pool.allocate(size, "v") for size in (0, 0, 1, 100, 3 * MIB)]
    assert len(set(addrs)) == 5
    assert all(addr % 64 == 0 for addr in addrs)
    view = pool.view(addrs[3])
    assert (view.nbytes, view.any()) == (100, False)
    view[:] = 7
    assert pool.view(addrs[3]).tolist() == [7] * 100
    assert pool.view(addrs[0]).nbytes == 0


def test_more_than_2_gib_cost_nothing_before_they_are_touched() -> None:
    pool = HostMemAllocator()
    addr = pool.allocate((1 << 31) + 5)
    view = pool.view(addr)
    assert view.nbytes == (1 << 31) + 5
    view[-1] = 3
    assert view[-2:].tolist() == [0, 3]
    pool.free(addr)


def test_more_than_the_machine_has() -> None:
    pool = HostMemAllocator()
    with pytest.raises(OutOfMemoryError, match="HostMemAllocator"):
        pool.allocate(1 << 62)
    assert pool.statistics.total_count == 0


def test_host_memory_is_freed_once() -> None:
    pool = HostMemAllocator()
    addr = pool.allocate(10)
    kept = pool.view(addr)
    kept[:] = 1
    pool.free(addr)
    assert kept.tolist() == [1] * 10  # a view keeps its memory
    for wrong, status in ((addr, PARAM_INVALID), (DevAddr(0), GE_GRAPH_FREE_FAILED), (DevAddr(64), PARAM_INVALID)):
        with pytest.raises(StateError) as caught:
            pool.free(wrong)
        assert caught.value.status == status
    with pytest.raises(StateError, match="no live block"):
        pool.view(addr)


def test_memory_of_the_caller_can_be_made_known() -> None:
    pool, array = HostMemAllocator(), np.arange(10, dtype=np.uint8)
    addr = pool.allocate_existing(array, "mine")
    assert addr == array.ctypes.data
    pool.view(addr)[0] = 99
    assert array[0] == 99
    with pytest.raises(StateError, match="known already"):
        pool.allocate_existing(array)
    assert pool.statistics.current_bytes == 10
    pool.free(addr)
    with pytest.raises(ValueError, match="read-only"):
        pool.allocate_existing(b"abc")
    pool.allocate_existing(array)
    pool.close()
    assert pool.statistics.current_count == 0


def test_the_manager_has_a_host_pool() -> None:
    with DeviceMemoryManager(host_runtime()) as manager:
        addrs = [manager.get_host_pool_memory(MemType.RT_MEMORY_HBM, size) for size in (0, 0, 5000)]
        assert len(set(addrs)) == 3
        assert not manager.pools.host.view(DevAddr(addrs[2])).any()
        for size in (-1, 1 << 63):
            with pytest.raises((ValueError, OverflowError)):
                manager.get_host_pool_memory(MemType.RT_MEMORY_HBM, size)
    with pytest.raises(StateError, match="closed"):
        manager.get_host_pool_memory(MemType.RT_MEMORY_HBM, 1)


@pytest.fixture
def op_name() -> Iterator[str]:
    name = f"test/{os.getpid()}/w"
    yield name
    assert not _path(name).exists(), "shared memory was left behind"


def _path(name: str) -> Path:
    return SHARED_MEMORY_FOLDER / shared_memory_name(name)


def test_processes_share_by_the_name_of_the_variable(op_name: str) -> None:
    first, second = HostMemManager(), HostMemManager()
    made = first.malloc_host_shared_memory(op_name, 10_000)
    assert (made.size_bytes, made.is_creator, made.device_addr) == (10_000, True, 0)
    assert not made.view.any()
    assert _path(op_name).stat().st_mode & 0o777 == 0o600
    opened = second.malloc_host_shared_memory(op_name, 10_000)
    assert not opened.is_creator
    made.view[9_999] = 5
    assert opened.view[9_999] == 5
    assert second.query_var_mem_info(op_name) is opened
    assert second.query_var_mem_info("other") is None
    second.finalize()
    assert _path(op_name).exists()  # who did not make it does not unlink it
    first.finalize()
    assert opened.view[9_999] == 5  # mapped memory stays


def test_shared_memory_of_another_size_is_refused_and_left_alone(op_name: str) -> None:
    first, second = HostMemManager(), HostMemManager()
    first.malloc_host_shared_memory(op_name, 4096)
    with pytest.raises(StateError, match="has 4096 B, not 8192 B") as caught:
        second.malloc_host_shared_memory(op_name, 8192)
    assert caught.value.status == PARAM_INVALID
    assert _path(op_name).stat().st_size == 4096
    second.malloc_host_shared_memory(op_name, 4096)
    second.free_host_shared_memory(op_name)
    first.free_host_shared_memory(op_name)


def test_a_variable_has_shared_memory_once(op_name: str) -> None:
    manager = HostMemManager()
    manager.malloc_host_shared_memory(op_name, 100)
    with pytest.raises(StateError, match="already") as caught:
        manager.malloc_host_shared_memory(op_name, 100)
    assert caught.value.status == FAILED
    manager.free_host_shared_memory(op_name)
    with pytest.raises(StateError, match="no shared memory here"):
        manager.free_host_shared_memory(op_name)


def test_a_machine_without_room_is_an_error_and_not_a_signal(op_name: str) -> None:
    """More than the shared memory of the machine: nothing is left, and the next try works."""
    manager = HostMemManager()
    room = os.statvfs(SHARED_MEMORY_FOLDER)
    if not room.f_blocks:
        pytest.skip("shared memory of this machine has no limit")
    with pytest.raises(OSError, match=r"space|large"):
        manager.malloc_host_shared_memory(op_name, room.f_frsize * (room.f_blocks + 1) + (1 << 40))
    assert not _path(op_name).exists()
    manager.malloc_host_shared_memory(op_name, 4096)
    manager.finalize()


@pytest.mark.parametrize(("name", "size"), [("", 10), ("w", 0), ("w", -1), ("w", 1 << 63)])
def test_shared_memory_that_cannot_be(name: str, size: int) -> None:
    with pytest.raises(ValueError, match="give a name and a size"):
        HostMemManager().malloc_host_shared_memory(name, size)


def test_something_else_under_the_name(op_name: str) -> None:
    _path(op_name).symlink_to("/etc/hostname")
    try:
        with pytest.raises(StateError, match="cannot be opened"):
            HostMemManager().malloc_host_shared_memory(op_name, 4096)
    finally:
        _path(op_name).unlink()


def test_a_pipe_under_the_name(op_name: str) -> None:
    os.mkfifo(_path(op_name))
    try:
        with pytest.raises(StateError, match="is no file, or that of another user"):
            HostMemManager().malloc_host_shared_memory(op_name, 4096)
    finally:
        _path(op_name).unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_memory_of_another_user_is_not_taken(op_name: str) -> None:
    """It could be cut while it is used, whoever may write to it."""
    _path(op_name).write_bytes(bytes(4096))
    os.chown(_path(op_name), 12345, 12345)
    before = open_files()
    try:
        with pytest.raises(StateError, match="is no file, or that of another user") as caught:
            HostMemManager().malloc_host_shared_memory(op_name, 4096)
        assert caught.value.status == PARAM_INVALID
        assert open_files() == before
        assert _path(op_name).stat().st_size == 4096
    finally:
        _path(op_name).unlink()


def test_a_device_reaches_shared_memory(op_name: str, host: HostControls) -> None:
    device = host_runtime().device(0)
    manager = HostMemManager(device)
    info = manager.malloc_host_shared_memory(op_name, 8192)
    assert info.device_addr > 0
    assert live_now(host).registered == 1
    info.view[:4] = (1, 2, 3, 4)
    back = bytearray(4)
    device.memcpy_out(back, info.device_addr)
    assert back == b"\x01\x02\x03\x04"
    manager.finalize()
    assert live_now(host).registered == 0


def test_staging_buffers_are_used_again(host: HostControls) -> None:
    with PinnedStagingPool(host_runtime().device(0), 4096, 2) as pool:
        for _ in range(5):
            with pool.buffer() as first, pool.buffer() as second:
                assert first is not second
                first.view[:3] = b"abc"
                assert pool.statistics.current_count == 2
        assert host.calls("aclrtMallocHost") == 2
        assert (pool.pinned_bytes, pool.statistics.total_count, pool.statistics.peak_count) == (8192, 10, 2)
        assert pool.device_id == 0
    assert live_now(host).host_blocks == 0


def test_who_comes_when_all_are_lent_waits() -> None:
    with PinnedStagingPool(host_runtime().device(0), 4096, 1) as pool:
        got: list[int] = []

        def work() -> None:
            with pool.buffer(30) as buffer:
                got.append(buffer.addr)

        with pool.buffer() as buffer:
            addr = buffer.addr
            thread = threading.Thread(target=work)
            thread.start()
            with pytest.raises(StateError, match=r"all 1 staging buffers are lent after 0\.01 s"), pool.buffer(0.01):
                pass
            assert got == []
        thread.join(30)
        assert got == [addr]


def test_a_closed_staging_pool(host: HostControls) -> None:
    pool = PinnedStagingPool(host_runtime().device(0), 4096, 2)
    with pool.buffer():
        pool.close()
        assert live_now(host).host_blocks == 1
    assert live_now(host).host_blocks == 0
    with pytest.raises(StateError, match="closed"), pool.buffer():
        pass
    for size, most in ((0, 1), (1, 0)):
        with pytest.raises(ValueError):
            PinnedStagingPool(host_runtime().device(0), size, most)
