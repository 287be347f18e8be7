"""`gevar bench alloc|copy|resolve`: what allocation, copies and resolution cost on the device at hand.

Every row is measured beside a reference of the same run, in turn. The table names its backend, since figures of the
host runtime say nothing of a card.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import click
import numpy as np
from numpy.typing import NDArray

from acl_shim import Device, Runtime, open_runtime
from acl_shim.errors import size_text
from gevar.cli.bench_alloc import alloc
from gevar.cli.bench_rows import BenchRow, alternate, device_option, print_rows, rounds_option, size_option, us_each
from gevar.cli.output import backend_option, shared_options, show_log
from gevar.memory import DeviceMemoryManager, ExpandableActiveMemoryAllocator
from gevar.types import DataType, DeviceId, Format, TensorDesc
from gevar.var import VarManager

_PAGE, _SMALL_PAGE = 2 << 20, 4 << 10
COPY_SIZES: Final = (64 << 10, 1 << 20, 64 << 20)
"""Bytes of copies where none are asked for."""


@click.group()
def bench() -> None:
    """Measure allocation, copies and resolution beside references of the same run."""


bench.add_command(alloc)


@bench.command()
@click.option(
    "--size", "sizes", type=size_option, multiple=True, metavar="SIZE", help="Bytes of a copy; may be repeated."
)
@rounds_option
@device_option
@backend_option
@shared_options
def copy(sizes: tuple[int, ...], rounds: int, device_id: int, backend: str | None, as_json: bool, debug: bool) -> None:
    """Measure copies in each direction, from pageable and from pinned memory, by size."""
    show_log(debug)
    runtime = open_runtime(backend)
    rows: list[BenchRow] = []
    for size in sizes or COPY_SIZES:
        rows += _copy_rows(runtime.device(device_id), size, rounds)
    print_rows(runtime, rows, as_json=as_json)


def _copy_rows(device: Device, size: int, rounds: int) -> Iterator[BenchRow]:
    source = np.ones(size, np.uint8)
    target = _half_a_page_off(source)
    with device.malloc(size) as first, device.malloc(size) as second, device.malloc_host(size) as pinned:
        first.copy_from(source)
        second.copy_from(source)
        pinned.view[:] = source.data
        calls: dict[str, Callable[[], object]] = {
            "host to device, pageable": lambda: first.copy_from(source),
            "host to device, pinned": lambda: first.copy_from(pinned),
            "device to host, pageable": lambda: first.copy_to(target),
            "device to host, pinned": lambda: first.copy_to(pinned),
            "device to device": lambda: device.memcpy(second.addr, size, first.addr, size),
        }
        for name, call in calls.items():
            values, reference = alternate(call, lambda: np.copyto(target, source), rounds)
            speeds = [tuple(size / seconds / 1e9 for seconds in series) for series in (values, reference)]
            yield BenchRow(f"{name}, {size_text(size)}", "GB/s", speeds[0], "numpy.copyto", speeds[1])


def _half_a_page_off(source: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return memory half a page away from where the source lies in its page.

    A few bytes away, a processor takes what it reads for what it has just written, and copies small arrays many times
    more slowly: the reference would depend on where the allocator puts them.
    """
    room = np.zeros(source.size + _SMALL_PAGE, np.uint8)
    start = (source.ctypes.data + _SMALL_PAGE // 2 - room.ctypes.data) % _SMALL_PAGE
    return room[start : start + source.size]


@bench.command()
@click.option("--variables", default=10_000, show_default=True, type=click.IntRange(1), help="How many there are.")
@rounds_option
@device_option
@backend_option
@shared_options
def resolve(variables: int, rounds: int, device_id: int, backend: str | None, as_json: bool, debug: bool) -> None:
    """Measure how long a logical address takes to become a device address."""
    show_log(debug)
    runtime, device = open_runtime(backend), DeviceId(device_id)
    firsts: list[float] = []
    for _ in range(rounds):
        with _variables(runtime, device, variables) as (vm, addrs):
            start = time.perf_counter()
            vm.resolve_many(addrs, device)
            firsts.append(time.perf_counter() - start)
    with _variables(runtime, device, variables) as (vm, addrs):
        vm.resolve_many(addrs, device)
        numbers = addrs.tolist()
        table = {addr: addr for addr in numbers}
        one = alternate(
            lambda: [vm.get_var_memory_addr(addr, device_id=device) for addr in numbers],
            lambda: [table[addr] for addr in numbers],
            rounds,
        )
        many = alternate(lambda: vm.resolve_many(addrs, device), lambda: np.searchsorted(addrs, addrs), rounds)
    look_up, plain = "look-up in a dictionary", us_each(one[1], variables)
    rows = [
        BenchRow("first question, with its memory", "us", us_each(tuple(firsts), variables), look_up, plain),
        BenchRow("get_var_memory_addr", "us", us_each(one[0], variables), look_up, plain),
        BenchRow("resolve_many", "us", us_each(many[0], variables), "numpy.searchsorted", us_each(many[1], variables)),
    ]
    print_rows(runtime, rows, as_json=as_json)


@contextmanager
def _variables(runtime: Runtime, device: DeviceId, count: int) -> Iterator[tuple[VarManager, NDArray[np.uint64]]]:
    """Give a manager of variables without memory, and their logical addresses."""
    desc = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (64,), size=256)
    vm = VarManager(1)
    vm.init(0, 1, device)
    allocator = ExpandableActiveMemoryAllocator(runtime.device(device), _PAGE)
    with DeviceMemoryManager(runtime) as memory, allocator:
        vm.set_mem_manager(memory)
        vm.init_expandable_memory_allocator(allocator, device)
        try:
            yield vm, vm.assign_many((f"v{number}", None, desc) for number in range(count))
        finally:
            vm.destroy()
