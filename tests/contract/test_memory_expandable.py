"""Memory that grows, on a runtime: places, pages, boundary pages, the two forms, freed blocks, bounds."""

import gc
import itertools
import random
import threading
from collections.abc import Iterator

import pytest

from acl_shim import Device, Runtime
from acl_shim.host import HostControls
from gevar.errors import AclError, OutOfMemoryError, SizeOverflowError, StateError
from gevar.memory import (
    ExpandableActiveMemoryAllocator,
    ExpandableMemoryAllocator,
    HugePageMode,
    MemoryResource,
    SessionMemAllocator,
    SharedPagePools,
)
from gevar.status import PARAM_INVALID
from gevar.types import DevAddr, DeviceId, MemType
from tests.helpers.runtime import host_runtime, live_now

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
PAGE = 2 * MIB


@pytest.fixture
def allocator(device: Device) -> Iterator[ExpandableActiveMemoryAllocator]:
    with ExpandableActiveMemoryAllocator(device, max_bytes=64 * MIB, is_checked=True) as allocator:
        yield allocator


def _pages(allocator: ExpandableActiveMemoryAllocator) -> int:
    return allocator.figures.physical_bytes // allocator.page_bytes


def _check_apart(allocator: ExpandableActiveMemoryAllocator) -> None:
    end = 0
    for addr, size, _ in allocator.blocks():
        assert addr >= end
        end = addr + size


def test_it_is_what_the_variable_manager_asks_for_and_a_resource(allocator: ExpandableActiveMemoryAllocator) -> None:
    expandable: ExpandableMemoryAllocator = allocator
    resource: MemoryResource = allocator
    assert expandable.is_support_expandable_memory()
    assert resource.device_id == 0
    assert resource.statistics.total_count == 0


def test_blocks_lie_one_behind_the_other_and_share_the_page_between_them(
    allocator: ExpandableActiveMemoryAllocator, host: HostControls
) -> None:
    first = allocator.malloc_memory("a", 1536, True)
    assert allocator.malloc_memory("b", 2048, True) == first + 1536
    assert _pages(allocator) == 1
    assert allocator.malloc_memory("c", 3 * MIB, True) == first + 3584
    assert _pages(allocator) == 2  # the third lies on the first page too
    assert allocator.figures.used_bytes == 3584 + 3 * MIB
    assert allocator.blocks() == [(first, 1536, "a"), (first + 1536, 2048, "b"), (first + 3584, 3 * MIB, "c")]
    live = live_now(host)
    assert (live.handles, live.mappings, live.reservations) == (2, 2, 1)
    allocator.free(first)
    allocator.free(DevAddr(first + 3584))  # takes the second page with it
    assert _pages(allocator) == 1
    allocator.free(DevAddr(first + 1536))
    assert _pages(allocator) == 0


def test_a_block_that_ends_on_a_page_boundary_does_not_touch_the_next_page(
    allocator: ExpandableActiveMemoryAllocator,
) -> None:
    allocator.malloc_memory("a", PAGE, True)
    assert _pages(allocator) == 1
    allocator.malloc_memory("b", 1, True)
    assert _pages(allocator) == 2


def test_no_call_more_per_page_than_needed(allocator: ExpandableActiveMemoryAllocator, host: HostControls) -> None:
    allocator.malloc_memory("first", 512, True)
    calls = {
        name: host.calls(name)
        for name in (
            "aclrtReserveMemAddress",
            "aclrtGetMemInfo",
            "aclrtMallocPhysical",
            "aclrtMapMem",
            "aclrtMemSetAccess",
            "aclrtMemGetAllocationGranularity",
            "aclrtUnmapMem",
            "aclrtFreePhysical",
        )
    }
    for _ in range(100):
        allocator.malloc_memory("small", 512, True)
    assert {name: host.calls(name) for name in calls} == calls  # none while the page has room
    allocator.malloc_memory("large", 3 * PAGE, True)
    grown = {name: host.calls(name) - before for name, before in calls.items()}
    assert grown.pop("aclrtMallocPhysical") == grown.pop("aclrtMapMem") == 3
    assert set(grown.values()) == {0}
    allocator.free_memory()
    assert host.calls("aclrtUnmapMem") - calls["aclrtUnmapMem"] == 4
    assert host.calls("aclrtFreePhysical") - calls["aclrtFreePhysical"] == 4


def test_bytes_survive_growth_and_frees_of_others(allocator: ExpandableActiveMemoryAllocator, device: Device) -> None:
    sizes = [700_000, 1, 3 * MIB, 4096, 512, 2 * MIB + 5]
    addrs = [allocator.allocate(size, str(n)) for n, size in enumerate(sizes)]
    for n, (addr, size) in enumerate(zip(addrs, sizes, strict=True)):
        device.memcpy_in(addr, size, bytes([n + 1]) * size)
    allocator.free(addrs[2])
    addrs[2] = allocator.allocate(sizes[2], "2")
    device.memcpy_in(addrs[2], sizes[2], bytes([3]) * sizes[2])
    for n, (addr, size) in enumerate(zip(addrs, sizes, strict=True)):
        back = bytearray(size)
        device.memcpy_out(back, addr)
        assert back == bytes([n + 1]) * size
    _check_apart(allocator)


def test_a_freed_place_serves_the_next_block_that_fits(allocator: ExpandableActiveMemoryAllocator) -> None:
    a, b, c, d = (allocator.allocate(size) for size in (1024, 4096, 2048, 512))
    allocator.free(b)
    allocator.free(a)  # joins the place behind it
    assert allocator.figures.hole_bytes == allocator.figures.largest_hole_bytes == 5120
    assert allocator.allocate(2048) == a
    assert allocator.allocate(3072) == a + 2048
    assert allocator.figures.hole_bytes == 0
    used = allocator.figures.used_bytes
    allocator.free(d)
    assert allocator.figures.used_bytes == used - 512  # the end moves back
    allocator.free(c)
    assert allocator.figures.used_bytes == 5120


def test_the_smallest_rest_of_a_place_is_kept(allocator: ExpandableActiveMemoryAllocator) -> None:
    first = allocator.allocate(1024)
    allocator.allocate(512)
    allocator.free(first)
    assert allocator.allocate(1023) == first
    assert allocator.figures.hole_bytes == 1
    assert allocator.allocate(1) == first + 1023


def test_a_block_is_freed_once_and_by_its_first_address(allocator: ExpandableActiveMemoryAllocator) -> None:
    addr = allocator.allocate(4096)
    for wrong in (addr + 512, addr - 1, 0, addr + GIB):
        with pytest.raises(StateError, match="free a block once, by its first address") as caught:
            allocator.free(DevAddr(wrong))
        assert caught.value.status == PARAM_INVALID
    allocator.free(addr)
    with pytest.raises(StateError, match="no live block"):
        allocator.free(addr)
    assert allocator.statistics.current_count == 0
    with pytest.raises(StateError, match="no live block"):
        ExpandableActiveMemoryAllocator(allocator.device).free(addr)


def test_the_fixed_base_form_gives_all_users_the_same_memory(allocator: ExpandableActiveMemoryAllocator) -> None:
    addrs = {allocator.malloc_memory("maps", size * MIB) for size in (32, 50, 40, 60)}
    assert len(addrs) == 1
    assert allocator.figures.used_bytes == 60 * MIB
    assert _pages(allocator) == 30
    for _ in range(3):
        allocator.free_memory()
        assert _pages(allocator) == 30
    with pytest.raises(StateError, match="no live block"):
        allocator.free(addrs.pop())
    allocator.free_memory()
    assert (_pages(allocator), allocator.figures.reserved_bytes) == (0, 0)


def test_the_two_forms_do_not_pull_the_memory_from_under_each_other(
    allocator: ExpandableActiveMemoryAllocator,
) -> None:
    first, second = allocator.allocate(3 * MIB), allocator.allocate(3 * MIB)
    base = allocator.malloc_memory("maps", 10 * MIB)
    assert base == first
    with pytest.raises(StateError, match="1 users share the range from its start: use free_memory"):
        allocator.free(second)
    allocator.free_memory()
    assert _pages(allocator) == 0
    first, second = allocator.allocate(3 * MIB), allocator.allocate(3 * MIB)
    allocator.free(first)
    with pytest.raises(StateError, match="single blocks of device 0 were freed"):
        allocator.malloc_memory("maps", MIB)
    allocator.free(second)
    assert allocator.malloc_memory("maps", MIB) == first


def test_freeing_all_gives_the_range_back_and_the_next_block_makes_a_new_one(
    allocator: ExpandableActiveMemoryAllocator, host: HostControls
) -> None:
    for _ in range(3):
        allocator.allocate(5 * MIB)
        assert live_now(host).reservations == 1
        allocator.free_memory()
        live = live_now(host)
        assert (live.reservations, live.handles, live.mappings) == (0, 0, 0)
        assert allocator.statistics.current_bytes == 0
    allocator.free_memory()
    assert allocator.statistics.total_count == 3


def test_free_places_go_with_their_range(allocator: ExpandableActiveMemoryAllocator, host: HostControls) -> None:
    """A smaller range follows, in which the places of the old one do not exist."""
    blocks = [allocator.allocate(4 * MIB, str(number)) for number in range(8)]
    for number in (0, 3, 6):
        allocator.free(blocks[number])
    assert (allocator.figures.hole_bytes, allocator.figures.largest_hole_bytes) == (12 * MIB, 4 * MIB)
    allocator.free_memory()
    assert (allocator.figures.hole_bytes, live_now(host).reservations) == (0, 0)
    allocator.max_bytes = 8 * MIB
    first, second = allocator.allocate(4 * MIB, "first"), allocator.allocate(4 * MIB, "second")
    assert second == first + 4 * MIB
    with pytest.raises(OutOfMemoryError):
        allocator.allocate(1, "third")
    assert allocator.figures.reserved_bytes == 8 * MIB


@pytest.mark.parametrize("size", [0, -1, -(1 << 63)])
def test_a_size_below_one_byte(allocator: ExpandableActiveMemoryAllocator, host: HostControls, size: int) -> None:
    with pytest.raises(ValueError, match="give at least 1 byte"):
        allocator.malloc_memory("x", size, True)
    assert live_now(host).reservations == 0


@pytest.mark.parametrize("size", [1 << 63, (1 << 64) - 510, (1 << 64) - 1, 1 << 64])
def test_a_size_that_leaves_63_bits(allocator: ExpandableActiveMemoryAllocator, size: int) -> None:
    for incremental in (False, True):
        with pytest.raises(SizeOverflowError) as caught:
            allocator.malloc_memory("x", size, incremental)
        assert (caught.value.value, caught.value.status) == (size, PARAM_INVALID)
    assert allocator.figures.used_bytes == 0
    allocator.allocate(512)


def test_every_page_of_the_range_can_be_used_and_no_more(device: Device) -> None:
    with ExpandableActiveMemoryAllocator(device, max_bytes=16 * MIB) as allocator:
        addrs = [allocator.allocate(PAGE) for _ in range(8)]
        with pytest.raises(OutOfMemoryError, match="raise the bound") as caught:
            allocator.allocate(1)
        assert caught.value.requested_bytes == 1
        assert len(set(addrs)) == 8
        allocator.free(addrs[3])
        assert allocator.allocate(PAGE) == addrs[3]


def test_a_variable_takes_no_more_pages_than_its_size(device: Device) -> None:
    with ExpandableActiveMemoryAllocator(device, max_bytes=GIB) as allocator:
        allocator.allocate(5 * MIB + 1024)
        assert allocator.figures.physical_bytes <= 8 * MIB


def test_a_size_that_is_no_multiple_of_a_page_is_rounded_behind_the_scenes(device: Device) -> None:
    with ExpandableActiveMemoryAllocator(device, max_bytes=6912) as allocator:
        allocator.allocate(6912)
        assert allocator.statistics.current_bytes == 6912
        assert allocator.figures.physical_bytes == allocator.figures.reserved_bytes == PAGE


def test_pages_of_8_mib(device: Device) -> None:
    with ExpandableActiveMemoryAllocator(device, 8 * MIB, max_bytes=20 * MIB) as allocator:
        first = allocator.allocate(5 * MIB)
        assert allocator.allocate(5 * MIB) == first + 5 * MIB
        assert (_pages(allocator), allocator.figures.reserved_bytes) == (2, 24 * MIB)


@pytest.mark.parametrize(
    ("page_bytes", "mode"),
    [(GIB, HugePageMode.NONE), (PAGE, HugePageMode.ONLY), (8 * MIB, HugePageMode.FIRST), (MIB, HugePageMode.NONE)],
)
def test_page_size_and_mode_go_together(device: Device, page_bytes: int, mode: HugePageMode) -> None:
    with pytest.raises(ValueError, match="give 1 GiB with ONLY and FIRST"):
        ExpandableActiveMemoryAllocator(device, page_bytes, mode=mode)


def test_without_a_bound_the_range_is_as_large_as_the_card(host: HostControls) -> None:
    host.configure(pages_2m=20, pages_4k_bytes=4 * MIB, pages_1g=3)
    device = host_runtime().device(0)
    with ExpandableActiveMemoryAllocator(device) as allocator:
        allocator.allocate(512)
        assert allocator.figures.reserved_bytes == device.mem_info().total_bytes == 44 * MIB
    for mode, gibs in ((HugePageMode.ONLY, 3), (HugePageMode.FIRST, 4)):
        with ExpandableActiveMemoryAllocator(device, GIB, mode=mode) as allocator:
            allocator.allocate(512)
            assert allocator.figures.reserved_bytes == gibs * GIB


def test_many_sessions_reserve_what_they_can_use_and_give_it_back(device: Device, host: HostControls) -> None:
    allocators = [ExpandableActiveMemoryAllocator(device, max_bytes=5 * GIB) for _ in range(64)]
    for allocator in allocators:
        allocator.allocate(1)
    live = live_now(host)
    assert (live.reservations, live.reserved_bytes) == (64, 64 * 5 * GIB)
    for allocator in allocators:
        allocator.close()
    assert live_now(host).reservations == 0


def test_what_is_dropped_goes_back(device: Device, host: HostControls) -> None:
    allocator = ExpandableActiveMemoryAllocator(device, max_bytes=GIB)
    allocator.allocate(5 * MIB)
    assert live_now(host).handles == 3
    del allocator
    gc.collect()
    live = live_now(host)
    assert (live.handles, live.mappings, live.reservations) == (0, 0, 0)


def test_a_device_that_lacks_ranges_is_noticed_at_the_first_use(host: HostControls) -> None:
    host.configure(virtual_memory=False)
    allocator = ExpandableActiveMemoryAllocator(host_runtime().device(0), max_bytes=GIB)
    with pytest.raises(AclError, match="207000"):
        allocator.allocate(512)
    assert not allocator.is_support_expandable_memory()


def test_one_refused_reservation_does_not_end_it(
    allocator: ExpandableActiveMemoryAllocator, host: HostControls
) -> None:
    host.fail_nth("aclrtReserveMemAddress", 1, 507899)
    with pytest.raises(AclError, match="507899"):
        allocator.allocate(512)
    assert allocator.is_support_expandable_memory()
    allocator.allocate(512)


def test_after_a_reset_of_the_device_nothing_is_handed_out_from_the_old_range(host: HostControls) -> None:
    runtime = host_runtime()
    allocator = ExpandableActiveMemoryAllocator(runtime.device(0), max_bytes=GIB)
    addr = allocator.allocate(512)
    host.reset()
    for call in (lambda: allocator.allocate(512), lambda: allocator.allocate(5 * MIB)):
        with pytest.raises(StateError, match="was reset, its memory is gone: call free_memory first"):
            call()
    allocator.free_memory()
    assert allocator.allocate(512) > 0
    assert allocator.blocks()[0][1] == 512
    allocator.close()
    with pytest.raises(StateError):
        allocator.free(addr)


def test_2000_random_steps_never_overlap(allocator: ExpandableActiveMemoryAllocator) -> None:
    chance, live = random.Random(11), dict[DevAddr, int]()
    for _ in range(2000):
        if live and chance.random() < 0.5:
            addr = chance.choice(list(live))
            allocator.free(addr)
            del live[addr]
        else:
            size = chance.choice([512, 1536, 4096, 70_000, 600_000])
            live[allocator.allocate(size)] = size
        places = sorted(live.items())
        assert all(addr + size <= after for (addr, size), (after, _) in itertools.pairwise(places))
        assert [(addr, size) for addr, size, _ in allocator.blocks()] == places


@pytest.mark.parametrize("device_id", [-1, 1000])
def test_a_device_that_is_not_there(runtime: Runtime, device_id: int) -> None:
    sessions = SessionMemAllocator(runtime)
    with pytest.raises(AclError, match=str(device_id)) as caught:
        sessions.get_mem_allocator(1, DeviceId(device_id))
    assert caught.value.code == 107001
    assert sessions.allocators(1) == []


def test_what_is_given_back_is_given_back_once(allocator: ExpandableActiveMemoryAllocator, host: HostControls) -> None:
    allocator.allocate(3 * PAGE)
    allocator.free_memory()
    names = ("aclrtUnmapMem", "aclrtFreePhysical", "aclrtReleaseMemAddress")
    calls = [host.calls(name) for name in names]
    allocator.free_memory()
    allocator.close()
    assert [host.calls(name) for name in names] == calls


def test_threads_get_memory_of_their_own(device: Device) -> None:
    with ExpandableActiveMemoryAllocator(device, max_bytes=256 * MIB, is_checked=True) as allocator:
        errors: list[BaseException] = []

        def work(number: int) -> None:
            try:
                for n in range(60):
                    size = 1000 * (n % 7 + 1) + 70_000 * (number % 3)
                    addr = allocator.allocate(size, f"thread {number}")
                    device.memcpy_in(addr, size, bytes([number]) * size)
                    back = bytearray(size)
                    device.memcpy_out(back, addr)
                    assert back == bytes([number]) * size
                    if n % 2:
                        allocator.free(addr)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not errors
        assert allocator.statistics.current_count == 4 * 30
        assert allocator.statistics.total_count == 4 * 60
        _check_apart(allocator)


def test_another_device_has_its_own_pages(host: HostControls) -> None:
    host.configure(devices=2)
    with ExpandableActiveMemoryAllocator(host_runtime().device(1), max_bytes=GIB) as allocator:
        addr = allocator.allocate(3 * MIB)
        host_runtime().device(0).mem_info()  # device 0 is current now
        assert [device.pages_2m_used for device in live_now(host).devices] == [0, 2]
        allocator.free(addr)
        assert [device.pages_2m_used for device in live_now(host).devices] == [0, 0]
        allocator.allocate(512)
        assert [device.pages_2m_used for device in live_now(host).devices] == [0, 1]


def test_memory_that_other_devices_reach(host: HostControls) -> None:
    host.configure(devices=2)
    sessions = SessionMemAllocator(host_runtime())
    allocator = sessions.get_mem_allocator(1, DeviceId(0), MemType.RT_MEMORY_P2P_DDR, max_bytes=GIB)
    addr = allocator.allocate(3 * MIB)
    assert live_now(host).handles == 2
    pool = sessions._pools.pool(allocator.device, PAGE, p2p=True)
    assert (pool.page_kind.text, pool.statistics.pages) == ("2 MiB P2P pages", 2)
    assert sessions._pools.pool(allocator.device, PAGE).statistics.pages == 0
    allocator.free(addr)
    allocator.close()
    for mem_type in (MemType.RT_MEMORY_HOST, MemType.RT_MEMORY_TS):
        with pytest.raises(ValueError, match=f"{mem_type.name} cannot grow"):
            sessions.get_mem_allocator(1, DeviceId(0), mem_type)


def test_shared_pages_wait_for_the_next_user(device: Device, host: HostControls) -> None:
    pools = SharedPagePools()
    first, second, private = (
        ExpandableActiveMemoryAllocator(device, max_bytes=GIB, shared_pools=pools) for _ in range(3)
    )
    private.set_share_phy_allocator(False)
    second.set_reuse(False)
    addr = first.allocate(4 * PAGE)
    first.allocate(512)
    private.allocate(512)
    first.free(addr)
    pool = pools.pool(device, PAGE)
    assert (pool.statistics.pages, pool.statistics.free_pages, pool.statistics.users) == (5, 4, 1)
    second.allocate(512)  # takes no page that another gave back
    assert pool.statistics.free_pages == 4
    assert first.allocate(4 * PAGE) == addr
    assert (pool.statistics.pages, pool.statistics.free_pages) == (6, 0)
    first.free_memory()
    assert pool.statistics.free_pages == 5
    private.free_memory()
    second.free_memory()  # the last user: all go back
    assert (pool.statistics.pages, pool.statistics.users) == (0, 0)
    assert live_now(host).handles == 0


def test_pages_that_wait_are_given_back_before_memory_is_called_short(host: HostControls) -> None:
    host.configure(pages_2m=5)
    device, pools = host_runtime().device(0), SharedPagePools()
    first, second = (ExpandableActiveMemoryAllocator(device, max_bytes=GIB, shared_pools=pools) for _ in range(2))
    second.set_reuse(False)
    addr = first.allocate(4 * PAGE)
    first.allocate(512)
    first.free(addr)
    second.allocate(4 * PAGE)
    for allocator in (first, second):
        allocator.close()


def test_a_new_try_works_after_memory_was_short(host: HostControls) -> None:
    host.configure(pages_2m=5)
    with ExpandableActiveMemoryAllocator(host_runtime().device(0), max_bytes=GIB) as allocator:
        addr = allocator.allocate(5 * MIB, "weights")
        with pytest.raises(OutOfMemoryError) as caught:
            allocator.allocate(8 * MIB)
        assert (caught.value.code, caught.value.requested_bytes) == (207001, 8 * MIB)
        assert (allocator.statistics.current_count, allocator.figures.physical_bytes) == (1, 6 * MIB)
        allocator.free(addr)
        allocator.allocate(8 * MIB)
