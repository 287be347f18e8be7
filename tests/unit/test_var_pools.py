"""Variables in registered memory and in host memory: their logical address is where they lie."""

from dataclasses import replace

import numpy as np
import pytest

from gevar.errors import AddressError, OutOfMemoryError, StateError, VariableError
from gevar.status import INTERNAL_ERROR, PARAM_INVALID
from gevar.types import DataType, DeviceId, LogicAddr, MemType
from gevar.var import VarManager, VarOp
from tests.helpers.var_memory import DEVICE_BASE, DEVICE_SPAN, GIB, FakeMemory, make_desc, make_manager, place_holder

BASE = 128 * GIB
HBM, RDMA, HOST = MemType.RT_MEMORY_HBM, MemType.RT_MEMORY_RDMA_HBM, MemType.RT_MEMORY_HOST
D3 = DeviceId(3)


@pytest.fixture
def memory() -> FakeMemory:
    return FakeMemory(rdma_room=1 << 20)


@pytest.fixture
def vm(memory: FakeMemory) -> VarManager:
    return make_manager(memory)


def test_registered_memory_comes_from_the_pool_of_hbm(vm: VarManager, memory: FakeMemory) -> None:
    first = vm.assign_var_mem("r", None, make_desc(100), RDMA)
    second = vm.assign_var_mem("s", None, make_desc(700), RDMA)
    assert memory.rdma == [(HBM, 100, 0), (HBM, 700, 0)]
    assert first % 4096 == second % 4096 == 0
    assert vm.get_var_addr_and_type("r", make_desc(100)) == (first, RDMA)
    assert vm.get_var_mem_size(RDMA) == 800
    assert vm.get_var_mem_size(HBM) == 0
    assert vm.get_var_mem_type(first) == RDMA
    assert vm.is_var_addr(second)
    vm.check()


@pytest.mark.parametrize("size", [1, 4097, (2 << 20) + 1])
def test_registered_blocks_start_on_a_page(size: int) -> None:
    vm = make_manager(FakeMemory(rdma_room=4 << 20))
    vm.assign_var_mem("before", None, make_desc(1), RDMA)
    addr = vm.assign_var_mem("r", None, make_desc(size), RDMA)
    assert addr % 4096 == 0
    assert vm.get_var_memory_addr(addr, RDMA) == addr


def test_the_pool_is_that_of_the_managers_device(memory: FakeMemory) -> None:
    vm = VarManager(1)
    vm.init(0, 1, D3)
    vm.set_mem_manager(memory)
    addr = vm.assign_var_mem("r", None, make_desc(8), RDMA)
    assert memory.rdma == [(HBM, 8, 3)]
    assert DEVICE_BASE + 3 * DEVICE_SPAN <= addr < DEVICE_BASE + 4 * DEVICE_SPAN


def test_host_memory_is_zeroed_and_takes_what_it_is_asked_for(vm: VarManager, memory: FakeMemory) -> None:
    addr = vm.assign_var_mem("h", None, make_desc(100), HOST)
    vm.assign_var_mem("i", None, make_desc(9), HOST)
    assert memory.host == [(HBM, 100), (HBM, 9)]
    assert vm.get_var_mem_size(HOST) == 109
    assert vm["h"].logic_addr == addr
    assert not vm["h"].read().any()
    assert vm.get_var_memory_addr(addr, HOST) == addr
    assert vm.get_var_memory_addr(LogicAddr(addr + 99), HOST, DeviceId(5)) == addr + 99
    assert memory.mallocs == []
    vm.check()


def test_no_kind_that_is_asked_for_moves_them_to_device_memory(vm: VarManager, memory: FakeMemory) -> None:
    registered = vm.assign_var_mem("r", None, make_desc(64), RDMA)
    host = vm.assign_var_mem("h", None, make_desc(64), HOST)
    for mem_type in (HBM, RDMA, HOST):
        assert vm.get_var_memory_addr(registered, mem_type) == registered
        assert vm.get_var_memory_addr(host, mem_type) == host
    assert memory.mallocs == []
    assert vm.get_var_malloc_mem_size() == 0


@pytest.mark.parametrize("mem_type", [RDMA, HOST])
def test_values_are_written_and_read(vm: VarManager, mem_type: MemType) -> None:
    vm.assign_var_mem("v", None, make_desc(16, DataType.DT_FLOAT, shape=(4,)), mem_type)
    value = np.arange(4, dtype=np.float32)
    vm["v"].write(value)
    assert vm["v"].read().tolist() == [0, 1, 2, 3]
    vm.write_var_memory(LogicAddr(vm["v"].logic_addr + 4), np.float32(9).tobytes())
    assert vm["v"].read().tolist() == [0, 9, 2, 3]
    got = bytearray(4)
    vm.read_var_memory(LogicAddr(vm["v"].logic_addr + 12), got)
    assert got == np.float32(3).tobytes()
    with pytest.raises(AddressError, match="5 B from there pass the end"):
        vm.write_var_memory(LogicAddr(vm["v"].logic_addr + 12), bytes(5))
    with pytest.raises(AddressError, match="17 B from there pass the end"):
        vm.read_var_memory(vm["v"].logic_addr, bytearray(17))


@pytest.mark.parametrize("mem_type", [RDMA, HOST])
def test_a_variable_without_bytes(vm: VarManager, mem_type: MemType) -> None:
    first = vm.assign_var_mem("v", None, make_desc(0), mem_type)
    assert vm.assign_var_mem("w", None, make_desc(0), mem_type) != first
    assert vm.get_var_mem_size(mem_type) == 0
    vm["v"].write(b"")
    assert vm["v"].read().size == 0
    vm.check()


def test_without_a_memory_manager_or_a_pool_it_is_an_internal_error(memory: FakeMemory) -> None:
    vm = make_manager()
    for mem_type in (RDMA, HOST):
        with pytest.raises(VariableError, match="variable 'v_2_2': there is no RT_MEMORY_") as caught:
            vm.assign_var_mem("v", None, make_desc(10), mem_type)
        assert caught.value.status == INTERNAL_ERROR
        assert isinstance(caught.value.__cause__, StateError)
        assert not vm.is_var_exist("v")
        assert vm.get_var_mem_size(mem_type) == 0
    memory.rdma_room = None
    vm.set_mem_manager(memory)
    with pytest.raises(VariableError, match="no pool of registered memory"):
        vm.assign_var_mem("v", None, make_desc(10), RDMA)
    memory.rdma_room = 10
    vm.assign_var_mem("v", None, make_desc(10), RDMA)
    assert vm.get_var_mem_size(RDMA) == 10


def test_a_full_pool_is_told_and_changes_nothing(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("r", None, make_desc(1 << 20, shape=(1,)), RDMA)
    with pytest.raises(VariableError, match="RT_MEMORY_RDMA_HBM for its 1 B") as caught:
        vm.assign_var_mem("s", None, make_desc(1), RDMA)
    assert isinstance(caught.value.__cause__, OutOfMemoryError)
    assert not vm.is_var_exist("s")
    assert vm.get_var_mem_size(RDMA) == 1 << 20
    vm.check()


def test_a_host_pool_that_fails_changes_nothing(vm: VarManager, memory: FakeMemory) -> None:
    memory.fail_at = memory.calls + 1
    with pytest.raises(VariableError, match="507899"):
        vm.assign_var_mem("h", None, make_desc(1), HOST)
    assert not vm.is_var_exist("h")
    vm.assign_var_mem("h", None, make_desc(1), HOST)
    assert vm.get_var_mem_size(HOST) == 1


def test_a_wrong_place_holder_takes_nothing_from_a_pool(vm: VarManager, memory: FakeMemory) -> None:
    with pytest.raises(VariableError, match="addr is 0"):
        vm.assign_var_mem("p", place_holder("p", 0, 64), make_desc(64), RDMA)
    assert memory.rdma == []


def test_a_name_keeps_its_memory_while_it_fits_and_its_kind(vm: VarManager, memory: FakeMemory) -> None:
    addr = vm.assign_var_mem("r", None, make_desc(64), RDMA)
    assert vm.assign_var_mem("r", None, make_desc(32, DataType.DT_UINT8), RDMA) == addr
    assert vm.assign_var_mem("r", None, make_desc(128), RDMA) != addr
    assert len(memory.rdma) == 2
    for other in (HBM, HOST):
        with pytest.raises(VariableError, match="keep the kind of memory") as caught:
            vm.assign_var_mem("r", None, make_desc(64), other)
        assert caught.value.status == PARAM_INVALID
    assert memory.host == []


def test_equal_weights_share_in_a_pool(vm: VarManager, memory: FakeMemory) -> None:
    desc = make_desc(8)
    addr = vm.assign_var_mem("c", VarOp("c", "Constant", (desc,), value=b"12345678"), desc, HOST)
    assert vm.assign_var_mem("d", VarOp("d", "Constant", (desc,), value=b"12345678"), desc, HOST) == addr
    assert vm.assign_var_mem("e", VarOp("e", "Constant", (desc,), value=b"12345678"), desc, HBM) == BASE
    assert len(memory.host) == 1


def test_pools_keep_their_memory_when_variables_are_freed(vm: VarManager, memory: FakeMemory) -> None:
    addr = vm.assign_var_mem("h", None, make_desc(4), HOST)
    registered = vm.assign_var_mem("r", None, make_desc(4), RDMA)
    vm["h"].write(b"1234")
    vm["r"].write(b"5678")
    vm.free_var_memory()
    assert vm["h"].read().tobytes() == b"1234"
    assert vm["r"].read().tobytes() == b"5678"
    assert (vm["h"].logic_addr, vm["r"].logic_addr) == (addr, registered)
    vm.destroy()
    assert memory.frees == []


def test_a_restored_variable_in_a_pool_has_an_address_and_no_memory(vm: VarManager, memory: FakeMemory) -> None:
    for name, mem_type in (("h", HOST), ("r", RDMA)):
        op = VarOp(name, "Variable", (), (BASE + 4096,))
        assert vm.restore_var_mem(name, op, make_desc(16), mem_type) == 4096
        assert vm.get_var_addr_and_type(name, make_desc(16)) == (4096, mem_type)
        assert (vm.is_var_addr(4096), vm.get_var_mem_type(4096)) == (True, mem_type)
        assert not vm.is_var_addr(4097)
    node = VarOp("h", "Variable", (), (4096,))
    assert [vm.check_and_set_var_loaded(node) for _ in range(2)] == [False, True]
    assert dict(vm.var_manager_to_serial(extension=False).var_resource.var_offset_map) == {4096: RDMA}
    with pytest.raises(AddressError, match="belongs to no variable"):
        vm["h"].write(bytes(16))
    with pytest.raises(AddressError, match="belongs to no variable"):
        vm.get_var_memory_addr(LogicAddr(4096), HOST)
    assert vm.get_var_memory_addr(LogicAddr(4096), RDMA) == 4096  # as for any number, in GE too
    assert vm.get_var_mem_size(HOST) == vm.get_var_mem_size(RDMA) == 0
    vm.check()


def test_a_place_holder_that_is_restored_into_a_pool_tells_its_memory(vm: VarManager) -> None:
    op = replace(place_holder("p", 0x9000, 16), output_offsets=(BASE + 4096,))
    vm.restore_var_mem("p", op, make_desc(16), HOST)
    assert vm.var_manager_to_serial().var_resource.var_dev_addr_mgr_map[4096].dev_addr == 0x9000


def test_a_place_holder_that_is_wrong_is_not_restored_into_a_pool(vm: VarManager) -> None:
    wrong = VarOp("p", "ConstPlaceHolder", (), (BASE + 4096,))
    with pytest.raises(VariableError, match="storage_shape") as caught:
        vm.restore_var_mem("p", wrong, make_desc(16), HOST)
    assert caught.value.status == PARAM_INVALID
    assert not vm.is_var_exist("p")
    assert not vm.is_var_addr(4096)


def test_pools_can_be_asked_by_themselves(vm: VarManager, memory: FakeMemory) -> None:
    assert vm.get_rdma_pool_memory(HBM, 10) >= DEVICE_BASE
    assert vm.get_host_pool_memory(HBM, 10) > 0
    assert (memory.rdma, memory.host) == ([(HBM, 10, 0)], [(HBM, 10)])
    with pytest.raises(StateError, match="no memory manager"):
        VarManager(1).get_rdma_pool_memory(HBM, 10)
    with pytest.raises(StateError, match="no memory manager"):
        VarManager(1).get_host_pool_memory(HBM, 10)
