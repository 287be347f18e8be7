"""Variables by name: write and read of whole values."""

import ml_dtypes
import numpy as np
import pytest

from gevar.errors import AddressError, FormatError, StateError, VariableError
from gevar.types import DataType, DeviceId, Format, LogicAddr, TensorDesc
from gevar.types.tensor_sizes import tensor_memory_size_with_auto_padding, tensor_size_in_bytes
from gevar.var import VarManager
from gevar.var.variable import ArrayType
from tests.helpers.var_memory import GIB, FakeMemory, make_desc, make_manager, place_holder, with_init

BASE = 128 * GIB


@pytest.fixture
def memory() -> FakeMemory:
    return FakeMemory()


@pytest.fixture
def vm(memory: FakeMemory) -> VarManager:
    return make_manager(memory)


def _padded(dtype: DataType, shape: tuple[int, ...], fmt: int = Format.FORMAT_ND) -> TensorDesc:
    desc = TensorDesc(dtype, fmt, shape)
    return desc.replace(size=tensor_memory_size_with_auto_padding(tensor_size_in_bytes(desc)))


def test_a_value_comes_back(vm: VarManager) -> None:
    vm.assign_var_mem("w", None, _padded(DataType.DT_FLOAT, (2, 3)))
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    vm["w"].write(value)
    read = vm["w"].read()
    assert read.dtype == np.float32
    assert read.shape == (2, 3)
    assert read.tobytes() == value.tobytes()


def test_the_padding_is_neither_written_nor_read(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("w", None, _padded(DataType.DT_FLOAT, (2, 3)))
    vm["w"].write(b"\x55" * 24)
    (block,) = memory.blocks.values()
    assert block.data[:512] == b"\xee" * 512
    assert block.data[512:536] == b"\x55" * 24
    assert block.data[536:] == b"\xee" * (len(block.data) - 536)
    assert vm["w"].read().nbytes == 24


def test_a_copy_is_read(vm: VarManager) -> None:
    vm.assign_var_mem("w", None, make_desc(4))
    vm["w"].write(b"1234")
    read = vm["w"].read()
    vm["w"].write(b"5678")
    vm.free_var_memory()
    assert read.tobytes() == b"1234"


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (DataType.DT_BF16, np.array([0x7FC1, 0x8000, 0x3F80], np.uint16).view(ml_dtypes.bfloat16)),
        (DataType.DT_FLOAT8_E5M2, np.array([0x7F, 0x80, 0x01], np.uint8).view(ml_dtypes.float8_e5m2)),
        (DataType.DT_BOOL, np.array([True, False, True])),
        (DataType.DT_INT64, np.array([-1, 1 << 62, 0])),
        (DataType.DT_COMPLEX128, np.array([1 + 2j, -0.0, 3j])),
        (DataType.DT_HIFLOAT8, np.array([1, 2, 255], np.uint8)),
    ],
)
def test_every_bit_survives(vm: VarManager, dtype: DataType, value: np.ndarray[tuple[int], ArrayType]) -> None:
    vm.assign_var_mem("w", None, _padded(dtype, (3,)))
    vm["w"].write(value)
    assert vm["w"].read().tobytes() == value.tobytes()
    assert vm["w"].read().dtype == value.dtype


@pytest.mark.parametrize(
    ("dtype", "shape", "size"),
    [
        (DataType.DT_INT4, (3,), 2),
        (DataType.DT_UINT1, (9,), 2),
        (DataType.DT_FLOAT6_E3M2, (5,), 4),
        (DataType.DT_STRING, (2,), 32),
    ],
)
def test_packed_and_string_elements_come_as_bytes(
    vm: VarManager, dtype: DataType, shape: tuple[int, ...], size: int
) -> None:
    vm.assign_var_mem("w", None, TensorDesc(dtype, Format.FORMAT_ND, shape, size=64))
    data = bytes(range(size))
    vm["w"].write(data)
    read = vm["w"].read()
    assert read.dtype == np.uint8
    assert read.shape == (size,)
    assert read.tobytes() == data
    vm["w"].write(read)


def test_arrays_that_are_not_contiguous_are_copied_first(vm: VarManager) -> None:
    vm.assign_var_mem("w", None, _padded(DataType.DT_INT32, (2, 3)))
    value = np.arange(6, dtype=np.int32).reshape(3, 2).T
    vm["w"].write(value)
    assert (vm["w"].read() == value).all()


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (np.zeros((2, 3), np.float64), "takes float32"),
        (np.zeros((3, 2), np.float32), r"\(2, 3\)"),
        (np.zeros(6, np.float32), r"\(6,\)"),
        (b"\x00" * 23, "takes 24 B, not 23 B"),
        (b"\x00" * 64, "takes 24 B, not 64 B"),
    ],
)
def test_other_values_are_refused_before_anything_is_done(
    vm: VarManager, memory: FakeMemory, value: bytes | np.ndarray[tuple[int, ...], ArrayType], match: str
) -> None:
    vm.assign_var_mem("w", None, _padded(DataType.DT_FLOAT, (2, 3)))
    with pytest.raises(ValueError, match=match):
        vm["w"].write(value)
    assert memory.calls == 0


def test_scalars_and_empty_tensors(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("s", None, _padded(DataType.DT_FLOAT, ()))
    vm.assign_var_mem("e", None, _padded(DataType.DT_FLOAT, (0, 3)))
    vm["s"].write(np.array(2.5, np.float32))
    assert vm["s"].read() == np.float32(2.5)
    vm["e"].write(np.zeros((0, 3), np.float32))
    assert vm["e"].read().shape == (0, 3)
    assert memory.copies_in == 1


def test_a_variable_without_memory_is_not_ready(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("w", None, make_desc(4))
    with pytest.raises(StateError, match="variable w_2_2 is not ready: it has no memory on device 0, write it first"):
        vm["w"].read()
    assert memory.calls == 0
    vm["w"].write(b"1234")
    with pytest.raises(StateError, match="device 1"):
        vm["w"].read(DeviceId(1))


def test_an_initial_value_is_ready(vm: VarManager) -> None:
    vm.assign_var_mem("w", None, with_init(make_desc(4), b"1234"))
    assert vm["w"].read().tobytes() == b"1234"


def test_devices_have_values_of_their_own(vm: VarManager) -> None:
    vm.assign_var_mem("w", None, make_desc(4))
    vm["w"].write(b"0000", DeviceId(0))
    vm["w"].write(b"1111", DeviceId(1))
    assert vm["w"].read(DeviceId(0)).tobytes() == b"0000"
    assert vm["w"].read(DeviceId(1)).tobytes() == b"1111"
    assert vm["w"].dev_addr(DeviceId(0)) != vm["w"].dev_addr(DeviceId(1))


def test_the_managers_device_is_meant_where_none_is_named(memory: FakeMemory) -> None:
    vm = VarManager(1)
    vm.init(0, 1, DeviceId(2))
    vm.set_mem_manager(memory)
    vm.assign_var_mem("w", None, make_desc(4))
    vm["w"].write(b"1234")
    assert [device for _, _, device in memory.mallocs] == [2]
    assert vm["w"].dev_addr() == vm["w"].dev_addr(DeviceId(2))


def test_constants_variables_and_place_holders_keep_apart(vm: VarManager, memory: FakeMemory) -> None:
    own = memory.malloc_memory(vm.get_var_mem_type(0), "own", 4, DeviceId(0))
    vm.assign_var_mem("c", None, make_desc(4))
    vm.assign_var_mem("v", None, make_desc(4))
    vm.assign_var_mem("p", place_holder("p", own, 4), make_desc(4))
    for name, value in (("c", b"cccc"), ("v", b"vvvv"), ("p", b"pppp")):
        vm[name].write(value)
    assert [vm[name].read().tobytes() for name in "cvp"] == [b"cccc", b"vvvv", b"pppp"]
    assert bytes(memory.blocks[0, own].data) == b"pppp"


def test_nothing_goes_behind_the_memory_of_a_place_holder(vm: VarManager, memory: FakeMemory) -> None:
    own = memory.malloc_memory(vm.get_var_mem_type(0), "own", 64, DeviceId(0))
    addr = vm.assign_var_mem("p", place_holder("p", own, 4), make_desc(8))
    with pytest.raises(AddressError, match="8 B from there pass the end of variable p_2_2, 4 B"):
        vm["p"].write(b"12345678")
    with pytest.raises(AddressError, match="pass the end"):
        vm.read_var_memory(LogicAddr(addr + 6), bytearray(1))
    vm.write_var_memory(addr, b"1234")
    assert bytes(memory.blocks[0, own].data[:8]) == b"1234\xee\xee\xee\xee"


def test_a_handle_follows_the_description(vm: VarManager) -> None:
    vm.assign_var_mem("w", None, make_desc(8, DataType.DT_INT8, shape=(8,)))
    handle = vm["w"]
    handle.write(bytes(range(8)))
    vm.assign_var_mem("w", None, make_desc(8, DataType.DT_INT32, shape=(2,)))
    assert handle.desc.dtype is DataType.DT_INT32
    assert handle.logic_addr == BASE
    assert handle.read().tolist() == [0x03020100, 0x07060504]
    assert repr(handle) == "<Variable 'w' of session 1>"


def test_a_handle_refuses_after_destroy(vm: VarManager) -> None:
    vm.assign_var_mem("w", None, make_desc(4))
    handle = vm["w"]
    vm.destroy()
    for use in (handle.read, lambda: handle.write(b"1234"), handle.dev_addr, lambda: handle.desc):
        with pytest.raises(StateError, match="not initialised"):
            use()
    vm.init(0, 1)
    with pytest.raises(VariableError):
        handle.read()


def test_an_unknown_shape_has_no_value(vm: VarManager) -> None:
    vm.assign_var_mem("w", None, TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (-1, 3), size=64))
    for use in (vm["w"].read, lambda: vm["w"].write(b"")):
        with pytest.raises(FormatError, match="unknown shape"):
            use()


def test_a_value_larger_than_the_stored_size_is_refused(vm: VarManager, memory: FakeMemory) -> None:
    vm.assign_var_mem("w", None, TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (4,), size=8))
    with pytest.raises(AddressError, match="16 B from there pass the end of variable w_2_0, 8 B"):
        vm["w"].write(b"\x00" * 16)
    with pytest.raises(AddressError, match="pass the end"):
        vm["w"].read()
    assert memory.calls == 0


def test_parts_of_a_variable_by_address(vm: VarManager) -> None:
    addr = vm.assign_var_mem("w", None, make_desc(8))
    vm.write_var_memory(addr, b"abcdefgh")
    vm.write_var_memory(LogicAddr(addr + 2), b"XY")
    part = bytearray(4)
    vm.read_var_memory(LogicAddr(addr + 1), part)
    assert part == b"bXYe"
    with pytest.raises(AddressError, match="3 B from there pass the end of variable w_2_2, 8 B"):
        vm.write_var_memory(LogicAddr(addr + 6), b"123")
    with pytest.raises(AddressError, match="belongs to no variable"):
        vm.write_var_memory(LogicAddr(addr + 8), b"")
    assert vm["w"].read().tobytes() == b"abXYefgh"
