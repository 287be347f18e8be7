"""The variable manager on a runtime: layout of device memory, values, devices, threads, the end."""

import threading
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

from acl_shim import Runtime
from acl_shim.host import HostControls
from gevar.errors import AclError, AddressError, OutOfMemoryError, StateError
from gevar.memory import DeviceMemoryManager, ExpandableActiveMemoryAllocator
from gevar.types import DataType, DevAddr, DeviceId, Format, LogicAddr, MemType, TensorDesc
from gevar.var import VarManager
from tests.helpers.runtime import host_runtime, live_now
from tests.helpers.var_memory import GIB, constant, make_desc, place_holder, with_init

BASE = 128 * GIB
HBM = MemType.RT_MEMORY_HBM
D0, D1 = DeviceId(0), DeviceId(1)


@pytest.fixture
def memory(runtime: Runtime) -> Iterator[DeviceMemoryManager]:
    with DeviceMemoryManager(runtime) as memory:
        yield memory


def _manager(memory: DeviceMemoryManager, device_id: DeviceId = D0) -> VarManager:
    vm = VarManager(1)
    vm.init(0, 1, device_id)
    vm.set_memory_malloc_size(64 * GIB)
    vm.set_mem_manager(memory)
    return vm


@pytest.fixture
def vm(memory: DeviceMemoryManager) -> VarManager:
    return _manager(memory)


def _bytes_at(memory: DeviceMemoryManager, addr: int, size: int, device: DeviceId = D0) -> bytes:
    data = bytearray(size)
    memory.memcpy_out(data, DevAddr(addr), device)
    return bytes(data)


def test_data_lies_512_bytes_into_a_block_of_its_padded_size_and_1024(
    vm: VarManager, memory: DeviceMemoryManager
) -> None:
    vm.assign_var_mem("w", None, TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (2, 3), size=64))
    addr = vm["w"].dev_addr()
    (block,) = memory.blocks()
    assert (block.dev_addr, block.size_bytes, block.mem_type) == (addr - 512, 1536, HBM)
    memory.memcpy_in(block.dev_addr, 1536, b"\xa5" * 1536, D0)
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    vm["w"].write(value)
    content = _bytes_at(memory, block.dev_addr, 1536)
    assert content == b"\xa5" * 512 + value.tobytes() + b"\xa5" * (1536 - 512 - 24)
    assert vm["w"].read().tolist() == value.tolist()
    assert _bytes_at(memory, vm.get_var_memory_addr(LogicAddr(BASE + 4)), 4) == np.float32(1).tobytes()


def test_values_of_many_types_survive(vm: VarManager) -> None:
    values = {
        "bf16": (DataType.DT_BF16, np.array([0x7FC1, 0x8000, 0x3F80], np.uint16).view(ml_dtypes.bfloat16)),
        "fp16": (DataType.DT_FLOAT16, np.array([1.5, -0.0, np.inf], np.float16)),
        "i64": (DataType.DT_INT64, np.array([-1, 1 << 62, 7])),
        "bool": (DataType.DT_BOOL, np.array([True, False, True])),
    }
    for name, (dtype, value) in values.items():
        vm.assign_var_mem(name, None, TensorDesc(dtype, Format.FORMAT_ND, (3,), size=value.nbytes + 32))
        vm[name].write(value)
    for name, (_, value) in values.items():
        assert vm[name].read().tobytes() == value.tobytes()
    vm.check()


def test_a_read_sees_the_write_before_it(vm: VarManager) -> None:
    vm.assign_var_mem("w", None, make_desc(1 << 16))
    for n in range(20):
        vm["w"].write(bytes([n]) * (1 << 16))
        assert vm["w"].read().tobytes() == bytes([n]) * (1 << 16)


def test_initial_values_and_place_holders(vm: VarManager, memory: DeviceMemoryManager) -> None:
    own = memory.malloc_memory(HBM, "the caller's", 64, D0)
    memory.memcpy_in(own, 64, b"p" * 64, D0)
    vm.assign_var_mem("v", None, with_init(make_desc(8), b"initial!"))
    vm.assign_var_mem("p", place_holder("p", own, 64), make_desc(64))
    assert vm["v"].read().tobytes() == b"initial!"
    assert vm["p"].read().tobytes() == b"p" * 64
    assert vm["p"].dev_addr() == own
    vm.free_var_memory()
    assert [block.purpose for block in memory.blocks()] == ["the caller's"]
    assert vm["p"].read().tobytes() == b"p" * 64
    assert vm["v"].read().tobytes() == b"initial!"


def test_shared_constants_are_loaded_once(vm: VarManager, memory: DeviceMemoryManager) -> None:
    desc = make_desc(100)
    for name in ("a", "b"):
        addr = vm.assign_var_mem(name, constant(name, b"w" * 100, desc), desc)
        ticket = vm.begin_var_load(addr)
        assert (ticket is None) == (name == "b")
        if ticket is not None:
            with ticket:
                vm.write_var_memory(addr, b"w" * 100)
    assert vm["b"].read().tobytes() == b"w" * 100
    assert memory.counts.live_blocks == 1


def test_an_external_region_holds_the_variables(vm: VarManager, memory: DeviceMemoryManager) -> None:
    vm.assign_var_mem("a", None, make_desc(100))
    vm.assign_var_mem("v", None, with_init(make_desc(4), b"1234"))
    region = memory.malloc_memory(HBM, "region", 4096, D0)
    memory.memcpy_in(region, 4096, b"\x5a" * 4096, D0)
    vm.set_external_var(region, 4096)
    vm["a"].write(b"a" * 100)
    assert vm["v"].read().tobytes() == b"1234"
    content = _bytes_at(memory, region, 4096)
    assert content == b"a" * 100 + b"\x5a" * 1436 + b"1234" + b"\x5a" * (4096 - 1540)
    assert memory.counts.live_blocks == 1
    vm.destroy()
    assert memory.counts.live_blocks == 1


def test_a_view_of_a_value_outlives_its_memory(vm: VarManager) -> None:
    vm.assign_var_mem("w", None, make_desc(4))
    vm["w"].write(b"1234")
    value = vm["w"].read()
    vm.destroy()
    assert value.tobytes() == b"1234"


def test_a_fresh_thread_needs_no_device(vm: VarManager) -> None:
    vm.assign_var_mem("w", None, make_desc(4))
    found: list[bytes] = []

    def work() -> None:
        vm["w"].write(b"1234")
        found.append(vm["w"].read().tobytes())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [b"1234"]
    other = threading.Thread(target=vm.free_var_memory)
    other.start()
    other.join()
    with pytest.raises(StateError, match="not ready"):
        vm["w"].read()


def test_a_device_that_is_not_there(vm: VarManager, runtime: Runtime) -> None:
    vm.assign_var_mem("w", None, make_desc(4))
    count = runtime.device_count()
    for device in (count, -1):
        with pytest.raises(AclError, match=str(device)) as caught:
            vm["w"].dev_addr(DeviceId(device))
        assert caught.value.code == 107001
    vm["w"].dev_addr()
    vm.check()


def test_two_devices_have_memory_of_their_own(host: HostControls) -> None:
    host.configure(devices=2)
    with DeviceMemoryManager(host_runtime()) as memory:
        vm = _manager(memory, D1)
        vm.assign_var_mem("w", None, with_init(make_desc(4), b"init"))
        vm["w"].write(b"1111")  # the manager's own device is 1
        assert vm["w"].read(D0).tobytes() == b"init"
        assert vm["w"].read(D1).tobytes() == b"1111"
        assert {block.device_id for block in memory.blocks()} == {0, 1}
        for device in (0, 1):
            located = host_runtime().device(0).pointer_attributes(vm["w"].dev_addr(DeviceId(device)))
            assert located.device_id == device
        host_runtime().device(0).mem_info()  # device 0 is current; the owner's memory goes back all the same
        vm.free_var_memory()
        assert live_now(host).blocks == 0


def test_sessions_do_not_touch_each_other(runtime: Runtime) -> None:
    with DeviceMemoryManager(runtime) as memory:
        first, second = _manager(memory), _manager(memory)
        for vm, value in ((first, b"1111"), (second, b"2222")):
            vm.assign_var_mem("w", None, make_desc(4))
            vm["w"].write(value)
        first.destroy()
        assert second["w"].read().tobytes() == b"2222"
        second.destroy()
        assert memory.counts.live_blocks == 0


def test_many_rounds_leave_nothing(host: HostControls) -> None:
    with DeviceMemoryManager(host_runtime()) as memory:
        before = live_now(host).blocks
        for _ in range(100):
            vm = _manager(memory)
            for name in "abc":
                vm.assign_var_mem(name, None, make_desc(600))
                vm[name].write(b"x" * 600)
            vm.destroy()
        assert live_now(host).blocks == before
        assert memory.counts.frees == 300


def test_out_of_memory_says_for_what_and_the_manager_goes_on(host: HostControls) -> None:
    host.configure(capacity_bytes=8 << 20)
    with DeviceMemoryManager(host_runtime()) as memory:
        vm = _manager(memory)
        vm.assign_var_mem("large", None, make_desc(16 << 20))
        vm.assign_var_mem("small", None, make_desc(1 << 20))
        with pytest.raises(OutOfMemoryError) as caught:
            vm["large"].dev_addr()
        assert caught.value.code == 207001
        assert caught.value.requested_bytes == (16 << 20) + 1024
        assert caught.value.device_id == 0
        assert "variable large_2_2 on device 0" in caught.value.__notes__[0]
        vm["small"].write(b"x" * (1 << 20))
        assert vm.get_var_malloc_mem_size() == (1 << 20) + 1024
        vm.check()


@pytest.mark.parametrize("first_address", [0x1_2345_6000, (1 << 63) + (1 << 30)])
def test_addresses_are_64_bits_wide(host: HostControls, first_address: int) -> None:
    host.configure(first_address=first_address)
    with DeviceMemoryManager(host_runtime()) as memory:
        vm = _manager(memory)
        vm.assign_var_mem("w", None, make_desc(8))
        vm["w"].write(b"12345678")
        assert vm["w"].dev_addr() >= first_address
        assert vm["w"].read().tobytes() == b"12345678"
        assert vm.get_var_memory_addr(LogicAddr(BASE + 7)) == vm["w"].dev_addr() + 7


def test_a_closed_memory_manager_is_said(vm: VarManager, memory: DeviceMemoryManager) -> None:
    vm.assign_var_mem("w", None, make_desc(4))
    memory.close()
    with pytest.raises(StateError, match="the memory manager is closed"):
        vm["w"].dev_addr()
    assert vm.get_var_malloc_mem_size() == 0


def test_threads_on_one_device_allocate_each_variable_once(vm: VarManager, memory: DeviceMemoryManager) -> None:
    for n in range(40):
        vm.assign_var_mem(f"v{n}", None, with_init(make_desc(16), bytes([n]) * 16))
    bad: list[int] = []

    def work() -> None:
        bad.extend(n for n in range(40) if vm[f"v{n}"].read().tobytes() != bytes([n]) * 16)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bad == []
    assert memory.counts.mallocs == 40
    vm.check()


def test_an_address_behind_the_data_is_refused(vm: VarManager) -> None:
    vm.assign_var_mem("w", None, make_desc(100))
    vm["w"].dev_addr()
    with pytest.raises(AddressError, match="belongs to no variable"):
        vm.get_var_memory_addr(LogicAddr(BASE + 100))


def test_eight_threads_allocate_each_of_many_variables_once(host: HostControls) -> None:
    """100 000 variables, asked for by all threads: one by one in an order of their own, then together."""
    count, size = 100_000, 512
    vm = VarManager(1)
    vm.init(0, 1)
    vm.set_memory_malloc_size(64 << 30)
    addrs = vm.assign_many((f"v{n}", None, make_desc(size)) for n in range(count))
    device = host_runtime().device(0)
    with (
        DeviceMemoryManager(host_runtime()) as memory,
        ExpandableActiveMemoryAllocator(device, max_bytes=1 << 30) as grows,
    ):
        vm.set_mem_manager(memory)
        vm.init_expandable_memory_allocator(grows)
        pages = host.calls("aclrtMallocPhysical")
        found: list[np.ndarray] = []

        def work(number: int) -> None:
            order = np.random.default_rng(number).permutation(count)
            some = order[: count // 10]
            dev_addrs = np.zeros(count, np.uint64)
            dev_addrs[some] = [vm.get_var_memory_addr(LogicAddr(addr)) for addr in addrs[some].tolist()]
            together = vm.resolve_many(addrs)
            assert (dev_addrs[some] == together[some]).all()
            found.append(together)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive()
        assert len(found) == 8
        assert all((one == found[0]).all() for one in found)
        assert (np.diff(np.sort(found[0])) == size + 1024).all()
        assert grows.figures.memory.total_count == count
        assert host.calls("aclrtMallocPhysical") - pages == -(-count * (size + 1024) // (2 << 20))
        vm.free_var_memory()
