"""Copies of rows and batches, fills of words, managed memory, memory pools; what a library lacks is told."""

from pathlib import Path

import pytest

from acl_shim import BatchCopy, Device, open_runtime
from acl_shim.codes import MemcpyKind
from acl_shim.errors import AclError, StateError
from acl_shim.host import HostControls
from acl_shim.memory_codes import MemPoolAttr
from tests.helpers.fake_acl import fake_library
from tests.helpers.runtime import host_runtime

TO_DEVICE, TO_HOST = MemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE, MemcpyKind.ACL_MEMCPY_DEVICE_TO_HOST


class TestRows:
    def test_rows_in_and_out(self, device: Device) -> None:
        with device.malloc(1000) as block, device.malloc_host(64) as pinned:
            device.memset(block.addr, 1000, 0, 1000)
            pinned.view[:] = bytes(range(64))
            device.memcpy_2d(block.addr, 100, pinned.addr, 16, 8, 4, TO_DEVICE)
            for row in range(4):
                assert block.read(8, offset_bytes=100 * row) == bytes(range(16 * row, 16 * row + 8))
            pinned.view[:] = bytes(64)
            device.memcpy_2d(pinned.addr, 16, block.addr, 100, 8, 4, TO_HOST)
            assert bytes(pinned.view[16:32]) == bytes(range(16, 24)) + bytes(8)

    def test_no_rows(self, device: Device) -> None:
        device.memcpy_2d(0, 0, 0, 0, 0, 0, TO_DEVICE)

    def test_a_width_above_the_pitch_is_refused(self, device: Device) -> None:
        with device.malloc(100) as block, device.malloc_host(100) as pinned, pytest.raises(AclError) as caught:
            device.memcpy_2d(block.addr, 8, pinned.addr, 16, 10, 2, TO_DEVICE)
        assert (caught.value.code, caught.value.call) == (100000, "aclrtMemcpy2d")
        assert caught.value.arguments["height"] == 2


class TestBatches:
    @pytest.mark.parametrize("kind", [TO_DEVICE, TO_HOST])
    def test_many_copies(self, device: Device, kind: MemcpyKind) -> None:
        with device.malloc(8000) as block, device.malloc_host(64) as pinned:
            device.memset(block.addr, 8000, 9, 8000)
            pinned.view[:] = bytes(range(64))
            pairs = [(block.addr + 1000 * number, pinned.addr + 8 * number) for number in range(8)]
            if kind == TO_HOST:
                pairs = [(host, there) for there, host in pairs]
            device.memcpy_batch([BatchCopy(dst, 8, src, 8) for dst, src in pairs], kind)
            if kind == TO_HOST:
                assert bytes(pinned.view) == b"\x09" * 64
            else:
                assert block.read(9, offset_bytes=7000) == bytes(range(56, 64)) + b"\x09"

    def test_no_copies_make_no_call(self, host: HostControls) -> None:
        device = host_runtime().device()
        device.memcpy_batch([], TO_DEVICE)
        assert host.calls("aclrtMemcpyBatch") == 0

    @pytest.mark.parametrize("kind", [MemcpyKind.ACL_MEMCPY_DEVICE_TO_DEVICE, MemcpyKind.ACL_MEMCPY_DEFAULT])
    def test_other_directions_are_refused_before_the_call(self, device: Device, kind: MemcpyKind) -> None:
        for batch in (device.memcpy_batch, device.default_stream.memcpy_batch_async):
            with pytest.raises(ValueError, match=f"kind of a batch is {int(kind)}"):
                batch([], kind)

    def test_the_copy_that_failed_is_named(self, device: Device) -> None:
        with device.malloc(64) as block, device.malloc_host(64) as pinned:
            good = BatchCopy(block.addr, 64, pinned.addr, 8)
            nowhere = BatchCopy(block.addr + (1 << 40), 64, pinned.addr, 8)
            with pytest.raises(AclError) as caught:
                device.memcpy_batch([good, nowhere, good], TO_DEVICE)
            assert caught.value.call == "aclrtMemcpyBatch"
            assert caught.value.arguments == {
                "copies": 3,
                "failed": 1,
                "dst": nowhere.dst,
                "dst_max_bytes": 64,
                "src": pinned.addr,
                "count_bytes": 8,
            }

    def test_a_batch_that_is_refused_as_a_whole_names_none(self, device: Device) -> None:
        with device.malloc(64) as block, device.malloc_host(64) as pinned:
            with pytest.raises(AclError) as caught:
                device.memcpy_batch([BatchCopy(block.addr, 4, pinned.addr, 8)], TO_DEVICE)
            assert caught.value.code == 100000
            assert caught.value.arguments == {"copies": 1}


class TestWords:
    def test_fill(self, device: Device) -> None:
        with device.malloc(64) as block:
            block.copy_from(bytes(64))
            device.memset_d32(block.addr + 8, 56, 0xDEADBEEF, 3)
            assert block.read(24) == bytes(8) + b"\xef\xbe\xad\xde" * 3 + bytes(4)

    @pytest.mark.parametrize(("shift", "room", "count"), [(1, 63, 1), (0, 8, 3)])
    def test_a_wrong_place_or_size_is_refused(self, device: Device, shift: int, room: int, count: int) -> None:
        with device.malloc(64) as block, pytest.raises(AclError) as caught:
            device.memset_d32(block.addr + shift, room, 1, count)
        assert (caught.value.code, caught.value.call) == (100000, "aclrtMemsetD32")
        assert caught.value.arguments["count"] == count


class TestManagedMemory:
    def test_host_and_device_reach_it(self, device: Device) -> None:
        if not device.runtime.supports("aclrtMemAllocManaged"):
            pytest.skip("the library has no managed memory")
        with device.malloc_managed(1 << 20) as memory:
            memory.copy_from(b"managed")
            assert memory.read(7) == b"managed"
            assert memory.size_bytes == 1 << 20


class TestPools:
    def test_blocks_in_stream_order(self, device: Device) -> None:
        if not device.runtime.supports("aclrtMemPoolCreate"):
            pytest.skip("the library has no pools")
        with device.create_memory_pool() as pool, device.create_stream() as stream:
            pool.set(MemPoolAttr.ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, 1 << 20)
            assert pool.get(MemPoolAttr.ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD) == 1 << 20
            with pool.malloc_async(4096, stream) as block:
                stream.memset_async(block.addr, 4096, 3, 4096)
                stream.synchronize()
                assert block.read(4) == b"\x03" * 4
            stream.synchronize()
            pool.trim_to(0)
            with pool.malloc_async(4096, device.default_stream) as block:
                block.copy_from(b"default")
                assert block.read(7) == b"default"
            block = pool.malloc_async(4096, stream)
            stream.close()
            block.close()
            device.synchronize()


def test_what_a_library_lacks_is_told_by_name(tmp_path: Path) -> None:
    device = open_runtime(str(fake_library(tmp_path / "libascendcl.so"))).device()
    uses = {
        "aclrtCreateStream": device.create_stream,
        "aclrtCreateEvent": device.create_event,
        "aclrtCreateNotify": device.create_notify,
        "aclrtCreateContext": device.create_context,
        "aclrtReserveMemAddress": lambda: device.reserve(1),
        "aclrtMallocPhysical": lambda: device.malloc_physical(2 << 20),
        "aclrtMemAllocManaged": lambda: device.malloc_managed(1),
        "aclrtMemPoolCreate": device.create_memory_pool,
        "aclrtHostRegisterV2": lambda: device.host_register(bytearray(8)),
        "aclrtIpcMemImportByKey": lambda: device.import_block("key", 1),
        "aclrtMemImportFromShareableHandle": lambda: device.import_handle(1, 2 << 20),
        "aclrtNotifyImportByKey": lambda: device.import_notify("key"),
        "aclrtIpcOpenEventHandle": lambda: device.import_event(bytes(64)),
        "aclrtMemcpyAsync": lambda: device.default_stream.memcpy_async(0, 0, 0, 0),
        "aclrtSynchronizeStream": device.default_stream.synchronize,
        "aclrtSynchronizeDevice": device.synchronize,
        "aclrtMemcpy2d": lambda: device.memcpy_2d(0, 0, 0, 0, 0, 0, 1),
        "aclrtLaunchHostFunc": lambda: device.default_stream.launch_host_func(print),
        "aclrtDeviceGetBareTgid": device.bare_tgid,
    }
    for function, use in uses.items():
        assert not device.runtime.supports(function)
        with pytest.raises(StateError, match=f"has no {function}: ask supports"):
            use()
