"""What an out-of-memory error says, as fields and as text."""

import pickle

import pytest

from acl_shim.host import HostControls
from gevar.errors import AclError, GevarError, OutOfMemoryError
from gevar.memory import (
    DeviceMemoryManager,
    ExpandableActiveMemoryAllocator,
    Holder,
    HugePageMode,
    MemoryReport,
    MemoryShortageError,
    PageClassFigures,
)
from gevar.memory.memory_shortage import advice_for, largest_holders
from gevar.types import DeviceId, MemType
from tests.helpers.runtime import host_runtime

MIB, GIB = 1 << 20, 1 << 30
D0, HBM = DeviceId(0), MemType.RT_MEMORY_HBM


def _shortage(manager: DeviceMemoryManager, size: int) -> MemoryShortageError:
    with pytest.raises(MemoryShortageError) as caught:
        manager.malloc_memory(HBM, "x", size, D0)
    return caught.value


def test_plain_memory_says_what_was_asked_what_is_free_and_who_holds_it(host: HostControls) -> None:
    host.configure(pages_2m=16, pages_4k_bytes=4 * MIB, pages_1g=2)
    with DeviceMemoryManager(host_runtime()) as manager:
        for _ in range(2):
            manager.malloc_memory(HBM, "variables", 10 * MIB, D0)
        manager.malloc_memory(HBM, "feature maps", 4 * MIB, D0)
        error = _shortage(manager, 12 * MIB)
        assert isinstance(error, OutOfMemoryError)
        assert isinstance(error, AclError)
        assert isinstance(error, MemoryError)
        report = error.report
        assert (error.code, error.requested_bytes, error.device_id) == (207001, 12 * MIB, 0)
        assert (report.requested_bytes, report.free_bytes) == (12 * MIB, 12 * MIB)
        assert error.largest_free_bytes == report.largest_free_bytes == 8 * MIB
        assert report.fragmentation == pytest.approx(1 / 3)
        assert report.page_classes == (
            PageClassFigures("4 KiB pages", 4 * MIB, 4 * MIB, 4 * MIB),
            PageClassFigures("2 MiB pages", 8 * MIB, 32 * MIB, 8 * MIB),
            PageClassFigures("1 GiB pages", 2 * GIB, 2 * GIB, 2 * GIB),
        )
        assert report.holders == (Holder("variables", 20 * MIB, 2), Holder("feature maps", 4 * MIB, 1))
        assert any("set ge.variableUse1gHugePage to 2: 2.00 GiB" in step for step in report.advice)
        assert any("free variables, or put it to sleep" in step for step in report.advice)
        assert "\n" not in str(error)
        for part in ("12.00 MiB", "8.00 MiB", "variables 20.00 MiB", "try: "):
            assert part in str(error)
        lines = report.text.splitlines()
        assert lines[0] == "out of memory on device 0: 12.00 MiB (12582912 B) asked of plain device memory"
        assert "fragmentation 33%" in lines[1]
        huge = "  2 MiB pages: 8.00 MiB (8388608 B) free of 32.00 MiB (33554432 B), largest run 8.00 MiB (8388608 B)"
        assert huge in lines
        assert "  held by 'variables': 20.00 MiB (20971520 B) in 2 blocks" in lines
        manager.malloc_memory(HBM, "x", 8 * MIB, D0)


def test_memory_that_grows_names_its_range_and_its_blocks(host: HostControls) -> None:
    host.configure(pages_2m=16)
    with ExpandableActiveMemoryAllocator(host_runtime().device(0), max_bytes=20 * MIB) as allocator:
        held = [allocator.allocate(5 * MIB, f"layer {n}") for n in range(4)]
        allocator.free(held[0])
        allocator.free(held[2])
        with pytest.raises(MemoryShortageError) as caught:
            allocator.allocate(6 * MIB)
        report = caught.value.report
        assert (report.where, report.free_bytes, report.largest_free_bytes) == ("memory that grows", 10 * MIB, 5 * MIB)
        assert report.fragmentation == 0.5
        assert report.holders == (Holder("layer 1", 5 * MIB, 1), Holder("layer 3", 5 * MIB, 1))
        assert any("raise the bound of 20.00 MiB" in step for step in report.advice)
        assert any("lies in pieces" in step for step in report.advice)
        assert caught.value.page_kind == "addresses of the reserved range"


@pytest.mark.parametrize(("mode", "named"), [(HugePageMode.ONLY, True), (HugePageMode.FIRST, False)])
def test_the_option_is_advised_where_it_helps(host: HostControls, mode: HugePageMode, named: bool) -> None:
    host.configure(pages_1g=0, pages_2m=3 if mode is HugePageMode.FIRST else 100)
    with (
        ExpandableActiveMemoryAllocator(host_runtime().device(0), GIB, mode=mode, max_bytes=GIB) as allocator,
        pytest.raises(MemoryShortageError) as caught,
    ):
        allocator.allocate(9 * MIB)
    assert any("ge.variableUse1gHugePage to 2" in step for step in caught.value.report.advice) is named


def test_what_is_cached_goes_back_first(host: HostControls) -> None:
    host.configure(pages_2m=20, pages_4k_bytes=0, pages_1g=0)
    with DeviceMemoryManager(host_runtime()) as manager:
        cache = manager.pools.caching_allocator(HBM, D0)
        cache.free(cache.allocate(20 * MIB, "maps"))
        assert manager.counts.live_bytes > 32 * MIB
        manager.malloc_memory(HBM, "x", 30 * MIB, D0)
        assert cache.segment_bytes == 0
        assert _shortage(manager, 30 * MIB).report.holders == (Holder("x", 30 * MIB, 1),)


def test_what_is_cached_on_another_device_stays(host: HostControls) -> None:
    host.configure(devices=2, pages_2m=20, pages_4k_bytes=0, pages_1g=0)
    with DeviceMemoryManager(host_runtime()) as manager:
        caches = [manager.pools.caching_allocator(HBM, DeviceId(device)) for device in range(2)]
        for cache in caches:
            cache.free(cache.allocate(MIB, "maps"))
        _shortage(manager, GIB)
        assert [cache.segment_bytes > 0 for cache in caches] == [False, True]


def test_what_is_cached_may_not_be_enough(host: HostControls) -> None:
    host.configure(pages_2m=20, pages_4k_bytes=0, pages_1g=0)
    with DeviceMemoryManager(host_runtime()) as manager:
        cache = manager.pools.caching_allocator(HBM, D0)
        cache.free(cache.allocate(MIB, "maps"))
        assert _shortage(manager, GIB).report.free_bytes == 40 * MIB
        assert cache.segment_bytes == 0


def test_it_can_be_pickled_and_keeps_its_fields(host: HostControls) -> None:
    host.configure(pages_2m=1, pages_4k_bytes=MIB)
    with DeviceMemoryManager(host_runtime()) as manager:
        error = _shortage(manager, GIB)
    back = pickle.loads(pickle.dumps(error))
    assert isinstance(back, MemoryShortageError)
    assert isinstance(back, GevarError)
    assert (str(back), back.report, back.code, back.largest_free_bytes) == (
        str(error),
        error.report,
        error.code,
        error.largest_free_bytes,
    )


def test_holders_are_summed_by_tag_and_ranked() -> None:
    blocks = [("b", 5), ("a", 5), ("c", 1), ("c", 1), ("", 9), ("odd\nname", 2)]
    assert largest_holders(blocks, 4) == (
        Holder("blocks without a tag", 9, 1),
        Holder("a", 5, 1),
        Holder("b", 5, 1),
        Holder("c", 2, 2),
    )
    assert largest_holders([]) == ()


def test_there_is_always_something_to_try() -> None:
    assert advice_for(10, None, (), (), {}) == ("free memory of other processes, or ask for less",)
    cached = advice_for(10, None, (), (), {"cached": 2048})
    assert cached == ("free the 2.00 KiB (2048 B) that are kept unused",)


def test_a_report_works_for_odd_names() -> None:
    holder = Holder('new\nline and "quote"', 10, 1)
    report = MemoryReport(10, 0, "memory", 0, 0, (), (holder,), ())
    assert report.fragmentation == 0
    assert "'new\\nline and \"quote\"'" in report.text
    assert len(report.text.splitlines()) == 3
    assert "\n" not in report.line
