"""Faults the host runtime makes on request, seen from Python."""

import pytest

from acl_shim.errors import AclError, OutOfMemoryError
from acl_shim.host import HostControls
from tests.helpers.runtime import host_runtime

MIB = 1 << 20


class TestFailAbove:
    def test_only_larger_allocations_fail(self, host: HostControls) -> None:
        device = host_runtime().device()
        host.fail_above(MIB, 207001)
        device.malloc(MIB).close()
        device.malloc_host(MIB).close()
        with pytest.raises(OutOfMemoryError) as caught:
            device.malloc(MIB + 1)
        assert caught.value.requested_bytes == MIB + 1
        with pytest.raises(OutOfMemoryError):
            device.malloc_host(2 * MIB)
        host.clear_failures()
        device.malloc(64 * MIB).close()

    def test_another_code_is_no_lack_of_memory(self, host: HostControls) -> None:
        host.fail_above(0, 207005)
        with pytest.raises(AclError) as caught:
            host_runtime().device().malloc(1)
        assert caught.value.code == 207005
        assert not isinstance(caught.value, MemoryError)


class TestShortCopy:
    def test_the_nth_copy_stops_and_says_so(self, host: HostControls) -> None:
        with host_runtime().device().malloc(8) as block:
            block.copy_from(b"........")
            host.short_copy(2, 3, 507899)
            block.copy_from(b"abcdefgh")
            with pytest.raises(AclError, match="stopped after 3 of 8 bytes"):
                block.copy_from(b"12345678")
            assert block.read() == b"123defgh"

    def test_a_silent_one_shows_in_the_bytes_only(self, host: HostControls) -> None:
        with host_runtime().device().malloc(4) as block:
            block.copy_from(b"old!")
            host.short_copy(1, 1)
            block.copy_from(b"new?")
            assert block.read() == b"nld!"
            block.copy_from(b"new?")
            assert block.read() == b"new?"

    def test_it_can_be_taken_back(self, host: HostControls) -> None:
        with host_runtime().device().malloc(4) as block:
            host.short_copy(1, 0, 507899)
            host.clear_failures()
            block.copy_from(b"all.")
            assert block.read() == b"all."


class TestDelay:
    def test_it_can_be_taken_back(self, host: HostControls) -> None:
        devices = host_runtime().device_count()
        host.delay("aclrtGetDeviceCount", 3600.0)
        host.delay("aclrtGetDeviceCount", 0.0)
        assert host_runtime().device_count() == devices
        host.delay("aclrtGetDeviceCount", 3600.0)
        host.clear_failures()
        assert host_runtime().device_count() == devices

    def test_an_unknown_function_is_refused(self, host: HostControls) -> None:
        with pytest.raises(AclError, match="aclrtNobodyHasThis is no exported function"):
            host.delay("aclrtNobodyHasThis", 1.0)
