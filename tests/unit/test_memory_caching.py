"""Bins of the caching allocator: where a block comes from, when it is split, what goes back and when."""

import threading

import pytest

from gevar.errors import AclError, OutOfMemoryError, StateError
from gevar.memory import CachingAllocator
from gevar.memory.caching_allocator import BIN_BYTES
from gevar.types import DevAddr
from tests.helpers.memory_resource import FakeResource

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("size", "segment"),
    [
        (1, 512 * KIB),
        (512 * KIB, 512 * KIB),
        (512 * KIB + 1, 8 * MIB + 512),
        (8 * MIB + 512, 8 * MIB + 512),
        (8 * MIB + 513, 32 * MIB + 512),
        (100 * MIB, 128 * MIB + 512),
        (200 * MIB, 256 * MIB + 512),
        (512 * MIB, 512 * MIB + 512),
        (600 * MIB, GIB),
        (GIB, GIB),
        (GIB + 1, 2 * GIB),
        (5 * GIB, 5 * GIB),
    ],
)
def test_a_miss_takes_the_upper_bound_of_its_bin(size: int, segment: int) -> None:
    upstream = FakeResource()
    cache = CachingAllocator(upstream)
    cache.allocate(size, "maps")
    assert upstream.asked == [(segment, "maps")]
    assert cache.segment_bytes == segment
    assert len(BIN_BYTES) == 7


def test_a_freed_block_serves_the_next_request_of_its_bin() -> None:
    upstream = FakeResource()
    cache = CachingAllocator(upstream)
    first = cache.allocate(MIB)
    cache.free(first)
    assert cache.allocate(2 * MIB) == first
    assert len(upstream.asked) == 1


def test_larger_bins_are_not_searched() -> None:
    upstream = FakeResource()
    cache = CachingAllocator(upstream)
    cache.free(cache.allocate(20 * MIB))
    cache.allocate(MIB)
    assert [size for size, _ in upstream.asked] == [32 * MIB + 512, 8 * MIB + 512]


def test_a_block_is_split_where_the_request_is_at_most_half() -> None:
    cache = CachingAllocator(FakeResource())
    first = cache.allocate(256 * KIB)  # exactly half
    assert cache.allocate(200 * KIB) == first + 256 * KIB  # more than half of the rest: all of it
    upstream = FakeResource()
    cache = CachingAllocator(upstream)
    whole = cache.allocate(256 * KIB + 1)
    cache.allocate(512)
    assert len(upstream.asked) == 2  # nothing was left of the first
    cache.free(whole)


def test_the_smallest_block_with_room_is_taken() -> None:
    cache = CachingAllocator(FakeResource())
    a, b, c, d = (cache.allocate(size * KIB) for size in (64, 16, 32, 8))
    del b, d
    cache.free(a)
    cache.free(c)
    assert cache.allocate(20 * KIB) == c
    assert cache.allocate(40 * KIB) == a


def test_neighbours_are_merged_within_their_segment_only() -> None:
    upstream = FakeResource()  # its blocks touch each other
    cache = CachingAllocator(upstream)
    blocks = [cache.allocate(512 * KIB) for _ in range(2)]
    parts = [cache.allocate(size * KIB) for size in (128, 128, 100)]
    for addr in (*blocks, *parts):
        cache.free(addr)
    assert cache.cached_bytes == cache.segment_bytes == 3 * 512 * KIB
    assert cache.free_cached_blocks() == 3 * 512 * KIB
    assert (upstream.live, cache.segment_bytes) == ({}, 0)


def test_only_whole_segments_go_back() -> None:
    upstream = FakeResource()
    cache = CachingAllocator(upstream)
    keep, drop = cache.allocate(1000), cache.allocate(2000)
    other = cache.allocate(20 * MIB)
    cache.free(drop)
    cache.free(other)
    assert cache.free_cached_blocks() == 32 * MIB + 512
    assert list(upstream.live.values()) == [512 * KIB]
    cache.free(keep)
    assert cache.free_cached_blocks() == 512 * KIB


def test_cached_blocks_go_back_before_memory_is_called_short() -> None:
    upstream = FakeResource(capacity=40 * MIB)
    cache = CachingAllocator(upstream)
    cache.free(cache.allocate(20 * MIB))
    cache.allocate(6 * MIB)
    assert list(upstream.live.values()) == [32 * MIB + 512, 8 * MIB + 512][1:] or len(upstream.live) == 1
    with pytest.raises(OutOfMemoryError):
        cache.allocate(32 * MIB)
    assert cache.statistics.current_bytes == 6 * MIB


def test_a_request_that_cannot_be_served_is_tried_once_when_nothing_is_cached() -> None:
    upstream = FakeResource(capacity=MIB)
    cache = CachingAllocator(upstream)
    with pytest.raises(OutOfMemoryError):
        cache.allocate(5 * MIB)
    assert len(upstream.asked) == 1
    cache.allocate(100)


def test_an_unknown_address() -> None:
    cache = CachingAllocator(FakeResource())
    addr = cache.allocate(4096)
    for wrong in (addr + 512, addr - 512, 0):
        with pytest.raises(StateError, match="the caching allocator of device 0 has no live block"):
            cache.free(DevAddr(wrong))
    cache.free(addr)


def test_a_segment_that_cannot_go_back_is_kept() -> None:
    upstream = FakeResource()
    cache = CachingAllocator(upstream)
    addr = cache.allocate(4096)
    cache.free(addr)
    upstream.refuse_free = 1
    with pytest.raises(AclError, match=r"FakeResource\.free"):
        cache.free_cached_blocks()
    assert cache.allocate(4096) == addr


def test_a_cache_that_another_thread_uses_is_passed_over() -> None:
    upstream, inside, go_on = FakeResource(), threading.Event(), threading.Event()
    cache = CachingAllocator(upstream)
    cache.free(cache.allocate(4096))
    take = upstream.allocate

    def slow(size_bytes: int, tag: str = "") -> DevAddr:
        inside.set()
        assert go_on.wait(30)
        return take(size_bytes, tag)

    upstream.allocate = slow  # type: ignore[method-assign]
    thread = threading.Thread(target=cache.allocate, args=(20 * MIB,))
    thread.start()
    assert inside.wait(30)
    assert cache.try_free_cached_blocks() == 0
    go_on.set()
    thread.join(30)
    assert cache.try_free_cached_blocks() == 512 * KIB
