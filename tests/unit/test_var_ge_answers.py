"""Corners in which GE's answer is sound, if unexpected, and therefore gevar's."""

import pytest

from gevar.errors import AddressError, VariableError
from gevar.types import DevAddr, LogicAddr, MemType
from gevar.var import VarManager
from tests.helpers.var_memory import FakeExpandable, FakeMemory, make_desc, make_manager, place_holder

HBM, RDMA, HOST = MemType.RT_MEMORY_HBM, MemType.RT_MEMORY_RDMA_HBM, MemType.RT_MEMORY_HOST
REGION = DevAddr(0x1240_0000_0000)


@pytest.fixture
def memory() -> FakeMemory:
    return FakeMemory(rdma_room=1 << 20)


def test_external_memory_resolves_before_init(memory: FakeMemory) -> None:
    vm = VarManager(1)
    vm.set_mem_manager(memory)
    vm.set_external_var(REGION, 4096)
    base = vm.get_var_mem_logic_base()
    assert vm.get_var_memory_addr(LogicAddr(base + 3)) == REGION + 3
    with pytest.raises(AddressError, match="does not lie in the external region"):
        vm.get_var_memory_addr(LogicAddr(base + 4096))


def test_memory_that_grows_stays_when_it_is_freed_before_init(memory: FakeMemory) -> None:
    vm = VarManager(1)
    vm.set_mem_manager(memory)
    expandable = FakeExpandable(memory)
    assert vm.init_expandable_memory_allocator(expandable)
    vm.free_var_memory()
    vm.free_var_memory()
    assert expandable.frees == 2
    assert not vm.init_expandable_memory_allocator(FakeExpandable(memory))
    vm.init(0, 1)
    vm.get_var_memory_addr(vm.assign_var_mem("v", None, make_desc(8)))
    assert len(expandable.mallocs) == 1
    vm.free_var_memory()
    assert vm.init_expandable_memory_allocator(FakeExpandable(memory))


@pytest.mark.parametrize("mem_type", [HBM, RDMA, HOST])
def test_a_kind_of_memory_is_known_from_the_first_request_on(mem_type: MemType) -> None:
    vm = make_manager()
    with pytest.raises(VariableError):
        vm.assign_var_mem("v", None, make_desc(-1), mem_type)
    assert list(vm.var_manager_to_serial().mem_resource_map) == [mem_type]
    assert vm.get_var_mem_size(mem_type) == 0
    vm.check()


@pytest.mark.parametrize("mem_type", [RDMA, HOST])
def test_place_holders_are_not_counted_apart_in_a_pool(memory: FakeMemory, mem_type: MemType) -> None:
    vm = make_manager(memory)
    vm.assign_var_mem("p", place_holder("p", 0x9000, 100), make_desc(100), mem_type)
    assert (vm.get_var_mem_size(mem_type), vm.get_var_const_place_holder_mem_size(mem_type)) == (100, 0)
    vm.assign_var_mem("q", place_holder("q", 0x9000, 100), make_desc(100))
    assert (vm.get_var_mem_size(), vm.get_var_const_place_holder_mem_size()) == (0, 1536)
    vm.check()
