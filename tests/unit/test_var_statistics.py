"""Counting what graphs take of variable memory."""

import logging
import threading

import pytest

from gevar.errors import AclError
from gevar.types import DeviceId, LogicAddr
from gevar.var import GraphVarMemStatistic, VarManager
from gevar.var.graph_statistics import GraphStatistics
from tests.helpers.var_memory import GIB, FakeMemory, make_desc, make_manager, place_holder

BASE = 128 * GIB
D0, D1 = DeviceId(0), DeviceId(1)


@pytest.fixture
def memory() -> FakeMemory:
    return FakeMemory()


@pytest.fixture
def vm(memory: FakeMemory) -> VarManager:
    vm = make_manager(memory)
    vm.assign_var_mem("a", None, make_desc(100))
    vm.assign_var_mem("b", None, make_desc(1000))
    return vm


def _ask(vm: VarManager, offset: int, graph: str, device: DeviceId = D0) -> None:
    vm.get_var_memory_addr(LogicAddr(BASE + offset), device_id=device, graph_name=graph)


def test_who_asks_first_allocates_and_others_share(vm: VarManager) -> None:
    _ask(vm, 0, "g0")
    _ask(vm, 0, "g0")
    _ask(vm, 0, "g1")
    _ask(vm, 1536, "g1")
    _ask(vm, 1536, "g0")
    assert vm.get_graph_var_mem_statistics() == {
        "g0": GraphVarMemStatistic(1536, 2048),
        "g1": GraphVarMemStatistic(2048, 1536),
    }


def test_a_block_counts_once_for_a_graph_whatever_the_address_in_it(vm: VarManager) -> None:
    _ask(vm, 0, "g0")
    for offset in (0, 1, 99, 0, 1):
        _ask(vm, offset, "g1")
    assert vm.get_graph_var_mem_statistics()["g1"] == GraphVarMemStatistic(0, 1536)


def test_who_took_a_block_may_come_after_who_found_it() -> None:
    """One thread allocates, another one of the same graph finds the memory and is counted first."""
    statistics = GraphStatistics(threading.RLock())
    for allocated in (False, True, False):
        statistics.count("g", LogicAddr(BASE), D0, 1536, allocated=allocated)
    statistics.count("other", LogicAddr(BASE), D0, 1536, allocated=False)
    assert statistics.totals() == {"g": GraphVarMemStatistic(1536, 0), "other": GraphVarMemStatistic(0, 1536)}


def test_without_a_name_nothing_is_counted(vm: VarManager) -> None:
    _ask(vm, 0, "")
    assert vm.get_graph_var_mem_statistics() == {}
    _ask(vm, 0, "g")
    assert vm.get_graph_var_mem_statistics() == {"g": GraphVarMemStatistic(0, 1536)}


def test_devices_count_apart(vm: VarManager) -> None:
    _ask(vm, 0, "g")
    _ask(vm, 0, "g", D1)
    assert vm.get_graph_var_mem_statistics() == {"g": GraphVarMemStatistic(3072, 0)}


def test_place_holders_are_shared_and_regions_are_not_counted(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("p", place_holder("p", 20000, 24), make_desc(24))
    _ask(vm, 3584, "g")
    _ask(vm, 3584, "g")
    assert vm.get_graph_var_mem_statistics() == {"g": GraphVarMemStatistic(0, 1536)}
    region = memory.malloc_memory(vm.get_var_mem_type(BASE), "region", 1 << 20, D1)
    vm.set_external_var(region, 1 << 20, D1)
    _ask(vm, 0, "h", D1)
    assert "h" not in vm.get_graph_var_mem_statistics()


def test_counts_outlive_the_memory_and_new_memory_counts_anew(vm: VarManager) -> None:
    _ask(vm, 0, "g0")
    _ask(vm, 0, "g1")
    vm.free_var_memory()
    assert vm.get_graph_var_mem_statistics()["g0"] == GraphVarMemStatistic(1536, 0)
    _ask(vm, 0, "g1")
    _ask(vm, 0, "g0")
    assert vm.get_graph_var_mem_statistics() == {
        "g0": GraphVarMemStatistic(1536, 1536),
        "g1": GraphVarMemStatistic(1536, 1536),
    }


def test_a_failed_allocation_counts_nothing(vm: VarManager, memory: FakeMemory) -> None:
    memory.fail_at = memory.calls + 1
    with pytest.raises(AclError):
        _ask(vm, 0, "g")
    assert vm.get_graph_var_mem_statistics() == {}


def test_destroy_writes_the_counts_to_the_log(vm: VarManager, caplog: pytest.LogCaptureFixture) -> None:
    _ask(vm, 0, "g1")
    _ask(vm, 0, "g0")
    with caplog.at_level(logging.INFO, "gevar.var"):
        vm.destroy()
    assert caplog.messages == [
        "graph 'g0': alloc_var_mem 0 B, shared_var_mem 1536 B",
        "graph 'g1': alloc_var_mem 1536 B, shared_var_mem 0 B",
    ]


def test_the_memory_of_a_variable_can_be_looked_at(vm: VarManager, memory: FakeMemory) -> None:
    assert vm.get_var_mgr_info(LogicAddr(BASE)) is None
    addr = vm.get_var_memory_addr(LogicAddr(BASE))
    record = vm.get_var_mgr_info(LogicAddr(BASE))
    assert record is not None
    assert (record.data_addr, record.dev_addr, record.capacity_bytes) == (addr, addr - 512, 1536)
    assert record.block.logic_addr == BASE
    assert vm.get_var_mgr_info(LogicAddr(BASE), D1) is None
    assert vm.get_var_mgr_info(LogicAddr(BASE + 1)) is None
    assert VarManager(1).get_var_mgr_info(LogicAddr(BASE)) is None


def test_an_address_is_told_as_start_and_distance(vm: VarManager) -> None:
    assert vm.check_logic_addr_valid(LogicAddr(BASE)) == (BASE, 0)
    assert vm.check_logic_addr_valid(LogicAddr(BASE + 99)) == (BASE, 99)
    assert vm.check_logic_addr_valid(LogicAddr(BASE + 1536 + 7)) == (BASE + 1536, 7)
    for offset in (100, 511, 1535, -1, 1536 + 1000):
        with pytest.raises(LookupError, match="belongs to no variable"):
            vm.check_logic_addr_valid(LogicAddr(BASE + offset))
