"""From logical to device addresses, with memory of the manager's."""

import threading

import numpy as np
import pytest

from gevar.errors import AclError, AddressError, FormatError, StateError
from gevar.status import FAILED
from gevar.types import DataType, DevAddr, DeviceId, Format, LogicAddr, MemType
from gevar.var import VarManager
from tests.helpers.var_memory import (
    GIB,
    FakeMemory,
    constant,
    make_desc,
    make_manager,
    place_holder,
    with_init,
)

BASE = 128 * GIB
HBM = MemType.RT_MEMORY_HBM


@pytest.fixture
def memory() -> FakeMemory:
    return FakeMemory()


@pytest.fixture
def vm(memory: FakeMemory) -> VarManager:
    return make_manager(memory)


def _resolve(vm: VarManager, offset: int, device: int = 0) -> int:
    addr = vm.get_var_memory_addr(LogicAddr(BASE + offset), device_id=DeviceId(device))
    vm.check()
    return addr


def _only_block(memory: FakeMemory) -> int:
    ((_, addr),) = memory.blocks
    return addr


def test_the_worked_example(vm: VarManager, memory: FakeMemory) -> None:
    """Section 11 of the behaviour reference, without external memory."""
    value, desc = bytes(24), make_desc(24)
    vm.assign_var_mem("A", None, desc)
    vm.assign_var_mem("B", None, make_desc(600))
    vm.assign_var_mem("C1", constant("C1", value, desc), desc)
    vm.assign_var_mem("C2", constant("C2", value, desc), desc)
    vm.assign_var_mem("P", place_holder("P", 20000, 24), desc)
    dev_addr = _resolve(vm, 0) - 512
    assert dev_addr == _only_block(memory)
    assert memory.mallocs == [(HBM, 1536, 0)]
    assert [_resolve(vm, inner) - dev_addr for inner in (0, 8, 23)] == [512, 520, 535]
    with pytest.raises(AddressError):
        _resolve(vm, 24)
    assert _resolve(vm, 5120) == 20000
    _resolve(vm, 1536)
    assert memory.mallocs == [(HBM, 1536, 0), (HBM, 2048, 0)]
    assert _resolve(vm, 3584) == _resolve(vm, 3584)
    assert len(memory.mallocs) == 3


def test_the_first_question_may_be_inside(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("a", None, make_desc(4096))
    assert _resolve(vm, 4095) == _only_block(memory) + 512 + 4095
    assert _resolve(vm, 0) == _only_block(memory) + 512
    assert memory.mallocs == [(HBM, 5120, 0)]


def test_an_address_of_another_session_is_unknown(vm: VarManager, memory: FakeMemory) -> None:
    other = make_manager(FakeMemory(), session_id=2)
    for name in "ab":
        other.assign_var_mem(name, None, make_desc(1000))
    vm.assign_var_mem("a", None, make_desc(1000))
    theirs = other["b"].logic_addr
    for call in (vm.get_var_memory_addr, vm.check_logic_addr_valid):
        with pytest.raises(AddressError, match="belongs to no variable"):
            call(theirs)
    with pytest.raises(AddressError, match="belongs to no variable"):
        vm.resolve_many(np.array([BASE, theirs], np.uint64))
    assert memory.mallocs == []
    other["b"].dev_addr()
    assert vm.get_var_mgr_info(theirs) is None


def test_a_variable_at_offset_0_is_allocated_once(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("a", None, make_desc(8))
    assert _resolve(vm, 0) == _resolve(vm, 0)
    assert len(memory.mallocs) == 1


def test_an_empty_variable_has_its_start_only(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("z", None, make_desc(0))
    assert _resolve(vm, 0) == _only_block(memory) + 512
    assert memory.mallocs == [(HBM, 1024, 0)]
    with pytest.raises(AddressError):
        _resolve(vm, 1)


@pytest.mark.parametrize("offset", [-512, -1, 1000, 1023, 1024, 1535, 2047, 2049, 99999999])
def test_addresses_of_no_variable(vm: VarManager, memory: FakeMemory, offset: int) -> None:
    vm.assign_var_mem("a", None, make_desc(1000))
    vm.assign_var_mem("b", None, make_desc(1))
    with pytest.raises(AddressError, match="belongs to no variable") as caught:
        _resolve(vm, offset)
    assert caught.value.logic_addr == BASE + offset
    assert caught.value.nearest == ((BASE + 2048, 1) if offset > 2048 else (BASE, 1000))
    assert memory.mallocs == []


def test_devices_have_memory_of_their_own(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("a", None, make_desc(100))
    addrs = [_resolve(vm, 50, device) for device in (0, 1, 7, 1)]
    assert len(set(addrs)) == 3
    assert memory.mallocs == [(HBM, 1536, 0), (HBM, 1536, 1), (HBM, 1536, 7)]
    assert vm.get_var_malloc_mem_size() == 3 * 1536


def test_blocks_say_whose_they_are(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("a", None, make_desc(100))
    vm.assign_var_mem("b\n", None, make_desc(100))
    _resolve(vm, 0)
    _resolve(vm, 1536)
    assert [block.purpose for block in memory.blocks.values()] == ["a", "b\n"]


def test_the_kind_asked_for_goes_to_the_allocator_only(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("a", None, make_desc(100))
    first = vm.get_var_memory_addr(LogicAddr(BASE), MemType.RT_MEMORY_HOST)
    assert vm.get_var_memory_addr(LogicAddr(BASE), HBM) == first
    assert memory.mallocs == [(MemType.RT_MEMORY_HOST, 1536, 0)]
    vm.free_var_memory()
    assert [mem_type for mem_type, _, _ in memory.frees] == [MemType.RT_MEMORY_HOST]


def test_registered_memory_is_its_own_address(vm: VarManager, memory: FakeMemory) -> None:
    for addr in (0x1234_5678_9000, BASE + 77, (1 << 63) + 5):
        assert vm.get_var_memory_addr(LogicAddr(addr), MemType.RT_MEMORY_RDMA_HBM) == addr
    assert memory.calls == 0


def test_forms_that_share_a_block_share_its_memory(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("v", None, make_desc(4096, fmt=Format.FORMAT_NCHW))
    vm.assign_var_mem("v", None, make_desc(256, fmt=Format.FORMAT_NC1HWC0))
    assert _resolve(vm, 4095) == _only_block(memory) + 512 + 4095
    assert memory.mallocs == [(HBM, 5120, 0)]
    vm.assign_var_mem("v", None, make_desc(32768))
    _resolve(vm, 5120)
    assert memory.mallocs[1:] == [(HBM, 33792, 0)]


def test_variables_under_an_old_base_keep_resolving(vm: VarManager) -> None:
    vm.assign_var_mem("a", None, make_desc(64))
    vm.set_var_mem_logic_base(1 << 40)
    vm.assign_var_mem("b", None, make_desc(64))
    assert vm["b"].logic_addr == (1 << 40) + 1536
    assert vm["a"].dev_addr() != vm["b"].dev_addr()
    vm.check()


def test_no_memory_manager(memory: FakeMemory) -> None:
    vm = make_manager()
    vm.assign_var_mem("a", None, make_desc(64))
    for mem_type in (HBM, MemType.RT_MEMORY_RDMA_HBM):
        with pytest.raises(StateError, match="session 1 has no memory manager: call set_mem_manager"):
            vm.get_var_memory_addr(LogicAddr(BASE), mem_type)
    vm.set_mem_manager(memory)
    assert vm.has_memory_manager
    addr = _resolve(vm, 0)
    vm.set_mem_manager(None)
    assert not vm.has_memory_manager
    with pytest.raises(StateError) as caught:
        _resolve(vm, 0)
    assert caught.value.status == FAILED
    vm.set_mem_manager(memory)
    assert _resolve(vm, 0) == addr


def test_before_init_nothing_resolves(memory: FakeMemory) -> None:
    vm = VarManager(1)
    vm.set_mem_manager(memory)
    with pytest.raises(StateError, match="not initialised"):
        vm.get_var_memory_addr(LogicAddr(BASE))


def test_a_failed_allocation_leaves_nothing_and_names_the_variable(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("big", None, make_desc(100))
    memory.fail_at = 1
    with pytest.raises(AclError, match="507899") as caught:
        _resolve(vm, 7, 3)
    assert caught.value.__notes__ == ["the memory was for 100 B of variable big_2_2 on device 3"]
    assert vm.get_var_malloc_mem_size() == 0
    assert _resolve(vm, 7, 3) == _only_block(memory) + 519


def test_initial_values_are_there_before_the_address(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("v", None, with_init(make_desc(8), b"\x01\x02\x03\x04\x05\x06\x07\x08"))
    addr = _resolve(vm, 3)
    content = bytearray(5)
    memory.memcpy_out(content, DevAddr(addr), DeviceId(0))
    assert content == b"\x04\x05\x06\x07\x08"
    _resolve(vm, 0)
    assert memory.copies_in == 1
    _resolve(vm, 0, 1)
    assert memory.copies_in == 2


def test_a_short_initial_value_is_laid_down_at_the_start(vm: VarManager) -> None:
    vm.assign_var_mem("v", None, with_init(make_desc(8), b"\xf1\xf2\xf3"))
    assert bytes(vm["v"].read().view("u1")[:3]) == b"\xf1\xf2\xf3"


def test_an_initial_value_of_no_bytes_is_no_copy(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("v", None, with_init(make_desc(8), b""))
    _resolve(vm, 0)
    assert memory.copies_in == 0


def test_an_initial_value_that_does_not_fit_fails_each_time(vm: VarManager, memory: FakeMemory) -> None:
    desc = make_desc(16, DataType.DT_FLOAT, shape=(4,))
    vm.assign_var_mem("v", None, with_init(desc, bytes(16), desc.replace(dtype=DataType.DT_INT32)))
    for _ in range(2):
        with pytest.raises(FormatError, match="initial value DT_INT32"):
            _resolve(vm, 0)
    assert memory.blocks == {}
    assert vm.get_var_malloc_mem_size() == 0


def test_a_failed_copy_of_the_initial_value_rolls_back(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("v", None, with_init(make_desc(4), b"1234"))
    memory.fail_at = 2
    with pytest.raises(AclError, match="memcpy_in"):
        _resolve(vm, 0)
    assert memory.blocks == {}
    assert vm.get_var_malloc_mem_size() == 0
    assert bytes(vm["v"].read().view("u1")) == b"1234"


def test_a_thread_that_allocates_a_block_cannot_ask_for_it(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("v", None, make_desc(4))
    memory.on_malloc = lambda: _resolve(vm, 0)
    with pytest.raises(StateError, match="being loaded by this very thread"):
        _resolve(vm, 0)
    memory.on_malloc = None
    assert _resolve(vm, 0) == _only_block(memory) + 512


def test_another_variable_can_be_asked_for_while_one_is_allocated(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("a", None, make_desc(4))
    vm.assign_var_mem("b", None, make_desc(4))

    def nested() -> None:
        memory.on_malloc = None
        vm.assign_var_mem("c", None, make_desc(4))
        _resolve(vm, 1536)

    memory.on_malloc = nested
    _resolve(vm, 0)
    assert len(memory.blocks) == 2
    assert vm.is_var_exist("c")


def test_freeing_while_a_block_is_allocated_starts_it_again(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("v", None, make_desc(4))

    def free() -> None:
        memory.on_malloc = None
        vm.free_var_memory()

    memory.on_malloc = free
    addr = _resolve(vm, 0)
    assert addr == _only_block(memory) + 512
    assert len(memory.mallocs) == 2
    assert vm.get_var_malloc_mem_size() == 1536


def test_destroying_while_a_block_is_allocated_gives_it_back(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("v", None, make_desc(4))

    def destroy() -> None:
        memory.on_malloc = None
        vm.destroy()

    memory.on_malloc = destroy
    with pytest.raises(StateError, match="not initialised"):
        vm.get_var_memory_addr(LogicAddr(BASE))
    assert memory.blocks == {}


def test_a_hit_takes_no_lock(vm: VarManager) -> None:
    vm.assign_var_mem("v", None, make_desc(8))
    addr = _resolve(vm, 0)
    found: list[int] = []

    def look() -> None:
        found.append(vm.get_var_addr("v", make_desc(8)))
        found.append(vm.get_var_memory_addr(LogicAddr(BASE)))
        found.append(vm.get_var_memory_addr(LogicAddr(BASE + 5)))

    with vm._lock:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join(30)
        assert not thread.is_alive()
    assert found == [BASE, addr, addr + 5]


@pytest.mark.parametrize(("size", "wanted"), [(0, 1024), (1, 1536), (512, 1536), (513, 2048)])
def test_malloc_size(size: int, wanted: int) -> None:
    assert VarManager.get_var_malloc_size(make_desc(size)) == wanted
