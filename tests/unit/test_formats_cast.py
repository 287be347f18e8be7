"""Casts against rules that take one number at a time, what is counted, and the three ways to treat losses."""

import math
import struct
import tracemalloc
from fractions import Fraction

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gevar.errors import FormatError
from gevar.formats import CastCounts, OnLoss, cast, cast_supported, data_type_cast
from gevar.formats.data_type_cast import ADDED_CASTS, BLOCK_ELEMENTS, CASTS
from gevar.formats.hifloat8 import hifloat8_values, to_hifloat8
from gevar.types import DataType

Array = npt.NDArray[np.generic]
FLOAT, FLOAT16, DOUBLE, BF16 = DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_DOUBLE, DataType.DT_BF16
INT8, UINT8, INT32, INT64 = DataType.DT_INT8, DataType.DT_UINT8, DataType.DT_INT32, DataType.DT_INT64
HIFLOAT8, E5M2 = DataType.DT_HIFLOAT8, DataType.DT_FLOAT8_E5M2
E4M3, E8M0 = DataType.DT_FLOAT8_E4M3FN, DataType.DT_FLOAT8_E8M0
EVERY_HALF = np.arange(1 << 16, dtype=np.uint16)
BITS = settings(max_examples=300, deadline=None, derandomize=True)
patterns = st.integers(0, (1 << 32) - 1)


def half_by_rule(pattern: int) -> int:
    """GE's float16 of a float32 pattern, with exact fractions."""
    sign, magnitude = pattern >> 31 << 15, pattern & 0x7FFFFFFF
    if magnitude >= 0x48000000:  # 131072, infinity, NaN
        return sign | 0x7BFF
    value = Fraction(struct.unpack("<f", struct.pack("<I", magnitude))[0])
    exponent = max(magnitude >> 23, 113) - 127
    steps = round(value / Fraction(2) ** (exponent - 10))  # to even
    half = (exponent + 14 << 10) + steps
    return sign | (0x7FFF if half >= 0x7C00 else half)


def float_of(pattern: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", pattern))[0])


def as_floats(found: list[int]) -> npt.NDArray[np.float32]:
    return np.array(found, np.uint32).view(np.float32)


def nearest_code(value: float) -> int:
    """The hifloat8 code of a value, by looking at every code; half way goes away from zero."""
    if math.isnan(value):
        return 0x80
    sign = 0x80 if value < 0 else 0
    if abs(value) >= 40960:
        return sign | 0x6F
    known = [
        (abs(Fraction(abs(value)) - Fraction(float(hifloat8_values()[code]))), code)
        for code in range(128)
        if code != 0x6F
    ]
    least = min(distance for distance, _ in known)
    code = max((one for distance, one in known if distance == least), key=lambda one: float(hifloat8_values()[one]))
    return sign | code if code else 0


# --- the table --------------------------------------------------------------------------------------------------------


def test_ge_has_twenty_pairs() -> None:
    assert len(CASTS) == 20
    assert not CASTS.keys() & ADDED_CASTS.keys()
    assert all(cast_supported(*pair) for pair in (*CASTS, *ADDED_CASTS))
    assert {dtype for pair in ADDED_CASTS for dtype in pair} == {FLOAT, FLOAT16, BF16, E5M2, E4M3, E8M0}
    assert sum(cast_supported(src, dst) for src in DataType for dst in DataType) == len(CASTS) + len(ADDED_CASTS)


@pytest.mark.parametrize("pair", [*CASTS, *ADDED_CASTS], ids=lambda pair: f"{pair[0].name}-{pair[1].name}")
def test_every_pair_keeps_shape_takes_raw_patterns_and_writes_into_memory(pair: tuple[DataType, DataType]) -> None:
    src, dst = pair
    data = np.random.default_rng(1).integers(0, 60, (3, 5, 7)).astype(np.float32).astype(src.to_numpy())
    result, counts = cast(data, src, dst)
    assert result.shape == data.shape
    assert result.dtype == dst.to_numpy()
    out = np.full(data.size, 0xA5, f"u{dst.size_code}")
    returned, again = cast(data.view(f"u{src.size_code}"), src, dst, out=out)
    assert returned is out
    assert out.tobytes() == result.tobytes()
    assert counts == again


@pytest.mark.parametrize("pair", [*CASTS, *ADDED_CASTS], ids=lambda pair: f"{pair[0].name}-{pair[1].name}")
def test_nothing_is_cast(pair: tuple[DataType, DataType]) -> None:
    for mode in ("ge", "ieee", "raise"):
        result, counts = cast(np.empty((0, 3), pair[0].to_numpy()), *pair, on_loss=mode)  # type: ignore[arg-type]
        assert result.shape == (0, 3)
        assert counts == CastCounts()


@pytest.mark.parametrize("pair", [*CASTS, *ADDED_CASTS], ids=lambda pair: f"{pair[0].name}-{pair[1].name}")
def test_blocks_do_not_show(pair: tuple[DataType, DataType], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_type_cast, "TABLE_BLOCK_ELEMENTS", BLOCK_ELEMENTS)
    src, dst = pair
    count = 2 * BLOCK_ELEMENTS + 77
    data = np.random.default_rng(2).integers(0, 256, count * src.size_code, np.uint8).view(src.to_numpy())
    for mode in ("ge", "ieee"):
        whole, counts = cast(data, src, dst, on_loss=mode)  # type: ignore[arg-type]
        parts = [cast(part.copy(), src, dst, on_loss=mode) for part in np.array_split(data, 7)]  # type: ignore[arg-type]
        assert whole.tobytes() == b"".join(part.tobytes() for part, _ in parts)
        assert counts == sum((part for _, part in parts), CastCounts())


def test_little_memory_is_taken_beside_the_result() -> None:
    for src, dst in (*CASTS, *ADDED_CASTS):
        data = np.ones(1 << 22, src.to_numpy()) if src.size_code > 1 else np.ones(1 << 22, np.uint8)
        out = np.empty(1 << 22, dst.to_numpy())
        cast(data[:10], src, dst)  # makes the tables
        tracemalloc.start()
        cast(data, src, dst, out=out)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 << 20


# --- values -----------------------------------------------------------------------------------------------------------


@BITS
@given(found=st.lists(patterns, min_size=1, max_size=50))
def test_float_to_float16_is_ges(found: list[int]) -> None:
    result, counts = cast(as_floats(found), FLOAT, FLOAT16)
    assert result.view(np.uint16).tolist() == [half_by_rule(pattern) for pattern in found]
    magnitudes = [pattern & 0x7FFFFFFF for pattern in found]
    assert counts.nan == sum(one > 0x7F800000 for one in magnitudes)
    assert counts.saturated == sum(0x477FF000 <= one <= 0x7F800000 for one in magnitudes)
    assert counts.lost == counts.nan + counts.saturated


def test_float_to_float16_at_every_border() -> None:
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = (halves[1:] + halves[:-1]) / 2
    near = np.concatenate([halves, middles, np.nextafter(middles, np.float32(0)), np.nextafter(middles, halves[1:])])
    result, _ = cast(near, FLOAT, FLOAT16)
    picked = np.concatenate([np.arange(0, len(near), 37), [len(halves) - 1]])
    expected = [half_by_rule(pattern) for pattern in near.view(np.uint32)[picked].tolist()]
    assert result.view(np.uint16)[picked].tolist() == expected


def test_float16_to_float_takes_every_exponent_for_an_ordinary_one() -> None:
    result, counts = cast(EVERY_HALF.view(np.float16), FLOAT16, FLOAT)
    for pattern in range(0, 1 << 16, 61):
        exponent, mantissa = pattern >> 10 & 31, pattern & 1023
        value = math.ldexp(1024 + mantissa if exponent else mantissa, max(exponent, 1) - 25)
        assert result[pattern] == (-value if pattern >> 15 else value)
    assert math.copysign(1, float(result[0x8000])) == -1
    assert counts == CastCounts(2, 0, 2046, 2048)


def test_float16_to_int32() -> None:
    result, counts = cast(EVERY_HALF.view(np.float16), FLOAT16, INT32)
    finite = EVERY_HALF & 0x7C00 != 0x7C00
    expected = [round(value) for value in EVERY_HALF.view(np.float16)[finite].tolist()]  # to even
    assert result[finite].tolist() == expected
    assert set(result[~finite & (EVERY_HALF < 0x8000)].tolist()) == {2**31 - 1}
    assert set(result[~finite & (EVERY_HALF >= 0x8000)].tolist()) == {-(2**31)}
    assert counts == CastCounts(2, 0, 2046, 2048)


@pytest.mark.parametrize("dtype", [FLOAT, DOUBLE])
def test_reals_to_int32_cut_off_the_fraction(dtype: DataType) -> None:
    values = [0.0, -0.0, 0.99, -0.99, 1.5, -1.5, 123456.7, -(2.0**31), 2147483520.0]
    result, counts = cast(np.array(values, dtype.to_numpy()), dtype, INT32)
    assert result.tolist() == [math.trunc(value) for value in values]
    assert counts == CastCounts()


def test_what_ge_leaves_open_becomes_the_nearest_limit() -> None:
    values = [2.0**31, -(2.0**31) - 1024, math.inf, -math.inf, math.nan, 1e30, -1e30, 5.0]
    limits = [2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 0, 2**31 - 1, -(2**31), 5]
    for dtype in (FLOAT, DOUBLE):
        for mode in ("ge", "ieee"):
            result, counts = cast(np.array(values, dtype.to_numpy()), dtype, INT32, on_loss=mode)  # type: ignore[arg-type]
            assert result.tolist() == limits
            assert counts == CastCounts(6, 0, 1, 7)
    half, counts = cast(np.array([-(2**31)], np.int32), INT32, FLOAT16)
    assert half.tolist() == [-65504]
    assert counts.saturated == 1
    inside, counts = cast(np.array([2147483647.9, -2147483648.9]), DOUBLE, INT32)
    assert inside.tolist() == [2**31 - 1, -(2**31)]
    assert counts == CastCounts()


@BITS
@given(found=st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(-70000, 70000), min_size=1, max_size=50))
def test_int32_to_float16(found: list[int]) -> None:
    result, counts = cast(np.array(found, np.int32), INT32, FLOAT16)
    expected = []
    for value in found:
        exponent = max(abs(value).bit_length() - 1, -14)
        unit = Fraction(2) ** (exponent - 10)
        expected.append(float(max(-65504, min(65504, round(value / unit) * unit))))
    assert result.tolist() == expected
    assert counts.saturated == counts.lost == sum(abs(value) >= 65520 for value in found)


@pytest.mark.parametrize(("src", "dst"), [(INT32, INT8), (INT32, UINT8), (INT64, INT32)])
def test_smaller_integers_keep_the_low_bits(src: DataType, dst: DataType) -> None:
    kept = np.iinfo(dst.to_numpy())
    values = [0, 1, -1, kept.max, kept.max + 1, kept.min, kept.min - 1, 2**31 - 1, -(2**31), 100_000]
    result, counts = cast(np.array(values, src.to_numpy()), src, dst)
    expected = [(value - kept.min) % (kept.max - kept.min + 1) + kept.min for value in values]
    assert result.tolist() == expected
    outside = sum(not kept.min <= value <= kept.max for value in values)
    assert counts == CastCounts(0, outside, 0, outside)


@pytest.mark.parametrize(
    ("src", "dst"),
    [(INT32, FLOAT), (INT32, DOUBLE), (INT32, INT64), (INT8, FLOAT), (INT8, INT32), (UINT8, FLOAT), (UINT8, INT32)],
)
def test_wider_types_hold_or_round_to_nearest(src: DataType, dst: DataType) -> None:
    limits = np.iinfo(src.to_numpy())
    values = [0, 1, 127, limits.min, limits.max]
    values += [16777217, 16777219, -16777217] if src is INT32 else []
    result, counts = cast(np.array(values, src.to_numpy()), src, dst)
    assert result.tolist() == [float(np.float32(value)) if dst is FLOAT else value for value in values]
    assert counts == CastCounts()


# --- hifloat8 ---------------------------------------------------------------------------------------------------------


def test_values_of_hifloat8() -> None:
    values = hifloat8_values()
    assert len(set(values[~np.isnan(values)].tolist())) == 255
    assert [float(values[code]) for code in (0, 1, 8, 0x0F, 0x10, 0x18, 0x6E, 0x6F)] == [
        0,
        2.0**-22,
        1,
        1.875,
        2,
        0.5,
        32768,
        math.inf,
    ]
    assert (values[0x81:] == -values[1:0x80]).all()
    assert math.isnan(values[0x80])


@BITS
@given(pattern=patterns)
def test_the_nearest_code_is_found(pattern: int) -> None:
    result, _ = cast(as_floats([pattern]), FLOAT, HIFLOAT8)
    assert result.item() == nearest_code(float_of(pattern))


def test_every_code_and_every_middle() -> None:
    values = np.sort(hifloat8_values()[:128].astype(np.float64))[:-1]
    middles = (values[:-1] + values[1:]) / 2
    for value in (*values, *middles):
        for one in (np.float32(value), np.nextafter(np.float32(value), np.float32(0)), -np.float32(value)):
            result, _ = cast(np.array([one], np.float32), FLOAT, HIFLOAT8)
            assert result.item() == nearest_code(float(one))
            assert to_hifloat8(np.array([one], np.float32)).item() == nearest_code(float(one))


def test_float16_to_hifloat8_and_back() -> None:
    halves = EVERY_HALF.view(np.float16)
    result, counts = cast(halves, FLOAT16, HIFLOAT8)
    for pattern in range(0, 1 << 16, 97):
        assert result[pattern] == nearest_code(float(halves[pattern]))
    assert counts == CastCounts(2 * (0x7C00 - 0x7900), 0, 2046, 2 * (0x7C00 - 0x7900))
    codes = np.arange(256, dtype=np.uint8)
    back, counts = cast(codes, HIFLOAT8, FLOAT16)
    finite = np.isfinite(hifloat8_values())
    assert back[finite].tolist() == hifloat8_values()[finite].tolist()
    assert back.view(np.uint16)[[0x6F, 0xEF, 0x80]].tolist() == [0x7BFF, 0xFBFF, 0x7C01]
    assert counts == CastCounts(2, 0, 1, 2)
    kept, counts = cast(codes, HIFLOAT8, FLOAT16, on_loss="ieee")
    assert kept.view(np.uint16)[[0x6F, 0xEF, 0x80]].tolist() == [0x7C00, 0xFC00, 0x7C01]
    assert counts == CastCounts(0, 0, 1, 0)


# --- the casts that GE does not have ----------------------------------------------------------------------------------


@BITS
@given(found=st.lists(patterns, min_size=1, max_size=50))
@pytest.mark.parametrize("dst", [BF16, E5M2, E4M3, E8M0], ids=lambda dtype: dtype.name)
def test_float_to_small_types_is_that_of_ml_dtypes(dst: DataType, found: list[int]) -> None:
    values = as_floats(found)
    result, counts = cast(values, FLOAT, dst)
    with np.errstate(all="ignore"):
        expected = values.astype(dst.to_numpy()).astype(np.float32)
    assert np.array_equal(result.astype(np.float32), expected, equal_nan=True)
    assert (np.signbit(result.astype(np.float32)) == np.signbit(expected))[~np.isnan(expected)].all()
    broken = np.isfinite(values) & ~np.isfinite(expected) | np.isinf(values) & ~np.isinf(expected)
    assert (counts.saturated, counts.nan) == (broken.sum(), np.isnan(values).sum())
    assert counts.lost == counts.saturated


@pytest.mark.parametrize("pair", [pair for pair in ADDED_CASTS if pair[0] is not FLOAT], ids=str)
def test_every_pattern_of_a_small_type(pair: tuple[DataType, DataType]) -> None:
    src, dst = pair
    every = np.arange(1 << 8 * src.size_code, dtype=f"u{src.size_code}")
    result, counts = cast(every, src, dst)
    values = every.view(src.to_numpy()).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = values.astype(dst.to_numpy()).astype(np.float32)
    assert np.array_equal(result.astype(np.float32), expected, equal_nan=True)
    assert counts.nan == np.isnan(values).sum()
    broken = np.isfinite(values) & ~np.isfinite(expected) | np.isinf(values) & ~np.isinf(expected)
    assert counts.saturated == broken.sum()


def test_payloads_of_nan_survive_the_way_to_float() -> None:
    found = np.array([0x7FC1, 0xFFC1, 0x8000, 0x3F80], np.uint16)
    wide, counts = cast(found.view(ml_dtypes.bfloat16), BF16, FLOAT)
    assert (wide.view(np.uint32) >> 16).tolist() == found.tolist()
    assert counts == CastCounts(0, 0, 2, 0)


# --- losses -----------------------------------------------------------------------------------------------------------

SPECIAL = np.array([1.0, 65519.0, 65520.0, -131072.0, np.inf, -np.inf, np.nan, -0.0], np.float32)


def test_ge_makes_numbers_of_everything() -> None:
    result, counts = cast(SPECIAL, FLOAT, FLOAT16)
    assert result.view(np.uint16).tolist() == [0x3C00, 0x7BFF, 0x7FFF, 0xFBFF, 0x7BFF, 0xFBFF, 0x7BFF, 0x8000]
    assert counts == CastCounts(4, 0, 1, 5)
    assert str(counts) == "4 elements saturated, 0 wrapped, 1 NaN"


def test_ieee_keeps_nan_and_infinity() -> None:
    result, counts = cast(SPECIAL, FLOAT, FLOAT16, on_loss="ieee")
    with np.errstate(all="ignore"):
        assert np.array_equal(result, SPECIAL.astype(np.float16), equal_nan=True)
    assert counts == CastCounts(2, 0, 1, 2)
    wide, counts = cast(EVERY_HALF.view(np.float16), FLOAT16, FLOAT, on_loss="ieee")
    assert np.array_equal(wide, EVERY_HALF.view(np.float16).astype(np.float32), equal_nan=True)
    assert counts == CastCounts(0, 0, 2046, 0)
    half, counts = cast(np.array([65519, 65520, -(2**31)], np.int32), INT32, FLOAT16, on_loss="ieee")
    assert half.tolist() == [65504, np.inf, -np.inf]
    assert counts == CastCounts(2, 0, 0, 2)


@pytest.mark.parametrize(
    ("src", "dst", "good", "bad"),
    [
        (FLOAT, FLOAT16, 65519.0, 65520.0),
        (FLOAT, FLOAT16, -1e-8, np.nan),
        (FLOAT, FLOAT16, 1.0, np.inf),
        (FLOAT16, FLOAT, 65504.0, np.inf),
        (FLOAT16, INT32, 65504.0, np.nan),
        (FLOAT, INT32, -(2.0**31), 2.0**31),
        (DOUBLE, INT32, 2147483647.5, np.nan),
        (INT32, FLOAT16, 65519, 65520),
        (INT32, INT8, -128, 128),
        (INT64, INT32, 2**31 - 1, 2**31),
        (FLOAT, HIFLOAT8, np.nan, 40960.0),
        (FLOAT, HIFLOAT8, np.inf, -1e30),
        (FLOAT, BF16, np.nan, 3.4e38),
        (FLOAT, E4M3, 448.0, np.inf),
        (BF16, FLOAT16, np.inf, 1e6),
    ],
)
def test_raise_refuses_what_would_be_lost(
    src: DataType, dst: DataType, good: float, bad: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_type_cast, "TABLE_BLOCK_ELEMENTS", BLOCK_ELEMENTS)
    kept = np.full(BLOCK_ELEMENTS + 3, good).astype(src.to_numpy())
    result, counts = cast(kept, src, dst, on_loss="raise")
    assert counts.lost == 0
    assert result.tobytes() == cast(kept, src, dst, on_loss="ieee")[0].tobytes()
    data = kept.copy()
    data[-1] = bad
    out = np.full(len(data), 7, f"u{dst.size_code}")
    with pytest.raises(FormatError, match=f"{src.name} to {dst.name}: 1 values would be lost") as caught:
        cast(data, src, dst, on_loss="raise", out=out)
    assert "on_loss" in str(caught.value)
    assert (out == 7).all()


@pytest.mark.parametrize("mode", ["ge", "ieee"])
def test_a_loss_in_one_block_leaves_the_others_alone(mode: OnLoss) -> None:
    data = np.ones(3 * BLOCK_ELEMENTS, np.float32)
    data[BLOCK_ELEMENTS + 5] = np.inf
    result, counts = cast(data, FLOAT, FLOAT16, on_loss=mode)
    assert counts.saturated == (1 if mode == "ge" else 0)
    assert (np.delete(result, BLOCK_ELEMENTS + 5) == 1).all()


def test_counts_add_up() -> None:
    assert CastCounts(1, 2, 3, 4) + CastCounts(10, 20, 30, 40) == CastCounts(11, 22, 33, 44)
