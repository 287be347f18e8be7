"""Export by DLPack, by the buffer protocol and by numpy's interface."""

import ctypes
import gc
import sys
from typing import Any

import numpy as np
import pytest

from acl_shim import Device
from acl_shim.dlpack import CPU, EXTERNAL
from acl_shim.errors import StateError

OLD, NEW = b"dltensor", b"dltensor_versioned"


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


def pointer_of(capsule: Any, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, name))


def consume(capsule: Any, name: bytes) -> int:
    """Take the tensor out of a capsule as a consumer does; the caller ends it with the deleter."""
    pointer = pointer_of(capsule, name)
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
    assert rename(capsule, b"used_" + name) == 0
    return pointer


class TestDeviceBuffer:
    def test_it_lies_on_an_external_device(self, device: Device) -> None:
        with device.malloc(100) as block:
            assert block.__dlpack_device__() == (EXTERNAL, device.id) == (12, device.id)
            tensor = Managed.from_address(pointer_of(capsule := block.__dlpack__(), OLD)).tensor
            assert (tensor.data, tensor.byte_offset, tensor.dimensions) == (block.addr, 0, 1)
            assert (tensor.device_type, tensor.device_id, tensor.shape[0]) == (12, device.id, 100)
            assert (tensor.code, tensor.bits, tensor.lanes) == (1, 8, 1)
            assert not tensor.strides
            del capsule

    def test_a_newer_consumer_gets_the_versioned_form(self, device: Device) -> None:
        with device.malloc(100) as block:
            capsule = block.__dlpack__(max_version=(1, 1))
            made = Versioned.from_address(pointer_of(capsule, NEW))
            assert (made.major, made.minor, made.flags) == (1, 0, 0)
            assert (made.tensor.data, made.tensor.shape[0]) == (block.addr, 100)
            del capsule

    @pytest.mark.parametrize("max_version", [None, (0, 8)])
    def test_an_older_consumer_gets_the_old_form(self, device: Device, max_version: Any) -> None:
        with device.malloc(100) as block:
            capsule = block.__dlpack__(max_version=max_version)
            assert pointer_of(capsule, OLD)
            del capsule

    @pytest.mark.parametrize("max_version", [None, (1, 0)])
    def test_the_capsule_keeps_the_block(self, device: Device, max_version: Any) -> None:
        block = device.malloc(100)
        addr = block.addr
        block.copy_from(b"k" * 100)
        capsule = block.__dlpack__(max_version=max_version)
        del block
        gc.collect()
        target = bytearray(100)
        device.memcpy_out(target, addr)
        assert target == b"k" * 100
        assert device._enter().owned
        del capsule
        gc.collect()
        assert not device._enter().owned

    @pytest.mark.parametrize(("name", "layout", "max_version"), [(OLD, Managed, None), (NEW, Versioned, (1, 0))])
    def test_a_consumer_keeps_the_block(self, device: Device, name: bytes, layout: Any, max_version: Any) -> None:
        block = device.malloc(100)
        capsule = block.__dlpack__(max_version=max_version)
        made = layout.from_address(pointer := consume(capsule, name))
        del capsule, block
        gc.collect()
        assert device._enter().owned
        made.deleter(pointer)
        gc.collect()
        assert not device._enter().owned

    def test_a_block_in_use_is_not_closed(self, device: Device) -> None:
        block = device.malloc(100)
        first, second = block.__dlpack__(), block.__dlpack__(max_version=(1, 0))
        with pytest.raises(StateError, match="is in use by DLPack: drop what was made from it first"):
            block.close()
        del first
        with pytest.raises(StateError):
            block.close()
        block.copy_from(b"open")
        del second
        block.close()
        assert block.closed

    def test_a_closed_block_is_not_exported(self, device: Device) -> None:
        block = device.malloc(100)
        block.close()
        with pytest.raises(StateError, match="DeviceBuffer"):
            block.__dlpack__()

    @pytest.mark.parametrize("wish", [{"copy": True}, {"dl_device": (1, 0)}])
    def test_a_copy_and_another_device_are_refused(self, device: Device, wish: dict[str, Any]) -> None:
        with device.malloc(100) as block, pytest.raises(BufferError, match="is exported as it is"):
            block.__dlpack__(**wish)

    def test_the_own_device_and_no_copy_are_fine(self, device: Device) -> None:
        with device.malloc(100) as block:
            capsule = block.__dlpack__(dl_device=(12, device.id), copy=False, stream=None)
            del capsule

    def test_numpy_does_not_take_device_memory(self, device: Device) -> None:
        with device.malloc(100) as block, pytest.raises((BufferError, RuntimeError)):
            np.from_dlpack(block)

    def test_a_copy_does_not_take_it_for_host_memory(self, device: Device) -> None:
        with (
            device.malloc(100) as block,
            device.malloc(100) as other,
            pytest.raises(TypeError, match="DLPack device type 12, not in host memory"),
        ):
            other.copy_from(block)  # type: ignore[arg-type]


class TestPinnedBuffer:
    def test_numpy_takes_it_without_a_copy(self, device: Device) -> None:
        with device.malloc_host(100) as pinned:
            values = np.asarray(pinned)
            assert (values.shape, values.dtype) == ((100,), np.uint8)
            assert values.__array_interface__["data"] == (pinned.addr, False)
            values[:] = 7
            assert bytes(pinned.view[:2]) == b"\x07\x07"
            del values

    def test_dlpack_takes_it_without_a_copy(self, device: Device) -> None:
        with device.malloc_host(100) as pinned:
            assert pinned.__dlpack_device__() == (CPU, 0) == (1, 0)
            pinned.view[:] = b"p" * 100
            values = np.from_dlpack(pinned)
            assert values.__array_interface__["data"][0] == pinned.addr
            assert values.tobytes() == b"p" * 100
            del values

    @pytest.mark.parametrize("take", [np.asarray, np.from_dlpack], ids=["interface", "dlpack"])
    def test_an_array_outlives_the_owner(self, device: Device, take: Any) -> None:
        pinned = device.malloc_host(1 << 16)
        pinned.view[:] = b"x" * (1 << 16)
        values = take(pinned)
        pinned.close()
        del pinned
        gc.collect()
        assert values.tobytes() == b"x" * (1 << 16)
        assert device._enter().owned
        del values
        gc.collect()
        assert not device._enter().owned

    def test_copies_take_it_directly(self, device: Device) -> None:
        with device.malloc_host(64) as source, device.malloc_host(64) as target, device.malloc(64) as block:
            source.view[:] = b"s" * 64
            block.copy_from(source)
            block.copy_to(target)
            assert bytes(target.view) == b"s" * 64
            source.view[:] = b"t" * 64
            block.copy_from_async(source, device.default_stream)
            block.copy_to_async(target, device.default_stream)
            device.synchronize()
            assert bytes(target.view) == b"t" * 64

    @pytest.mark.skipif(sys.version_info < (3, 12), reason="classes have buffers from Python 3.12 on")
    def test_it_is_a_buffer(self, device: Device) -> None:
        with device.malloc_host(64) as pinned:
            view = memoryview(pinned)  # type: ignore[arg-type]
            view[:4] = b"view"
            assert bytes(pinned.view[:4]) == b"view"
            view.release()

    def test_a_closed_one_is_not_exported(self, device: Device) -> None:
        pinned = device.malloc_host(64)
        pinned.close()
        for use in (lambda: pinned.__array_interface__, pinned.__dlpack__, lambda: pinned.__buffer__(0)):
            with pytest.raises(StateError, match="PinnedBuffer of 64 B is closed"):
                use()

    def test_a_copy_is_refused(self, device: Device) -> None:
        with device.malloc_host(64) as pinned, pytest.raises(BufferError):
            pinned.__dlpack__(copy=True)
