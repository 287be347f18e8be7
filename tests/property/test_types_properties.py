"""Formats, types, sizes and alignment against plain models, for any input."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gevar.align import UINT64_MAX, align_up, var_block_bytes
from gevar.errors import SizeOverflowError
from gevar.types import DataType, Format, TensorDesc
from gevar.types.format import (
    c0,
    c0_code,
    format_from_c0,
    format_from_serial,
    format_from_sub,
    format_to_serial,
    primary_format,
    sub_format,
)
from gevar.types.tensor_sizes import (
    calc_tensor_mem_size,
    element_count,
    shape_size,
    tensor_memory_size_with_auto_padding,
)

INT64_MAX = (1 << 63) - 1
NAMED = [fmt for fmt in Format if fmt not in (Format.FORMAT_FRACTAL_ZZ, Format.FORMAT_END, Format.FORMAT_MAX)]
SHAPES = st.lists(st.integers(-2, 1 << 20) | st.integers(-1, 3), max_size=6)


@given(st.integers(0, 255), st.integers(0, 0xFFFF), st.integers(0, 15))
def test_packing_and_taking_apart(primary: int, sub: int, code: int) -> None:
    value = format_from_c0(format_from_sub(primary, sub), code)
    assert 0 <= value < 1 << 28
    assert (primary_format(value), sub_format(value), c0_code(value)) == (primary, sub, code)
    assert c0(value) == (2 ** (code - 1) if code else -1)


@given(st.integers(0, (1 << 32) - 1))
def test_the_fields_are_all_of_the_low_28_bits(value: int) -> None:
    again = format_from_c0(format_from_sub(primary_format(value), sub_format(value)), c0_code(value))
    assert again == value & 0x0FFFFFFF


@given(st.sampled_from(NAMED), st.integers(0, 0xFFFF), st.integers(0, 15))
def test_serial_text_of_a_format_comes_back_without_c0(fmt: Format, sub: int, code: int) -> None:
    value = format_from_sub(fmt, sub)
    text = format_to_serial(format_from_c0(value, code))
    assert format_from_serial(text) == value
    assert (":" in text) is (sub > 0)


@given(st.text(max_size=40))
def test_any_text_is_read_as_some_format(text: str) -> None:
    value = format_from_serial(text)
    assert 0 <= value < 1 << 24
    assert primary_format(value) in set(map(int, Format))


@given(st.integers())
def test_any_number_is_read_as_some_data_type(number: int) -> None:
    assert DataType.from_number(number) in DataType
    assert DataType.from_proto(number) in DataType
    assert (DataType.from_number(number) == number) is (number in set(map(int, DataType)))


def model_count(shape: list[int]) -> int | None:
    """Return the element count by the rules in words; None where it does not fit."""
    special = next((dim for dim in shape if dim <= 0), None)
    if special is not None:
        return -1 if special < 0 else 0
    product = math.prod(shape)
    return product if product <= INT64_MAX else None


@given(SHAPES)
def test_element_count_follows_the_model(shape: list[int]) -> None:
    expected = model_count(shape)
    if expected is None:
        with pytest.raises(SizeOverflowError):
            element_count(shape, Format.FORMAT_ND)
    else:
        assert element_count(shape, Format.FORMAT_ND) == expected


@given(SHAPES, st.sampled_from(DataType))
def test_exact_bytes_follow_the_model(shape: list[int], dtype: DataType) -> None:
    count = model_count(shape)
    if count is None:
        return
    text = dtype in (DataType.DT_STRING, DataType.DT_STRING_REF)
    bits = 128 if text else dtype.element_bits
    size_bytes = calc_tensor_mem_size(shape, Format.FORMAT_ND, dtype)
    if count < 0 or bits is None or count * bits > INT64_MAX * 8:
        assert size_bytes == -1
    else:
        assert size_bytes * 8 - 8 < count * bits <= size_bytes * 8


@given(SHAPES)
def test_shape_size_follows_the_model(shape: list[int]) -> None:
    product = math.prod(shape)
    known = shape and min(shape) >= 0 and all(math.prod(shape[:n]) <= INT64_MAX for n in range(len(shape) + 1))
    assert shape_size(shape) == (product if known else -1 if shape else 0)


@given(st.integers(0, INT64_MAX), st.sampled_from([0, 32, 64, 512]))
def test_padding_leaves_room_or_leaves_the_size(size_bytes: int, pad_bytes: int) -> None:
    padded = tensor_memory_size_with_auto_padding(size_bytes, pad_bytes)
    assert padded <= INT64_MAX
    if padded != size_bytes:
        assert padded % 32 == 0
        assert pad_bytes <= padded - size_bytes < pad_bytes + 32 or (size_bytes, pad_bytes, padded) == (0, 0, 32)


@given(st.integers(0, UINT64_MAX), st.sampled_from([1, 32, 512, 2 << 20, 1 << 30]))
def test_alignment_encloses_the_value(value: int, align_bytes: int) -> None:
    if value + align_bytes > UINT64_MAX:
        with pytest.raises(SizeOverflowError):
            align_up(value, align_bytes)
    else:
        aligned = align_up(value, align_bytes)
        assert value <= aligned < value + align_bytes
        assert aligned % align_bytes == 0


@given(st.integers(0, UINT64_MAX - 2048))
def test_a_block_holds_its_data_and_both_guards(size_bytes: int) -> None:
    block = var_block_bytes(size_bytes)
    assert block % 512 == 0
    assert size_bytes + 1024 <= block < size_bytes + 1024 + 512


@given(SHAPES, st.sampled_from(DataType), st.integers(0, (1 << 31) - 1), st.integers(0, INT64_MAX))
def test_equal_descriptions_are_one_key(shape: list[int], dtype: DataType, fmt: int, size: int) -> None:
    one = TensorDesc(dtype, fmt, tuple(shape), size=size)
    two = TensorDesc(DataType(int(dtype)), int(str(fmt)), tuple(int(str(dim)) for dim in shape), size=size)
    assert one == two
    assert len({one, two}) == 1
    assert one.same_description(two.replace(size=0))
