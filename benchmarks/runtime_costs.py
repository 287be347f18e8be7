"""What do calls of the host runtime cost, alone, beside many live objects, and through the binding?"""

import statistics
import timeit
from collections.abc import Callable
from functools import partial

from acl_shim import open_runtime
from acl_shim.host import host_controls
from acl_shim.table import new_cell
from benchmarks.harness import Promise, Row, alternate
from benchmarks.native_reference import hold, loop_ns

ROUNDS = 15
MIB = 1 << 20
LIVE = 100_000
_SMALL = 64


def _ratio_row(
    name: str, subject: tuple[float, ...], reference: tuple[float, ...], unit: str, promise: Promise, against: str
) -> Row:
    ratio = statistics.median(ours / plain for ours, plain in zip(subject, reference, strict=True))
    return Row(name, "host", unit, subject, reference, ratio, f"x {against}", promise)


def malloc_free() -> Row:
    subject, reference = alternate(
        lambda: loop_ns("bench_malloc_free", 2 * MIB, 20_000),
        lambda: loop_ns("bench_mmap_munmap", 2 * MIB, 20_000),
        ROUNDS,
    )
    return _ratio_row(
        "malloc-free", subject, reference, "ns", Promise("at most 2x", 2, at_most=True), "mmap and munmap"
    )


def map_unmap() -> Row:
    subject, reference = alternate(
        lambda: loop_ns("bench_map_unmap", 20_000), lambda: loop_ns("bench_mmap_munmap", 2 * MIB, 20_000), ROUNDS
    )
    promise = Promise("at most a third", 1 / 3, at_most=True)
    return _ratio_row("map-unmap", subject, reference, "ns", promise, "mmap and munmap")


def device_copy() -> Row:
    size = 64 * MIB

    def gb_per_s(loop: str) -> Callable[[], float]:
        return lambda: size / loop_ns(loop, size, 8)

    subject, reference = alternate(gb_per_s("bench_device_copy"), gb_per_s("bench_memcpy"), ROUNDS)
    promise = Promise("at least 0.9x", 0.9, at_most=False)
    return _ratio_row("device-copy", subject, reference, "GB/s", promise, "memcpy between touched pages")


def many_live() -> Row:
    """Compare each call beside many live objects with the same call beside none; the worst one counts."""
    calls: dict[str, Callable[[], float]] = {
        "malloc and free": lambda: loop_ns("bench_malloc_free", 4096, 5_000),
        "map and unmap": lambda: loop_ns("bench_map_unmap", 5_000),
        "copy of 64 B": lambda: loop_ns("bench_small_copy", _SMALL, 20_000),
        "pointer query": lambda: loop_ns("bench_pointer_query", 20_000),
    }
    worst = (0.0, "", (0.0,) * ROUNDS, (0.0,) * ROUNDS)
    for kind in ("blocks", "mappings"):
        series: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in calls}
        for _ in range(ROUNDS):
            for name, call in calls.items():
                series[name][1].append(call())
            hold(kind, LIVE)
            for name, call in calls.items():
                series[name][0].append(call())
            hold("nothing", 0)
        for name, (beside, alone) in series.items():
            ratio = statistics.median(beside) / statistics.median(alone)
            worst = max(worst, (ratio, f"{name}, {kind}", tuple(beside), tuple(alone)))
    ratio, what, subject, reference = worst
    promise = Promise("at most 2x", 2, at_most=True)
    return Row("many-live", "host", "ns", subject, reference, ratio, f"x the call alone ({what})", promise)


def _python_ns(statement: str, names: dict[str, object], number: int = 2_000) -> float:
    """Return the nanoseconds of a statement: the quickest of some short runs, which other work interrupts least."""
    return min(timeit.repeat(statement, globals=names, number=number, repeat=20)) / number * 1e9


def table_call() -> Row:
    runtime = open_runtime("host")
    runtime.device(0).mem_info()
    names = {"cell": new_cell("int32_t *"), "get_device": runtime.api.aclrtGetDevice}
    subject, reference = alternate(
        lambda: _python_ns("get_device(cell)", names), lambda: loop_ns("bench_get_device", 100_000), ROUNDS
    )
    figure = statistics.median(subject) - statistics.median(reference)
    promise = Promise("under 200 ns", 200, at_most=True)
    return Row("table-call", "host", "ns", subject, reference, figure, "ns above the C call", promise)


def face_call() -> Row:
    device = open_runtime("host").device(0)
    with device.malloc(_SMALL) as buffer, device.malloc_host(_SMALL) as pinned:
        names = {"memcpy": device.memcpy, "dst": buffer.addr, "src": pinned.addr, "size": _SMALL}
        subject, reference = alternate(
            lambda: _python_ns("memcpy(dst, size, src, size)", names),
            lambda: loop_ns("bench_small_copy", _SMALL, 100_000),
            ROUNDS,
        )
    figure = statistics.median(subject) - statistics.median(reference)
    promise = Promise("under 1000 ns", 1000, at_most=True)
    return Row("face-call", "host", "ns", subject, reference, figure, "ns above the C call", promise)


def face_small() -> Row:
    """Compare small calls through the checked face with the same calls in C; the one that costs most more counts."""
    runtime = open_runtime("host")
    host, device = host_controls(runtime), runtime.device(0)
    with device.create_event() as event:
        names = {"device": device, "stream": device.default_stream, "event": event}
        calls: dict[str, tuple[str, str]] = {
            "set device": ("device.enter()", "bench_set_context"),
            "memory figures": ("device.mem_info()", "bench_mem_info"),
            "stream query": ("stream.query()", "bench_stream_query"),
            "event query": ("event.query()", "bench_event_query"),
            "event record": ("event.record(stream)", "bench_event_record"),
        }
        worst = (0.0, "", (0.0,) * ROUNDS, (0.0,) * ROUNDS)

        def held_ns(statement: str) -> float:
            """Time a statement while the worker of the stream, which would take part in the time, is held."""
            host.hold()
            try:
                return _python_ns(statement, names, 200)
            finally:
                host.release()  # the loop in C does the same
                device.default_stream.synchronize()

        for name, (statement, loop) in calls.items():
            subject, reference = alternate(partial(held_ns, statement), partial(loop_ns, loop, 20_000), ROUNDS)
            more = statistics.median(subject) - statistics.median(reference)
            worst = max(worst, (more, name, subject, reference))
    figure, what, subject, reference = worst
    promise = Promise("under 1000 ns", 1000, at_most=True)
    return Row("face-small", "host", "ns", subject, reference, figure, f"ns above the C call ({what})", promise)
