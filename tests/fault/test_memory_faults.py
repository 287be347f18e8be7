"""Fail call 1, 2, 3 … of each function: what failed leaves everything as it was, and the next try works."""

import dataclasses
from itertools import count
from pathlib import Path

import pytest

from acl_shim import Device
from acl_shim.api_types import MemHandle
from acl_shim.host import HostControls
from gevar import Session, load_model
from gevar.errors import AclError, OutOfMemoryError, StateError
from gevar.memory import (
    CachingAllocator,
    DeviceMemoryManager,
    ExpandableActiveMemoryAllocator,
    ExpandableFigures,
    HostMemManager,
    HugePageMode,
    PinnedStagingPool,
    RdmaPoolAllocator,
    SharedPagePools,
)
from gevar.types import DevAddr, DeviceId, MemType
from tests.helpers.models import small_model
from tests.helpers.runtime import fail_until_passes, host_runtime

MIB, GIB = 1 << 20, 1 << 30
PAGE = 2 * MIB
CALLS = (
    "aclrtSetCurrentContext",
    "aclrtReserveMemAddress",
    "aclrtMallocPhysical",
    "aclrtMapMem",
    "aclrtUnmapMem",
    "aclrtFreePhysical",
    "aclrtReleaseMemAddress",
    "aclrtMemcpy",
    "aclrtGetMemInfo",
)
CODES = (507899, 207001, 107000)
HBM, D0 = MemType.RT_MEMORY_HBM, DeviceId(0)


@pytest.fixture
def device(host: HostControls) -> Device:
    host.configure(pages_1g=2, pages_2m=600)
    device = host_runtime().device(0)
    device.mem_info()  # it is set from now on
    return device


def _tables(allocator: ExpandableActiveMemoryAllocator) -> tuple[object, ...]:
    """What an allocator must be again after a failure; how often pages were chosen or refused may have grown."""
    figures: ExpandableFigures = allocator.figures
    memory = dataclasses.astuple(figures.memory)[:2]
    rest = [getattr(figures, field.name) for field in dataclasses.fields(figures)]
    return memory, *rest[1:-1], allocator.blocks()


@pytest.mark.parametrize(
    ("mode", "code"),
    [*((HugePageMode.NONE, code) for code in CODES), (HugePageMode.ONLY, 207001), (HugePageMode.FIRST, 507899)],
)
@pytest.mark.parametrize("function", CALLS[:4])
def test_memory_that_grows_makes_all_or_nothing(
    host: HostControls, device: Device, function: str, mode: HugePageMode, code: int
) -> None:
    page_bytes = PAGE if mode is HugePageMode.NONE else GIB
    allocator = ExpandableActiveMemoryAllocator(device, page_bytes, mode=mode, max_bytes=8 * GIB, is_checked=True)
    if function == "aclrtSetCurrentContext" and code == 107000:
        pytest.skip("this code says that the device was reset")
    sizes = [512, 3 * PAGE, 100] if mode is HugePageMode.NONE else [512, GIB + PAGE]

    def operation() -> None:
        try:
            for size in sizes:
                before = _tables(allocator)
                try:
                    allocator.allocate(size)
                except AclError as error:
                    assert error.code == code  # noqa: PT017
                    assert _tables(allocator)[0] == before[0]
                    assert allocator.blocks() == before[-1]
                    raise
        finally:
            allocator.free_memory()

    failed = fail_until_passes(host, function, operation, code=code)
    expected = {"aclrtReserveMemAddress": 1, "aclrtMallocPhysical": 4, "aclrtMapMem": 4}
    if mode is HugePageMode.NONE:
        assert failed == expected.get(function, failed)
    elif mode is HugePageMode.FIRST and function == "aclrtMallocPhysical":
        assert failed == 0  # a page of 2 MiB serves
        assert allocator.figures.decisions.refused > 0
    assert failed > 0 or mode is HugePageMode.FIRST


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("function", CALLS[:4])
def test_the_fixed_base_form_grows_all_or_nothing(host: HostControls, device: Device, function: str, code: int) -> None:
    if function == "aclrtSetCurrentContext" and code == 107000:
        pytest.skip("this code says that the device was reset")
    allocator = ExpandableActiveMemoryAllocator(device, max_bytes=GIB, is_checked=True)
    base, failures = allocator.malloc_memory("first", PAGE + 1), 0
    device.memcpy_in(base, 4, b"data")
    for n in count(1):
        before, live = _tables(allocator), host.live()
        host.fail_nth(function, n, code)
        try:
            grown = allocator.malloc_memory("more", 5 * PAGE)
        except AclError as error:
            host.clear_failures()
            assert error.code == code  # noqa: PT017
            assert (_tables(allocator), host.live()) == (before, live)
            failures += 1
        else:
            host.clear_failures()
            break
    assert grown == base
    assert failures == (0 if function == "aclrtReserveMemAddress" else 3)
    back = bytearray(4)
    device.memcpy_out(back, base)
    assert back == b"data"
    allocator.free_memory()
    assert allocator.figures.used_bytes == 5 * PAGE  # the other user has it still
    allocator.free_memory()
    assert (host.live().handles, host.live().reservations) == (0, 0)


@pytest.mark.parametrize("function", CALLS)
@pytest.mark.parametrize("shared", [False, True])
def test_freeing_a_block_is_all_or_nothing(host: HostControls, device: Device, function: str, shared: bool) -> None:
    pools = SharedPagePools() if shared else None
    allocator = ExpandableActiveMemoryAllocator(device, max_bytes=GIB, shared_pools=pools, is_checked=True)
    kept = allocator.allocate(512, "kept")
    device.memcpy_in(kept, 4, b"kept")
    addr = allocator.allocate(4 * PAGE, "large")
    device.memcpy_in(addr, 5, b"large")
    for n in count(1):
        before, live = _tables(allocator), host.live()
        host.fail_nth(function, n, 507899)
        try:
            allocator.free(addr)
        except AclError as error:
            host.clear_failures()
            assert error.code == 507899  # noqa: PT017
            assert _tables(allocator) == before
            assert host.live() == live
            back = bytearray(5)
            device.memcpy_out(back, addr)
            assert back == b"large"
        else:
            host.clear_failures()
            break
    assert n == (5 if function == "aclrtUnmapMem" else 1)
    assert allocator.figures.physical_bytes == PAGE
    addr = allocator.allocate(4 * PAGE)
    allocator.close()
    assert host.live().handles == 0  # a page that the device refused went back later


@pytest.mark.parametrize("function", CALLS)
def test_freeing_everything_is_all_or_nothing(host: HostControls, device: Device, function: str) -> None:
    allocator = ExpandableActiveMemoryAllocator(device, max_bytes=GIB, is_checked=True)
    first = allocator.allocate(3 * PAGE, "v")
    device.memcpy_in(first, 4, b"data")
    for n in count(1):
        before, live = _tables(allocator), host.live()
        host.fail_nth(function, n, 507899)
        try:
            allocator.free_memory()
        except AclError:
            host.clear_failures()
            assert _tables(allocator) == before
            assert host.live() == live
            back = bytearray(4)
            device.memcpy_out(back, first)
            assert back == b"data"
        else:
            host.clear_failures()
            break
    assert n == {"aclrtUnmapMem": 4, "aclrtReleaseMemAddress": 2}.get(function, 1)
    assert _tables(allocator)[0] == (0, 0)
    assert host.live().handles == 0
    allocator.allocate(512)
    allocator.close()


@pytest.mark.parametrize("keep", ["host", "reload", "discard"])
@pytest.mark.parametrize("function", CALLS)
def test_sleep_and_wake_are_all_or_nothing(host: HostControls, device: Device, function: str, keep: str) -> None:
    allocator = ExpandableActiveMemoryAllocator(device, max_bytes=GIB, is_checked=True)
    blocks = {allocator.allocate(size): bytes([n]) * size for n, size in enumerate((700, 2 * PAGE, 4096, PAGE))}
    gap = list(blocks)[2]
    del blocks[gap]
    allocator.free(gap)  # two pieces to copy

    def fill(addr: DevAddr, size: int, tag: str) -> None:
        device.memcpy_in(addr, size, blocks[addr])

    def check() -> None:
        for addr, data in blocks.items():
            back = bytearray(len(data))
            device.memcpy_out(back, addr)
            assert back == data

    for addr in blocks:
        fill(addr, len(blocks[addr]), "")
    awake, asleep = _tables(allocator), None
    for step in (lambda: allocator.sleep(keep, fill if keep == "reload" else None), allocator.wake):
        for n in count(1):
            before, live = _tables(allocator), host.live()
            host.fail_nth(function, n, 507899)
            try:
                step()
            except AclError:
                host.clear_failures()
                assert _tables(allocator) == before
                assert host.live() == live
                if asleep is None:
                    check()
            else:
                host.clear_failures()
                break
            assert n < 50
        if asleep is None:
            asleep = _tables(allocator)
            assert allocator.figures.is_asleep
            assert host.live().mappings == 0
    assert _tables(allocator) == awake
    if keep != "discard":
        check()
    allocator.close()
    assert host.live().handles == 0


def test_a_page_that_the_device_refuses_waits_and_goes_back_later(host: HostControls, device: Device) -> None:
    allocator = ExpandableActiveMemoryAllocator(device, max_bytes=GIB)
    allocator.allocate(512)
    for _ in range(2):
        addr = allocator.allocate(PAGE)
        host.fail_nth("aclrtFreePhysical", 1, 507899)
        allocator.free(addr)  # the block is gone; its page is unmapped, and stays with the pool
        assert (host.live().handles, host.live().mappings) == (2, 1)
        allocator.free(allocator.allocate(PAGE))
        assert host.live().handles == 1
    host.fail_nth("aclrtFreePhysical", 1, 507899)
    allocator.close()
    assert host.live().handles == 0


@pytest.mark.parametrize("mode", [HugePageMode.NONE, HugePageMode.FIRST])
def test_shared_pages_that_the_device_refuses_go_back_with_the_next_call(
    host: HostControls, device: Device, mode: HugePageMode
) -> None:
    pools, page_bytes = SharedPagePools(), PAGE if mode is HugePageMode.NONE else GIB
    allocator = ExpandableActiveMemoryAllocator(device, page_bytes, mode=mode, max_bytes=4 * GIB, shared_pools=pools)
    for call in (allocator.free_memory, allocator.close, lambda: allocator.allocate(512)):
        allocator.allocate(3 * PAGE)
        host.fail_nth("aclrtFreePhysical", 1, 507899)
        with pytest.raises(AclError, match="aclrtFreePhysical"):
            allocator.free_memory()
        assert allocator.blocks() == []
        assert (host.live().handles, host.live().reservations) == (1, 0)
        call()
    allocator.close()
    assert host.live().handles == 0
    assert pools.pool(device, page_bytes).statistics.users == 0


@pytest.mark.parametrize("n", [1, 2])
def test_each_pool_is_left_once(host: HostControls, n: int) -> None:
    """Pages of both kinds wait; whichever cannot go back, each pool counts one user less in the end."""
    host.configure(pages_1g=1)
    device, pools = host_runtime().device(0), SharedPagePools()
    allocator = ExpandableActiveMemoryAllocator(
        device, GIB, mode=HugePageMode.FIRST, max_bytes=4 * GIB, shared_pools=pools
    )
    allocator.allocate(GIB + PAGE)
    host.fail_nth("aclrtFreePhysical", n, 507899)
    with pytest.raises(AclError, match="aclrtFreePhysical"):
        allocator.free_memory()
    allocator.free_memory()
    figures = [pools.pool(device, page_bytes).statistics for page_bytes in (GIB, PAGE)]
    assert [(pool.pages, pool.users) for pool in figures] == [(0, 0), (0, 0)]


def test_the_undoing_of_a_failure_may_fail_too(host: HostControls, device: Device) -> None:
    """The third page cannot be mapped, and the page made before it cannot be unmapped: nothing is lost for good."""
    allocator = ExpandableActiveMemoryAllocator(device, max_bytes=GIB, is_checked=True)
    allocator.allocate(512)
    host.fail_nth("aclrtMapMem", 3, 507899)
    host.fail_nth("aclrtUnmapMem", 1, 107000)
    with pytest.raises(AclError, match="aclrtMapMem") as caught:
        allocator.allocate(3 * PAGE)
    assert any("stays mapped" in note for note in caught.value.__notes__)
    host.clear_failures()
    addr = allocator.allocate(3 * PAGE)
    device.memcpy_in(addr, 4, b"data")
    allocator.free(addr)
    allocator.close()
    assert host.live().handles == 0


def test_a_freed_place_stays_free_when_its_new_block_fails(host: HostControls, device: Device) -> None:
    allocator = ExpandableActiveMemoryAllocator(device, max_bytes=GIB, is_checked=True)
    addr = allocator.allocate(4 * PAGE)
    allocator.allocate(512)
    allocator.free(addr)
    before = _tables(allocator)
    for call in ("aclrtMallocPhysical", "aclrtMapMem"):
        host.fail_nth(call, 2, 507899)
        with pytest.raises(AclError, match=call):
            allocator.allocate(3 * PAGE)
        assert _tables(allocator) == before
    assert allocator.allocate(4 * PAGE) == addr
    allocator.close()


def test_an_empty_range_that_cannot_go_back_is_used_by_the_next_block(host: HostControls, device: Device) -> None:
    allocator = ExpandableActiveMemoryAllocator(device, max_bytes=GIB)
    host.fail_nth("aclrtMallocPhysical", 1, 507899)
    host.fail_nth("aclrtReleaseMemAddress", 1, 107000)
    with pytest.raises(AclError, match="aclrtMallocPhysical") as caught:
        allocator.allocate(512)
    assert "the empty range stays reserved" in caught.value.__notes__[0]
    assert host.live().reservations == 1
    allocator.allocate(512)
    assert host.live().reservations == 1
    allocator.close()
    assert host.live().reservations == 0


def test_a_page_that_cannot_be_mapped_again(host: HostControls, device: Device) -> None:
    """Unmapping fails at the second page, mapping the first again fails too: freeing everything still works."""
    allocator = ExpandableActiveMemoryAllocator(device, max_bytes=GIB)
    allocator.allocate(3 * PAGE)
    host.fail_nth("aclrtUnmapMem", 2, 507899)
    host.fail_nth("aclrtMapMem", 1, 107000)
    with pytest.raises(AclError, match="aclrtUnmapMem") as caught:
        allocator.sleep("discard")
    assert "is not mapped any more: free all of this memory" in caught.value.__notes__[0]
    host.clear_failures()
    assert not allocator.figures.is_asleep
    allocator.free_memory()
    live = host.live()
    assert (live.handles, live.mappings, live.reservations) == (0, 0, 0)


def test_a_page_that_a_failed_wake_cannot_unmap_is_used_by_the_next_try(host: HostControls, device: Device) -> None:
    allocator = ExpandableActiveMemoryAllocator(device, max_bytes=GIB)
    addr = allocator.allocate(3 * PAGE)
    device.memcpy_in(addr, 4, b"data")
    allocator.sleep()
    host.fail_nth("aclrtMapMem", 2, 507899)
    host.fail_nth("aclrtUnmapMem", 1, 107000)
    with pytest.raises(AclError, match="aclrtMapMem") as caught:
        allocator.wake()
    assert "stays mapped" in caught.value.__notes__[0]
    assert allocator.figures.is_asleep
    host.clear_failures()
    allocator.wake()
    back = bytearray(4)
    device.memcpy_out(back, addr)
    assert back == b"data"
    allocator.close()
    assert host.live().handles == 0


def test_a_shared_pool_that_gave_back_all_it_could_is_still_short(host: HostControls) -> None:
    host.configure(pages_2m=4)
    device, pools = host_runtime().device(0), SharedPagePools()
    first, second = (ExpandableActiveMemoryAllocator(device, max_bytes=GIB, shared_pools=pools) for _ in range(2))
    second.set_reuse(False)
    first.allocate(3 * PAGE)
    first.free(first.allocate(PAGE))  # one page waits
    with pytest.raises(OutOfMemoryError):
        second.allocate(2 * PAGE)
    assert second.blocks() == []
    second.allocate(PAGE)
    for allocator in (first, second):
        allocator.close()
    with pytest.raises(StateError, match="has no page 0x7 out: free a page once"):
        pools.pool(device, PAGE).free_physical(MemHandle(7))


@pytest.mark.parametrize(
    "function", ["aclrtMallocWithCfg", "aclrtFree", "aclrtGetMemInfo", "aclrtMallocHost", "aclrtFreeHost"]
)
def test_the_manager_and_its_pools(host: HostControls, function: str) -> None:
    host_runtime().device(0).mem_info()  # it is set from now on

    def operation() -> None:
        with DeviceMemoryManager(host_runtime()) as manager:
            pool = manager.pools.init_rdma_pool(MIB, D0)
            pool.free(pool.allocate(5000))
            cache = manager.pools.caching_allocator(HBM, D0)
            cache.free(cache.allocate(5000))
            cache.free_cached_blocks()
            manager.get_host_pool_memory(HBM, 100)
            with PinnedStagingPool(host_runtime().device(0), 4096, 2) as staging, staging.buffer() as buffer:
                buffer.view[:4] = b"1234"

    try:
        fail_until_passes(host, function, operation)
    finally:
        host.clear_failures()


@pytest.mark.parametrize("function", ["aclrtHostRegisterV2", "aclrtHostGetDevicePointer"])
def test_shared_host_memory_that_cannot_be_registered_leaves_no_name(host: HostControls, function: str) -> None:
    host_runtime().device(0).mem_info()  # it is set from now on
    manager = HostMemManager(host_runtime().device(0))

    def operation() -> None:
        manager.malloc_host_shared_memory(f"fault/{function}", 8192)
        manager.finalize()

    assert fail_until_passes(host, function, operation) == 1
    assert manager.query_var_mem_info(f"fault/{function}") is None


def test_a_pool_that_cannot_be_made_is_not_there(host: HostControls) -> None:
    with DeviceMemoryManager(host_runtime()) as manager:
        pool = RdmaPoolAllocator(manager.resource(HBM, D0))
        host.fail_nth("aclrtMallocWithCfg", 1, 507899)
        with pytest.raises(AclError):
            pool.init_memory(MIB)
        pool.init_memory(MIB)
        host.fail_nth("aclrtFree", 1, 507899)
        with pytest.raises(AclError):
            pool.finalize()
        assert pool.allocate(100) == pool.get_base_addr()[0]
        pool.finalize()
        assert pool.statistics.current_count == 0
        assert manager.counts.live_blocks == 0


def test_a_cache_that_cannot_give_back_keeps_what_it_has(host: HostControls) -> None:
    with DeviceMemoryManager(host_runtime()) as manager:
        cache = CachingAllocator(manager.resource(HBM, D0))
        for size in (512, 2 * MIB):
            cache.free(cache.allocate(size))
        before = cache.cached_bytes
        host.fail_nth("aclrtFree", 1, 507899)
        with pytest.raises(AclError):
            cache.free_cached_blocks()
        assert cache.cached_bytes == cache.segment_bytes == before
        assert cache.free_cached_blocks() == before
        assert manager.counts.live_blocks == 0


@pytest.mark.parametrize("options", [{}, {"ge.variableUse1gHugePage": "1"}])
@pytest.mark.parametrize("function", CALLS[1:-2])
def test_a_session_whose_variables_grow(
    host: HostControls, device: Device, tmp_path: Path, function: str, options: dict[str, str]
) -> None:
    """A load fails or succeeds as a whole, and whatever the end of a session could not free goes with it."""
    path = tmp_path / "small.om"
    values = small_model(path)

    def operation() -> None:
        with Session(host_runtime(), options=options) as session, load_model(path, session=session) as loaded:
            assert (loaded.read("scale") == values["scale"]).all()

    failed = fail_until_passes(host, function, operation)
    huge_only = "ge.variableUse1gHugePage" in options
    expected = {
        "aclrtReserveMemAddress": huge_only,  # else variables get plain memory
        "aclrtMallocPhysical": huge_only,
        "aclrtMapMem": huge_only,
        "aclrtUnmapMem": True,
        "aclrtReleaseMemAddress": True,
        "aclrtFreePhysical": False,  # the page waits, and goes back at once
    }
    assert failed == expected[function]
