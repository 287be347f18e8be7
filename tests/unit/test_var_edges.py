"""The careful answers: one test, or a few, for each entry of docs/differences.md."""

import re
import threading

import pytest

from gevar.errors import AclError, AddressError, FormatError, SizeOverflowError, StateError, VariableError
from gevar.status import GE_GRAPH_OPTIONS_INVALID, INTERNAL_ERROR, PARAM_INVALID
from gevar.types import DataType, DeviceId, Format, LogicAddr, MemType
from gevar.var import LoadState, VarManager, VarManagerPool, VarOp
from tests.helpers.shared import REPOSITORY
from tests.helpers.var_memory import (
    GIB,
    FakeMemory,
    constant,
    file_constant,
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


def _node(offset: int) -> VarOp:
    return VarOp("n", "Variable", (), (BASE + offset,))


def test_edge_1_the_session_id_must_be_the_pools() -> None:
    pool = VarManagerPool()
    vm = pool.get_var_manager(5)
    vm.set_memory_malloc_size(64 * GIB)
    with pytest.raises(StateError) as caught:
        vm.init(0, 0)
    assert caught.value.status == PARAM_INVALID
    vm.init(0, 5)
    assert vm.assign_var_mem("v", None, make_desc(4)) == BASE  # its own base, not that of another manager
    pool.destroy()


def test_edge_2_names_that_end_in_digits_are_variables_of_their_own(vm: VarManager) -> None:
    first, second = make_desc(8), make_desc(8, fmt=Format.FORMAT_NC1HWC0_C04)
    assert vm.assign_var_mem("w1", None, first) == BASE
    assert vm.assign_var_mem("w", None, second) == BASE + 1536
    assert vm.get_var_addr("w1", first) == BASE
    assert vm.get_var_addr("w", second) == BASE + 1536
    assert not vm.is_var_exist("w", first)


def test_edge_3_a_busy_manager_does_not_keep_the_pool_waiting() -> None:
    pool = VarManagerPool()
    vm = pool.get_var_manager(1)
    vm.init(0, 1)
    with vm._lock:
        thread = threading.Thread(target=pool.destroy)
        thread.start()
        other = threading.Thread(target=pool.get_var_manager, args=(2,))
        other.start()
        other.join(30)
        assert not other.is_alive()
    thread.join()


def test_edge_4_destroy_forgets_the_variables(vm: VarManager, memory: FakeMemory) -> None:
    addr = vm.assign_var_mem("a", None, make_desc(64))
    vm["a"].dev_addr()
    vm.destroy()
    assert not vm.is_var_resource_inited
    assert not vm.is_var_exist("a")
    assert memory.blocks == {}
    with pytest.raises(StateError):
        vm.assign_var_mem("b", None, make_desc(64))
    vm.init(0, 1)
    assert vm.assign_var_mem("b", None, make_desc(64)) == addr
    assert not vm.is_var_exist("a")


def test_edge_5_sizes_change_as_one_value(vm: VarManager) -> None:
    before = vm.memory_config
    vm.set_var_mem_logic_base(1 << 40)
    assert before.var_mem_logic_base == BASE
    assert vm.memory_config.var_mem_logic_base == 1 << 40
    vm.set_var_mem_logic_base(BASE - 1536)
    vm.assign_var_mem("a", None, make_desc(64))
    vm.set_var_mem_logic_base(BASE - 3072)
    assert vm.assign_var_mem("b", None, make_desc(64)) == BASE  # behind a, not on it
    vm.check()


def test_edge_6_a_missing_node_is_a_mistake_not_a_crash(vm: VarManager) -> None:
    with pytest.raises(VariableError, match="no output offset") as caught:
        vm.restore_var_mem("v", None, make_desc(4))
    assert caught.value.status == PARAM_INVALID
    with pytest.raises(ValueError, match="op is None"):
        vm.check_and_set_var_loaded(None)


def test_edge_8_growing_moves_the_variable_and_loses_no_space(vm: VarManager) -> None:
    small, large = make_desc(16, shape=(4,)), make_desc(16384, shape=(64, 64))
    vm.assign_var_mem("v", None, small)
    assert vm.assign_var_mem("v", None, large) == BASE + 1536
    assert vm.get_var_addr("v", small) == BASE + 1536
    assert vm.get_cur_var_desc("v") == large
    assert vm.get_var_mem_size() == 1536 + 17408


def test_edge_8_a_form_goes_back_to_its_own_block(vm: VarManager) -> None:
    fp32, fp16 = make_desc(64, DataType.DT_FLOAT, shape=(16,)), make_desc(32, DataType.DT_FLOAT16, shape=(16,))
    assert [vm.assign_var_mem("w", None, desc) for desc in (fp32, fp16, fp32)] == [BASE] * 3
    assert vm.get_var_mem_size() == 1536


def test_edge_9_the_kind_of_memory_of_a_variable_does_not_change(vm: VarManager) -> None:
    vm.restore_var_mem("r", _node(4096), make_desc(64), MemType.RT_MEMORY_RDMA_HBM)
    with pytest.raises(VariableError, match="lies in RT_MEMORY_RDMA_HBM, asked for is RT_MEMORY_HBM") as caught:
        vm.assign_var_mem("r", None, make_desc(8), HBM)
    assert caught.value.status == PARAM_INVALID
    with pytest.raises(VariableError):
        vm.restore_var_mem("r", None, make_desc(8), HBM)
    assert vm.get_cur_var_desc("r") == make_desc(64)
    assert vm.get_var_mem_size() == 0


def test_edge_9_equal_weights_share_in_one_kind_of_memory_only(vm: VarManager) -> None:
    desc = make_desc(4)
    op = VarOp("c", "Constant", (desc,), (BASE + 4096,), b"1234")
    vm.restore_var_mem("c", op, desc, MemType.RT_MEMORY_RDMA_HBM)
    assert vm.assign_var_mem("d", constant("d", b"1234", desc), desc, HBM) == BASE


def test_edge_10_a_place_holder_that_is_wrong_leaves_nothing(vm: VarManager) -> None:
    desc = make_desc(64)
    with pytest.raises(VariableError, match="addr is 0") as caught:
        vm.assign_var_mem("p", place_holder("p", 0, 64), desc)
    assert caught.value.status == INTERNAL_ERROR
    assert not vm.is_var_exist("p", desc)
    assert vm.get_var_const_place_holder_mem_size() == 0
    assert vm.assign_var_mem("p", place_holder("p", 20000, 64), desc) == BASE
    with pytest.raises(VariableError) as caught:
        vm.restore_var_mem("q", VarOp("q", "ConstPlaceHolder", (), (BASE + 4096,)), desc)
    assert caught.value.status == PARAM_INVALID
    assert not vm.is_var_exist("q", desc)


def test_edge_11_a_larger_constant_does_not_share(vm: VarManager, memory: FakeMemory) -> None:
    small, large = make_desc(4), make_desc(100000, shape=(4,))
    vm.assign_var_mem("a", constant("a", b"1234", small), small)
    assert vm.assign_var_mem("big", constant("big", b"1234", large), large) == BASE + 1536
    assert vm.assign_var_mem("b", constant("b", b"1234", small), small) == BASE
    vm.get_var_memory_addr(LogicAddr(BASE + 1536 + 99999))
    assert memory.mallocs == [(HBM, 101376, 0)]


@pytest.mark.parametrize("op_type", ["Variable", "Const", "RefData"])
def test_edge_11_only_constants_share(vm: VarManager, op_type: str) -> None:
    desc = make_desc(4)
    vm.assign_var_mem("c", constant("c", b"1234", desc), desc)
    assert vm.assign_var_mem("v", VarOp("v", op_type, (desc,), value=b"1234"), desc) == BASE + 1536
    vm["v"].write(b"9999")
    vm["c"].write(b"1234")
    assert vm["v"].read().tobytes() == b"9999"


def test_edge_12_length_and_size_count(vm: VarManager) -> None:
    four, eight = make_desc(16, DataType.DT_FLOAT), make_desc(32, DataType.DT_FLOAT)
    assert vm.assign_var_mem("a", file_constant("a", "/w", 0, 16), four) == BASE
    assert vm.assign_var_mem("b", file_constant("b", "/w", 0, 32), eight) == BASE + 1536
    assert vm.assign_var_mem("c", file_constant("c", "/w", 0, 16), eight) == BASE + 3072
    assert vm.assign_var_mem("d", file_constant("d", "/w", 0, 32), eight) == BASE + 1536
    assert vm.assign_var_mem("e", file_constant("e", "/w", 0, 16), four) == BASE


def test_edge_12_constants_without_a_location_share_nothing(vm: VarManager) -> None:
    desc = make_desc(16)
    assert vm.assign_var_mem("a", VarOp("a", "FileConstant", attrs={"file_path": "/w"}), desc) == BASE
    assert vm.assign_var_mem("b", VarOp("b", "FileConstant", attrs={"file_path": "/w"}), desc) == BASE + 1536


def test_edge_13_external_memory(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("p", place_holder("p", 20000, 24), make_desc(24))
    vm.assign_var_mem("v", None, with_init(make_desc(4), b"1234"))
    region = memory.malloc_memory(HBM, "region", 4096, DeviceId(1))
    vm.set_external_var(region, 1536, DeviceId(1))  # as much as get_var_mem_size says, too little for the addresses
    with pytest.raises(AddressError, match="1536 B and the variables need 3072 B"):
        vm["v"].dev_addr(DeviceId(1))
    vm.set_external_var(region, 3072, DeviceId(1))
    assert vm["v"].dev_addr(DeviceId(1)) == region + 1536
    assert vm["p"].dev_addr(DeviceId(1)) == 20000
    assert vm["v"].read(DeviceId(1)).tobytes() == b"1234"
    assert vm["v"].dev_addr(DeviceId(0)) != region + 1536


def test_edge_15_addresses_inside_a_place_holder(vm: VarManager) -> None:
    vm.assign_var_mem("p", place_holder("p", 20000, 24), make_desc(64))
    assert vm.get_var_memory_addr(LogicAddr(BASE + 23)) == 20023
    with pytest.raises(AddressError, match="24 B into place holder p_2_2, whose memory has 24 B"):
        vm.get_var_memory_addr(LogicAddr(BASE + 24))


def test_edge_16_every_block_goes_back_to_whom_it_came_from(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("a", None, make_desc(4))
    vm.assign_var_mem("b", None, make_desc(4))
    vm.get_var_memory_addr(LogicAddr(BASE), MemType.RT_MEMORY_P2P_HBM)
    other = FakeMemory()
    vm.set_mem_manager(other)
    vm["b"].dev_addr(DeviceId(1))
    vm.free_var_memory()
    assert [(mem_type, device) for mem_type, _, device in memory.frees] == [(MemType.RT_MEMORY_P2P_HBM, 0)]
    assert [(mem_type, device) for mem_type, _, device in other.frees] == [(HBM, 1)]


def test_edge_17_a_failed_initial_value_leaves_no_memory(vm: VarManager, memory: FakeMemory) -> None:
    desc = make_desc(16, DataType.DT_FLOAT, shape=(4,))
    vm.assign_var_mem("v", None, with_init(desc, bytes(16), desc.replace(dtype=DataType.DT_INT32)))
    vm.assign_var_mem("w", None, with_init(make_desc(4), b"1234"))
    for _ in range(2):
        with pytest.raises(FormatError):
            vm["v"].dev_addr()
    memory.fail_at = memory.calls + 2
    with pytest.raises(AclError):
        vm["w"].dev_addr()
    assert memory.blocks == {}
    vm.get_var_memory_addr(LogicAddr(vm["w"].logic_addr + 3))  # the first question is inside the variable
    assert vm["w"].read().tobytes() == b"1234"


def test_edge_18_load_states_go_with_the_memory(vm: VarManager) -> None:
    addr = vm.assign_var_mem("c", None, make_desc(4))
    op = VarOp("c", "Constant", (make_desc(4),), (addr,))
    assert [vm.check_and_set_var_loaded(op) for _ in range(2)] == [False, True]
    vm.free_var_memory()
    assert not vm.check_and_set_var_loaded(op)


def test_edge_19_restored_variables_keep_their_place(vm: VarManager) -> None:
    desc = make_desc(512)
    vm.restore_var_mem("r0", _node(0), desc)
    vm.restore_var_mem("r1", _node(2048), desc)
    assert vm.get_var_mem_size() == 0
    assert vm.assign_var_mem("a0", None, desc) == BASE + 3584
    assert vm.assign_var_mem("a1", None, desc) == BASE + 5120
    assert vm.get_var_mem_size() == 3072
    with pytest.raises(AddressError, match="512 B of variable r2_2_2 would overlap r1_2_2") as caught:
        vm.restore_var_mem("r2", _node(2048 + 511), desc)
    assert caught.value.status == PARAM_INVALID
    vm.check()


def test_edge_19_gaps_that_hold_a_block_are_used(vm: VarManager) -> None:
    vm.restore_var_mem("r", _node(4096), make_desc(512))
    assert vm.assign_var_mem("a", None, make_desc(512)) == BASE
    assert vm.assign_var_mem("b", None, make_desc(512)) == BASE + 1536
    assert vm.assign_var_mem("c", None, make_desc(512)) == BASE + 5632
    vm.check()


def test_edge_22_a_state_is_loaded_when_the_data_is_there(vm: VarManager) -> None:
    addr = vm.assign_var_mem("c", None, make_desc(4))
    ticket = vm.begin_var_load(addr)
    assert ticket is not None
    with pytest.raises(OSError, match="torn"), ticket:
        raise OSError("torn")
    assert vm.get_var_load_state(addr) is LoadState.ABSENT
    op = VarOp("", "Constant", (make_desc(4),), (addr,))
    assert [vm.check_and_set_var_loaded(op) for _ in range(2)] == [False, True]


def test_edge_22_an_address_that_is_not_known_leaves_no_flag(vm: VarManager) -> None:
    op = VarOp("c", "Constant", (make_desc(4),), (BASE,))
    assert not vm.check_and_set_var_loaded(op)
    vm.assign_var_mem("c", None, make_desc(4))
    assert [vm.check_and_set_var_loaded(op) for _ in range(2)] == [False, True]


def test_edge_23_a_device_that_is_too_large_changes_nothing(vm: VarManager) -> None:
    before = vm.memory_config
    with pytest.raises(SizeOverflowError) as caught:
        vm.set_memory_malloc_size(300 * GIB)
    assert caught.value.status == GE_GRAPH_OPTIONS_INVALID
    assert vm.memory_config == before
    vm.set_memory_malloc_size(300 * GIB, ceiling_bytes=512 * GIB)
    assert vm.memory_config.var_mem_max_size == 300 * GIB * 5 // 32


def test_edge_33_a_load_state_belongs_to_the_memory_of_its_device(vm: VarManager) -> None:
    addr = vm.assign_var_mem("a", constant("a", b"1234", make_desc(4)), make_desc(4))
    twin = vm.assign_var_mem("b", constant("b", b"1234", make_desc(4)), make_desc(4))
    ticket = vm.begin_var_load(addr)
    assert ticket is not None
    ticket.commit()
    assert vm.begin_var_load(twin) is None  # one block, loaded once under both names
    assert vm.begin_var_load(twin, DeviceId(1)) is not None
    assert vm["a"].dev_addr() == vm["b"].dev_addr()


def test_edge_41_memory_comes_from_the_device_asked_for(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("a", None, make_desc(4))
    for device in (1, 0, 2):
        vm["a"].dev_addr(DeviceId(device))
    assert [device for _, _, device in memory.mallocs] == [1, 0, 2]
    vm.free_var_memory()
    assert sorted(device for _, _, device in memory.frees) == [0, 1, 2]


def test_edge_44_window_addresses_and_sizes_are_checked(vm: VarManager) -> None:
    told = r"variable 'huge_2_2': 1099511627776 B at offset 0 .* or more variable memory \(set_var_mem_max_size\)"
    with pytest.raises(SizeOverflowError, match=told) as caught:
        vm.assign_var_mem("huge", None, make_desc(1 << 40, shape=(1,)))
    assert caught.value.status == INTERNAL_ERROR
    assert caught.value.limit == vm.memory_config.var_mem_max_size
    vm.set_var_mem_max_size((1 << 64) - 1)
    vm.set_var_mem_logic_base((1 << 63) - 1024)
    with pytest.raises(SizeOverflowError, match="logical address"):
        vm.assign_var_mem("high", None, make_desc(4))
    with pytest.raises(VariableError, match="do not lie in the variable memory"):
        vm.restore_var_mem("high", VarOp("h", "Variable", (), ((1 << 63) - 512,)), make_desc(513))
    with pytest.raises(ValueError, match="-1 B"):
        VarManager.get_var_malloc_size(make_desc(-1))
    with pytest.raises(VariableError, match="its size is -1 B"):
        vm.assign_var_mem("negative", None, make_desc(-1))
    assert vm.get_var_mem_size() == 0


DIFFERENCES = REPOSITORY / "docs" / "differences.md"
ENTRY = re.compile(r"^## Edge (\d+): \S.*$", re.MULTILINE)


def _entries() -> dict[int, str]:
    _, *parts = ENTRY.split(DIFFERENCES.read_text())
    return {int(number): entry for number, entry in zip(parts[::2], parts[1::2], strict=True)}


def test_every_edge_tested_here_has_an_entry_that_names_its_test() -> None:
    entries = _entries()
    for name in [name for name in globals() if name.startswith("test_edge_")]:
        number = int(name.split("_")[2])
        assert f"tests/unit/test_var_edges.py::{name}" in entries[number], f"{name} is not named under edge {number}"


def test_entries_are_in_order_and_complete() -> None:
    entries = _entries()
    without = re.findall(r"^\| (\d+) \|", DIFFERENCES.read_text(), re.MULTILINE)
    assert sorted([*entries, *map(int, without)]) == list(range(1, 45))
    assert list(entries) == sorted(entries)
    for number, text in entries.items():
        for part in ("- GE: ", "- gevar: ", "- Why: ", "- Test: "):
            assert text.count(part) == 1, f"edge {number} has no single part {part!r}"


def test_every_test_that_an_entry_names_exists() -> None:
    for number, text in _entries().items():
        named = re.findall(r"`(tests/\S+?)::(\w+)`", text)
        assert named, f"edge {number} names no test"
        for path, name in named:
            source = (REPOSITORY / path).read_text()
            assert f"def {name}(" in source, f"edge {number}: {path} has no {name}"
