"""Device memory: blocks, copies, fills, figures, refusals."""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from acl_shim import Device, MemInfo
from acl_shim.codes import MemAttr, MemcpyKind, MemLocationType, MemMallocPolicy, MemTypeFlag
from acl_shim.errors import AclError, OutOfMemoryError, StateError
from acl_shim.table import new_cell

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SIZES = [1, 31, 32, 33, 4095, 4096, 4097, MIB - 64, MIB, MIB + 1, 2 * MIB, 5 * MIB + 7]


def pattern(size_bytes: int, seed: int = 0) -> bytes:
    return np.random.default_rng(seed).bytes(size_bytes)


class TestMalloc:
    @pytest.mark.parametrize("size_bytes", SIZES)
    def test_a_block_holds_what_was_copied_in(self, device: Device, size_bytes: int) -> None:
        content = pattern(size_bytes)
        with device.malloc(size_bytes) as block:
            assert block.size_bytes == size_bytes
            assert block.device is device
            assert block.addr % 64 == 0
            block.copy_from(content)
            assert block.read() == content

    @pytest.mark.parametrize(
        "policy",
        [
            MemMallocPolicy.HUGE_FIRST,
            MemMallocPolicy.HUGE_ONLY,
            MemMallocPolicy.NORMAL_ONLY,
            MemMallocPolicy.HUGE_FIRST | MemTypeFlag.ACL_MEM_TYPE_HIGH_BAND_WIDTH,
        ],
    )
    def test_every_page_class_works(self, device: Device, policy: int) -> None:
        content = pattern(3 * MIB)
        with device.malloc(3 * MIB, policy) as block:
            block.copy_from(content)
            assert block.read() == content

    def test_a_module_may_be_named(self, device: Device) -> None:
        with device.malloc(4096, module_id=33) as block:
            block.copy_from(pattern(4096))
            assert block.read() == pattern(4096)

    def test_blocks_do_not_overlap(self, device: Device) -> None:
        blocks = [device.malloc(size) for size in SIZES for _ in range(3)]
        ranges = sorted((block.addr, block.addr + block.size_bytes) for block in blocks)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ranges))
        for number, block in enumerate(blocks):
            device.memset(block.addr, block.size_bytes, number, block.size_bytes)
        for number, block in enumerate(blocks):
            assert block.read() == bytes([number]) * block.size_bytes
            block.close()

    @pytest.mark.parametrize("size_bytes", [0, -1, -(1 << 63)])
    def test_a_size_below_one_is_refused_before_the_call(self, device: Device, size_bytes: int) -> None:
        for allocate in (device.malloc, device.malloc_host):
            with pytest.raises(ValueError, match=f"size_bytes is {size_bytes}: give at least 1 byte"):
                allocate(size_bytes)

    @pytest.mark.parametrize("size_bytes", [1.0, "8", None])
    def test_a_size_that_is_no_integer_is_refused(self, device: Device, size_bytes: Any) -> None:
        for allocate in (device.malloc, device.malloc_host):
            with pytest.raises(TypeError):
                allocate(size_bytes)

    def test_a_numpy_integer_is_a_size(self, device: Device) -> None:
        with device.malloc(np.int64(64)) as block:  # type: ignore[arg-type]
            assert block.size_bytes == 64
            assert type(block.size_bytes) is int


class TestOutOfMemory:
    def test_it_carries_the_figures(self, device: Device) -> None:
        wanted = device.mem_info(MemAttr.ACL_HBM_MEM_HUGE).total_bytes + GIB
        with pytest.raises(OutOfMemoryError) as caught:
            device.malloc(wanted, MemMallocPolicy.HUGE_ONLY)
        error = caught.value
        assert (error.code, error.call) == (207001, "aclrtMalloc")
        assert error.arguments == {"size_bytes": wanted, "policy": MemMallocPolicy.HUGE_ONLY, "device_id": device.id}
        assert (error.requested_bytes, error.device_id, error.page_kind) == (wanted, device.id, "2 MiB pages")
        assert error.total_bytes == device.mem_info(MemAttr.ACL_HBM_MEM_HUGE).total_bytes
        assert error.free_bytes is not None
        assert 0 < error.free_bytes <= error.total_bytes
        assert error.text
        assert f"({wanted} B) in 2 MiB pages" in str(error)

    def test_it_is_a_memory_error_and_nothing_is_left(self, device: Device) -> None:
        before = device.mem_info()
        with pytest.raises(MemoryError):
            device.malloc(before.total_bytes + GIB, module_id=1)
        assert device.mem_info() == before


class TestFree:
    def test_close_gives_the_memory_back(self, device: Device) -> None:
        before = device.mem_info(MemAttr.ACL_HBM_MEM_HUGE)
        block = device.malloc(4 * MIB, MemMallocPolicy.HUGE_ONLY)
        assert device.mem_info(MemAttr.ACL_HBM_MEM_HUGE).free_bytes <= before.free_bytes - 4 * MIB
        block.close()
        if device.runtime.backend == "host":  # a card may keep freed pages for a while
            assert device.mem_info(MemAttr.ACL_HBM_MEM_HUGE) == before

    def test_a_closed_buffer_refuses_every_use(self, device: Device) -> None:
        block = device.malloc(64)
        block.close()
        uses = [lambda: block.addr, block.read, lambda: block.copy_from(b"x"), lambda: block.copy_to(bytearray(1))]
        for use in uses:
            with pytest.raises(StateError, match=r"DeviceBuffer of 64 B on device 0 is closed: make a new one"):
                use()

    def test_a_block_that_others_freed_is_an_error_of_close(self, device: Device) -> None:
        block = device.malloc(64)
        assert device.runtime.api.aclrtFree(block.addr) == 0
        with pytest.raises(AclError) as caught:
            block.close()
        assert (caught.value.code, caught.value.call) == (107000, "aclrtFree")
        assert not block.closed
        device.forget()
        block.close()
        device.runtime.api.aclrtResetDevice(device.id)


class TestCopyFrom:
    @pytest.mark.parametrize(
        "dtype", [np.int8, np.float16, np.float32, np.complex128, bool, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]
    )
    def test_arrays_of_every_type(self, device: Device, dtype: Any) -> None:
        values = np.arange(60).reshape(3, 4, 5).astype(dtype)
        again = np.zeros_like(values)
        with device.malloc(values.nbytes) as block:
            block.copy_from(values)
            block.copy_to(again)
        assert again.tobytes() == values.tobytes()

    @pytest.mark.parametrize(
        "source", [b"abcd", bytearray(b"abcd"), memoryview(b"..abcd")[2:], np.frombuffer(b"abcd", "u4")]
    )
    def test_every_buffer(self, device: Device, source: Any) -> None:
        with device.malloc(4) as block:
            block.copy_from(source)
            assert block.read() == b"abcd"

    def test_a_dlpack_object(self, device: Device) -> None:
        class Tensor:
            def __init__(self, values: np.ndarray[Any, Any]) -> None:
                self.values = values

            def __dlpack__(self, **options: Any) -> Any:
                return self.values.__dlpack__(**options)

            def __dlpack_device__(self) -> tuple[int, int]:
                return 1, 0

        source, target = Tensor(np.arange(8)), Tensor(np.zeros(8, np.int64))
        with device.malloc(64) as block:
            block.copy_from(source)
            assert block.read() == source.values.tobytes()
            if np.from_dlpack(target).flags.writeable:  # an old numpy only reads by DLPack
                block.copy_to(target)
                assert target.values.tolist() == list(range(8))

    def test_an_offset_touches_only_its_range(self, device: Device) -> None:
        with device.malloc(100) as block:
            block.copy_from(b"." * 100)
            block.copy_from(b"abc", offset_bytes=7)
            block.copy_from(b"z", offset_bytes=99)
            assert block.read() == b"." * 7 + b"abc" + b"." * 89 + b"z"

    def test_nothing_may_be_copied_anywhere_inside(self, device: Device) -> None:
        with device.malloc(10) as block:
            block.copy_from(b"0123456789")
            block.copy_from(b"", offset_bytes=10)
            block.copy_to(bytearray(), offset_bytes=10)
            assert block.read(0, offset_bytes=10) == b""
            assert block.read() == b"0123456789"

    @pytest.mark.parametrize(
        ("size_bytes", "offset_bytes"), [(11, 0), (10, 1), (1, 10), (1, -1), (0, 11), (1 << 16, 0)]
    )
    def test_what_does_not_fit_is_refused_with_the_numbers(
        self, device: Device, size_bytes: int, offset_bytes: int
    ) -> None:
        with device.malloc(10) as block:
            block.copy_from(b"0123456789")
            message = f"{size_bytes} B at offset {offset_bytes} B does not fit the buffer of 10 B on device 0"
            with pytest.raises(ValueError, match=f"source of {message}"):
                block.copy_from(bytes(size_bytes), offset_bytes=offset_bytes)
            with pytest.raises(ValueError, match=f"destination of {message}"):
                block.copy_to(bytearray(size_bytes), offset_bytes=offset_bytes)
            with pytest.raises(ValueError, match=f"read of {message}"):
                block.read(size_bytes, offset_bytes=offset_bytes)
            assert block.read() == b"0123456789"

    def test_memory_with_gaps_is_refused(self, device: Device) -> None:
        with device.malloc(64) as block, pytest.raises(ValueError, match="not C-contiguous"):
            block.copy_from(np.zeros((4, 4), np.int16).T)

    def test_what_has_no_buffer_is_refused(self, device: Device) -> None:
        with device.malloc(64) as block, pytest.raises(TypeError, match="list has no buffer"):
            block.copy_from([1, 2, 3])  # type: ignore[arg-type]


class TestCopyTo:
    def test_as_many_bytes_as_the_destination_holds(self, device: Device) -> None:
        target = bytearray(3)
        with device.malloc(10) as block:
            block.copy_from(b"0123456789")
            block.copy_to(target)
            assert target == b"012"
            block.copy_to(memoryview(target)[1:], offset_bytes=8)
            assert target == b"089"

    def test_read_only_memory_is_refused(self, device: Device) -> None:
        with device.malloc(10) as block, pytest.raises(ValueError, match="bytes is read-only"):
            block.copy_to(b"0123456789")

    def test_read_takes_a_range(self, device: Device) -> None:
        with device.malloc(10) as block:
            block.copy_from(b"0123456789")
            assert block.read(4) == b"0123"
            assert block.read(offset_bytes=7) == b"789"
            assert block.read(2, offset_bytes=5) == b"56"

    @pytest.mark.parametrize("size_bytes", [-1, 1.5])
    def test_a_wrong_size_of_a_read_is_refused(self, device: Device, size_bytes: Any) -> None:
        with device.malloc(10) as block, pytest.raises((ValueError, TypeError)):
            block.read(size_bytes)


class TestRawAddresses:
    def test_in_and_out(self, device: Device) -> None:
        with device.malloc(100) as block:
            device.memcpy_in(block.addr + 10, 90, b"hello")
            target = bytearray(5)
            device.memcpy_out(target, block.addr + 10)
            assert target == b"hello"

    def test_a_source_larger_than_its_room_is_refused_with_the_numbers(self, device: Device) -> None:
        with device.malloc(100) as block:
            with pytest.raises(ValueError, match=f"source of 5 B does not fit the 4 B at {block.addr:#x} on device 0"):
                device.memcpy_in(block.addr, 4, b"hello")
            device.memcpy_in(block.addr, 4, b"hell")

    def test_device_to_device(self, device: Device) -> None:
        content = pattern(3 * MIB)
        with device.malloc(3 * MIB) as source, device.malloc(3 * MIB, MemMallocPolicy.NORMAL_ONLY) as target:
            source.copy_from(content)
            device.memcpy(target.addr, 3 * MIB, source.addr, 3 * MIB, MemcpyKind.ACL_MEMCPY_DEVICE_TO_DEVICE)
            assert target.read() == content

    def test_the_direction_follows_from_the_addresses(self, device: Device) -> None:
        with device.malloc(64) as source, device.malloc(64) as target:
            source.copy_from(pattern(64))
            device.memcpy(target.addr, 64, source.addr, 64)
            assert target.read() == pattern(64)

    def test_memset_fills_its_range(self, device: Device) -> None:
        with device.malloc(64) as block:
            block.copy_from(b"." * 64)
            device.memset(block.addr + 8, 56, 0x1FF & ord("x"), 4)
            device.memset(block.addr + 20, 44, 0x100 + ord("y"), 2)
            assert block.read(24) == b"." * 8 + b"xxxx" + b"." * 8 + b"yy" + b".."

    @pytest.mark.parametrize("count_bytes", [65, 1 << 40])
    def test_memset_beyond_its_room_is_refused_by_the_runtime(self, device: Device, count_bytes: int) -> None:
        with device.malloc(64) as block, pytest.raises(AclError) as caught:
            device.memset(block.addr, 64, 0, count_bytes)
        assert (caught.value.code, caught.value.call) == (107000, "aclrtMemset")
        assert caught.value.arguments["count_bytes"] == count_bytes

    def test_a_copy_from_an_address_of_nobody_is_refused_by_the_runtime(self, device: Device) -> None:
        with device.malloc(4096) as block:
            nowhere = block.addr + (1 << 40)
        with pytest.raises(AclError) as caught:
            device.memcpy_out(bytearray(64), nowhere)
        assert caught.value.call == "aclrtMemcpy"
        assert caught.value.arguments["src"] == nowhere

    def test_host_memory_is_no_end_on_a_device(self, device: Device) -> None:
        """Such a copy would go from host to host in silence: the runtime takes the direction from the addresses."""
        host = np.frombuffer(pattern(64), np.uint8).copy()
        addr, target = host.ctypes.data, bytearray(64)
        source = f"copy of 64 B from device 0 to the host: the source {addr:#x} is host memory: give an address on the"
        with pytest.raises(ValueError, match=source):
            device.memcpy_out(target, addr)
        destination = f"copy of 8 B from the host to device 0: the destination {addr:#x} is host memory: give an"
        with pytest.raises(ValueError, match=destination):
            device.memcpy_in(addr, 64, bytes(8))
        with device.create_stream() as stream:
            with pytest.raises(ValueError, match=source):
                stream.memcpy_out_async(target, addr)
            with pytest.raises(ValueError, match=destination):
                stream.memcpy_in_async(addr, 64, bytes(8))
        assert (bytes(target), host.tobytes()) == (bytes(64), pattern(64))

    def test_nothing_to_copy_needs_no_addresses(self, device: Device) -> None:
        device.memcpy_in(0, 0, b"")
        device.memcpy_out(bytearray(), 0)
        device.memcpy(0, 0, 0, 0)
        device.memset(0, 0, 0, 0)


class TestMemInfo:
    def test_a_pool_has_figures(self, device: Device) -> None:
        info = device.mem_info()
        assert isinstance(info, MemInfo)
        assert 0 < info.free_bytes <= info.total_bytes

    def test_the_sum_is_that_of_huge_and_normal_pages(self, device: Device) -> None:
        huge, normal = device.mem_info(MemAttr.ACL_HBM_MEM_HUGE), device.mem_info(MemAttr.ACL_HBM_MEM_NORMAL)
        assert device.mem_info().total_bytes == huge.total_bytes + normal.total_bytes

    def test_an_unknown_pool_is_refused(self, device: Device) -> None:
        with pytest.raises(AclError) as caught:
            device.mem_info(18)
        assert caught.value.code == 107016
        assert caught.value.arguments == {"attr": 18, "device_id": device.id}


class TestPointerAttributes:
    def test_of_huge_and_normal_pages(self, device: Device) -> None:
        for policy, page in ((MemMallocPolicy.HUGE_ONLY, 2 * MIB), (MemMallocPolicy.NORMAL_ONLY, 4 * KIB)):
            with device.malloc(64, policy) as block:
                found = device.pointer_attributes(block.addr)
                assert found.location_type is MemLocationType.ACL_MEM_LOCATION_TYPE_DEVICE
                assert (found.device_id, found.page_size_bytes) == (device.id, page)

    def test_of_pinned_and_plain_host_memory(self, device: Device) -> None:
        with device.malloc_host(64) as pinned:
            found = device.pointer_attributes(pinned.addr)
            assert found.location_type is MemLocationType.ACL_MEM_LOCATION_TYPE_HOST
        plain = np.zeros(64)
        found = device.pointer_attributes(plain.__array_interface__["data"][0])
        assert found.location_type is MemLocationType.ACL_MEM_LOCATION_TYPE_UNREGISTERED

    def test_of_an_address_that_is_not_allocated(self, device: Device) -> None:
        with device.malloc(4096) as block:
            nowhere = block.addr + (1 << 40)
        with pytest.raises(AclError) as caught:
            device.pointer_attributes(nowhere)
        assert caught.value.arguments == {"addr": nowhere}


def test_other_ways_to_allocate_are_bound(device: Device) -> None:
    api, check = device.runtime.api, device.runtime.check
    device.mem_info()
    for call in ("aclrtMallocAlign32", "aclrtMallocCached"):
        cell = new_cell("uintptr_t *")
        check(getattr(api, call)(cell, 100, 0), call, {})
        device.memcpy_in(cell[0], 100, pattern(100))
        check(api.aclrtFree(cell[0]), "aclrtFree", {})
