"""Naming an address: the current description without a block."""

import pytest

from gevar.errors import AddressError, VariableError
from gevar.status import INTERNAL_ERROR, PARAM_INVALID
from gevar.types import Format, LogicAddr, MemType
from gevar.var import VarKey, VarManager
from tests.helpers.var_memory import GIB, FakeMemory, constant, file_constant, make_desc, make_manager

BASE = 128 * GIB
PLAIN, NHWC = make_desc(16), make_desc(16, fmt=Format.FORMAT_NHWC)


@pytest.fixture
def vm() -> VarManager:
    return make_manager(FakeMemory())


def _record(vm: VarManager, key: VarKey) -> tuple[int, int]:
    """Logical address and offset of a key's record."""
    assert vm._resource is not None
    record = vm._resource.records[key]
    return record.block.logic_addr, record.offset


def test_a_new_key_is_registered_but_has_no_memory(vm: VarManager) -> None:
    vm.set_var_addr("v", PLAIN, LogicAddr(BASE + 4096))
    assert vm.get_var_addr("v", PLAIN) == BASE + 4096
    assert vm.get_cur_var_desc("v") == PLAIN
    assert not vm.is_var_addr(BASE + 4096)
    assert vm.get_var_mem_type(BASE + 4096) is MemType.RT_MEMORY_RESERVED
    assert vm.get_var_mem_size() == 0
    with pytest.raises(AddressError, match="belongs to no variable"):
        vm.get_var_memory_addr(LogicAddr(BASE + 4096))
    vm.check()


def test_a_known_key_keeps_its_address(vm: VarManager) -> None:
    vm.set_var_addr("v", PLAIN, LogicAddr(BASE + 4096))
    wide = PLAIN.replace(shape=(2, 8))
    vm.set_var_addr("v", wide, LogicAddr(BASE + 8192))
    assert vm.get_var_addr("v", PLAIN) == BASE + 4096
    assert vm.get_cur_var_desc("v") == wide


def test_another_form_has_its_own_address(vm: VarManager) -> None:
    vm.set_var_addr("v", PLAIN, LogicAddr(BASE + 4096))
    vm.set_var_addr("v", NHWC, LogicAddr(BASE + 8192))
    assert vm.get_var_addr("v", PLAIN) == BASE + 4096
    assert vm.get_var_addr("v", NHWC) == BASE + 8192
    assert vm.get_cur_var_desc("v") == NHWC


def test_offsets_wrap_below_the_base_as_in_ge(vm: VarManager) -> None:
    vm.set_var_addr("below", PLAIN, LogicAddr(BASE - 100))
    assert _record(vm, VarKey("below", 2, PLAIN.dtype)) == (BASE - 100, (1 << 64) - 100)
    vm.set_var_addr("host", PLAIN, LogicAddr(64), MemType.RT_MEMORY_HOST)
    assert _record(vm, VarKey("host", 2, PLAIN.dtype)) == (64, 0)
    assert vm.get_var_addr_and_type("host", PLAIN) == (64, MemType.RT_MEMORY_HOST)


def test_a_name_with_an_address_needs_no_block(vm: VarManager) -> None:
    vm.set_var_addr("v", NHWC, LogicAddr(BASE + 8192))
    assert vm.assign_var_mem("v", None, NHWC) == BASE + 8192
    assert vm.get_var_mem_size() == 0
    assert vm.assign_var_mem("v", None, make_desc(17, fmt=Format.FORMAT_NHWC)) == BASE
    vm.check()


def test_the_address_of_a_variable_shares_its_memory(vm: VarManager) -> None:
    addr = vm.assign_var_mem("v", None, PLAIN)
    vm.set_var_addr("twin", PLAIN, addr)
    assert vm["twin"].dev_addr() == vm["v"].dev_addr()
    assert _record(vm, VarKey("twin", 2, PLAIN.dtype)) == (BASE, 0)
    vm.check()


def test_a_twin_of_another_kind_is_refused(vm: VarManager) -> None:
    addr = vm.assign_var_mem("v", None, PLAIN)
    with pytest.raises(VariableError, match="it lies in RT_MEMORY_HBM, asked for is RT_MEMORY_HOST") as caught:
        vm.set_var_addr("twin", PLAIN, addr, MemType.RT_MEMORY_HOST)
    assert caught.value.status == PARAM_INVALID
    assert not vm.is_var_exist("twin")


def test_a_named_weight_is_found_by_later_constants(vm: VarManager) -> None:
    addr = vm.assign_var_mem("v", None, PLAIN)
    vm.set_var_addr("c", PLAIN, addr, op=constant("c", b"12", PLAIN))
    assert vm.assign_var_mem("d", constant("d", b"12", PLAIN), PLAIN) == addr
    vm.set_var_addr("f", PLAIN, LogicAddr(BASE + (1 << 20)), op=file_constant("f", "/w/a", 0, 16))
    assert vm.assign_var_mem("g", file_constant("g", "/w/a", 0, 16), PLAIN) == BASE + (1 << 20)
    vm.check()


def test_before_init_nothing_is_named() -> None:
    vm = VarManager(1)
    with pytest.raises(RuntimeError) as caught:
        vm.set_var_addr("v", PLAIN, LogicAddr(0))
    assert getattr(caught.value, "status", None) == INTERNAL_ERROR


@pytest.mark.parametrize("addr", [-1, 1 << 64])
def test_an_address_is_an_unsigned_64_bit_number(vm: VarManager, addr: int) -> None:
    with pytest.raises(ValueError, match=f"logic_addr of variable 'v' is {addr}"):
        vm.set_var_addr("v", PLAIN, LogicAddr(addr))
    assert not vm.is_var_exist("v")
