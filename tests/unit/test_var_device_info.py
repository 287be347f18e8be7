"""Tables of devices, and memory that the caller names for single variables."""

import numpy as np
import pytest

from gevar.errors import AddressError, StateError
from gevar.status import PARAM_INVALID
from gevar.types import DevAddr, DeviceId, LogicAddr, MemType
from gevar.var import LoadState, VarManager
from tests.helpers.var_memory import GIB, Block, FakeMemory, make_desc, make_manager, place_holder

D0, D1 = DeviceId(0), DeviceId(1)
BASE = 128 * GIB
MINE = DevAddr(0x1500_0000_0000)
HBM = MemType.RT_MEMORY_HBM


@pytest.fixture
def memory() -> FakeMemory:
    memory = FakeMemory()
    for device in (0, 1):
        memory.blocks[device, MINE] = Block(HBM, "the caller's", bytearray(4096))
    return memory


@pytest.fixture
def vm(memory: FakeMemory) -> VarManager:
    vm = make_manager(memory)
    vm.assign_var_mem("a", None, make_desc(100))
    vm.assign_var_mem("b", None, make_desc(2048))
    return vm


def test_a_variable_lies_where_the_caller_says(vm: VarManager, memory: FakeMemory) -> None:
    vm.set_var_mgr_dev_addr(LogicAddr(BASE), MINE)
    assert vm.get_var_memory_addr(LogicAddr(BASE)) == MINE + 512
    assert vm.get_var_memory_addr(LogicAddr(BASE + 99)) == MINE + 611
    assert vm.resolve_many(np.array([BASE + 5], np.uint64)).tolist() == [MINE + 517]
    record = vm.get_var_mgr_info(LogicAddr(BASE))
    assert record is not None
    assert (record.dev_addr, record.capacity_bytes) == (MINE, 1536)
    vm["a"].write(np.full(100, 7, np.int8))
    assert memory.blocks[0, MINE].data[512:612] == b"\x07" * 100
    assert (memory.mallocs, vm.get_var_malloc_mem_size()) == ([], 0)
    vm.check()


def test_it_holds_for_one_device(vm: VarManager, memory: FakeMemory) -> None:
    vm.set_var_mgr_dev_addr(LogicAddr(BASE), MINE, D1)
    assert vm.get_var_memory_addr(LogicAddr(BASE), HBM, D1) == MINE + 512
    assert vm.get_var_memory_addr(LogicAddr(BASE), HBM, D0) != MINE + 512
    assert [device for _, _, device in memory.mallocs] == [0]
    vm.check()


def test_memory_of_the_callers_is_never_freed(vm: VarManager, memory: FakeMemory) -> None:
    vm.set_var_mgr_dev_addr(LogicAddr(BASE), MINE)
    vm["b"].dev_addr()
    vm.free_var_memory()
    assert len(memory.frees) == 1
    assert list(memory.blocks) == [(0, MINE), (1, MINE)]
    assert vm.get_var_mgr_info(LogicAddr(BASE)) is None
    assert vm.get_var_memory_addr(LogicAddr(BASE)) != MINE + 512
    vm.check()


def test_it_can_be_replaced_and_taken_back(vm: VarManager, memory: FakeMemory) -> None:
    vm.set_var_mgr_dev_addr(LogicAddr(BASE), MINE)
    ticket = vm.begin_var_load(LogicAddr(BASE))
    assert ticket is not None
    ticket.commit()
    other = DevAddr(MINE + 8192)
    vm.set_var_mgr_dev_addr(LogicAddr(BASE), other)
    assert vm.get_var_memory_addr(LogicAddr(BASE)) == other + 512
    assert vm.get_var_load_state(LogicAddr(BASE)) is LoadState.ABSENT  # it was said of the other memory
    vm.set_var_mgr_dev_addr(LogicAddr(BASE), None)
    assert vm.get_var_mgr_info(LogicAddr(BASE)) is None
    assert vm.resolve_many(np.array([BASE], np.uint64)).tolist() == [vm["a"].dev_addr()]
    assert memory.mallocs == [(HBM, 1536, 0)]
    vm.check()


def test_memory_of_the_managers_is_not_replaced(vm: VarManager, memory: FakeMemory) -> None:
    addr = vm["a"].dev_addr()
    for dev_addr in (MINE, None):
        with pytest.raises(StateError, match="variable a_2_2 has memory of its own on device 0"):
            vm.set_var_mgr_dev_addr(LogicAddr(BASE), dev_addr)
    assert vm["a"].dev_addr() == addr
    vm.free_var_memory()
    vm.set_var_mgr_dev_addr(LogicAddr(BASE), MINE)
    assert vm["a"].dev_addr() == MINE + 512
    memory.on_malloc = lambda: vm.set_var_mgr_dev_addr(LogicAddr(BASE + 1536), MINE)
    with pytest.raises(StateError, match="is getting some"):
        vm["b"].dev_addr()
    memory.on_malloc = None
    vm["b"].dev_addr()
    vm.check()


@pytest.mark.parametrize(
    ("addr", "dev_addr", "device", "error"),
    [
        (BASE + 1, MINE, D0, AddressError),
        (BASE - 1, MINE, D0, AddressError),
        (BASE + 1536 + 3072, MINE, D0, AddressError),  # a place holder
        (BASE, DevAddr(0), D0, ValueError),
        (BASE, DevAddr(-5), D0, ValueError),
        (BASE, MINE, DeviceId(-1), ValueError),
    ],
)
def test_bad_arguments(vm: VarManager, addr: int, dev_addr: DevAddr, device: DeviceId, error: type[Exception]) -> None:
    vm.assign_var_mem("p", place_holder("p", 87960930226176, 64), make_desc(64))
    with pytest.raises(error):
        vm.set_var_mgr_dev_addr(LogicAddr(addr), dev_addr, device)
    assert vm.get_var_mgr_info(LogicAddr(BASE)) is None
    vm.check()


def test_before_init() -> None:
    with pytest.raises(StateError) as caught:
        VarManager(1).set_var_mgr_dev_addr(LogicAddr(BASE), MINE)
    assert caught.value.status == PARAM_INVALID


def test_the_table_of_a_device_has_what_is_assigned_later(vm: VarManager) -> None:
    vm.update_dev_var_mgr_info(D1)
    vm.update_dev_var_mgr_info(D1)
    late = vm.assign_var_mem("late", None, make_desc(8))
    assert vm.get_var_mgr_info(late, D1) is None
    vm.get_var_memory_addr(late, HBM, D1)
    record = vm.get_var_mgr_info(late, D1)
    assert record is not None
    assert (record.device_id, vm.get_var_mgr_info(late, D0)) == (D1, None)
    with pytest.raises(ValueError, match="device_id is -1"):
        vm.update_dev_var_mgr_info(DeviceId(-1))
