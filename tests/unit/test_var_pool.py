"""The managers of a process."""

import threading
from collections.abc import Iterator

import pytest

from gevar.errors import AclError, ModelFileError, StateError
from gevar.types import DeviceId
from gevar.var import VarManager, VarManagerPool
from tests.helpers.var_memory import FakeMemory, make_desc


@pytest.fixture
def pool() -> Iterator[VarManagerPool]:
    pool = VarManagerPool()
    yield pool
    pool.destroy()


def _filled(pool: VarManagerPool, session_id: int, memory: FakeMemory) -> VarManager:
    vm = pool.get_var_manager(session_id)
    vm.init(0, session_id)
    vm.set_mem_manager(memory)
    vm.assign_var_mem("v", None, make_desc(64))
    vm["v"].dev_addr()
    return vm


def test_the_process_has_one_pool() -> None:
    assert VarManagerPool.instance() is VarManagerPool.instance()


def test_a_session_has_one_manager(pool: VarManagerPool) -> None:
    first = pool.get_var_manager(1)
    assert pool.get_var_manager(1) is first
    assert pool.get_var_manager(2) is not first
    assert first.session_id == 1
    assert not first.is_var_resource_inited


def test_repr(pool: VarManagerPool) -> None:
    assert repr(pool) == "<VarManagerPool of 0 sessions>"
    for session in (7, 3):
        pool.get_var_manager(session)
    assert repr(pool) == "<VarManagerPool of 2 sessions: 3, 7>"
    for session in range(20):
        pool.get_var_manager(session)
    assert repr(pool) == "<VarManagerPool of 20 sessions: 0, 1, 2, 3, 4, 5, 6, 7, …>"


def test_a_removed_manager_is_destroyed_and_replaced(pool: VarManagerPool) -> None:
    memory, other = FakeMemory(), FakeMemory()
    vm, second = _filled(pool, 1, memory), _filled(pool, 2, other)
    pool.remove_var_manager(1)
    assert memory.blocks == {}
    assert len(other.blocks) == 1
    assert not vm.is_var_resource_inited
    assert vm.session_id == 0
    assert pool.get_var_manager(1) is not vm
    assert pool.get_var_manager(2) is second
    assert second.is_var_exist("v")
    pool.remove_var_manager(55)


def test_whoever_holds_a_removed_manager_can_use_it_again(pool: VarManagerPool) -> None:
    memory = FakeMemory()
    vm = _filled(pool, 1, memory)
    variable = vm["v"]
    pool.remove_var_manager(1)
    with pytest.raises(StateError, match="not initialised"):
        variable.dev_addr()
    vm.init(0, 1)
    vm.assign_var_mem("w", None, make_desc(64))
    vm.destroy()


def test_destroy_takes_all(pool: VarManagerPool) -> None:
    memory = FakeMemory()
    managers = [_filled(pool, session, memory) for session in range(5)]
    pool.destroy()
    assert memory.blocks == {}
    assert not any(vm.is_var_resource_inited for vm in managers)
    assert all(pool.get_var_manager(session) is not vm for session, vm in enumerate(managers))


def test_a_failure_does_not_keep_the_others(pool: VarManagerPool) -> None:
    bad, good = FakeMemory(), FakeMemory()
    _filled(pool, 1, bad)
    _filled(pool, 2, good)
    bad.fail_at = bad.calls + 1
    with pytest.raises(AclError, match="507899"):
        pool.destroy()
    assert good.blocks == {}


def test_managers_and_pool_do_not_wait_for_each_other(pool: VarManagerPool) -> None:
    """The pool destroys managers without its lock, so a manager that is busy keeps nobody from the pool."""
    memory = FakeMemory()
    vm = _filled(pool, 1, memory)
    with vm._lock:
        destroyer = threading.Thread(target=pool.destroy)
        destroyer.start()
        other = threading.Thread(target=pool.get_var_manager, args=(2,))
        other.start()
        other.join(30)
        assert not other.is_alive()
    destroyer.join()
    assert memory.blocks == {}


def test_many_threads_get_the_same_manager(pool: VarManagerPool) -> None:
    found: list[VarManager] = []
    threads = [threading.Thread(target=lambda: found.append(pool.get_var_manager(9))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_states_of_sessions_travel_in_one_message() -> None:
    here, there = VarManagerPool(), VarManagerPool()
    for session_id in (5, 3):
        vm = here.get_var_manager(session_id)
        vm.init(0, session_id)
        vm.assign_var_mem(f"v{session_id}", None, make_desc(4))
    info = here.multi_var_manager_to_serial([5, 3])
    assert [one.session_id for one in info.var_manager_info] == [5, 3]
    managers = there.multi_var_manager_to_deserial(info, DeviceId(2))
    assert managers == [there.get_var_manager(5), there.get_var_manager(3)]
    assert [vm.device_id for vm in managers] == [2, 2]
    assert "v5" in managers[0].get_all_variables()
    assert "v3" in managers[1].get_all_variables()


def test_the_state_that_is_refused_leaves_its_manager_alone() -> None:
    pool = VarManagerPool()
    for session_id in (1, 2):
        vm = pool.get_var_manager(session_id)
        vm.init(0, session_id)
        vm.assign_var_mem("v", None, make_desc(4))
    info = pool.multi_var_manager_to_serial([1, 2])
    info.var_manager_info[1].version = 7
    other = VarManagerPool()
    with pytest.raises(ModelFileError, match="version: 7"):
        other.multi_var_manager_to_deserial(info)
    assert other.get_var_manager(1).is_var_exist("v")
    assert not other.get_var_manager(2).is_var_resource_inited


def test_a_session_that_is_not_initialised_has_no_state() -> None:
    with pytest.raises(StateError, match="session 4 is not initialised"):
        VarManagerPool().multi_var_manager_to_serial([4])
