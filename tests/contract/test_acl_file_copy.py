"""Bytes of a file go to a device in one call."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from acl_shim import Device
from acl_shim.errors import AclError
from acl_shim.host import HostControls

DATA = bytes(range(256)) * 40


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "data"
    path.write_bytes(DATA)
    number = os.open(path, os.O_RDONLY)
    yield number
    os.close(number)


@pytest.mark.parametrize("block_bytes", [1, 100, 4096, 1 << 20])
@pytest.mark.parametrize(("offset", "size"), [(0, 500), (77, 1000), (len(DATA) - 3, 3), (5, 0)])
def test_bytes_arrive(device: Device, file: int, block_bytes: int, offset: int, size: int) -> None:
    with device.malloc(2000) as buffer, device.malloc_host(block_bytes) as staging:
        device.memset(buffer.addr, 2000, 0xEE, 2000)
        assert device.memcpy_from_file(buffer.addr + 8, file, offset, size, staging) == size
        assert buffer.read() == b"\xee" * 8 + DATA[offset : offset + size] + b"\xee" * (2000 - 8 - size)


def test_a_file_that_ends_early_says_how_much_came(device: Device, file: int) -> None:
    with device.malloc(2000) as buffer, device.malloc_host(64) as staging:
        assert device.memcpy_from_file(buffer.addr, file, len(DATA) - 100, 2000, staging) == 100
        assert device.memcpy_from_file(buffer.addr, file, len(DATA) + 5, 10, staging) == 0
        assert buffer.read(100) == DATA[-100:]


def test_a_file_that_cannot_be_read(device: Device, tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        with device.malloc(64) as buffer, device.malloc_host(64) as staging, pytest.raises(IsADirectoryError):
            device.memcpy_from_file(buffer.addr, folder, 0, 64, staging)
    finally:
        os.close(folder)
    with device.malloc(64) as buffer, device.malloc_host(64) as staging, pytest.raises(OSError, match="descriptor"):
        device.memcpy_from_file(buffer.addr, folder, 0, 64, staging)


@pytest.mark.parametrize(("offset", "size"), [(-1, 4), (0, -4)])
def test_negative_numbers_are_refused(device: Device, file: int, offset: int, size: int) -> None:
    with device.malloc(64) as buffer, device.malloc_host(64) as staging, pytest.raises(ValueError, match="from 0"):
        device.memcpy_from_file(buffer.addr, file, offset, size, staging)


def test_a_refused_copy_names_the_block(device: Device, file: int, host: HostControls) -> None:
    if device.runtime.backend != "host":
        pytest.skip("failures can be planned on the host runtime only")
    with device.malloc(1000) as buffer, device.malloc_host(100) as staging:
        host.fail_nth("aclrtMemcpy", 3, 507899)
        with pytest.raises(AclError) as caught:
            device.memcpy_from_file(buffer.addr, file, 0, 950, staging)
        arguments = caught.value.arguments
        assert (caught.value.code, arguments["dst"]) == (507899, buffer.addr + 200)
        assert arguments["count_bytes"] == 100
        assert buffer.read(200) == DATA[:200]
