"""Partition tables: layouts, limits, and where the partitions lie."""

import struct

import pytest

from gevar.errors import ModelFileError
from gevar.om.partition import (
    MAX_FLOW_PARTITIONS,
    MAX_PARTITIONS,
    NARROW_TABLE,
    WIDE_TABLE,
    Partition,
    PartitionType,
    TableLayout,
    partition_type_name,
    read_bundle_table,
    read_table,
)
from gevar.om.source import ByteSource
from tests.helpers import om_builder as build

START = 16
LAYOUTS = pytest.mark.parametrize(("layout", "wide"), [(NARROW_TABLE, False), (WIDE_TABLE, True)])
Entry = tuple[int, int, int]


def source(entries: list[Entry], data_bytes: int, wide: bool) -> ByteSource:
    """A source with some bytes, a table at `START`, and data."""
    return ByteSource.of_bytes(bytes(START) + build.table(entries, wide) + bytes(data_bytes), "t.om")


def read(entries: list[Entry], data_bytes: int, wide: bool = True, max_num: int = MAX_PARTITIONS) -> list[Partition]:
    return read_table(source(entries, data_bytes, wide), START, WIDE_TABLE if wide else NARROW_TABLE, max_num)


def refusal(entries: list[Entry], data_bytes: int, wide: bool = True, max_num: int = MAX_PARTITIONS) -> ModelFileError:
    with pytest.raises(ModelFileError) as caught:
        read(entries, data_bytes, wide, max_num)
    return caught.value


@LAYOUTS
def test_partitions_back_to_back(layout: TableLayout, wide: bool) -> None:
    found = read([(8, 0, 5), (0, 5, 10), (1, 15, 1)], 16, wide)
    data_start = START + layout.table_bytes(3)
    assert found == [
        Partition(8, 0, 5, data_start),
        Partition(0, 5, 10, data_start + 5),
        Partition(1, 15, 1, data_start + 15),
    ]
    assert found[-1].end == data_start + 16


@LAYOUTS
def test_table_sizes(layout: TableLayout, wide: bool) -> None:
    assert layout.table_bytes(3) == len(build.table([(0, 0, 0)] * 3, wide))


@LAYOUTS
def test_pack(layout: TableLayout, wide: bool) -> None:
    entries = [(0, 0, 7), (1, 7, 2**32 - 1)]
    assert layout.pack(entries) == build.table(entries, wide)


def test_pack_refuses_what_does_not_fit() -> None:
    assert WIDE_TABLE.pack([(1, 0, 2**40)])
    with pytest.raises(ValueError, match="does not fit"):
        NARROW_TABLE.pack([(1, 0, 2**32)])
    with pytest.raises(ValueError, match="does not fit"):
        WIDE_TABLE.pack([(1, 0, -1)])


@LAYOUTS
def test_zero_size_partitions_are_legal(layout: TableLayout, wide: bool) -> None:
    assert [part.mem_size for part in read([(0, 0, 4), (2, 4, 0), (1, 4, 3)], 7, wide)] == [4, 0, 3]


@LAYOUTS
@pytest.mark.parametrize("num", [0, 9, 2**31, 2**32 - 1])
def test_number_of_partitions_is_limited(layout: TableLayout, wide: bool, num: int) -> None:
    data = bytes(START) + struct.pack("<I", num) + bytes(2000)
    with pytest.raises(ModelFileError, match=f"{num} partitions, 1 to 8 are allowed") as caught:
        read_table(ByteSource.of_bytes(data, "t.om"), START, layout, MAX_PARTITIONS)
    assert (caught.value.field, caught.value.offset) == ("num", START)


@LAYOUTS
def test_eight_partitions_are_allowed(layout: TableLayout, wide: bool) -> None:
    assert len(read([(number, number, 1) for number in range(8)], 8, wide)) == 8


def test_flow_limit() -> None:
    most = [(7, 0, 0)] * MAX_FLOW_PARTITIONS
    assert len(read(most, 1, max_num=MAX_FLOW_PARTITIONS)) == MAX_FLOW_PARTITIONS
    assert "4097 partitions" in str(refusal([*most, (7, 0, 0)], 1, max_num=MAX_FLOW_PARTITIONS))


@LAYOUTS
def test_table_needs_data_behind_it(layout: TableLayout, wide: bool) -> None:
    assert read([(0, 0, 0)], 1, wide)
    error = refusal([(0, 0, 0)], 0, wide)
    assert error.field == "num"
    assert f"takes {layout.table_bytes(1)} B, {layout.table_bytes(1)} B are left" in str(error)


@LAYOUTS
@pytest.mark.parametrize("left", range(9))
def test_no_room_for_a_table(layout: TableLayout, wide: bool, left: int) -> None:
    with pytest.raises(ModelFileError, match=f"{left} B left, no room"):
        read_table(ByteSource.of_bytes(bytes(START + left), "t.om"), START, layout, MAX_PARTITIONS)


@LAYOUTS
def test_partition_larger_than_the_body(layout: TableLayout, wide: bool) -> None:
    error = refusal([(0, 0, 4), (1, 4, 11)], 10, wide)
    assert "partition 1 (WEIGHTS_DATA) has 11 B, 10 B are there" in str(error)
    assert error.offset == START + layout.table_bytes(1)


@LAYOUTS
def test_sum_beyond_the_body(layout: TableLayout, wide: bool) -> None:
    assert "the 2 partitions add up to 11 B, 10 B are there" in str(refusal([(0, 0, 5), (1, 5, 6)], 10, wide))


def test_sums_that_wrap_at_64_bits_are_refused() -> None:
    assert refusal([(0, 0, 2**63), (1, 2**63, 2**63)], 16).field == "mem_size"
    assert refusal([(0, 8, 8), (1, 2**64 - 8, 16)], 64).field == "mem_offset"


@LAYOUTS
def test_offsets_win_where_they_are_aligned(layout: TableLayout, wide: bool) -> None:
    found = read([(0, 0, 5), (1, 32, 10), (2, 64, 3)], 70, wide)
    data_start = START + layout.table_bytes(3)
    assert [part.file_offset - data_start for part in found] == [0, 32, 64]


def test_offsets_may_be_out_of_order() -> None:
    found = read([(0, 32, 5), (1, 0, 10)], 40)
    assert [part.file_offset for part in found] == [START + WIDE_TABLE.table_bytes(2) + offset for offset in (32, 0)]


@LAYOUTS
@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([(0, 0, 5), (1, 4, 10)], "partition 0 ends at 5, partition 1 starts at 4"),
        ([(0, 3, 8), (1, 0, 4)], "partition 1 ends at 4, partition 0 starts at 3"),
        ([(0, 0, 5), (1, 31, 10)], "partition 1 at 31 with 10 B leaves the 40 B"),
        ([(0, 0, 5), (2, 41, 0)], "partition 1 at 41 with 0 B leaves the 40 B"),
        ([(0, 8, 4), (1, 8, 4)], "starts at 8"),
    ],
)
def test_offsets_that_contradict(layout: TableLayout, wide: bool, entries: list[Entry], words: str) -> None:
    error = refusal(entries, 40, wide)
    assert words in str(error)
    assert error.field == "mem_offset"


def test_empty_partition_may_share_a_place() -> None:
    assert [part.mem_size for part in read([(0, 8, 4), (2, 10, 0), (1, 20, 4)], 40)] == [4, 0, 4]


def test_bundle_goes_by_sizes_whatever_the_offsets_say() -> None:
    entries = [(25, 999, 8), (24, 0, 5), (24, 2**63, 3)]
    found = read_bundle_table(source(entries, 16, wide=True), START)
    data_start = START + WIDE_TABLE.table_bytes(3)
    assert [(part.file_offset, part.mem_size) for part in found] == [
        (data_start, 8),
        (data_start + 8, 5),
        (data_start + 13, 3),
    ]


def test_bundle_partition_beyond_the_file() -> None:
    with pytest.raises(ModelFileError, match="partition 1 ends at") as caught:
        read_bundle_table(source([(25, 0, 8), (24, 0, 9)], 16, wide=True), START)
    assert caught.value.field == "mem_size"


def test_bundle_number_is_bounded_before_the_table_is_read() -> None:
    data = bytes(START) + struct.pack("<I", 2**32 - 1) + bytes(200)
    with pytest.raises(ModelFileError, match="4294967295 partitions"):
        read_bundle_table(ByteSource.of_bytes(data, "t.om"), START)


@pytest.mark.parametrize(
    ("number", "mobile", "name"),
    [
        (0, False, "MODEL_DEF"),
        (3, False, "TBE_KERNELS"),
        (3, True, "TASK_GRAPH"),
        (26, False, "CUSTOM_OPS"),
        (26, True, "UNKNOWN_26"),
        (2**32 - 1, False, "UNKNOWN_4294967295"),
    ],
)
def test_names_of_types(number: int, mobile: bool, name: str) -> None:
    assert partition_type_name(number, mobile=mobile) == name


def test_types_by_number() -> None:
    assert PartitionType(25) is PartitionType.BUNDLE_MODEL_VAR_INFO
    assert [member.value for member in PartitionType] == [*range(13), *range(20, 27)]
