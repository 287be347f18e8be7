"""The compiled loops against what numpy gives for the same elements."""

import threading

import numpy as np
import pytest

from gevar.formats import block_loops

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


@pytest.mark.parametrize("count", COUNTS)
def test_upper_patterns(count: int) -> None:
    bits = patterns(count, 4)
    bits[::3] &= 0xFFFF0000
    upper = block_loops.upper_patterns(bits.view(np.float32))
    assert upper.tolist() == ((bits >> 16) | ((bits & 0xFFFF) != 0)).tolist()


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(("source", "result"), [(1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (2, 4)])
def test_look_up_is_numpys_take(source: int, result: int, count: int) -> None:
    table, found = patterns(1 << 8 * source, result), patterns(count, source, 1)
    out = np.full(count + 1, 7, f"u{result}")
    block_loops.look_up(table, found, out[:count])
    assert out[:count].tolist() == table[found].tolist()
    assert out[count] == 7


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("count", COUNTS)
def test_any_within_sees_both_ends_of_a_range_everywhere(width: int, count: int) -> None:
    top = (1 << 8 * width) - 1
    for first, span in ((5, 3), (0, 0), (top, 0), (top - 9, 9)):
        outside = np.full(count, 100, f"u{width}")
        assert not block_loops.any_within(outside, first, span)
        for place in {0, count // 2, count - 1}:
            for pattern in (first, first + span):
                one = outside.copy()
                one[place] = pattern
                assert block_loops.any_within(one, first, span)
            for pattern in (first - 1, first + span + 1):
                if 0 <= pattern <= top:
                    one = outside.copy()
                    one[place] = pattern
                    assert not block_loops.any_within(one, first, span)


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
