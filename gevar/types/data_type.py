"""Element types of tensors: GE's numbers in memory and on the wire, sizes, serial names and numpy types.

One row of `DataType` holds the whole story of a type: its number in memory (used in variable keys), its number in
`TensorDescriptor.dtype` on the wire, and its size code (bytes, or 1000 + bits for types smaller than a byte, -1 for
types without a fixed size).

Source: metadef source, inc/external/graph/types.h, DataType and GetSizeByDataType; base/utils/type_utils_impl.cc.
"""

from enum import IntEnum
from functools import cache
from typing import Self

import numpy as np

BIT_SIZE_BASE = 1000
"""Size codes above this number count bits: code - 1000 (GE: kDataTypeSizeBitOffset)."""

UNSUPPORTED_SIZE = -1
"""Size code of a type without a fixed element size."""

STRING_ELEMENT_BYTES = 16
"""Bytes that one element of DT_STRING or DT_STRING_REF takes in a tensor: address and length."""


class DataType(IntEnum):
    """Element type of a tensor; the member's value is GE's number in memory.

    Every member also has `proto_number` (the number on the wire) and `size_code`. Number 5 is reserved; numbers from
    43 on are unknown and read as `DT_UNDEFINED`.

    Source: metadef source, inc/external/graph/types.h, DataType; GE source, graph_metadef/proto/ge_ir.proto, DataType.

    Examples
    --------
    >>> DataType.DT_BF16, DataType.DT_BF16.to_serial(), DataType.DT_BF16.size_code
    (<DataType.DT_BF16: 27>, 'DT_BFLOAT16', 2)
    >>> DataType.from_proto(1)
    <DataType.DT_FLOAT: 0>
    """

    _value_: int
    proto_number: int
    size_code: int

    def __new__(cls, value: int, proto_number: int, size_code: int) -> Self:
        """Make the member of one row of the table below."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.proto_number = proto_number
        member.size_code = size_code
        return member

    # name = in memory, on the wire, size code
    DT_FLOAT = 0, 1, 4
    DT_FLOAT16 = 1, 2, 2
    DT_INT8 = 2, 3, 1
    DT_INT32 = 3, 7, 4
    DT_UINT8 = 4, 4, 1
    DT_INT16 = 6, 5, 2
    DT_UINT16 = 7, 6, 2
    DT_UINT32 = 8, 9, 4
    DT_INT64 = 9, 8, 8
    DT_UINT64 = 10, 10, 8
    DT_DOUBLE = 11, 12, 8
    DT_BOOL = 12, 11, 1
    DT_STRING = 13, 13, -1
    DT_DUAL_SUB_INT8 = 14, 14, 1
    DT_DUAL_SUB_UINT8 = 15, 15, 1
    DT_COMPLEX64 = 16, 16, 8
    DT_COMPLEX128 = 17, 17, 16
    DT_QINT8 = 18, 18, 1
    DT_QINT16 = 19, 19, 2
    DT_QINT32 = 20, 20, 4
    DT_QUINT8 = 21, 21, 1
    DT_QUINT16 = 22, 22, 2
    DT_RESOURCE = 23, 23, 8
    DT_STRING_REF = 24, 24, -1
    DT_DUAL = 25, 25, 5
    DT_VARIANT = 26, 26, 8
    DT_BF16 = 27, 27, 2
    DT_UNDEFINED = 28, 0, -1
    DT_INT4 = 29, 28, 1004
    DT_UINT1 = 30, 29, 1001
    DT_INT2 = 31, 30, 1002
    DT_UINT2 = 32, 31, 1002
    DT_COMPLEX32 = 33, 32, 4
    DT_HIFLOAT8 = 34, 33, 1
    DT_FLOAT8_E5M2 = 35, 34, 1
    DT_FLOAT8_E4M3FN = 36, 35, 1
    DT_FLOAT8_E8M0 = 37, 36, 1
    DT_FLOAT6_E3M2 = 38, 37, 1006
    DT_FLOAT6_E2M3 = 39, 38, 1006
    DT_FLOAT4_E2M1 = 40, 39, 1004
    DT_FLOAT4_E1M2 = 41, 40, 1004
    DT_HIFLOAT4 = 42, 41, 1004

    @classmethod
    def from_number(cls, number: int) -> "DataType":
        """Return the type with this number in memory, `DT_UNDEFINED` when there is none."""
        return _BY_NUMBER.get(number, cls.DT_UNDEFINED)

    @classmethod
    def from_proto(cls, number: int) -> "DataType":
        """Return the type with this number on the wire, `DT_UNDEFINED` when there is none."""
        return _BY_PROTO.get(number, cls.DT_UNDEFINED)

    def to_proto(self) -> int:
        """Return the number of `TensorDescriptor.dtype`."""
        return self.proto_number

    @classmethod
    def from_serial(cls, text: str) -> "DataType":
        """Return the type with this serial name, `DT_UNDEFINED` when there is none.

        `DT_FLOAT32` is read as `DT_FLOAT`, `RESERVED` as `DT_UNDEFINED`.

        Source: metadef source, base/utils/type_utils_impl.cc, SerialStringToDataType.
        """
        return _BY_SERIAL.get(text, cls.DT_UNDEFINED)

    def to_serial(self) -> str:
        """Return the serial name: the member's name, except `DT_BFLOAT16` for `DT_BF16`."""
        return "DT_BFLOAT16" if self is DataType.DT_BF16 else self.name

    @property
    def element_bits(self) -> int | None:
        """Bits of one element in memory, None for a type without a fixed size."""
        if self.size_code == UNSUPPORTED_SIZE:
            return None
        return self.size_code - BIT_SIZE_BASE if self.size_code > BIT_SIZE_BASE else self.size_code * 8

    @property
    def is_packed(self) -> bool:
        """Whether several elements share a byte in memory, as those of the 1 to 6 bit types do."""
        return self.size_code > BIT_SIZE_BASE

    def to_numpy(self) -> np.dtype[np.generic]:
        """Return the numpy type of one element.

        Types that numpy and ml_dtypes do not have come as raw unsigned integers of the same width (`DT_DUAL`: 5 raw
        bytes). For a packed type (`is_packed`) this is the type of an unpacked element, one byte each: the bytes in
        memory hold several of them.

        Raises
        ------
        TypeError
            The type has no fixed element size (`DT_STRING`, `DT_STRING_REF`, `DT_UNDEFINED`).
        """
        found = _numpy_types().get(self)
        if found is None:
            raise TypeError(f"{self.name} has no fixed element size, so no numpy type; read its bytes instead")
        return found

    @classmethod
    def from_numpy(cls, dtype: np.dtype[np.generic] | type[np.generic]) -> "DataType":
        """Return the type whose elements a numpy type holds.

        Raises
        ------
        TypeError
            GE has no such type.
        """
        wanted = np.dtype(dtype)
        found = _types_by_numpy().get(wanted)
        if found is None:
            raise TypeError(f"GE has no data type for numpy's {wanted}; view the array as an integer of its width")
        return found


_BY_NUMBER: dict[int, DataType] = {int(member): member for member in DataType}
_BY_PROTO: dict[int, DataType] = {member.proto_number: member for member in DataType}
_BY_SERIAL: dict[str, DataType] = {member.to_serial(): member for member in DataType} | {
    "DT_FLOAT32": DataType.DT_FLOAT,
    "RESERVED": DataType.DT_UNDEFINED,
}


def element_size_code(number: int) -> int:
    """Return the size code of a type number in memory: bytes, or 1000 + bits; -1 for unknown and unsupported ones.

    Source: metadef source, inc/external/graph/types.h, GetSizeByDataType.
    """
    found = _BY_NUMBER.get(number)
    return UNSUPPORTED_SIZE if found is None else found.size_code


@cache
def _numpy_types() -> dict[DataType, np.dtype[np.generic]]:
    """Numpy type per data type; ml_dtypes is imported at the first question."""
    import ml_dtypes

    return {
        DataType.DT_FLOAT: np.dtype(np.float32),
        DataType.DT_FLOAT16: np.dtype(np.float16),
        DataType.DT_INT8: np.dtype(np.int8),
        DataType.DT_INT32: np.dtype(np.int32),
        DataType.DT_UINT8: np.dtype(np.uint8),
        DataType.DT_INT16: np.dtype(np.int16),
        DataType.DT_UINT16: np.dtype(np.uint16),
        DataType.DT_UINT32: np.dtype(np.uint32),
        DataType.DT_INT64: np.dtype(np.int64),
        DataType.DT_UINT64: np.dtype(np.uint64),
        DataType.DT_DOUBLE: np.dtype(np.float64),
        DataType.DT_BOOL: np.dtype(np.bool_),
        DataType.DT_DUAL_SUB_INT8: np.dtype(np.int8),
        DataType.DT_DUAL_SUB_UINT8: np.dtype(np.uint8),
        DataType.DT_COMPLEX64: np.dtype(np.complex64),
        DataType.DT_COMPLEX128: np.dtype(np.complex128),
        DataType.DT_QINT8: np.dtype(np.int8),
        DataType.DT_QINT16: np.dtype(np.int16),
        DataType.DT_QINT32: np.dtype(np.int32),
        DataType.DT_QUINT8: np.dtype(np.uint8),
        DataType.DT_QUINT16: np.dtype(np.uint16),
        DataType.DT_RESOURCE: np.dtype(np.uint64),
        DataType.DT_DUAL: np.dtype("V5"),
        DataType.DT_VARIANT: np.dtype(np.uint64),
        DataType.DT_BF16: np.dtype(ml_dtypes.bfloat16),
        DataType.DT_INT4: np.dtype(ml_dtypes.int4),
        DataType.DT_UINT1: np.dtype(np.uint8),
        DataType.DT_INT2: np.dtype(ml_dtypes.int2),
        DataType.DT_UINT2: np.dtype(ml_dtypes.uint2),
        DataType.DT_COMPLEX32: np.dtype(np.uint32),
        DataType.DT_HIFLOAT8: np.dtype(np.uint8),
        DataType.DT_FLOAT8_E5M2: np.dtype(ml_dtypes.float8_e5m2),
        DataType.DT_FLOAT8_E4M3FN: np.dtype(ml_dtypes.float8_e4m3fn),
        DataType.DT_FLOAT8_E8M0: np.dtype(ml_dtypes.float8_e8m0fnu),
        DataType.DT_FLOAT6_E3M2: np.dtype(ml_dtypes.float6_e3m2fn),
        DataType.DT_FLOAT6_E2M3: np.dtype(ml_dtypes.float6_e2m3fn),
        DataType.DT_FLOAT4_E2M1: np.dtype(ml_dtypes.float4_e2m1fn),
        DataType.DT_FLOAT4_E1M2: np.dtype(np.uint8),
        DataType.DT_HIFLOAT4: np.dtype(np.uint8),
    }


@cache
def _types_by_numpy() -> dict[np.dtype[np.generic], DataType]:
    """Data type per numpy type; where several share one, the first of `DataType` (the plain one) is meant."""
    types: dict[np.dtype[np.generic], DataType] = {}
    for data_type, dtype in _numpy_types().items():
        types.setdefault(dtype, data_type)
    return types
