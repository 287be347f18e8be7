"""The invariant checker must see what is wrong."""

import copy
from collections.abc import Callable
from dataclasses import replace

import pytest

from gevar.errors import StateError
from gevar.types import DataType, LogicAddr, MemType
from gevar.var import VarKey, VarManager
from gevar.var.block_memory import DeviceRecord
from gevar.var.mem_resource import MemFigures, MemResource
from gevar.var.var_block import VarBlock
from gevar.var.var_resource import VarResource
from tests.helpers.var_memory import FakeMemory, make_desc, make_manager


@pytest.fixture
def vm() -> VarManager:
    vm = make_manager(FakeMemory())
    for name in ("a", "b"):
        vm.assign_var_mem(name, None, make_desc(64))
        vm[name].dev_addr()
    return vm


def _tables(vm: VarManager) -> VarResource:
    assert vm._resource is not None
    return vm._resource


def _add(vm: VarManager, addr: int, size: int) -> None:
    """Put a block into the index without asking."""
    blocks = _tables(vm).blocks
    blocks._blocks[addr] = VarBlock("x", make_desc(size), LogicAddr(addr), MemType.RT_MEMORY_HBM)
    blocks._starts.append(addr)
    blocks._starts.sort()


def _records(vm: VarManager) -> dict[LogicAddr, DeviceRecord]:
    return vm._device_records.devices[vm.device_id].records


def _first(vm: VarManager) -> DeviceRecord:
    return _records(vm)[vm["a"].logic_addr]


def _replace_record(vm: VarManager, **changes: object) -> None:
    _records(vm)[vm["a"].logic_addr] = replace(_first(vm), **changes)  # type: ignore[arg-type]


def _orphan(vm: VarManager) -> None:
    tables, key = _tables(vm), VarKey("a", 2, DataType.DT_INT8)
    tables.records[key] = copy.copy(tables.records[key])


def _set(target: object, name: str, value: object) -> None:
    setattr(target, name, value)


def _hbm(vm: VarManager) -> MemResource:
    return vm._mem_resources[MemType.RT_MEMORY_HBM]


def _rename_in_record(vm: VarManager) -> None:
    """Give a record the description of another form than its key says."""
    record = next(iter(_tables(vm).records.values()))
    record.desc = record.desc.replace(format=7)


BREAK: list[tuple[str, Callable[[VarManager], object], str]] = [
    ("overlap", lambda vm: _add(vm, vm["a"].logic_addr + 8, 4), "overlaps x_2_2"),
    ("space", lambda vm: _add(vm, 1 << 50, 4), "the space of x_2_2 is not taken"),
    ("beyond", lambda vm: _add(vm, (1 << 63) - 2, 4), "has a block of 4 B at"),
    ("orphan", _orphan, "a_2_2 stands for a block that is not known"),
    ("form", _rename_in_record, "has a description of another form"),
    ("current", lambda vm: _set(_tables(vm), "cur_descs", {"q": make_desc(4)}), "description of 'q' has no record"),
    ("end", lambda vm: _set(_tables(vm), "owned_end", 5), "recorded is 5"),
    ("sum", lambda vm: _set(vm._device_records, "malloc_bytes", 5), "recorded are 5 B"),
    ("assigned", lambda vm: _set(_hbm(vm), "figures", MemFigures(var_mem_size=1 << 40)), "are assigned"),
    (
        "place holders",
        lambda vm: _set(_hbm(vm), "figures", MemFigures(const_place_holder_mem_size=1 << 40)),
        "place holders take",
    ),
    ("small", lambda vm: _replace_record(vm, capacity_bytes=100), "has 100 B on device 0 for 64 B"),
    ("shared", lambda vm: _replace_record(vm, dev_addr=_records(vm)[vm["b"].logic_addr].dev_addr), "share memory"),
    ("foreign", lambda vm: _replace_record(vm, block=copy.copy(_first(vm).block)), "which is not known"),
]


def test_a_sound_manager_passes(vm: VarManager) -> None:
    vm.check()
    VarManager(9).check()


@pytest.mark.parametrize(("change", "match"), [row[1:] for row in BREAK], ids=[row[0] for row in BREAK])
def test_what_is_wrong_is_said(vm: VarManager, change: Callable[[VarManager], object], match: str) -> None:
    change(vm)
    with pytest.raises(StateError, match=match) as caught:
        vm.check()
    assert "session 1" in str(caught.value)
