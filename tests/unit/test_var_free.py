"""Freeing device memory, and what is forgotten with it."""

import pytest

from gevar.errors import AclError, StateError
from gevar.status import FAILED
from gevar.types import DeviceId, LogicAddr
from gevar.var import LoadState, VarManager
from tests.helpers.var_memory import GIB, FakeMemory, make_desc, make_manager, place_holder

BASE = 128 * GIB


@pytest.fixture
def memory() -> FakeMemory:
    return FakeMemory()


@pytest.fixture
def vm(memory: FakeMemory) -> VarManager:
    vm = make_manager(memory)
    vm.assign_var_mem("a", None, make_desc(100))
    vm.assign_var_mem("b", None, make_desc(5000))
    return vm


def _resolve(vm: VarManager, offset: int, device: int = 0) -> int:
    return vm.get_var_memory_addr(LogicAddr(BASE + offset), device_id=DeviceId(device))


def test_all_devices_are_freed_and_the_next_question_allocates(vm: VarManager, memory: FakeMemory) -> None:
    first = _resolve(vm, 0)
    _resolve(vm, 1536, 1)
    _resolve(vm, 0, 1)
    assert vm.get_var_malloc_mem_size() == 1536 + 6144 + 1536
    vm.free_var_memory()
    assert memory.blocks == {}
    assert sorted(device for _, _, device in memory.frees) == [0, 1, 1]
    assert vm.get_var_malloc_mem_size() == 0
    vm.free_var_memory()
    assert len(memory.frees) == 3
    assert _resolve(vm, 0) != first
    assert vm.get_var_mem_size() == 7680
    assert vm["a"].logic_addr == BASE
    vm.check()


def test_place_holders_are_never_freed(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("p", place_holder("p", 87960930226176, 64), make_desc(64))
    vm["p"].dev_addr()
    vm.free_var_memory()
    assert memory.frees == []
    assert vm["p"].dev_addr() == 87960930226176


def test_each_block_goes_back_to_its_owner(vm: VarManager, memory: FakeMemory) -> None:
    _resolve(vm, 0)
    other = FakeMemory()
    vm.set_mem_manager(other)
    _resolve(vm, 1536)
    assert len(memory.blocks) == len(other.blocks) == 1
    vm.free_var_memory()
    assert memory.blocks == other.blocks == {}
    assert len(memory.frees) == len(other.frees) == 1


def test_without_a_memory_manager_nothing_is_freed(vm: VarManager, memory: FakeMemory) -> None:
    _resolve(vm, 0)
    vm.set_mem_manager(None)
    with pytest.raises(StateError) as caught:
        vm.free_var_memory()
    assert caught.value.status == FAILED
    assert len(memory.blocks) == 1
    assert vm.get_var_malloc_mem_size() == 1536


def test_a_refused_free_does_not_keep_the_others(vm: VarManager, memory: FakeMemory) -> None:
    _resolve(vm, 0)
    _resolve(vm, 1536)
    memory.fail_at = memory.calls + 1
    with pytest.raises(AclError, match="free") as caught:
        vm.free_var_memory()
    assert caught.value.__notes__ == ["it was memory of variable a_2_2; 2 blocks were to be freed"]
    assert len(memory.blocks) == 1
    assert vm.get_var_malloc_mem_size() == 0
    vm.check()


def test_load_states_go_with_the_memory(vm: VarManager) -> None:
    addr = vm["a"].logic_addr
    with vm.begin_var_load(addr) or pytest.fail("it is not loaded yet"):
        vm["a"].write(bytes(100))
    assert vm.get_var_load_state(addr) is LoadState.LOADED
    vm.free_var_memory()
    assert vm.get_var_load_state(addr) is LoadState.ABSENT
    assert vm.begin_var_load(addr) is not None


def test_a_load_that_is_under_way_does_not_count_after_a_free(vm: VarManager) -> None:
    addr = vm["a"].logic_addr
    ticket = vm.begin_var_load(addr)
    assert ticket is not None
    vm.free_var_memory()
    assert not ticket.commit()
    assert vm.get_var_load_state(addr) is LoadState.ABSENT
