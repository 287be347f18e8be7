"""Several calls to a manager that happen as one or not at all."""

import threading
from collections.abc import Callable

import pytest

from gevar.errors import StateError
from gevar.status import PARAM_INVALID
from gevar.types import DevAddr, DeviceId, Format, LogicAddr, MemType
from gevar.var import LoadState, TransNodeInfo, VarManager, VarOp
from tests.helpers.var_memory import (
    FakeExpandable,
    FakeMemory,
    constant,
    file_constant,
    make_desc,
    make_manager,
    place_holder,
)
from tests.helpers.var_states import BASE, INFO, NC1HWC0, NCHW, WEIGHT, full_manager, state_bytes


class Stop(Exception):
    pass


def fail(vm: VarManager, change: Callable[[VarManager], None]) -> None:
    """Change a manager in a block that fails."""

    def block() -> None:
        with vm.transaction():
            change(vm)
            raise Stop

    with pytest.raises(Stop):
        block()


def change_everything(vm: VarManager) -> None:
    """Change every table of a full manager."""
    vm.assign_var_mem("new", None, make_desc(600))
    vm.assign_var_mem("v", None, NCHW.replace(size=4096))
    vm.assign_var_mem("c2", constant("c2", WEIGHT, make_desc(4)), make_desc(4))
    vm.assign_var_mem("c3", constant("c3", b"other", make_desc(5)), make_desc(5))
    vm.assign_var_mem("c4", constant("c4", WEIGHT, make_desc(4)), make_desc(400))
    vm.assign_var_mem("f2", file_constant("f2", "/w/a", 16, 4), make_desc(400))
    vm.assign_var_mem("f3", file_constant("f3", "/w/b", 0, 4), make_desc(4))
    vm.assign_var_mem("p2", place_holder("p2", 1 << 40, 32), make_desc(16))
    vm.assign_var_mem("rdma", None, make_desc(100), MemType.RT_MEMORY_RDMA_HBM)
    vm.restore_var_mem("r2", VarOp("r2", "Variable", (), (BASE + (1 << 20),)), make_desc(100))
    vm.set_var_addr("name", make_desc(8), LogicAddr(54321))
    vm.renew_cur_var_desc("c", make_desc(4, fmt=Format.FORMAT_NHWC))
    vm.set_batch_variables_key_name("vb2", "v")
    vm.set_trans_road("c", (TransNodeInfo("Cast", NCHW, NC1HWC0),))
    vm.set_changed_graph_id("v", 9)
    vm.set_changed_graph_id("c", 2)
    vm.set_allocated_graph_id("c", 4)
    vm.save_broad_cast_info(1, INFO)
    vm.save_broad_cast_info(7, INFO)
    vm.record_staged_var_desc(3, "v", NC1HWC0)
    vm.record_staged_var_desc(4, "v", NCHW)
    vm.set_var_is_ready("c", make_desc(4))


def seen(vm: VarManager) -> tuple[object, ...]:
    """What a manager shows of itself."""
    staged = [vm.get_staged_var_descs(graph_id) for graph_id in range(8)]
    changed = [vm.get_changed_var_names(graph_id) for graph_id in range(10)]
    broad_casts = [vm.get_broad_cast_info(graph_id, INFO.var_name) for graph_id in range(8)]
    ready = [vm.is_var_ready(name, desc) for name, desc in (("v", NC1HWC0), ("c", make_desc(4)))]
    sizes = [vm.get_var_mem_size(kind) for kind in (MemType.RT_MEMORY_HBM, MemType.RT_MEMORY_RDMA_HBM)]
    tables = (vm.table(), vm.savings(), state_bytes(vm), vm.get_all_variables())
    return (*tables, staged, changed, broad_casts, ready, sizes, vm.get_var_const_place_holder_mem_size())


def test_what_a_failed_block_did_is_taken_back() -> None:
    vm = full_manager(FakeMemory(rdma_room=1 << 20))
    before = seen(vm)
    changed = []
    fail(vm, lambda vm: (change_everything(vm), changed.append(seen(vm))))
    assert changed[0] != before
    assert seen(vm) == before
    vm.check()


def test_a_manager_goes_on_after_a_failed_block_as_if_there_had_been_none() -> None:
    tried, plain = (full_manager(FakeMemory(rdma_room=1 << 20)) for _ in range(2))
    fail(tried, change_everything)
    for vm in (tried, plain):
        for name in ("c5", "c6"):  # equal weights share, the larger one has a block of its own
            vm.assign_var_mem(name, constant(name, WEIGHT, make_desc(4)), make_desc(400))
        vm.assign_var_mem("f4", file_constant("f4", "/w/b", 0, 4), make_desc(4))
        vm.assign_var_mem("last", None, make_desc(1))
        vm.check()
    assert seen(tried) == seen(plain)


def test_a_block_that_ends_well_keeps_what_it_did() -> None:
    in_block, plain = (full_manager(FakeMemory(rdma_room=1 << 20)) for _ in range(2))
    with in_block.transaction():
        change_everything(in_block)
    change_everything(plain)
    hbm = [[row for row in vm.table() if row.mem_type == MemType.RT_MEMORY_HBM] for vm in (in_block, plain)]
    assert [(row.key, row.logic_addr) for row in hbm[0]] == [(row.key, row.logic_addr) for row in hbm[1]]
    in_block.check()


def test_an_inner_block_can_fail_alone() -> None:
    vm = make_manager(FakeMemory())
    with vm.transaction():
        vm.assign_var_mem("a", None, make_desc(8))
        fail(vm, lambda vm: vm.assign_var_mem("b", None, make_desc(8)))
        vm.assign_var_mem("c", None, make_desc(8))
    assert [vm.is_var_exist(name) for name in "abc"] == [True, False, True]


def test_a_manager_without_tables_has_no_blocks() -> None:
    with pytest.raises(StateError) as caught, VarManager(1).transaction():
        pytest.fail("the block began")
    assert caught.value.status == PARAM_INVALID


def test_other_writers_wait_for_the_end_of_a_block() -> None:
    vm = make_manager(FakeMemory())
    began, order = threading.Event(), []

    def write() -> None:
        began.set()
        vm.assign_var_mem("b", None, make_desc(8))
        order.append("other")

    other = threading.Thread(target=write)

    def block(vm: VarManager) -> None:
        other.start()
        began.wait()
        vm.assign_var_mem("a", None, make_desc(8))
        order.append("block")

    fail(vm, block)
    other.join()
    assert order == ["block", "other"]
    assert [vm.is_var_exist(name) for name in "ab"] == [False, True]
    vm.check()


# -- device memory


def test_memory_that_was_got_in_a_block_that_fails_goes_back() -> None:
    memory = FakeMemory()
    vm = make_manager(memory)
    for name in ("old", "new", "other"):
        vm.assign_var_mem(name, None, make_desc(8))
    old, new, other = (vm[name].logic_addr for name in ("old", "new", "other"))
    vm.write_var_memory(old, b"12345678")
    bytes_before, freed = vm.get_var_malloc_mem_size(), len(memory.frees)

    def get(logic_addrs: set[LogicAddr] | None) -> None:
        with vm.memory_transaction(logic_addrs):
            for addr in (new, other):
                vm.write_var_memory(addr, b"87654321")
                assert not vm.check_and_set_var_loaded(VarOp("n", "Variable", (), (addr,)))
            vm.write_var_memory(old, b"abcdefgh")
            raise Stop

    with pytest.raises(Stop):
        get(None)
    assert len(memory.frees) == freed + 2
    assert vm.get_var_malloc_mem_size() == bytes_before
    assert [vm.get_var_load_state(addr) for addr in (new, other)] == [LoadState.ABSENT] * 2
    assert vm["old"].read().tobytes() == b"abcdefgh"
    with pytest.raises(Stop):
        get({new})
    assert [vm.get_var_mgr_info(addr) is None for addr in (old, new, other)] == [False, True, False]
    vm.check()
    vm.write_var_memory(new, b"87654321")
    assert vm["new"].read().tobytes() == b"87654321"


def test_memory_that_cannot_go_back_is_told() -> None:
    memory = FakeMemory()
    vm = make_manager(memory)
    vm.assign_var_mem("v", None, make_desc(8))

    def get() -> None:
        with vm.memory_transaction():
            vm.write_var_memory(vm["v"].logic_addr, b"12345678")
            memory.fail_at = memory.calls + 1
            raise Stop

    with pytest.raises(Stop) as caught:
        get()
    assert any("stays with its owner" in note for note in caught.value.__notes__)
    assert vm.get_var_mgr_info(vm["v"].logic_addr) is None


def test_memory_got_in_a_block_that_ends_well_stays() -> None:
    vm = make_manager(FakeMemory())
    vm.assign_var_mem("v", None, make_desc(8))
    with vm.memory_transaction():
        vm.write_var_memory(vm["v"].logic_addr, b"12345678")
    assert vm["v"].read().tobytes() == b"12345678"


def test_memory_of_the_callers_is_not_taken_back() -> None:
    memory = FakeMemory()
    vm = make_manager(memory)
    vm.assign_var_mem("v", None, make_desc(8))
    addr = vm["v"].logic_addr
    block = memory.malloc_memory(MemType.RT_MEMORY_HBM, "own", 4096, DeviceId(0))

    def give() -> None:
        with vm.memory_transaction():
            vm.set_var_mgr_dev_addr(addr, block)
            raise Stop

    with pytest.raises(Stop):
        give()
    assert vm.get_var_memory_addr(addr) == block + 512
    assert memory.frees == []


def test_a_piece_of_memory_that_grows_goes_back() -> None:
    memory = FakeMemory()
    vm = make_manager(memory)
    vm.init_expandable_memory_allocator(FakeExpandable(memory), DeviceId(0))
    vm.assign_var_mem("v", None, make_desc(8))
    addr = vm["v"].logic_addr
    places = []

    def get() -> None:
        with vm.memory_transaction():
            places.append(vm.get_var_memory_addr(addr))
            raise Stop

    with pytest.raises(Stop):
        get()
    assert vm.get_var_mgr_info(addr) is None
    assert vm.get_var_memory_addr(addr) == places[0]  # the piece that waits is the next of its size


class FreeingExpandable(FakeExpandable):
    """Memory that grows and takes single pieces back."""

    def free(self, dev_addr: DevAddr) -> None:
        self.live.remove(dev_addr)
        del self.memory.blocks[self.device_id, dev_addr]

    def blocks(self) -> list[tuple[DevAddr, int, str]]:
        return [(DevAddr(addr), 0, "") for addr in self.live]


def test_pieces_go_back_to_the_memory_that_they_are_from() -> None:
    memory = FakeMemory()
    vm = make_manager(memory)
    names = ("kept", "first", "large", "second", "third")
    for name in names:
        vm.assign_var_mem(name, None, make_desc(1 << 20 if name == "large" else 8))
    first, second = FreeingExpandable(memory, capacity=1 << 16), FreeingExpandable(memory)
    vm.init_expandable_memory_allocator(first, DeviceId(0))
    vm["kept"].dev_addr()

    def get() -> None:
        with vm.memory_transaction():
            vm["first"].dev_addr()
            vm["large"].dev_addr()  # does not fit: plain memory from then on
            vm.init_expandable_memory_allocator(second, DeviceId(0))
            vm["second"].dev_addr()
            vm["third"].dev_addr()
            raise Stop

    with pytest.raises(Stop):
        get()
    assert (len(first.live), second.live, second.frees, len(memory.frees)) == (1, [], 1, 1)
    assert [vm.get_var_mgr_info(vm[name].logic_addr) is None for name in names] == [False, True, True, True, True]
    vm.check()
