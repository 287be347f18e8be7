"""Free runs of addresses against a plain set of bytes."""

import itertools
import random

import pytest

from gevar.memory.free_runs import FreeRuns


def test_neighbours_become_one_run() -> None:
    runs = FreeRuns()
    assert runs.add(100, 10) == (100, 10)
    assert runs.add(120, 10) == (120, 10)
    assert runs.add(110, 10) == (100, 30)
    assert runs.runs() == [(100, 30)]
    assert (len(runs), runs.total_bytes, runs.largest_bytes) == (1, 30, 30)


def test_nothing_is_merged_across_a_bound() -> None:
    runs = FreeRuns()
    runs.add(0, 100, (0, 100))
    assert runs.add(100, 50, (100, 200)) == (100, 50)
    assert runs.add(150, 50, (100, 200)) == (100, 100)
    assert runs.add(200, 10, (200, 210)) == (200, 10)
    assert runs.runs() == [(0, 100), (100, 100), (200, 10)]


def test_the_smallest_run_with_room_is_taken_and_the_first_of_its_size() -> None:
    runs = FreeRuns()
    for start, size in ((0, 50), (100, 30), (200, 30), (300, 10)):
        runs.add(start, size)
    assert runs.take(20) == (100, 30)
    assert runs.take(20) == (200, 30)
    assert runs.take(20) == (0, 50)
    assert runs.take(20) is None
    assert runs.take(10) == (300, 10)
    assert (len(runs), runs.total_bytes, runs.largest_bytes) == (0, 0, 0)


def test_a_run_that_is_not_there() -> None:
    runs = FreeRuns()
    runs.add(10, 10)
    with pytest.raises(KeyError):
        runs.remove(15)
    assert runs.remove(10) == 10


def test_random_steps_equal_a_set_of_bytes() -> None:
    chance, runs, free = random.Random(5), FreeRuns(), set[int]()
    for _ in range(2000):
        if chance.random() < 0.5:
            found = runs.take(chance.randint(1, 12))
            if found is not None:
                taken = set(range(found[0], sum(found)))
                assert taken <= free
                free -= taken
        else:
            start, size = chance.randrange(300), chance.randint(1, 12)
            if free.isdisjoint(range(start, start + size)):
                runs.add(start, size)
                free |= set(range(start, start + size))
        listed = runs.runs()
        assert {byte for start, size in listed for byte in range(start, start + size)} == free
        assert all(start + size < after for (start, size), (after, _) in itertools.pairwise(listed))
        assert runs.total_bytes == len(free)
        assert runs.largest_bytes == max((size for _, size in listed), default=0)
