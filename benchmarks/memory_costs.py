"""What does memory that grows cost, per block, beside the calls of the runtime that it must make?

Subject and reference are timed alike: in processor time of the thread, with cyclic garbage collection off.
"""

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from acl_shim import Device
from acl_shim.api_types import MemHandle
from acl_shim.mem_info import physical_pages
from acl_shim.structs import new_physical_prop
from acl_shim.table import new_cell
from benchmarks.harness import Promise, Row, alternate
from benchmarks.host_pages import GIB, PAGE, roomy_device
from gevar.memory import DeviceMemoryManager, ExpandableActiveMemoryAllocator
from gevar.types import DataType, DeviceId, Format, LogicAddr, TensorDesc
from gevar.var import VarManager

ROUNDS = 7

MIB = 1 << 20
PAGES = 2_000
_HUGE_RANGE = 1


def _thread_us(call: Callable[[], object], count: int) -> float:
    gc.collect()
    gc.disable()
    try:
        start = time.thread_time_ns()
        call()
        return (time.thread_time_ns() - start) / count / 1000
    finally:
        gc.enable()


def _plain_calls(device: Device) -> float:
    """Time the calls that a new page needs: make the device current, take the page, map it."""
    runtime, api, lease = device.runtime, device.runtime.api, device.enter()
    prop = new_physical_prop(physical_pages(PAGE, False).attr, device.id)
    cell, handles = new_cell("uintptr_t *"), list[int]()
    runtime.check(api.aclrtReserveMemAddress(cell, PAGES * PAGE, 0, 0, _HUGE_RANGE), "aclrtReserveMemAddress", {})
    base = cell[0]

    def touch() -> None:
        for number in range(PAGES):
            api.aclrtSetCurrentContext(lease.context)
            api.aclrtMallocPhysical(cell, PAGE, prop, 0)
            handles.append(cell[0])
            api.aclrtMapMem(base + number * PAGE, PAGE, 0, MemHandle(cell[0]), 0)

    took = _thread_us(touch, PAGES)
    for number, handle in enumerate(handles):
        runtime.check(api.aclrtUnmapMem(base + number * PAGE), "aclrtUnmapMem", {})
        runtime.check(api.aclrtFreePhysical(MemHandle(handle)), "aclrtFreePhysical", {})
    runtime.check(api.aclrtReleaseMemAddress(base), "aclrtReleaseMemAddress", {})
    return took


@contextmanager
def _allocator(device: Device, max_bytes: int = PAGES * PAGE + PAGE) -> Iterator[ExpandableActiveMemoryAllocator]:
    with ExpandableActiveMemoryAllocator(device, max_bytes=max_bytes) as allocator:
        allocator.allocate(PAGE)  # the range is there
        yield allocator


def _above_calls(name: str, device: Device, subject: Callable[[], float], conditions: dict[str, str | int]) -> Row:
    ours, plain = alternate(subject, lambda: _plain_calls(device), ROUNDS)
    figure = statistics.median(one - other for one, other in zip(ours, plain, strict=True))
    return Row(
        name,
        "host",
        "us",
        ours,
        plain,
        figure,
        "us more",
        Promise("at most 8 us more", 8, at_most=True),
        dict(conditions),
    )


def memory_page() -> Row:
    """Add a page to memory that grows, beside the calls alone."""
    device = roomy_device()

    def subject() -> float:
        with _allocator(device) as allocator:
            return _thread_us(lambda: [allocator.allocate(PAGE) for _ in range(PAGES)], PAGES)

    return _above_calls("memory-page", device, subject, {"page": PAGE})


def memory_first_touch() -> Row:
    """Resolve a variable of one page for the first time, beside the calls alone."""
    device = roomy_device()
    desc = TensorDesc(DataType.DT_INT8, Format.FORMAT_ND, (PAGE - 1024,), size=PAGE - 1024)

    def subject() -> float:
        vm = VarManager(1)
        vm.init(0, 1)
        vm.set_memory_malloc_size(64 * GIB)
        addrs: list[LogicAddr] = [vm.assign_var_mem(f"v{number}", None, desc) for number in range(PAGES)]
        with DeviceMemoryManager(device.runtime) as memory, _allocator(device) as allocator:
            vm.set_mem_manager(memory)
            vm.init_expandable_memory_allocator(allocator, DeviceId(device.id))
            took = _thread_us(lambda: [vm.get_var_memory_addr(addr) for addr in addrs], PAGES)
            vm.destroy()
            return took

    return _above_calls("memory-touch", device, subject, {"variable": PAGE - 1024})


def memory_growth() -> Row:
    """Fill 64 GiB of addresses by variables of 1 MiB: the last eighth beside the first."""
    device, count = roomy_device(), 64 * GIB // MIB
    eighth, desc = count // 8, TensorDesc(DataType.DT_INT8, Format.FORMAT_ND, (MIB - 1024,), size=MIB - 1024)

    def grow() -> tuple[float, float]:
        vm = VarManager(1)
        vm.init(0, 1)
        vm.set_var_mem_max_size(64 * GIB)
        addrs: list[LogicAddr] = vm.assign_many((f"v{number}", None, desc) for number in range(count)).tolist()
        allocator = ExpandableActiveMemoryAllocator(device, max_bytes=64 * GIB)
        with DeviceMemoryManager(device.runtime) as memory, allocator:
            vm.set_mem_manager(memory)
            vm.init_expandable_memory_allocator(allocator, DeviceId(device.id))

            def part(number: int) -> float:
                some = addrs[number * eighth : (number + 1) * eighth]
                return _thread_us(lambda: [vm.get_var_memory_addr(addr) for addr in some], eighth)

            parts = [part(number) for number in range(8)]
            vm.destroy()
            return parts[-1], parts[0]

    grow()
    last, first = zip(*(grow() for _ in range(5)), strict=True)
    ratio = statistics.median(one / other for one, other in zip(last, first, strict=True))
    promise = Promise("at most 1.5x", 1.5, at_most=True)
    unit = "x the first eighth"
    return Row("memory-growth", "host", "us", last, first, ratio, unit, promise, {"variables": count})


def memory_random() -> Row:
    """Free and take blocks at random among many, beside the same among few."""
    device = roomy_device()

    def steps(live: int) -> float:
        chance = random.Random(live)
        with ExpandableActiveMemoryAllocator(device, max_bytes=16 * GIB) as allocator:
            blocks = [allocator.allocate(512 * chance.randint(1, 64)) for _ in range(live)]

            def run() -> None:
                for _ in range(2_000):
                    at = chance.randrange(live)
                    allocator.free(blocks[at])
                    blocks[at] = allocator.allocate(512 * chance.randint(1, 64))

            return _thread_us(run, 2_000)

    many, few = alternate(lambda: steps(100_000), lambda: steps(1_000), 5)
    ratio = statistics.median(one / other for one, other in zip(many, few, strict=True))
    promise = Promise("at most 2x", 2, at_most=True)
    return Row("memory-random", "host", "us", many, few, ratio, "x among 1000", promise, {"blocks": 100_000})
