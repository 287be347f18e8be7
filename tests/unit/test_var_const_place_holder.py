"""Attributes of place holders, and addresses in their memory."""

from collections.abc import Mapping

import pytest

from gevar.errors import AddressError
from gevar.types import DataType, DevAddr, LogicAddr, MemType
from gevar.var import VarOp
from gevar.var.const_place_holder import place_holder_addr, read_place_holder
from gevar.var.var_block import ExternMemory, PlaceHolderBlock
from gevar.var.var_op import AttrValue
from tests.helpers.var_memory import make_desc

GOOD: Mapping[str, AttrValue] = {
    "storage_shape": (4, 4),
    "dtype": DataType.DT_FLOAT,
    "size": 64,
    "placement": 1,
    "addr": 20000,
}


def _op(**changes: AttrValue) -> VarOp:
    return VarOp("p", "ConstPlaceHolder", attrs={**GOOD, **changes})


def test_address_and_size_are_read() -> None:
    assert read_place_holder(_op()) == ExternMemory(DevAddr(20000), 64)
    assert read_place_holder(_op(size=100)) == ExternMemory(DevAddr(20000), 100)
    assert read_place_holder(_op(storage_shape=(), size=4)) == ExternMemory(DevAddr(20000), 4)
    assert read_place_holder(_op(storage_shape=(0, 4), size=0)) == ExternMemory(DevAddr(20000), 0)
    assert read_place_holder(_op(storage_shape=(3,), dtype=DataType.DT_INT4, size=2)) == ExternMemory(DevAddr(20000), 2)


def test_an_address_above_63_bits_is_a_negative_attribute() -> None:
    assert read_place_holder(_op(addr=-4096)) == ExternMemory(DevAddr((1 << 64) - 4096), 64)


@pytest.mark.parametrize("name", list(GOOD))
def test_every_attribute_is_needed(name: str) -> None:
    op = VarOp("p", "ConstPlaceHolder", attrs={key: value for key, value in GOOD.items() if key != name})
    with pytest.raises(ValueError, match=f"op 'p': attribute {name} is None"):
        read_place_holder(op)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 63}, "needs 64 B, size is 63 B"),
        ({"dtype": DataType.DT_DOUBLE}, "needs 128 B, size is 64 B"),
        ({"placement": 0}, "placement is 0"),
        ({"placement": 2}, "placement is 2"),
        ({"addr": 0}, "addr is 0"),
        ({"addr": -1}, "addr is 18446744073709551615, size 64 B"),
        ({"storage_shape": (-1, 4)}, "has no size"),
        ({"dtype": DataType.DT_UNDEFINED}, "has no size"),
        ({"dtype": 4711}, "has no size"),
        ({"storage_shape": (1 << 40, 1 << 40)}, "has no size"),
        ({"storage_shape": (1 << 62, 1)}, "has no size"),
        ({"storage_shape": "4,4"}, "give a tuple of integers"),
    ],
)
def test_refusals_name_op_and_numbers(changes: dict[str, AttrValue], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_place_holder(_op(**changes))


def test_addresses_inside_the_memory() -> None:
    block = PlaceHolderBlock("p", make_desc(64), LogicAddr(4096), MemType.RT_MEMORY_HBM)
    memory = ExternMemory(DevAddr(20000), 48)
    assert place_holder_addr(block, memory, 4096) == 20000
    assert place_holder_addr(block, memory, 4096 + 47) == 20047
    with pytest.raises(AddressError, match="48 B into place holder p_2_2, whose memory has 48 B"):
        place_holder_addr(block, memory, 4096 + 48)


def test_memory_of_no_bytes_has_a_start() -> None:
    block = PlaceHolderBlock("p", make_desc(64), LogicAddr(4096), MemType.RT_MEMORY_HBM)
    memory = ExternMemory(DevAddr(20000), 0)
    assert place_holder_addr(block, memory, 4096) == 20000
    with pytest.raises(AddressError, match="1 B into place holder p_2_2, whose memory has 0 B"):
        place_holder_addr(block, memory, 4097)
