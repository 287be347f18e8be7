"""What of an upload has arrived, and who is told."""

from pathlib import Path

import numpy as np

from gevar.weights import UploadArrays
from gevar.weights.arrivals import Arrivals
from gevar.weights.load_plan import LoadPlan, plan

SIZES = np.array([10, 0, 25, 5])


def made(block_bytes: int, seen: list[tuple[int, int]]) -> tuple[Arrivals, int, LoadPlan]:
    offset = np.cumsum(SIZES) - SIZES
    planned = plan(UploadArrays((Path("x"),), 0 * SIZES, offset, SIZES, offset.astype(np.uint64)), block_bytes)
    arrivals = Arrivals(SIZES, block_bytes, lambda done, total: seen.append((done, total)))
    return arrivals, len(planned.blocks), planned


def test_requests_come_when_their_last_part_does() -> None:
    arrivals, count, planned = made(10, [])
    assert (count, arrivals.total) == (4, 40)
    assert arrivals.pop() == 1  # has no bytes
    assert arrivals.pop() is None
    arrivals.count(planned, 1, 3)
    assert (arrivals.done, arrivals.pop()) == (20, None)
    arrivals.count(planned, 3, 4)
    assert [arrivals.pop(), arrivals.pop(), arrivals.pop()] == [2, 3, None]
    arrivals.count(planned, 0, 1)
    assert [arrivals.pop(), arrivals.pop()] == [0, None]
    assert arrivals.done == 40


def test_a_request_of_many_blocks_comes_once() -> None:
    arrivals, count, planned = made(1, [])
    arrivals.count(planned, 0, count)
    found = []
    while (number := arrivals.pop()) is not None:
        found.append(number)
    assert sorted(found) == [0, 1, 2, 3]


def test_progress_is_told_after_some_blocks_and_at_the_end() -> None:
    seen: list[tuple[int, int]] = []
    arrivals, count, planned = made(1, seen)
    for block in range(count):
        arrivals.count(planned, block, block + 1)
        arrivals.tell()
    assert seen == [(done, 40) for done in range(4, 41, 4)]
