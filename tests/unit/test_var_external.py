"""Variable memory that the caller gives as one region."""

import pytest

from gevar.errors import AclError, AddressError, FormatError
from gevar.types import DataType, DevAddr, DeviceId, LogicAddr, MemType
from gevar.var import VarManager
from tests.helpers.var_memory import GIB, FakeMemory, constant, make_desc, make_manager, place_holder, with_init

BASE = 128 * GIB


@pytest.fixture
def memory() -> FakeMemory:
    return FakeMemory()


@pytest.fixture
def vm(memory: FakeMemory) -> VarManager:
    return make_manager(memory)


def _region(vm: VarManager, memory: FakeMemory, size: int, device: int = 0) -> DevAddr:
    """Give the manager a region that the test owns."""
    addr = memory.malloc_memory(MemType.RT_MEMORY_HBM, "region", size, DeviceId(device))
    memory.mallocs.clear()
    vm.set_external_var(addr, size, DeviceId(device))
    return addr


def _resolve(vm: VarManager, offset: int, device: int = 0) -> int:
    return vm.get_var_memory_addr(LogicAddr(BASE + offset), device_id=DeviceId(device))


def test_the_worked_example(vm: VarManager, memory: FakeMemory) -> None:
    """Section 11 of the behaviour reference, with external memory of 5120 bytes."""
    desc = make_desc(24)
    vm.assign_var_mem("A", None, desc)
    vm.assign_var_mem("B", None, make_desc(600))
    vm.assign_var_mem("C1", constant("C1", bytes(24), desc), desc)
    vm.assign_var_mem("P", place_holder("P", 20000, 24), desc)
    region = _region(vm, memory, 5120)
    assert _resolve(vm, 0) == region
    assert _resolve(vm, 1536) == region + 1536
    assert _resolve(vm, 5119) == region + 5119
    with pytest.raises(AddressError):
        vm.get_var_memory_addr(LogicAddr(BASE + 6656))
    vm.set_external_var(region, 5119)
    for offset in (0, 1536, 3584):
        with pytest.raises(AddressError, match="region has 5119 B and the variables need 5120 B"):
            _resolve(vm, offset)
    assert memory.mallocs == []


def test_a_region_that_is_too_small_is_refused_with_both_sizes(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("a", None, make_desc(24))
    vm.assign_var_mem("b", None, make_desc(24))
    _region(vm, memory, 2048)
    with pytest.raises(AddressError, match="2048 B and the variables need 3072 B; give a larger one"):
        _resolve(vm, 0)


def test_a_new_variable_may_make_the_region_too_small(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("a", None, make_desc(24))
    region = _region(vm, memory, 1536)
    assert _resolve(vm, 23) == region + 23
    vm.assign_var_mem("b", None, make_desc(24))
    with pytest.raises(AddressError, match="need 3072 B"):
        _resolve(vm, 0)


@pytest.mark.parametrize("offset", [-1, 4096, 1 << 40])
def test_addresses_outside_the_region(vm: VarManager, memory: FakeMemory, offset: int) -> None:
    vm.assign_var_mem("a", None, make_desc(24))
    _region(vm, memory, 4096)
    with pytest.raises(AddressError, match="does not lie in the external region, 4096 B from"):
        _resolve(vm, offset)


def test_every_byte_of_the_region_resolves_as_in_ge(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("a", None, make_desc(24))
    region = _region(vm, memory, 4096)
    assert [_resolve(vm, offset) - region for offset in (24, 1535, 2000, 4095)] == [24, 1535, 2000, 4095]


def test_other_kinds_of_memory_are_allocated(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("a", None, make_desc(24))
    region = _region(vm, memory, 4096)
    own = vm.get_var_memory_addr(LogicAddr(BASE), MemType.RT_MEMORY_HOST)
    assert not region <= own < region + 4096
    assert _resolve(vm, 0) == region
    vm.set_external_var(None)
    assert _resolve(vm, 0) == own


def test_a_region_belongs_to_one_device(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("a", None, make_desc(24))
    region = _region(vm, memory, 4096, device=1)
    assert _resolve(vm, 8, 1) == region + 8
    assert memory.mallocs == []
    _resolve(vm, 8, 0)
    assert memory.mallocs == [(MemType.RT_MEMORY_HBM, 1536, 0)]


def test_variables_behind_a_place_holder_count(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("p", place_holder("p", 20000, 24), make_desc(24))
    vm.assign_var_mem("v", None, make_desc(24))
    assert vm.get_var_mem_size() == 1536
    _region(vm, memory, 1536)
    with pytest.raises(AddressError, match="need 3072 B"):
        _resolve(vm, 1536)
    region = _region(vm, memory, 3072)
    assert _resolve(vm, 1536) == region + 1536
    assert _resolve(vm, 4) == 20004


def test_restored_variables_count(vm: VarManager, memory: FakeMemory) -> None:
    op = constant("c", None, make_desc(24))
    vm.restore_var_mem("c", type(op)("c", "Constant", (make_desc(24),), (BASE + 4096,)), make_desc(24))
    _region(vm, memory, 4096)
    with pytest.raises(AddressError, match="need 5632 B"):
        _resolve(vm, 4096)


def test_a_variable_under_an_older_base_does_not_lie_in_the_region(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("a", None, make_desc(4096))
    vm.set_var_mem_logic_base(BASE + 100)
    _region(vm, memory, 8192)
    with pytest.raises(AddressError, match="does not lie in the external region"):
        vm.get_var_memory_addr(LogicAddr(BASE + 100))


def test_initial_values_are_laid_down_once(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("a", None, make_desc(24))
    vm.assign_var_mem("v", None, with_init(make_desc(4), b"\x01\x02\x03\x04"))
    region = _region(vm, memory, 4096)
    assert _resolve(vm, 1538) == region + 1538
    assert bytes(vm["v"].read().view("u1")) == b"\x01\x02\x03\x04"
    vm["v"].write(b"\x09\x09\x09\x09")
    assert _resolve(vm, 1536) == region + 1536
    assert bytes(vm["v"].read().view("u1")) == b"\x09\x09\x09\x09"
    vm.free_var_memory()  # the region and what is in it stay
    assert bytes(vm["v"].read().view("u1")) == b"\x09\x09\x09\x09"


def test_a_failed_initial_value_is_tried_again(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("v", None, with_init(make_desc(4), b"\x01\x02\x03\x04"))
    region = _region(vm, memory, 4096)
    memory.fail_at = memory.calls + 1
    with pytest.raises(AclError):
        _resolve(vm, 0)
    assert _resolve(vm, 0) == region
    assert bytes(vm["v"].read().view("u1")) == b"\x01\x02\x03\x04"


def test_an_initial_value_that_does_not_fit_is_refused(vm: VarManager, memory: FakeMemory) -> None:
    desc = make_desc(4)
    vm.assign_var_mem("v", None, with_init(desc, b"1234", desc.replace(dtype=DataType.DT_UINT8)))
    _region(vm, memory, 4096)
    for _ in range(2):
        with pytest.raises(FormatError):
            _resolve(vm, 0)


def test_the_callers_region_is_never_freed(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("a", None, make_desc(24))
    _region(vm, memory, 4096)
    _resolve(vm, 0)
    vm.free_var_memory()
    vm.set_external_var(None)
    vm.free_var_memory()
    vm.destroy()
    assert memory.frees == []
    assert len(memory.blocks) == 1


def test_after_destroy_new_variables_are_initialised_anew(vm: VarManager, memory: FakeMemory) -> None:
    desc = with_init(make_desc(4), b"\x01\x02\x03\x04")
    vm.assign_var_mem("v", None, desc)
    region = _region(vm, memory, 4096)
    vm["v"].write(b"\x00" * 4)
    vm.destroy()
    vm.init(0, 1)
    vm.assign_var_mem("w", None, desc)
    assert vm["w"].dev_addr() == region
    assert bytes(vm["w"].read().view("u1")) == b"\x01\x02\x03\x04"


@pytest.mark.parametrize(("addr", "size"), [(0, 10), (-5, 10), (4096, -1)])
def test_bad_regions_are_refused(vm: VarManager, addr: int, size: int) -> None:
    with pytest.raises(ValueError, match="external region of"):
        vm.set_external_var(DevAddr(addr), size)
