"""Many variables in one call, in plain cases."""

import numpy as np
import pytest

from gevar.errors import AclError, AddressError, SizeOverflowError, StateError, VariableError
from gevar.types import DataType, DevAddr, DeviceId, LogicAddr, MemType
from gevar.var import VarManager, VarOp
from tests.helpers.var_memory import GIB, FakeMemory, constant, file_constant, make_desc, make_manager, place_holder

BASE = 128 * GIB
ND = make_desc(1000)


@pytest.fixture
def memory() -> FakeMemory:
    return FakeMemory(rdma_room=3000)


@pytest.fixture
def vm(memory: FakeMemory) -> VarManager:
    return make_manager(memory)


def test_assign_many_places_and_shares_in_order(vm: VarManager) -> None:
    weight = constant("c", b"\x01" * 1000, ND)
    addrs = vm.assign_many([("a", None, ND), ("c", weight, ND), ("d", weight, ND), ("b", None, ND)])
    assert addrs.dtype == np.uint64
    assert addrs.tolist() == [BASE, BASE + 2048, BASE + 2048, BASE + 4096]
    assert vm.get_var_addr_many(["b", "a"], [ND, ND]).tolist() == [BASE + 4096, BASE]


def test_nothing_is_nothing(vm: VarManager) -> None:
    assert vm.assign_many([]).tolist() == []
    assert vm.restore_many([]).tolist() == []
    assert vm.get_var_addr_many([], []).tolist() == []
    assert vm.resolve_many(np.empty((0, 2), np.uint64)).shape == (0, 2)


def test_restore_many(vm: VarManager) -> None:
    ops = [VarOp(name, "Variable", output_offsets=(BASE + place,)) for name, place in (("a", 0), ("b", 4096))]
    assert vm.restore_many([(op.name, op, ND) for op in ops]).tolist() == [BASE, BASE + 4096]


def test_the_item_that_fails_is_named_and_the_rest_is_not_there(vm: VarManager) -> None:
    vm.set_var_mem_max_size(5000)
    with pytest.raises(SizeOverflowError) as caught:
        vm.assign_many([("a", None, ND), ("b", None, ND), ("big", None, ND)])
    assert caught.value.__notes__ == ["it was variable 'big', item 2 of 3; none of them is registered"]
    assert (vm.table(), vm.get_var_mem_size()) == ((), 0)
    assert vm.assign_var_mem("b", None, ND) == BASE
    vm.check()


def test_a_node_that_cannot_be_is_named(vm: VarManager) -> None:
    wrong = VarOp("f", "FileConstant", attrs={"location": 3})
    with pytest.raises(ValueError, match="attribute location") as caught:
        vm.assign_many([("a", None, ND), ("f", wrong, ND)])
    assert caught.value.__notes__ == ["it was variable 'f', item 1 of 2; none of them is registered"]
    assert not vm.is_var_exist("a")


def test_weights_of_a_failed_call_are_not_shared(vm: VarManager) -> None:
    weight, piece = constant("c", b"\x01" * 1000, ND), file_constant("f", "w.bin", 0, 1000)
    items = [("c", weight, ND), ("f", piece, ND), ("p", place_holder("p", 0x5000, 1000), ND)]
    with pytest.raises(VariableError):
        vm.assign_many([*items, ("bad", None, ND.replace(size=-1))])
    vm.assign_var_mem("first", None, ND)
    assert vm.assign_var_mem("d", weight, ND) == BASE + 2048
    assert vm.assign_var_mem("g", piece, ND) == BASE + 4096
    assert vm.get_var_const_place_holder_mem_size() == 0
    vm.check()


def test_weights_that_were_there_stay_after_a_failure(vm: VarManager) -> None:
    weight = constant("c", b"\x01" * 1000, ND)
    vm.assign_var_mem("c", weight, ND)
    larger = ND.replace(size=4000)
    with pytest.raises(VariableError):
        vm.assign_many([("d", weight, larger), ("bad", None, ND.replace(size=-1))])
    assert vm.assign_var_mem("e", weight, ND) == BASE
    assert vm.assign_var_mem("d", weight, larger) == BASE + 2048


def test_a_name_that_moved_is_back_after_a_failure(vm: VarManager) -> None:
    vm.assign_var_mem("a", None, ND)
    with pytest.raises(VariableError):
        vm.assign_many([("a", None, ND.replace(size=9000)), ("a", None, ND.replace(size=-1))])
    assert vm.get_cur_var_desc("a").size == 1000
    assert vm.get_var_addr("a", ND) == BASE
    assert vm.get_var_mem_type(LogicAddr(BASE + 2048)) == MemType.RT_MEMORY_RESERVED


def test_a_constant_that_is_larger_than_its_name_by_then_is_read(vm: VarManager) -> None:
    big, weight = ND.replace(size=4000), constant("c", b"\x01" * 1000, ND)
    vm.assign_var_mem("c", None, big)
    forms = [("c", None, ND.replace(dtype=DataType.DT_FLOAT)), ("c", weight, big.replace(dtype=DataType.DT_UINT8))]
    vm.assign_many(forms)
    assert vm.assign_var_mem("d", constant("d", b"\x01" * 1000, ND), big) == vm.get_var_addr("c", forms[1][2])


def test_a_pool(vm: VarManager, memory: FakeMemory) -> None:
    rdma = MemType.RT_MEMORY_RDMA_HBM
    with pytest.raises(VariableError, match="no RT_MEMORY_RDMA_HBM") as caught:
        vm.assign_many([("a", None, ND), ("b", None, ND.replace(size=2500))], rdma)
    assert "'b', item 1 of 2" in caught.value.__notes__[-1]
    assert (vm.table(), vm.get_var_mem_size(rdma)) == ((), 0)
    assert vm.resolve_many(vm.assign_many([("a", None, ND)], rdma)).tolist() == [vm.table()[0].logic_addr]


def test_descs_for_all_names(vm: VarManager) -> None:
    with pytest.raises(ValueError, match="zip"):
        vm.get_var_addr_many(["a"], [])
    with pytest.raises(VariableError, match="variable 'a'"):
        vm.get_var_addr_many(["a"], [ND])


def test_resolve_many_allocates_each_variable_once(vm: VarManager, memory: FakeMemory) -> None:
    (a, b) = vm.assign_many([("a", None, ND), ("b", None, ND)]).tolist()
    got = vm.resolve_many(np.array([[a, b + 7], [a + 999, b]]), DeviceId(2))
    single = [vm.get_var_memory_addr(LogicAddr(addr), device_id=DeviceId(2)) for addr in (a, b)]
    assert got.tolist() == [[single[0], single[1] + 7], [single[0] + 999, single[1]]]
    assert [device for _, _, device in memory.mallocs] == [2, 2]


def test_resolve_many_checks_before_it_allocates(vm: VarManager, memory: FakeMemory) -> None:
    addr = vm.assign_var_mem("a", None, ND)
    for wrong in (addr + 1000, 0, -1):
        with pytest.raises(AddressError, match=f"address {wrong}:"):
            vm.resolve_many(np.array([addr, wrong]))
    with pytest.raises(TypeError, match="float64"):
        vm.resolve_many(np.array([1.0]))
    assert memory.mallocs == []


def test_resolve_many_in_the_callers_memory(vm: VarManager) -> None:
    addrs = vm.assign_many([("p", place_holder("p", 0x5000, 1000), ND), ("a", None, ND)])
    vm.set_external_var(DevAddr(0x10000), 1 << 20, DeviceId(1))
    assert vm.resolve_many(addrs, DeviceId(1)).tolist() == [0x5000, 0x10000 + 2048]
    assert vm.resolve_many(addrs + np.uint64(4)).tolist()[0] == 0x5004


def test_a_refused_allocation_leaves_what_was_allocated(vm: VarManager, memory: FakeMemory) -> None:
    addrs = vm.assign_many([("a", None, ND), ("b", None, ND)])
    memory.fail_at = 2
    with pytest.raises(AclError):
        vm.resolve_many(addrs)
    assert len(memory.blocks) == 1
    assert len(set(vm.resolve_many(addrs).tolist())) == 2


def test_before_init() -> None:
    vm = VarManager(1)
    vm.set_mem_manager(FakeMemory())
    with pytest.raises(StateError, match="not initialised"):
        vm.assign_many([])
    with pytest.raises(StateError, match="not initialised"):
        vm.resolve_many(np.array([1]))
