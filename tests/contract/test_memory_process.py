"""Memory that grows after a fork, at the end of a process, on threads without a device, under the collector."""

import gc
import threading

from acl_shim import Device
from gevar.memory import ExpandableActiveMemoryAllocator
from gevar.types import DevAddr
from tests.helpers.child import expect_output

PREPARE = """
    import os, sys
    from acl_shim import open_runtime
    from acl_shim.host import host_controls
    from gevar.errors import StateError
    from gevar.memory import ExpandableActiveMemoryAllocator
    runtime = open_runtime("host")
    allocator = ExpandableActiveMemoryAllocator(runtime.device(0), max_bytes=1 << 30)
    addr = allocator.allocate(5 << 20)
"""


def test_a_forked_child_is_told() -> None:
    expect_output(
        PREPARE
        + """
    child = os.fork()
    if child == 0:
        told = 0
        for call in (lambda: allocator.allocate(512), lambda: allocator.allocate(5 << 20)):
            try:
                call()
            except StateError as error:
                told += "spawn" in str(error)
        try:
            ExpandableActiveMemoryAllocator(runtime.device(0), max_bytes=1 << 30).allocate(512)
        except StateError as error:
            told += "spawn" in str(error)
        os._exit(10 + told)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    allocator.allocate(512)
    allocator.close()
    print(status, host_controls(runtime).live().handles)
    """,
        "13 0",
    )


def test_the_end_of_the_process_is_silent() -> None:
    expect_output(PREPARE + "    print('done')", "done")


def test_what_is_left_at_the_end_of_the_process_goes_back_without_a_word() -> None:
    code = PREPARE + "\n    allocator.sleep()\n    del allocator\n    print(host_controls(runtime).live().reservations)"
    expect_output(code, "0")


def test_a_thread_that_never_chose_a_device(device: Device) -> None:
    allocator, found = ExpandableActiveMemoryAllocator(device, max_bytes=1 << 30), list[DevAddr]()
    steps = (
        lambda: found.append(allocator.allocate(5 << 20)),
        allocator.sleep,
        allocator.wake,
        lambda: allocator.free(found[0]),
        allocator.free_memory,
    )
    for step in steps:
        errors: list[BaseException] = []

        def run(step: object = step, errors: list[BaseException] = errors) -> None:
            try:
                step()  # type: ignore[operator]
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join(30)
        assert not errors
    assert allocator.statistics.current_count == 0


def test_a_collection_while_the_lock_is_held_hangs_nothing(device: Device) -> None:
    """Dropped allocators are finalised in the middle of another one's work, and of its own reload."""
    with ExpandableActiveMemoryAllocator(device, max_bytes=1 << 30) as allocator:
        allocator.allocate(5 << 20, "v")

        def reload(addr: DevAddr, size: int, tag: str) -> None:
            gc.collect()

        for _ in range(3):
            dropped = ExpandableActiveMemoryAllocator(device, max_bytes=1 << 30)
            dropped.allocate(3 << 20)
            cycle = [dropped]
            cycle.append(cycle)  # type: ignore[arg-type]
            del dropped, cycle
            with allocator._lock:
                gc.collect()
            allocator.sleep("reload", reload)
            allocator.wake()
        assert allocator.statistics.current_count == 1
