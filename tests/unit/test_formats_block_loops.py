"""The compiled loops against what numpy gives for the same elements."""

import threading

import numpy as np
import numpy.typing as npt
import pytest

from gevar.formats import block_loops
from gevar.formats.pattern_tables import pattern_table
from gevar.types import DataType

Flags = npt.NDArray[np.uint8]

COUNTS = [1, 2, 3, 7, 8, 9, 15, 16, 17, 1000, 65536]
"""Lengths around those of vector registers, and one block."""


def patterns(count: int, width: int, seed: int = 0) -> np.ndarray[tuple[int, ...], np.dtype[np.unsignedinteger]]:
    return np.random.default_rng(count + seed).integers(0, 256, count * width, np.uint8).view(f"u{width}")


@pytest.mark.parametrize("count", COUNTS)
def test_float_to_float16_below_the_limit_is_numpys(count: int) -> None:
    bits = patterns(count, 4)
    bits[bits & 0x7FFFFFFF >= 0x477FF000] &= 0x83FFFFFF
    bits[0] = 0x80000000
    out = np.full(count + 1, 7, np.uint16)
    largest = block_loops.float_to_float16(bits.view(np.float32), out[:count].view(np.float16))
    with np.errstate(all="ignore"):
        assert out[:count].tolist() == bits.view(np.float32).astype(np.float16).view(np.uint16).tolist()
    assert out[count] == 7
    assert largest == (bits & 0x7FFFFFFF).max()


def test_every_float16_and_what_lies_beside_it() -> None:
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = (halves[1:] + halves[:-1]) / 2
    near = np.concatenate([halves, middles, np.nextafter(middles, np.float32(0)), np.nextafter(middles, halves[1:])])
    near = np.concatenate([near, -near])
    out = np.empty(len(near), np.float16)
    block_loops.float_to_float16(near, out)
    assert (out.view(np.uint16) == near.astype(np.float16).view(np.uint16)).all()


@pytest.mark.parametrize("pattern", [0x477FF000, 0x7F800000, 0xFF800000, 0x7FC00001, 0xFFFFFFFF])
def test_the_largest_magnitude_tells_of_what_is_out_of_range(pattern: int) -> None:
    for place in range(20):
        bits = np.full(20, 0x3F800000, np.uint32)
        bits[place] = pattern
        assert block_loops.float_to_float16(bits.view(np.float32), np.empty(20, np.float16)) == pattern & 0x7FFFFFFF


def test_float16_to_float_is_numpys_but_for_exponent_31() -> None:
    every = np.arange(1 << 16, dtype=np.uint16)
    wide = np.full((1 << 16) + 1, 7, np.float32)
    assert block_loops.float16_to_float(every.view(np.float16), wide[:-1]) == 0x7FFF
    finite = every & 0x7FFF < 0x7C00
    assert (
        wide[:-1][finite].view(np.uint32) == every.view(np.float16)[finite].astype(np.float32).view(np.uint32)
    ).all()
    mantissa, sign = every[~finite] & 0x3FF, np.where(every[~finite] & 0x8000, -1, 1)
    assert (wide[:-1][~finite] == sign * (1 + mantissa / 1024) * 65536).all()
    assert wide[-1] == 7
    for count in COUNTS[:-1]:
        assert block_loops.float16_to_float(every[:count].view(np.float16), wide[:count]) == count - 1


@pytest.mark.parametrize("count", COUNTS)
def test_int32_to_float16_is_numpys_with_a_limit(count: int) -> None:
    values = patterns(count, 4).view(np.int32)
    values[::2] %= 70000
    values[-1] = -(2**31)
    out = np.empty(count, np.float16)
    largest = block_loops.int32_to_float16(values, out)
    expected = np.clip(values, -65504, 65504).astype(np.float32).astype(np.float16)
    assert out.view(np.uint16).tolist() == expected.view(np.uint16).tolist()
    assert largest == np.abs(values.astype(np.int64)).max() == 2**31


def ranges_of(losses: Flags) -> npt.NDArray[np.uint16]:
    """One range for each pattern with flags, and none for others."""
    return np.array([(pattern, 0) for pattern in np.flatnonzero(losses)], np.uint16).reshape(-1, 2)


def expected_counts(losses: Flags) -> tuple[int, ...]:
    return tuple(int(np.count_nonzero(losses & flag)) for flag in (1, 2, 4))


@pytest.mark.parametrize("count", [*COUNTS, 4095, 4096, 4097])
@pytest.mark.parametrize(("source", "result"), [(1, 2), (1, 4), (2, 1), (2, 2)])
def test_by_table_is_numpys_take_and_counts_every_flag(source: int, result: int, count: int) -> None:
    table, found = patterns(1 << 8 * source, result), patterns(count, source, 1)
    losses = np.zeros(len(table), np.uint8)
    losses[::3] = np.arange(len(losses[::3])) % 8
    lossy = np.array([[0, 0], [1, len(table) - 2]], np.uint16)
    out = np.full(count + 1, 7, f"u{result}")
    counts = block_loops.by_table(block_loops.loop_table(table, losses, lossy), found, out[:count])
    assert out[:count].tolist() == table[found].tolist()
    assert out[count] == 7
    assert counts == expected_counts(losses[found])


@pytest.mark.parametrize("count", COUNTS)
def test_floats_take_part_with_their_upper_patterns(count: int) -> None:
    bits = patterns(count, 4)
    bits[::3] &= 0xFFFF0000
    upper = (bits >> 16) | ((bits & 0xFFFF) != 0)
    table, losses = patterns(1 << 16, 1), np.zeros(1 << 16, np.uint8)
    losses[upper[0]] = 5
    loop_table = block_loops.loop_table(table, losses, ranges := ranges_of(losses))
    out = np.zeros(count, np.uint8)
    counts = block_loops.by_table(loop_table, bits.view(np.float32), out)
    assert len(ranges) == 1
    assert out.tolist() == table[upper].tolist()
    assert counts == expected_counts(losses[upper])


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("count", COUNTS)
def test_both_ends_of_a_range_are_seen_everywhere(width: int, count: int) -> None:
    top = (1 << 8 * width) - 1
    table = np.zeros(top + 1, np.uint16)
    for first, span in ((5, 3), (0, 0), (top, 0), (top - 9, 9)):
        losses = np.full(top + 1, 7, np.uint8)  # what no range names is not looked up
        loop_table = block_loops.loop_table(table, losses, ranges := np.array([[first, span]], np.uint16))
        out = np.zeros(count, np.uint16)
        elements = np.full(count, 100, f"u{width}")
        assert block_loops.by_table(loop_table, elements, out) == (0, 0, 0)
        for place in {0, count // 2, count - 1}:
            for pattern in {first - 1, first, first + span, first + span + 1} & set(range(top + 1)):
                one = elements.copy()
                one[place] = pattern
                seen = block_loops.by_table(loop_table, one, out) != (0, 0, 0)
                assert seen == (first <= pattern <= first + span)
        assert len(ranges) == 1


@pytest.mark.parametrize("ieee", [True, False])
@pytest.mark.parametrize(
    ("source", "destination"),
    [
        (DataType.DT_FLOAT16, DataType.DT_HIFLOAT8),
        (DataType.DT_BF16, DataType.DT_FLOAT16),
        (DataType.DT_BF16, DataType.DT_FLOAT8_E8M0),
        (DataType.DT_HIFLOAT8, DataType.DT_FLOAT16),
        (DataType.DT_FLOAT8_E5M2, DataType.DT_BF16),
        (DataType.DT_FLOAT8_E8M0, DataType.DT_FLOAT),
    ],
)
def test_ranges_hold_every_pattern_that_loses_something(source: DataType, destination: DataType, ieee: bool) -> None:
    table = pattern_table(source, destination, ieee)
    inside = np.zeros(len(table.losses), bool)
    for first, span in table.lossy.tolist():
        assert not inside[first : first + span + 1].any()
        inside[first : first + span + 1] = True
    assert inside[table.losses != 0].all()
    assert np.count_nonzero(inside & (table.losses == 0)) <= len(table.lossy)
    everything = np.arange(len(table.results), dtype=f"u{source.size_code}")
    out = np.zeros(len(everything), table.results.dtype)
    counts = table.cast(everything, out)
    assert (out == table.results).all()
    assert (counts.saturated, counts.nan, counts.lost) == expected_counts(table.losses)


def test_threads_do_not_disturb_each_other() -> None:
    blocks = [patterns(65536, 2, seed).astype(np.float32) for seed in range(4)]
    outs = [np.empty(65536, np.float16) for _ in blocks]

    def work(number: int) -> None:
        for _ in range(20):
            block_loops.float_to_float16(blocks[number], outs[number])

    running = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    for block, out in zip(blocks, outs, strict=True):
        inside = block < 65520
        assert (out[inside] == block[inside].astype(np.float16)).all()
