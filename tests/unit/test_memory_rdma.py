"""The pool of registered memory: one block, best fit, pages, its end."""

import pytest

from acl_shim.host import HostControls
from gevar.errors import OutOfMemoryError, StateError
from gevar.memory import DeviceMemoryManager, MemoryShortageError, RdmaPoolAllocator
from gevar.status import GE_MULTI_INIT, INTERNAL_ERROR
from gevar.types import DevAddr, DeviceId, MemType
from tests.helpers.memory_resource import FakeResource
from tests.helpers.runtime import host_runtime

KIB, MIB = 1 << 10, 1 << 20
D0, D1, HBM = DeviceId(0), DeviceId(1), MemType.RT_MEMORY_HBM


@pytest.fixture
def pool() -> RdmaPoolAllocator:
    pool = RdmaPoolAllocator(FakeResource())
    pool.init_memory(4 * MIB)
    return pool


def test_before_and_after_init() -> None:
    pool = RdmaPoolAllocator(FakeResource())
    for call in (pool.get_base_addr, lambda: pool.allocate(100)):
        with pytest.raises(StateError, match="has no memory") as caught:
            call()
        assert caught.value.status == INTERNAL_ERROR
    pool.init_memory(1000)
    assert pool.get_base_addr()[1] == 4096
    with pytest.raises(StateError, match="initialised already") as caught:
        pool.init_memory(1000)
    assert caught.value.status == GE_MULTI_INIT


@pytest.mark.parametrize("size", [1, 4097, 2 * MIB + 1])
def test_pieces_start_on_a_page(pool: RdmaPoolAllocator, size: int) -> None:
    base, _ = pool.get_base_addr()
    pool.allocate(100)
    assert (pool.allocate(size) - base) % 4096 == 0


def test_best_fit_split_and_merge(pool: RdmaPoolAllocator) -> None:
    base, _ = pool.get_base_addr()
    a, b, c, d = (pool.allocate(size * KIB) for size in (64, 32, 128, 64))
    assert [a, b, c, d] == [base, base + 64 * KIB, base + 96 * KIB, base + 224 * KIB]
    pool.free(a)
    pool.free(c)
    assert pool.allocate(40 * KIB) == a  # the smaller hole; more than half of it is taken whole
    assert pool.allocate(4 * KIB) == c
    pool.free(c)
    pool.free(a)
    pool.free(b)  # joins both neighbours
    assert pool.allocate(224 * KIB) == base


def test_it_runs_out(pool: RdmaPoolAllocator) -> None:
    pool.allocate(3 * MIB, "gradients")
    with pytest.raises(MemoryShortageError, match="gradients") as caught:
        pool.allocate(2 * MIB)
    error = caught.value
    assert isinstance(error, OutOfMemoryError)
    assert (error.code, error.requested_bytes, error.free_bytes, error.largest_free_bytes) == (
        207001,
        2 * MIB,
        0,
        0,
    )
    assert pool.statistics.current_count == 1


def test_the_end_forgets_what_is_out() -> None:
    upstream = FakeResource()
    pool = RdmaPoolAllocator(upstream)
    pool.finalize()
    pool.init_memory(MIB)
    addr = pool.allocate(100)
    pool.finalize()
    assert (upstream.live, pool.statistics.current_count) == ({}, 0)
    with pytest.raises(StateError, match="no live block"):
        pool.free(addr)
    pool.init_memory(2 * MIB)
    assert pool.get_base_addr()[1] == 2 * MIB


def test_each_device_has_its_own(host: HostControls) -> None:
    host.configure(devices=2)
    with DeviceMemoryManager(host_runtime()) as manager:
        with pytest.raises(StateError, match=r"device 1 has no pool of registered RT_MEMORY_HBM.*init_rdma_pool"):
            manager.get_rdma_pool_memory(HBM, 100, D1)
        manager.pools.init_rdma_pool(MIB, D0)
        manager.pools.init_rdma_pool(MIB, D1)
        addrs = [manager.get_rdma_pool_memory(HBM, size, device) for size in (0, 100) for device in (D0, D1)]
        assert len(set(addrs)) == 4
        owners = [host_runtime().device(0).pointer_attributes(addr).device_id for addr in addrs]
        assert owners == [0, 1, 0, 1]
        with pytest.raises(StateError):
            manager.get_rdma_pool_memory(MemType.RT_MEMORY_P2P_DDR, 100, D0)
        manager.pools.rdma_pool(HBM, D0).free(DevAddr(addrs[0]))
        assert [block.purpose for block in manager.blocks()] == ["RDMA pool", "RDMA pool"]


def test_a_pool_without_memory_is_not_made(host: HostControls) -> None:
    host.configure(capacity_bytes=8 * MIB)
    with DeviceMemoryManager(host_runtime()) as manager:
        with pytest.raises(OutOfMemoryError):
            manager.pools.init_rdma_pool(64 * MIB, D0)
        with pytest.raises(StateError, match="no pool"):
            manager.pools.rdma_pool(HBM, D0)
        manager.pools.init_rdma_pool(MIB, D0)
