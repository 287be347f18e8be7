"""Initialising, sizing and destroying a manager."""

import logging

import pytest

from gevar.errors import AclError, SizeOverflowError, StateError
from gevar.status import GE_GRAPH_OPTIONS_INVALID, PARAM_INVALID
from gevar.types import DeviceId, LogicAddr
from gevar.var import MemoryConfig, SessionVersion, VarManager
from tests.helpers.var_memory import GIB, FakeMemory, make_desc, make_manager


def test_a_new_manager() -> None:
    vm = VarManager(5)
    assert not vm.is_var_resource_inited
    assert not vm.has_memory_manager
    assert vm.session_id == 5
    assert vm.version is SessionVersion.OTHER_VERSION
    assert vm.memory_config == MemoryConfig()
    assert repr(vm) == "<VarManager of session 5: not initialised>"


def test_init_takes_what_it_is_given() -> None:
    vm = VarManager(5)
    vm.init(SessionVersion.MINI_VERSION, 5, DeviceId(3), 7)
    assert vm.is_var_resource_inited
    assert (vm.version, vm.session_id, vm.device_id, vm.job_id) == (SessionVersion.MINI_VERSION, 5, 3, 7)
    vm.assign_var_mem("v", None, make_desc(4))
    assert repr(vm) == "<VarManager of session 5: 1 variables, 1536 B assigned, 0 B of device memory>"


def test_a_second_init_changes_nothing_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    vm = make_manager()
    vm.assign_var_mem("v", None, make_desc(4))
    with caplog.at_level(logging.WARNING, "gevar.var"):
        vm.init(9, 5, DeviceId(6), 8)
    assert "session 1 is initialised already" in caplog.text
    assert (vm.version, vm.session_id, vm.device_id, vm.job_id) == (SessionVersion.CLOUD_VERSION, 1, 0, 0)
    assert vm.is_var_exist("v")


@pytest.mark.parametrize(
    ("version", "session", "device", "error"), [(3, 1, 0, ValueError), (-1, 1, 0, ValueError), (0, 1, -1, ValueError)]
)
def test_bad_arguments_leave_it_uninitialised(version: int, session: int, device: int, error: type[Exception]) -> None:
    vm = VarManager(1)
    with pytest.raises(error):
        vm.init(version, session, DeviceId(device))
    assert not vm.is_var_resource_inited
    assert (vm.version, vm.device_id) == (SessionVersion.OTHER_VERSION, 0)
    vm.init(0, 1)


def test_a_foreign_session_id_is_refused() -> None:
    vm = VarManager(5)
    with pytest.raises(StateError, match="manager of session 5 was given session id 0") as caught:
        vm.init(0, 0)
    assert caught.value.status == PARAM_INVALID
    assert not vm.is_var_resource_inited


def test_sizes_can_be_set_before_and_after_init() -> None:
    vm = VarManager(1)
    vm.set_memory_malloc_size(64 * GIB)
    vm.init(0, 1)
    assert vm.memory_config.var_mem_logic_base == 137438953472
    vm.set_var_mem_logic_base(456)
    vm.set_var_mem_max_size(123)
    assert (vm.memory_config.var_mem_logic_base, vm.memory_config.var_mem_max_size) == (456, 123)
    vm.set_all_memory_max_value()
    assert vm.memory_config.use_max_mem_size == 55834574848 + 123
    config = MemoryConfig(1, 2, 3, 4)
    vm.update_memory_config(config)
    assert vm.memory_config is config


def test_a_refused_size_changes_nothing() -> None:
    vm = VarManager(1)
    before = vm.memory_config
    with pytest.raises(SizeOverflowError) as caught:
        vm.set_memory_malloc_size(300 * GIB)
    assert caught.value.status == GE_GRAPH_OPTIONS_INVALID
    assert vm.memory_config is before
    vm.set_memory_malloc_size(300 * GIB, ceiling_bytes=300 * GIB)
    assert vm.memory_config.var_mem_logic_base == 128 * GIB
    with pytest.raises(ValueError, match="var_mem_logic_base"):
        vm.set_var_mem_logic_base(-1)
    with pytest.raises(ValueError, match="var_mem_max_size"):
        vm.set_var_mem_max_size(1 << 64)


def test_a_new_base_counts_for_new_variables_only() -> None:
    vm = make_manager(sized=False)
    desc = make_desc(64)
    assert vm.assign_var_mem("a", None, desc) == 32 * GIB
    vm.set_all_memory_max_value()
    assert vm.get_var_addr("a", desc) == 32 * GIB
    assert vm.assign_var_mem("b", None, desc) == 128 * GIB + 1536
    vm.set_var_mem_logic_base(1 << 40)
    assert vm.assign_var_mem("c", None, desc) == (1 << 40) + 3072
    assert vm.get_var_addr("b", desc) == 128 * GIB + 1536
    vm.check()


def test_a_base_that_would_put_variables_on_top_of_others_is_stepped_over() -> None:
    vm = make_manager(sized=False)
    vm.assign_var_mem("a", None, make_desc(64))
    vm.assign_var_mem("b", None, make_desc(64))
    vm.set_var_mem_logic_base(32 * GIB - 3072)
    assert vm.assign_var_mem("c", None, make_desc(64)) == 32 * GIB + 3072
    vm.check()


def test_destroy_forgets_everything_and_init_starts_anew() -> None:
    memory = FakeMemory()
    vm = make_manager(memory)
    vm.init(0, 1, DeviceId(0))
    first = vm.assign_var_mem("a", None, make_desc(64))
    vm.assign_var_mem("b", None, make_desc(64))
    vm["a"].dev_addr()
    vm.set_batch_variables_key_name("x", "a")
    vm.destroy()
    assert memory.blocks == {}
    assert vm.session_id == 0
    assert not vm.is_var_resource_inited
    assert not vm.is_var_exist("a")
    assert not vm.is_var_addr(first)
    assert vm.get_var_mem_size() == vm.get_var_malloc_mem_size() == 0
    assert vm.has_memory_manager
    vm.init(1, 1)
    assert vm.session_id == 1
    assert not vm.has_shared_var_mem_between_batch()
    assert vm.assign_var_mem("c", None, make_desc(64)) == first
    vm["c"].dev_addr()
    vm.check()
    vm.destroy()
    assert memory.blocks == {}


def test_destroy_frees_without_a_memory_manager_too() -> None:
    memory = FakeMemory()
    vm = make_manager(memory)
    vm.assign_var_mem("a", None, make_desc(64))
    vm["a"].dev_addr()
    vm.set_mem_manager(None)
    vm.destroy()
    assert memory.blocks == {}


def test_destroy_twice_and_before_init() -> None:
    vm = VarManager(3)
    vm.destroy()
    vm.destroy()
    vm.init(0, 3)
    assert vm.session_id == 3


def test_a_refused_free_does_not_keep_a_manager_alive() -> None:
    memory = FakeMemory()
    vm = make_manager(memory)
    vm.assign_var_mem("a", None, make_desc(64))
    vm["a"].dev_addr()
    memory.fail_at = memory.calls + 1
    with pytest.raises(AclError, match="507899"):
        vm.destroy()
    assert not vm.is_var_resource_inited
    assert vm.get_var_malloc_mem_size() == 0
    vm.destroy()


def test_everything_works_after_many_rounds() -> None:
    memory = FakeMemory()
    vm = VarManager(1)
    vm.set_mem_manager(memory)
    for _ in range(100):
        vm.init(0, 1)
        for name in "abc":
            vm.assign_var_mem(name, None, make_desc(64))
            vm[name].dev_addr()
        vm.destroy()
    assert memory.blocks == {}
    assert len(memory.mallocs) == len(memory.frees) == 300
    with pytest.raises(StateError):
        vm.get_var_memory_addr(LogicAddr(32 * GIB))


def test_sizes_by_their_names() -> None:
    vm = make_manager(sized=False)
    assert vm.get_graph_memory_max_size() == vm.get_graph_memory_max_size(for_check=True) == 27917287424
    assert vm.get_var_mem_max_size() == vm.get_var_mem_max_size(for_check=True) == 5368709120
    assert vm.get_use_max_memory_size() == 33285996544
    assert vm.get_var_mem_logic_base() == 34359738368
    vm.set_memory_malloc_size(64 * GIB)
    assert vm.get_graph_memory_max_size() == 55834574848
    assert vm.get_var_mem_max_size() == 10737418240
    assert vm.get_use_max_memory_size() == 66571993088
    assert vm.get_var_mem_logic_base() == 137438953472


def test_while_graphs_are_evaluated_there_is_no_limit_to_check() -> None:
    vm = make_manager()
    vm.set_options({"ge.evaluateGraphResourceMode": "1"})
    unlimited = (1 << 64) - 1
    assert vm.get_use_max_memory_size() == unlimited
    assert vm.get_graph_memory_max_size(for_check=True) == vm.get_var_mem_max_size(for_check=True) == unlimited
    assert vm.get_graph_memory_max_size() == 55834574848
    assert vm.get_var_mem_max_size() == 10737418240
    vm.set_options({"ge.evaluateGraphResourceMode": "0"})
    assert vm.get_use_max_memory_size() == 66571993088
    assert vm.get_var_mem_max_size(for_check=True) == 10737418240
