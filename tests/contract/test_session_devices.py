"""Several devices in one session: blocks, load states and frees of each on its own, the caller's device untouched."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from acl_shim import Runtime
from acl_shim.host import HostControls
from acl_shim.host_live import LiveObjects
from acl_shim.table import new_cell
from gevar import Session, load_model
from gevar.errors import AclError, OutOfMemoryError, StateError
from gevar.memory import SessionMemAllocator
from gevar.om.builder import OmBuilder
from gevar.types import DataType, DevAddr, DeviceId, Format, LogicAddr, MemType, TensorDesc
from gevar.var.load_state import LoadState
from tests.helpers.models import small_model
from tests.helpers.runtime import host_runtime, live_now
from tests.helpers.var_memory import make_desc, with_init

D0, D1, D2 = DeviceId(0), DeviceId(1), DeviceId(2)
HBM = MemType.RT_MEMORY_HBM
NAMES = ("scale", "start", "empty")


@pytest.fixture
def three(host: HostControls) -> HostControls:
    host.configure(devices=3)
    return host


@pytest.fixture(params=["plain", "growing"])
def has_ranges(three: HostControls, request: pytest.FixtureRequest) -> bool:
    """Whether the devices can reserve ranges; without them variables lie in plain memory."""
    grows: bool = request.param == "growing"
    three.configure(virtual_memory=grows)
    return grows


@pytest.fixture
def session(has_ranges: bool) -> Iterator[Session]:
    with Session(host_runtime()) as session:
        yield session


@pytest.fixture
def model(tmp_path: Path) -> tuple[Path, dict[str, np.ndarray]]:
    path = tmp_path / "small.om"
    return path, small_model(path)


def _pages(host: HostControls) -> list[tuple[int, int]]:
    """Pages in use of each device."""
    return [(device.pages_2m_used, device.pages_4k_used) for device in live_now(host).devices]


def test_a_model_on_each_device_has_its_own_variables(
    session: Session, model: tuple[Path, dict[str, np.ndarray]]
) -> None:
    path, values = model
    loaded = [load_model(path, session=session, device_id=device) for device in (D0, D1, D2)]
    for name in NAMES:
        rows = [one.tensor(name) for one in loaded]
        assert len({row.logic_addr for row in rows}) == 1
        assert len({row.dev_addr for row in rows}) == 3
    for number, one in enumerate(loaded):
        one.write("start", np.full((3, 5), number, np.float32))
    for number, one in enumerate(loaded):
        assert (one.read("start") == number).all()
        assert np.array_equal(one.read("scale"), values["scale"])
        one.close()
    session.var_manager.check()


def test_load_states_belong_to_the_block_of_a_device(
    session: Session, model: tuple[Path, dict[str, np.ndarray]]
) -> None:
    path, values = model
    with load_model(path, session=session, device_id=D1) as loaded:
        addr = loaded.tensor("scale").logic_addr
        assert addr is not None
        vm = session.var_manager
        assert [vm.get_var_load_state(addr, at) for at in (D0, D1)] == [LoadState.ABSENT, LoadState.LOADED]
        vm.free_var_memory()
        assert vm.get_var_load_state(addr, D1) is LoadState.ABSENT
    with load_model(path, session=session, device_id=D1) as loaded:  # what was freed is brought again
        assert np.array_equal(loaded.read("scale"), values["scale"])
        assert loaded.verify(path).differences == ()


def test_ready_flags_go_with_the_memory(session: Session, model: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, _ = model
    vm = session.var_manager
    with load_model(path, session=session, device_id=D0), load_model(path, session=session, device_id=D2):
        desc = vm.get_cur_var_desc("start")
        vm.set_var_is_ready("start", desc, D2)
        assert [vm.is_var_ready("start", desc, at) for at in (D0, D1, D2)] == [False, False, True]
        vm.free_var_memory()
        assert not vm.is_var_ready("start", desc, D2)


def _current(session: Session) -> int:
    cell = new_cell("int32_t *")
    session.runtime.check(session.runtime.api.aclrtGetDevice(cell), "aclrtGetDevice", {})
    return int(cell[0])


def _filled(session: Session, *devices: DeviceId) -> LogicAddr:
    """Set the session up, put one variable with an initial value on devices, and return its address."""
    vm = session.var_manager
    session.rt_var_manager.init(D0, 128 << 30, 8 << 30)
    addr = vm.assign_var_mem("v", None, with_init(make_desc(4096), bytes([5]) * 4096))
    for device in devices:
        session.init_var_memory(device)
        vm.get_var_memory_addr(addr, HBM, device)
    return addr


def _after_first_use(host: HostControls) -> LiveObjects:
    """What is alive once every device is set, which it stays."""
    for number in (D0, D1, D2):
        host_runtime().device(number).enter()
    return live_now(host)


def test_handles_that_outlive_their_session_say_that_it_is_closed(runtime: Runtime) -> None:
    with Session(runtime) as session:
        session.rt_var_manager.init(D0, 0, 1 << 28)
        session.init_var_memory(D0)
        session.var_manager.assign_var_mem("v", None, TensorDesc(DataType.DT_INT8, Format.FORMAT_ND, (4,), size=4))
        variable = session.var_manager["v"]
        variable.write(np.zeros(4, np.int8))
    uses: list[Callable[[], object]] = [
        variable.read,
        lambda: variable.write(np.zeros(4, np.int8)),
        variable.dev_addr,
        lambda: session.var_manager["w"],
        lambda: session.init_var_memory(D0),
    ]
    for use in uses:
        with pytest.raises(StateError, match="closed"):
            use()


def test_blocks_are_freed_on_their_owners_device(session: Session, three: HostControls) -> None:
    vm, before = session.var_manager, _pages(three)
    session.runtime.device(0).enter()
    _filled(session, D1, D2)
    during = _pages(three)
    assert [during[at] > before[at] for at in (0, 1, 2)] == [False, True, True]
    assert _current(session) == 0
    vm.free_var_memory()
    assert _current(session) == 0
    assert _pages(three) == before
    live = live_now(three)
    assert (live.handles, live.mappings, live.reservations, live.blocks) == (0, 0, 0, 0)


def test_the_callers_device_stays_current(
    session: Session, model: tuple[Path, dict[str, np.ndarray]], has_ranges: bool
) -> None:
    path, values = model
    session.runtime.device(2).enter()
    loaded = load_model(path, session=session, device_id=D1)
    assert _current(session) == 2
    calls = {
        "read variable": lambda: loaded.read("start"),
        "read const": lambda: loaded.read("kernel"),
        "write variable": lambda: loaded.write("start", values["start"]),
        "write const": lambda: loaded.write("bias", values["bias"]),
        "verify": lambda: loaded.verify(path),
        "sleep": lambda: has_ranges and session.sleep(),
        "wake": session.wake,
        "another device": lambda: load_model(path, session=session, device_id=D0).close(),
        "free": session.var_manager.free_var_memory,
        "close the model": loaded.close,
        "close the session": session.close,
    }
    for name, call in calls.items():
        call()
        assert _current(session) == 2, name


def test_the_callers_device_stays_current_after_a_failure(
    session: Session, model: tuple[Path, dict[str, np.ndarray]], three: HostControls
) -> None:
    path, _ = model
    session.runtime.device(2).enter()
    three.fail_nth("aclrtMemcpy", 1, 507899)
    with pytest.raises(AclError):
        load_model(path, session=session, device_id=D1)
    assert _current(session) == 2
    three.clear_failures()


def test_a_device_that_cannot_be_current_again_leaves_no_memory(
    session: Session, three: HostControls, has_ranges: bool
) -> None:
    """The last call of a first touch makes the caller's device current; where that fails the memory goes back."""
    session.runtime.device(2).enter()
    _filled(session, D1)
    vm, sessions = session.var_manager, SessionMemAllocator.instance(session.runtime)
    first, second = (vm.assign_var_mem(name, None, make_desc(3 << 20)) for name in ("first", "second"))
    calls = three.calls("aclrtSetCurrentContext")
    vm.get_var_memory_addr(first, HBM, D1)
    for n in range(1, three.calls("aclrtSetCurrentContext") - calls + 1):
        grown = [allocator.blocks() for allocator in sessions.allocators(session.id)]
        before, live = vm.get_var_malloc_mem_size(), live_now(three)
        three.fail_nth("aclrtSetCurrentContext", n, 507899)
        try:
            vm.get_var_memory_addr(second, HBM, D1)
        except AclError:
            assert (vm.get_var_malloc_mem_size(), live_now(three)) == (before, live)
        else:
            assert has_ranges  # plain memory serves
            assert len(session.memory_manager.blocks()) == 1
        three.clear_failures()
        assert [allocator.blocks() for allocator in sessions.allocators(session.id)] == grown
        session.runtime.device(2).enter()
        vm.check()
    assert n > 1


def test_a_thread_that_never_chose_a_device_can_resolve(session: Session) -> None:
    addr = _filled(session)
    got: list[DevAddr] = []
    thread = threading.Thread(target=lambda: got.append(session.var_manager.get_var_memory_addr(addr, HBM, D1)))
    thread.start()
    thread.join()
    assert got == [session.var_manager.get_var_memory_addr(addr, HBM, D1)]


def test_a_model_is_used_and_unloaded_by_a_thread_on_another_device(
    session: Session, model: tuple[Path, dict[str, np.ndarray]], three: HostControls
) -> None:
    path, values = model
    before = _after_first_use(three)
    loaded = load_model(path, session=session, device_id=D1)
    done: list[int] = []

    def work() -> None:
        session.runtime.device(2).enter()
        assert np.array_equal(loaded.read("kernel"), values["kernel"])
        loaded.write("start", np.ones((3, 5), np.float32))
        assert (loaded.read("start") == 1).all()
        loaded.close()
        session.var_manager.free_var_memory()
        done.append(_current(session))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [2]
    assert live_now(three) == before


def test_threads_resolve_while_others_free_grow_and_sleep(session: Session, three: HostControls) -> None:
    """Whatever happens in between: an address, or the reason that there is none; nothing is lost."""
    before = _after_first_use(three)
    _filled(session)
    vm, wrong = session.var_manager, list[BaseException]()
    addrs = [vm.assign_var_mem(f"t{n}", None, with_init(make_desc(600), bytes([n]) * 600)) for n in range(30)]
    is_over = threading.Event()

    def read(number: int) -> None:
        value, order = np.empty(600, np.uint8), np.random.default_rng(number)
        try:
            while not is_over.is_set():
                n = int(order.integers(0, len(addrs)))
                with suppress(StateError):  # it sleeps
                    vm.read_var_memory(addrs[n], value, D1)
                    assert (value == n).all()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for number in range(60):
        if number % 3 == 0:
            session.init_var_memory(D1)
        elif number % 3 == 1:
            with suppress(StateError):  # nothing grows, or a variable is being allocated
                session.sleep(device_id=D1)
                session.wake()
        elif not number % 2:
            vm.resolve_many(np.array(addrs, np.uint64), D1)
    is_over.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert wrong == []
    vm.check()
    vm.free_var_memory()
    assert live_now(three) == before


@pytest.mark.parametrize("device", [3, 99])
def test_a_device_that_is_not_there(session: Session, device: int) -> None:
    addr = _filled(session, D0)
    before = session.var_manager.get_var_malloc_mem_size()
    with pytest.raises(AclError, match=f"{device}") as caught:
        session.var_manager.get_var_memory_addr(addr, HBM, DeviceId(device))
    assert caught.value.code == 107001
    assert session.var_manager.get_var_malloc_mem_size() == before


def test_one_device_without_room_leaves_the_others(host: HostControls) -> None:
    host.configure(devices=2, capacity_bytes=64 << 20)
    with Session(host_runtime()) as session:
        addr = _filled(session, D0, D1)
        vm = session.var_manager
        big = vm.assign_var_mem("big", None, make_desc(48 << 20))
        first = vm.get_var_memory_addr(big, HBM, D1)
        more = vm.assign_var_mem("more", None, make_desc(48 << 20))
        with pytest.raises(OutOfMemoryError):
            vm.get_var_memory_addr(more, HBM, D1)
        assert vm.get_var_memory_addr(big, HBM, D1) == first
        vm.get_var_memory_addr(more, HBM, D0)
        value = np.empty(4096, np.uint8)
        for device in (D0, D1):
            vm.read_var_memory(addr, value, device)
            assert (value == 5).all()


@pytest.mark.parametrize("function", ["aclrtMallocWithCfg", "aclrtReserveMemAddress", "aclrtMapMem", "aclrtMemcpy"])
def test_each_call_of_a_load_on_a_second_device_fails_once(
    three: HostControls, model: tuple[Path, dict[str, np.ndarray]], has_ranges: bool, function: str
) -> None:
    path, values = model
    with Session(host_runtime()) as session, load_model(path, session=session) as first:
        first.write("start", np.ones((3, 5), np.float32))

        def operation() -> None:
            session.runtime.device(2).enter()
            try:
                with load_model(path, session=session, device_id=D1) as loaded:
                    assert np.array_equal(loaded.read("start"), values["start"])
            finally:
                assert _current(session) == 2
                assert (first.read("start") == 1).all()

        failed = 0
        for n in range(1, 40):
            three.fail_nth(function, n, 507899)
            try:
                operation()
            except AclError:
                failed += 1
            else:
                break
            finally:
                three.clear_failures()
            session.var_manager.check()
        operation()
        if function == "aclrtMemcpy" or (function == "aclrtMallocWithCfg" and not has_ranges):
            assert failed


def test_sessions_close_their_own(three: HostControls, model: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, values = model
    with Session(host_runtime()) as one:
        kept = load_model(path, session=one, device_id=D1)
        with Session(host_runtime()) as two:
            load_model(path, session=two, device_id=D1)
        assert np.array_equal(kept.read("start"), values["start"])
        assert np.array_equal(kept.read("kernel"), values["kernel"])


def test_memory_of_the_callers_serves_the_first_model(
    session: Session, model: tuple[Path, dict[str, np.ndarray]]
) -> None:
    path, values = model
    with session.runtime.device(1).malloc(1 << 20) as region:
        session.rt_session.set_external_var(DevAddr(region.addr), 1 << 20)
        with load_model(path, session=session, device_id=D1) as loaded:
            for name in NAMES:
                addr = loaded.tensor(name).dev_addr
                assert addr is not None
                assert region.addr <= addr < region.addr + (1 << 20)
            assert np.array_equal(loaded.read("scale"), values["scale"])
            assert loaded.verify(path).differences == ()
        assert session.var_manager.get_var_malloc_mem_size() == 0


def test_variables_that_sleep_stop_a_load(three: HostControls, model: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, values = model
    with Session(host_runtime()) as session:
        with load_model(path, session=session):
            session.sleep()
            with pytest.raises(StateError, match="sleep on device 0: call wake first"):
                load_model(path, session=session)
            session.wake()
        with load_model(path, session=session) as loaded:
            assert np.array_equal(loaded.read("scale"), values["scale"])


def test_a_host_variable_of_a_model(session: Session, tmp_path: Path) -> None:
    net = OmBuilder("hosted")
    net.variable("h", TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (4,)))
    net._nodes["h"] = replace(net._nodes["h"], attrs={"_variable_placement": "host"})
    path = tmp_path / "hosted.om"
    net.write(path)
    with load_model(path, session=session, device_id=D1) as loaded:
        row = loaded.tensor("h")
        assert row.dev_addr is None
        loaded.write("h", np.arange(4, dtype=np.float32))
        assert loaded.read("h").tolist() == [0, 1, 2, 3]
        assert session.var_manager.get_var_malloc_mem_size() == 0


def test_sessions_that_come_and_go_leave_nothing(three: HostControls, has_ranges: bool) -> None:
    before = _after_first_use(three)
    for _ in range(30):
        with Session(host_runtime()) as session:
            _filled(session, D0, D1, D2)
    assert live_now(three) == before


def test_many_sessions_at_once_give_their_ranges_back(three: HostControls) -> None:
    before = _after_first_use(three)
    with ExitStack() as stack:
        sessions = [stack.enter_context(Session(host_runtime())) for _ in range(64)]
        for session in sessions:
            _filled(session, D1)
        live = live_now(three)
        assert live.reservations == 64
        assert live.reserved_bytes <= 64 * (16 << 30)  # not the whole card each
    assert live_now(three) == before


def test_many_threads_on_all_devices_share_one_session(session: Session) -> None:
    vm = session.var_manager
    _filled(session, D0, D1, D2)
    addrs = [vm.assign_var_mem(f"t{n}", None, with_init(make_desc(64), bytes([n]) * 64)) for n in range(60)]
    wrong: list[object] = []

    def work(number: int) -> None:
        device = DeviceId(number % 3)
        for n, addr in enumerate(addrs):
            value = np.empty(64, np.uint8)
            vm.read_var_memory(addr, value, device)
            if not (value == n).all():
                wrong.append((device, n))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert vm.get_var_malloc_mem_size() == 3 * (60 * (512 + 1024) + 4096 + 1024)
    vm.check()
