"""Fault loops: each call of each operation of the binding fails once; nothing is left, and a second try works."""

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from acl_shim import Device
from acl_shim.errors import AclError, GevarError, OutOfMemoryError
from acl_shim.host import HostControls
from acl_shim.table import function_names
from tests.helpers.runtime import fail_until_passes, host_runtime, live_now, used_functions

FUNCTIONS = tuple(name for name in function_names() if name.startswith("acl"))
SIZE = 3 << 20


def malloc(device: Device) -> None:
    device.malloc(SIZE).close()


def malloc_with_module(device: Device) -> None:
    device.malloc(SIZE, module_id=3).close()


def malloc_and_drop(device: Device) -> None:
    device.malloc(SIZE)


def malloc_host(device: Device) -> None:
    device.malloc_host(SIZE).close()


def round_trip(device: Device) -> None:
    with device.malloc(SIZE) as block, device.malloc_host(SIZE) as pinned:
        pinned.view[:] = b"\x5a" * SIZE
        block.copy_from(pinned.view)
        device.memset(block.addr, 1 << 20, 7, 1 << 20)
        block.copy_to(pinned.view)
        assert bytes(pinned.view) == b"\x07" * (1 << 20) + b"\x5a" * (SIZE - (1 << 20))


def many_blocks(device: Device) -> None:
    with ExitStack() as stack:
        for size in range(1, 8):
            stack.enter_context(device.malloc(size << 18))


def queries(device: Device) -> None:
    device.mem_info()
    device.runtime.device_count()
    device.runtime.run_mode()
    with device.malloc(64) as block:
        device.pointer_attributes(block.addr)


def raw_copies(device: Device) -> None:
    with device.malloc(64) as first, device.malloc(64) as second:
        device.memcpy_in(first.addr, 64, b"r" * 64)
        device.memcpy(second.addr, 64, first.addr, 64)
        target = bytearray(64)
        device.memcpy_out(target, second.addr)
        assert target == b"r" * 64


def take_and_reset(device: Device) -> None:
    try:
        device.mem_info()
    finally:
        try:
            device.reset()
        except AclError:
            device.reset()
            raise


OPERATIONS: list[Callable[[Device], None]] = [
    malloc,
    malloc_with_module,
    malloc_and_drop,
    malloc_host,
    round_trip,
    many_blocks,
    queries,
    raw_copies,
    take_and_reset,
]


@pytest.mark.parametrize("code", [207001, 507899, 100000])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_each_call_fails_once_and_nothing_is_left(
    host: HostControls, operation: Callable[[Device], None], code: int, caplog: pytest.LogCaptureFixture
) -> None:
    device = host_runtime().device(1)
    operation(device)
    used = used_functions(host, FUNCTIONS, lambda: operation(device))
    assert used
    optional = {"aclGetRecentErrMsg", "aclrtGetSocName"}  # answer a text: a failure of theirs has no code
    optional.add("aclrtPointerGetAttributes")  # where it does not answer, the copy itself decides
    for function in used:
        if function not in optional and not (operation is malloc_and_drop and function == "aclrtFree"):
            failed = fail_until_passes(host, function, lambda: operation(device), code=code)
            assert failed >= 1, f"{function} never failed"
    device.reset()


@pytest.mark.parametrize("code", [207001, 507899])
def test_each_call_of_a_first_use_fails_once_and_the_next_use_works(host: HostControls, code: int) -> None:
    """Setting the device undoes itself: the count of the device is 0 again after each failure."""
    device = host_runtime().device()

    def first_use() -> None:
        device.mem_info()

    for function in ("aclInit", "aclrtSetDevice", "aclrtGetCurrentContext"):
        host.reset()
        host.fail_nth(function, 1, code)
        with pytest.raises(AclError) as caught:
            first_use()
        assert (caught.value.code, caught.value.call) == (code, function)
        assert host.live().devices_set == 0
        first_use()
        assert host.live().devices[0].set_count == 1
        device.reset()
        assert host.live().devices_set == 0


def test_a_context_that_cannot_be_made_current_leaves_the_device_held(host: HostControls) -> None:
    device = host_runtime().device()
    device.mem_info()
    host.fail_nth("aclrtSetCurrentContext", 1, 507899)
    with pytest.raises(AclError, match="aclrtSetCurrentContext"):
        device.mem_info()
    assert host.live().devices[0].set_count == 1
    device.mem_info()
    assert host.calls("aclrtSetDevice") == 1


def test_a_failed_reset_can_be_repeated(host: HostControls) -> None:
    device = host_runtime().device()
    device.mem_info()
    host.fail_nth("aclrtResetDevice", 1, 507899)
    with pytest.raises(AclError, match="aclrtResetDevice"):
        device.reset()
    assert host.live().devices[0].set_count == 1
    device.reset()
    assert host.live().devices_set == 0


@pytest.mark.parametrize("function", ["aclrtResetDevice", "aclFinalizeReference"])
def test_a_failed_close_can_be_repeated(host: HostControls, function: str) -> None:
    runtime = host_runtime()
    runtime.device().mem_info()
    host.fail_nth(function, 1, 507899)
    with pytest.raises(AclError, match=function):
        runtime.close()
    assert not runtime.closed
    runtime.close()
    assert runtime.closed


@pytest.mark.parametrize("make", ["malloc", "malloc_host"])
def test_a_failed_free_can_be_repeated_by_close_or_the_finaliser(
    host: HostControls, make: str, caplog: pytest.LogCaptureFixture
) -> None:
    device = host_runtime().device()
    free = "aclrtFree" if make == "malloc" else "aclrtFreeHost"
    start = live_now(host) if device.mem_info() else None
    buffer = getattr(device, make)(4096)
    for _ in range(2):
        host.fail_nth(free, 1, 507899)
        with pytest.raises(AclError, match=free):
            buffer.close()
        assert not buffer.closed
    if make == "malloc_host":
        buffer.view[:4] = b"open"
        assert bytes(buffer.view[:4]) == b"open"
    else:
        buffer.copy_from(b"open")
        assert buffer.read(4) == b"open"
    buffer.close()
    assert host.live() == start
    buffer = getattr(device, make)(4096)
    del buffer
    assert live_now(host) == start
    assert not caplog.records


@pytest.mark.parametrize("make", ["malloc", "malloc_host"])
def test_a_finaliser_that_fails_is_logged_and_the_device_says_what_is_left(
    host: HostControls, make: str, caplog: pytest.LogCaptureFixture
) -> None:
    device = host_runtime().device()
    buffer = getattr(device, make)(4096)
    host.fail_nth("aclrtFree" if make == "malloc" else "aclrtFreeHost", 1, 507899)
    del buffer
    (record,) = caplog.records
    assert "the finaliser of" in record.getMessage()
    assert "507899 ACL_ERROR_RT_DRV_INTERNAL_ERROR" in record.getMessage()
    live = host.live()
    assert live.blocks + live.host_blocks == 1
    with pytest.raises(GevarError, match=r"in use by 1 \w+ \(4\.00 KiB"):
        device.reset()
    host.reset()


def test_memory_that_runs_out_in_the_middle_leaves_nothing(host: HostControls) -> None:
    host.configure(pages_2m=8, pages_4k_bytes=0)
    device = host_runtime().device()
    device.mem_info()
    start = live_now(host)
    for pages in (1, 2, 3, 5):
        with ExitStack() as stack:
            for _ in range(8 // pages):
                stack.enter_context(device.malloc((pages << 21) - 64))
            with pytest.raises(OutOfMemoryError) as caught:
                device.malloc(pages << 21)
            assert caught.value.free_bytes == (8 % pages) << 21
        assert live_now(host) == start
