"""One contract for every memory resource: blocks by size, freed by address, counted, refused alike."""

import io
import itertools
import threading
from collections.abc import Callable, Iterator

import pytest

from acl_shim import Runtime
from gevar.errors import SizeOverflowError, StateError
from gevar.memory import (
    HOST_DEVICE_ID,
    CachingAllocator,
    DeviceMemoryManager,
    ExpandableActiveMemoryAllocator,
    FailureCallbackResourceAdaptor,
    HostMemAllocator,
    LimitingResourceAdaptor,
    LoggingResourceAdaptor,
    MemoryResource,
    MemoryStatistics,
    RdmaPoolAllocator,
    StatisticsResourceAdaptor,
    TrackingResourceAdaptor,
)
from gevar.status import PARAM_INVALID
from gevar.types import DevAddr, DeviceId, MemType

D0, HBM = DeviceId(0), MemType.RT_MEMORY_HBM
MIB = 1 << 20
Make = Callable[[DeviceMemoryManager], MemoryResource]


def _rdma(manager: DeviceMemoryManager) -> RdmaPoolAllocator:
    return manager.pools.init_rdma_pool(64 * MIB, D0)


RESOURCES: dict[str, Make] = {
    "plain": lambda manager: manager.resource(HBM, D0),
    "p2p": lambda manager: manager.resource(MemType.RT_MEMORY_P2P_DDR, D0),
    "caching": lambda manager: CachingAllocator(manager.resource(HBM, D0)),
    "rdma": _rdma,
    "expandable": lambda manager: ExpandableActiveMemoryAllocator(manager.runtime.device(0), max_bytes=64 * MIB),
    "host": lambda manager: HostMemAllocator(),
    "statistics": lambda manager: StatisticsResourceAdaptor(manager.resource(HBM, D0)),
    "limiting": lambda manager: LimitingResourceAdaptor(manager.resource(HBM, D0), 64 * MIB),
    "tracking": lambda manager: TrackingResourceAdaptor(manager.resource(HBM, D0), with_stacks=True),
    "logging": lambda manager: LoggingResourceAdaptor(manager.resource(HBM, D0), io.StringIO()),
    "failure hook": lambda manager: FailureCallbackResourceAdaptor(manager.resource(HBM, D0), lambda *_: False),
    "stacked": lambda manager: StatisticsResourceAdaptor(
        LimitingResourceAdaptor(TrackingResourceAdaptor(CachingAllocator(_rdma(manager))), 64 * MIB)
    ),
}


@pytest.fixture
def manager(runtime: Runtime) -> Iterator[DeviceMemoryManager]:
    with DeviceMemoryManager(runtime) as manager:
        yield manager


@pytest.fixture(params=RESOURCES)
def resource(request: pytest.FixtureRequest, manager: DeviceMemoryManager) -> Iterator[MemoryResource]:
    resource = RESOURCES[request.param](manager)
    yield resource
    if isinstance(resource, ExpandableActiveMemoryAllocator):
        resource.close()


def test_blocks_are_apart_and_counted(resource: MemoryResource) -> None:
    sizes = (1, 511, 512, 4097, 70_000, 3)
    addrs = [resource.allocate(size, "weights") for size in sizes]
    places = sorted(zip(addrs, sizes, strict=True))
    assert all(addr + size <= after for (addr, size), (after, _) in itertools.pairwise(places))
    total = sum(sizes)
    assert resource.statistics == MemoryStatistics(total, 6, total, 6, total, 6)
    for addr in addrs[::2]:
        resource.free(addr)
    left = sum(sizes[1::2])
    assert resource.statistics == MemoryStatistics(left, 3, total, 6, total, 6)
    for addr in addrs[1::2]:
        resource.free(addr)
    again = resource.allocate(100)
    assert resource.statistics == MemoryStatistics(100, 1, total, 6, total + 100, 7)
    resource.free(again)


def test_the_device_is_known(resource: MemoryResource) -> None:
    assert resource.device_id in (D0, HOST_DEVICE_ID)
    assert (resource.device_id == HOST_DEVICE_ID) == isinstance(resource, HostMemAllocator)


@pytest.mark.parametrize("size", [-1, -(1 << 63)])
def test_negative_sizes(resource: MemoryResource, size: int) -> None:
    with pytest.raises(ValueError, match=f"size_bytes is {size}"):
        resource.allocate(size)
    assert resource.statistics == MemoryStatistics()


def test_size_0(resource: MemoryResource) -> None:
    if isinstance(resource, HostMemAllocator):
        assert resource.allocate(0) != resource.allocate(0)
        return
    with pytest.raises(ValueError, match="give at least 1 byte"):
        resource.allocate(0)


@pytest.mark.parametrize("size", [1 << 63, (1 << 64) - 510, (1 << 64) - 1])
def test_sizes_that_leave_63_bits(resource: MemoryResource, size: int) -> None:
    with pytest.raises(SizeOverflowError) as caught:
        resource.allocate(size)
    assert (caught.value.value, caught.value.status) == (size, PARAM_INVALID)
    assert resource.statistics == MemoryStatistics()
    resource.free(resource.allocate(64))


@pytest.mark.parametrize("size", [1.5, "4", None])
def test_sizes_that_are_no_integers(resource: MemoryResource, size: object) -> None:
    with pytest.raises(TypeError):
        resource.allocate(size)  # type: ignore[arg-type]


def test_a_block_is_freed_once_by_its_first_address(resource: MemoryResource) -> None:
    addr = resource.allocate(1024)
    for wrong in (addr + 1, addr - 512, 0, 1 << 62):
        with pytest.raises(StateError, match="free a block once, by its first address") as caught:
            resource.free(DevAddr(wrong))
        assert caught.value.status is not None
    resource.free(addr)
    with pytest.raises(StateError, match="free a block once"):
        resource.free(addr)
    assert resource.statistics.current_count == 0


def test_threads_never_share_a_block(resource: MemoryResource) -> None:
    errors: list[BaseException] = []
    held: dict[int, int] = {}
    lock = threading.Lock()

    def work(number: int) -> None:
        try:
            for n in range(40):
                size = (n * 37 + number) % 5000 + 1
                addr = resource.allocate(size, f"thread {number}")
                with lock:
                    assert addr not in held
                    held[addr] = size
                with lock:
                    del held[addr]
                resource.free(addr)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    statistics = resource.statistics
    assert (statistics.current_bytes, statistics.current_count, statistics.total_count) == (0, 0, 120)
    assert statistics.peak_count <= 3
