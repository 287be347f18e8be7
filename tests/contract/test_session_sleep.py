"""Variables that sleep on a runtime: pages go, addresses stay, bytes come back as was chosen; all or nothing."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count

import numpy as np
import pytest

from acl_shim.host import HostControls
from gevar import Session
from gevar.errors import AclError, StateError
from gevar.types import DevAddr, DeviceId, LogicAddr, MemType, TensorDesc
from gevar.var import VarManager, VarOp
from gevar.var.block_memory import DeviceRecord
from gevar.var.load_state import LoadState
from tests.helpers.runtime import host_runtime, live_now
from tests.helpers.var_memory import constant, file_constant, make_desc, with_init

MIB = 1 << 20
D0, D1 = DeviceId(0), DeviceId(1)
SIZES = {"w": 3 * MIB, "c": 700, "f": 4096, "i": 64}
INIT = bytes(range(64))
DISCARDED_KINDS = ["Constant", "FileConstant"]


def _desc(name: str) -> TensorDesc:
    desc = make_desc(SIZES[name])
    return with_init(desc, INIT) if name == "i" else desc


def _ops() -> dict[str, VarOp | None]:
    value = bytes([7]) * SIZES["c"]
    return {"w": None, "c": constant("c", value, _desc("c")), "f": file_constant("f", "f.bin"), "i": None}


def _bytes(name: str, device: int) -> np.ndarray:
    return np.full(SIZES[name], 16 * device + ord(name) % 16, np.uint8)


class Filled:
    """A session with four variables of known bytes on each of some devices, in memory that grows."""

    def __init__(self, *devices: DeviceId) -> None:
        self.devices = devices
        self.session = Session(host_runtime())
        self.vm: VarManager = self.session.var_manager
        self.vm.init(0, self.session.id)
        self.vm.set_memory_malloc_size(8 << 30)
        self.vm.set_mem_manager(self.session.memory_manager)
        self.addrs = {name: self.vm.assign_var_mem(name, op, _desc(name)) for name, op in _ops().items()}
        for device in devices:
            self.session.init_var_memory(device)
            for name in SIZES:
                self.write(name, device)
                self.load(name, device)

    def write(self, name: str, device: DeviceId) -> None:
        self.vm.write_var_memory(self.addrs[name], _bytes(name, device), device)

    def load(self, name: str, device: DeviceId) -> None:
        ticket = self.vm.begin_var_load(self.addrs[name], device)
        assert ticket is not None
        ticket.commit()
        self.vm.set_var_is_ready(name, _desc(name), device)

    def read(self, name: str, device: DeviceId) -> np.ndarray:
        value = np.empty(SIZES[name], np.uint8)
        self.vm.read_var_memory(self.addrs[name], value, device)
        return value

    def is_loaded(self, name: str, device: DeviceId) -> bool:
        state = self.vm.get_var_load_state(self.addrs[name], device)
        ready = self.vm.is_var_ready(name, _desc(name), device)
        assert ready == (state is LoadState.LOADED)
        return ready

    def dev_addrs(self) -> list[int]:
        hbm = MemType.RT_MEMORY_HBM
        return [self.vm.get_var_memory_addr(addr, hbm, at) for addr in self.addrs.values() for at in self.devices]

    def check(self) -> None:
        for device in self.devices:
            for name in SIZES:
                assert np.array_equal(self.read(name, device), _bytes(name, device)), (name, device)
                assert self.is_loaded(name, device)
        self.vm.check()


@pytest.fixture
def filled() -> Iterator[Filled]:
    filled = Filled(D0)
    with filled.session:
        yield filled


@pytest.fixture
def on_two(host: HostControls) -> Iterator[Filled]:
    host.configure(devices=2)
    filled = Filled(D0, D1)
    with filled.session:
        yield filled


def _rewrite(filled: Filled) -> Callable[[DeviceRecord], None]:
    return lambda record: filled.write(record.block.name, record.device_id)


def test_bytes_addresses_and_load_states_come_back(filled: Filled, host: HostControls) -> None:
    before, addrs = live_now(host).handles, filled.dev_addrs()
    for keep in ("host", "reload"):
        freed = filled.vm.sleep(keep=keep, reload=_rewrite(filled) if keep == "reload" else None)
        assert freed == 4 * MIB
        assert (live_now(host).handles, filled.dev_addrs()) == (0, addrs)
        assert filled.vm.is_asleep(D0)
        filled.vm.wake()
        assert not filled.vm.is_asleep(D0)
        assert (live_now(host).handles, filled.dev_addrs()) == (before, addrs)
        filled.check()
    filled.vm.wake()  # all is awake


def test_discarded_variables_start_anew_and_the_others_wait_on_the_host(filled: Filled, host: HostControls) -> None:
    host.adjust(poison=0xAB)
    filled.vm.sleep(DISCARDED_KINDS, "discard")
    assert [filled.is_loaded(name, D0) for name in SIZES] == [True, False, False, True]
    filled.vm.wake()
    for name in ("w", "i"):
        assert np.array_equal(filled.read(name, D0), _bytes(name, D0))
    for name in ("c", "f"):
        assert not np.array_equal(filled.read(name, D0), _bytes(name, D0))
        filled.write(name, D0)
        filled.load(name, D0)
    filled.check()


def test_an_initial_value_is_laid_down_again(filled: Filled) -> None:
    filled.session.sleep(keep="discard")
    filled.session.wake()
    assert bytes(filled.read("i", D0)) == INIT
    assert not any(filled.is_loaded(name, D0) for name in SIZES)


def test_reload_is_asked_for_the_kinds_alone(filled: Filled) -> None:
    asked: list[tuple[str, int, int]] = []

    def reload(record: DeviceRecord) -> None:
        asked.append((record.block.name, record.block.size_bytes, record.data_addr))
        filled.write(record.block.name, D0)

    filled.vm.sleep("Constant", "reload", reload)
    filled.vm.wake()
    assert asked == [("c", 700, filled.vm.get_var_memory_addr(filled.addrs["c"]))]
    filled.check()


def test_what_sleeps_is_not_read_written_or_allocated(filled: Filled) -> None:
    late = filled.vm.assign_var_mem("late", None, make_desc(8))
    filled.vm.sleep()
    value = np.zeros(4, np.uint8)
    for call in (filled.vm.read_var_memory, filled.vm.write_var_memory):
        with pytest.raises(StateError, match=r"variable w_2_2 sleeps on device 0: call wake"):
            call(filled.addrs["w"], value)
    with pytest.raises(StateError, match="sleeps: call wake first"):
        filled.vm.get_var_memory_addr(late)
    with pytest.raises(StateError, match="variables sleep on device 0 already"):
        filled.vm.sleep()
    filled.vm.wake()
    filled.vm.get_var_memory_addr(late)
    filled.check()


def test_variables_in_plain_memory_stay_awake(host: HostControls) -> None:
    host.configure(devices=2)
    filled = Filled(D0)
    with filled.session:
        filled.write("w", D1)
        filled.vm.sleep()
        assert np.array_equal(filled.read("w", D1), _bytes("w", D1))
        filled.vm.wake()


def test_what_the_caller_gave_stays_awake(filled: Filled) -> None:
    addr = filled.vm.assign_var_mem("given", None, make_desc(64))
    with filled.session.runtime.device(0).malloc(2048) as mine:
        filled.vm.set_var_mgr_dev_addr(addr, DevAddr(mine.addr))
        filled.vm.write_var_memory(addr, bytes(range(64)))
        filled.vm.sleep()
        back = np.empty(64, np.uint8)
        filled.vm.read_var_memory(addr, back)
        assert back.tobytes() == bytes(range(64))
        filled.vm.wake()
        filled.check()
        filled.vm.set_var_mgr_dev_addr(addr, None)


def test_one_device_sleeps_while_the_other_works(on_two: Filled) -> None:
    on_two.vm.sleep(device_id=D1)
    assert [on_two.vm.is_asleep(device) for device in (D0, D1)] == [False, True]
    assert np.array_equal(on_two.read("w", D0), _bytes("w", D0))
    with pytest.raises(StateError, match="sleeps on device 1"):
        on_two.read("w", D1)
    on_two.vm.wake(D0)
    assert on_two.vm.is_asleep(D1)
    on_two.vm.wake(D1)
    on_two.check()


def test_freed_memory_sleeps_no_more(filled: Filled, host: HostControls) -> None:
    filled.vm.sleep(keep="host")
    filled.vm.free_var_memory()
    assert (filled.vm.is_asleep(), live_now(host).reservations) == (False, 0)
    filled.vm.wake()
    filled.write("w", D0)  # plain memory from now on
    assert np.array_equal(filled.read("w", D0), _bytes("w", D0))


def test_a_session_closes_asleep(host: HostControls) -> None:
    filled = Filled(D0)
    filled.session.sleep()
    filled.session.close()
    live = live_now(host)
    assert (live.handles, live.reservations, live.mappings) == (0, 0, 0)
    for call in (filled.session.sleep, filled.session.wake):
        with pytest.raises(StateError, match="closed"):
            call()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"kinds": ["Const"]}, "kinds has 'Const': give some of Variable, Constant, FileConstant"),
        ({"keep": "disk"}, "keep is 'disk'"),
        ({"keep": "reload"}, "reload is None"),
        ({"keep": "host", "reload": print}, "only then"),
    ],
)
def test_bad_arguments(filled: Filled, arguments: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        filled.vm.sleep(**arguments)
    assert not filled.vm.is_asleep()
    filled.check()


def test_a_session_without_memory_that_grows(host: HostControls) -> None:
    with Session(host_runtime()) as session:
        session.var_manager.init(0, session.id)
        with pytest.raises(StateError, match="no variable lies in memory that grows on any device"):
            session.sleep()
        session.wake()


def test_a_load_under_way_is_not_disturbed(filled: Filled) -> None:
    late = filled.vm.assign_var_mem("late", None, make_desc(8))
    ticket = filled.vm.begin_var_load(late)
    assert ticket is not None
    with pytest.raises(StateError, match=f"at {late:#x} is being allocated or loaded on device 0"):
        filled.vm.sleep()
    ticket.abort()
    filled.vm.sleep()
    filled.vm.wake()
    filled.check()


def test_a_reload_that_fails_leaves_all_asleep(on_two: Filled, host: HostControls) -> None:
    def reload(record: DeviceRecord) -> None:
        if record.device_id == D1 and record.block.name == "f":
            raise OSError("f.bin is gone")
        on_two.write(record.block.name, record.device_id)

    on_two.vm.sleep(keep="reload", reload=reload)
    with pytest.raises(OSError, match=r"f\.bin is gone"):
        on_two.vm.wake()
    assert live_now(host).handles == 0
    assert on_two.vm.is_asleep(D0)
    assert on_two.vm.is_asleep(D1)


CALLS = ["aclrtUnmapMem", "aclrtFreePhysical", "aclrtMallocPhysical", "aclrtMapMem", "aclrtMemcpy"]


@pytest.mark.parametrize("function", CALLS)
@pytest.mark.parametrize("keep", ["host", "reload", "mixed"])
def test_each_call_fails_once(on_two: Filled, host: HostControls, function: str, keep: str) -> None:
    vm, addrs = on_two.vm, on_two.dev_addrs()
    awake = live_now(host).handles

    def sleep() -> None:
        if keep == "mixed":
            vm.sleep("Variable", "reload", _rewrite(on_two))
        else:
            vm.sleep(keep=keep, reload=_rewrite(on_two) if keep == "reload" else None)

    failures = 0
    for step, is_asleep in ((sleep, False), (vm.wake, True)):
        for n in count(1):
            host.fail_nth(function, n, 507899)
            try:
                step()
            except AclError:
                failures += 1
                failed = True
            else:
                failed = False
            host.clear_failures()
            if not failed:
                break
            assert [vm.is_asleep(device) for device in (D0, D1)] == [is_asleep] * 2
            assert live_now(host).handles == (0 if is_asleep else awake)
            assert on_two.dev_addrs() == addrs
            if not is_asleep:
                on_two.check()
    assert failures > 0 or (function == "aclrtFreePhysical")
    assert (live_now(host).handles, on_two.dev_addrs()) == (awake, addrs)
    on_two.check()


def test_threads_that_ask_meanwhile_get_an_address_or_a_reason(filled: Filled) -> None:
    stop, wrong = threading.Event(), []
    addrs = [filled.vm.assign_var_mem(f"t{n}", None, make_desc(512)) for n in range(200)]

    def work() -> None:
        for addr in addrs:
            while not stop.is_set():
                try:
                    filled.vm.get_var_memory_addr(LogicAddr(addr))
                    break
                except StateError as error:
                    if "sleeps" not in str(error):
                        wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            with suppress(StateError):  # a variable is being allocated
                filled.vm.sleep()
            filled.vm.wake()
    finally:
        for thread in threads:
            thread.join(60)
        stop.set()
    assert wrong == []
    filled.check()


@pytest.mark.parametrize("function", ["aclrtUnmapMem", "aclrtSetCurrentContext"])
def test_what_was_to_be_lost_is_there_after_a_failure(on_two: Filled, host: HostControls, function: str) -> None:
    """One device has unmapped its pages when the other fails: nothing is discarded on either."""
    addrs, live = on_two.dev_addrs(), live_now(host)
    for n in count(1):
        host.fail_nth(function, n, 507899)
        try:
            on_two.vm.sleep(keep="discard")
        except AclError:
            host.clear_failures()
            assert (on_two.dev_addrs(), live_now(host)) == (addrs, live)
            assert not any(on_two.vm.is_asleep(device) for device in (D0, D1))
            on_two.check()
        else:
            host.clear_failures()
            break
    assert n > 2
    assert live_now(host).handles == 0
    assert not any(on_two.is_loaded(name, device) for name in SIZES for device in (D0, D1))
    on_two.vm.wake()


def test_memory_that_was_given_up_and_taken_again_sleeps(filled: Filled, host: HostControls) -> None:
    """A page could not be had once; the next load takes blocks from the same memory again."""
    vm = filled.vm
    late = [vm.assign_var_mem(name, None, make_desc(5 * MIB)) for name in ("plain", "grown")]
    host.fail_nth("aclrtMapMem", 1, 507899)
    vm.write_var_memory(late[0], bytes(5 * MIB))
    filled.session.init_var_memory(D0)
    filled.session.init_var_memory(D0)
    vm.write_var_memory(late[1], b"x" * 5 * MIB)
    owners = [vm.get_var_mgr_info(addr, D0) for addr in late]
    assert [record is not None and record.owner is None for record in owners] == [False, True]
    assert filled.session.sleep() == 10 * MIB
    filled.session.wake()
    filled.check()
    back = np.empty(5 * MIB, np.uint8)
    vm.read_var_memory(late[1], back)
    assert (back == ord("x")).all()


@pytest.mark.parametrize("kinds", [None, ["Constant"]])
def test_what_a_thread_writes_meanwhile_is_not_lost(filled: Filled, kinds: list[str] | None) -> None:
    """It reads what it wrote last, and writes the next number, while the memory falls asleep and wakes."""
    vm, addr, is_over = filled.vm, filled.addrs["w"], threading.Event()
    wrong: list[object] = []

    def work() -> None:
        written, value = 0, np.empty(SIZES["w"], np.uint8)
        vm.write_var_memory(addr, bytes(SIZES["w"]))
        while not is_over.is_set():
            with suppress(StateError):  # it sleeps
                vm.read_var_memory(addr, value)
                if not (value == written).all():
                    wrong.append((written, set(value.tolist())))
                vm.write_var_memory(addr, np.full(SIZES["w"], (written + 1) % 251, np.uint8))
                written = (written + 1) % 251

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(15):
        vm.sleep(kinds)
        vm.wake()
    is_over.set()
    thread.join(60)
    assert not thread.is_alive()
    assert wrong == []


def test_memory_does_not_sleep_from_within_an_access(filled: Filled) -> None:
    vm = filled.vm
    with vm._access.use():
        for call in (vm.sleep, vm.wake):
            with pytest.raises(StateError, match="this thread is reading or writing a variable"):
                call()
    filled.check()
