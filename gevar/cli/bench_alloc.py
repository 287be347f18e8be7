"""`gevar bench alloc`: what blocks cost by size, policy and page class, how memory grows, and logs of requests."""

import json
import mmap
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import click

from acl_shim import Device, open_runtime
from acl_shim.buffer import DeviceBuffer
from acl_shim.codes import MemMallocPolicy
from acl_shim.errors import size_text
from gevar.cli.bench_rows import BenchRow, alternate, device_option, print_rows, rounds_option, size_option, us_each
from gevar.cli.output import backend_option, shared_options, show_log
from gevar.errors import AclError
from gevar.memory import (
    DeviceMemoryManager,
    ExpandableActiveMemoryAllocator,
    HugePageMode,
    MemoryResource,
    replay_log,
)
from gevar.om.regular_file import named_file, read_whole
from gevar.types import DeviceId, MemType

SIZES: Final = (4 << 10, 1 << 20, 2 << 20, 64 << 20)
"""Sizes of blocks where none are asked for."""

_PAGES: Final = {"2 MiB": (2 << 20, HugePageMode.NONE), "1 GiB": (1 << 30, HugePageMode.ONLY)}
_POLICIES: Final = {
    "huge first": MemMallocPolicy.HUGE_FIRST,
    "huge only": MemMallocPolicy.HUGE_ONLY,
    "normal only": MemMallocPolicy.NORMAL_ONLY,
    "1 GiB only": MemMallocPolicy.HUGE1G_ONLY,
}
MAX_LOG_BYTES: Final = 256 << 20
"""Longest log that is read: more than a million requests."""
_RANDOM_SIZES: Final = (9, 22)
"""Powers of two between which random sizes lie."""

Block = TypeVar("Block")
Measure = Callable[[str], BenchRow]


@click.command()
@click.option("--size", "sizes", type=size_option, multiple=True, metavar="SIZE", help="Block size; may be repeated.")
@click.option("--blocks", default=64, show_default=True, type=click.IntRange(1), help="Blocks alive at a time.")
@click.option("--random", "steps", default=1000, show_default=True, type=click.IntRange(0), help="Random requests.")
@click.option("--replay", type=click.Path(path_type=Path), help="Log of requests to repeat.")
@rounds_option
@device_option
@backend_option
@shared_options
def alloc(
    sizes: tuple[int, ...],
    blocks: int,
    steps: int,
    replay: Path | None,
    rounds: int,
    device_id: int,
    backend: str | None,
    as_json: bool,
    debug: bool,
) -> None:
    """Measure allocation: plain memory by policy, and memory that grows by pages of 2 MiB and of 1 GiB.

    Rows that the device has no memory for are left out, and named.
    """
    show_log(debug)
    runtime = open_runtime(backend)
    device, rows, chosen = runtime.device(device_id), list[BenchRow](), sizes or SIZES
    with ExitStack() as stack:
        resources = _resources(device, stack)
        plans = [] if replay is None else list(_replay_plans(resources, replay, rounds))  # first: the log may be wrong
        plans += [*_policy_plans(device, chosen, blocks, rounds), *_growth_plans(device, chosen, blocks, rounds)]
        for name, resource in resources.items():
            plans += _resource_plans(name, resource, chosen, blocks, steps, rounds)
        for name, measure in plans:
            try:
                rows.append(measure(name))
            except AclError as error:
                click.echo(f"left out: {name}: {error.call} returned {error.code}", err=True)
    print_rows(runtime, rows, as_json=as_json)


def _policy_plans(device: Device, sizes: Sequence[int], blocks: int, rounds: int) -> Iterator[tuple[str, Measure]]:
    """Blocks of the runtime, by policy and size."""
    for policy_name, policy in _POLICIES.items():
        for size in sizes:
            name, malloc = f"policy {policy_name}, {size_text(size)}", partial(device.malloc, size, policy)
            yield name, partial(_blocks_row, malloc, DeviceBuffer.close, size, blocks, rounds)


def _growth_plans(device: Device, sizes: Sequence[int], blocks: int, rounds: int) -> Iterator[tuple[str, Measure]]:
    """Memory that grows from nothing, by page class and size."""
    for pages, (page_bytes, mode) in _PAGES.items():
        for size in sizes:
            name = f"growth by {pages} pages, {blocks} of {size_text(size)}"
            yield name, partial(_growth_row, device, page_bytes, mode, size, blocks, rounds)


def _replay_plans(resources: dict[str, MemoryResource], log: Path, rounds: int) -> Iterator[tuple[str, Measure]]:
    """Requests of a log, on gevar's memory."""
    data = read_whole(named_file(log), MAX_LOG_BYTES, log)
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{log}: no log of requests: {error}; give the log as it was written") from error
    if not lines:
        raise ValueError(f"{log}: the log has no request; give one that has")
    for name, resource in resources.items():
        yield f"{name}, {log.name}", partial(_replay_row, resource, log, lines, rounds)


def _resource_plans(
    name: str, resource: MemoryResource, sizes: Sequence[int], blocks: int, steps: int, rounds: int
) -> Iterator[tuple[str, Measure]]:
    """Blocks of gevar's memory by size, and random requests."""
    for size in sizes:
        allocate = partial(resource.allocate, size)
        yield f"{name}, {size_text(size)}", partial(_blocks_row, allocate, resource.free, size, blocks, rounds)
    if steps:
        yield f"{name}, {steps} random requests", partial(_random_row, resource, steps, blocks, rounds)


def _resources(device: Device, stack: ExitStack) -> dict[str, MemoryResource]:
    """Memory of gevar's to measure."""
    manager = stack.enter_context(DeviceMemoryManager(device.runtime))
    resources: dict[str, MemoryResource] = {"plain": manager.resource(MemType.RT_MEMORY_HBM, DeviceId(device.id))}
    for pages, (page_bytes, mode) in _PAGES.items():
        growing = stack.enter_context(ExpandableActiveMemoryAllocator(device, page_bytes, mode=mode))
        resources[f"growing, {pages} pages"] = growing
    return resources


def _blocks_row(
    take: Callable[[], Block], give_back: Callable[[Block], object], size: int, blocks: int, rounds: int, name: str
) -> BenchRow:
    """Take blocks, then give all back."""

    def ours() -> None:
        taken: list[Block] = []
        try:
            taken.extend(take() for _ in range(blocks))
        finally:
            for one in taken:
                give_back(one)

    def plain() -> None:
        for one in [mmap.mmap(-1, size) for _ in range(blocks)]:
            one.close()

    values, reference = alternate(ours, plain, rounds)
    return BenchRow(name, "us", us_each(values, blocks), "mmap and munmap", us_each(reference, blocks))


def _growth_row(
    device: Device, page_bytes: int, mode: HugePageMode, size: int, blocks: int, rounds: int, name: str
) -> BenchRow:
    """Fill an empty range, which takes its pages on the way, and give it back."""
    room = blocks * size + page_bytes

    def ours() -> None:
        allocator = ExpandableActiveMemoryAllocator(device, page_bytes, mode=mode, max_bytes=room)
        with allocator:
            for _ in range(blocks):
                allocator.allocate(size)

    def plain() -> None:
        for one in [mmap.mmap(-1, size) for _ in range(blocks)]:
            one.close()

    values, reference = alternate(ours, plain, rounds)
    return BenchRow(name, "us", us_each(values, blocks), "mmap and munmap", us_each(reference, blocks))


def _random_row(resource: MemoryResource, steps: int, blocks: int, rounds: int, name: str) -> BenchRow:
    """Take and give back at random, as often as not, with up to so many blocks alive; the same ones every time."""
    chance = random.Random(steps)
    low, high = _RANDOM_SIZES
    requests = [(chance.random(), int(2 ** chance.uniform(low, high))) for _ in range(steps)]

    def run(take: Callable[[int], Block], give_back: Callable[[Block], object]) -> None:
        alive: list[Block] = []
        try:
            for choice, size in requests:
                if len(alive) == blocks or (alive and choice < 0.5):
                    give_back(alive.pop(int(choice * 2 * len(alive)) % len(alive)))
                else:
                    alive.append(take(size))
        finally:
            for one in alive:
                give_back(one)

    values, reference = alternate(
        lambda: run(resource.allocate, resource.free),
        lambda: run(lambda size: mmap.mmap(-1, size), mmap.mmap.close),
        rounds,
    )
    return BenchRow(name, "us", us_each(values, steps), "mmap and munmap", us_each(reference, steps))


def _replay_row(resource: MemoryResource, log: Path, lines: list[str], rounds: int, name: str) -> BenchRow:
    """Make the requests of a log again."""

    def ours() -> None:
        for addr in replay_log(lines, resource).leaked:
            resource.free(addr)

    try:
        values, reference = alternate(ours, lambda: [json.loads(line) for line in lines], rounds)
    except ValueError as error:
        raise ValueError(f"{log}: {error}") from error
    return BenchRow(name, "us", us_each(values, len(lines)), "reading the lines", us_each(reference, len(lines)))
