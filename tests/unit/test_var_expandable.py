"""Variables in memory that grows: when it is used, when not any more, and who gives what back."""

import logging
import threading

import pytest

from gevar.errors import AclError, OutOfMemoryError, StateError
from gevar.types import DevAddr, DeviceId, LogicAddr, MemType
from gevar.var import VarManager
from tests.helpers.var_memory import GIB, FakeExpandable, FakeMemory, make_desc, make_manager, with_init

BASE = 128 * GIB
D0, D1 = DeviceId(0), DeviceId(1)
HBM = MemType.RT_MEMORY_HBM


@pytest.fixture
def memory() -> FakeMemory:
    return FakeMemory()


@pytest.fixture
def vm(memory: FakeMemory) -> VarManager:
    vm = make_manager(memory)
    vm.assign_var_mem("a", None, make_desc(512))
    vm.assign_var_mem("b", None, make_desc(2048))
    vm.assign_var_mem("c", None, make_desc(1))
    return vm


def _resolve(vm: VarManager, offset: int = 0, device: DeviceId = D0) -> DevAddr:
    return vm.get_var_memory_addr(LogicAddr(BASE + offset), HBM, device)


def _in(grows: FakeExpandable, addr: int) -> bool:
    return addr - 512 in grows.live


def test_it_is_set_up_for_the_session_alone(vm: VarManager, memory: FakeMemory) -> None:
    grows = FakeExpandable(memory)
    assert not vm.init_expandable_memory_allocator(None)
    assert not vm.init_expandable_memory_allocator(FakeExpandable(memory, supported=False))
    assert vm.init_expandable_memory_allocator(grows)
    assert grows.settings == [("reuse", False), ("share_phy_allocator", False)]
    second = FakeExpandable(memory)
    assert not vm.init_expandable_memory_allocator(second)
    assert second.settings == []


def test_variables_lie_in_it_one_after_the_other(vm: VarManager, memory: FakeMemory) -> None:
    grows = FakeExpandable(memory)
    vm.init_expandable_memory_allocator(grows)
    first = _resolve(vm)
    assert _in(grows, first)
    assert _resolve(vm, 10) == first + 10
    assert _resolve(vm, 1536) == first + 1536
    assert grows.mallocs == [("a", 1536, True), ("b", 3072, True)]
    assert memory.mallocs == []
    assert vm.get_var_malloc_mem_size() == 4608
    vm.check()


def test_it_may_come_before_init(memory: FakeMemory) -> None:
    vm, grows = VarManager(1), FakeExpandable(memory)
    assert vm.init_expandable_memory_allocator(grows)
    vm.init(0, 1)
    vm.set_mem_manager(memory)
    addr = vm.assign_var_mem("v", None, make_desc(4))
    assert _in(grows, vm.get_var_memory_addr(addr))
    vm.free_var_memory()


def test_freeing_gives_all_of_it_back_at_once_and_ends_it(vm: VarManager, memory: FakeMemory) -> None:
    grows = FakeExpandable(memory)
    vm.init_expandable_memory_allocator(grows)
    _resolve(vm)
    _resolve(vm, 1536)
    vm.free_var_memory()
    assert (grows.frees, grows.live, memory.frees, memory.blocks) == (1, [], [], {})
    assert vm.get_var_malloc_mem_size() == 0
    _resolve(vm)
    assert memory.mallocs == [(HBM, 1536, 0)]
    assert vm.init_expandable_memory_allocator(grows)
    assert _in(grows, _resolve(vm, 1536))
    vm.free_var_memory()
    assert (grows.frees, memory.blocks) == (2, {})


def test_it_is_given_back_even_when_nothing_was_taken(vm: VarManager, memory: FakeMemory) -> None:
    grows = FakeExpandable(memory)
    vm.init_expandable_memory_allocator(grows)
    vm.destroy()
    assert grows.frees == 1


@pytest.mark.parametrize("mode", ["0", "2"])
def test_when_it_is_full_variables_get_plain_memory(
    vm: VarManager, memory: FakeMemory, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    vm.set_options({"ge.variableUse1gHugePage": mode})
    grows = FakeExpandable(memory, capacity=3000)
    vm.init_expandable_memory_allocator(grows)
    assert _in(grows, _resolve(vm))
    with caplog.at_level(logging.WARNING, "gevar.var"):
        second = _resolve(vm, 1536)
    assert "device 0: variables get plain memory from now on" in caplog.text
    assert not _in(grows, second)
    assert not _in(grows, _resolve(vm, 4608))  # it would have had room, but is not asked again
    assert len(grows.mallocs) == 2
    assert vm.get_var_malloc_mem_size() == 6144
    vm.check()
    vm.free_var_memory()
    assert sorted(memory.frees) == sorted((HBM, second - 512 + at, 0) for at in (0, 3072 + 4096))
    assert (grows.frees, memory.blocks) == (1, {})


def test_after_it_was_given_up_another_one_can_be_set(vm: VarManager, memory: FakeMemory) -> None:
    full, fresh = FakeExpandable(memory, capacity=0), FakeExpandable(memory)
    vm.init_expandable_memory_allocator(full)
    _resolve(vm)
    assert vm.init_expandable_memory_allocator(fresh)
    assert _in(fresh, _resolve(vm, 1536))
    vm.free_var_memory()
    assert (full.frees, fresh.frees, memory.blocks) == (1, 1, {})


def test_pages_of_1_gib_only_means_no_plain_memory(vm: VarManager, memory: FakeMemory) -> None:
    vm.set_options({"ge.variableUse1gHugePage": "1"})
    grows = FakeExpandable(memory, capacity=2000)
    vm.init_expandable_memory_allocator(grows)
    first = _resolve(vm)
    for _ in range(2):
        with pytest.raises(OutOfMemoryError):
            _resolve(vm, 1536)
    assert len(grows.mallocs) == 3
    assert _resolve(vm) == first
    assert vm.get_var_malloc_mem_size() == 1536
    vm.free_var_memory()
    with pytest.raises(StateError, match=r"ge\.variableUse1gHugePage is 1 and device 0 has no memory that grows"):
        _resolve(vm)
    assert memory.mallocs == []
    vm.set_options({"ge.variableUse1gHugePage": "2"})
    _resolve(vm)
    assert memory.mallocs == [(HBM, 1536, 0)]


def test_the_options_hold_for_every_thread(vm: VarManager) -> None:
    vm.set_options({"ge.variableUse1gHugePage": "1"})
    errors: list[BaseException] = []

    def resolve() -> None:
        try:
            _resolve(vm)
        except StateError as error:
            errors.append(error)

    thread = threading.Thread(target=resolve)
    thread.start()
    thread.join(30)
    assert len(errors) == 1


def test_another_device_gets_memory_of_its_own(vm: VarManager, memory: FakeMemory) -> None:
    grows = FakeExpandable(memory)
    vm.init_expandable_memory_allocator(grows)
    _resolve(vm, 0, D1)
    assert memory.mallocs == [(HBM, 1536, 1)]
    other = FakeExpandable(memory, device_id=D1)
    assert vm.init_expandable_memory_allocator(other, D1)
    assert _in(other, _resolve(vm, 1536, D1))
    assert _in(grows, _resolve(vm, 1536))
    vm.free_var_memory()
    assert (grows.frees, other.frees, memory.blocks) == (1, 1, {})


def test_initial_values_are_laid_down_in_it(vm: VarManager, memory: FakeMemory) -> None:
    grows = FakeExpandable(memory)
    vm.init_expandable_memory_allocator(grows)
    addr = vm.assign_var_mem("i", None, with_init(make_desc(4), b"abcd"))
    assert _in(grows, vm.get_var_memory_addr(LogicAddr(addr + 2)) - 2)
    assert vm["i"].read().tobytes() == b"abcd"


def test_a_piece_whose_copy_failed_is_used_again(vm: VarManager, memory: FakeMemory) -> None:
    grows = FakeExpandable(memory)
    vm.init_expandable_memory_allocator(grows)
    addr = vm.assign_var_mem("i", None, with_init(make_desc(4), b"abcd"))
    for _ in range(3):
        memory.fail_at = memory.calls + 1
        with pytest.raises(AclError, match="507899") as caught:
            vm.get_var_memory_addr(addr)
        assert "4 B of variable i_2_2 on device 0" in caught.value.__notes__[0]
        assert vm.get_var_malloc_mem_size() == 0
    got = vm.get_var_memory_addr(addr)
    assert len(grows.mallocs) == 1
    assert _in(grows, got)
    assert vm["i"].read().tobytes() == b"abcd"
    assert _resolve(vm) != got
    vm.free_var_memory()
    assert memory.blocks == {}


def test_a_failed_copy_does_not_mean_that_it_is_full(vm: VarManager, memory: FakeMemory) -> None:
    grows = FakeExpandable(memory)
    vm.init_expandable_memory_allocator(grows)
    addr = vm.assign_var_mem("i", None, with_init(make_desc(4), b"abcd"))
    memory.fail_at = memory.calls + 1
    with pytest.raises(AclError):
        vm.get_var_memory_addr(addr)
    assert _in(grows, _resolve(vm))
    assert memory.mallocs == []


def test_failures_to_give_back_are_raised_after_everything_was_tried(vm: VarManager, memory: FakeMemory) -> None:
    class Stubborn(FakeExpandable):
        def free_memory(self) -> None:
            super().free_memory()
            raise AclError(507899, "free_memory", {})

    grows = Stubborn(memory, capacity=1536)
    vm.init_expandable_memory_allocator(grows)
    _resolve(vm)
    _resolve(vm, 1536)
    with pytest.raises(AclError, match="free_memory"):
        vm.free_var_memory()
    assert memory.blocks == {}
    _resolve(vm)
    vm.free_var_memory()
    assert grows.frees == 1


def test_freeing_waits_for_a_piece_that_is_being_filled(vm: VarManager, memory: FakeMemory) -> None:
    grows, filling, go_on = FakeExpandable(memory), threading.Event(), threading.Event()
    vm.init_expandable_memory_allocator(grows)
    addr = vm.assign_var_mem("i", None, with_init(make_desc(4), b"abcd"))
    copy, found = memory.memcpy_in, list[int]()

    def slow_copy(*args: object) -> None:
        if not filling.is_set():  # the second copy goes to plain memory
            filling.set()
            assert go_on.wait(30)
            assert grows.live  # nothing is given back under the copy
        copy(*args)  # type: ignore[arg-type]

    memory.memcpy_in = slow_copy  # type: ignore[method-assign]
    worker = threading.Thread(target=lambda: found.append(vm.get_var_memory_addr(addr)))
    worker.start()
    assert filling.wait(30)
    freer = threading.Thread(target=vm.free_var_memory)
    freer.start()
    go_on.set()
    for thread in (freer, worker):
        thread.join(30)
        assert not thread.is_alive()
    assert grows.frees == 1
    assert found
    assert vm["i"].read().tobytes() == b"abcd"  # in plain memory now: it was taken again after the freeing
    vm.check()
    vm.free_var_memory()
    assert memory.blocks == {}


def test_whatever_call_fails_nothing_is_lost(memory: FakeMemory) -> None:
    """Fail the first call, the second, ... until all pass: each time what was got goes back, and a new try succeeds."""
    number, done = 0, False
    while not done:
        number += 1
        vm, grows = make_manager(memory), FakeExpandable(memory, capacity=2 * 1536)
        vm.init_expandable_memory_allocator(grows)
        for n in range(4):
            vm.assign_var_mem(f"i{n}", None, with_init(make_desc(4), bytes([n]) * 4))
        memory.fail_at = memory.calls + number
        try:
            for n in range(4):
                vm[f"i{n}"].dev_addr()
            done = True
        except AclError:
            vm.check()
        memory.fail_at = 0
        for n in range(4):
            assert vm[f"i{n}"].read().tobytes() == bytes([n]) * 4
        vm.check()
        vm.destroy()
        assert memory.blocks == {}
    assert number == 7  # two copies into memory that grows; allocation and copy of two plain blocks


@pytest.mark.parametrize("capacity", [None, 1 << 20, 5000])
def test_results_do_not_depend_on_where_memory_comes_from(capacity: int | None) -> None:
    """Addresses and values of a script are those without memory that grows, also where that ends half-way."""

    def script(grows: bool) -> list[object]:
        memory = FakeMemory()
        vm = make_manager(memory)
        if grows:
            vm.init_expandable_memory_allocator(FakeExpandable(memory, capacity=capacity or 0))
        results: list[object] = []
        for n in range(8):
            results.append(vm.assign_var_mem(f"v{n}", None, with_init(make_desc(100 * n + 8), bytes([n]) * 8)))
            vm[f"v{n}"].dev_addr()
            results.append(vm[f"v{n}"].read().tobytes()[:8])
            vm[f"v{n}"].write(bytes([n + 1]) * (100 * n + 8))
            results.append(vm.assign_var_mem(f"v{n // 2}", None, make_desc(300 * n)))
        results += [vm[f"v{n}"].read().tobytes() for n in range(4, 8)]
        results += [vm.get_var_mem_size(), vm.get_var_malloc_mem_size()]
        vm.check()
        vm.free_var_memory()
        assert memory.blocks == {}
        return results

    assert script(grows=capacity is not None) == script(grows=False)
