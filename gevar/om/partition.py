"""Partition tables of OM files: types, the two layouts, reading with the rules of place, and packing.

A table is a head with the number of entries and then one entry per partition::

    narrow (dialects G1, G2, M)   head: num u32              entry: type u32, mem_offset u32, mem_size u32
    wide (G3, flow, bundle)       head: num u32, pad[4]      entry: type u32, pad[4], mem_offset u64, mem_size u64

`mem_offset` counts from the end of the table. GE's main loader ignores it and takes the partitions back to back, its
small C run time uses it. Here the running sum is used where all agree with it, else `mem_offset`, if the places lie
inside the body and do not overlap; else the table is refused.

Source: GE source, base/common/helper/om_file_helper.cc and inc/framework/common/framework_types_internal.h.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

from gevar.om.source import ByteSource
from gevar.status import ACL_ERROR_GE_EXEC_MODEL_DATA_SIZE_INVALID as _SIZE
from gevar.status import ACL_ERROR_GE_PARAM_INVALID

MAX_PARTITIONS = 8
"""Most partitions of an ordinary model (PARTITION_SIZE in GE)."""
MAX_FLOW_PARTITIONS = 4096
"""Most partitions of a flow model."""
MAX_BUNDLE_PARTITIONS = 65536
"""Most partitions of a bundle; GE sets no limit, this one bounds the work on a damaged file."""
ALIGN_BYTES = 32
"""Alignment of partitions by GE's writer of executable OMs, and so the longest padding behind the last one."""


class PartitionType(IntEnum):
    """What a partition holds (server dialects).

    Source: GE source, inc/framework/common/framework_types_internal.h, ModelPartitionType.
    """

    MODEL_DEF = 0
    WEIGHTS_DATA = 1
    TASK_INFO = 2
    TBE_KERNELS = 3
    CUST_AICPU_KERNELS = 4
    SO_BINS = 5
    FLOW_MODEL = 6
    FLOW_SUBMODEL = 7
    MODEL_INOUT_INFO = 8
    STATIC_TASK_DESC = 9
    DYNAMIC_TASK_DESC = 10
    TASK_PARAM = 11
    TILING_DATA = 12
    PRE_MODEL_DESC = 20
    PRE_MODEL_SQE = 21
    PRE_KERNEL_ARGS = 22
    PRE_MODEL_DESC_EXTEND = 23
    BUNDLE_MODEL_INFO = 24
    BUNDLE_MODEL_VAR_INFO = 25
    CUSTOM_OPS = 26


class MobilePartitionType(IntEnum):
    """What a partition holds in dialect M, whose numbers differ from 3 on."""

    MODEL_DEF = 0
    WEIGHTS_DATA = 1
    TASK_INFO = 2
    TASK_GRAPH = 3
    SIGNATURE_INFO = 4
    MODEL_CONFIG = 5
    AIPP_CUSTOM_INFO = 6
    ENCRYPT_INFO = 7
    WEIGHT_INFO = 8


def partition_type_name(number: int, *, mobile: bool = False) -> str:
    """Return GE's name of a partition type, or `UNKNOWN_n` for a number without one."""
    types = MobilePartitionType if mobile else PartitionType
    return types(number).name if number in types._value2member_map_ else f"UNKNOWN_{number}"


@dataclass(frozen=True, slots=True)
class Partition:
    """One entry of a table: `mem_offset` and `mem_size` in bytes as stored, `file_offset` from the start of the OM."""

    type: int
    mem_offset: int
    mem_size: int
    file_offset: int

    @property
    def end(self) -> int:
        """First byte after the partition, from the start of the OM."""
        return self.file_offset + self.mem_size


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Layout of one kind of partition table; sizes in bytes."""

    head: struct.Struct
    entry: struct.Struct

    def table_bytes(self, num: int) -> int:
        """Return the size of a table with `num` entries."""
        return self.head.size + self.entry.size * num

    def pack(self, entries: Sequence[tuple[int, int, int]]) -> bytes:
        """Encode a table from (type, mem_offset, mem_size) triples.

        Raises
        ------
        ValueError
            A number does not fit its field.
        """
        try:
            return self.head.pack(len(entries)) + b"".join(self.entry.pack(*entry) for entry in entries)
        except struct.error as error:
            raise ValueError(f"partition table has a number that does not fit: {error}") from error


NARROW_TABLE = TableLayout(struct.Struct("<I"), struct.Struct("<III"))
WIDE_TABLE = TableLayout(struct.Struct("<I4x"), struct.Struct("<I4xQQ"))


def read_table(source: ByteSource, start: int, layout: TableLayout, max_num: int) -> list[Partition]:
    """Read the table at byte `start` of an OM and find the place of each partition.

    Raises
    ------
    ModelFileError
        The table or a partition does not lie inside the OM, the number of partitions is not in 1..`max_num`, or the
        places contradict each other.
    """
    entries, data_start = _read_entries(source, start, layout, max_num)
    available = source.size_bytes - data_start
    for index, (number, _, size_bytes) in enumerate(entries):
        if size_bytes > available:
            reason = f"partition {index} ({partition_type_name(number)}) has {size_bytes} B, {available} B are there"
            raise source.error(_entry_at(start, layout, index), "mem_size", reason, status=_SIZE)
    sums = list(_running_sums(entries))
    if all(entry[1] == total for entry, total in zip(entries, sums, strict=False)):
        if sums[-1] > available:
            reason = f"the {len(entries)} partitions add up to {sums[-1]} B, {available} B are there"
            raise source.error(_entry_at(start, layout, len(entries) - 1), "mem_size", reason, status=_SIZE)
    else:
        _check_places(source, start, layout, entries, available)
    return [Partition(number, offset, size, data_start + offset) for number, offset, size in entries]


def read_bundle_table(source: ByteSource, start: int) -> list[Partition]:
    """Read the table of a bundle, whose partitions lie back to back, whatever `mem_offset` says.

    Raises
    ------
    ModelFileError
        The table or a partition does not lie inside the bundle, or there are more than 65536 partitions.

    Source: GE source, base/common/helper/om_file_helper.cc; a bundle counts mem_offset from the end of the header.
    """
    entries, data_start = _read_entries(source, start, WIDE_TABLE, MAX_BUNDLE_PARTITIONS)
    sums = list(_running_sums(entries))
    for index, total in enumerate(sums[1:]):
        if data_start + total > source.size_bytes:
            reason = f"partition {index} ends at {data_start + total}, the file has {source.size_bytes} B"
            raise source.error(_entry_at(start, WIDE_TABLE, index), "mem_size", reason, status=_SIZE)
    return [
        Partition(number, offset, size, data_start + total)
        for (number, offset, size), total in zip(entries, sums, strict=False)
    ]


def _read_entries(
    source: ByteSource, start: int, layout: TableLayout, max_num: int
) -> tuple[list[tuple[int, int, int]], int]:
    """Return the raw entries and the offset of the first byte after the table."""
    available = source.size_bytes - start
    if available <= WIDE_TABLE.head.size:
        reason = f"{available} B left, no room for a table with partitions"
        raise source.error(start, "partition table", reason, status=_SIZE)
    (num,) = layout.head.unpack(source.read(start, layout.head.size, "partition table"))
    if not 1 <= num <= max_num:
        reason = f"{num} partitions, 1 to {max_num} are allowed"
        raise source.error(start, "num", reason, status=ACL_ERROR_GE_PARAM_INVALID)
    table_bytes = layout.table_bytes(num)
    if table_bytes >= available:
        reason = f"a table of {num} partitions takes {table_bytes} B, {available} B are left for table and data"
        raise source.error(start, "num", reason, status=_SIZE)
    data = source.read(start + layout.head.size, layout.entry.size * num, "partition table")
    return list(layout.entry.iter_unpack(data)), start + table_bytes


def _running_sums(entries: Iterable[tuple[int, int, int]]) -> Iterable[int]:
    """Yield the bytes before each entry's partition, then the total."""
    total = 0
    for _, _, size_bytes in entries:
        yield total
        total += size_bytes
    yield total


def _entry_at(start: int, layout: TableLayout, index: int) -> int:
    return start + layout.table_bytes(index)


def _check_places(
    source: ByteSource, start: int, layout: TableLayout, entries: list[tuple[int, int, int]], available: int
) -> None:
    """Refuse stored offsets that leave the body or overlap."""
    for index, (_, offset, size) in enumerate(entries):
        if offset + size > available:
            reason = f"partition {index} at {offset} with {size} B leaves the {available} B there are"
            raise source.error(_entry_at(start, layout, index), "mem_offset", reason)
    places = sorted((offset, size, index) for index, (_, offset, size) in enumerate(entries) if size)
    for (offset, size, index), (next_offset, _, next_index) in pairwise(places):
        if offset + size > next_offset:
            reason = f"partition {index} ends at {offset + size}, partition {next_index} starts at {next_offset}"
            raise source.error(_entry_at(start, layout, next_index), "mem_offset", reason)
