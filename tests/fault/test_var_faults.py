"""Every call that can fail is made to fail in turn; the state must be as before each time."""

from collections.abc import Callable
from itertools import count

import pytest

from acl_shim.host import HostControls
from gevar.errors import GevarError
from gevar.memory import DeviceMemoryManager, ExpandableActiveMemoryAllocator, HugePageMode
from gevar.types import DeviceId, LogicAddr
from gevar.var import VarManager, VarOp
from tests.helpers.runtime import fail_until_passes, host_runtime
from tests.helpers.var_memory import GIB, FakeMemory, constant, make_desc, place_holder, with_init

BASE = 128 * GIB


def _filled(memory: FakeMemory | DeviceMemoryManager) -> VarManager:
    """A manager with some of everything, part of it on devices."""
    vm = VarManager(1)
    vm.init(0, 1)
    vm.set_memory_malloc_size(64 * GIB)
    vm.set_mem_manager(memory)
    vm.restore_var_mem("r", VarOp("r", "Variable", (), (BASE + 8192,)), with_init(make_desc(16), b"r" * 16))
    vm.assign_var_mem("a", None, make_desc(100))
    vm.assign_var_mem("i", None, with_init(make_desc(8), b"12345678"))
    vm.assign_var_mem("c", constant("c", b"wwww", make_desc(4)), make_desc(4))
    vm.assign_var_mem("p", place_holder("p", 87960930226176, 64), make_desc(64))
    vm["a"].dev_addr()
    return vm


def _state(vm: VarManager) -> tuple[object, ...]:
    resource = vm._resource
    assert resource is not None
    return (
        dict(resource.records),
        dict(resource.cur_descs),
        list(resource.blocks),
        vm.get_var_mem_size(),
        vm.get_var_malloc_mem_size(),
        set(vm._device_records.records()),
    )


OPERATIONS: dict[str, Callable[[VarManager], object]] = {
    "resolve": lambda vm: vm["c"].dev_addr(),
    "resolve with initial value": lambda vm: vm["i"].dev_addr(DeviceId(0)),
    "resolve inside": lambda vm: vm.get_var_memory_addr(LogicAddr(vm["i"].logic_addr + 5)),
    "resolve restored": lambda vm: vm["r"].dev_addr(),
    "write": lambda vm: vm["c"].write(b"1234"),
    "read": lambda vm: vm["i"].read(),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_failed_operation_leaves_the_tables_as_they_were(name: str) -> None:
    """A write or read that fails in its own copy leaves the memory it has made; that is checked below."""
    for n in count(1):
        memory = FakeMemory()
        vm = _filled(memory)
        before, blocks = _state(vm), set(memory.blocks)
        memory.fail_at = memory.calls + n
        try:
            OPERATIONS[name](vm)
        except GevarError:
            vm.check()
            if name.startswith("resolve"):
                assert _state(vm) == before
                assert set(memory.blocks) == blocks
            memory.fail_at = 0
            OPERATIONS[name](vm)
            vm.check()
        else:
            assert n > 1
            return


@pytest.mark.parametrize("function", ["aclrtMallocWithCfg", "aclrtMemcpy", "aclrtSetCurrentContext"])
def test_on_the_runtime_nothing_leaks_and_the_next_try_works(host: HostControls, function: str) -> None:
    with DeviceMemoryManager(host_runtime()) as memory:
        vm = _filled(memory)
        vm.free_var_memory()

        def operation() -> None:
            addrs = [vm[name].dev_addr() for name in "aicr"]
            assert len(set(addrs)) == 4
            assert vm["i"].read().tobytes() == b"12345678"
            vm.free_var_memory()

        def guarded() -> None:
            try:
                operation()
            except GevarError:
                vm.check()
                vm.free_var_memory()
                raise

        assert fail_until_passes(host, function, guarded) >= 3
        vm.destroy()
        assert memory.counts.live_blocks == 0


@pytest.mark.parametrize("function", ["aclrtMallocWithCfg", "aclrtMemcpy"])
def test_a_failed_resolve_keeps_what_was_there(host: HostControls, function: str) -> None:
    with DeviceMemoryManager(host_runtime()) as memory:
        vm = _filled(memory)
        addr = vm["a"].dev_addr()
        before, blocks = _state(vm), memory.blocks()
        host.fail_nth(function, 1, 507899)
        with pytest.raises(GevarError, match="507899"):
            vm["i"].dev_addr()
        assert _state(vm) == before
        assert memory.blocks() == blocks
        assert vm["a"].dev_addr() == addr
        assert vm["i"].read().tobytes() == b"12345678"


def test_every_refused_free_is_told_and_the_rest_is_freed(host: HostControls) -> None:
    for n in count(1):
        memory = DeviceMemoryManager(host_runtime())
        vm = _filled(memory)
        for name in "icr":
            vm[name].dev_addr()
        host.fail_nth("aclrtFree", n, 507899)
        try:
            vm.free_var_memory()
        except GevarError:
            assert n <= 4
            assert memory.counts.live_blocks == 1
            vm.check()
            assert vm["i"].read().tobytes() == b"12345678"
            vm.destroy()
        else:
            assert n == 5
        host.clear_failures()
        memory.close()
        assert memory.counts.live_blocks == 0
        if n == 5:
            return


def test_operations_that_need_no_memory_never_fail_half_way() -> None:
    """Refusals of assigning and restoring, one after the other on one manager; nothing may change."""
    memory = FakeMemory()
    vm = _filled(memory)
    before = _state(vm)
    bad = place_holder("p", 0, 64)
    refusals: list[Callable[[], object]] = [
        lambda: vm.assign_var_mem("x", None, make_desc(-5)),
        lambda: vm.assign_var_mem("a", None, make_desc(1 << 50, shape=(1,))),
        lambda: vm.assign_var_mem("x", bad, make_desc(64)),
        lambda: vm.restore_var_mem("x", bad, make_desc(64)),
        lambda: vm.restore_var_mem("x", VarOp("x", "Variable", (), (BASE + 8192,)), make_desc(64)),
        lambda: vm.restore_var_mem("x", VarOp("x", "Variable", (), (BASE - 1,)), make_desc(64)),
        lambda: vm.restore_var_mem("a", None, make_desc(101, shape=(101,))),
    ]
    for refusal in refusals:
        with pytest.raises(GevarError):
            refusal()
        assert _state(vm) == before
    vm.check()


CALLS = [
    *("aclrtReserveMemAddress", "aclrtMallocPhysical", "aclrtMapMem", "aclrtMemcpy", "aclrtSetCurrentContext"),
    "aclrtMallocWithCfg",
]


@pytest.mark.parametrize("is_first", [True, False], ids=["first block", "another block"])
@pytest.mark.parametrize("option", ["0", "1"])
@pytest.mark.parametrize("function", CALLS)
def test_a_failed_first_touch_leaves_memory_that_grows_as_it_was(
    host: HostControls, function: str, option: str, is_first: bool
) -> None:
    """Each call fails in turn while a variable with an initial value gets memory; with option 0 plain memory may do."""
    host.configure(pages_1g=2)
    device = host_runtime().device(0)
    device.mem_info()  # it is set from now on
    mode = HugePageMode(int(option))
    page_bytes = GIB if mode else 2 << 20
    for n in count(1):
        memory = DeviceMemoryManager(host_runtime())
        grows = ExpandableActiveMemoryAllocator(device, page_bytes, mode=mode, max_bytes=2 * GIB)
        with memory, grows:
            vm = _filled(memory)
            vm.free_var_memory()
            vm.set_options({"ge.variableUse1gHugePage": option})
            vm.init_expandable_memory_allocator(grows)
            if not is_first:
                vm["a"].dev_addr()
            before, live = (_state(vm), grows.blocks(), grows.figures.physical_bytes), host.live()
            host.fail_nth(function, n, 507899)
            try:
                vm["i"].dev_addr()
            except GevarError:
                failed = True
                assert (_state(vm), grows.blocks(), grows.figures.physical_bytes) == before
                assert host.live() == live
            else:
                failed = False
            host.clear_failures()
            assert vm["i"].read().tobytes() == b"12345678"
            vm.check()
            vm.free_var_memory()
        if not failed:
            needed = {"aclrtReserveMemAddress": is_first, "aclrtMallocPhysical": is_first, "aclrtMapMem": is_first}
            least = int(needed.get(function, function == "aclrtMemcpy") and (mode > 0 or function == "aclrtMemcpy"))
            assert n > least
            return


def test_a_piece_that_cannot_go_back_serves_the_next_block(host: HostControls) -> None:
    with (
        DeviceMemoryManager(host_runtime()) as memory,
        ExpandableActiveMemoryAllocator(host_runtime().device(0), max_bytes=GIB) as grows,
    ):
        vm = _filled(memory)
        vm.free_var_memory()
        vm.init_expandable_memory_allocator(grows)
        host.fail_nth("aclrtMemcpy", 1, 507899)
        host.fail_nth("aclrtUnmapMem", 1, 107000)
        with pytest.raises(GevarError, match="507899") as caught:
            vm["i"].dev_addr()
        host.clear_failures()
        assert any("1536 B taken for it wait for the next block of this size" in n for n in caught.value.__notes__)
        assert [size for _, size, _ in grows.blocks()] == [1536]
        assert vm["i"].read().tobytes() == b"12345678"
        assert [size for _, size, _ in grows.blocks()] == [1536]
        vm.free_var_memory()
        assert grows.blocks() == []


@pytest.mark.parametrize("grows", [False, True], ids=["plain", "growing"])
@pytest.mark.parametrize("function", CALLS)
def test_each_call_of_many_questions_fails_once(host: HostControls, function: str, grows: bool) -> None:
    """Variables that got memory before the refused one keep it; that one has none, and gets it at the next try."""
    device = host_runtime().device(0)
    device.mem_info()  # it is set from now on
    for n in count(1):
        allocator = ExpandableActiveMemoryAllocator(device, max_bytes=GIB)
        with DeviceMemoryManager(host_runtime()) as memory, allocator:
            vm = VarManager(1)
            vm.init(0, 1)
            vm.set_memory_malloc_size(64 * GIB)
            vm.set_mem_manager(memory)
            if grows:
                vm.init_expandable_memory_allocator(allocator)
            desc = with_init(make_desc(3 << 20), b"x" * 100)
            addrs = vm.assign_many((f"v{number}", None, desc) for number in range(4))
            host.fail_nth(function, n, 507899)
            try:
                found = vm.resolve_many(addrs)
            except GevarError:
                failed = True
                host.clear_failures()
                records = vm._device_records.records()
                assert len(records) < 4
                assert vm.get_var_malloc_mem_size() == sum(record.capacity_bytes for record in records)
                assert len(allocator.blocks()) + memory.counts.live_blocks == len(records)
                kept = {record.block.logic_addr: record.data_addr for record in records}
                found = vm.resolve_many(addrs)
                assert kept.items() <= dict(zip(addrs.tolist(), found.tolist(), strict=True)).items()
            else:
                failed = False
            host.clear_failures()
            assert len(set(found.tolist())) == 4
            assert all(vm[f"v{number}"].read()[:100].tobytes() == b"x" * 100 for number in range(4))
            vm.check()
            vm.free_var_memory()
        if not failed:
            assert n > (4 if function == "aclrtMemcpy" or (function == "aclrtMallocWithCfg" and not grows) else 0)
            return
