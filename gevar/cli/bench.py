"""`gevar bench alloc|copy|resolve`: what allocation, copies and resolution cost on the device at hand.

Every row is measured beside a reference of the same run, in turn. The table names its backend, since figures of the
host runtime say nothing of a card.
"""

import json
import mmap
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click
import numpy as np

from acl_shim import Device, Runtime, open_runtime
from acl_shim.errors import size_text
from gevar.cli.output import backend_option, print_banner, print_json, print_table, shared_options, show_log
from gevar.errors import AclError
from gevar.memory import (
    DeviceMemoryManager,
    ExpandableActiveMemoryAllocator,
    HugePageMode,
    MemoryResource,
    replay_log,
)
from gevar.types import DataType, DeviceId, Format, MemType, TensorDesc
from gevar.var import VarManager

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_GIANT_PAGE = 1 << 30
_PAGE = 2 << 20


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One line: what was measured, figures of each round in `unit`, and those of the reference."""

    name: str
    unit: str
    values: tuple[float, ...]
    reference_name: str
    reference: tuple[float, ...]

    def cells(self) -> list[str]:
        """Return the line for people: median, spread, and the median of the reference."""
        spread = f"{min(self.values):.2f}…{max(self.values):.2f}"
        ours, plain = f"{median(self.values):.2f} {self.unit}", f"{median(self.reference):.2f} {self.unit}"
        return [self.name, ours, spread, plain, self.reference_name]

    def facts(self) -> dict[str, object]:
        """Return the line for programs."""
        figures = {"median": median(self.values), "min": min(self.values), "max": max(self.values)}
        reference = {"name": self.reference_name, "median": median(self.reference)}
        return {"name": self.name, "unit": self.unit, **figures, "rounds": len(self.values), "reference": reference}


def _size(text: str) -> int:
    """Bytes with an optional K, M or G."""
    text = text.strip().upper()
    number, unit = (text[:-1], text[-1]) if text[-1:] in ("K", "M", "G") else (text, "")
    if not number.isdecimal() or not int(number):
        raise click.BadParameter(f"{text!r} is no size: give bytes, or a number with K, M or G")
    return int(number) * _UNITS[unit]


_rounds = click.option("--rounds", default=5, show_default=True, type=click.IntRange(1), help="Rounds of each row.")
_device = click.option("--device", "device_id", default=0, show_default=True, metavar="N", help="Device to measure.")


@click.group()
def bench() -> None:
    """Measure allocation, copies and resolution beside references of the same run."""


@bench.command()
@click.option("--size", "sizes", type=_size, multiple=True, metavar="SIZE", help="Block size; may be repeated.")
@click.option("--blocks", default=64, show_default=True, type=click.IntRange(1), help="Blocks alive at a time.")
@click.option(
    "--replay", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Log of requests to repeat."
)
@_rounds
@_device
@backend_option
@shared_options
def alloc(
    sizes: tuple[int, ...],
    blocks: int,
    replay: Path | None,
    rounds: int,
    device_id: int,
    backend: str | None,
    as_json: bool,
    debug: bool,
) -> None:
    """Measure allocation and free: plain memory, and memory that grows by 2 MiB and by 1 GiB."""
    show_log(debug)
    runtime = open_runtime(backend)
    rows: list[BenchRow] = []
    with ExitStack() as stack:
        resources = _resources(runtime.device(device_id), stack)
        for name, resource in resources.items():
            rows += [
                _alloc_row(f"{name}, {size_text(size)}", resource, size, blocks, rounds)
                for size in sizes or (4 << 10, 1 << 20, 2 << 20, 64 << 20)
            ]
            if replay is not None:
                rows.append(_replay_row(f"{name}, {replay.name}", resource, replay, rounds))
    _print_rows(runtime, rows, as_json)


def _resources(device: Device, stack: ExitStack) -> dict[str, MemoryResource]:
    """Memory to measure; pages of 1 GiB only where the product has free ones."""
    manager = stack.enter_context(DeviceMemoryManager(device.runtime))
    resources: dict[str, MemoryResource] = {
        "plain": manager.resource(MemType.RT_MEMORY_HBM, DeviceId(device.id)),
        "growing, 2 MiB pages": stack.enter_context(ExpandableActiveMemoryAllocator(device, _PAGE)),
    }
    giant = ExpandableActiveMemoryAllocator(device, _GIANT_PAGE, mode=HugePageMode.ONLY)
    stack.enter_context(giant)
    try:
        giant.free(giant.allocate(1))
    except AclError:
        return resources
    return {**resources, "growing, 1 GiB pages": giant}


def _alloc_row(name: str, resource: MemoryResource, size: int, blocks: int, rounds: int) -> BenchRow:
    def ours() -> None:
        for addr in [resource.allocate(size) for _ in range(blocks)]:
            resource.free(addr)

    def plain() -> None:
        for one in [mmap.mmap(-1, size) for _ in range(blocks)]:
            one.close()

    values, reference = _alternate(ours, plain, rounds)
    per_block = [tuple(seconds / blocks * 1e6 for seconds in series) for series in (values, reference)]
    return BenchRow(name, "us", per_block[0], "mmap and munmap", per_block[1])


def _replay_row(name: str, resource: MemoryResource, log: Path, rounds: int) -> BenchRow:
    lines = log.read_text(encoding="utf-8").splitlines()

    def ours() -> None:
        for addr in replay_log(lines, resource).leaked:
            resource.free(addr)

    values, reference = _alternate(ours, lambda: [json.loads(line) for line in lines], rounds)
    per_line = [tuple(seconds / max(len(lines), 1) * 1e6 for seconds in series) for series in (values, reference)]
    return BenchRow(name, "us", per_line[0], "reading the lines", per_line[1])


@bench.command()
@click.option("--size", type=_size, default="64M", show_default=True, metavar="SIZE", help="Bytes of each copy.")
@_rounds
@_device
@backend_option
@shared_options
def copy(size: int, rounds: int, device_id: int, backend: str | None, as_json: bool, debug: bool) -> None:
    """Measure copies in each direction, from pageable and from pinned memory."""
    show_log(debug)
    runtime = open_runtime(backend)
    device = runtime.device(device_id)
    source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    rows: list[BenchRow] = []
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
            values, reference = _alternate(call, lambda: np.copyto(target, source), rounds)
            speeds = [tuple(size / seconds / 1e9 for seconds in series) for series in (values, reference)]
            rows.append(BenchRow(f"{name}, {size_text(size)}", "GB/s", speeds[0], "numpy.copyto", speeds[1]))
    _print_rows(runtime, rows, as_json)


@bench.command()
@click.option("--variables", default=10_000, show_default=True, type=click.IntRange(1), help="How many there are.")
@_rounds
@_device
@backend_option
@shared_options
def resolve(variables: int, rounds: int, device_id: int, backend: str | None, as_json: bool, debug: bool) -> None:
    """Measure how long a logical address takes to become a device address."""
    show_log(debug)
    runtime = open_runtime(backend)
    desc = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (64,), size=256)
    vm, device = VarManager(1), DeviceId(device_id)
    vm.init(0, 1, device)
    with DeviceMemoryManager(runtime) as memory:
        allocator = ExpandableActiveMemoryAllocator(runtime.device(device_id), _PAGE)
        vm.set_mem_manager(memory)
        vm.init_expandable_memory_allocator(allocator, device)
        addrs = vm.assign_many((f"v{number}", None, desc) for number in range(variables))
        numbers = addrs.tolist()
        table = {addr: addr for addr in numbers}
        with allocator:
            start = time.perf_counter()
            vm.resolve_many(addrs, device)
            first = (time.perf_counter() - start) / variables * 1e6
            one = _alternate(
                lambda: [vm.get_var_memory_addr(addr, device_id=device) for addr in numbers],
                lambda: [table[addr] for addr in numbers],
                rounds,
            )
            many = _alternate(lambda: vm.resolve_many(addrs, device), lambda: np.searchsorted(addrs, addrs), rounds)
            vm.destroy()
    look_up, plain = "look-up in a dictionary", _us(one[1], variables)
    rows = [
        BenchRow("first question, with its memory", "us", (first,), look_up, plain),
        BenchRow("get_var_memory_addr", "us", _us(one[0], variables), look_up, plain),
        BenchRow("resolve_many", "us", _us(many[0], variables), "numpy.searchsorted", _us(many[1], variables)),
    ]
    _print_rows(runtime, rows, as_json)


def _us(seconds: tuple[float, ...], count: int) -> tuple[float, ...]:
    return tuple(one / count * 1e6 for one in seconds)


def _alternate(
    ours: Callable[[], object], plain: Callable[[], object], rounds: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Time both in turn, after one round that does not count; seconds."""
    pairs = list(_pairs(ours, plain, rounds + 1))[1:]
    return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)


def _pairs(ours: Callable[[], object], plain: Callable[[], object], rounds: int) -> Iterator[tuple[float, float]]:
    for _ in range(rounds):
        start = time.perf_counter()
        ours()
        between = time.perf_counter()
        plain()
        yield between - start, time.perf_counter() - between


def _print_rows(runtime: Runtime, rows: list[BenchRow], as_json: bool) -> None:
    if as_json:
        facts = {"backend": runtime.backend, "library": str(runtime.path), "soc_name": runtime.soc_name()}
        print_json({**facts, "rows": [row.facts() for row in rows]})
        return
    print_banner(runtime)
    columns = [("what", "left"), ("median", "right"), ("spread", "right"), ("reference", "right"), ("which is", "left")]
    print_table(columns, [row.cells() for row in rows])
