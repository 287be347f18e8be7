"""The run-time view of a session's variables, on a memory manager over dictionaries."""

import threading

import pytest

from gevar.errors import AclError, StateError, VariableError
from gevar.session import ModelRtVarManager
from gevar.status import FAILED
from gevar.types import DeviceId, TensorDesc
from gevar.var import VarManager, VarOp
from tests.helpers.var_memory import FakeMemory, make_desc, with_init

BASE, SIZE = 1 << 37, 204800
ZERO, ONE = DeviceId(0), DeviceId(1)


def op(name: str, offset: int, desc: TensorDesc, kind: str = "Variable") -> VarOp:
    return VarOp(name, kind, (desc,), (BASE + offset,))


@pytest.fixture
def memory() -> FakeMemory:
    return FakeMemory()


@pytest.fixture
def manager(memory: FakeMemory) -> ModelRtVarManager:
    manager = ModelRtVarManager(5, VarManager(5), memory)
    manager.init(ZERO, BASE, SIZE)
    return manager


def test_ten_variables_are_restored(manager: ModelRtVarManager) -> None:
    desc = make_desc(64)
    manager.restore_device_variables([op(f"v{i}", 2048 * i, desc) for i in range(10)], ZERO)
    for i in range(10):
        found = manager.get_var_shape_and_memory(f"v{i}", ZERO)
        assert (found.logic_addr, found.size_bytes, found.desc) == (BASE + 2048 * i, 64, desc)
    addrs = {manager.get_var_shape_and_memory(f"v{i}", ZERO).dev_addr for i in range(10)}
    assert len(addrs) == 10


def test_other_kinds_are_passed_over(manager: ModelRtVarManager, memory: FakeMemory) -> None:
    kinds = ["FileConstant", "ConstPlaceHolder", "CONSTANTOP", "Const"]
    manager.restore_device_variables([op(kind, 0, make_desc(64), kind) for kind in kinds], ZERO)
    assert memory.mallocs == []
    for kind in kinds:
        with pytest.raises(VariableError, match="not restored on device 0") as caught:
            manager.get_var_shape_and_memory(kind, ZERO)
        assert caught.value.status == FAILED


def test_the_first_model_decides_base_and_size(memory: FakeMemory) -> None:
    vm = VarManager(5)
    manager = ModelRtVarManager(5, vm, memory)
    manager.init(ZERO, BASE, SIZE)
    manager.init(ONE, 1, 2)
    assert (vm.memory_config.var_mem_logic_base, vm.memory_config.var_mem_max_size) == (BASE, SIZE)
    assert vm.device_id == 0


def test_a_manager_that_is_set_up_keeps_its_base(memory: FakeMemory) -> None:
    vm = VarManager(5)
    vm.init(0, 5, ONE, 0)
    ModelRtVarManager(5, vm, memory).init(ZERO, BASE, SIZE)
    assert vm.memory_config.var_mem_logic_base == 32 << 30
    assert vm.device_id == 1
    assert vm.has_memory_manager


def test_use_before_init(memory: FakeMemory) -> None:
    manager = ModelRtVarManager(5, VarManager(5), memory)
    with pytest.raises(StateError, match="call init first"):
        manager.restore_device_variables([op("v", 0, make_desc(64))], ZERO)


def test_a_variable_without_bytes_is_refused(manager: ModelRtVarManager) -> None:
    with pytest.raises(VariableError, match="size is 0 B") as caught:
        manager.restore_device_variables([op("v", 0, make_desc(0))], ZERO)
    assert caught.value.status == FAILED


def test_edge_26_records_belong_to_a_device_and_are_whole(manager: ModelRtVarManager, memory: FakeMemory) -> None:
    desc = with_init(make_desc(64), bytes(range(64)))
    memory.fail_at = 2  # the copy of the initial value
    with pytest.raises(AclError):
        manager.restore_device_variables([op("v", 0, desc)], ZERO)
    assert memory.blocks == {}
    with pytest.raises(VariableError):
        manager.get_var_shape_and_memory("v", ZERO)
    manager.restore_device_variables([op("v", 0, desc)], ZERO)
    manager.restore_device_variables([op("v", 0, desc)], ONE)
    zero, one = (manager.get_var_shape_and_memory("v", device) for device in (ZERO, ONE))
    assert zero.logic_addr == one.logic_addr
    assert zero.dev_addr != one.dev_addr
    assert [device for _, _, device in memory.mallocs] == [0, 0, 1]


def test_what_comes_after_a_refused_variable_is_not_restored(manager: ModelRtVarManager) -> None:
    ops = [op("a", 0, make_desc(64)), op("bad", SIZE, make_desc(64)), op("c", 2048, make_desc(64))]
    with pytest.raises(VariableError, match="bad"):
        manager.restore_device_variables(ops, ZERO)
    assert manager.get_var_shape_and_memory("a", ZERO).logic_addr == BASE
    with pytest.raises(VariableError):
        manager.get_var_shape_and_memory("c", ZERO)


def test_destroy_forgets_the_records_and_keeps_the_memory(manager: ModelRtVarManager, memory: FakeMemory) -> None:
    manager.restore_device_variables([op("v", 0, make_desc(64))], ZERO)
    manager.destroy()
    with pytest.raises(VariableError):
        manager.get_var_shape_and_memory("v", ZERO)
    assert len(memory.blocks) == 1


def test_many_threads_restore_the_same_variables_once(manager: ModelRtVarManager, memory: FakeMemory) -> None:
    ops = [op(f"v{i}", 2048 * i, make_desc(64)) for i in range(20)]
    errors: list[Exception] = []

    def work() -> None:
        try:
            manager.restore_device_variables(ops, ZERO)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(memory.blocks) == 20
