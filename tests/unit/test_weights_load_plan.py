"""Plans of uploads, carried out in plain Python on a file and devices that are byte arrays."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gevar.weights import UploadArrays
from gevar.weights.load_plan import LoadPlan, Run, plan

PATHS = (Path("a"), Path("b"))
FILES = [bytes(np.random.default_rng(number).integers(0, 256, 400, np.uint8)) for number in range(2)]
FIRST = 2**64 - 2**20  # above 2^63, as devices may have them

Request = tuple[int, int, int, int, int, bool]
"""File, offset, bytes, bytes of room before it on the device, device, whether it has a digest."""


def arrays(requests: list[Request]) -> UploadArrays:
    source, offset, size, gap, device, checked = zip(*requests, strict=True) if requests else [()] * 6
    ends = np.cumsum(np.array(gap, np.uint64) + np.array(size, np.uint64))
    return UploadArrays(
        PATHS,
        np.array(source, np.int64),
        np.array(offset, np.int64),
        np.array(size, np.int64),
        np.uint64(FIRST) + ends.astype(np.uint64) - np.array(size, np.uint64),
        (None, None),
        np.array(device, np.int64),
        [bytes(16) if one else None for one in checked],
    )


def runs(made: LoadPlan, *, is_single: bool = False, workers: int = 2) -> list[Run]:
    found, first = [], 0
    while run := made.run(first, workers, is_single):
        assert run.first == first < run.end
        found.append(run)
        first = run.end
    assert first == len(made.blocks)
    return found


def carry_out(made: LoadPlan, wanted: UploadArrays) -> list[dict[int, int]]:
    """Return what each address of each device gets; no address gets two bytes."""
    memory: list[dict[int, int]] = [{}, {}]
    for block, (offset, size, _) in enumerate(made.blocks.tolist()):
        content = FILES[made.source[block]][offset : offset + size]
        assert len(content) == size
        for copy in range(made.first_copy[block], made.first_copy[block + 1]):
            addr, start, count = made.copies[copy].tolist()
            assert start + count <= size
            for at in range(count):
                assert addr + at not in memory[made.copy_device[copy]]
                memory[made.copy_device[copy]][addr + at] = content[start + at]
    assert sum(map(len, memory)) == wanted.size_bytes.sum()
    return memory


requests_of_two_files = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(0, 300),
        st.one_of(st.integers(0, 3), st.integers(0, 100)),
        st.sampled_from([0, 0, 1, 50]),
        st.sampled_from([0, 0, 0, 1]),
        st.sampled_from([False, False, True]),
    ),
    max_size=20,
)


@given(requests_of_two_files, st.sampled_from([1, 7, 64, 300, 1 << 20]), st.booleans())
def test_every_byte_gets_where_it_belongs(requests: list[Request], block_bytes: int, is_sorted: bool) -> None:
    if is_sorted:
        requests.sort()
    wanted = arrays(requests)
    made = plan(wanted, block_bytes)
    memory = carry_out(made, wanted)
    for number, (source, offset, size, _, device, _) in enumerate(requests):
        addr = int(wanted.dev_addr[number])
        assert bytes(memory[device][addr + at] for at in range(size)) == FILES[source][offset : offset + size]


@given(requests_of_two_files, st.sampled_from([1, 7, 64, 300]))
def test_parts_add_up_to_the_requests(requests: list[Request], block_bytes: int) -> None:
    wanted = arrays(requests)
    made = plan(wanted, block_bytes)
    missing = wanted.size_bytes.copy()
    np.subtract.at(missing, made.part_request, made.part_bytes)
    assert not missing.any()
    assert made.first_part[-1] == len(made.part_request)
    assert made.bytes_before[-1] == wanted.size_bytes.sum()
    block = np.repeat(np.arange(len(made.blocks)), np.diff(made.first_part))
    at = made.blocks[block, 0].astype(np.int64) + made.part_start - wanted.offset[made.part_request]
    assert np.all((at >= 0) & (at + made.part_bytes <= wanted.size_bytes[made.part_request]))
    assert np.array_equal(made.source[block], wanted.source[made.part_request])


@given(requests_of_two_files, st.sampled_from([1, 7, 64, 300]))
def test_blocks_are_in_order_and_read_no_byte_twice(requests: list[Request], block_bytes: int) -> None:
    made = plan(arrays(requests), block_bytes)
    ends = {0: 0, 1: 0}
    for source, (offset, size, _) in zip(made.source.tolist(), made.blocks.tolist(), strict=True):
        assert 0 < size <= block_bytes
        assert offset >= ends[source]
        ends[source] = offset + size
    assert sorted(made.source.tolist()) == made.source.tolist()


@given(requests_of_two_files, st.sampled_from([1, 7, 64]), st.booleans(), st.integers(1, 4))
def test_runs_keep_files_and_checked_regions_together(
    requests: list[Request], block_bytes: int, is_single: bool, workers: int
) -> None:
    made = plan(arrays(requests), block_bytes)
    run_of = {}
    for number, run in enumerate(runs(made, is_single=is_single, workers=workers)):
        assert set(made.source[run.first : run.end].tolist()) == {run.source}
        run_of |= dict.fromkeys(range(run.first, run.end), number)
    for block in range(len(made.blocks)):
        for request in made.part_request[made.first_part[block] : made.first_part[block + 1]].tolist():
            if requests[request][5]:
                first = run_of.setdefault(("request", request), run_of[block])
                assert first == run_of[block]


def test_runs_of_one_block_and_of_many() -> None:
    mib = 1 << 20
    wanted = UploadArrays(PATHS[:1], *(np.array([value]) for value in (0, 0, 400 * mib)), np.array([0], np.uint64))
    made = plan(wanted, mib)
    assert [run.end - run.first for run in runs(made, is_single=True)] == [1] * 400
    sizes = [run.end - run.first for run in runs(made)]
    assert sizes[0] == 32
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1
    sizes = [run.end - run.first for run in runs(plan(wanted, mib // 4))]
    assert (sizes[0], sizes[-2]) == (32, 4)


def test_regions_one_behind_the_other_are_one_copy_for_each_block() -> None:
    count = 10_000
    column = np.arange(count)
    shuffled = np.random.default_rng(5).permutation(count)
    made = plan(
        UploadArrays(
            PATHS[:1],
            np.zeros(count, np.int64),
            column[shuffled] * 4096,
            np.full(count, 4096),
            np.uint64(1 << 44) + column[shuffled].astype(np.uint64) * np.uint64(4096),
        ),
        1 << 20,
    )
    assert len(made.blocks) == len(made.copies) == -(-count * 4096 // (1 << 20))
    assert made.blocks[:, 1].sum() == count * 4096


@pytest.mark.parametrize(("gap", "blocks"), [(16 << 10, 1), ((16 << 10) + 1, 2)])
def test_small_gaps_are_read_over(gap: int, blocks: int) -> None:
    column = np.array([0, 100 + gap])
    wanted = UploadArrays(PATHS[:1], 0 * column, column, 0 * column + 100, column.astype(np.uint64))
    made = plan(wanted, 2 << 20)
    assert len(made.blocks) == blocks
    assert len(made.copies) == 2


def test_regions_twice_on_a_device_are_two_copies() -> None:
    requests: list[Request] = [(0, at, 10, 0, 0, False) for at in range(0, 200, 10)]
    made = plan(arrays(requests + requests), 4096)
    assert made.blocks.tolist() == [[0, 200, 2]]


def test_nothing() -> None:
    made = plan(arrays([(0, 5, 0, 0, 0, True)]), 4096)
    assert len(made.blocks) == len(made.copies) == 0
    assert made.run(0, 1, False) is None
