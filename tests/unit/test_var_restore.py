"""Restoring variables at the addresses of a compiled model."""

import pytest

from gevar.errors import AddressError, VariableError
from gevar.proto import ge_ir
from gevar.status import PARAM_INVALID
from gevar.types import DataType, Format, LogicAddr, MemType, TensorDesc
from gevar.var import VarManager, VarOp
from tests.helpers.var_memory import GIB, FakeMemory, constant, file_constant, make_desc, make_manager, place_holder

BASE = 128 * GIB
DESC = make_desc(64, DataType.DT_FLOAT, shape=(4, 4))


@pytest.fixture
def vm() -> VarManager:
    return make_manager(FakeMemory())


def _at(offset: int, op: VarOp | None = None) -> VarOp:
    """A node whose output lies `offset` bytes behind the logic base."""
    found = VarOp("v", "Variable") if op is None else op
    return VarOp(found.name, found.op_type, found.output_desc, (BASE + offset, 7), found.value, found.attrs)


def _refused(vm: VarManager, name: str, op: VarOp | None, desc: TensorDesc, match: str) -> None:
    existed, names = vm.is_var_exist(name), len(vm._resource.records) if vm._resource else 0
    with pytest.raises((VariableError, AddressError), match=match) as caught:
        vm.restore_var_mem(name, op, desc)
    assert caught.value.status == PARAM_INVALID
    assert vm.is_var_exist(name) == existed
    assert vm._resource is not None
    assert len(vm._resource.records) == names
    vm.check()


def test_the_address_is_the_one_of_the_node(vm: VarManager) -> None:
    assert vm.restore_var_mem("v", _at(0), DESC) == 137438953472
    assert vm.restore_var_mem("u", _at(4096), DESC) == BASE + 4096
    assert vm.get_var_addr("u", DESC) == BASE + 4096
    assert vm.get_cur_var_desc("u") == DESC
    assert vm.is_var_addr(BASE + 4096)
    assert vm.get_var_mem_type(BASE + 4096) is MemType.RT_MEMORY_HBM
    assert vm.get_var_mem_size() == 0
    vm.check()


def test_the_worked_example(vm: VarManager) -> None:
    vm.set_var_mem_max_size(20480)
    assert vm.restore_var_mem("a", _at(2048), DESC) == BASE + 2048
    assert vm._resource is not None
    assert [record.offset for record in vm._resource.records.values()] == [2048]
    _refused(vm, "b", _at(20480), DESC, "64 B at output offset 137438973952 do not lie in the variable memory")
    _refused(vm, "b", _at(-1), DESC, "64 B at output offset 137438953471 do not lie in the variable memory")
    assert vm.restore_var_mem("b", _at(20480 - 64), DESC) == BASE + 20416


def test_a_restored_variable_has_memory(vm: VarManager) -> None:
    vm.restore_var_mem("u", _at(4096), DESC)
    dev_addr = vm.get_var_memory_addr(LogicAddr(BASE + 4096))
    assert vm.get_var_memory_addr(LogicAddr(BASE + 4159)) == dev_addr + 63
    with pytest.raises(AddressError):
        vm.get_var_memory_addr(LogicAddr(BASE + 4160))
    assert vm.get_var_malloc_mem_size() == 1536


def test_the_same_again_does_nothing(vm: VarManager) -> None:
    vm.restore_var_mem("v", _at(0), DESC)
    assert vm.restore_var_mem("v", _at(99999), DESC) == BASE
    assert vm.restore_var_mem("v", None, DESC) == BASE


def test_another_form_shares_the_address(vm: VarManager) -> None:
    nchw = DESC.replace(format=Format.FORMAT_NCHW)
    vm.restore_var_mem("v", _at(512), nchw)
    assert vm.restore_var_mem("v", None, DESC) == BASE + 512
    assert vm.get_cur_var_desc("v") == DESC
    assert vm.get_var_addr("v", nchw) == BASE + 512
    small = make_desc(60, DataType.DT_FLOAT16)
    assert vm.restore_var_mem("v", None, small) == BASE + 512
    _refused(vm, "v", None, make_desc(61, DataType.DT_INT8), "61 B do not fit the 60 B it has")
    assert vm.get_cur_var_desc("v") == small


def test_another_shape_that_fits_becomes_current(vm: VarManager) -> None:
    vm.restore_var_mem("v", _at(512), DESC)
    flat = DESC.replace(shape=(16,))
    vm.restore_var_mem("v", None, flat)
    assert vm.get_cur_var_desc("v") == flat
    _refused(vm, "v", None, DESC.replace(shape=(4, 8), size=128), "128 B do not fit the 64 B it has")


@pytest.mark.parametrize(
    ("op", "desc", "match"),
    [
        (None, DESC, "its node has no output offset"),
        (VarOp("v", "Variable"), DESC, "its node has no output offset"),
        (_at(-512), DESC, "do not lie in the variable memory"),
        (_at(1 << 40), DESC, "do not lie in the variable memory"),
        (_at(1 << 63), DESC, "do not lie in the variable memory"),
        (_at(0), make_desc(-1), "its size is -1 B"),
        (_at(0, place_holder("p", 0, 64)), DESC, "addr is 0"),
    ],
)
def test_refusals(vm: VarManager, op: VarOp | None, desc: TensorDesc, match: str) -> None:
    _refused(vm, "v", op, desc, match)


def test_the_end_of_the_window_is_exact(vm: VarManager) -> None:
    vm.set_var_mem_max_size(10000)
    assert vm.restore_var_mem("fit", _at(9936), DESC) == BASE + 9936
    _refused(vm, "over", _at(9937), DESC, "do not lie in the variable memory")


def test_weights_of_restored_constants_are_shared(vm: VarManager) -> None:
    desc = make_desc(4)
    vm.restore_var_mem("c", _at(512, constant("c", b"1234", desc)), desc)
    assert vm.assign_var_mem("c2", constant("c2", b"1234", desc), desc) == BASE + 512
    vm.restore_var_mem("f", _at(5120, file_constant("f", "/w/a", 0, 4)), desc)
    assert vm.assign_var_mem("f2", file_constant("f2", "/w/a", 0, 4), desc) == BASE + 5120


def test_a_restored_place_holder_stands_for_its_memory(vm: VarManager) -> None:
    desc = make_desc(64)
    vm.restore_var_mem("p", _at(10240, place_holder("p", 87960930222144, 64)), desc)
    assert vm.get_var_memory_addr(LogicAddr(BASE + 10240)) == 87960930222144
    assert vm.get_var_const_place_holder_mem_size() == 0
    vm.check()


def test_other_kinds_of_memory_keep_the_plain_offset_as_in_ge(vm: VarManager) -> None:
    assert vm.restore_var_mem("h", _at(1024), make_desc(4), MemType.RT_MEMORY_HOST) == 1024
    assert vm.get_var_addr_and_type("h", make_desc(4)) == (1024, MemType.RT_MEMORY_HOST)
    assert not vm.is_var_addr(BASE + 1024)


def test_guards_may_be_closer_than_in_ge_but_data_never_overlaps(vm: VarManager) -> None:
    vm.restore_var_mem("a", _at(0), DESC)
    assert vm.restore_var_mem("b", _at(64), DESC) == BASE + 64
    _refused(vm, "c", _at(127), DESC, "64 B of variable c_2_0 would overlap b_2_0")
    _refused(vm, "c", _at(0), DESC, "would overlap a_2_0")
    vm.assign_var_mem("d", None, DESC)
    assert vm.get_var_addr("d", DESC) == BASE + 2048
    _refused(vm, "e", _at(2048 - 1), DESC, "would overlap d_2_0")


def _reference(offset: int, source: str) -> VarOp:
    return VarOp("ref", "Variable", (), (BASE + offset,), attrs={"ref_var_src_var_name": source})


def test_a_reference_shares_the_block_of_the_variable_it_stands_for(vm: VarManager) -> None:
    addr = vm.restore_var_mem("v", _at(512), DESC)
    assert vm.restore_var_mem("ref", _reference(512, "v"), DESC.replace(size=32)) == addr
    assert vm.get_var_memory_addr(addr) == vm["ref"].dev_addr()
    _refused(vm, "large", _reference(512, "v"), DESC.replace(size=65), "would overlap v_2_0")
    _refused(vm, "other", _reference(512, "w"), DESC, "would overlap v_2_0")
    _refused(vm, "inside", _reference(520, "v"), DESC.replace(size=4), "would overlap v_2_0")
    vm.check()


def test_references_may_come_before_their_variable(vm: VarManager) -> None:
    addr = vm.restore_var_mem("ref1", _reference(512, "v"), DESC)
    assert vm.restore_var_mem("ref2", _reference(512, "v"), DESC) == addr
    assert vm.restore_var_mem("v", _at(512), DESC) == addr
    assert vm["v"].dev_addr() == vm["ref1"].dev_addr() == vm["ref2"].dev_addr()
    _refused(vm, "other", _at(512), DESC, "would overlap ref1_2_0")


def test_a_reference_may_be_named_by_the_output(vm: VarManager) -> None:
    vm.set_batch_variables_key_name("v_batch", "v")
    addr = vm.restore_var_mem("v", _at(512), DESC)
    marked = DESC.replace(attrs={"ref_var_src_var_name": ge_ir.AttrDef(s=b"v_batch")})
    assert vm.restore_var_mem("ref", VarOp("ref", "Variable", (marked,), (addr,)), marked) == addr


def test_equal_file_constants_share_a_block_and_others_do_not(vm: VarManager) -> None:
    addr = vm.restore_var_mem("f", _at(512, file_constant("f", "/w", 0, 64)), DESC)
    assert vm.restore_var_mem("g", _at(512, file_constant("g", "/w", 0, 64)), DESC) == addr
    _refused(vm, "h", _at(512, file_constant("h", "/w", 64, 64)), DESC, "would overlap f_2_0")


def test_equal_weights_share_a_block_and_others_do_not(vm: VarManager) -> None:
    one, same = constant("one", b"12345678" * 8, DESC), constant("same", b"12345678" * 8, DESC)
    addr = vm.restore_var_mem("one", _at(0, one), DESC)
    assert vm.restore_var_mem("same", _at(0, same), DESC) == addr
    other = constant("other", b"12345679" * 8, DESC)
    _refused(vm, "other", _at(0, other), DESC, "would overlap one_2_0")
    _refused(vm, "variable", _at(0), DESC, "would overlap one_2_0")
    vm.restore_var_mem("variable", _at(4096), DESC)
    _refused(vm, "two", _at(4096, one), DESC, "would overlap variable_2_0")


def test_equal_weights_at_two_places_are_each_shared_in_place(vm: VarManager) -> None:
    """Two models, each compiled with a copy of the weight and a twin beside it."""
    for name, offset in (("one", 0), ("two", 4096)):
        weight = b"12345678" * 8
        addr = vm.restore_var_mem(name, _at(offset, constant(name, weight, DESC)), DESC)
        assert vm.restore_var_mem(f"{name}_twin", _at(offset, constant(name, weight, DESC)), DESC) == addr
    vm.check()
