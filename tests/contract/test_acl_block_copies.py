"""Blocks of a file go to a device, many in one call."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from acl_shim import Device
from acl_shim.block_copies import StopFlag
from acl_shim.errors import AclError, StateError
from acl_shim.host import HostControls

DATA = bytes(range(256)) * 40


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "data"
    path.write_bytes(DATA)
    number = os.open(path, os.O_RDONLY)
    yield number
    os.close(number)


def rows(*values: tuple[int, int, int]) -> NDArray[np.uint64]:
    return np.array(values, np.uint64).reshape(-1, 3)


def test_pieces_of_blocks_arrive_and_the_rest_does_not(device: Device, file: int) -> None:
    with device.malloc(2000) as buffer, device.malloc_host(500) as staging:
        device.memset(buffer.addr, 2000, 0xEE, 2000)
        blocks = rows((77, 500, 2), (3, 1, 1), (1000, 300, 0), (len(DATA) - 400, 400, 1))
        copies = rows(
            (buffer.addr + 10, 0, 100), (buffer.addr, 495, 5), (buffer.addr + 1999, 0, 1), (buffer.addr + 500, 100, 300)
        )
        moved = device.memcpy_blocks(file, blocks, copies, staging, StopFlag())
        wanted = bytearray(b"\xee" * 2000)
        wanted[10:110], wanted[:5], wanted[1999:] = DATA[77:177], DATA[572:577], DATA[3:4]
        wanted[500:800] = DATA[-300:]
        assert buffer.read() == wanted
    assert (moved.blocks, moved.os_error) == (4, 0)
    assert moved.read_s > 0
    assert moved.copy_s > 0


def test_nothing_to_move(device: Device, file: int) -> None:
    with device.malloc_host(1) as staging:
        assert device.memcpy_blocks(file, rows(), rows(), staging, StopFlag()).blocks == 0


@pytest.mark.parametrize(("offset", "got"), [(len(DATA) - 40, 40), (len(DATA) + 5, 0)])
def test_a_file_that_ends_early_says_how_far_it_came(device: Device, file: int, offset: int, got: int) -> None:
    with device.malloc(200) as buffer, device.malloc_host(100) as staging:
        blocks, copies = rows((0, 100, 1), (offset, 100, 1)), rows((buffer.addr, 0, 100), (buffer.addr + 100, 0, 100))
        moved = device.memcpy_blocks(file, blocks, copies, staging, StopFlag())
        assert (moved.blocks, moved.got, moved.os_error) == (1, got, 0)
        assert buffer.read(100) == DATA[:100]


def test_a_file_that_cannot_be_read(device: Device, tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    with device.malloc(64) as buffer, device.malloc_host(64) as staging:
        arguments = rows((0, 64, 1)), rows((buffer.addr, 0, 64)), staging, StopFlag()
        moved = device.memcpy_blocks(folder, *arguments)
        assert (moved.blocks, moved.got, os.strerror(moved.os_error)) == (0, 0, "Is a directory")
        os.close(folder)
        assert os.strerror(device.memcpy_blocks(folder, *arguments).os_error) == "Bad file descriptor"


def test_a_flag_stops_the_call(device: Device, file: int) -> None:
    stop = StopFlag()
    stop.set()
    with device.malloc(64) as buffer, device.malloc_host(64) as staging:
        device.memset(buffer.addr, 64, 0, 64)
        moved = device.memcpy_blocks(file, rows((0, 64, 1)), rows((buffer.addr, 0, 64)), staging, stop)
        assert (moved.blocks, moved.os_error) == (0, 0)
        assert buffer.read() == bytes(64)


@pytest.mark.parametrize(
    ("blocks", "copies", "message"),
    [
        (rows((0, 65, 1)), rows((1, 0, 65)), "does not fit host memory of 64 B"),
        (rows((0, 64, 1)), rows((1, 60, 5)), "ends behind host memory of 64 B"),
        (rows((0, 64, 1)), rows((1, 2**64 - 1, 2)), "ends behind host memory of 64 B"),
        (rows((0, 64, 1)), rows((1, 2**63, 2**63)), "ends behind host memory of 64 B"),
        (rows((0, 64, 1)), rows((1, 1, 2**64 - 1)), "ends behind host memory of 64 B"),
        (rows((0, 64, 2)), rows((1, 0, 64)), "have 2 copies, but 1"),
        (rows((0, 64, 2**64 - 1), (0, 64, 2)), rows((1, 0, 64)), f"have {2**64 + 1} copies, but 1"),
        (rows((0, 64, 2**63), (0, 64, 2**63), (0, 64, 1)), rows((1, 0, 64)), f"have {2**64 + 1} copies, but 1"),
        (rows((0, 64, 1)).astype(np.int64), rows((1, 0, 64)), r"blocks are int64 of shape \(1, 3\)"),
        (rows((0, 64, 1)), rows((1, 0, 64)).astype(np.uint32), r"copies are uint32 of shape \(1, 3\)"),
        (rows((0, 64, 1))[:, :2], rows((1, 0, 64)), r"shape \(1, 2\): give uint64, 3 in each row"),
        (rows((0, 64, 1))[0], rows((1, 0, 64)), r"shape \(3,\): give uint64"),
        (np.asfortranarray(rows((0, 64, 1), (0, 64, 0))), rows((1, 0, 64)), "C-contiguous"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    device: Device, file: int, blocks: NDArray[np.uint64], copies: NDArray[np.uint64], message: str
) -> None:
    with device.malloc_host(64) as staging, pytest.raises(ValueError, match=message):
        device.memcpy_blocks(file, blocks, copies, staging, StopFlag())


@pytest.mark.parametrize(
    "copies",
    [rows((1, 0, 64)).astype(np.int64), rows((1, 0, 64))[:, :2], np.asfortranarray(rows((1, 0, 1), (2, 0, 1)))],
)
def test_an_array_of_copies_is_as_it_is_said(device: Device, copies: NDArray[np.uint64]) -> None:
    with device.malloc_host(64) as pinned, pytest.raises(ValueError, match=r"copies are .* give uint64, 3 in each row"):
        device.memcpy_block(copies, pinned.addr)


def test_places_are_looked_at(device: Device) -> None:
    host = np.zeros(100, np.uint8)
    with device.malloc(10 << 20) as buffer:
        for size in (0, 1, 1 << 20, 10 << 20):
            device.check_destinations(np.array([buffer.addr], np.uint64), np.array([size], np.uint64))
        column = np.uint64(buffer.addr) + np.arange(0, 10 << 20, 5000, dtype=np.uint64)
        device.check_destinations(column, np.full(len(column), 5, np.uint64))
        device.check_destinations(column[:0], column[:0])
        for at in (0, 700, len(column) - 1):
            wrong, sizes = column.copy(), np.full(len(column), 5, np.uint64)
            wrong[at], sizes[at] = host.ctypes.data, 77
            with pytest.raises(
                ValueError, match=f"^copy of 77 B from the host to device 0: the destination {wrong[at]:#x} is"
            ):
                device.check_destinations(wrong, sizes)
            sizes[at] = 0
            device.check_destinations(wrong, sizes)


def test_a_refused_copy_is_named(device: Device, file: int, host: HostControls) -> None:
    if device.runtime.backend != "host":
        pytest.skip("failures can be planned on the host runtime only")
    with device.malloc(1000) as buffer, device.malloc_host(100) as staging:
        blocks = rows((0, 100, 2), (100, 100, 2))
        copies = rows(*((buffer.addr + at, at % 100, 50) for at in range(0, 200, 50)))
        host.fail_nth("aclrtMemcpy", 4, 507899)
        with pytest.raises(AclError) as caught:
            device.memcpy_blocks(file, blocks, copies, staging, StopFlag())
        arguments = caught.value.arguments
        assert (caught.value.code, caught.value.call) == (507899, "aclrtMemcpy")
        assert (arguments["failed"], arguments["dst"], arguments["count_bytes"]) == (3, buffer.addr + 150, 50)
        assert buffer.read(150) == DATA[:150]


@pytest.mark.parametrize("is_queued", [False, True])
def test_pieces_of_host_memory(device: Device, host: HostControls, is_queued: bool) -> None:
    with device.malloc(64) as buffer, device.malloc_host(64) as pinned, device.create_stream() as stream:
        pinned.view[:] = DATA[:64]
        copies = rows((buffer.addr, 32, 32), (buffer.addr + 32, 0, 32))
        device.memcpy_block(copies, pinned.addr, stream if is_queued else None)
        stream.synchronize()
        assert buffer.read() == DATA[32:64] + DATA[:32]
        if device.runtime.backend == "host":
            host.fail_nth("aclrtMemcpyAsync" if is_queued else "aclrtMemcpy", 2, 507899)
            with pytest.raises(AclError, match="507899") as caught:
                device.memcpy_block(copies, pinned.addr, stream if is_queued else None)
            assert (caught.value.arguments["failed"], caught.value.arguments["copies"]) == (1, 2)
            stream.synchronize()
    with pytest.raises(StateError, match="closed"):
        device.memcpy_block(copies, 1, stream)
