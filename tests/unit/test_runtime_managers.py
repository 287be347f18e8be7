"""Run-time managers: their pool, memory of the caller's, host variables, graphs, memory that was freed."""

import ctypes

import pytest

from gevar.errors import FormatError, StateError, VariableError
from gevar.runtime import ModelRtVarManager, RtSession, RtVarManagerPool, StorageShape, TensorData, TensorPlacement
from gevar.types import DevAddr, DeviceId, MemType, TensorDesc
from gevar.var import VarManager, VarOp
from gevar.var.var_op import AttrValue
from tests.helpers.var_memory import FakeMemory, make_desc, with_init

BASE, SIZE = 1 << 37, 204800
ZERO, ONE = DeviceId(0), DeviceId(1)
REGION = DevAddr(0x1240_0000_0000)


def op(name: str, offset: int, desc: TensorDesc, **attrs: AttrValue) -> VarOp:
    return VarOp(name, "Variable", (desc,), (BASE + offset,), attrs=attrs)


def on_host(name: str, desc: TensorDesc) -> VarOp:
    return op(name, 0, desc, _variable_placement="host")


@pytest.fixture
def memory() -> FakeMemory:
    return FakeMemory()


@pytest.fixture
def vm() -> VarManager:
    return VarManager(5)


@pytest.fixture
def manager(memory: FakeMemory, vm: VarManager) -> ModelRtVarManager:
    manager = ModelRtVarManager(5, vm, memory)
    manager.init(ZERO, BASE, SIZE)
    return manager


def test_ten_variables_in_memory_of_the_callers(memory: FakeMemory, vm: VarManager) -> None:
    manager = ModelRtVarManager(5, vm, memory)
    manager.init(ZERO, BASE, SIZE, REGION, SIZE)
    manager.restore_device_variables([op(f"v{i}", 2048 * i, make_desc(64)) for i in range(10)], ZERO)
    addrs = [manager.get_var_shape_and_memory(f"v{i}", ZERO).dev_addr for i in range(10)]
    assert addrs == [REGION + 2048 * i for i in range(10)]
    assert memory.mallocs == []
    manager.restore_device_variables([op("v0", 0, make_desc(64))], ONE)  # the region is that of device 0
    assert [device for _, _, device in memory.mallocs] == [1]


def test_memory_of_the_callers_is_for_the_first_model(memory: FakeMemory, vm: VarManager) -> None:
    vm.init(0, 5)
    manager = ModelRtVarManager(5, vm, memory)
    manager.init(ZERO, BASE, SIZE, REGION, SIZE)
    vm.assign_var_mem("v", None, make_desc(8))
    assert vm["v"].dev_addr() != REGION
    assert len(memory.mallocs) == 1


@pytest.mark.parametrize(
    ("device", "base", "size", "external"),
    [(0, -1, SIZE, None), (0, BASE, 1 << 64, None), (-1, BASE, SIZE, REGION), (0, BASE, SIZE, 0)],
)
def test_bad_numbers_change_nothing(
    memory: FakeMemory, vm: VarManager, device: int, base: int, size: int, external: int | None
) -> None:
    manager, config = ModelRtVarManager(5, vm, memory), vm.memory_config
    with pytest.raises(ValueError):
        manager.init(DeviceId(device), base, size, None if external is None else DevAddr(external), 64)
    assert (vm.is_var_resource_inited, vm.memory_config) == (False, config)
    manager.init(ZERO, BASE, SIZE)
    manager.restore_device_variables([op("v", 0, make_desc(64))], ZERO)
    assert len(memory.mallocs) == 1


def test_the_first_graph_counts(manager: ModelRtVarManager, vm: VarManager) -> None:
    manager.restore_device_variables([op("v", 0, make_desc(64))], ZERO, graph_id=7)
    manager.restore_device_variables([op("v", 0, make_desc(64))], ZERO, graph_id=8)
    assert vm.get_allocated_graph_id("v") == 7


def test_without_collecting_memory_waits_for_the_first_question(
    manager: ModelRtVarManager, memory: FakeMemory, vm: VarManager
) -> None:
    manager.restore_device_variables([op("v", 0, make_desc(64)), op("e", 2048, make_desc(0))], ZERO, need_collect=False)
    assert vm.get_var_addr("v", make_desc(64)) == BASE
    assert memory.mallocs == []
    with pytest.raises(VariableError, match="not restored on device 0"):
        manager.get_var_shape_and_memory("v", ZERO)


def test_shape_and_memory(manager: ModelRtVarManager) -> None:
    desc = make_desc(64, shape=(4, 16)).replace(origin_shape=(64,))
    manager.restore_device_variables([op("v", 0, desc), op("w", 2048, make_desc(64))], ZERO)
    found = manager.get_var_shape_and_memory("v", ZERO)
    assert found.shape == StorageShape((64,), (4, 16))
    assert found.tensor_data == TensorData(found.dev_addr, 64, TensorPlacement.ON_DEVICE_HBM)
    assert manager.get_var_shape_and_memory("w", ZERO).shape == StorageShape((64,), (64,))


def test_a_variable_on_the_host_is_one_for_all_devices(manager: ModelRtVarManager, memory: FakeMemory) -> None:
    desc = with_init(make_desc(16), b"0123456789abcdef")
    for device in (ZERO, ONE):
        manager.restore_device_variables([on_host("h", desc)], device)
    one, other = (manager.get_var_shape_and_memory("h", device) for device in (ZERO, ONE))
    assert one == other
    assert (one.placement, one.dev_addr) == (TensorPlacement.ON_HOST, one.logic_addr)
    assert ctypes.string_at(one.dev_addr, 16) == b"0123456789abcdef"
    assert (memory.mallocs, memory.host) == ([], [(MemType.RT_MEMORY_HBM, 16)])


def test_a_host_variable_whose_initial_value_does_not_fit_is_not_there(
    manager: ModelRtVarManager, memory: FakeMemory, vm: VarManager
) -> None:
    bad = with_init(make_desc(16), bytes(16), make_desc(16, shape=(4, 4)))
    with pytest.raises(FormatError, match="initial value"):
        manager.restore_device_variables([on_host("h", bad)], ZERO)
    assert not vm.is_var_exist("h")
    assert memory.host == []


def test_freed_memory_is_not_told(manager: ModelRtVarManager, memory: FakeMemory, vm: VarManager) -> None:
    manager.restore_device_variables([op("v", 0, with_init(make_desc(8), b"12345678"))], ZERO)
    before = manager.get_var_shape_and_memory("v", ZERO)
    vm.free_var_memory()
    after = manager.get_var_shape_and_memory("v", ZERO)
    assert after.dev_addr != before.dev_addr
    assert (after.logic_addr, after.desc) == (before.logic_addr, before.desc)
    assert list(memory.blocks) == [(0, after.dev_addr - 512)]


def test_the_pool_has_one_manager_for_a_session(memory: FakeMemory) -> None:
    pool = RtVarManagerPool()
    one = pool.get_var_manager(1, VarManager(1), memory)
    assert pool.get_var_manager(1, VarManager(1), memory) is one is pool.find(1)
    two = pool.get_var_manager(2, VarManager(2), memory)
    assert two is not one
    two.init(ZERO, BASE, SIZE)
    two.restore_device_variables([op("v", 0, make_desc(8))], ZERO)
    pool.remove_rt_var_manager(1)
    pool.remove_rt_var_manager(1)
    assert (pool.find(1), pool.find(2)) == (None, two)
    pool.destroy()
    assert pool.find(2) is None
    with pytest.raises(VariableError):
        two.get_var_shape_and_memory("v", ZERO)
    with pytest.raises(StateError, match="call init first"):
        two.restore_device_variables([], ZERO)
    assert RtVarManagerPool.instance() is RtVarManagerPool.instance()


def test_external_memory_of_a_session_is_checked() -> None:
    session = RtSession(3)
    for addr, size in ((0, 64), (-5, 64), (REGION, -1)):
        with pytest.raises(ValueError, match="give a device address"):
            session.set_external_var(DevAddr(addr), size)
    session.set_external_var(REGION, 64)
    assert (session.external_var_addr, session.external_var_size) == (REGION, 64)
    session.set_external_var(None)
    assert (session.external_var_addr, session.external_var_size) == (None, 0)
