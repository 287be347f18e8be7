"""A session on two devices against plain dictionaries: variables, failures, freed memory, sleep and wake."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gevar import Session
from gevar.errors import GevarError, StateError
from gevar.types import DeviceId, LogicAddr, MemType
from gevar.var.block_memory import DeviceRecord
from gevar.var.load_state import LoadState
from tests.helpers.runtime import controls, host_runtime
from tests.helpers.var_memory import constant, make_desc, with_init

DEVICES = (DeviceId(0), DeviceId(1))
HBM = MemType.RT_MEMORY_HBM
FAILING = ("aclrtMallocPhysical", "aclrtMapMem", "aclrtUnmapMem", "aclrtMemcpy", "aclrtMallocWithCfg", "aclrtFree")
Place = tuple[str, DeviceId]
devices = st.sampled_from(DEVICES)


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
        self.asleep: set[DeviceId] = set()

    @initialize(growing=st.sampled_from([(), DEVICES[1:], DEVICES]))
    def begin(self, growing: tuple[DeviceId, ...]) -> None:
        self.host.configure(devices=2)
        self.session = Session(host_runtime())
        self.vm = self.session.var_manager
        self.session.rt_var_manager.init(DEVICES[0], 128 << 30, 8 << 30)
        self.growing = set(growing)
        for device in self.growing:
            self.session.init_var_memory(device)

    def teardown(self) -> None:
        self.host.clear_failures()
        if self.session is not None:
            self.session.close()

    @rule(size=st.sampled_from([1, 511, 513, 3 << 20]), kind=st.sampled_from(["Variable", "Constant", "init"]))
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

    def _sleeps(self, name: str, device: DeviceId) -> bool:
        return device in self.asleep and (name, device) not in self.plain

    @rule(number=st.integers(0, 50), device=devices, value=st.integers(0, 255), is_load=st.booleans())
    def write(self, number: int, device: DeviceId, value: int, is_load: bool) -> None:
        name = self._pick(number)
        if name is None:
            return
        place, data = (name, device), bytes([value]) * self.sizes[name]
        try:
            self.vm.write_var_memory(self.addrs[name], data, device)
        except StateError:
            assert self._sleeps(name, device)
            return
        assert not self._sleeps(name, device)
        if place not in self.content and device not in self.growing:
            self.plain.add(place)
        self.content[place] = data
        if is_load:
            ticket = self.vm.begin_var_load(self.addrs[name], device)
            assert (ticket is None) == (place in self.loaded)
            if ticket is not None:
                ticket.commit()
            self.loaded.add(place)

    @rule(number=st.integers(0, 50), device=devices)
    def read(self, number: int, device: DeviceId) -> None:
        name = self._pick(number)
        if name is None:
            return
        place, value = (name, device), np.empty(self.sizes[name], np.uint8)
        try:
            self.vm.read_var_memory(self.addrs[name], value, device)
        except StateError:
            assert self._sleeps(name, device) or (place not in self.content and name not in self.inits)
            return
        if place not in self.content:
            self.content[place] = self.inits[name]
            if device not in self.growing:
                self.plain.add(place)
        expected = self.content[place]
        assert expected is None or value.tobytes() == expected

    @rule(
        kinds=st.sampled_from([None, ["Variable"], ["Constant"]]),
        keep=st.sampled_from(["host", "reload", "discard"]),
        device=st.sampled_from([None, *DEVICES]),
        failing=st.sampled_from([None, *FAILING]),
        nth=st.integers(1, 6),
    )
    def sleep(self, kinds: list[str] | None, keep: str, device: DeviceId | None, failing: str | None, nth: int) -> None:
        assert self.session is not None
        wanted = {at for at in self.growing if device in (None, at)}
        if failing is not None:
            self.host.fail_nth(failing, nth, 507899)
        reload = self._reload if keep == "reload" else None
        try:
            self.session.sleep(kinds, keep, reload, device_id=device)
        except GevarError:
            assert failing is not None or not wanted or wanted & self.asleep
            return
        finally:
            self.host.clear_failures()
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

    @rule(failing=st.sampled_from([None, *FAILING]), nth=st.integers(1, 6), device=st.sampled_from([None, *DEVICES]))
    def wake(self, failing: str | None, nth: int, device: DeviceId | None) -> None:
        assert self.session is not None
        if failing is not None:
            self.host.fail_nth(failing, nth, 507899)
        try:
            self.session.wake(device)
        except GevarError:
            assert failing is not None
            assert self.asleep
            return
        finally:
            self.host.clear_failures()
        self.asleep -= {at for at in DEVICES if device in (None, at)}

    @precondition(lambda self: len(self.content) > 3)
    @rule()
    def free(self) -> None:
        self.vm.free_var_memory()
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


SessionMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestSessionMachine = SessionMachine.TestCase
