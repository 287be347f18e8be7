"""What cannot be is refused by one class of error that says names and numbers, and changes nothing."""

from collections.abc import Callable

import pytest

from gevar.errors import FormatError, GevarError, SizeOverflowError, StateError, VariableError
from gevar.status import INTERNAL_ERROR, PARAM_INVALID
from gevar.types import DataType, Format, LogicAddr, MemType, TensorDesc
from gevar.var import TransNodeInfo, VarManager, VarManagerPool, VarOp
from tests.helpers.var_memory import GIB, FakeMemory, make_desc, make_manager, place_holder
from tests.helpers.var_states import state_bytes

BASE = LogicAddr(128 * GIB)
HUGE = [1 << 63, (1 << 64) - 1]
AT = VarOp("v", "Variable", (), (LogicAddr(BASE + 4096),))
Call = Callable[[VarManager, TensorDesc], object]


@pytest.fixture
def vm() -> VarManager:
    made = make_manager(FakeMemory())
    made.assign_var_mem("known", None, make_desc(16))
    return made


def sized(size: int) -> TensorDesc:
    return TensorDesc(DataType.DT_INT8, Format.FORMAT_ND, (4,), size=size)


def refuse(vm: VarManager, call: Callable[[], object], error: type[Exception]) -> Exception:
    """Return what a call raises; the state stays, and everything goes on."""
    before = state_bytes(vm)
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert "\n" not in str(caught.value)
    assert state_bytes(vm) == before
    vm.check()
    assert vm.get_var_addr("known", make_desc(16)) == BASE
    return caught.value


REGISTER: dict[str, tuple[Call, type[Exception]]] = {
    "assign": (lambda vm, desc: vm.assign_var_mem("v", None, desc), SizeOverflowError),
    "assign many": (lambda vm, desc: vm.assign_many([("u", None, make_desc(8)), ("v", None, desc)]), SizeOverflowError),
    "restore": (
        lambda vm, desc: vm.restore_var_mem("v", AT, desc),
        VariableError,
    ),
    "set address": (lambda vm, desc: vm.set_var_addr("v", desc, BASE), SizeOverflowError),
    "stage": (lambda vm, desc: vm.record_staged_var_desc(1, "v", desc), SizeOverflowError),
    "road in": (lambda vm, desc: vm.set_trans_road("v", [TransNodeInfo("Cast", desc, sized(1))]), SizeOverflowError),
    "road out": (lambda vm, desc: vm.set_trans_road("v", [TransNodeInfo("Cast", sized(1), desc)]), SizeOverflowError),
}


@pytest.mark.parametrize("size", HUGE)
@pytest.mark.parametrize("name", REGISTER)
def test_sizes_above_63_bits(vm: VarManager, name: str, size: int) -> None:
    call, error = REGISTER[name]
    raised = refuse(vm, lambda: call(vm, sized(size)), error)
    assert str(size) in str(raised)
    assert isinstance(raised, GevarError)
    assert raised.status in (INTERNAL_ERROR, PARAM_INVALID)


@pytest.mark.parametrize("size", [-1, -512, -(1 << 63)])
@pytest.mark.parametrize("name", ["assign", "assign many", "restore"])
def test_negative_sizes(vm: VarManager, name: str, size: int) -> None:
    raised = refuse(vm, lambda: REGISTER[name][0](vm, sized(size)), VariableError)
    assert f"its size is {size} B" in str(raised)


def test_the_largest_size_is_kept_where_no_memory_is_asked_for(vm: VarManager) -> None:
    vm.set_var_addr("v", sized((1 << 63) - 1), BASE)
    again = VarManager(1)
    again.var_manager_to_deserial(vm.var_manager_to_serial())
    assert again.get_cur_var_desc("v").size == (1 << 63) - 1


@pytest.mark.parametrize("shape", [(-1, 3), (-2,), (0, -1), (-1, 0)])
def test_unknown_dimensions_register_but_have_no_value(vm: VarManager, shape: tuple[int, ...]) -> None:
    desc = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, shape, size=16)
    vm.assign_var_mem("v", None, desc)
    for call in (lambda: vm["v"].read(), lambda: vm["v"].write(b"")):
        raised = refuse(vm, call, FormatError)
        assert "unknown shape" in str(raised)
        assert str(shape) in str(raised)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,) * 12])
def test_scalars_and_empty_tensors_register_store_and_come_back(vm: VarManager, shape: tuple[int, ...]) -> None:
    desc = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, shape, size=0 if 0 in shape else 4)
    addr = vm.assign_var_mem("v", None, desc)
    vm["v"].write(bytes(desc.size))
    assert vm["v"].read().shape == shape
    again = VarManager(1)
    again.var_manager_to_deserial(vm.var_manager_to_serial())
    assert again["v"].desc == desc
    assert again["v"].logic_addr == addr
    restored = make_manager()
    restored.restore_var_mem("v", VarOp("v", "Variable", (), (BASE,)), desc)
    assert restored["v"].logic_addr == BASE


@pytest.mark.parametrize("dtype", [DataType.DT_UNDEFINED, DataType.from_number(43), DataType.from_number(-7)])
def test_unknown_types_register_but_have_no_value(vm: VarManager, dtype: DataType) -> None:
    vm.assign_var_mem("v", None, TensorDesc(dtype, Format.FORMAT_ND, (4,), size=16))
    assert "DT_UNDEFINED" in str(refuse(vm, lambda: vm["v"].read(), FormatError))


@pytest.mark.parametrize("fmt", [Format.FORMAT_RESERVED, 55, 255, 0x0FFFFFFF])
def test_unknown_formats_register_but_have_no_value(vm: VarManager, fmt: int) -> None:
    desc = TensorDesc(DataType.DT_FLOAT, fmt, (4,), size=16)
    vm.assign_var_mem("v", None, desc)
    assert f"({int(fmt)})" in str(refuse(vm, lambda: vm["v"].read(), FormatError))
    again = VarManager(1)
    again.var_manager_to_deserial(vm.var_manager_to_serial())
    assert again["v"].desc == desc


def test_a_format_of_more_than_32_bits_is_no_format() -> None:
    with pytest.raises(ValueError, match="format is 4294967296; give a value of 32 bits"):
        TensorDesc(DataType.DT_FLOAT, 1 << 32, (4,))


@pytest.mark.parametrize("session_id", [-1, 1 << 64])
def test_a_session_id_is_a_number_of_64_bits(session_id: int) -> None:
    pool = VarManagerPool()
    with pytest.raises(ValueError, match=f"session_id is {session_id}: give a number in 0..18446744073709551615"):
        pool.get_var_manager(session_id)
    assert "of 0 sessions" in repr(pool)
    assert pool.get_var_manager(session_id % (1 << 64)).session_id == session_id % (1 << 64)


NAMES = ["", " ", "a/b/c:0", "a\\b", "变量.权重", 'new\nline "quote"', "w12_", "v2_0", "x" * 10_000, "nul\0byte"]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_goes_everywhere(vm: VarManager, name: str) -> None:
    desc = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (4,), size=16)
    vm.assign_var_mem(name, None, desc)
    vm.set_changed_graph_id(name, 3)
    vm.set_allocated_graph_id(name, 2)
    vm.record_staged_var_desc(3, name, desc)
    vm[name].write(bytes(range(16)))
    assert repr(name) in repr(vm[name])
    assert "fresh, it has new space" in vm.explain(name)
    assert "\n" not in vm.explain(name)
    assert name in {row.name for row in vm.table()}
    again = VarManager(1)
    again.var_manager_to_deserial(vm.var_manager_to_serial())
    again.check()
    assert again.get_all_variables() == vm.get_all_variables()
    assert again.get_changed_var_names(3) == {name}
    assert again.get_staged_var_descs(3) == {name: desc}
    assert "\n" not in str(refuse(vm, lambda: vm.get_var_addr(f"{name}?", desc), VariableError))


@pytest.mark.parametrize("kind", [-1, 1, 5, 77, int(MemType.RT_MEMORY_RESERVED)])
def test_numbers_that_are_no_kind_of_memory(vm: VarManager, kind: int) -> None:
    for call in (
        lambda: vm.assign_var_mem("v", None, sized(8), kind),  # type: ignore[arg-type]
        lambda: vm.restore_var_mem("v", AT, sized(8), kind),  # type: ignore[arg-type]
        lambda: vm.set_var_addr("v", sized(8), BASE, kind),  # type: ignore[arg-type]
    ):
        assert str(int(kind)) in str(refuse(vm, call, ValueError))


@pytest.mark.parametrize("addr", [1 << 63, (1 << 64) - 4096, -4096])
def test_place_holders_have_unsigned_addresses(vm: VarManager, addr: int) -> None:
    """An attribute is signed; the address is not."""
    signed = addr - (1 << 64) if addr >= 1 << 63 else addr
    found = vm.assign_var_mem("p", place_holder("p", signed, 64), make_desc(64))
    assert vm.get_var_memory_addr(found) == addr % (1 << 64)
    assert vm.get_var_memory_addr(LogicAddr(found + 63)) == addr % (1 << 64) + 63


def test_a_place_holder_does_not_wrap(vm: VarManager) -> None:
    op = place_holder("p", -32, 64)
    raised = refuse(vm, lambda: vm.assign_var_mem("p", op, make_desc(64)), VariableError)
    assert "addr is 18446744073709551584, size 64 B" in str(raised)


def test_a_truth_value_is_no_integer(vm: VarManager) -> None:
    op = place_holder("p", 4096, 64)
    wrong = VarOp("p", "ConstPlaceHolder", op.output_desc, attrs={**op.attrs, "placement": True})
    assert "placement is True" in str(refuse(vm, lambda: vm.assign_var_mem("p", wrong, make_desc(64)), VariableError))


BEFORE_INIT: dict[str, Callable[[VarManager], object]] = {
    "assign": lambda vm: vm.assign_var_mem("v", None, sized(4)),
    "assign many": lambda vm: vm.assign_many([("v", None, sized(4))]),
    "restore": lambda vm: vm.restore_var_mem("v", None, sized(4)),
    "set address": lambda vm: vm.set_var_addr("v", sized(4), BASE),
    "address": lambda vm: vm.get_var_addr("v", sized(4)),
    "addresses": lambda vm: vm.get_var_addr_many(["v"], [sized(4)]),
    "description": lambda vm: vm.get_cur_var_desc("v"),
    "renew": lambda vm: vm.renew_cur_var_desc("v", sized(4)),
    "road": lambda vm: vm.set_trans_road("v", ()),
    "graph": lambda vm: vm.set_changed_graph_id("v", 1),
    "first graph": lambda vm: vm.set_allocated_graph_id("v", 1),
    "stage": lambda vm: vm.record_staged_var_desc(1, "v", sized(4)),
    "all": lambda vm: vm.get_all_variables(),
    "store": lambda vm: vm.var_manager_to_serial(),
    "store descriptions": lambda vm: vm.var_desc_info_to_serial(),
    "memory": lambda vm: vm.get_var_memory_addr(BASE),
    "value": lambda vm: vm["v"].read(),
    "explain": lambda vm: vm.explain("v"),
    "table": lambda vm: vm.table(),
    "savings": lambda vm: vm.savings(),
}


@pytest.mark.parametrize("name", BEFORE_INIT)
@pytest.mark.parametrize("destroyed", [False, True])
def test_before_init_and_after_destroy(name: str, destroyed: bool) -> None:
    vm = VarManager(7)
    vm.set_mem_manager(FakeMemory())
    if destroyed:
        vm.init(0, 7)
        vm.assign_var_mem("v", None, sized(4))
        vm.destroy()
    closed = "; it was closed, and its variables are gone" if destroyed else ""
    with pytest.raises(StateError, match=f"session 7 is not initialised: call init{closed}$"):
        BEFORE_INIT[name](vm)
    vm.check()
    assert not vm.is_var_exist("v")
    assert "not initialised" in repr(vm)
