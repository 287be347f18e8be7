"""Random sequences of calls against a model of plain dictionaries.

The model knows the rules of sharing and growth in their simplest form: lists that are searched from the front, sets of
numbers, no index. After every step the manager's own checker runs and every answer is compared.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gevar.errors import AddressError, GevarError, SizeOverflowError, StateError, VariableError
from gevar.proto.var_manager import VarManagerInfo
from gevar.types import DataType, DeviceId, Format, LogicAddr, TensorDesc
from gevar.var import VarManager, VarOp
from tests.helpers.var_memory import GIB, FakeMemory, constant, file_constant, place_holder

BASE = 128 * GIB
WINDOW = 64 * 1024

NAMES = st.sampled_from(["a", "b", "c", "a1", "alias"])
DTYPES = st.sampled_from([DataType.DT_INT8, DataType.DT_UINT8, DataType.DT_FLOAT])
FORMATS = st.sampled_from([Format.FORMAT_ND, Format.FORMAT_NCHW, Format.FORMAT_NC1HWC0_C04])
SIZES = st.sampled_from([0, 1, 4, 24, 100, 512, 513, 1000, 5000])
WEIGHTS = st.sampled_from([b"", b"1234", b"12345678", b"abcd", None])
SHAPES = st.sampled_from([(4,), (2, 2), ()])
DESCS = st.builds(
    lambda dtype, fmt, shape, size: TensorDesc(dtype, fmt, shape, size=size), DTYPES, FORMATS, SHAPES, SIZES
)
DEVICES = st.sampled_from([DeviceId(0), DeviceId(1)])


def _block_bytes(size: int) -> int:
    return (size + 511) // 512 * 512 + 1024


@dataclass
class Place:
    """A block of the model."""

    addr: int
    size: int
    holder: bool = False
    content: object = None
    live: bool = True


@dataclass
class Model:
    places: list[Place] = field(default_factory=list)
    keys: dict[tuple[str, int, int], Place] = field(default_factory=dict)
    current: dict[str, TensorDesc] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    next_offset: int = 0
    assigned: int = 0
    holders: int = 0
    allocated: dict[tuple[int, int], int] = field(default_factory=dict)
    loaded: set[tuple[int, int]] = field(default_factory=set)
    bytes_at: dict[tuple[int, int], bytes] = field(default_factory=dict)
    ready: set[tuple[int, tuple[str, int, int]]] = field(default_factory=set)
    changed: dict[str, int] = field(default_factory=dict)
    staged: dict[str, TensorDesc] = field(default_factory=dict)

    def forget_devices(self) -> None:
        for known in (self.allocated, self.loaded, self.bytes_at, self.ready):
            known.clear()

    def key(self, name: str, desc: TensorDesc) -> tuple[str, int, int]:
        return self.aliases.get(name, name), int(desc.format), int(desc.dtype)

    def at(self, addr: int) -> Place | None:
        """The place that an address belongs to."""
        for place in self.places:
            if addr == place.addr or place.addr < addr < place.addr + place.size:
                return place
        return None

    def room(self, size: int) -> int | None:
        """Offset of the next block, behind everything that is taken."""
        offset, block = self.next_offset, _block_bytes(size)
        moved = True
        while moved:
            moved = False
            for place in self.places:
                start, end = place.addr - BASE, place.addr - BASE + _block_bytes(place.size)
                if start < offset + block and offset < end:
                    offset, moved = (end + 511) // 512 * 512, True
        return offset if offset + size <= WINDOW else None

    def assign(self, name: str, desc: TensorDesc, content: object, *, holder: bool) -> Place | None:
        key = self.key(name, desc)
        own, cur = self.keys.get(key), self.current.get(key[0])
        place = own if own is not None and desc.size <= own.size else None
        if place is None and cur is not None:
            shared = self.keys[key[0], int(cur.format), int(cur.dtype)]
            place = shared if desc.size <= min(cur.size, shared.size) else None
        elif place is None and own is None and content is not None:
            place = next((p for p in self.places if p.content == content and p.size >= desc.size), None)
        if place is None:
            offset = self.room(desc.size)
            if offset is None:
                return None
            place = Place(BASE + offset, desc.size, holder, content)
            self.places.append(place)
            self.next_offset = offset + _block_bytes(desc.size)
            self.assigned += _block_bytes(desc.size)
            self.holders += _block_bytes(desc.size) if holder else 0
        self.point(key, desc, place)
        place.live |= place.holder and holder
        return place

    def renew(self, name: str, fmt: int) -> bool:
        """Give the current form of a name another format; False where another form has it."""
        name = self.aliases.get(name, name)
        cur = self.current.get(name)
        if cur is None:
            return True
        old, new = (name, int(cur.format), int(cur.dtype)), (name, fmt, int(cur.dtype))
        if new != old and new in self.keys:
            return False
        self.keys[new] = self.keys.pop(old)
        self.ready = {(device, new if key == old else key) for device, key in self.ready}
        self.current[name] = cur.replace(format=fmt)
        return True

    def point(self, key: tuple[str, int, int], desc: TensorDesc, place: Place) -> None:
        cur = self.current.get(key[0])
        if self.keys.get(key) is not place or cur is None or not cur.same_description(desc):
            self.current[key[0]] = desc
        self.keys[key] = place


class VarMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.memory = FakeMemory()
        self.vm = VarManager(1)
        self.vm.set_mem_manager(self.memory)
        self._start()

    def _start(self) -> None:
        self.vm.init(0, 1)
        self.vm.set_memory_malloc_size(64 * GIB)
        self.vm.set_var_mem_max_size(WINDOW)
        self.model = Model()

    def _assign(self, name: str, desc: TensorDesc, op: VarOp | None, content: object, *, holder: bool = False) -> None:
        wanted = self.model.assign(name, desc, content, holder=holder)
        if wanted is None:
            with pytest.raises(SizeOverflowError):
                self.vm.assign_var_mem(name, op, desc)
        else:
            assert self.vm.assign_var_mem(name, op, desc) == wanted.addr

    @rule(name=NAMES, desc=DESCS)
    def assign_variable(self, name: str, desc: TensorDesc) -> None:
        self._assign(name, desc, VarOp(name, "Variable", (desc,), value=b"1234"), None)

    @rule(name=NAMES, desc=DESCS, weight=WEIGHTS)
    def assign_constant(self, name: str, desc: TensorDesc, weight: bytes | None) -> None:
        content = ("constant", weight, desc.dtype.size_code) if weight else None
        self._assign(name, desc, constant(name, weight, desc), content)

    @rule(name=NAMES, desc=DESCS, path=st.sampled_from(["", "x", "y"]), length=st.sampled_from([4, 8]))
    def assign_file_constant(self, name: str, desc: TensorDesc, path: str, length: int) -> None:
        content = ("file", path, length) if path else None
        self._assign(name, desc, file_constant(name, path, 0, length), content)

    @rule(name=st.sampled_from(["p", "q"]), desc=DESCS)
    def assign_place_holder(self, name: str, desc: TensorDesc) -> None:
        self._assign(name, desc, place_holder(name, 87960930000000, 8192), None, holder=True)

    @rule(name=NAMES, desc=DESCS)
    def refuse_a_bad_place_holder(self, name: str, desc: TensorDesc) -> None:
        if self.model.aliases.get(name, name) not in self.model.current:
            with pytest.raises((VariableError, SizeOverflowError)):
                self.vm.assign_var_mem(name, place_holder(name, 0, 8192), desc)

    @rule(name=NAMES, desc=DESCS, offset=st.integers(-600, WINDOW + 600))
    def restore(self, name: str, desc: TensorDesc, offset: int) -> None:
        model, key = self.model, self.model.key(name, desc)
        op, cur = VarOp(name, "Variable", (), (BASE + offset,)), self.model.current.get(key[0])
        if cur is not None:
            self._restore_known(name, desc, op, cur)
            return
        inside = offset >= 0 and offset + desc.size <= WINDOW
        start, end = BASE + offset, BASE + offset + desc.size
        free = model.at(start) is None and not any(start <= place.addr < end for place in model.places)
        if inside and free:
            assert self.vm.restore_var_mem(name, op, desc) == start
            place = Place(start, desc.size)
            model.places.append(place)
            model.point(key, desc, place)
        else:
            with pytest.raises((VariableError, AddressError)):
                self.vm.restore_var_mem(name, op, desc)

    def _restore_known(self, name: str, desc: TensorDesc, op: VarOp, cur: TensorDesc) -> None:
        model, key = self.model, self.model.key(name, desc)
        shared = model.keys[key[0], int(cur.format), int(cur.dtype)]
        if cur.same_description(desc):
            assert self.vm.restore_var_mem(name, op, desc) == shared.addr
        elif desc.size > min(cur.size, shared.size):
            with pytest.raises(VariableError):
                self.vm.restore_var_mem(name, op, desc)
        else:
            own = model.keys.get(key)
            place = own if own is not None and desc.size <= own.size else shared
            assert self.vm.restore_var_mem(name, op, desc) == place.addr
            model.point(key, desc, place)

    @rule(name=NAMES, fmt=FORMATS)
    def renew(self, name: str, fmt: Format) -> None:
        desc = TensorDesc(DataType.DT_FLOAT, fmt, (9,), size=1)
        if self.model.renew(name, int(fmt)):
            self.vm.renew_cur_var_desc(name, desc)
        else:
            with pytest.raises(VariableError, match="is there already"):
                self.vm.renew_cur_var_desc(name, desc)

    @rule(name=NAMES, desc=DESCS, device=DEVICES)
    def call_ready(self, name: str, desc: TensorDesc, device: DeviceId) -> None:
        key = self.model.key(name, desc)
        assert self.vm.is_var_ready(name, desc, device) == ((device, key) in self.model.ready)
        self.vm.set_var_is_ready(name, desc, device)
        self.model.ready.add((device, key))

    @rule(name=NAMES, desc=DESCS, graph_id=st.integers(0, 2))
    def change(self, name: str, desc: TensorDesc, graph_id: int) -> None:
        self.vm.set_changed_graph_id(name, graph_id)
        self.model.changed[self.model.aliases.get(name, name)] = graph_id
        self.vm.record_staged_var_desc(7, name, desc)
        self.model.staged[name] = desc

    @rule(twice=st.booleans())
    def store_and_restore(self, twice: bool) -> None:
        """Go on with a manager that was made from the message of this one, read once or twice."""
        data = self.vm.var_manager_to_bytes(strict=False)
        written = VarManagerInfo.FromString(data).SerializeToString()
        assert (len(written), VarManagerInfo.FromString(written)) == (len(data), VarManagerInfo.FromString(data))
        self.vm.destroy()
        assert self.memory.blocks == {}
        self.vm = VarManager(1)
        self.vm.set_mem_manager(self.memory)
        for _ in range(1 + twice):
            self.vm.var_manager_to_deserial(data)
        assert self.vm.var_manager_to_bytes(strict=False) == data
        self.model.forget_devices()
        for place in self.model.places:
            place.live = not place.holder

    @rule(key=st.sampled_from(["a", "b"]))
    def alias(self, key: str) -> None:
        self.vm.set_batch_variables_key_name("alias", key)
        self.model.aliases["alias"] = key

    @rule(addr=st.integers(BASE - 10, BASE + WINDOW), device=DEVICES)
    def resolve_anywhere(self, addr: int, device: DeviceId) -> None:
        self._resolve(addr, device)

    @precondition(lambda self: self.model.places)
    @rule(data=st.data(), device=DEVICES)
    def resolve_a_place(self, data: st.DataObject, device: DeviceId) -> None:
        place = data.draw(st.sampled_from(self.model.places))
        self._resolve(place.addr + data.draw(st.integers(0, max(place.size, 1))), device)

    def _resolve(self, addr: int, device: DeviceId) -> None:
        place = self.model.at(addr)
        if place is None or (place.holder and (addr - place.addr >= 8192 or not place.live)):
            with pytest.raises(AddressError):
                self.vm.get_var_memory_addr(LogicAddr(addr), device_id=device)
            return
        found = self.vm.get_var_memory_addr(LogicAddr(addr), device_id=device)
        if place.holder:
            assert found == 87960930000000 + addr - place.addr
            return
        start = self.model.allocated.setdefault((device, place.addr), found - (addr - place.addr))
        assert found == start + addr - place.addr

    @precondition(lambda self: any(not place.holder for place in self.model.places))
    @rule(data=st.data(), device=DEVICES, fill=st.integers(0, 255))
    def write(self, data: st.DataObject, device: DeviceId, fill: int) -> None:
        place = data.draw(st.sampled_from([place for place in self.model.places if not place.holder]))
        self.vm.write_var_memory(LogicAddr(place.addr), bytes([fill]) * place.size, device)
        self._resolve(place.addr, device)
        self.model.bytes_at[device, place.addr] = bytes([fill]) * place.size

    @precondition(lambda self: self.model.places)
    @rule(data=st.data(), device=DEVICES)
    def ask_for_loaded(self, data: st.DataObject, device: DeviceId) -> None:
        place = data.draw(st.sampled_from(self.model.places))
        op = VarOp("c", "Constant", (), (place.addr,))
        assert self.vm.check_and_set_var_loaded(op, device) == ((device, place.addr) in self.model.loaded)
        self.model.loaded.add((device, place.addr))

    @rule()
    def free(self) -> None:
        self.vm.free_var_memory()
        self.model.forget_devices()
        assert self.memory.blocks == {}

    @rule(device=DEVICES)
    def fail_an_allocation(self, device: DeviceId) -> None:
        waiting = [p for p in self.model.places if not p.holder and (device, p.addr) not in self.model.allocated]
        if waiting:
            self.memory.fail_at = self.memory.calls + 1
            with pytest.raises(GevarError, match="507899"):
                self.vm.get_var_memory_addr(LogicAddr(waiting[0].addr), device_id=device)
            self.memory.fail_at = 0

    @rule()
    def destroy(self) -> None:
        self.vm.destroy()
        with pytest.raises(StateError):
            self.vm.get_var_memory_addr(LogicAddr(BASE))
        assert self.memory.blocks == {}
        self._start()

    @invariant()
    def tables_agree(self) -> None:
        vm, model = self.vm, self.model
        vm.check()
        assert vm.get_var_mem_size() == model.assigned - model.holders
        assert vm.get_var_const_place_holder_mem_size() == model.holders
        assert (vm.get_all_variables() if model.current else {}) == model.current
        for (name, fmt, dtype), place in model.keys.items():
            desc = TensorDesc(DataType.from_number(dtype), fmt, ())
            if name not in model.aliases:
                assert vm.get_var_addr(name, desc) == place.addr
        for place in model.places:
            assert vm.is_var_addr(place.addr)
        assert vm.get_staged_var_descs(7) == model.staged
        for graph_id in range(3):
            names = {name for name, graph in model.changed.items() if graph == graph_id}
            assert vm.get_changed_var_names(graph_id) == names

    @invariant()
    def memory_agrees(self) -> None:
        model = self.model
        assert len(self.memory.blocks) == len(model.allocated)
        sizes = {place.addr: _block_bytes(place.size) for place in model.places}
        assert self.vm.get_var_malloc_mem_size() == sum(sizes[addr] for _, addr in model.allocated)
        for (device, addr), content in model.bytes_at.items():
            back = bytearray(len(content))
            self.vm.read_var_memory(LogicAddr(addr), back, DeviceId(device))
            assert back == content


VarMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestVarMachine: type = VarMachine.TestCase


def test_the_model_can_disagree(monkeypatch: pytest.MonkeyPatch) -> None:
    """A manager that loses the capacity of blocks is found out by a short sequence."""
    monkeypatch.setattr("gevar.var.var_block.VarBlock.size_bytes", property(lambda self: 1 << 20))
    machine = VarMachine()
    calls: list[Callable[[], None]] = [
        lambda: machine.assign_variable("a", TensorDesc(DataType.DT_INT8, Format.FORMAT_ND, (4,), size=4)),
        lambda: machine.assign_variable("a", TensorDesc(DataType.DT_INT8, Format.FORMAT_ND, (4,), size=5000)),
    ]
    calls[0]()
    with pytest.raises(AssertionError):
        calls[1]()
