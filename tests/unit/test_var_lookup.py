"""Questions about names, descriptions and logical addresses."""

import pytest

from gevar.errors import GevarError, StateError, VariableError
from gevar.status import FAILED, INTERNAL_ERROR, PARAM_INVALID
from gevar.types import DataType, Format, LogicAddr, MemType
from gevar.var import VarManager
from tests.helpers.var_memory import GIB, constant, make_desc, make_manager

BASE = 32 * GIB
DESC = make_desc(16, shape=(4, 4))


@pytest.fixture
def vm() -> VarManager:
    vm = make_manager(sized=False)
    vm.assign_var_mem("weight", None, DESC)
    return vm


def test_the_shape_does_not_count(vm: VarManager) -> None:
    assert vm.get_var_addr("weight", DESC.replace(shape=(1,), size=99999)) == BASE
    assert vm.get_var_addr_and_type("weight", DESC) == (BASE, MemType.RT_MEMORY_HBM)
    assert vm.is_var_exist("weight", DESC.replace(shape=()))


def test_format_and_type_count(vm: VarManager) -> None:
    for other in (
        DESC.replace(format=Format.FORMAT_NHWC),
        DESC.replace(format=DESC.format | 1 << 8),
        DESC.replace(format=DESC.format | 5 << 24),
        DESC.replace(dtype=DataType.DT_UINT8),
    ):
        assert not vm.is_var_exist("weight", other)
        with pytest.raises(VariableError) as caught:
            vm.get_var_addr("weight", other)
        assert caught.value.status == INTERNAL_ERROR
        assert "its current one is weight_2_2" in str(caught.value)
        assert caught.value.close == ()


def test_an_unknown_name_is_answered_with_names_that_look_alike(vm: VarManager) -> None:
    vm.assign_var_mem("weights", None, DESC)
    vm.assign_var_mem("bias", None, DESC)
    with pytest.raises(VariableError, match="no variable of this name") as caught:
        vm.get_var_addr("weightz", DESC)
    assert caught.value.status == INTERNAL_ERROR
    assert caught.value.close == ("weight", "weights")
    with pytest.raises(VariableError) as caught:
        vm.get_cur_var_desc("biass")
    assert (caught.value.status, caught.value.close) == (FAILED, ("bias",))
    with pytest.raises(VariableError) as caught:
        vm["completely different"]
    assert caught.value.close == ()


def test_a_name_and_a_form(vm: VarManager) -> None:
    assert vm.is_var_exist("weight")
    assert vm.is_var_exist("weight", DESC)
    assert not vm.is_var_exist("other")
    assert not vm.is_var_exist("other", DESC)


def test_addresses_of_starts(vm: VarManager) -> None:
    assert vm.is_var_addr(BASE)
    assert not vm.is_var_addr(BASE + 8)
    assert vm.get_var_mem_type(LogicAddr(BASE)) is MemType.RT_MEMORY_HBM
    for addr in (BASE + 8, BASE + 1536, 0, -1):
        assert vm.get_var_mem_type(addr) is MemType.RT_MEMORY_RESERVED


def test_all_variables_are_a_copy_in_the_order_they_came(vm: VarManager) -> None:
    vm.assign_var_mem("a", None, DESC)
    descs = vm.get_all_variables()
    assert list(descs.items()) == [("weight", DESC), ("a", DESC)]
    descs.clear()
    assert list(vm.get_all_variables()) == ["weight", "a"]


def test_no_variables() -> None:
    with pytest.raises(StateError, match="session 1 has no variables") as caught:
        make_manager().get_all_variables()
    assert caught.value.status == INTERNAL_ERROR


def test_sizes_of_kinds_that_were_not_used(vm: VarManager) -> None:
    assert vm.get_var_mem_size() == 1536
    assert vm.get_var_mem_size(MemType.RT_MEMORY_RDMA_HBM) == 0
    assert vm.get_var_const_place_holder_mem_size(MemType.RT_MEMORY_RDMA_HBM) == 0


def test_before_init_every_call_gives_ges_answer() -> None:
    vm = VarManager(7)
    for call, status in (
        (lambda: vm.assign_var_mem("v", None, DESC), PARAM_INVALID),
        (lambda: vm.restore_var_mem("v", constant("v", None, DESC), DESC), PARAM_INVALID),
        (lambda: vm.set_var_addr("v", DESC, LogicAddr(0)), INTERNAL_ERROR),
        (lambda: vm.get_var_addr("v", DESC), INTERNAL_ERROR),
        (lambda: vm.get_cur_var_desc("v"), INTERNAL_ERROR),
        (lambda: vm["v"], INTERNAL_ERROR),
        (lambda: vm.get_all_variables(), INTERNAL_ERROR),
        (lambda: vm.free_var_memory(), FAILED),
    ):
        with pytest.raises(GevarError) as caught:
            call()
        assert isinstance(caught.value, StateError)
        assert caught.value.status == status
    assert not vm.is_var_exist("v")
    assert not vm.is_var_exist("v", DESC)
    assert not vm.is_var_addr(0)
    assert not vm.has_shared_var_mem_between_batch()
    assert vm.get_var_mem_type(0) is MemType.RT_MEMORY_RESERVED
    assert vm.get_var_mem_size() == vm.get_var_const_place_holder_mem_size() == vm.get_var_malloc_mem_size() == 0
    vm.set_batch_variables_key_name("a", "b")
    vm.check()
    vm.init(0, 7)
    assert not vm.has_shared_var_mem_between_batch()
