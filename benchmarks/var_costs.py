"""What do calls of the variable manager cost, per variable, beside a plain loop of dictionary inserts?

Subject and reference are timed alike: in processor time of the thread, with cyclic garbage collection off.
"""

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from benchmarks.harness import Promise, Row, alternate, run_python
from gevar.proto.var_manager import VarManagerInfo
from gevar.types import DataType, DeviceId, Format, TensorDesc
from gevar.var import CONSTANTOP, VARIABLE, VarManager, VarOp

ROUNDS = 5
COUNTS = (1_000, 10_000, 100_000)
FEW_COUNTS = COUNTS[:2]  # for what takes more than ten seconds at the largest
CONSTANT_BYTES = 4096
_GIB = 1 << 30


class _Plain:
    """What the reference keeps for a variable."""

    __slots__ = ("addr", "desc", "name", "op")

    def __init__(self, name: str, desc: TensorDesc, addr: int, op: VarOp | None) -> None:
        self.name = name
        self.desc = desc
        self.addr = addr
        self.op = op


@contextmanager
def _no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _per_item_ns(call: Callable[[], object], count: int) -> float:
    with _no_collection():
        start = time.thread_time_ns()
        call()
        return (time.thread_time_ns() - start) / count


def _names(count: int) -> list[str]:
    return [f"model/layer_{number}/weight" for number in range(count)]


def _descs(count: int) -> list[TensorDesc]:
    return [TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (16, 16), size=1024) for _ in range(count)]


def _manager() -> VarManager:
    vm = VarManager(1)
    vm.init(0, 1)
    vm.set_memory_malloc_size(64 * _GIB)
    return vm


def _full_manager(count: int) -> tuple[VarManager, list[str], list[TensorDesc]]:
    vm, names, descs = _manager(), _names(count), _descs(count)
    vm.assign_many((name, None, desc) for name, desc in zip(names, descs, strict=True))
    return vm, names, descs


def _plain_loop(names: Sequence[str], descs: Sequence[TensorDesc]) -> float:
    """Time one slotted object and two dictionary inserts per item."""

    def loop() -> None:
        by_name: dict[str, _Plain] = {}
        by_addr: dict[int, _Plain] = {}
        for addr, name in enumerate(names):
            plain = _Plain(name, descs[addr], addr, None)
            by_name[name] = plain
            by_addr[addr] = plain

    return _per_item_ns(loop, len(names))


Series = tuple[tuple[float, ...], tuple[float, ...]]


def _beside_loop(prepare: Callable[[int], Callable[[], float]], count: int) -> Series:
    names, descs = _names(count), _descs(count)
    return alternate(prepare(count), lambda: _plain_loop(names, descs), ROUNDS)


def _ratio(series: Series) -> float:
    return statistics.median(ours / plain for ours, plain in zip(*series, strict=True))


def _worst_ratio(
    name: str, series: dict[int, Series], limit: float, against: str = "the loop", *, flat: bool = False
) -> Row:
    """Make the row of the number of variables at which the ratio is worst; with `flat` it may not double."""
    ratios = {count: _ratio(one) for count, one in series.items()}
    count = max(ratios, key=ratios.__getitem__)
    faults: tuple[str, ...] = ()
    last, first = max(ratios), min(ratios)
    if flat and ratios[last] > 2 * ratios[first]:
        faults = (f"not flat: {ratios[first]:.1f}x at {first} variables, {ratios[last]:.1f}x at {last}",)
    conditions: dict[str, str | int | float] = {f"x at {number}": ratio for number, ratio in ratios.items()}
    promise = Promise(f"at most {limit:g}x", limit, at_most=True)
    unit = f"x {against}, n={count}"
    return Row(name, "none", "ns", *series[count], ratios[count], unit, promise, conditions, faults)


def _loop_row(
    name: str,
    prepare: Callable[[int], Callable[[], float]],
    limit: float,
    counts: Sequence[int] = COUNTS,
    *,
    flat: bool = False,
) -> Row:
    return _worst_ratio(name, {count: _beside_loop(prepare, count) for count in counts}, limit, flat=flat)


def var_assign() -> Row:
    def prepare(count: int) -> Callable[[], float]:
        names, descs = _names(count), _descs(count)

        def assign(vm: VarManager) -> None:
            for number, name in enumerate(names):
                vm.assign_var_mem(name, None, descs[number])

        return lambda: _per_item_ns(partial(assign, _manager()), count)

    return _loop_row("var-assign", prepare, 8)


def var_assign_many() -> Row:
    def prepare(count: int) -> Callable[[], float]:
        items = [(name, None, desc) for name, desc in zip(_names(count), _descs(count), strict=True)]
        return lambda: _per_item_ns(partial(_manager().assign_many, items), count)

    return _loop_row("var-assign-many", prepare, 3)


def var_get_addr() -> Row:
    def prepare(count: int) -> Callable[[], float]:
        vm, names, descs = _full_manager(count)

        def ask() -> None:
            for number, name in enumerate(names):
                vm.get_var_addr(name, descs[number])

        return lambda: _per_item_ns(ask, count)

    return _loop_row("var-get-addr", prepare, 1.5)


def var_loaded() -> Row:
    def prepare(count: int) -> Callable[[], float]:
        vm, names, descs = _full_manager(count)
        addrs = vm.get_var_addr_many(names, descs).tolist()
        ops = [VarOp(name, VARIABLE, (desc,), (addr,)) for name, desc, addr in zip(names, descs, addrs, strict=True)]

        devices = map(DeviceId, itertools.count())

        def check() -> None:
            device_id = next(devices)
            for op in ops:
                vm.check_and_set_var_loaded(op, device_id)

        return lambda: _per_item_ns(check, count)

    return _loop_row("var-loaded", prepare, 2, flat=True)


def var_constants() -> Row:
    """Assign constants that differ only in their last bytes."""

    def prepare(count: int) -> Callable[[], float]:
        weights = np.zeros((count, CONSTANT_BYTES), np.uint8)
        weights[:, -4:] = np.arange(count, dtype="<u4").view(np.uint8).reshape(count, 4)
        desc = TensorDesc(DataType.DT_INT8, Format.FORMAT_ND, (CONSTANT_BYTES,), size=CONSTANT_BYTES)
        ops = [VarOp(name, CONSTANTOP, (desc,), (), memoryview(weights[at])) for at, name in enumerate(_names(count))]

        def assign(vm: VarManager) -> None:
            for op in ops:
                vm.assign_var_mem(op.name, op, desc)

        return lambda: _per_item_ns(partial(assign, _manager()), count)

    series = {count: _beside_loop(prepare, count) for count in COUNTS}
    row = _worst_ratio("var-constants", series, 0, flat=True)
    figure = max(statistics.median(ours) for ours, _ in series.values()) / 1000
    promise = Promise("under 12 us", 12, at_most=True)
    return Row(row.name, "none", "ns", row.subject, row.reference, figure, "us", promise, row.conditions, row.faults)


def var_to_bytes() -> Row:
    def prepare(count: int) -> Callable[[], float]:
        vm = _full_manager(count)[0]
        return lambda: _per_item_ns(vm.var_manager_to_bytes, count)

    return _loop_row("var-to-bytes", prepare, 12, FEW_COUNTS)


def var_from_bytes() -> Row:
    """Restore a manager from bytes, beside parsing the same bytes."""
    series: dict[int, Series] = {}
    for count in FEW_COUNTS:
        data = _full_manager(count)[0].var_manager_to_bytes()
        series[count] = alternate(
            partial(
                lambda count, data: _per_item_ns(lambda: VarManager(1).var_manager_to_deserial(data), count),
                count,
                data,
            ),
            partial(
                lambda count, data: _per_item_ns(lambda: VarManagerInfo().ParseFromString(data), count), count, data
            ),
            ROUNDS,
        )
    return _worst_ratio("var-from-bytes", series, 4, "ParseFromString")


_RESIDENT = """
import sys
from benchmarks import var_costs
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
count = int(sys.argv[1])
var_costs._full_manager(10)
before = resident()
names, descs = var_costs._names(count), var_costs._descs(count)
if sys.argv[2] == "manager":
    vm = var_costs._manager()
    for name, desc in zip(names, descs):
        vm.assign_var_mem(name, None, desc)
print((resident() - before) / count)
"""


def var_memory() -> Row:
    """Measure what a variable takes in memory, its name and description included, in fresh processes."""
    count = COUNTS[-1]
    subject, reference = alternate(
        lambda: float(run_python(_RESIDENT, str(count), "manager").stdout),
        lambda: float(run_python(_RESIDENT, str(count), "names").stdout),
        ROUNDS,
    )
    figure, promise = statistics.median(subject), Promise("under 1024 B", 1024, at_most=True)
    return Row("var-memory", "none", "B", subject, reference, figure, "B per variable", promise)
