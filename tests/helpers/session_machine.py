"""A session on two devices against plain dictionaries: variables, policies, failures, freed memory, sleep and wake."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gevar import Session
from gevar.errors import AclError, GevarError, StateError
from gevar.types import DeviceId, LogicAddr, MemType
from gevar.var.block_memory import DeviceRecord
from gevar.var.load_state import LoadState
from tests.helpers.runtime import controls, host_runtime, live_now
from tests.helpers.var_memory import constant, make_desc, with_init

DEVICES = (DeviceId(0), DeviceId(1))
HBM = MemType.RT_MEMORY_HBM
OPTION, POLICY = "ge.variableUse1gHugePage", "ge.exec.staticMemoryPolicy"
OPTIONS: tuple[dict[str, str], ...] = ({}, {POLICY: "2"}, {POLICY: "3"}, {OPTION: "1"}, {OPTION: "2"})
MIB = 1 << 20
FAILING = (
    *("aclrtReserveMemAddress", "aclrtMallocPhysical", "aclrtMapMem", "aclrtUnmapMem", "aclrtFreePhysical"),
    *("aclrtReleaseMemAddress", "aclrtMemcpy", "aclrtMallocWithCfg", "aclrtFree", "aclrtSetCurrentContext"),
)
Place = tuple[str, DeviceId]
devices = st.sampled_from(DEVICES)
failures = st.one_of(st.none(), st.tuples(st.sampled_from(FAILING), st.integers(1, 6)))
Failure = tuple[str, int] | None


class SessionMachine(RuleBasedStateMachine):
    """What a session should hold, and what it does."""

    def __init__(self) -> None:
        super().__init__()
        self.host = controls()
        self.session: Session | None = None
        self.addrs: dict[str, LogicAddr] = {}
        self.sizes: dict[str, int] = {}
        self.kinds: dict[str, str] = {}
        self.inits: dict[str, bytes] = {}
        self.content: dict[Place, bytes | None] = {}  # None: has memory, its bytes are not known
        self.plain: set[Place] = set()
        self.loaded: set[Place] = set()
        self.dev_addrs: dict[Place, int] = {}
        self.growing: set[DeviceId] = set()
        self.asleep: set[DeviceId] = set()

    @initialize(
        options=st.sampled_from(OPTIONS),
        growing=st.sampled_from([(), DEVICES[1:], DEVICES]),
        pages_2m=st.sampled_from([3, 12, 600]),
        pages_1g=st.integers(0, 2),
    )
    def begin(self, options: dict[str, str], growing: tuple[DeviceId, ...], pages_2m: int, pages_1g: int) -> None:
        self.host.configure(devices=2, pages_2m=pages_2m, pages_1g=pages_1g, pages_4k_bytes=MIB)
        self.only_1g = options.get(OPTION) == "1"
        self.session = Session(host_runtime(), options=options)
        self.vm = self.session.var_manager
        self.session.rt_var_manager.init(DEVICES[0], 128 << 30, 8 << 30)
        for device in growing:
            self.grow(device)

    def teardown(self) -> None:
        self.host.clear_failures()
        if self.session is not None:
            self.session.close()
            live = live_now(self.host)
            assert (live.blocks, live.handles, live.mappings, live.reservations) == (0, 0, 0, 0)
            host_runtime().reset_devices()

    @contextmanager
    def failing(self, failure: Failure) -> Iterator[None]:
        """Let a call fail meanwhile."""
        if failure is not None:
            self.host.fail_nth(*failure, 507899)
        try:
            yield
        finally:
            self.host.clear_failures()

    @rule(device=devices)
    def grow(self, device: DeviceId) -> None:
        """Take blocks of a device from memory that grows, again where it was given up."""
        assert self.session is not None
        if device not in self.asleep:
            self.session.init_var_memory(device)
            self.growing.add(device)

    @rule(size=st.sampled_from([1, 511, 513, 4096, 3 * MIB]), kind=st.sampled_from(["Variable", "Constant", "init"]))
    def assign(self, size: int, kind: str) -> None:
        name = f"v{len(self.addrs)}"
        desc = make_desc(size)
        if kind == "init":
            self.inits[name] = (name.encode() * size)[:size]
            desc = with_init(desc, self.inits[name])
        value = f"{name} is not like others".encode()
        op = constant(name, value, desc) if kind == "Constant" else None
        self.addrs[name] = self.vm.assign_var_mem(name, op, desc)
        self.sizes[name] = size
        self.kinds[name] = "Constant" if kind == "Constant" else "Variable"

    def _pick(self, number: int) -> str | None:
        return list(self.addrs)[number % len(self.addrs)] if self.addrs else None

    def _sleeps(self, place: Place) -> bool:
        return place[1] in self.asleep and place in self.content and place not in self.plain

    def _may_refuse(self, place: Place) -> bool:
        """Whether a `StateError` is right where a place has no memory yet."""
        return place not in self.content and (place[1] in self.asleep or self.only_1g)

    def _see(self, place: Place) -> None:
        """Note the memory that a place has got, if it has."""
        name, device = place
        record = self.vm.get_var_mgr_info(self.addrs[name], device)
        if record is None:
            assert place not in self.content
        elif place not in self.content:
            self.content[place] = self.inits.get(name)
            if record.owner is not None:
                self.plain.add(place)
            assert device in self.growing or record.owner is not None
            assert not (self.only_1g and record.owner is not None)

    @rule(number=st.integers(0, 50), device=devices, value=st.integers(0, 255), is_load=st.booleans(), failure=failures)
    def write(self, number: int, device: DeviceId, value: int, is_load: bool, failure: Failure) -> None:
        name = self._pick(number)
        if name is None:
            return
        place, data = (name, device), bytes([value]) * self.sizes[name]
        slept, may_refuse = self._sleeps(place), self._may_refuse(place)
        with self.failing(failure):
            try:
                self.vm.write_var_memory(self.addrs[name], data, device)
            except StateError:
                assert slept or may_refuse
                return
            except AclError:
                assert not slept
                self._see(place)
                if place in self.content:
                    self.content[place] = None  # the bytes may be there all the same, or half of them
                return
        assert not slept
        self._see(place)
        self.content[place] = data
        if is_load:
            ticket = self.vm.begin_var_load(self.addrs[name], device)
            assert (ticket is None) == (place in self.loaded)
            if ticket is not None:
                ticket.commit()
            self.loaded.add(place)

    @rule(number=st.integers(0, 50), device=devices, failure=failures)
    def read(self, number: int, device: DeviceId, failure: Failure) -> None:
        name = self._pick(number)
        if name is None:
            return
        place, value = (name, device), np.empty(self.sizes[name], np.uint8)
        no_bytes = place not in self.content and name not in self.inits
        slept, may_refuse = self._sleeps(place), self._may_refuse(place)
        with self.failing(failure):
            try:
                self.vm.read_var_memory(self.addrs[name], value, device)
            except StateError:
                assert slept or no_bytes or may_refuse
                return
            except AclError:
                assert not slept
                assert not no_bytes
                self._see(place)
                return
        self._see(place)
        expected = self.content[place]
        assert expected is None or value.tobytes() == expected

    @rule(
        kinds=st.sampled_from([None, ["Variable"], ["Constant"]]),
        keep=st.sampled_from(["host", "reload", "discard"]),
        device=st.sampled_from([None, *DEVICES]),
        failure=failures,
    )
    def sleep(self, kinds: list[str] | None, keep: str, device: DeviceId | None, failure: Failure) -> None:
        assert self.session is not None
        wanted = {at for at in self.growing if device in (None, at)}
        reload = self._reload if keep == "reload" else None
        with self.failing(failure):
            try:
                self.session.sleep(kinds, keep, reload, device_id=device)
            except GevarError:
                assert failure is not None or not wanted or wanted & self.asleep
                return
        assert wanted
        assert not wanted & self.asleep
        self.asleep |= wanted
        for place in [place for place in self.content if place[1] in wanted and place not in self.plain]:
            if keep == "discard" and (kinds is None or self.kinds[place[0]] in kinds):
                self.content[place] = self.inits.get(place[0])
                self.loaded.discard(place)

    def _reload(self, record: DeviceRecord) -> None:
        data = self.content[record.block.name, record.device_id]
        if data is not None:
            self.vm.write_var_memory(record.block.logic_addr, data, record.device_id)

    @rule(failure=failures, device=st.sampled_from([None, *DEVICES]))
    def wake(self, failure: Failure, device: DeviceId | None) -> None:
        assert self.session is not None
        with self.failing(failure):
            try:
                self.session.wake(device)
            except AclError:
                assert self.asleep  # pages may have gone to plain memory meanwhile
                return
        self.asleep -= {at for at in DEVICES if device in (None, at)}

    @precondition(lambda self: len(self.content) > 3)
    @rule(failure=failures)
    def free(self, failure: Failure) -> None:
        with self.failing(failure):
            try:
                self.vm.free_var_memory()
            except AclError:
                assert failure is not None  # its owner has it still, and gives it back when the session ends
        self.content.clear()
        self.plain.clear()
        self.loaded.clear()
        self.asleep.clear()
        self.dev_addrs.clear()
        self.growing.clear()

    @invariant()
    def tables_agree(self) -> None:
        if self.session is None:
            return
        self.vm.check()
        assert {at for at in DEVICES if self.vm.is_asleep(at)} == self.asleep
        for name, device in self.content:
            addr = self.vm.get_var_memory_addr(self.addrs[name], HBM, device)
            assert self.dev_addrs.setdefault((name, device), addr) == addr
            state = self.vm.get_var_load_state(self.addrs[name], device)
            assert (state is LoadState.LOADED) == ((name, device) in self.loaded)

    @invariant()
    def bytes_survive(self) -> None:
        for place, expected in self.content.items():
            if expected is not None and not self._sleeps(place):
                value = np.empty(len(expected), np.uint8)
                self.vm.read_var_memory(self.addrs[place[0]], value, place[1])
                assert value.tobytes() == expected
