"""Owners of what few libraries have, over a library made on the spot that notes what it is asked."""

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acl_shim import Device, open_runtime
from acl_shim.errors import AclError
from acl_shim.mem_info import MemUsage
from acl_shim.memory_codes import MemPoolAttr
from tests.helpers.fake_acl import fake_library


def noting(*values: str) -> str:
    """Return C that notes up to four values."""
    padded = [*values, "0", "0", "0", "0"][:4]
    return "".join(f"noted[{at}] = (long)({value}); " for at, value in enumerate(padded))


BODIES = {
    "noted_at": "(int at) { return (int)noted[at]; }",
    "aclrtMemAllocManaged": "(void **out, unsigned long size, unsigned flag) { "
    + noting("size", "flag")
    + "*out = malloc(size); return 0; }",
    "aclrtMemPoolCreate": "(void **out, const char *props) { "
    + noting("*(int *)(props + 8)", "*(int *)(props + 12)", "*(size_t *)(props + 16)")
    + "*out = (void *)0x77; return 0; }",
    "aclrtMemPoolDestroy": "(void *pool) { return pool == (void *)0x77 ? 0 : 107000; }",
    "aclrtMemPoolMallocAsync": "(void **out, size_t size, void *pool, void *stream) { "
    + noting("size", "pool", "stream")
    + "*out = malloc(size); return 0; }",
    "aclrtMemPoolFreeAsync": "(void *block, void *stream) { " + noting("stream", "1") + "free(block); return 0; }",
    "aclrtCtxGetCurrentDefaultStream": "(void **out) { *out = (void *)0x55; return 0; }",
    "aclrtMemPoolTrimTo": "(void *pool, size_t keep) { " + noting("pool", "keep") + "return 0; }",
    "aclrtMemPoolGetAttr": "(void *pool, int attr, void *value) { *(unsigned long *)value = attr * 1000; return 0; }",
    "aclrtMemPoolSetAttr": "(void *pool, int attr, void *value) { "
    + noting("attr", "*(unsigned long *)value")
    + "return 0; }",
    "aclrtGetMemUsageInfo": "(int id, char *infos, size_t count, size_t *written) { "
    + noting("id", "count")
    + 'strcpy(infos, "first"); *(unsigned long *)(infos + 32) = 5; *(unsigned long *)(infos + 40) = 9; '
    + "*written = 1; return 0; }",
    "aclrtCreateNotify": "(void **out, unsigned long flag) { *out = (void *)0x88; return 0; }",
    "aclrtDestroyNotify": "(void *notify) { return notify == (void *)0x88 ? 0 : 107000; }",
    "aclrtNotifyGetExportKey": "(void *notify, char *key, size_t length, unsigned long flags) { "
    + noting("notify", "length", "flags")
    + 'strcpy(key, "key of a notify"); return 0; }',
    "aclrtNotifyImportByKey": "(void **out, const char *key, unsigned long flags) { "
    + noting("strlen(key)", "flags")
    + "*out = (void *)0x88; return 0; }",
    "aclrtNotifySetImportPid": "(void *notify, int *pids, size_t count) { "
    + noting("notify", "pids[0]", "pids[1]", "count")
    + "return 0; }",
    "aclrtCreateEventExWithFlag": "(void **out, unsigned flag) { *out = (void *)0x99; return 0; }",
    "aclrtDestroyEvent": "(void *event) { return event == (void *)0x99 ? 0 : 107000; }",
    "aclrtIpcGetEventHandle": "(void *event, char *key) { for (int at = 0; at < 64; at++) key[at] = at; return 0; }",
    "aclrtIpcOpenEventHandle": "(struct key key, void **out) { "
    + noting("key.bytes[0]", "key.bytes[63]")
    + "*out = (void *)0x99; return 0; }",
    "aclrtDeviceGetUuid": '(int id, char *uuid) { memcpy(uuid, "0123456789abcdef", 16); return id ? 107000 : 0; }',
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_library(tmp_path_factory.mktemp("rare") / "libascendcl.so", more=BODIES)


@pytest.fixture
def device(library: Path) -> Iterator[Device]:
    made = open_runtime(str(library)).device()
    yield made
    assert not made._enter().owned


@pytest.fixture
def noted(library: Path) -> Any:
    """Return a function that reads what the library noted."""
    loaded = ctypes.CDLL(str(library))
    return lambda count: [loaded.noted_at(at) for at in range(count)]


def test_managed_memory(device: Device, noted: Any) -> None:
    with device.malloc_managed(100) as memory:
        assert noted(2) == [100, 1]
        memory.copy_from(b"m" * 100)
        assert memory.read(3) == b"mmm"
    with pytest.raises(ValueError, match="size_bytes is 0"):
        device.malloc_managed(0)


class TestPool:
    def test_its_properties(self, device: Device, noted: Any) -> None:
        with device.create_memory_pool(1 << 30) as pool:
            assert pool.handle == 0x77
            assert noted(3) == [device.id, 1, 1 << 30]

    def test_blocks_go_back_in_the_order_of_the_stream(self, device: Device, noted: Any) -> None:
        with device.create_memory_pool() as pool:
            block = pool.malloc_async(64, device.default_stream)
            assert noted(3) == [64, 0x77, 0x55]
            block.copy_from(b"p" * 64)
            assert block.read(1) == b"p"
            block.close()
            assert noted(2) == [0x55, 1]
            assert block.closed

    def test_a_size_below_one_is_refused(self, device: Device) -> None:
        with device.create_memory_pool() as pool, pytest.raises(ValueError, match="size_bytes is 0"):
            pool.malloc_async(0, device.default_stream)

    def test_settings_and_figures(self, device: Device, noted: Any) -> None:
        with device.create_memory_pool() as pool:
            pool.set(MemPoolAttr.ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, 12345)
            assert noted(2) == [4, 12345]
            assert pool.get(MemPoolAttr.ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH) == 8000
            pool.trim_to(4096)
            assert noted(2) == [0x77, 4096]


def test_what_modules_hold(device: Device, noted: Any) -> None:
    assert device.mem_usage(7) == [MemUsage("first", 5, 9)]
    assert noted(2) == [device.id, 7]


class TestNotify:
    @pytest.mark.parametrize(("check_pid", "flags"), [(True, 0), (False, 2)])
    def test_a_key(self, device: Device, noted: Any, check_pid: bool, flags: int) -> None:
        with device.create_notify() as notify:
            assert notify.export_key(check_pid=check_pid) == "key of a notify"
            assert noted(3) == [0x88, 65, flags]

    def test_processes(self, device: Device, noted: Any) -> None:
        with device.create_notify() as notify:
            notify.allow_import([11, 22])
            assert noted(4) == [0x88, 11, 22, 2]

    @pytest.mark.parametrize(("peer", "flags"), [(False, 0), (True, 2)])
    def test_an_import(self, device: Device, noted: Any, peer: bool, flags: int) -> None:
        with device.import_notify("seven c", enable_peer_access=peer) as notify:
            assert notify.handle == 0x88
            assert noted(2) == [7, flags]


class TestEvent:
    def test_a_key(self, device: Device) -> None:
        with device.create_event(0x40, extended=True) as event:
            assert event.export_key() == bytes(range(64))

    def test_an_import(self, device: Device, noted: Any) -> None:
        with device.import_event(bytes(range(64))) as event:
            assert event.handle == 0x99
            assert noted(2) == [0, 63]
        with pytest.raises(ValueError, match="key of 3 bytes: give the 64 bytes"):
            device.import_event(b"abc")


def test_the_id_of_the_hardware(device: Device) -> None:
    assert device.uuid() == b"0123456789abcdef"


def test_a_refusal_names_the_call(device: Device) -> None:
    runtime = device.runtime
    with pytest.raises(AclError, match=r"aclrtMemPoolDestroy\(.*\) returned 107000"):
        runtime.check(runtime.api.aclrtMemPoolDestroy(1), "aclrtMemPoolDestroy", {"pool": 1})  # type: ignore[arg-type]
