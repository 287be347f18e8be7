"""What does it cost to resolve logical addresses whose variables have device memory?"""

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from benchmarks.harness import Promise, Row, alternate
from benchmarks.host_pages import GIB, roomy_device
from gevar.memory import DeviceMemoryManager, ExpandableActiveMemoryAllocator
from gevar.types import DataType, DeviceId, Format, LogicAddr, TensorDesc
from gevar.var import VarManager

ROUNDS = 5
COUNTS = (1_000, 10_000, 100_000, 1_000_000)
ASKED = 20_000
BYTES = 1024
THREADS = 8
Addrs = npt.NDArray[np.uint64]


@contextmanager
def _variables(count: int) -> Iterator[tuple[VarManager, Addrs]]:
    """Give a manager whose variables all have device memory; nobody touches the pages."""
    device = roomy_device()
    desc = TensorDesc(DataType.DT_INT8, Format.FORMAT_ND, (BYTES,), size=BYTES)
    vm = VarManager(1)
    vm.init(0, 1)
    vm.set_memory_malloc_size(64 * GIB)
    addrs = vm.assign_many((f"v{number}", None, desc) for number in range(count))
    allocator = ExpandableActiveMemoryAllocator(device, max_bytes=4 * GIB)
    with DeviceMemoryManager(device.runtime) as memory, allocator:
        vm.set_mem_manager(memory)
        vm.init_expandable_memory_allocator(allocator, DeviceId(0))
        vm.resolve_many(addrs)
        try:
            yield vm, addrs
        finally:
            vm.destroy()


def _shuffled(addrs: Addrs, count: int) -> Addrs:
    return addrs[np.random.default_rng(1).integers(0, len(addrs), count)]


def _thread_ns(call: Callable[[], object], count: int) -> float:
    start = time.thread_time_ns()
    call()
    return (time.thread_time_ns() - start) / count


class _Plain:
    """What the reference keeps for a variable."""

    __slots__ = ("addr", "name")

    def __init__(self, name: str, addr: int) -> None:
        self.name = name
        self.addr = addr


def _series(count: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    with _variables(count) as (vm, addrs):
        asked: list[LogicAddr] = _shuffled(addrs, ASKED).tolist()
        plain = {addr: _Plain(f"v{number}", addr) for number, addr in enumerate(addrs.tolist())}
        return alternate(
            lambda: _thread_ns(lambda: [vm.get_var_memory_addr(addr) for addr in asked], ASKED),
            lambda: _thread_ns(lambda: [plain[addr].addr for addr in asked], ASKED),
            ROUNDS,
        )


def resolve() -> Row:
    """Resolve the starts of variables in any order, beside a look-up in a dictionary of as many objects."""
    series = {count: _series(count) for count in COUNTS}
    medians = {count: statistics.median(ours) for count, (ours, _) in series.items()}
    ratios = {count: medians[count] / statistics.median(plain) for count, (_, plain) in series.items()}
    first, last = ratios[COUNTS[0]], ratios[COUNTS[-1]]
    text = f"not flat: {first:.1f}x a plain look-up at {COUNTS[0]} variables, {last:.1f}x at {COUNTS[-1]}"
    faults = () if last <= 2 * first else (text,)
    conditions: dict[str, str | int | float] = {f"ns at {count}": median for count, median in medians.items()}
    promise, figure = Promise("at most 1.5 us a call", 1.5, at_most=True), max(medians.values()) / 1000
    return Row("resolve", "host", "ns", *series[COUNTS[-1]], figure, "us", promise, conditions, faults)


def resolve_many() -> Row:
    """Resolve an array of addresses, beside a search for them in the array of starts."""
    count = 100_000
    with _variables(count) as (vm, addrs):
        asked = _shuffled(addrs, count)
        series = alternate(
            lambda: _thread_ns(lambda: vm.resolve_many(asked), count),
            lambda: _thread_ns(lambda: np.searchsorted(addrs, asked, side="right"), count),
            ROUNDS,
        )
    figure = statistics.median(ours / plain for ours, plain in zip(*series, strict=True))
    promise = Promise("at most 2x", 2, at_most=True)
    return Row("resolve-many", "host", "ns", *series, figure, "x searchsorted", promise, {"addresses": count})


def resolve_threads() -> Row:
    """Resolve arrays from eight threads, beside one thread that resolves as many."""
    count, rounds = 100_000, 8
    with _variables(count) as (vm, addrs):
        asked = _shuffled(addrs, count)

        def work(times: int) -> None:
            for _ in range(times):
                vm.resolve_many(asked)

        def threads() -> float:
            running = [threading.Thread(target=work, args=(rounds,)) for _ in range(THREADS)]
            start = time.perf_counter_ns()
            for thread in running:
                thread.start()
            for thread in running:
                thread.join()
            return (time.perf_counter_ns() - start) / 1e6

        def alone() -> float:
            start = time.perf_counter_ns()
            work(rounds * THREADS)
            return (time.perf_counter_ns() - start) / 1e6

        series = alternate(threads, alone, ROUNDS)
    figure = statistics.median(ours / plain for ours, plain in zip(*series, strict=True))
    promise = Promise("at most 1.5x", 1.5, at_most=True)
    return Row("resolve-threads", "host", "ms", *series, figure, "x one thread", promise, {"threads": THREADS})
