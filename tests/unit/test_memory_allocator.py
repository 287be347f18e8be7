"""Plain memory as a resource, blocks by key, and the registry of memory that grows."""

import pytest

from gevar.errors import OutOfMemoryError, StateError
from gevar.memory import DeviceMemoryManager, HugePageMode, SessionMemAllocator
from gevar.memory.page_records import PageRecords
from gevar.status import INTERNAL_ERROR
from gevar.types import DeviceId, MemType
from tests.helpers.runtime import host_runtime

D0, D1, HBM = DeviceId(0), DeviceId(1), MemType.RT_MEMORY_HBM
GIB = 1 << 30


def test_blocks_by_key_are_counted() -> None:
    with DeviceMemoryManager(host_runtime()) as manager:
        memory = manager.resource(HBM, D0)
        first = memory.allocate_key("maps", 1000)
        assert memory.allocate_key("maps", 500) == first
        with pytest.raises(ValueError, match="block 'maps' has 1000 B: ask for no more, not for 1001 B"):
            memory.allocate_key("maps", 1001)
        other = memory.allocate_key("other", 10)
        assert manager.counts.live_blocks == 2
        memory.free_key("maps")
        assert manager.counts.live_blocks == 2
        memory.free_key("maps")
        assert [block.dev_addr for block in manager.blocks()] == [other]
        with pytest.raises(StateError, match="no block 'maps'") as caught:
            memory.free_key("maps")
        assert caught.value.status == INTERNAL_ERROR
        assert [block.purpose for block in manager.blocks()] == ["other"]


def test_an_allocator_is_found_again_by_session_device_kind_and_page() -> None:
    sessions = SessionMemAllocator(host_runtime())
    first = sessions.get_mem_allocator(1, D0)
    assert sessions.get_mem_allocator(1, D0) is first
    others = [
        sessions.get_mem_allocator(2, D0),
        sessions.get_mem_allocator(1, D1),
        sessions.get_mem_allocator(1, D0, MemType.RT_MEMORY_P2P_DDR),
        sessions.get_mem_allocator(1, D0, page_bytes=8 << 20),
        sessions.get_mem_allocator(1, D0, page_bytes=GIB, mode=HugePageMode.FIRST),
    ]
    assert len({id(other) for other in (first, *others)}) == 6
    sessions.remove_allocator(2, D1)
    sessions.remove_allocator(3)
    assert sessions.get_mem_allocator(2, D0) is others[0]
    sessions.remove_allocator(1, D0)
    assert sessions.get_mem_allocator(1, D1) is others[1]
    assert sessions.get_mem_allocator(1, D0) is not first
    sessions.remove_allocator(1)
    assert sessions.allocators(1) == []
    assert sessions.allocators(2) == [others[0]]


def test_sessions_of_a_runtime_share_a_registry() -> None:
    runtime = host_runtime()
    assert SessionMemAllocator.instance(runtime) is SessionMemAllocator.instance(runtime)


def test_what_was_removed_works_on_for_who_holds_it() -> None:
    sessions = SessionMemAllocator(host_runtime())
    allocator = sessions.get_mem_allocator(1, D0, max_bytes=4096)
    addr = allocator.allocate(512)
    sessions.remove_allocator(1)
    allocator.free(addr)
    with pytest.raises(OutOfMemoryError):
        allocator.allocate(GIB)
    allocator.close()


def test_page_records_refuse_overlaps() -> None:
    records = PageRecords()
    records.add([0, 100], 50, 150)
    for begin, end in ((0, 51), (149, 160), (60, 70), (50, 150), (10, 200)):
        with pytest.raises(AssertionError, match="overlaps"):
            records.add([100], begin, end)
    records.add([0], 0, 50)
    records.add([100], 150, 200)
    with pytest.raises(AssertionError, match="starts at offset 60"):
        records.remove([100], 60)
    with pytest.raises(AssertionError, match="no block of page 0x1f4"):
        records.remove([500], 60)
    records.remove([0, 100], 50)
    records.remove([0], 0)
    records.remove([100], 150)
    assert records.pages == 0
