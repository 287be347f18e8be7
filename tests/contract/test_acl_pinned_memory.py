"""Pinned host memory: views, arrays made from them, and when it goes back."""

import gc
from typing import Any

import numpy as np
import pytest

from acl_shim import Device
from acl_shim.errors import StateError


def open_pinned(device: Device) -> int:
    """Return how many blocks the device's lease knows."""
    return sum(kind == "PinnedMemory" for kind, _ in device._enter().owned)


class TestView:
    def test_it_is_writable_memory_at_the_address(self, device: Device) -> None:
        with device.malloc_host(4096) as pinned:
            assert (pinned.size_bytes, len(pinned.view), pinned.view.readonly) == (4096, 4096, False)
            assert (pinned.view.format, pinned.view.contiguous) == ("B", True)
            pinned.view[:5] = b"hello"
            assert bytes(pinned.view[:5]) == b"hello"
            values = np.frombuffer(pinned.view, np.uint8)
            assert values.__array_interface__["data"] == (pinned.addr, False)

    def test_it_is_the_same_view_each_time(self, device: Device) -> None:
        with device.malloc_host(64) as pinned:
            assert pinned.view is pinned.view

    def test_the_device_copies_from_and_to_it(self, device: Device) -> None:
        with device.malloc_host(1 << 20) as pinned, device.malloc(1 << 20) as block:
            pinned.view[:] = np.random.default_rng(1).bytes(1 << 20)
            block.copy_from(pinned.view)
            content = bytes(pinned.view)
            pinned.view[:] = bytes(1 << 20)
            block.copy_to(pinned.view)
            assert bytes(pinned.view) == content

    def test_a_part_of_it_is_copied(self, device: Device) -> None:
        with device.malloc_host(64) as pinned, device.malloc(64) as block:
            pinned.view[:8] = b"abcdefgh"
            device.memcpy_in(block.addr, 4, pinned.view[2:6])
            assert block.read(4) == b"cdef"

    @pytest.mark.parametrize("size_bytes", [1, 31, 4097, 3 << 20])
    def test_every_size_works(self, device: Device, size_bytes: int) -> None:
        with device.malloc_host(size_bytes) as pinned:
            assert len(pinned.view) == size_bytes
            pinned.view[-1] = 7
            assert pinned.view[size_bytes - 1] == 7


class TestClose:
    def test_it_gives_the_memory_back(self, device: Device) -> None:
        pinned = device.malloc_host(64)
        assert open_pinned(device) == 1
        pinned.close()
        pinned.close()
        assert pinned.closed
        assert open_pinned(device) == 0

    def test_with_gives_back_after_an_error(self, device: Device) -> None:
        with pytest.raises(ZeroDivisionError), device.malloc_host(64) as pinned:
            _ = 1 // 0
        assert pinned.closed
        assert open_pinned(device) == 0

    def test_the_finaliser_gives_back(self, device: Device) -> None:
        pinned = device.malloc_host(64)
        del pinned
        assert open_pinned(device) == 0

    def test_after_it_every_use_is_refused(self, device: Device) -> None:
        pinned = device.malloc_host(64)
        view = pinned.view
        pinned.close()
        for use in (lambda: pinned.view, lambda: pinned.addr):
            with pytest.raises(StateError, match="PinnedBuffer of 64 B is closed: make a new one"):
                use()
        with pytest.raises(ValueError, match="released memoryview"):
            view[0] = 1
        assert (pinned.size_bytes, pinned.device) == (64, device)


class TestMemoryInUse:
    """An array or a slice keeps the memory, whatever happens to the owner."""

    @staticmethod
    def slice_of(pinned: Any) -> Any:
        return pinned.view[8:16]

    @staticmethod
    def array_of(pinned: Any) -> Any:
        return np.frombuffer(pinned.view, np.uint8)[8:16]

    @pytest.mark.parametrize("make", [slice_of, array_of], ids=["slice", "array"])
    @pytest.mark.parametrize("closed", [True, False], ids=["closed", "dropped"])
    def test_it_lives_on(self, device: Device, make: Any, closed: bool) -> None:
        pinned = device.malloc_host(1 << 16)
        pinned.view[:] = bytes(range(256)) * 256
        part = make(pinned)
        if closed:
            pinned.close()
            assert pinned.closed
        del pinned
        gc.collect()
        assert open_pinned(device) == 1
        assert bytes(part) == bytes(range(8, 16))
        part[0] = 99
        assert part[0] == 99
        with pytest.raises(StateError, match="in use by 1 PinnedMemory"):
            device.reset()
        del part
        assert open_pinned(device) == 0

    def test_it_lives_on_when_the_owner_is_collected_in_a_cycle(self, device: Device) -> None:
        pinned = device.malloc_host(1 << 16)
        pinned.view[:] = bytes(range(256)) * 256
        part = np.frombuffer(pinned.view, np.uint8)[8:16]
        ring: list[Any] = [pinned, pinned.view]
        ring.append(ring)
        del pinned, ring
        gc.collect()
        assert open_pinned(device) == 1
        assert bytes(part) == bytes(range(8, 16))
        del part
        gc.collect()
        assert open_pinned(device) == 0

    def test_a_copy_needs_no_owner(self, device: Device) -> None:
        part = np.frombuffer(device.malloc_host(64).view, np.uint8)
        part[:] = 5
        with device.malloc(64) as block:
            block.copy_from(part)
            assert block.read() == b"\x05" * 64


def test_it_shows_what_it_is(device: Device) -> None:
    pinned = device.malloc_host(2048)
    assert repr(pinned) == f"<PinnedBuffer {pinned.addr:#x} of 2.00 KiB (2048 B) on device 0>"
    pinned.close()
    assert repr(pinned) == "<PinnedBuffer closed of 2.00 KiB (2048 B) on device 0>"
