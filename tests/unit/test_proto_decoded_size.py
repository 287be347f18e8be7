"""What a message takes when it is decoded: as much as protobuf takes at least, and the same verdict on damage."""

import random

import pytest
from google.protobuf.message import DecodeError

from gevar.proto import ge_ir
from gevar.proto.decoded_size import MAX_DEPTH, decoded_bytes
from tests.helpers import om_builder as build
from tests.helpers.om_swollen import ATTRS
from tests.helpers.peak_memory import CLEAR, _status_bytes

SIZE = 1 << 20


def size_of(data: bytes) -> int:
    return decoded_bytes(data, ge_ir.AttrDef.DESCRIPTOR)


@pytest.mark.parametrize("name", ATTRS)
def test_it_is_no_less_than_protobuf_takes(name: str) -> None:
    data = ATTRS[name](SIZE)
    said = size_of(data)
    CLEAR.write_text("5")
    before = _status_bytes("VmHWM")
    message = ge_ir.AttrDef.FromString(data)
    assert _status_bytes("VmHWM") - before <= said + (1 << 18)
    assert message.WhichOneof("value")


@pytest.mark.parametrize("name", ATTRS)
def test_it_is_not_far_more_than_the_bytes_that_are_kept(name: str) -> None:
    small, large = size_of(ATTRS[name](SIZE // 2)), size_of(ATTRS[name](SIZE))
    assert 1.9 * small < large < 2.2 * small
    assert large <= 120 * SIZE


@pytest.mark.parametrize("count", [1, 9, 10, 11, 65_536, 65_537, 200_000])
def test_numbers_of_a_packed_list_are_counted(count: int) -> None:
    numbers = (b"\1", b"\xff\1", b"\xff" * 9 + b"\1")
    sizes = [size_of(build.field(1, build.field(3, number * count))) for number in numbers]
    assert len(set(sizes)) == 1
    assert sizes[0] - size_of(build.field(1, build.field(3, b""))) == 24 * count


@pytest.mark.parametrize(
    "data",
    [
        build.field(1, build.field(3, b"\1\xff")),  # a number cut off
        build.field(1, build.field(3, b"\1" * 70_000 + b"\xff")),
        build.field(1, build.field(3, b"\xff" * 10 + b"\1")),  # a number of eleven bytes
        build.field(1, build.field(3, b"\xff" * 65_530 + b"\1")),
        build.field(1, build.field(4, b"\1\2\3")),
        build.field(10, build.field(1, b"\xff")),  # text that is not UTF-8
        build.field(1, b"\x12\5ab"),
        b"\x0a\5ab",
        b"\x0a",
        b"\2\0",
        b"\0\0",
        b"\x0e\0",
        b"\x0c",  # the end of a group that nobody started
        b"\x0b\x08\1",  # a group that does not end
        b"\x0b\x08\1\x14",  # that ends as another one
    ],
)
def test_damage(data: bytes) -> None:
    with pytest.raises(DecodeError):
        ge_ir.AttrDef.FromString(data)
    with pytest.raises(ValueError):
        size_of(data)


def test_groups_and_unknown_fields_are_passed_over() -> None:
    data = b"\x0b\x08\1\x12\1x\x13\x14\x0c" + b"\xa0\x06\1" + build.field(900, b"\xff\xff")
    ge_ir.AttrDef.FromString(data)
    assert size_of(data) > size_of(b"")


@pytest.mark.parametrize(("depth", "good"), [(MAX_DEPTH // 3 - 1, True), (MAX_DEPTH, False)])
def test_depth(depth: int, good: bool) -> None:
    data = build.attr_i(1)
    for _ in range(depth):
        data = build.field(13, build.graph("g", []) + build.field(11, build.field(2, data)))
    assert _decodes(data) is good
    if good:
        assert size_of(data) > 0
    else:
        with pytest.raises(ValueError, match="nested deeper"):
            size_of(data)


def _decodes(data: bytes) -> bool:
    try:
        ge_ir.AttrDef.FromString(data)
    except DecodeError:
        return False
    return True


def test_damage_at_random_has_the_verdict_of_protobuf() -> None:
    chance = random.Random(20)
    whole = build.model_def("m", build.small_graphs(), {"a": build.attr_ints([1, 2, 3000]), "s": build.attr_s("xyz")})
    seen = {True: 0, False: 0}
    for _ in range(4000):
        data = bytearray(whole)
        at = chance.randrange(len(data))
        if chance.random() < 0.5:
            data[at] ^= 1 << chance.randrange(8)
        elif chance.random() < 0.5:
            del data[at : at + chance.randrange(1, 5)]
        else:
            data[at:at] = chance.randbytes(chance.randrange(1, 4))
        try:
            ge_ir.ModelDef.FromString(bytes(data))
            good = True
        except DecodeError:
            good = False
        try:
            decoded_bytes(bytes(data), ge_ir.ModelDef.DESCRIPTOR)
            found = True
        except ValueError:
            found = False
        assert found is good, bytes(data).hex()
        seen[good] += 1
    assert min(seen.values()) > 200
