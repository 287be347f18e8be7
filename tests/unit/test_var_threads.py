"""Many threads on one manager."""

import gc
import random
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from gevar.types import DataType, DeviceId, Format, LogicAddr, TensorDesc
from gevar.var import LoadState, VarManager, VarOp
from tests.helpers.var_memory import (
    GIB,
    FakeExpandable,
    FakeMemory,
    constant,
    file_constant,
    make_desc,
    make_manager,
    with_init,
)

BASE = 128 * GIB


@pytest.fixture(autouse=True)
def _threads_change_often() -> Iterator[None]:
    """Let the interpreter go to another thread after a microsecond."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def _together(count: int, work: Callable[[int], object]) -> None:
    """Run `work(number)` in threads that start together; raise what the first failing one raised."""
    barrier, errors = threading.Barrier(count), list[BaseException]()

    def run(number: int) -> None:
        try:
            barrier.wait(30)
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]


def test_assignments_of_many_threads_do_not_overlap() -> None:
    vm = make_manager()
    _together(16, lambda t: [vm.assign_var_mem(f"v{t}_{n}", None, make_desc(n % 1500)) for n in range(200)])
    vm.check()
    names = vm.get_all_variables()
    assert len(names) == 3200
    assert len({vm[name].logic_addr for name in names}) == 3200
    one = make_manager()
    for t in range(16):
        for n in range(200):
            one.assign_var_mem(f"v{t}_{n}", None, make_desc(n % 1500))
    assert vm.get_var_mem_size() == one.get_var_mem_size()


def test_one_name_from_many_threads_is_one_variable() -> None:
    vm = make_manager()
    addrs: list[int] = []
    _together(8, lambda t: addrs.extend(vm.assign_var_mem(f"v{n}", None, make_desc(64)) for n in range(100)))
    assert len(set(addrs)) == 100
    assert vm.get_var_mem_size() == 100 * 1536
    vm.check()


def test_equal_weights_from_many_threads_are_one_block() -> None:
    vm, desc = make_manager(), make_desc(1000)
    weights = [bytes([n]) * 1000 for n in range(20)]
    _together(
        8, lambda t: [vm.assign_var_mem(f"c{t}_{n}", constant("c", w, desc), desc) for n, w in enumerate(weights)]
    )
    assert vm.get_var_mem_size() == 20 * 2048
    vm.check()


def test_a_block_is_allocated_and_initialised_once() -> None:
    memory = FakeMemory()
    vm = make_manager(memory)
    for n in range(50):
        vm.assign_var_mem(f"v{n}", None, with_init(make_desc(8), bytes([n]) * 8))
    found: list[tuple[int, ...]] = []

    def resolve(number: int) -> None:
        offsets = list(range(50))
        random.Random(number).shuffle(offsets)
        addrs = {n: vm.get_var_memory_addr(LogicAddr(BASE + n * 1536 + n % 8)) for n in offsets}
        found.append(tuple(addrs[n] - n % 8 for n in range(50)))

    _together(8, resolve)
    assert len(set(found)) == 1
    assert len(memory.mallocs) == memory.copies_in == 50
    vm.check()


def test_one_thread_loads_and_the_others_wait() -> None:
    vm = make_manager(FakeMemory())
    addr = vm.assign_var_mem("v", None, make_desc(8))
    loads: list[int] = []

    def load(number: int) -> None:
        ticket = vm.begin_var_load(addr)
        if ticket is not None:
            with ticket:
                vm["v"].write(bytes([number]) * 8)
                loads.append(number)
        assert vm.get_var_load_state(addr) is LoadState.LOADED
        assert vm["v"].read().tolist() == [loads[0]] * 8

    _together(8, load)
    assert len(loads) == 1


def test_a_failing_load_is_taken_over() -> None:
    vm = make_manager(FakeMemory())
    addr = vm.assign_var_mem("v", None, make_desc(8))
    tries: list[int] = []

    def load(number: int) -> None:
        while (ticket := vm.begin_var_load(addr)) is not None:
            try:
                with ticket:
                    tries.append(number)
                    if len(tries) < 5:
                        raise OSError("read failed")
            except OSError:
                continue

    _together(8, load)
    assert len(tries) == 5
    assert vm.get_var_load_state(addr) is LoadState.LOADED


def test_check_and_set_says_no_to_one_thread() -> None:
    vm = make_manager()
    addr = vm.assign_var_mem("v", None, make_desc(8))
    op = VarOp("c", "Constant", (make_desc(8),), (addr,))
    answers: list[bool] = []
    _together(8, lambda t: answers.append(vm.check_and_set_var_loaded(op)))
    assert sorted(answers) == [False] + [True] * 7


def test_freeing_beside_resolving_leaks_nothing() -> None:
    memory = FakeMemory()
    vm = make_manager(memory)
    for n in range(10):
        vm.assign_var_mem(f"v{n}", None, with_init(make_desc(8), b"12345678"))

    def work(number: int) -> None:
        if number == 0:
            for _ in range(50):
                vm.free_var_memory()
        else:
            for n in range(200):
                vm.get_var_memory_addr(LogicAddr(BASE + n % 10 * 1536), device_id=DeviceId(number % 2))

    _together(6, work)
    vm.check()
    vm.free_var_memory()
    assert memory.blocks == {}
    assert len(memory.mallocs) == len(memory.frees)
    assert vm.get_var_malloc_mem_size() == 0


def test_destroying_beside_everything_leaks_nothing() -> None:
    memory = FakeMemory()
    vm = make_manager(memory)

    def work(number: int) -> None:
        for n in range(100):
            try:
                if number == 0:
                    vm.destroy()
                    vm.init(0, 1)
                else:
                    vm.assign_var_mem(f"v{n}", None, make_desc(8))
                    vm[f"v{n}"].write(b"12345678")
            except (RuntimeError, LookupError):  # the manager was destroyed in between
                continue

    _together(4, work)
    vm.check()
    vm.destroy()
    assert memory.blocks == {}


def _descs(number: int) -> list[TensorDesc]:
    return [
        make_desc(64, DataType.DT_FLOAT, shape=(16,)),
        make_desc(32, DataType.DT_FLOAT16, shape=(16,)),
        make_desc(64 + number % 3 * 512, DataType.DT_FLOAT, Format.FORMAT_NCHW, shape=(16,)),
    ]


def _hammer(vm: VarManager, number: int) -> None:
    """What one of several clients does to variables of its own and to shared ones."""
    for n in range(40):
        for desc in _descs(number):
            vm.assign_var_mem(f"own{number}_{n}", None, desc)
        weight = bytes([n]) * 100
        vm.assign_var_mem(f"c{number}_{n}", constant("c", weight, make_desc(100)), make_desc(100))
        vm.assign_var_mem(f"f{number}_{n}", file_constant("f", "/w", n, 100), make_desc(100))
        vm.assign_var_mem(f"shared{n}", None, make_desc(200))
        vm[f"own{number}_{n}"].dev_addr(DeviceId(n % 2))
        vm[f"shared{n}"].dev_addr()
        vm[f"c{number}_{n}"].dev_addr()


def _summary(vm: VarManager, memory: FakeMemory) -> dict[str, object]:
    """What must not depend on the order of the threads."""
    names, sharing = vm.get_all_variables(), dict[int, set[str]]()
    for name in names:
        sharing.setdefault(vm[name].logic_addr, set()).add(name)
    return {
        "descriptions": names,
        "assigned": vm.get_var_mem_size(),
        "allocated": vm.get_var_malloc_mem_size(),
        "blocks": sorted((device, len(block.data)) for (device, _), block in memory.blocks.items()),
        "sharing": sorted(map(sorted, sharing.values())),
    }


def test_eight_threads_end_as_one_thread_does() -> None:
    memory, alone = FakeMemory(), FakeMemory()
    vm, single = make_manager(memory), make_manager(alone)
    _together(8, lambda number: _hammer(vm, number))
    for number in range(8):
        _hammer(single, number)
    vm.check()
    single.check()
    assert _summary(vm, memory) == _summary(single, alone)


def test_a_collection_during_an_allocation_does_not_hang() -> None:
    memory = FakeMemory()
    vm = make_manager(memory)
    vm.assign_var_mem("v", None, make_desc(8))
    vm.assign_var_mem("w", None, make_desc(8))
    finalised: list[int] = []

    class Finaliser:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            finalised.append(vm.get_var_mem_size())
            vm["w"].write(b"12345678")

    Finaliser()
    memory.on_malloc = lambda: (setattr(memory, "on_malloc", None), gc.collect())[0]
    vm["v"].write(b"12345678")
    assert finalised == [3072]
    assert len(memory.blocks) == 2


@pytest.mark.parametrize("rounds", [20])
def test_readers_beside_a_writer_find_what_is_there(rounds: int) -> None:
    """Blocks come before and between known ones while readers look up inner addresses."""
    vm = make_manager()
    resource = vm._resource
    assert resource is not None
    known = [vm.assign_var_mem(f"v{n}", None, make_desc(1000)) for n in range(50)]

    def work(number: int) -> None:
        if number == 0:
            for n in range(rounds * 50):
                vm.restore_var_mem(
                    f"r{n}", VarOp("r", "Variable", (), (BASE + 200_000 + 4096 * (997 * n % 1000),)), make_desc(8)
                )
        else:
            for n in range(rounds * 100):
                addr = known[n % 50]
                block = resource.blocks.find(addr + 500)
                assert block is None or block.logic_addr == addr
                assert resource.blocks.exact(addr) is not None

    _together(3, work)
    vm.check()


def test_a_stored_state_is_that_of_one_moment() -> None:
    vm, stop = make_manager(FakeMemory()), threading.Event()

    def store(number: int) -> None:
        if number:
            for n in range(150):
                name = f"v{number}_{n}"
                vm.assign_var_mem(name, None, make_desc(n))
                vm.set_changed_graph_id(name, n % 3)
                vm.set_trans_road(name, ())
                vm.renew_cur_var_desc(name, make_desc(n, fmt=Format.FORMAT_NHWC))
            stop.set()
            return
        while not stop.is_set():
            other = VarManager(1)
            other.var_manager_to_deserial(vm.var_manager_to_serial())
            other.check()

    _together(4, store)
    other = VarManager(1)
    other.var_manager_to_deserial(vm.var_manager_to_serial())
    assert other.get_all_variables() == vm.get_all_variables()


def test_states_are_merged_from_many_threads() -> None:
    vm, states = make_manager(), []
    for t in range(6):
        one = make_manager()
        for n in range(20):
            op = VarOp("n", "Variable", (), (BASE + (t * 20 + n) * 4096,))
            one.restore_var_mem(f"v{t}_{n}", op, make_desc(100))
        states.append(one.var_manager_to_serial())
    _together(12, lambda t: vm.var_manager_to_deserial(states[t % 6]))
    vm.check()
    assert len(vm.get_all_variables()) == 120


def test_one_graph_is_first_and_one_road_stays() -> None:
    vm, first, stored = make_manager(), list[int](), list[int]()

    def claim(number: int) -> None:
        for n in range(50):
            if vm.set_allocated_graph_id(f"v{n}", number):
                first.append(n)
            if vm.set_trans_road(f"v{n}", ()):
                stored.append(n)
            vm.set_changed_graph_id(f"v{n}", number)

    _together(8, claim)
    assert sorted(first) == sorted(stored) == list(range(50))
    assert sum(len(vm.get_changed_var_names(graph_id)) for graph_id in range(8)) == 50
    vm.check()


def test_each_block_counts_once_for_each_graph() -> None:
    vm = make_manager(FakeMemory())
    for n in range(40):
        vm.assign_var_mem(f"v{n}", None, make_desc(100))

    def ask(number: int) -> None:
        for n in range(40):
            for inner in (0, 1, 99):
                vm.get_var_memory_addr(LogicAddr(BASE + 1536 * n + inner), graph_name=f"g{number % 4}")

    _together(8, ask)
    counts = vm.get_graph_var_mem_statistics()
    assert {name: one.alloc_size + one.shared_size for name, one in counts.items()} == dict.fromkeys(
        ("g0", "g1", "g2", "g3"), 40 * 1536
    )
    assert sum(one.alloc_size for one in counts.values()) == vm.get_var_malloc_mem_size() == 40 * 1536


def test_memory_that_grows_is_used_and_given_back_by_many_threads() -> None:
    memory = FakeMemory()
    vm = make_manager(memory)
    for n in range(30):
        vm.assign_var_mem(f"v{n}", None, with_init(make_desc(8), bytes([n]) * 8))
    growing = [FakeExpandable(memory, capacity=20 * 1536) for _ in range(20)]

    def work(number: int) -> None:
        for turn in range(20):
            if number == 0:
                vm.init_expandable_memory_allocator(growing[turn])
                vm.free_var_memory()
            else:
                vm.get_var_memory_addr(LogicAddr(BASE + 1536 * ((number * 7 + turn) % 30)))

    _together(6, work)
    vm.check()
    for n in range(30):
        assert vm[f"v{n}"].read().tobytes() == bytes([n]) * 8
    vm.free_var_memory()
    assert memory.blocks == {}


def test_a_variable_is_found_by_name_while_it_is_renewed() -> None:
    vm = make_manager(FakeMemory())
    vm.assign_var_mem("v", None, make_desc(8))
    vm["v"].write(b"12345678")

    def work(number: int) -> None:
        for turn in range(300):
            if number == 0:
                fmt = (Format.FORMAT_NHWC, Format.FORMAT_NCHW, Format.FORMAT_ND)[turn % 3]
                vm.renew_cur_var_desc("v", make_desc(8, fmt=fmt))
            else:
                assert vm["v"].logic_addr == BASE
                assert vm["v"].read().tobytes() == b"12345678"

    _together(4, work)
    vm.check()
