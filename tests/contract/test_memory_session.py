"""Variables in memory that grows: the manager on a runtime, sessions whose options ask for it."""

from pathlib import Path

import numpy as np
import pytest

from acl_shim import Runtime
from acl_shim.host import HostControls
from gevar import Session, load_model
from gevar.errors import AclError, OutOfMemoryError, StateError
from gevar.memory import DeviceMemoryManager, SessionMemAllocator
from gevar.types import DeviceId, LogicAddr, MemType
from gevar.var import VarManager
from tests.helpers.models import small_model
from tests.helpers.runtime import host_runtime, live_now
from tests.helpers.var_memory import make_desc, make_manager

MIB, GIB = 1 << 20, 1 << 30
BASE = 128 * GIB
OPTION, POLICY = "ge.variableUse1gHugePage", "ge.exec.staticMemoryPolicy"
D0, HBM = DeviceId(0), MemType.RT_MEMORY_HBM


def _with_memory(memory: DeviceMemoryManager, options: dict[str, str]) -> tuple[VarManager, SessionMemAllocator]:
    vm, sessions = make_manager(), SessionMemAllocator(memory.runtime)
    vm.set_mem_manager(memory)
    vm.set_options(options)
    allocator = sessions.get_var_mem_allocator(1, D0, options, max_bytes=GIB)
    assert vm.init_expandable_memory_allocator(allocator)
    return vm, sessions


def test_variables_share_pages_and_all_go_back(host: HostControls) -> None:
    with DeviceMemoryManager(host_runtime()) as memory:
        vm, sessions = _with_memory(memory, {"ge.exec.staticMemoryPolicy": "2"})
        for name, size in (("a", 1), ("b", 600), ("c", 3 * MIB), ("i", 4)):
            vm.assign_var_mem(name, None, make_desc(size))
        addrs = [vm[name].dev_addr() for name in "abci"]
        assert [addr - addrs[0] for addr in addrs] == [0, 1536, 3584, 3584 + 3 * MIB + 1024]
        assert live_now(host).handles == 2
        assert memory.counts.mallocs == 0
        vm["c"].write(np.full(3 * MIB, 7, np.int8))
        assert not (vm["c"].read() != 7).any()
        figures = sessions.allocators(1)[0].figures
        assert figures.memory.current_bytes == vm.get_var_malloc_mem_size()
        assert figures.used_bytes == figures.memory.current_bytes
        vm.free_var_memory()
        assert live_now(host).handles == 0
        vm["a"].dev_addr()
        assert memory.counts.mallocs == 1
        vm.destroy()


def test_when_pages_run_out_variables_get_plain_memory(host: HostControls) -> None:
    host.configure(pages_2m=4, pages_4k_bytes=16 * MIB)
    with DeviceMemoryManager(host_runtime()) as memory:
        vm, _ = _with_memory(memory, {POLICY: "2"})
        for n in range(4):
            vm.assign_var_mem(f"v{n}", None, make_desc(3 * MIB))
            vm[f"v{n}"].write(np.full(3 * MIB, n, np.int8))
        assert memory.counts.mallocs == 2
        for n in range(4):
            assert not (vm[f"v{n}"].read() != n).any()
        vm.free_var_memory()
        assert (memory.counts.live_blocks, live_now(host).handles) == (0, 0)


def test_pages_of_1_gib_only_and_none_there(host: HostControls) -> None:
    host.configure(pages_1g=0)
    with DeviceMemoryManager(host_runtime()) as memory:
        vm, _ = _with_memory(memory, {OPTION: "1"})
        vm.assign_var_mem("v", None, make_desc(1024))
        for _ in range(2):
            with pytest.raises(OutOfMemoryError, match=r"1 GiB pages.*ge\.variableUse1gHugePage is 1") as caught:
                vm["v"].dev_addr()
            assert "variable v_2_2" in caught.value.__notes__[0]
        live = live_now(host)
        assert (live.blocks, live.handles, live.reservations) == (0, 0, 0)


def test_a_script_gives_the_same_with_and_without_it(host: HostControls) -> None:
    results: list[list[object]] = []
    for options in ({}, {POLICY: "2"}, {POLICY: "4"}, {OPTION: "2"}):
        with DeviceMemoryManager(host_runtime()) as memory:
            vm = make_manager()
            vm.set_mem_manager(memory)
            if options:
                vm, _ = _with_memory(memory, options)
            found: list[object] = []
            for n, size in enumerate((4, 513, 70_000, 3 * MIB)):
                found.append(vm.assign_var_mem(f"v{n}", None, make_desc(size)))
                vm[f"v{n}"].write(np.full(size, n + 1, np.int8))
            found += [vm[f"v{n}"].read().tobytes() for n in range(4)]
            found.append(vm.get_var_malloc_mem_size())
            vm.destroy()
        results.append(found)
    assert all(result == results[0] for result in results)


def test_addresses_stay_when_variables_sleep() -> None:
    with DeviceMemoryManager(host_runtime()) as memory:
        vm, sessions = _with_memory(memory, {POLICY: "2"})
        for name in "ab":
            vm.assign_var_mem(name, None, make_desc(4096))
            vm[name].write(np.full(4096, ord(name), np.int8))
        before = [vm[name].dev_addr() for name in "ab"]
        allocator = sessions.allocators(1)[0]
        assert allocator.sleep() == 2 * MIB
        assert [vm.get_var_memory_addr(LogicAddr(BASE + offset)) for offset in (0, 5120)] == before
        allocator.wake()
        for name in "ab":
            assert not (vm[name].read() != ord(name)).any()
        vm.destroy()


def test_100_rounds_leave_nothing(host: HostControls) -> None:
    with DeviceMemoryManager(host_runtime()) as memory:
        for n in range(100):
            vm, sessions = _with_memory(memory, {POLICY: "2"})
            for name in "abc":
                vm.assign_var_mem(name, None, make_desc(1000 + n))
                vm[name].dev_addr()
            vm.destroy()
            figures = sessions.allocators(1)[0].figures
            assert (figures.memory.current_count, figures.memory.total_count, figures.reserved_bytes) == (0, 3, 0)
        live = host.live()
        assert (live.blocks, live.handles, live.mappings, live.reservations) == (0, 0, 0, 0)


POLICIES = {"0": 2 * MIB, "1": 2 * MIB, "2": 2 * MIB, "3": 8 * MIB, "4": 8 * MIB}


def _check_pages(host: HostControls, tmp_path: Path, options: dict[str, str], page_bytes: int) -> None:
    """Load a model with options; its variables lie on one page of a size."""
    path, runtime = tmp_path / "small.om", host_runtime()
    values = small_model(path)
    with Session(runtime, options=options) as session, load_model(path, session=session) as loaded:
        for name, value in values.items():
            assert np.array_equal(loaded.read(name), value), name
        allocators = SessionMemAllocator.instance(runtime).allocators(session.id)
        assert [allocator.page_bytes for allocator in allocators] == [page_bytes]
        assert live_now(host).handle_bytes == page_bytes
        assert {"scale", "start"} <= {tag for _, _, tag in allocators[0].blocks()}
    assert live_now(host).handles == 0
    assert SessionMemAllocator.instance(runtime).allocators(session.id) == []


@pytest.mark.parametrize(
    ("options", "page_bytes"),
    [
        ({}, 2 * MIB),
        ({OPTION: "0", POLICY: "0"}, 2 * MIB),
        ({OPTION: "1"}, GIB),
        ({OPTION: "2"}, GIB),
        ({OPTION: "2", POLICY: "4"}, GIB),
        *(({POLICY: policy}, page_bytes) for policy, page_bytes in POLICIES.items()),
    ],
)
def test_variables_of_a_session_lie_in_memory_that_grows(
    host: HostControls, tmp_path: Path, options: dict[str, str], page_bytes: int
) -> None:
    _check_pages(host, tmp_path, options, page_bytes)


@pytest.mark.parametrize("environment", POLICIES)
@pytest.mark.parametrize("option", [None, *POLICIES])
def test_option_and_environment_together_settle_the_page(
    host: HostControls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str | None, environment: str
) -> None:
    monkeypatch.setenv("GE_USE_STATIC_MEMORY", environment)
    page_bytes = max(POLICIES[environment], POLICIES[option or "0"])
    _check_pages(host, tmp_path, {} if option is None else {POLICY: option}, page_bytes)


def test_a_session_on_a_product_without_ranges_has_plain_memory(
    host: HostControls, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    host.configure(virtual_memory=False)
    path = tmp_path / "small.om"
    values = small_model(path)
    with Session(host_runtime()) as session, caplog.at_level("WARNING", "gevar.var"):
        loaded = load_model(path, session=session)
        assert np.array_equal(loaded.read("scale"), values["scale"])
        assert caplog.text.count("variables get plain memory from now on") == 1
        assert any(block.purpose == "scale" for block in session.memory_manager.blocks())
    with Session(host_runtime(), options={OPTION: "1"}) as session, pytest.raises(AclError) as caught:
        load_model(path, session=session)
    assert caught.value.code == 207000
    assert OPTION in str(caught.value)


@pytest.mark.parametrize("text", ["yes", "", "3"])
def test_a_session_refuses_option_text_that_means_nothing(runtime: Runtime, text: str) -> None:
    with pytest.raises(ValueError, match=r"ge\.variableUse1gHugePage"):
        Session(runtime, options={OPTION: text})


def test_sessions_leave_each_other_alone(host: HostControls, tmp_path: Path) -> None:
    path, runtime = tmp_path / "small.om", host_runtime()
    values = small_model(path)
    before = live_now(host)
    for _ in range(3):
        with Session(runtime) as keep:
            kept = load_model(path, session=keep)
            with Session(runtime) as other:
                load_model(path, session=other).close()
                assert live_now(host).reservations == before.reservations + 2
            assert np.array_equal(kept.read("scale"), values["scale"])
            kept.close()
        live = live_now(host)
        assert (live.reservations, live.handles, live.blocks) == (0, 0, 0)
    with pytest.raises(StateError):
        kept.read("scale")
