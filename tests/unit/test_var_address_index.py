"""Look-up of blocks by logical address."""

import pytest

from gevar.errors import AddressError
from gevar.types import LogicAddr, MemType
from gevar.var.address_index import AddressIndex
from gevar.var.var_block import VarBlock
from tests.helpers.var_memory import make_desc


def _block(addr: int, size: int, name: str = "v") -> VarBlock:
    return VarBlock(name, make_desc(size), LogicAddr(addr), MemType.RT_MEMORY_HBM)


@pytest.fixture
def index() -> AddressIndex:
    index = AddressIndex()
    for addr, size in ((1000, 100), (5000, 0), (3000, 10)):
        index.add(_block(addr, size, f"v{addr}"))
    return index


@pytest.mark.parametrize(
    ("addr", "start"),
    [(1000, 1000), (1001, 1000), (1099, 1000), (3000, 3000), (3009, 3000), (5000, 5000)],
)
def test_addresses_of_the_data_are_found(index: AddressIndex, addr: int, start: int) -> None:
    found = index.find(addr)
    assert found is not None
    assert found.logic_addr == start


@pytest.mark.parametrize("addr", [-1, 0, 999, 1100, 1511, 2999, 3010, 4999, 5001, 1 << 70])
def test_padding_guard_and_gaps_belong_to_nothing(index: AddressIndex, addr: int) -> None:
    assert index.find(addr) is None


def test_exact_finds_starts_only(index: AddressIndex) -> None:
    assert index.exact(1000) is index.find(1099)
    assert index.exact(1001) is None


def test_blocks_come_by_rising_address(index: AddressIndex) -> None:
    assert [block.logic_addr for block in index] == [1000, 3000, 5000]
    assert len(index) == 3


@pytest.mark.parametrize(
    ("addr", "size", "other"),
    [
        (1000, 0, 1000),
        (1050, 1, 1000),
        (900, 101, 1000),
        (900, 5000, 1000),
        (2990, 11, 3000),
        (5000, 0, 5000),
        (4999, 2, 5000),
    ],
)
def test_an_overlap_is_refused_and_changes_nothing(index: AddressIndex, addr: int, size: int, other: int) -> None:
    with pytest.raises(AddressError, match=f"{size} B of variable new_2_2 would overlap v{other}_2_2") as caught:
        index.refuse_overlap(_block(addr, size, "new"), status=7)
    assert caught.value.status == 7
    assert caught.value.logic_addr == addr
    assert caught.value.nearest is not None
    assert caught.value.nearest[0] == other
    assert [block.logic_addr for block in index] == [1000, 3000, 5000]


@pytest.mark.parametrize(("addr", "size"), [(900, 100), (1100, 1900), (3010, 0), (4999, 1), (5001, 1 << 40), (0, 0)])
def test_neighbours_are_accepted(index: AddressIndex, addr: int, size: int) -> None:
    block = _block(addr, size)
    index.refuse_overlap(block, status=7)
    index.add(block)
    assert index.exact(addr) is block
    assert [one.logic_addr for one in index] == sorted(one.logic_addr for one in index)


@pytest.mark.parametrize(
    ("addr", "nearest"),
    [(0, (1000, 100)), (1100, (1000, 100)), (2999, (1000, 100)), (9999, (5000, 0))],
)
def test_nearest_is_the_block_before_else_the_first(index: AddressIndex, addr: int, nearest: tuple[int, int]) -> None:
    assert index.nearest(addr) == nearest


def test_an_empty_index_knows_nothing() -> None:
    index = AddressIndex()
    assert index.find(0) is None
    assert index.nearest(0) is None
    assert index.overlapping(0, 100) is None
    assert list(index) == []
