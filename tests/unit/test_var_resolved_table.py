"""Many addresses resolved by one search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gevar.types import DevAddr, DeviceId, LogicAddr, MemType
from gevar.var.block_memory import DeviceRecord
from gevar.var.resolved_table import ResolvedTable
from gevar.var.var_block import VarBlock
from tests.helpers.var_memory import FakeMemory, make_desc, make_manager

HBM = MemType.RT_MEMORY_HBM


def _record(addr: int, size: int, data_addr: int) -> DeviceRecord:
    block = VarBlock("v", make_desc(size), LogicAddr(addr), HBM)
    return DeviceRecord(block, DeviceId(0), DevAddr(data_addr - 512), size + 1536, HBM, None, DevAddr(data_addr))


def _resolve(records: list[DeviceRecord], addrs: list[int]) -> list[int | None]:
    found, missing = ResolvedTable.of(records, 0).resolve(np.array(addrs, np.uint64))
    gone = set(missing.tolist())
    return [None if place in gone else value for place, value in enumerate(found.tolist())]


def test_an_empty_table_finds_nothing() -> None:
    assert _resolve([], [0, 1, (1 << 64) - 1]) == [None, None, None]
    assert _resolve([], []) == []


def test_starts_ends_and_gaps() -> None:
    records = [_record(4096, 100, 1 << 41), _record(1024, 0, 7_000), _record(0, 8, 5)]
    addrs = [0, 7, 8, 1023, 1024, 1025, 4095, 4096, 4195, 4196, (1 << 64) - 1]
    expected = [5, 12, None, None, 7000, None, None, 1 << 41, (1 << 41) + 99, None, None]
    assert _resolve(records, addrs) == expected


def test_device_addresses_below_and_above_logical_ones() -> None:
    records = [_record(1 << 37, 64, 4096), _record((1 << 37) + 2048, 64, (1 << 63) + 512)]
    assert _resolve(records, [(1 << 37) + 3, (1 << 37) + 2048 + 63]) == [4099, (1 << 63) + 575]


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), unique_by=lambda one: one[0], max_size=8),
    st.lists(st.integers(0, 700), max_size=30),
)
def test_as_a_loop_over_the_blocks(blocks: list[tuple[int, int]], addrs: list[int]) -> None:
    records = [_record(place * 10, size, 10_000 + 100 * place) for place, size in blocks]
    expected: list[int | None] = []
    for addr in addrs:
        inside = [one for one in records if one.block.logic_addr <= addr < max(one.block.end, one.block.logic_addr + 1)]
        expected.append(inside[0].data_addr + addr - inside[0].block.logic_addr if inside else None)
    assert _resolve(records, addrs) == expected


def test_arrays_follow_what_is_allocated_and_freed() -> None:
    memory = FakeMemory()
    vm = make_manager(memory)
    descs = [make_desc(size) for size in (8, 100, 0, 5000)]
    addrs = vm.assign_many([(f"v{number}", None, desc) for number, desc in enumerate(descs)])
    first = vm.resolve_many(addrs[:2])
    assert len(memory.blocks) == 2
    both = vm.resolve_many(addrs)
    assert both[:2].tolist() == first.tolist()
    assert vm.resolve_many(addrs.astype(np.int64)).tolist() == both.tolist()
    assert len(memory.blocks) == 4
    vm.free_var_memory()
    assert memory.blocks == {}
    again = vm.resolve_many(addrs + np.uint64(0))
    assert again.tolist() == [vm.get_var_memory_addr(LogicAddr(addr)) for addr in addrs.tolist()]


def test_a_negative_address_is_named() -> None:
    vm = make_manager(FakeMemory())
    with pytest.raises(LookupError, match="logical address -5"):
        vm.resolve_many(np.array([3, -5]))
