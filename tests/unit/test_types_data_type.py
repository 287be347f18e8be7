"""Data types: the table against the facts of GE's headers, and the mappings made from it."""

import ml_dtypes
import numpy as np
import pytest

from gevar.types.data_type import BIT_SIZE_BASE, STRING_ELEMENT_BYTES, DataType, element_size_code

# Type, number in memory, number on the wire, size code: written down from metadef's types.h and ge_ir.proto.
ROWS_TEXT = """
DT_FLOAT 0 1 4            DT_FLOAT16 1 2 2          DT_INT8 2 3 1             DT_INT32 3 7 4
DT_UINT8 4 4 1            DT_INT16 6 5 2            DT_UINT16 7 6 2           DT_UINT32 8 9 4
DT_INT64 9 8 8            DT_UINT64 10 10 8         DT_DOUBLE 11 12 8         DT_BOOL 12 11 1
DT_STRING 13 13 -1        DT_DUAL_SUB_INT8 14 14 1  DT_DUAL_SUB_UINT8 15 15 1 DT_COMPLEX64 16 16 8
DT_COMPLEX128 17 17 16    DT_QINT8 18 18 1          DT_QINT16 19 19 2         DT_QINT32 20 20 4
DT_QUINT8 21 21 1         DT_QUINT16 22 22 2        DT_RESOURCE 23 23 8       DT_STRING_REF 24 24 -1
DT_DUAL 25 25 5           DT_VARIANT 26 26 8        DT_BF16 27 27 2           DT_UNDEFINED 28 0 -1
DT_INT4 29 28 1004        DT_UINT1 30 29 1001       DT_INT2 31 30 1002        DT_UINT2 32 31 1002
DT_COMPLEX32 33 32 4      DT_HIFLOAT8 34 33 1       DT_FLOAT8_E5M2 35 34 1    DT_FLOAT8_E4M3FN 36 35 1
DT_FLOAT8_E8M0 37 36 1    DT_FLOAT6_E3M2 38 37 1006 DT_FLOAT6_E2M3 39 38 1006 DT_FLOAT4_E2M1 40 39 1004
DT_FLOAT4_E1M2 41 40 1004 DT_HIFLOAT4 42 41 1004
"""
ROWS = ROWS_TEXT.split()
TABLE = [(ROWS[i], int(ROWS[i + 1]), int(ROWS[i + 2]), int(ROWS[i + 3])) for i in range(0, len(ROWS), 4)]
SIZELESS = {DataType.DT_STRING, DataType.DT_STRING_REF, DataType.DT_UNDEFINED}


def test_the_table_is_that_of_the_headers() -> None:
    assert [(t.name, int(t), t.to_proto(), t.size_code) for t in DataType] == TABLE
    assert all(t.value == int(t) for t in DataType)


def test_numbers_are_unique_and_without_gaps_but_the_reserved_one() -> None:
    assert sorted(DataType) == [number for number in range(43) if number != 5]
    assert sorted(t.to_proto() for t in DataType) == list(range(42))


@pytest.mark.parametrize("data_type", DataType)
def test_every_mapping_comes_back(data_type: DataType) -> None:
    assert DataType(int(data_type)) is data_type
    assert DataType.from_number(int(data_type)) is data_type
    assert DataType.from_proto(data_type.to_proto()) is data_type
    assert DataType.from_serial(data_type.to_serial()) is data_type


@pytest.mark.parametrize("number", [-1, 5, 43, 44, 255, 1 << 40])
def test_an_unknown_number_in_memory_is_undefined(number: int) -> None:
    assert DataType.from_number(number) is DataType.DT_UNDEFINED
    assert element_size_code(number) == -1
    with pytest.raises(ValueError, match=str(number)):
        DataType(number)


@pytest.mark.parametrize("number", [-1, 42, 43, 1000])
def test_an_unknown_number_on_the_wire_is_undefined(number: int) -> None:
    assert DataType.from_proto(number) is DataType.DT_UNDEFINED


def test_numbers_in_memory_and_on_the_wire_are_different_things() -> None:
    assert DataType.from_proto(0) is DataType.DT_UNDEFINED
    assert DataType.from_proto(1) is DataType.DT_FLOAT
    assert DataType.from_proto(28) is DataType.DT_INT4
    assert DataType.from_number(28) is DataType.DT_UNDEFINED


def test_serial_names_are_the_names_but_one() -> None:
    assert {t for t in DataType if t.to_serial() != t.name} == {DataType.DT_BF16}
    assert DataType.DT_BF16.to_serial() == "DT_BFLOAT16"
    assert DataType.from_serial("DT_BF16") is DataType.DT_UNDEFINED


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("DT_FLOAT32", DataType.DT_FLOAT),
        ("RESERVED", DataType.DT_UNDEFINED),
        ("", DataType.DT_UNDEFINED),
        ("dt_float", DataType.DT_UNDEFINED),
        ("DT_FLOAT ", DataType.DT_UNDEFINED),
        ("DT_MAX", DataType.DT_UNDEFINED),
    ],
)
def test_other_serial_names(text: str, data_type: DataType) -> None:
    assert DataType.from_serial(text) is data_type


def test_element_size_code_of_every_number() -> None:
    codes = {number: code for _, number, _, code in TABLE}
    assert [element_size_code(number) for number in range(-2, 50)] == [codes.get(n, -1) for n in range(-2, 50)]


@pytest.mark.parametrize(
    ("data_type", "bits"),
    [
        (DataType.DT_UINT1, 1),
        (DataType.DT_INT2, 2),
        (DataType.DT_INT4, 4),
        (DataType.DT_FLOAT6_E3M2, 6),
        (DataType.DT_BOOL, 8),
        (DataType.DT_DUAL, 40),
        (DataType.DT_COMPLEX128, 128),
        (DataType.DT_STRING, None),
        (DataType.DT_STRING_REF, None),
        (DataType.DT_UNDEFINED, None),
    ],
)
def test_element_bits(data_type: DataType, bits: int | None) -> None:
    assert data_type.element_bits == bits


def test_packed_types_are_those_below_a_byte() -> None:
    packed = {t for t in DataType if t.is_packed}
    assert packed == {t for t in DataType if t.element_bits is not None and t.element_bits < 8}
    assert all(t.size_code - BIT_SIZE_BASE == t.element_bits for t in packed)
    assert len(packed) == 9


def test_bytes_of_a_string_element() -> None:
    assert STRING_ELEMENT_BYTES == 16


@pytest.mark.parametrize(
    ("data_type", "dtype"),
    [
        (DataType.DT_FLOAT, np.float32),
        (DataType.DT_FLOAT16, np.float16),
        (DataType.DT_DOUBLE, np.float64),
        (DataType.DT_BOOL, np.bool_),
        (DataType.DT_INT64, np.int64),
        (DataType.DT_UINT16, np.uint16),
        (DataType.DT_COMPLEX64, np.complex64),
        (DataType.DT_BF16, ml_dtypes.bfloat16),
        (DataType.DT_FLOAT8_E5M2, ml_dtypes.float8_e5m2),
        (DataType.DT_FLOAT8_E4M3FN, ml_dtypes.float8_e4m3fn),
        (DataType.DT_FLOAT8_E8M0, ml_dtypes.float8_e8m0fnu),
        (DataType.DT_FLOAT6_E3M2, ml_dtypes.float6_e3m2fn),
        (DataType.DT_FLOAT6_E2M3, ml_dtypes.float6_e2m3fn),
        (DataType.DT_FLOAT4_E2M1, ml_dtypes.float4_e2m1fn),
        (DataType.DT_INT4, ml_dtypes.int4),
        (DataType.DT_INT2, ml_dtypes.int2),
        (DataType.DT_UINT2, ml_dtypes.uint2),
    ],
)
def test_numpy_type_both_ways(data_type: DataType, dtype: type[np.generic]) -> None:
    assert data_type.to_numpy() == np.dtype(dtype)
    assert DataType.from_numpy(dtype) is data_type
    assert DataType.from_numpy(np.dtype(dtype)) is data_type


@pytest.mark.parametrize("data_type", sorted(set(DataType) - SIZELESS))
def test_a_numpy_element_has_the_width_of_the_type(data_type: DataType) -> None:
    bits = data_type.element_bits
    assert bits is not None
    assert data_type.to_numpy().itemsize * 8 == (8 if data_type.is_packed else bits)


@pytest.mark.parametrize(
    "data_type",
    [DataType.DT_HIFLOAT8, DataType.DT_FLOAT4_E1M2, DataType.DT_COMPLEX32, DataType.DT_RESOURCE, DataType.DT_UINT1],
)
def test_a_type_numpy_lacks_comes_as_raw_unsigned(data_type: DataType) -> None:
    assert data_type.to_numpy().kind == "u"


@pytest.mark.parametrize("data_type", sorted(SIZELESS))
def test_a_type_without_a_size_has_no_numpy_type(data_type: DataType) -> None:
    with pytest.raises(TypeError, match=data_type.name):
        data_type.to_numpy()


def test_the_plain_type_wins_where_two_share_a_numpy_type() -> None:
    assert DataType.from_numpy(np.int8) is DataType.DT_INT8
    assert DataType.from_numpy(np.uint64) is DataType.DT_UINT64
    assert DataType.from_numpy(np.uint32) is DataType.DT_UINT32


@pytest.mark.parametrize("dtype", [np.dtype("U3"), np.dtype("M8[s]"), np.dtype(np.longdouble), np.dtype(">f4")])
def test_a_numpy_type_that_ge_lacks(dtype: np.dtype[np.generic]) -> None:
    with pytest.raises(TypeError, match="GE has no data type"):
        DataType.from_numpy(dtype)


def test_bfloat16_keeps_every_bit_pattern() -> None:
    patterns = np.arange(1 << 16, dtype=np.uint16)
    viewed = patterns.view(DataType.DT_BF16.to_numpy())
    assert viewed.tobytes() == patterns.tobytes()
    assert np.float32(viewed[0x3F80]) == 1.0
