"""Taken ranges of logical space."""

from hypothesis import given
from hypothesis import strategies as st

from gevar.var.logic_space import LogicSpace


def _free(space: LogicSpace, addr: int, size: int, base: int = 0) -> int:
    return space.first_free(addr, size, base=base, align_bytes=512)


def test_an_empty_space_is_free_everywhere() -> None:
    assert _free(LogicSpace(), 12345, 1 << 40) == 12345


def test_a_range_in_the_way_is_stepped_over() -> None:
    space = LogicSpace()
    space.take(1024, 2048)
    assert _free(space, 0, 1024) == 0
    assert _free(space, 0, 1025) == 2048
    assert _free(space, 1023, 1) == 1023
    assert _free(space, 1024, 1) == 2048
    assert _free(space, 2047, 1) == 2048
    assert _free(space, 2048, 1) == 2048


def test_the_end_of_a_range_is_rounded_from_the_base() -> None:
    space = LogicSpace()
    space.take(100, 700)
    assert _free(space, 0, 512) == 1024
    assert _free(space, 64, 512, base=64) == 64 + 1024


def test_small_gaps_between_ranges_are_skipped() -> None:
    space = LogicSpace()
    for start in range(0, 10_000, 1000):
        space.take(start, start + 600)
    assert _free(space, 0, 300) == 4608  # the first multiple of 512 that lies in a gap with 300 bytes behind it
    assert _free(space, 0, 5000) == 9728


def test_touching_ranges_become_one() -> None:
    space = LogicSpace()
    space.take(0, 512)
    space.take(1024, 2048)
    assert not space.holds(0, 2048)
    space.take(512, 1024)
    assert space.holds(0, 2048)
    assert space.holds(100, 200)
    assert not space.holds(0, 2049)
    assert not space.holds(2048, 2049)


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(1, 40)), max_size=12),
    st.integers(0, 260),
    st.integers(1, 50),
)
def test_as_a_set_of_numbers(ranges: list[tuple[int, int]], addr: int, size: int) -> None:
    space, taken = LogicSpace(), set[int]()
    for start, length in ranges:
        space.take(start, start + length)
        taken.update(range(start, start + length))
    for at in range(0, 260, 7):
        assert space.holds(at, at + 3) == taken.issuperset(range(at, at + 3))
    free = space.first_free(addr, size, base=0, align_bytes=4)
    assert free >= addr
    assert taken.isdisjoint(range(free, free + size))
    candidates = [addr, *range((addr + 3) // 4 * 4, free, 4)]
    assert all(not taken.isdisjoint(range(at, at + size)) for at in candidates if at < free)
