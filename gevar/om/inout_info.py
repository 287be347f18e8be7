"""Inputs and outputs of a model as listed in the MODEL_INOUT_INFO partition.

The partition is records back to back: `type u32 | length u32 | value`. Values by type::

    0 inputs, 1 outputs       count u32, then per tensor: size u64, format i32, data type i32, name_len u32,
                              dims_len u32, dims_v2_len u32, shape_range_len u32 (lengths in bytes), name,
                              dims i64 each, dims_v2 i64 each, shape range as pairs of i64
    2 dynamic batch           count u32, u64 each
    3 dynamic HW, 4 dims      count u32, inner counts u32 each, then the u64 values of all
    5 dynamic output shape,   count u32, lengths u32 each, then the strings
    6 designated shape order

Source: GE source, base/common/model/model_introduction.cc.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from gevar.errors import ModelFileError
from gevar.om.source import ByteSource

RECORD_HEAD = struct.Struct("<II")
TENSOR_BASE = struct.Struct("<QiiIIII")
_COUNT = struct.Struct("<I")
_WHAT = "MODEL_INOUT_INFO"
MAX_BYTES = 1 << 24
"""Larger partitions are refused; a tensor takes some hundred bytes."""
MAX_RECORDS = 1 << 12
"""Most records that are read; there are seven kinds."""
MAX_TENSORS = 1 << 16
"""Most tensors of a record that are read."""


class InOutType(IntEnum):
    """Kinds of records."""

    INPUTS = 0
    OUTPUTS = 1
    DYNAMIC_BATCH = 2
    DYNAMIC_HW = 3
    DYNAMIC_DIMS = 4
    DYNAMIC_OUTPUT_SHAPE = 5
    DESIGNATED_SHAPE_ORDER = 6


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One input or output: size in bytes, ACL format and data type numbers, shapes, and (low, high) per dimension."""

    name: str
    size_bytes: int
    format: int
    data_type: int
    dims: tuple[int, ...]
    dims_v2: tuple[int, ...]
    shape_range: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class InOutInfo:
    """The decoded partition; `blocks` lists every record as (type, length in bytes), unknown types included."""

    size_bytes: int = 0
    blocks: list[tuple[int, int]] = field(default_factory=list)
    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
    dynamic_batch: tuple[int, ...] = ()
    dynamic_hw: tuple[tuple[int, ...], ...] = ()
    dynamic_dims: tuple[tuple[int, ...], ...] = ()
    dynamic_output_shape: tuple[str, ...] = ()
    designated_shape_order: tuple[str, ...] = ()


def read_inout_info(source: ByteSource, start: int, size_bytes: int) -> InOutInfo:
    """Decode a MODEL_INOUT_INFO partition.

    Raises
    ------
    ModelFileError
        It is larger than 16 MiB, has more than 4096 records or 65536 inputs, or a record or a value in it is cut off.
    """
    if size_bytes > MAX_BYTES:
        raise source.error(start, _WHAT, f"{size_bytes} B, {MAX_BYTES} B at most are read")
    reader = _Reader(source, start, source.read(start, size_bytes, _WHAT))
    info = InOutInfo(size_bytes)
    while reader.left:
        number, length = reader.unpack(RECORD_HEAD)
        value = reader.part(length)
        if len(info.blocks) == MAX_RECORDS:
            raise source.error(start, _WHAT, f"more than {MAX_RECORDS} records")
        info.blocks.append((number, length))
        _decode_record(info, number, value)
    return info


class _Reader:
    """Takes values from the front of some bytes; `position` is theirs in the OM."""

    def __init__(self, source: ByteSource, position: int, data: bytes) -> None:
        self._source = source
        self._position = position
        self._data = memoryview(data)

    @property
    def left(self) -> int:
        return len(self._data)

    def take(self, size_bytes: int) -> memoryview:
        if size_bytes > len(self._data):
            reason = f"a value of {size_bytes} B is cut off, {len(self._data)} B are left"
            raise self.error(reason)
        taken, self._data = self._data[:size_bytes], self._data[size_bytes:]
        self._position += size_bytes
        return taken

    def part(self, size_bytes: int) -> "_Reader":
        position = self._position
        return _Reader(self._source, position, bytes(self.take(size_bytes)))

    def unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        return layout.unpack(self.take(layout.size))

    def count(self) -> int:
        return self.unpack(_COUNT)[0]

    def error(self, reason: str) -> ModelFileError:
        return self._source.error(self._position, _WHAT, reason)

    def numbers(self, code: str, count: int) -> tuple[int, ...]:
        size_bytes = count * struct.calcsize(f"<{code}")
        return struct.unpack(f"<{count}{code}", self.take(size_bytes))

    def text(self, size_bytes: int) -> str:
        return bytes(self.take(size_bytes)).decode("utf-8", "backslashreplace")


def _decode_record(info: InOutInfo, number: int, value: _Reader) -> None:
    if number == InOutType.INPUTS:
        info.inputs = tuple(_tensors(value))
    elif number == InOutType.OUTPUTS:
        info.outputs = tuple(_tensors(value))
    elif number == InOutType.DYNAMIC_BATCH:
        info.dynamic_batch = value.numbers("Q", value.count())
    elif number == InOutType.DYNAMIC_HW:
        info.dynamic_hw = _lists(value)
    elif number == InOutType.DYNAMIC_DIMS:
        info.dynamic_dims = _lists(value)
    elif number == InOutType.DYNAMIC_OUTPUT_SHAPE:
        info.dynamic_output_shape = _texts(value)
    elif number == InOutType.DESIGNATED_SHAPE_ORDER:
        info.designated_shape_order = _texts(value)


def _tensors(value: _Reader) -> Iterator[TensorInfo]:
    for index in range(value.count()):
        if index == MAX_TENSORS:
            raise value.error(f"more than {MAX_TENSORS} tensors")
        size_bytes, fmt, data_type, name_len, *lens = value.unpack(TENSOR_BASE)
        name = value.text(name_len)
        dims, dims_v2, flat = (value.numbers("q", size // 8) for size in lens)
        yield TensorInfo(
            name, size_bytes, fmt, data_type, dims, dims_v2, tuple(zip(flat[::2], flat[1::2], strict=False))
        )


def _lists(value: _Reader) -> tuple[tuple[int, ...], ...]:
    counts = value.numbers("I", value.count())
    return tuple(value.numbers("Q", count) for count in counts)


def _texts(value: _Reader) -> tuple[str, ...]:
    lens = value.numbers("I", value.count())
    return tuple(value.text(size_bytes) for size_bytes in lens)
