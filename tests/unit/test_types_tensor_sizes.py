"""Sizes of tensors: the worked examples of the reference, each rule, and the ends of the integer range."""

from collections.abc import Sequence

import pytest

from gevar.errors import FormatError, SizeOverflowError
from gevar.proto import ge_ir
from gevar.status import FAILED
from gevar.types import DataType, Format, TensorDesc
from gevar.types.tensor_sizes import (
    calc_tensor_mem_size,
    element_count,
    padding_bytes,
    shape_size,
    tensor_memory_size_in_bytes,
    tensor_memory_size_with_auto_padding,
    tensor_size_in_bytes,
)

INT64_MAX = 9223372036854775807

# Formats that GE counts the elements of, and all the others.
COUNTED_TEXT = """
ND MD NCHW NHWC HWCN CHWN C1HWC0 C1HWNCoC0 NC1HWC0 FRACTAL_Z FILTER_HWCK FRACTAL_NZ FRACTAL_NZ_C0_2 FRACTAL_NZ_C0_4
FRACTAL_NZ_C0_8 FRACTAL_NZ_C0_16 FRACTAL_NZ_C0_32 FRACTAL_ZZ NDHWC NCDHW DHWCN DHWNC FRACTAL_Z_3D
FRACTAL_Z_3D_TRANSPOSE NDC1HWC0 FRACTAL_Z_C04 FRACTAL_ZN_LSTM NC1HWC0_C04 ND_RNN_BIAS FRACTAL_ZN_RNN NYUV NYUV_A NCL
FRACTAL_Z_WINO
"""
COUNTED = COUNTED_TEXT.split()
NOT_COUNTED = [fmt.name for fmt in Format if fmt.name.removeprefix("FORMAT_") not in COUNTED]


def make(dtype: DataType, shape: Sequence[int], fmt: int = Format.FORMAT_ND, **attrs: ge_ir.AttrDef) -> TensorDesc:
    return TensorDesc(dtype, fmt, tuple(shape), attrs=attrs)


@pytest.mark.parametrize(
    ("dtype", "shape", "size_bytes"),
    [
        (DataType.DT_FLOAT, (2, 3), 24),
        (DataType.DT_INT4, (3,), 2),
        (DataType.DT_FLOAT6_E3M2, (5,), 4),
        (DataType.DT_UINT1, (9,), 2),
        (DataType.DT_STRING, (2,), 32),
        (DataType.DT_FLOAT, (), 4),
        (DataType.DT_FLOAT, (4, -1), -1),
        (DataType.DT_FLOAT, (0, -1), 0),
        (DataType.DT_STRING_REF, (3,), 48),
        (DataType.DT_DUAL, (3,), 15),
        (DataType.DT_COMPLEX128, (2,), 32),
        (DataType.DT_UNDEFINED, (2,), -1),
        (DataType.DT_UNDEFINED, (0,), -1),
        (DataType.DT_INT2, (4,), 1),
        (DataType.DT_INT2, (5,), 2),
        (DataType.DT_UINT1, (0,), 0),
    ],
)
def test_exact_bytes(dtype: DataType, shape: tuple[int, ...], size_bytes: int) -> None:
    assert calc_tensor_mem_size(shape, Format.FORMAT_ND, dtype) == size_bytes


@pytest.mark.parametrize("shape", [(-1, 0), (4, -1), (-2,), (4, -1, 0), (-1,)])
def test_a_negative_dimension_before_a_zero_makes_the_count_unknown(shape: tuple[int, ...]) -> None:
    assert element_count(shape, Format.FORMAT_ND) == -1


@pytest.mark.parametrize("shape", [(0, -1), (4, 0, -1), (0,), (3, 0)])
def test_a_zero_before_a_negative_dimension_makes_the_count_zero(shape: tuple[int, ...]) -> None:
    assert element_count(shape, Format.FORMAT_ND) == 0


@pytest.mark.parametrize("name", COUNTED)
def test_counted_formats_count_the_plain_product(name: str) -> None:
    assert element_count((2, 3, 5, 7), Format[f"FORMAT_{name}"]) == 210


def test_the_storage_shape_is_not_padded_again() -> None:
    assert element_count((1, 1, 2, 2, 16), 83886083) == 64
    assert element_count((3, 4), 83886083) == 12


@pytest.mark.parametrize("name", NOT_COUNTED)
def test_other_formats_are_refused(name: str) -> None:
    with pytest.raises(FormatError, match="cannot be counted") as caught:
        element_count((2, 3), Format[name])
    assert caught.value.status == FAILED


def test_the_two_lists_are_complete() -> None:
    assert len(COUNTED) == len(set(COUNTED)) == 34
    assert len(COUNTED) + len(NOT_COUNTED) == len(Format) == 57


@pytest.mark.parametrize(("shape", "count"), [((-1, 2), -1), ((2, 0), 0)])
def test_the_format_is_looked_at_last(shape: tuple[int, ...], count: int) -> None:
    assert element_count(shape, Format.FORMAT_RESERVED) == count


def test_a_scalar_of_an_uncounted_format_is_refused() -> None:
    with pytest.raises(FormatError):
        element_count((), Format.FORMAT_RESERVED)


def test_sub_format_and_c0_do_not_matter_to_the_count() -> None:
    assert element_count((2, 3), 83886596) == 6


def test_the_largest_count() -> None:
    assert element_count((INT64_MAX,), Format.FORMAT_ND) == INT64_MAX
    assert element_count((1 << 31, (1 << 32) - 1), Format.FORMAT_ND) == (1 << 63) - (1 << 31)


@pytest.mark.parametrize("shape", [(INT64_MAX, 2), (1 << 32, 1 << 31), (1 << 62, 2), (2, 3, 1 << 61)])
def test_a_count_beyond_63_bits(shape: tuple[int, ...]) -> None:
    with pytest.raises(SizeOverflowError, match="product of shape") as caught:
        element_count(shape, Format.FORMAT_ND)
    assert (caught.value.status, caught.value.limit) == (FAILED, INT64_MAX)


@pytest.mark.parametrize(
    ("dtype", "count", "size_bytes"),
    [
        (DataType.DT_FLOAT, INT64_MAX // 4, INT64_MAX - 3),
        (DataType.DT_FLOAT, INT64_MAX // 4 + 1, -1),
        (DataType.DT_INT8, INT64_MAX, INT64_MAX),
        (DataType.DT_STRING, INT64_MAX // 16, INT64_MAX - 15),
        (DataType.DT_STRING, INT64_MAX // 16 + 1, -1),
        (DataType.DT_UINT1, INT64_MAX, 1 << 60),
        (DataType.DT_INT4, INT64_MAX, 1 << 62),
    ],
)
def test_bytes_beyond_63_bits_are_not_known(dtype: DataType, count: int, size_bytes: int) -> None:
    assert calc_tensor_mem_size((count,), Format.FORMAT_ND, dtype) == size_bytes


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((), 0),
        ((5,), 5),
        ((2, 3), 6),
        ((0, 4), 0),
        ((-1, 4), -1),
        ((0, -1), -1),
        ((INT64_MAX, 2), -1),
        ((1 << 62,), 1 << 62),
    ],
)
def test_shape_size_is_not_the_element_count(shape: tuple[int, ...], size: int) -> None:
    assert shape_size(shape) == size


def test_size_of_a_description() -> None:
    assert tensor_size_in_bytes(make(DataType.DT_FLOAT16, (9, 2, 16, 16), 83886596)) == 9216
    assert tensor_size_in_bytes(make(DataType.DT_FLOAT, (0, 3))) == 0


@pytest.mark.parametrize(
    ("dtype", "shape", "words"),
    [
        (DataType.DT_FLOAT, (-1, 3), r"shape \(-1, 3\): unknown shape"),
        (DataType.DT_UNDEFINED, (2,), "DT_UNDEFINED tensor of shape .* no fixed size"),
        (DataType.DT_DOUBLE, (1 << 61,), "63 bits"),
    ],
)
def test_a_size_that_is_not_known_is_an_error(dtype: DataType, shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(FormatError, match=words) as caught:
        tensor_size_in_bytes(make(dtype, shape))
    assert caught.value.status == FAILED


def no_tiling(shape: Sequence[int], *, marked: bool = True, **attrs: ge_ir.AttrDef) -> TensorDesc:
    return make(DataType.DT_FLOAT, shape, _tensor_no_tiling_mem_type=ge_ir.AttrDef(b=marked), **attrs)


def int_list(*values: int) -> ge_ir.AttrDef:
    attr = ge_ir.AttrDef()
    attr.list.val_type = 2
    attr.list.i.extend(values)
    return attr


def range_list(*bounds: Sequence[int]) -> ge_ir.AttrDef:
    attr = ge_ir.AttrDef()
    for pair in bounds:
        attr.list_list_int.list_list_i.add().list_i.extend(pair)
    return attr


def test_no_tiling_takes_the_maximum_shape_for_unknown_dimensions() -> None:
    assert tensor_size_in_bytes(no_tiling((-1, 3), _tensor_max_shape=int_list(8, 99))) == 8 * 3 * 4


def test_no_tiling_takes_upper_bounds_without_a_maximum_shape() -> None:
    assert tensor_size_in_bytes(no_tiling((-1, 3, -1), shape_range=range_list((1, 5), (3, 3), (1, 2)))) == 5 * 3 * 2 * 4


def test_the_maximum_shape_goes_before_the_range() -> None:
    desc = no_tiling((-1,), _tensor_max_shape=int_list(8), shape_range=range_list((1, 5)))
    assert tensor_size_in_bytes(desc) == 32


@pytest.mark.parametrize(
    "desc",
    [
        no_tiling((-1, 3)),
        no_tiling((-1, 3), marked=False, _tensor_max_shape=int_list(8, 3)),
        make(DataType.DT_FLOAT, (-1, 3), _tensor_max_shape=int_list(8, 3)),
        no_tiling((-1,), shape_range=range_list((1, -1))),
        no_tiling((-1, 3), _tensor_max_shape=int_list(8)),
        no_tiling((-1, 3), shape_range=range_list((1, 8), ())),
    ],
)
def test_no_tiling_that_leaves_the_size_open(desc: TensorDesc) -> None:
    with pytest.raises(FormatError):
        tensor_size_in_bytes(desc)


def test_no_tiling_does_not_touch_a_known_shape() -> None:
    assert tensor_size_in_bytes(no_tiling((2, 3), _tensor_max_shape=int_list(80, 80))) == 24


@pytest.mark.parametrize(("elements", "size_bytes"), [(0, 32), (1, 64), (32, 64), (33, 96), (64, 96), (100, 160)])
def test_memory_size_has_32_spare_bytes(elements: int, size_bytes: int) -> None:
    assert tensor_memory_size_in_bytes(make(DataType.DT_INT8, (elements,))) == size_bytes


@pytest.mark.parametrize(
    ("size_bytes", "pad_bytes", "padded"),
    [
        (0, 32, 32),
        (1, 32, 64),
        (4, 32, 64),
        (32, 32, 64),
        (33, 32, 96),
        (64, 32, 96),
        (100, 32, 160),
        (24, 32, 64),
        (0, 0, 32),
        (1, 0, 32),
        (32, 0, 32),
        (33, 0, 64),
        (32, 512, 544),
        (INT64_MAX, 32, INT64_MAX),
        (INT64_MAX - 62, 32, INT64_MAX - 62),
        (INT64_MAX - 63, 32, INT64_MAX - 31),
    ],
)
def test_auto_padding(size_bytes: int, pad_bytes: int, padded: int) -> None:
    assert tensor_memory_size_with_auto_padding(size_bytes, pad_bytes) == padded


def test_padding_is_what_the_storage_format_adds() -> None:
    stored = TensorDesc(
        DataType.DT_FLOAT16,
        Format.FORMAT_FRACTAL_NZ,
        (2, 98, 16, 16),
        origin_format=Format.FORMAT_ND,
        origin_shape=(1568, 20),
    )
    assert padding_bytes(stored) == 2 * 98 * 16 * 16 * 2 - 1568 * 20 * 2
    assert padding_bytes(stored.replace(origin_shape=None)) == 0
    assert padding_bytes(stored.replace(format=Format.FORMAT_ND)) == 0
    assert padding_bytes(stored.replace(origin_shape=(-1, 20))) == 0
    assert padding_bytes(stored.replace(shape=(2, -1, 16, 16))) == 0
    assert padding_bytes(stored.replace(shape=(1 << 40, 1 << 40, 16, 16))) == 0
    assert padding_bytes(stored.replace(dtype=DataType.DT_UNDEFINED)) == 0
