"""Assignment of logical addresses: new variables, other forms of known ones, sharing, growth."""

from collections.abc import Callable

import pytest

from gevar.errors import SizeOverflowError, StateError, VariableError
from gevar.status import INTERNAL_ERROR, PARAM_INVALID
from gevar.types import DataType, Format, LogicAddr, MemType, TensorDesc
from gevar.var import VarManager, VarOp
from tests.helpers.var_memory import GIB, constant, file_constant, make_desc, make_manager, place_holder

BASE = 32 * GIB


@pytest.fixture
def vm() -> VarManager:
    return make_manager(sized=False)


def _assign(vm: VarManager, name: str, desc: TensorDesc, op: VarOp | None = None) -> int:
    """Assign a variable and return its distance from the logic base."""
    addr = vm.assign_var_mem(name, VarOp(name, "Variable", (desc,)) if op is None else op, desc)
    vm.check()
    assert vm.get_var_addr(name, desc) == addr
    return addr - vm.memory_config.var_mem_logic_base


def test_the_worked_example(vm: VarManager) -> None:
    """Section 11 of the behaviour reference."""
    assert _assign(vm, "A", make_desc(24)) == 0
    assert vm.get_var_mem_size() == 1536
    assert _assign(vm, "B", make_desc(600)) == 1536
    assert vm.get_var_mem_size() == 3584
    value, desc = bytes(range(24)), make_desc(24)
    assert _assign(vm, "C1", desc, constant("C1", value, desc)) == 3584
    assert vm.get_var_mem_size() == 5120
    assert _assign(vm, "C2", desc, constant("C2", value, desc)) == 3584
    assert vm.get_var_mem_size() == 5120
    assert _assign(vm, "P", desc, place_holder("P", 20000, 24)) == 5120
    assert vm.get_var_mem_size() == 5120
    assert vm.get_var_const_place_holder_mem_size() == 1536
    assert vm.is_var_addr(34359738368)
    assert not vm.is_var_addr(34359738376)


def test_the_base_after_sizes_are_set() -> None:
    vm = make_manager()
    assert vm.assign_var_mem("A", None, make_desc(24)) == 137438953472


@pytest.mark.parametrize(
    ("size", "following"), [(0, 1024), (1, 1536), (24, 1536), (511, 1536), (512, 1536), (513, 2048), (1024, 2048)]
)
def test_block_sizes(vm: VarManager, size: int, following: int) -> None:
    assert _assign(vm, "first", make_desc(size)) == 0
    assert _assign(vm, "second", make_desc(1)) == following


def test_offsets_beyond_32_bits_are_exact(vm: VarManager) -> None:
    _assign(vm, "large", make_desc((1 << 32) + 1, shape=(1,)))
    assert _assign(vm, "small", make_desc(4)) == 4294968832


def test_the_same_request_takes_no_new_space(vm: VarManager) -> None:
    desc = make_desc(64)
    assert [_assign(vm, "v", desc) for _ in range(3)] == [0, 0, 0]
    assert vm.get_var_mem_size() == 1536


def test_a_smaller_shape_keeps_the_block_and_becomes_current(vm: VarManager) -> None:
    _assign(vm, "v", make_desc(16384, shape=(64, 256)))
    small = make_desc(256, shape=(8, 32))
    assert _assign(vm, "v", small) == 0
    assert vm.get_cur_var_desc("v") == small
    assert vm.get_var_mem_size() == 17408


def test_size_and_origin_alone_do_not_change_the_current_description(vm: VarManager) -> None:
    first = make_desc(64, shape=(8,))
    _assign(vm, "v", first)
    _assign(vm, "v", first.replace(size=32, origin_format=Format.FORMAT_NHWC))
    assert vm.get_cur_var_desc("v") == first


def test_another_format_that_fits_shares_the_block(vm: VarManager) -> None:
    nchw = make_desc(100, fmt=Format.FORMAT_NCHW)
    assert _assign(vm, "V", nchw) == 0
    assert _assign(vm, "V", make_desc(100)) == 0
    assert vm.get_cur_var_desc("V") == make_desc(100)
    assert vm.get_var_addr("V", nchw) == BASE
    assert vm.is_var_exist("V", nchw)
    assert vm.get_var_mem_size() == 1536


def test_another_format_that_does_not_fit_gets_a_block(vm: VarManager) -> None:
    nchw = make_desc(100, fmt=Format.FORMAT_NCHW)
    assert _assign(vm, "V", nchw) == 0
    assert _assign(vm, "V", make_desc(200)) == 1536
    assert vm.get_var_addr("V", nchw) == BASE
    assert vm.get_cur_var_desc("V") == make_desc(200)


def test_going_back_to_an_old_form_goes_back_to_its_block(vm: VarManager) -> None:
    nchw = make_desc(100, fmt=Format.FORMAT_NCHW)
    _assign(vm, "V", nchw)
    _assign(vm, "V", make_desc(200))
    assert _assign(vm, "V", nchw) == 0
    assert vm.get_cur_var_desc("V") == nchw
    assert _assign(vm, "V", make_desc(200)) == 1536
    assert vm.get_var_mem_size() == 3072


def test_a_third_form_is_measured_by_the_current_description(vm: VarManager) -> None:
    """GE gives it a block of its own although the first one would hold it; that is sound, so it is kept."""
    _assign(vm, "V", make_desc(64, DataType.DT_FLOAT))
    assert _assign(vm, "V", make_desc(32, DataType.DT_FLOAT16)) == 0
    assert _assign(vm, "V", make_desc(64, DataType.DT_INT32)) == 1536


def test_a_key_that_shrank_in_another_form_finds_its_block_again(vm: VarManager) -> None:
    fp32, fp16 = make_desc(64, DataType.DT_FLOAT, shape=(16,)), make_desc(32, DataType.DT_FLOAT16, shape=(16,))
    assert [_assign(vm, "w", desc) for desc in (fp32, fp16, fp32)] == [0, 0, 0]
    assert vm.get_cur_var_desc("w") == fp32
    assert vm.get_var_mem_size() == 1536


def test_a_key_that_grows_gets_a_new_block(vm: VarManager) -> None:
    small, large = make_desc(16, shape=(4,)), make_desc(16384, shape=(64, 64))
    _assign(vm, "v", small)
    assert _assign(vm, "v", large) == 1536
    assert vm.get_cur_var_desc("v") == large
    assert vm.is_var_addr(BASE)
    assert vm.get_var_mem_size() == 1536 + 17408
    assert _assign(vm, "next", small) == 1536 + 17408


def test_a_key_that_grows_moves_to_the_block_of_its_name_where_that_holds_it(vm: VarManager) -> None:
    small, other = make_desc(16, fmt=Format.FORMAT_NCHW), make_desc(4096)
    _assign(vm, "v", small)
    assert _assign(vm, "v", other) == 1536
    assert _assign(vm, "v", make_desc(1000, fmt=Format.FORMAT_NCHW)) == 1536
    assert vm.get_var_mem_size() == 1536 + 5120


def test_equal_constants_share(vm: VarManager) -> None:
    first, second = make_desc(8, DataType.DT_INT32), make_desc(8, DataType.DT_FLOAT)
    assert _assign(vm, "a", first, constant("a", b"12345678", first)) == 0
    assert _assign(vm, "b", second, constant("b", b"12345678", second)) == 0
    half = make_desc(8, DataType.DT_INT16)
    assert _assign(vm, "c", half, constant("c", b"12345678", half)) == 1536
    assert _assign(vm, "d", first, constant("d", b"12345679", first)) == 3072


def test_a_removed_twin_answers_by_its_own_name(vm: VarManager) -> None:
    desc = make_desc(4)
    _assign(vm, "kept", desc, constant("kept", b"1234", desc))
    _assign(vm, "removed", desc, constant("removed", b"1234", desc))
    assert vm.get_var_addr("removed", desc) == vm.get_var_addr("kept", desc)
    assert vm.is_var_exist("removed")
    assert vm.get_cur_var_desc("removed") == desc


def test_a_name_that_is_there_does_not_look_for_equal_weights(vm: VarManager) -> None:
    desc = make_desc(4)
    _assign(vm, "a", desc, constant("a", b"1234", desc))
    _assign(vm, "b", desc, constant("b", b"5678", desc))
    assert _assign(vm, "b", desc, constant("b", b"1234", desc)) == 1536


def test_what_a_block_was_made_for_is_what_it_shares(vm: VarManager) -> None:
    """A second form of a name lies in the block of the first; its weight is not what the block was made to hold."""
    desc, other = make_desc(4), make_desc(4, DataType.DT_UINT8)
    _assign(vm, "a", desc, constant("a", b"1234", desc))
    assert _assign(vm, "a", other, constant("a", b"9999", other)) == 0
    assert _assign(vm, "b", other, constant("b", b"9999", other)) == 1536
    assert _assign(vm, "c", desc, constant("c", b"1234", desc)) == 0


def test_a_new_block_of_a_known_name_is_found_by_its_weight(vm: VarManager) -> None:
    small, form, grown = make_desc(4), make_desc(8, DataType.DT_UINT8), make_desc(12)
    _assign(vm, "c", small, constant("c", b"1234", small))
    assert _assign(vm, "c", form, constant("c", b"12345678", form)) == 1536
    assert _assign(vm, "c", grown, constant("c", b"123456789012", grown)) == 3072
    assert _assign(vm, "d", form, constant("d", b"12345678", form)) == 1536
    assert _assign(vm, "e", grown, constant("e", b"123456789012", grown)) == 3072


def test_a_constant_without_a_weight_shares_nothing(vm: VarManager) -> None:
    desc = make_desc(4)
    assert _assign(vm, "a", desc, constant("a", None, desc)) == 0
    assert _assign(vm, "b", desc, constant("b", None, desc)) == 1536
    assert _assign(vm, "c", desc, constant("c", b"", desc)) == 3072
    assert _assign(vm, "d", desc, constant("d", b"", desc)) == 4608


def test_file_constants_share_by_place(vm: VarManager) -> None:
    desc = make_desc(64)
    assert _assign(vm, "a", desc, file_constant("a", "/w/one", 0, 64)) == 0
    assert _assign(vm, "b", desc, file_constant("b", "/w/one", 0, 64)) == 0
    assert _assign(vm, "c", desc, file_constant("c", "/w/one", 64, 64)) == 1536
    assert _assign(vm, "d", desc, file_constant("d", "/w/two", 0, 64)) == 3072


def test_no_node_no_sharing(vm: VarManager) -> None:
    desc = make_desc(4)
    _assign(vm, "a", desc, constant("a", b"1234", desc))
    assert vm.assign_var_mem("b", None, desc) == BASE + 1536
    assert vm.assign_var_mem("b", None, desc) == BASE + 1536


def test_batch_names_share_one_variable(vm: VarManager) -> None:
    for name in ("w_batch0", "w_batch1"):
        vm.set_batch_variables_key_name(name, "w")
    assert vm.has_shared_var_mem_between_batch()
    desc = make_desc(64)
    assert [_assign(vm, name, desc) for name in ("w_batch0", "w_batch1", "w")] == [0, 0, 0]
    assert list(vm.get_all_variables()) == ["w"]


def test_a_late_batch_name_hides_what_was_there(vm: VarManager) -> None:
    desc = make_desc(16)
    _assign(vm, "x", desc)
    vm.set_batch_variables_key_name("x", "y")
    assert not vm.is_var_exist("x")
    with pytest.raises(VariableError):
        vm.get_var_addr("x", desc)
    assert _assign(vm, "x", desc) == 1536
    assert vm.get_var_addr("y", desc) == BASE + 1536
    vm.set_batch_variables_key_name("y", "z")  # not followed twice
    assert vm.get_var_addr("x", desc) == BASE + 1536


@pytest.mark.parametrize("name", ["", "a/b/c:0", "变量", "x" * 10_000, "with space", "v\\q", 'new\nline "quote"'])
def test_any_name_works(vm: VarManager, name: str) -> None:
    assert _assign(vm, name, make_desc(8)) == 0
    assert vm.is_var_exist(name)
    assert vm[name].logic_addr == BASE
    with pytest.raises(VariableError) as caught:
        vm.get_var_addr(name + "?", make_desc(8))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (2, 3)])
def test_scalars_and_empty_tensors(vm: VarManager, shape: tuple[int, ...]) -> None:
    desc = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, shape, size=0 if 0 in shape else 4)
    assert _assign(vm, "v", desc) == 0
    assert _assign(vm, "w", desc) > 0


def _sized(size: int) -> TensorDesc:
    """A description whose size has nothing to do with its shape."""
    return make_desc(size, shape=(1,))


def _state(vm: VarManager) -> tuple[object, ...]:
    resource = vm._resource
    assert resource is not None
    return (
        dict(resource.records),
        dict(resource.cur_descs),
        [block.logic_addr for block in resource.blocks],
        vm.get_var_mem_size(),
        vm.get_var_const_place_holder_mem_size(),
    )


BAD_OP = VarOp("f", "FileConstant", attrs={"location": "/w", "offset": "0"})
REFUSALS: list[tuple[Callable[[VarManager], object], type[Exception], int | None]] = [
    (lambda vm: vm.assign_var_mem("n", None, make_desc(-1)), VariableError, INTERNAL_ERROR),
    (lambda vm: vm.assign_var_mem("v", None, make_desc(-512)), VariableError, INTERNAL_ERROR),
    (lambda vm: vm.assign_var_mem("n", None, _sized(1 << 40)), SizeOverflowError, INTERNAL_ERROR),
    (lambda vm: vm.assign_var_mem("n", None, _sized((1 << 63) - 1)), SizeOverflowError, INTERNAL_ERROR),
    (
        lambda vm: vm.assign_var_mem("n", None, _sized((1 << 64) - 510)),
        SizeOverflowError,
        INTERNAL_ERROR,
    ),
    (lambda vm: vm.assign_var_mem("n", place_holder("n", 0, 8), make_desc(8)), VariableError, INTERNAL_ERROR),
    (lambda vm: vm.assign_var_mem("n", None, make_desc(8), MemType.RT_MEMORY_DDR), ValueError, None),
    (lambda vm: vm.assign_var_mem("n", BAD_OP, make_desc(8)), ValueError, None),
]


@pytest.mark.parametrize(("call", "error", "status"), REFUSALS)
def test_a_refusal_changes_nothing(
    vm: VarManager, call: Callable[[VarManager], object], error: type[Exception], status: int | None
) -> None:
    _assign(vm, "v", make_desc(16))
    before = _state(vm)
    with pytest.raises(error) as caught:
        call(vm)
    assert getattr(caught.value, "status", None) == status
    assert "\n" not in str(caught.value)
    assert _state(vm) == before
    vm.check()
    assert _assign(vm, "after", make_desc(16)) == 1536


def test_before_init() -> None:
    vm = VarManager(1)
    with pytest.raises(StateError, match="session 1 is not initialised: call init") as caught:
        vm.assign_var_mem("v", None, make_desc(4))
    assert caught.value.status == PARAM_INVALID
    assert vm.get_var_mem_size() == 0


def test_addresses_are_plain_numbers(vm: VarManager) -> None:
    addr = vm.assign_var_mem("v", None, make_desc(4))
    assert addr == LogicAddr(BASE)
    assert type(addr) is int
