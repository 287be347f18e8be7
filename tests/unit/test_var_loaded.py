"""Load states of variables, and the question GE asks about them."""

import threading

import pytest

from gevar.errors import AddressError, StateError
from gevar.types import DeviceId, LogicAddr
from gevar.var import LoadState, VarManager, VarOp
from tests.helpers.var_memory import GIB, FakeMemory, make_desc, make_manager, with_inner_offset

BASE = 128 * GIB
DESC = make_desc(16)


@pytest.fixture
def vm() -> VarManager:
    vm = make_manager(FakeMemory())
    vm.assign_var_mem("c0", None, DESC)
    vm.assign_var_mem("c1", None, DESC)
    return vm


def _op(offset: int, name: str = "c", inner: int = 0) -> VarOp:
    return VarOp(name, "Constant", (with_inner_offset(DESC, inner) if inner else DESC,), (BASE + offset,))


def _ask(vm: VarManager, op: VarOp, device: int = 0) -> bool:
    return vm.check_and_set_var_loaded(op, DeviceId(device))


def test_the_first_question_says_no_and_the_second_yes(vm: VarManager) -> None:
    assert [_ask(vm, _op(0)) for _ in range(3)] == [False, True, True]
    assert _ask(vm, _op(0, "other"))


def test_each_device_has_its_own_state(vm: VarManager) -> None:
    assert not _ask(vm, _op(0), 0)
    assert not _ask(vm, _op(0), 1)
    assert _ask(vm, _op(0), 1)
    assert not _ask(vm, _op(1536), 0)


def test_the_inner_offset_is_taken_off(vm: VarManager) -> None:
    _ask(vm, _op(0))
    assert _ask(vm, _op(100, inner=100))
    assert not _ask(vm, _op(2048, inner=512))
    assert _ask(vm, _op(1536))


def test_addresses_that_are_no_start_are_never_loaded(vm: VarManager) -> None:
    for _ in range(2):
        assert not _ask(vm, _op(99999))
        assert not _ask(vm, _op(8))


def test_an_op_without_offsets_is_never_loaded(vm: VarManager) -> None:
    _ask(vm, _op(0))
    assert not _ask(vm, VarOp("none", "Constant", (DESC,)))
    assert _ask(vm, VarOp("no output", "Constant", (), (BASE,)))
    assert _ask(vm, VarOp("two", "Constant", (DESC,), (BASE, BASE + 1536)))


def test_the_name_of_the_op_does_not_count(vm: VarManager) -> None:
    assert not _ask(vm, _op(0, ""))
    assert _ask(vm, _op(0, "b"))


def test_no_op_is_a_mistake(vm: VarManager) -> None:
    with pytest.raises(ValueError, match="op is None"):
        vm.check_and_set_var_loaded(None)


def test_before_init_nothing_is_loaded() -> None:
    assert not VarManager(1).check_and_set_var_loaded(_op(0))


def test_begin_gives_a_ticket_once(vm: VarManager) -> None:
    addr = LogicAddr(BASE)
    ticket = vm.begin_var_load(addr)
    assert ticket is not None
    assert vm.get_var_load_state(addr) is LoadState.LOADING
    assert vm.get_var_load_state(addr, DeviceId(1)) is LoadState.ABSENT
    ticket.commit()
    assert vm.get_var_load_state(addr) is LoadState.LOADED
    assert vm.begin_var_load(addr) is None
    assert _ask(vm, _op(0))


def test_a_failed_load_is_absent_again(vm: VarManager) -> None:
    addr = LogicAddr(BASE)
    ticket = vm.begin_var_load(addr)
    assert ticket is not None
    with pytest.raises(OSError, match="short read"), ticket:
        raise OSError("short read")
    assert vm.get_var_load_state(addr) is LoadState.ABSENT
    assert not _ask(vm, _op(0))


def test_begin_wants_the_start_of_a_variable(vm: VarManager) -> None:
    with pytest.raises(AddressError, match="belongs to no variable"):
        vm.begin_var_load(LogicAddr(BASE + 8))
    with pytest.raises(StateError, match="not initialised"):
        VarManager(1).begin_var_load(LogicAddr(BASE))


def test_the_question_waits_for_a_load_that_is_under_way(vm: VarManager) -> None:
    addr = LogicAddr(BASE)
    ticket = vm.begin_var_load(addr)
    assert ticket is not None
    answers: list[bool] = []
    threads = [threading.Thread(target=lambda: answers.append(_ask(vm, _op(0)))) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert answers == []
    ticket.commit()
    for thread in threads:
        thread.join()
    assert answers == [True, True, True]


def test_the_question_takes_over_from_a_load_that_failed(vm: VarManager) -> None:
    ticket = vm.begin_var_load(LogicAddr(BASE))
    assert ticket is not None
    answers: list[bool] = []
    threads = [threading.Thread(target=lambda: answers.append(_ask(vm, _op(0)))) for _ in range(3)]
    for thread in threads:
        thread.start()
    ticket.abort()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [False, True, True]


def test_the_thread_that_loads_cannot_ask(vm: VarManager) -> None:
    ticket = vm.begin_var_load(LogicAddr(BASE))
    assert ticket is not None
    with pytest.raises(StateError, match="by this very thread"):
        _ask(vm, _op(0))
    with pytest.raises(StateError, match="by this very thread"):
        vm.begin_var_load(LogicAddr(BASE))
    ticket.abort()


def test_destroy_forgets_what_was_loaded(vm: VarManager) -> None:
    _ask(vm, _op(0))
    vm.destroy()
    vm.init(0, 1)
    vm.assign_var_mem("new", None, DESC)
    assert not _ask(vm, _op(0))


def test_what_is_ready_may_be_taken_back(vm: VarManager) -> None:
    one, two = DeviceId(0), DeviceId(1)
    vm.set_var_is_not_ready("w", DESC, one)  # nothing was said
    for device_id in (one, two):
        vm.set_var_is_ready("w", DESC, device_id)
    vm.set_var_is_not_ready("w", DESC, one)
    assert [vm.is_var_ready("w", DESC, device_id) for device_id in (one, two)] == [False, True]
    VarManager(7).set_var_is_not_ready("w", DESC)  # before `init`, without effect


def test_what_was_brought_is_told_until_the_memory_goes(vm: VarManager) -> None:
    addr, other, one = LogicAddr(BASE), LogicAddr(BASE + 1536), DeviceId(1)
    ticket = vm.begin_var_load(addr, one, content="file a")
    assert ticket is not None
    assert vm.get_var_content(addr, one) == ""
    ticket.commit()
    assert vm.begin_var_load(addr, one, content="file b") is None
    assert [vm.get_var_content(where, device) for where in (addr, other) for device in (one, DeviceId(0))] == [
        "file a",
        "",
        "",
        "",
    ]
    vm.free_var_memory()
    assert vm.get_var_content(addr, one) == ""


def test_what_is_ready_elsewhere_stays_so_when_memory_is_freed(vm: VarManager) -> None:
    names, one = ("own", "else", "c0"), DeviceId(1)
    for name in names:
        vm.set_var_is_ready(name, DESC, one, is_elsewhere=name != "own")
    assert [vm.is_var_ready(name, DESC, one) for name in names] == [True] * 3
    vm.free_var_memory()
    assert [vm.is_var_ready(name, DESC, one) for name in names] == [False, True, True]
    vm.renew_cur_var_desc("c0", DESC.replace(format=0))
    assert [vm.is_var_ready("c0", desc, one) for desc in (DESC, DESC.replace(format=0))] == [False, True]
    vm.free_var_memory()
    assert vm.is_var_ready("c0", DESC.replace(format=0), one)
    vm.set_var_is_not_ready("else", DESC, one)
    vm.free_var_memory()
    assert not vm.is_var_ready("else", DESC, one)
    assert not vm.is_var_ready("else", DESC)
