"""Device memory from a runtime: blocks, counts, copies, the end."""

import gc
import threading
from collections.abc import Iterator

import pytest

from acl_shim import Runtime
from acl_shim.host import HostControls
from gevar.errors import AclError, OutOfMemoryError, StateError
from gevar.memory import DeviceMemoryManager, MemoryCounts, MemoryManager
from gevar.types import DevAddr, DeviceId, MemType
from tests.helpers.runtime import host_runtime, live_now

HBM = MemType.RT_MEMORY_HBM
D0, D1 = DeviceId(0), DeviceId(1)


@pytest.fixture
def manager(runtime: Runtime) -> Iterator[DeviceMemoryManager]:
    with DeviceMemoryManager(runtime) as manager:
        yield manager


def test_it_is_a_memory_manager(manager: DeviceMemoryManager) -> None:
    memory: MemoryManager = manager
    addr = memory.malloc_memory(HBM, "weights", 1000, D0)
    memory.free_memory(HBM, addr, D0)


def test_bytes_go_in_and_come_out(manager: DeviceMemoryManager) -> None:
    addr = manager.malloc_memory(HBM, "weights", 4096, D0)
    data = bytes(range(256)) * 4
    manager.memcpy_in(DevAddr(addr + 100), 2000, data, D0)
    back = bytearray(len(data))
    manager.memcpy_out(back, DevAddr(addr + 100), D0)
    assert back == data
    with pytest.raises(ValueError, match="does not fit"):
        manager.memcpy_in(addr, 10, b"12345678901", D0)


def test_every_live_block_is_known(manager: DeviceMemoryManager) -> None:
    first = manager.malloc_memory(HBM, "one", 1000, D0)
    second = manager.malloc_memory(MemType.RT_MEMORY_DEFAULT, "two", 5000, D0)
    blocks = manager.blocks()
    assert [(b.device_id, b.dev_addr, b.size_bytes, b.mem_type, b.purpose) for b in blocks] == [
        (0, first, 1000, HBM, "one"),
        (0, second, 5000, MemType.RT_MEMORY_DEFAULT, "two"),
    ]
    assert manager.counts == MemoryCounts(mallocs=2, frees=0, live_blocks=2, live_bytes=6000)
    manager.free_memory(HBM, first, D0)
    assert [block.dev_addr for block in manager.blocks()] == [second]
    assert manager.counts == MemoryCounts(mallocs=2, frees=1, live_blocks=1, live_bytes=5000)
    assert repr(manager) == "<DeviceMemoryManager of 1 blocks, 4.88 KiB (5000 B)>"


def test_counts_equal_what_was_done(manager: DeviceMemoryManager) -> None:
    addrs = [manager.malloc_memory(HBM, "x", 100 + n, D0) for n in range(7)]
    for addr in addrs[:3]:
        manager.free_memory(HBM, addr, D0)
    assert manager.counts == MemoryCounts(7, 3, 4, 103 + 104 + 105 + 106)


def test_a_block_is_freed_once(manager: DeviceMemoryManager) -> None:
    addr = manager.malloc_memory(HBM, "x", 100, D0)
    manager.free_memory(HBM, addr, D0)
    with pytest.raises(StateError, match=f"device 0 has no live RT_MEMORY_HBM block at {addr:#x}"):
        manager.free_memory(HBM, addr, D0)
    assert manager.counts.frees == 1


@pytest.mark.parametrize(("mem_type", "inner", "device"), [(MemType.RT_MEMORY_DDR, 0, 0), (HBM, 64, 0), (HBM, 0, 1)])
def test_only_the_right_block_is_freed(
    manager: DeviceMemoryManager, mem_type: MemType, inner: int, device: int
) -> None:
    addr = manager.malloc_memory(HBM, "x", 4096, D0)
    with pytest.raises(StateError, match="free a block once"):
        manager.free_memory(mem_type, DevAddr(addr + inner), DeviceId(device))
    assert manager.counts.live_blocks == 1


@pytest.mark.parametrize("mem_type", [MemType.RT_MEMORY_HOST, MemType.RT_MEMORY_HOST_SVM, MemType.RT_MEMORY_RESERVED])
def test_memory_that_is_not_on_a_device_is_refused(manager: DeviceMemoryManager, mem_type: MemType) -> None:
    with pytest.raises(ValueError, match="is not device memory"):
        manager.malloc_memory(mem_type, "x", 100, D0)


HIGH, LOW, P2P = 0x1000, 0x0100, 3


@pytest.mark.parametrize(
    ("mem_type", "call", "policy"),
    [
        (MemType.RT_MEMORY_DEFAULT, "aclrtMallocWithCfg", HIGH),
        (MemType.RT_MEMORY_HBM, "aclrtMallocWithCfg", HIGH),
        (MemType.RT_MEMORY_RDMA_HBM, "aclrtMallocWithCfg", HIGH),
        (MemType.RT_MEMORY_SPM, "aclrtMallocWithCfg", HIGH),
        (MemType.RT_MEMORY_DDR, "aclrtMallocWithCfg", LOW),
        (MemType.RT_MEMORY_DDR_NC, "aclrtMallocWithCfg", LOW),
        (MemType.RT_MEMORY_P2P_HBM, "aclrtMallocWithCfg", P2P),
        (MemType.RT_MEMORY_P2P_DDR, "aclrtMallocWithCfg", P2P),
        (MemType.RT_MEMORY_TS, "aclrtMallocForTaskScheduler", 0),
    ],
)
def test_each_kind_of_memory_has_its_call(host: HostControls, mem_type: MemType, call: str, policy: int) -> None:
    calls = host.calls(call)
    with DeviceMemoryManager(host_runtime()) as manager:
        addr = manager.malloc_memory(mem_type, "x", 5000, D0)
        assert host.calls(call) == calls + 1
        manager.memcpy_in(addr, 5000, bytes(5000), D0)
        manager.free_memory(mem_type, addr, D0)
        host.fail_nth(call, 1, 507899)
        with pytest.raises(AclError) as caught:
            manager.malloc_memory(mem_type, "x", 5000, D0)
        assert (caught.value.code, caught.value.call) == (507899, call)
        assert caught.value.arguments["policy"] == policy
        host.fail_nth(call, 1, 207001)
        with pytest.raises(OutOfMemoryError):
            manager.malloc_memory(mem_type, "x", 5000, D0)
        assert manager.counts.live_blocks == 0


@pytest.mark.parametrize("size", [0, -1])
def test_a_block_has_at_least_one_byte(manager: DeviceMemoryManager, size: int) -> None:
    with pytest.raises(ValueError, match="at least 1 byte"):
        manager.malloc_memory(HBM, "x", size, D0)


@pytest.mark.parametrize("device", [-1, 1000])
def test_a_device_that_is_not_there(manager: DeviceMemoryManager, device: int) -> None:
    with pytest.raises(AclError) as caught:
        manager.malloc_memory(HBM, "x", 100, DeviceId(device))
    assert caught.value.code == 107001
    assert str(device) in str(caught.value)


def test_close_gives_everything_back_and_refuses_more(runtime: Runtime) -> None:
    manager = DeviceMemoryManager(runtime)
    addr = manager.malloc_memory(HBM, "x", 100, D0)
    manager.malloc_memory(HBM, "y", 100, D0)
    manager.close()
    manager.close()
    assert manager.counts == MemoryCounts(2, 2, 0, 0)
    for call in (
        lambda: manager.malloc_memory(HBM, "z", 100, D0),
        lambda: manager.memcpy_in(addr, 4, b"1234", D0),
        lambda: manager.memcpy_out(bytearray(4), addr, D0),
    ):
        with pytest.raises(StateError, match="closed: make a new one"):
            call()
    with pytest.raises(StateError, match="free a block once"):
        manager.free_memory(HBM, addr, D0)


def test_out_of_memory_is_its_own_error_and_leaves_the_manager_usable(host: HostControls) -> None:
    host.configure(capacity_bytes=8 << 20)
    with DeviceMemoryManager(host_runtime()) as manager:
        with pytest.raises(OutOfMemoryError, match="207001") as caught:
            manager.malloc_memory(HBM, "x", 16 << 20, D0)
        assert caught.value.requested_bytes == 16 << 20
        assert isinstance(caught.value, MemoryError)
        assert manager.counts == MemoryCounts(0, 0, 0, 0)
        manager.malloc_memory(HBM, "x", 1 << 20, D0)


def test_freed_memory_is_there_again(host: HostControls) -> None:
    host.configure(capacity_bytes=10 << 20)
    with DeviceMemoryManager(host_runtime()) as manager:
        addr = manager.malloc_memory(HBM, "x", 5 << 20, D0)
        manager.free_memory(HBM, addr, D0)
        manager.malloc_memory(HBM, "x", 8 << 20, D0)


def test_the_owner_is_freed_whatever_device_is_current(host: HostControls) -> None:
    host.configure(devices=2)
    with DeviceMemoryManager(host_runtime()) as manager:
        addr = manager.malloc_memory(HBM, "x", 3 << 20, D1)
        host_runtime().device(0).mem_info()  # device 0 is current now
        used = live_now(host).devices[1].pages_2m_used
        assert used > 0
        manager.free_memory(HBM, addr, D1)
        assert live_now(host).devices[1].pages_2m_used == 0


def test_a_refused_free_keeps_the_block(host: HostControls) -> None:
    manager = DeviceMemoryManager(host_runtime())
    addr = manager.malloc_memory(HBM, "x", 100, D0)
    other = manager.malloc_memory(HBM, "y", 100, D0)
    host.fail_nth("aclrtFree", 1, 507899)
    with pytest.raises(AclError, match="507899"):
        manager.free_memory(HBM, addr, D0)
    assert sorted(block.dev_addr for block in manager.blocks()) == sorted([addr, other])
    host.fail_nth("aclrtFree", 1, 507899)
    with pytest.raises(AclError, match="507899"):
        manager.close()
    assert manager.counts.live_blocks == 1
    manager.close()
    assert manager.counts == MemoryCounts(2, 2, 0, 0)


def test_a_manager_that_is_dropped_gives_back(host: HostControls) -> None:
    manager = DeviceMemoryManager(host_runtime())
    manager.malloc_memory(HBM, "x", 100, D0)
    assert live_now(host).blocks == 1
    del manager
    assert live_now(host).blocks == 0


def test_blocks_are_booked_under_ges_module(host: HostControls) -> None:
    runtime = host_runtime()
    before = host.calls("aclrtMallocWithCfg")
    with DeviceMemoryManager(runtime) as manager:
        manager.malloc_memory(HBM, "x", 100, D0)
    assert host.calls("aclrtMallocWithCfg") == before + runtime.supports("aclrtMallocWithCfg")


@pytest.mark.parametrize(
    "mem_type",
    [
        MemType.RT_MEMORY_DEFAULT,
        MemType.RT_MEMORY_RDMA_HBM,
        MemType.RT_MEMORY_SPM,
        MemType.RT_MEMORY_DDR,
        MemType.RT_MEMORY_DDR_NC,
    ],
)
def test_every_kind_of_device_memory(manager: DeviceMemoryManager, mem_type: MemType) -> None:
    addr = manager.malloc_memory(mem_type, "x", 100, D0)
    manager.memcpy_in(addr, 100, b"1234", D0)
    manager.free_memory(mem_type, addr, D0)


def test_threads_share_a_manager(manager: DeviceMemoryManager) -> None:
    def work() -> None:
        for n in range(50):
            addr = manager.malloc_memory(HBM, "x", 100 + n, D0)
            manager.memcpy_in(addr, 100, bytes([n]) * 100, D0)
            back = bytearray(100)
            manager.memcpy_out(back, addr, D0)
            assert back == bytes([n]) * 100
            manager.free_memory(HBM, addr, D0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert manager.counts == MemoryCounts(200, 200, 0, 0)
