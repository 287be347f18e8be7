"""Fault loops over streams, events, virtual memory, shared memory: each call fails once, nothing is left."""

import gc
import mmap
from collections.abc import Callable

import pytest

from acl_shim import BatchCopy, Device
from acl_shim.codes import MemcpyKind, MemMallocPolicy
from acl_shim.errors import AclError, OutOfMemoryError
from acl_shim.host import HostControls
from acl_shim.memory_codes import MemPoolAttr
from acl_shim.stream_codes import EventFlag
from acl_shim.table import function_names
from tests.helpers.runtime import fail_until_passes, host_runtime, live_now, used_functions

FUNCTIONS = tuple(name for name in function_names() if name.startswith("acl"))
PAGE = 2 << 20
TEXTS = {"aclGetRecentErrMsg", "aclrtGetSocName"}  # answer a text: a failure of theirs has no code
Operation = Callable[[Device], object]


def stream(device: Device) -> None:
    with device.create_stream() as made, device.create_stream(3, 1) as other:
        assert made.id != other.id
        assert other.priority == 3
        made.synchronize(5)


def stream_of_a_context(device: Device) -> None:
    with device.create_context() as context, context.create_stream() as made, context.create_event() as event:
        event.record(made)
        event.synchronize()
        context.synchronize(5)


def asynchronous_copies(device: Device) -> None:
    with (
        device.malloc(4096) as block,
        device.malloc_host(4096) as pinned,
        device.create_stream() as made,
    ):
        pinned.view[:] = b"a" * 4096
        block.copy_from_async(pinned.view, made)
        made.memset_async(block.addr, 4096, 7, 16)
        made.memset_d32_async(block.addr, 4096, 7, 1)
        block.copy_to_async(pinned.view, made)
        made.memcpy_2d_async(block.addr, 16, pinned.addr, 16, 8, 2, MemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE)
        copies = [BatchCopy(block.addr, 64, pinned.addr, 64)]
        made.memcpy_batch_async(copies, MemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE)
        made.synchronize()
        assert made.query()
        assert bytes(pinned.view[14:18]) == b"\x07\x07aa"


def synchronous_copies(device: Device) -> None:
    with device.malloc(4096) as block, device.malloc_host(4096) as pinned:
        device.memcpy_2d(block.addr, 16, pinned.addr, 16, 8, 2, MemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE)
        device.memcpy_batch([BatchCopy(block.addr, 64, pinned.addr, 64)], MemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE)
        device.memset_d32(block.addr, 64, 1, 2)


def host_function(device: Device) -> None:
    seen: list[int] = []
    with device.create_stream() as made:
        made.launch_host_func(lambda: seen.append(1))
        made.synchronize()
        assert seen == [1]


def events(device: Device) -> None:
    flags = EventFlag.ACL_EVENT_TIME_LINE
    with (
        device.create_event() as plain,
        device.create_event(flags) as start,
        device.create_event(flags | EventFlag.ACL_EVENT_SYNC, extended=True) as end,
        device.create_stream() as made,
    ):
        start.record(made)
        end.record(made)
        plain.record(made)
        made.wait_event(plain)
        made.synchronize()
        plain.query()
        end.synchronize(5)
        start.elapsed_ms(end)
        start.timestamp_us()


def notify(device: Device) -> None:
    with device.create_notify() as made, device.create_stream() as first:
        made.record(first)
        made.wait(first, 5)
        first.synchronize()


def values(device: Device) -> None:
    with device.malloc(64) as block, device.create_stream() as made:
        made.value_write(block.addr, 5)
        made.value_wait(block.addr, 5)
        made.synchronize()


def reserve_and_map(device: Device) -> None:
    with device.reserve(4 * PAGE) as made, device.malloc_physical(PAGE) as handle:
        with made.map(handle, PAGE) as first, made.map(handle, 2 * PAGE) as second:
            first.copy_from(b"alias")
            assert second.read(5) == b"alias"
            first.set_access([device.id])
            first.access(device.id)
            device.address_range(first.addr)
            with handle.retain() as again:
                assert again.handle == handle.handle
        with made.map(handle, accessible=False) as third:
            third.set_access([device.id])


def unwind_a_range(device: Device) -> None:
    with device.malloc_physical(PAGE) as handle, device.reserve(4 * PAGE) as made:
        mappings = [made.map(handle, number * PAGE) for number in range(3)]
        try:
            made.close()
        except AclError:
            made.close()
            raise
        finally:
            assert all(mapping.closed for mapping in mappings)
            assert handle.map_count == 0


def map_memory(device: Device) -> None:
    with device.map_memory(7 * PAGE - 3, piece_bytes=2 * PAGE) as memory:
        assert len(memory.mappings) == 4
        memory.copy_from(b"over the seam", offset_bytes=2 * PAGE - 4)
        assert memory.read(13, offset_bytes=2 * PAGE - 4) == b"over the seam"


def share(device: Device) -> None:
    with (
        device.malloc(PAGE, MemMallocPolicy.HUGE_ONLY) as block,
        device.malloc_physical(PAGE) as handle,
        block.export_key() as export,
    ):
        export.allow_import([device.bare_tgid()])
        handle.allow_import(handle.export_key(), [device.bare_tgid()])


def register(device: Device) -> None:
    memory = mmap.mmap(-1, 4096)
    with device.host_register(memory) as made:
        assert made.addr


def pool(device: Device) -> None:
    with device.create_memory_pool() as made, device.create_stream() as first:
        made.set(MemPoolAttr.ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, 1 << 20)
        assert made.get(MemPoolAttr.ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD) == 1 << 20
        with made.malloc_async(4096, first) as block:
            first.memset_async(block.addr, 4096, 3, 4096)
            first.synchronize()
        first.synchronize()
        made.trim_to(0)


def managed(device: Device) -> None:
    with device.malloc_managed(4096) as memory:
        memory.copy_from(b"managed")
        assert memory.read(7) == b"managed"


def peers(device: Device) -> None:
    assert device.can_access_peer(0)
    device.enable_peer_access(0)
    device.disable_peer_access(0)


OPERATIONS: list[Operation] = [
    stream,
    stream_of_a_context,
    asynchronous_copies,
    synchronous_copies,
    host_function,
    events,
    notify,
    values,
    reserve_and_map,
    unwind_a_range,
    map_memory,
    share,
    register,
    pool,
    managed,
    peers,
]


@pytest.mark.parametrize("code", [207001, 507899])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_each_call_fails_once_and_nothing_is_left(
    host: HostControls, operation: Operation, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    device = host_runtime().device(1)
    operation(device)
    used = used_functions(host, FUNCTIONS, lambda: operation(device))
    for function in used:
        if function not in TEXTS:
            failed = fail_until_passes(host, function, lambda: operation(device), code=code)
            assert failed >= 1, f"{function} never failed"
    assert not device._enter().owned
    device.reset()


def test_memory_that_runs_out_piece_by_piece_leaves_nothing(host: HostControls) -> None:
    for pages in range(1, 6):
        host.configure(pages_2m=pages)
        device = host_runtime().device()
        device.mem_info()
        start = live_now(host)
        with pytest.raises(OutOfMemoryError) as caught:
            device.map_memory(6 * PAGE, piece_bytes=PAGE)
        assert caught.value.free_bytes == 0
        assert live_now(host) == start
        with device.map_memory(pages * PAGE, piece_bytes=PAGE) as memory:
            assert host.live().devices[0].pages_2m_used == pages
            assert memory.read(1)
        assert live_now(host) == start


@pytest.mark.parametrize("function", ["aclrtUnmapMem", "aclrtFreePhysical", "aclrtReleaseMemAddress"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_failed_close_of_mapped_memory_can_be_repeated(host: HostControls, function: str, nth: int) -> None:
    device = host_runtime().device()
    device.mem_info()
    start = live_now(host)
    memory = device.map_memory(3 * PAGE, piece_bytes=PAGE)
    if function == "aclrtReleaseMemAddress":
        nth = 1
    host.fail_nth(function, nth, 507899)
    with pytest.raises(AclError, match=function):
        memory.close()
    assert not memory.closed
    memory.close()
    assert memory.closed
    assert host.live() == start


@pytest.mark.parametrize("close", ["close", "destroy_force"])
def test_a_failed_destroy_of_a_stream_can_be_repeated(host: HostControls, close: str) -> None:
    device = host_runtime().device()
    made = device.create_stream()
    host.fail_nth("aclrtDestroyStream" if close == "close" else "aclrtDestroyStreamForce", 1, 507899)
    with pytest.raises(AclError, match="aclrtDestroyStream"):
        getattr(made, close)()
    assert not made.closed
    with device.malloc(64) as block:
        made.memset_async(block.addr, 64, 1, 64)
        made.synchronize()
        assert block.read(1) == b"\x01"
    getattr(made, close)()
    assert made.closed
    assert host.live().streams == 0


def test_a_failed_destroy_of_a_context_can_be_repeated(host: HostControls) -> None:
    context = host_runtime().device().create_context()
    host.fail_nth("aclrtDestroyContext", 1, 507899)
    with pytest.raises(AclError, match="aclrtDestroyContext"):
        context.close()
    context.default_stream.synchronize()
    context.close()
    assert host.live().contexts == 0


def test_a_finaliser_that_cannot_unmap_is_logged_and_the_range_does_it(
    host: HostControls, caplog: pytest.LogCaptureFixture
) -> None:
    device = host_runtime().device()
    with device.malloc_physical(PAGE) as handle:
        made = device.reserve(2 * PAGE)
        mapping = made.map(handle)
        host.fail_nth("aclrtUnmapMem", 1, 507899)
        del mapping
        gc.collect()
        (record,) = caplog.records
        assert "aclrtUnmapMem" in record.getMessage()
        assert host.live().mappings == 1
        made.close()
        assert host.live().mappings == 0
    assert not device._enter().owned


@pytest.mark.parametrize("function", ["aclrtMemcpyAsync", "aclrtMemsetAsync"])
def test_a_task_that_is_not_queued_keeps_nothing(host: HostControls, function: str) -> None:
    device = host_runtime().device()
    with device.malloc(64) as block, device.create_stream() as made:
        host.fail_nth(function, 1, 507899)
        queue = {
            "aclrtMemcpyAsync": lambda: block.copy_from_async(b"x" * 64, made),
            "aclrtMemsetAsync": lambda: made.memset_async(block.addr, 64, 0, 64),
        }
        with pytest.raises(AclError, match=function):
            queue[function]()
        assert len(made._queued._kept) == 0
        made.synchronize()


def test_a_query_in_passing_that_fails_does_no_harm(host: HostControls) -> None:
    device = host_runtime().device()
    with device.malloc(64) as block, device.create_stream() as made, device.malloc_host(64) as pinned:
        for _ in range(63):
            block.copy_from_async(pinned.view, made)
        host.fail_nth("aclrtStreamQuery", 1, 507899)
        block.copy_from_async(pinned.view, made)
        assert host.calls("aclrtStreamQuery") == 1
        made.synchronize()
        assert len(made._queued._kept) == 0
