"""Partitions that list items: kernels, shared objects, inputs and outputs."""

import struct

import pytest

from gevar.errors import ModelFileError
from gevar.om.inout_info import InOutInfo, InOutType, TensorInfo, read_inout_info
from gevar.om.kernel_store import CUSTOM_OP_ITEM_MAGIC, MAX_ITEMS, KernelItem, KernelStore, read_kernel_store
from gevar.om.so_store import SoItem, SoType, read_so_store
from gevar.om.source import ByteSource
from tests.helpers import om_builder as build

BEFORE = b"before"


def in_file(data: bytes) -> tuple[ByteSource, int, int]:
    """The data behind and before other bytes: source, start and size."""
    return ByteSource.of_bytes(BEFORE + data + b"after", "s.om"), len(BEFORE), len(data)


def kernels(data: bytes) -> KernelStore:
    return read_kernel_store(*in_file(data), "TBE_KERNELS")


def shared_objects(data: bytes) -> tuple[SoItem, ...]:
    return read_so_store(*in_file(data))


def inout(data: bytes) -> InOutInfo:
    return read_inout_info(*in_file(data))


# --- kernels ----------------------------------------------------------------------------------------------------------


def test_kernels() -> None:
    data = build.kernel_item("add", b"12345") + build.kernel_item("", b"6") + build.kernel_item("mul", b"")
    store = kernels(data)
    start = len(BEFORE)
    assert store.items == (
        KernelItem("add", start + 15, 5),
        KernelItem("", start + 32, 1),
        KernelItem("mul", start + 48, 0),
    )
    assert (store.consumed_bytes, store.size_bytes, store.fault) == (len(data), len(data), None)
    source = in_file(data)[0]
    assert source.read(store.items[0].file_offset, 5, "x") == b"12345"


def test_empty_store() -> None:
    assert kernels(b"") == KernelStore((), 0, 0, None)


@pytest.mark.parametrize("tail", range(13))
def test_short_tail_is_ignored(tail: int) -> None:
    item = build.kernel_item("add", b"1")
    store = kernels(item + b"\xff" * tail)
    assert (len(store.items), store.consumed_bytes, store.fault) == (1, len(item), None)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (build.kernel_item("mul", b"2", magic=1), "has magic 0x00000001, 0x5d776efd expected"),
        (struct.pack("<III", 0x5D776EFD, 0, 2) + b"2", "ends at"),
        (struct.pack("<III", 0x5D776EFD, 2**32 - 1, 2**32 - 1) + b"2", "ends at"),
        (struct.pack("<III", 0x5D776EFD, 70_000, 0) + bytes(70_000), "name of 70000 B"),
    ],
)
def test_broken_store_keeps_what_came_before(bad: bytes, words: str) -> None:
    first = build.kernel_item("add", b"1")
    store = kernels(first + bad)
    assert [item.name for item in store.items] == ["add"]
    assert store.consumed_bytes == len(first)
    assert store.fault is not None
    assert words in store.fault


def test_number_of_items_is_bounded() -> None:
    store = kernels(build.kernel_item("", b"") * (MAX_ITEMS + 3))
    assert len(store.items) == MAX_ITEMS
    assert store.fault is not None


def test_custom_ops_have_their_own_magic() -> None:
    source, start, size = in_file(build.kernel_item("op", b"1", magic=0x4B43534B))
    assert len(read_kernel_store(source, start, size, "CUSTOM_OPS", magic=CUSTOM_OP_ITEM_MAGIC).items) == 1
    assert read_kernel_store(source, start, size, "CUSTOM_OPS").fault is not None


def test_name_that_is_not_utf8() -> None:
    data = struct.pack("<III", 0x5D776EFD, 2, 0) + b"\xff!" + build.kernel_item("x", b"")
    assert [item.name for item in kernels(data).items] == ["\\xff!", "x"]


# --- shared objects ---------------------------------------------------------------------------------------------------


def test_shared_objects() -> None:
    data = build.so_store([("liba.so", "vendor", 1, b"12345"), ("libb.so", "", 9, b"6")])
    first, second = shared_objects(data)
    assert (first.name, first.vendor, first.so_type, first.size_bytes) == ("liba.so", "vendor", SoType.OP_MASTER, 5)
    assert (second.name, second.vendor, second.so_type) == ("libb.so", "", 9)
    assert in_file(data)[0].read(first.file_offset, 5, "x") == b"12345"
    assert in_file(data)[0].read(second.file_offset, 1, "x") == b"6"


def test_no_shared_objects() -> None:
    assert shared_objects(build.so_store([])) == ()


ITEM = ("liba.so", "vendor", 0, b"12345")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x01\0\0", "3 B, no room"),
        (build.so_store([], count=1), "1 items are declared, 0 B hold fewer"),
        (build.so_store([], count=2**32 - 1), "4294967295 items are declared"),
        (build.so_store([ITEM], count=2), "an item starts at|a binary of"),
        (build.so_store([ITEM, ITEM], count=1), "1 items are declared, 34 B are behind"),
        (build.so_store([("a", "", 0, b"1")] * 65537), "65537 items are declared, 65536 at most"),
        (build.so_store([ITEM])[:-1], "a binary of 5 B"),
        (build.so_store([("liba.so", "vendor", 0, b"")]), "a binary of 0 B"),
        (build.so_store([ITEM]).replace(struct.pack("<I", 0x5D776EFD), b"\1\0\0\0"), "0x00000001 found"),
    ],
)
def test_broken_shared_objects(data: bytes, words: str) -> None:
    with pytest.raises(ModelFileError, match=words) as caught:
        shared_objects(data)
    assert caught.value.field == "SO_BINS"


# --- inputs and outputs -----------------------------------------------------------------------------------------------


def test_inputs_and_outputs() -> None:
    inputs = (
        struct.pack("<I", 2) + build.tensor_info("x", 96, (2, 3, -1), (2, 2, 3, 3, 1, 4)) + build.tensor_info("", 0, ())
    )
    outputs = struct.pack("<I", 1) + build.tensor_info("y", 8, (2,))
    info = inout(build.record(0, inputs) + build.record(1, outputs))
    assert info.inputs == (
        TensorInfo("x", 96, 2, 0, (2, 3, -1), (2, 3, -1), ((2, 2), (3, 3), (1, 4))),
        TensorInfo("", 0, 2, 0, (), (), ()),
    )
    assert [tensor.dims for tensor in info.outputs] == [(2,)]
    assert info.blocks == [(0, len(inputs)), (1, len(outputs))]


def test_dynamic_records() -> None:
    texts = struct.pack("<III", 2, 3, 1) + b"abcd"
    lists = struct.pack("<III", 2, 2, 1) + struct.pack("<QQQ", 224, 224, 300)
    info = inout(
        build.record(2, struct.pack("<IQQ", 2, 1, 8))
        + build.record(3, lists)
        + build.record(4, lists)
        + build.record(5, texts)
        + build.record(6, texts)
    )
    assert info.dynamic_batch == (1, 8)
    assert info.dynamic_hw == info.dynamic_dims == ((224, 224), (300,))
    assert info.dynamic_output_shape == info.designated_shape_order == ("abc", "d")
    assert [number for number, _ in info.blocks] == [2, 3, 4, 5, 6]


def test_unknown_record_is_listed() -> None:
    info = inout(build.record(77, b"abc") + build.record(2, struct.pack("<IQ", 1, 5)))
    assert info.blocks == [(77, 3), (2, 12)]
    assert info.dynamic_batch == (5,)


def test_empty_partition() -> None:
    assert inout(b"") == InOutInfo(0)


def test_bytes_after_the_value_of_a_record_belong_to_it() -> None:
    info = inout(build.record(2, struct.pack("<IQ", 1, 5) + b"rest"))
    assert info.dynamic_batch == (5,)
    assert info.blocks == [(2, 16)]


@pytest.mark.parametrize("number", list(InOutType))
@pytest.mark.parametrize("count", [1, 2**31, 2**32 - 1])
def test_counts_beyond_the_value(number: InOutType, count: int) -> None:
    with pytest.raises(ModelFileError, match="is cut off"):
        inout(build.record(number, struct.pack("<I", count)))


@pytest.mark.parametrize("cut", range(1, 60))
def test_cut_anywhere(cut: int) -> None:
    whole = build.record(0, struct.pack("<I", 1) + build.tensor_info("data", 16, (4,)))
    with pytest.raises(ModelFileError) as caught:
        inout(whole[:-cut])
    assert caught.value.field == "MODEL_INOUT_INFO"
    assert caught.value.offset is not None
    assert len(BEFORE) <= caught.value.offset <= len(BEFORE) + len(whole)


def test_size_is_bounded() -> None:
    source = ByteSource(ByteSource.of_bytes(b"", "s.om")._storage, 0, 1 << 30)
    with pytest.raises(ModelFileError, match="1073741824 B, 16777216 B at most"):
        read_inout_info(source, 0, 1 << 30)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (build.record(9, b"") * 4097, "more than 4096 records"),
        (build.record(0, struct.pack("<I", 65537) + bytes(32 * 65537)), "more than 65536 tensors"),
    ],
)
def test_numbers_of_records_and_tensors_are_bounded(data: bytes, words: str) -> None:
    with pytest.raises(ModelFileError, match=words) as caught:
        read_inout_info(ByteSource.of_bytes(data, "s.om"), 0, len(data))
    assert caught.value.field == "MODEL_INOUT_INFO"
