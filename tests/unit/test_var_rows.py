"""What a manager tells of its variables: rows, reasons, savings."""

import dataclasses

import pytest

from gevar.errors import StateError, VariableError
from gevar.types import DataType, DevAddr, DeviceId, Format, MemType
from gevar.var import Placing, Savings, VarManager, VarOp, VarRow
from tests.helpers.var_memory import (
    GIB,
    FakeMemory,
    constant,
    file_constant,
    make_desc,
    make_manager,
    place_holder,
)

BASE = 128 * GIB
ND = make_desc(1000)


def _row(vm: VarManager, name: str) -> VarRow:
    (row,) = (row for row in vm.table() if row.name == name and row.is_current)
    return row


@pytest.fixture
def vm() -> VarManager:
    return make_manager(FakeMemory())


def test_row_of_fresh_variable(vm: VarManager) -> None:
    addr = vm.assign_var_mem("a", VarOp("a", "Variable"), make_desc(24, DataType.DT_FLOAT, Format.FORMAT_NHWC, (2, 3)))
    dev_addr = vm.get_var_memory_addr(addr, device_id=DeviceId(1))
    row = _row(vm, "a")
    assert dataclasses.asdict(row) == {
        "name": "a",
        "key": ("a", Format.FORMAT_NHWC, DataType.DT_FLOAT),
        "op_type": "Variable",
        "dtype": DataType.DT_FLOAT,
        "format": Format.FORMAT_NHWC,
        "shape": (2, 3),
        "logic_addr": addr,
        "block_bytes": 1536,
        "capacity_bytes": 24,
        "mem_type": MemType.RT_MEMORY_HBM,
        "placing": Placing.ASSIGNED,
        "space": Placing.ASSIGNED,
        "owner": ("a", Format.FORMAT_NHWC, DataType.DT_FLOAT),
        "is_current": True,
        "dev_addrs": ((DeviceId(1), dev_addr),),
    }
    text = f"a_1_0: Variable DT_FLOAT NHWC [2, 3] at {addr} in RT_MEMORY_HBM, 24 B of 1536 B, assigned"
    assert str(row) == f"{text}, device 1 {dev_addr:#x}"


def test_assigned_and_restored_space_are_told_apart(vm: VarManager) -> None:
    vm.restore_var_mem("r", VarOp("r", "Variable", output_offsets=(BASE + 1536,)), ND)
    vm.assign_var_mem("a", None, ND)
    assert [(row.name, row.logic_addr, row.space) for row in vm.table()] == [
        ("r", BASE + 1536, Placing.RESTORED),
        ("a", BASE + 1536 + 2048, Placing.ASSIGNED),
    ]
    assert vm.explain("r") == (
        f"r_2_2: 1000 B at {BASE + 1536} in RT_MEMORY_HBM: restored, its compiled model gave it this place"
    )


def test_rows_are_sorted_and_frozen(vm: VarManager) -> None:
    for name in "ba":
        vm.assign_var_mem(name, None, ND)
    rows = vm.table()
    assert [row.name for row in rows] == ["b", "a"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        rows[0].name = "c"  # type: ignore[misc]


def test_reused_form(vm: VarManager) -> None:
    addr = vm.assign_var_mem("a", None, ND)
    vm.assign_var_mem("a", None, ND.replace(format=Format.FORMAT_NHWC, size=10))
    assert vm.explain("a") == (
        f"a_1_2: 10 B at {addr} in RT_MEMORY_HBM: reused, because it fits into the 1000 B that its name has in another"
        " form\nits block was made for a_2_2 (1000 B, assigned)\na_2_2 stands for the same block: assigned"
    )
    assert [row.is_current for row in vm.table()] == [True, False]
    assert vm.savings() == Savings(0, 0, 0, 1536)


def test_moved_because_it_grew(vm: VarManager) -> None:
    vm.assign_var_mem("a", None, ND)
    addr = vm.assign_var_mem("a", None, ND.replace(size=5000))
    row = _row(vm, "a")
    assert (row.logic_addr, row.placing, row.space) == (addr, Placing.MOVED, Placing.MOVED)
    reason = "moved to new space of 5000 B, because it grew beyond the block it had"
    assert vm.explain("a") == f"a_2_2: 5000 B at {addr} in RT_MEMORY_HBM: {reason}"
    assert vm.savings().total_bytes == 0


def test_equal_weights(vm: VarManager) -> None:
    for name in ("c", "d", "e"):
        vm.assign_var_mem(name, constant(name, b"\x01" * 1000, ND), ND)
    assert [row.placing for row in vm.table()] == [Placing.ASSIGNED, Placing.EQUAL_WEIGHT, Placing.EQUAL_WEIGHT]
    assert "shared with 'c', because their weights are equal" in vm.explain("d")
    assert "e_2_2 stands for the same block: shared: equal weight" in vm.explain("d")
    assert vm.savings() == Savings(2 * 2048, 0, 0, 0)


def test_same_file_slice(vm: VarManager) -> None:
    vm.assign_var_mem("f", file_constant("f", "w.bin", 0, 1000), ND)
    vm.assign_var_mem("g", file_constant("g", "w.bin", 0, 1000), ND)
    assert _row(vm, "g").op_type == "FileConstant"
    assert "shared with 'f', because their file slices are the same" in vm.explain("g")
    assert vm.savings() == Savings(0, 2048, 0, 0)


def test_reference(vm: VarManager) -> None:
    vm.restore_var_mem("v", VarOp("v", "Variable", output_offsets=(BASE,)), ND)
    ref = VarOp("r", "Variable", output_offsets=(BASE,), attrs={"ref_var_src_var_name": "v"})
    vm.restore_var_mem("r", ref, ND)
    assert "shared with 'v', because one is a reference to the other" in vm.explain("r")
    assert (_row(vm, "r").placing, _row(vm, "r").space) == (Placing.REFERENCE, Placing.RESTORED)
    assert vm.savings() == Savings(0, 0, 2048, 0)


def test_named_and_stored(vm: VarManager) -> None:
    vm.set_var_addr("n", ND, vm.assign_var_mem("a", None, ND))
    assert (_row(vm, "n").placing, _row(vm, "n").space) == (Placing.NAMED, Placing.ASSIGNED)
    other = VarManager(3)
    other.var_manager_to_deserial(vm.var_manager_to_serial())
    assert {(row.name, row.placing) for row in other.table()} == {("a", Placing.STORED), ("n", Placing.STORED)}


def test_place_of_the_callers_memory(vm: VarManager) -> None:
    vm.assign_var_mem("p", place_holder("p", 0x5000, 1000), ND)
    assert _row(vm, "p").dev_addrs == ((DeviceId(0), 0x5000),)
    assert _row(vm, "p").op_type == "ConstPlaceHolder"


def test_external_region(vm: VarManager) -> None:
    vm.assign_var_mem("a", None, ND)
    vm.assign_var_mem("b", None, ND)
    vm.set_external_var(DevAddr(0x10000), 1 << 20)
    assert _row(vm, "b").dev_addrs == ((DeviceId(0), 0x10000 + 2048),)
    assert vm.get_var_memory_addr(_row(vm, "b").logic_addr) == 0x10000 + 2048


def test_memory_freed_is_not_told(vm: VarManager) -> None:
    vm.get_var_memory_addr(vm.assign_var_mem("a", None, ND))
    assert _row(vm, "a").dev_addrs
    vm.free_var_memory()
    assert not _row(vm, "a").dev_addrs


def test_refusals(vm: VarManager) -> None:
    vm.assign_var_mem("weight", None, ND)
    with pytest.raises(VariableError, match="close to it: 'weight'"):
        vm.explain("weights")
    vm.destroy()
    for ask in (vm.table, vm.savings, lambda: vm.explain("weight")):
        with pytest.raises(StateError, match="not initialised"):
            ask()


def test_repr(vm: VarManager) -> None:
    vm.get_var_memory_addr(vm.assign_var_mem("a", None, ND))
    assert repr(vm) == "<VarManager of session 1: 1 variables, 2048 B assigned, 2048 B of device memory>"
    vm.destroy()
    assert repr(vm) == "<VarManager of session 1: not initialised>"
