"""Walking over protobuf fields: agreement with protobuf, windows, damaged bytes, unknown fields."""

import struct

import pytest

from gevar.errors import ModelFileError
from gevar.om.source import ByteSource
from gevar.om.wire import WireField, count_unknown_fields, read_text, read_value, walk_fields
from gevar.proto import ge_ir
from tests.helpers import om_builder as build


def walk(data: bytes, start: int = 0, end: int | None = None) -> list[WireField]:
    return list(walk_fields(ByteSource.of_bytes(data, "w.om"), start, len(data) if end is None else end, "MESSAGE"))


def refusal(data: bytes) -> ModelFileError:
    with pytest.raises(ModelFileError) as caught:
        walk(data)
    assert caught.value.field == "MESSAGE"
    return caught.value


def unknown(data: bytes) -> int:
    source = ByteSource.of_bytes(data, "w.om")
    return count_unknown_fields(source, 0, len(data), ge_ir.ModelDef.DESCRIPTOR, "MESSAGE")


def test_every_wire_type() -> None:
    data = b"\x08\x96\x01" + b"\x11" + bytes(8) + b"\x1a\x03abc" + b"\x25" + bytes(4)
    assert walk(data) == [
        WireField(1, 0, 0, 1, 3, 150),
        WireField(2, 1, 3, 4, 12, 0),
        WireField(3, 2, 12, 14, 17, 0),
        WireField(4, 5, 17, 18, 22, 0),
    ]


@pytest.mark.parametrize("number", [0, 1, 127, 128, 2**32, 2**63, 2**64 - 1])
def test_numbers(number: int) -> None:
    (field,) = walk(build.field(5, number))
    assert field.value == number


def test_large_field_numbers() -> None:
    (field,) = walk(build.field(2**29 - 1, 7))
    assert (field.number, field.value) == (2**29 - 1, 7)


def test_part_of_the_source() -> None:
    inner = build.message((1, "ab"), (2, 5))
    data = b"\xff\xff" + inner + b"\xff"
    source = ByteSource.of_bytes(data, "w.om")
    first, second = walk(data, 2, 2 + len(inner))
    assert read_value(source, first, "x") == b"ab"
    assert read_text(source, first, "x") == "ab"
    assert second.value == 5


def test_many_fields_across_windows_match_protobuf() -> None:
    graph = ge_ir.GraphDef(name="g", input=[f"input:{number}" * (number % 40) for number in range(5000)])
    data = graph.SerializeToString()
    source = ByteSource.of_bytes(data, "w.om")
    fields = walk(data)
    assert len(data) > 4 << 16  # several windows
    assert [read_text(source, field, "x") for field in fields if field.number == 4] == list(graph.input)
    assert [field.start for field in fields[1:]] == [field.end for field in fields[:-1]]
    assert fields[-1].end == len(data)


def test_values_larger_than_a_window_are_skipped_not_read() -> None:
    class Counting(ByteSource):
        wanted = 0

        def read(self, offset: int, size_bytes: int, field: str) -> bytes:
            Counting.wanted += size_bytes
            return super().read(offset, size_bytes, field)

    data = build.message((1, bytes(10_000_000)), (2, 9))
    source = Counting(ByteSource.of_bytes(data, "w.om")._storage)
    fields = list(walk_fields(source, 0, len(data), "MESSAGE"))
    assert [field.number for field in fields] == [1, 2]
    assert Counting.wanted < 200_000


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x00\x01", "field number 0"),
        (build.varint(2**29 << 3) + b"\x01", "field number 536870912"),
        (b"\x0f", "field 1 has the unknown wire type 7"),
        (b"\x0e", "field 1 has the unknown wire type 6"),
        (b"\x08", "cut off at 1"),
        (b"\x08\x80", "cut off at 2"),
        (b"\x0a", "cut off at 1"),
        (b"\x80", "cut off at 1"),
        (b"\x0a\x05abcd", "field 1 ends at 7, the message at 6"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "field 1 ends at"),
        (b"\x09" + bytes(7), "field 1 ends at 9, the message at 8"),
        (b"\x0d" + bytes(3), "field 1 ends at 5, the message at 4"),
        (b"\x08" + b"\xff" * 10 + b"\x01", "more than 10 bytes"),
        (b"\x0c", "start and end of a group do not match"),
        (b"\x0b\x08\x01", "start and end of a group do not match"),
    ],
)
def test_damaged_bytes(data: bytes, words: str) -> None:
    error = refusal(data)
    assert words in str(error)
    assert error.offset is not None


def test_offset_of_the_damage_is_that_of_the_field() -> None:
    good = build.message((1, 1), (2, "text"))
    assert refusal(good + b"\x0a\x7f").offset == len(good)


def test_groups_are_passed_over() -> None:
    # field 9 as a group that holds field 1, and a group in it
    data = build.field(2, 3) + b"\x4b\x08\x01\x53\x54\x4c" + build.field(4, 5)
    assert [(field.number, field.value) for field in walk(data)] == [(2, 3), (4, 5)]
    ge_ir.GraphDef.FromString(b"\x4b\x08\x01\x53\x54\x4c")  # protobuf keeps it as an unknown field


def test_text_that_is_not_utf8() -> None:
    data = build.field(1, b"\xff\xfe")
    (field,) = walk(data)
    with pytest.raises(ModelFileError, match="text is not UTF-8"):
        read_text(ByteSource.of_bytes(data, "w.om"), field, "MESSAGE")


def test_no_unknown_fields() -> None:
    data = build.model_def("m", build.small_graphs(), {"a": build.attr_i(1), "l": build.attr_ints([1, 2])})
    assert unknown(data) == 0
    assert unknown(b"") == 0


def test_unknown_fields_at_every_depth() -> None:
    new = build.field(900, 1)
    op = build.op("n", "T", {"a": build.attr_i(1) + new}, [build.tensor_desc() + new]) + new
    data = build.model_def("m", [build.graph("g", [op]) + new]) + new
    assert unknown(data) == 5


def test_field_with_another_wire_type_is_unknown() -> None:
    assert unknown(build.field(2, 7)) == 0  # version: a number
    assert unknown(b"\x15" + struct.pack("<I", 7)) == 1
    assert unknown(build.field(7, 7)) == 1  # graph: a message


def test_packed_numbers_are_known() -> None:
    dims = build.field(3, build.field(1, bytes([1, 2, 3])))
    op = build.op("n", "T", outputs=[dims])
    assert unknown(build.model_def("m", [build.graph("g", [op])])) == 0


@pytest.mark.parametrize("large_bytes", [1, 40, 300, 20_000])
@pytest.mark.parametrize("piece_bytes", [1, 500, 1 << 16])
def test_small_fields_may_be_passed_over(large_bytes: int, piece_bytes: int) -> None:
    """All large fields come, no two that come are further apart than a piece and a field, and all are true ones."""
    sizes = [0, 5, 39, 40, 127, 128, 299, 300, 16_383, 16_384, 20_000, 3, 70_000, 1] * 30
    data = b"".join(
        build.field(1 + index % 40, index if index % 7 == 6 else b"x" * size) for index, size in enumerate(sizes)
    )
    source = ByteSource.of_bytes(data, "w.om")
    every = list(walk_fields(source, 0, len(data), "M"))
    some = list(walk_fields(source, 0, len(data), "M", large_bytes=large_bytes, piece_bytes=piece_bytes))
    assert set(some) <= set(every)
    assert [field for field in some if field.end - field.value_start >= large_bytes] == [
        field for field in every if field.end - field.value_start >= large_bytes
    ]
    most = max(field.end - field.start for field in every)
    for before, after in zip([every[0], *some], some, strict=False):
        assert after.start - before.end <= piece_bytes + most


def test_damage_among_small_fields_is_found() -> None:
    data = build.field(1, b"x" * 30) * 3000 + b"\x0a\x7f" + b"y" * 5
    source = ByteSource.of_bytes(data, "w.om")
    with pytest.raises(ModelFileError, match="not a protobuf message") as caught:
        list(walk_fields(source, 0, len(data), "M", large_bytes=1 << 14, piece_bytes=1 << 20))
    assert caught.value.offset == 32 * 3000
