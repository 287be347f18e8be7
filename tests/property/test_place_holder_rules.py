"""Place holders and external variable memory at random against their rules: bounds, devices, stored states."""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from gevar.errors import AddressError, GevarError
from gevar.status import INTERNAL_ERROR
from gevar.types import DataType, DevAddr, DeviceId, LogicAddr, MemType
from gevar.var import VarManager, VarOp
from gevar.var.var_op import AttrValue
from tests.helpers import file_constant_rules as rules
from tests.helpers.var_memory import GIB, FakeMemory, make_desc, make_manager

BASE = 128 * GIB
STEPS = 60
SIZES = (0, 1, 24, 511, 512, 513, 4096)
REGION = 1 << 45
HOLDER = 20_000
DTYPES = ((DataType.DT_FLOAT, 4), (DataType.DT_INT8, 1), (DataType.DT_COMPLEX128, 16))


class Machine:
    """A manager, and what its rules say of every variable."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.memory = chance, FakeMemory()
        self.vm = make_manager(self.memory)
        self.variables: dict[str, rules.Variable] = {}
        self.regions: dict[int, tuple[int, int]] = {}
        self.resolved = self.refused = self.restored = 0

    def step(self) -> None:
        steps = (self.assign, self.hold, self.hold, self.region, self.store, *[self.resolve] * 6)
        self.chance.choice(steps)()

    def assign(self) -> None:
        name, size = f"v{len(self.variables)}", self.chance.choice(SIZES)
        start = self.vm.assign_var_mem(name, VarOp(name, "Variable", (make_desc(size),)), make_desc(size))
        self._know(name, start, rules.Variable(start, size))

    def hold(self) -> None:
        """Assign a place holder, a new one or one whose memory is that of another process; attributes may be wrong."""
        chance = self.chance
        dead = [name for name, one in self.variables.items() if one.addr is not None and not one.is_live]
        name = chance.choice([*dead, f"p{len(self.variables)}"])
        known = self.variables.get(name)
        size = chance.choice(SIZES) if known is None else known.size
        dtype, element_bytes = chance.choice(DTYPES)
        attrs: dict[str, AttrValue] = {
            "storage_shape": chance.choice(
                ((size // element_bytes,), (1, size // element_bytes), (size,), (0, 1 << 62), (-1,))
            ),
            "dtype": dtype,
            "size": chance.choice((size, size, size, 2 * size, size // 2, -1, 1 << 62)),
            "placement": chance.choice((1,) * 12 + (0, 2)),
            "addr": chance.choice((HOLDER, 1 << 40, (1 << 63) - 1, -(1 << 40), -1, 0, HOLDER, HOLDER)),
        }
        if chance.random() < 0.1:
            del attrs[chance.choice(sorted(attrs))]
        op = VarOp(name, "ConstPlaceHolder", (make_desc(size),), attrs=attrs)
        try:
            addr, addr_bytes = rules.holder_memory(attrs, element_bytes)
        except rules.Refusal:
            before = self._taken()
            with pytest.raises(GevarError, match=name) as caught:
                self.vm.assign_var_mem(name, op, make_desc(size))
            assert caught.value.status == INTERNAL_ERROR
            assert self._taken() == before
            return
        start = self.vm.assign_var_mem(name, op, make_desc(size))
        assert known is None or start == known.start
        self._know(name, start, rules.Variable(start, size, addr, addr_bytes))

    def _taken(self) -> tuple[object, ...]:
        vm = self.vm
        return vm.table(), vm.get_var_mem_size(), vm.get_var_const_place_holder_mem_size()

    def _know(self, name: str, start: int, one: rules.Variable) -> None:
        for other_name, other in self.variables.items():
            assert other_name == name or start >= other.reserved_end or one.reserved_end <= other.start
        self.variables[name] = one

    def region(self) -> None:
        """Give or take away memory for the variables of a device, often with just enough bytes."""
        device_id = self.chance.randrange(2)
        if self.chance.random() < 0.4:
            self.vm.set_external_var(None, device_id=DeviceId(device_id))
            self.regions.pop(device_id, None)
            return
        end = max((one.reserved_end for one in self.variables.values() if one.addr is None), default=BASE)
        size = max(end - BASE + self.chance.choice((0, 0, 0, 1, -1, 512, 1 << 20)), 0)
        addr = REGION * (device_id + 1)
        self.vm.set_external_var(DevAddr(addr), size, DeviceId(device_id))
        self.regions[device_id] = addr, size

    def store(self) -> None:
        """Go on with another manager that takes over the stored state: what is external stays so, and is not live."""
        data = self.vm.var_manager_to_bytes()
        self.vm, self.memory = VarManager(1), FakeMemory()
        self.vm.var_manager_to_deserial(data)
        self.vm.set_mem_manager(self.memory)
        self.regions.clear()
        self.variables = {
            name: one if one.addr is None else replace(one, is_live=False) for name, one in self.variables.items()
        }
        told = self.vm.var_manager_to_serial().var_resource.var_dev_addr_mgr_map
        for one in self.variables.values():
            assert told[one.start].dev_addr == (one.addr or 0)
        self.restored += 1

    def resolve(self) -> None:
        if not self.variables:
            return
        device_id = DeviceId(self.chance.randrange(2))
        one = self.chance.choice(list(self.variables.values()))
        ends = (one.size, one.addr_bytes, one.size // 2, -(-one.size // 512) * 512, one.reserved_end - one.start)
        address = one.start + self.chance.choice((0, 0, *ends)) + self.chance.choice((0, 0, -1, 1))
        try:
            block, place = rules.resolve(address, self.variables.values(), BASE, self.regions.get(device_id))
        except rules.Refusal as refusal:
            self._refuse(address, device_id, refusal.tells)
            return
        found = self.vm.get_var_memory_addr(LogicAddr(address), MemType.RT_MEMORY_HBM, device_id)
        self.resolved += 1
        if block is None:
            assert found == place
            return
        start = found - place - 512
        assert len(self.memory.blocks[device_id, start].data) == block.reserved_end - block.start

    def _refuse(self, address: int, device_id: DeviceId, tells: tuple[str, ...]) -> None:
        live = dict(self.memory.blocks)
        with pytest.raises(AddressError) as caught:
            self.vm.get_var_memory_addr(LogicAddr(address), MemType.RT_MEMORY_HBM, device_id)
        assert all(part in str(caught.value) for part in tells)
        assert self.memory.blocks == live
        self.refused += 1

    def end(self) -> None:
        """Nothing of the caller's was ever freed, and what the manager had is given back."""
        self.vm.check()
        self.vm.free_var_memory()
        assert not self.memory.blocks
        callers = {one.addr for one in self.variables.values()} | {addr for addr, _ in self.regions.values()}
        assert not callers & {addr for _, addr, _ in self.memory.frees}


@pytest.fixture(params=range(40))
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    machine = Machine(random.Random(request.param))
    yield machine
    machine.end()


def test_addresses_are_those_of_the_rules(machine: Machine) -> None:
    for _ in range(STEPS):
        machine.step()
    assert machine.resolved
