"""Restoring into a manager that has variables: what is new is added, what both have must be equal."""

import pytest

from gevar.errors import ModelFileError
from gevar.status import PARAM_INVALID
from gevar.types import DataType, DeviceId, Format, LogicAddr, MemType
from gevar.var import LoadState, SessionVersion, TransNodeInfo, VarBroadCastInfo, VarManager, VarOp
from tests.helpers.var_memory import GIB, FakeMemory, constant, make_desc, make_manager, place_holder
from tests.helpers.var_states import BASE, HBM, HOLDER, INFO, NCHW, WEIGHT, full_manager, state_bytes

NHWC = make_desc(4, fmt=Format.FORMAT_NHWC)


def _at(offset: int) -> VarOp:
    return VarOp("n", "Variable", (), (BASE + offset,))


@pytest.fixture
def vm() -> VarManager:
    return make_manager(FakeMemory())


@pytest.fixture
def other() -> VarManager:
    return make_manager(session_id=2)


def _merge(vm: VarManager, other: VarManager, *, extension: bool = True) -> None:
    vm.var_manager_to_deserial(other.var_manager_to_serial(extension=extension), DeviceId(5))
    vm.check()


def _refused(vm: VarManager, other: VarManager, message: str) -> None:
    before = state_bytes(vm)
    with pytest.raises(ModelFileError, match=message) as caught:
        vm.var_manager_to_deserial(other.var_manager_to_serial())
    assert caught.value.status == PARAM_INVALID
    assert state_bytes(vm) == before
    vm.check()


def test_ones_own_state_changes_nothing() -> None:
    vm = full_manager()
    before = state_bytes(vm)
    vm.var_manager_to_deserial(vm.var_manager_to_serial())
    vm.check()
    assert state_bytes(vm) == before
    assert vm.get_var_malloc_mem_size() == 2048  # memory and states stay
    assert vm.get_var_load_state(LogicAddr(BASE + 2048)) is LoadState.LOADED
    assert vm.get_var_memory_addr(vm["p"].logic_addr) == HOLDER


def test_new_variables_are_added_and_ids_and_sizes_stay(vm: VarManager, other: VarManager) -> None:
    vm.assign_var_mem("a", None, make_desc(4))
    vm.set_var_mem_max_size(1 << 30)
    other.restore_var_mem("b", _at(8192), make_desc(100))
    other.set_trans_road("b", [TransNodeInfo("Cast", NCHW, NCHW)])
    other.set_changed_graph_id("b", 4)
    other.set_allocated_graph_id("b", 5)
    other.record_staged_var_desc(1, "b", NCHW)
    other.save_broad_cast_info(1, INFO)
    other.set_batch_variables_key_name("b0", "b")
    _merge(vm, other)
    assert (vm.version, vm.session_id, vm.device_id) == (SessionVersion.CLOUD_VERSION, 1, 0)
    assert vm.memory_config.var_mem_max_size == 1 << 30
    assert vm.get_all_variables().keys() == {"a", "b"}
    assert vm["b0"].logic_addr == BASE + 8192
    assert vm.get_changed_var_names(4) == {"b"}
    assert vm.get_allocated_graph_id("b") == 5
    assert vm.get_staged_var_descs(1) == {"b": NCHW}
    assert vm.get_broad_cast_info(1, "v") == INFO
    vm.get_var_memory_addr(LogicAddr(BASE + 8192 + 99))


def test_tables_of_one_graph_are_added_to(vm: VarManager, other: VarManager) -> None:
    second = VarBroadCastInfo("w", "hcom", 0, 0, 1, 2, 3)
    vm.save_broad_cast_info(1, INFO)
    vm.record_staged_var_desc(1, "a", NCHW)
    other.save_broad_cast_info(1, second)
    other.record_staged_var_desc(1, "b", NCHW)
    _merge(vm, other)
    assert vm.get_broad_cast_info(1, "v") == INFO
    assert vm.get_broad_cast_info(1, "w") == second
    assert vm.get_staged_var_descs(1) == {"a": NCHW, "b": NCHW}


def test_sizes_become_the_larger_of_both(vm: VarManager, other: VarManager) -> None:
    for name, size in (("a", 4), ("b", 1000)):
        vm.assign_var_mem(name, None, make_desc(size))
        other.assign_var_mem(name, None, make_desc(size))
    other.assign_var_mem("p", place_holder("p", HOLDER, 64), make_desc(64))
    vm.var_manager_to_deserial(other.var_manager_to_serial())
    assert (vm.get_var_mem_size(), vm.get_var_const_place_holder_mem_size()) == (3584, 1536)
    assert vm.assign_var_mem("n", None, make_desc(4)) == BASE + 5120
    _merge(other, make_manager(session_id=3))
    assert other.get_var_mem_size() == 3584


def test_sizes_of_a_message_alone_count(vm: VarManager) -> None:
    vm.assign_var_mem("a", None, make_desc(4))
    info = make_manager().var_manager_to_serial(extension=False)
    info.mem_resource_map[2].var_mem_size = 1000
    info.mem_resource_map[129].var_mem_size = 7
    info.var_mem_logic_base = 0  # without variables the base does not matter
    vm.var_manager_to_deserial(info)
    assert (vm.get_var_mem_size(), vm.get_var_mem_size(MemType.RT_MEMORY_HOST)) == (1536, 7)
    info.mem_resource_map[2].var_mem_size = 9999
    vm.var_manager_to_deserial(info)
    vm.check()
    assert vm.get_var_mem_size() == 9999
    assert vm.assign_var_mem("b", None, make_desc(4)) == BASE + 9999


def test_equal_weights_share_with_what_was_added(vm: VarManager, other: VarManager) -> None:
    vm.assign_var_mem("c", constant("c", WEIGHT, make_desc(4)), make_desc(4))
    other.restore_var_mem("d", VarOp("d", "Constant", (make_desc(4),), (BASE + 8192,), b"efgh"), make_desc(4))
    _merge(vm, other)
    assert vm.assign_var_mem("e", constant("e", b"efgh", make_desc(4)), make_desc(4)) == BASE + 8192
    assert vm.assign_var_mem("f", constant("f", WEIGHT, make_desc(4)), make_desc(4)) == BASE


def test_a_second_form_of_a_known_block_stands_for_that_block(vm: VarManager, other: VarManager) -> None:
    for one in (vm, other):
        one.assign_var_mem("a", None, make_desc(4))
    other.set_var_addr("b", make_desc(4, DataType.DT_UINT8), LogicAddr(BASE))
    _merge(vm, other)
    assert vm["b"].logic_addr == BASE
    vm["a"].write(b"1234")
    assert vm["b"].read().tobytes() == b"1234"


def test_an_address_that_was_only_named_may_get_its_block(vm: VarManager, other: VarManager) -> None:
    vm.set_var_addr("b", make_desc(4), LogicAddr(BASE))
    other.assign_var_mem("a", None, make_desc(4))
    _merge(vm, other)
    assert vm.is_var_addr(BASE)
    named = make_manager(session_id=3)
    named.set_var_addr("c", make_desc(4), LogicAddr(BASE))
    _merge(vm, named)
    assert vm["c"].logic_addr == BASE


def test_another_base_is_refused_while_there_are_variables(vm: VarManager) -> None:
    other = make_manager(session_id=2, sized=False)
    _merge(vm, other)
    other.assign_var_mem("a", None, make_desc(4))
    _refused(vm, other, f"VarManagerInfo.var_mem_logic_base: {32 * GIB}, and the manager has {BASE}")
    named = make_manager(session_id=3, sized=False)
    named.set_var_addr("n", make_desc(4), LogicAddr(5))
    _refused(vm, named, "var_mem_logic_base")


def test_overlaps_are_refused(vm: VarManager, other: VarManager) -> None:
    vm.restore_var_mem("a", _at(1000), make_desc(100))
    other.restore_var_mem("b", _at(1099), make_desc(4))
    _refused(vm, other, "4 B of variable b_2_2 would overlap a_2_2")


def test_blocks_that_differ_are_refused(vm: VarManager, other: VarManager) -> None:
    vm.assign_var_mem("a", None, make_desc(4))
    other.assign_var_mem("b", None, make_desc(8))
    _refused(vm, other, "b_2_2 is there already as a_2_2, and they differ")
    holder = make_manager(session_id=3)
    holder.assign_var_mem("a", place_holder("a", HOLDER, 64), make_desc(4))
    _refused(vm, holder, "is there already as a_2_2, and they differ")


def test_keys_that_differ_are_refused(vm: VarManager, other: VarManager) -> None:
    vm.assign_var_mem("a", None, make_desc(4))
    other.restore_var_mem("a", _at(8192), make_desc(4))
    _refused(vm, other, "a_2_2 is there already, and they differ")


def test_a_named_address_of_another_kind_is_refused(vm: VarManager, other: VarManager) -> None:
    vm.assign_var_mem("a", None, make_desc(4))
    other.set_var_addr("b", make_desc(4), LogicAddr(BASE), MemType.RT_MEMORY_DDR)
    _refused(vm, other, "b_2_2 is of another kind of memory than a_2_2")


def test_current_descriptions_that_differ_are_refused(vm: VarManager, other: VarManager) -> None:
    for one in (vm, other):
        one.assign_var_mem("a", None, make_desc(4))
    vm.assign_var_mem("a", None, NHWC)
    _refused(vm, other, r"cur_var_tensor_desc_map\['a'\]: it is there already, and they differ")


def test_what_graphs_did_must_agree(vm: VarManager, other: VarManager) -> None:
    vm.set_trans_road("a", [TransNodeInfo("Cast", NCHW, NCHW)])
    other.set_trans_road("a", [])
    _refused(vm, other, r"var_to_trans_road\['a'\]")
    vm.set_changed_graph_id("c", 1)
    changed = make_manager(session_id=3)
    changed.set_changed_graph_id("c", 2)
    _refused(vm, changed, r"var_names_to_changed_graph_id\['c'\]")
    vm.set_allocated_graph_id("d", 1)
    allocated = make_manager(session_id=4)
    allocated.set_allocated_graph_id("d", 2)
    _refused(vm, allocated, r"var_names_to_allocated_graph_id\['d'\]")
    vm.record_staged_var_desc(7, "e", NCHW)
    staged = make_manager(session_id=5)
    staged.record_staged_var_desc(7, "e", NHWC)
    _refused(vm, staged, r"gevar\.staged_var_desc\[7\]\['e'\]")
    vm.save_broad_cast_info(7, INFO)
    broadcast = make_manager(session_id=6)
    broadcast.save_broad_cast_info(7, VarBroadCastInfo("v", "other", 0, 0, 0, 0, 0))
    _refused(vm, broadcast, r"var_broad_cast_info\[7\]\['v'\]")
    vm.set_batch_variables_key_name("f", "g")
    batch = make_manager(session_id=7)
    batch.set_batch_variables_key_name("f", "h")
    _refused(vm, batch, r"gevar\.batch_var_name_map\['f'\]")


def test_unknown_fields_of_a_merged_message_are_not_taken(vm: VarManager, other: VarManager) -> None:
    before = state_bytes(vm)
    info = other.var_manager_to_serial()
    info.MergeFromString(bytes.fromhex("a23e03616263"))
    vm.var_manager_to_deserial(info)
    assert state_bytes(vm) == before


def test_memory_that_is_there_stays(vm: VarManager, other: VarManager) -> None:
    for one in (vm, other):
        one.assign_var_mem("a", None, make_desc(4))
    vm["a"].write(b"1234")
    vm.set_var_is_ready("a", make_desc(4))
    other.assign_var_mem("b", None, make_desc(4))
    _merge(vm, other, extension=False)
    assert vm["a"].read().tobytes() == b"1234"
    assert vm.is_var_ready("a", make_desc(4))
    assert vm.get_var_mem_type(BASE + 1536) == HBM
