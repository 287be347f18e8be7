"""Uploads of very many regions, as objects and as arrays, and uploads that are cancelled from outside."""

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import xxhash

from acl_shim import Device
from acl_shim.host import HostControls
from gevar.errors import LoadError, StateError
from gevar.weights import FileRegion, PreadReader, Upload, UploadArrays, UploadRequest, upload

COUNT, REGION = 2000, 512
SIZE = COUNT * REGION


@pytest.fixture
def data_file(tmp_path: Path) -> tuple[Path, bytes]:
    data = np.random.default_rng(3).integers(0, 256, SIZE, np.uint8).tobytes()
    (tmp_path / "w.bin").write_bytes(data)
    return tmp_path / "w.bin", data


def regions(path: Path, addr: int, order: Sequence[int]) -> UploadArrays:
    """Region n of the file goes to place order[n]."""
    column = np.arange(COUNT)
    addrs = np.uint64(addr) + np.array(order, np.uint64) * np.uint64(REGION)
    return UploadArrays((path,), 0 * column, column * REGION, 0 * column + REGION, addrs)


def in_order(data: bytes, order: Sequence[int]) -> bytes:
    found = np.empty((COUNT, REGION), np.uint8)
    found[np.array(order)] = np.frombuffer(data, np.uint8).reshape(COUNT, REGION)
    return found.tobytes()


@pytest.mark.parametrize("buffers", [1, 3])
@pytest.mark.parametrize("as_objects", [True, False])
@pytest.mark.parametrize("is_scattered", [True, False])
def test_many_regions_arrive(
    device: Device, data_file: tuple[Path, bytes], buffers: int, as_objects: bool, is_scattered: bool
) -> None:
    path, data = data_file
    order = np.random.default_rng(4).permutation(COUNT).tolist() if is_scattered else list(range(COUNT))
    with device.malloc(SIZE) as buffer:
        arrays = regions(path, buffer.addr, order)
        requests = [arrays[number] for number in range(COUNT)] if as_objects else arrays
        report = upload(device, requests, workers=2, block_bytes=100_000, buffers=buffers)
        assert buffer.read() == in_order(data, order)
    assert (report.size_bytes, report.read_bytes, report.reads) == (SIZE, SIZE, -(-SIZE // 100_000))


def test_neighbours_on_both_sides_are_one_copy(
    device: Device, data_file: tuple[Path, bytes], host: HostControls
) -> None:
    if device.runtime.backend != "host":
        pytest.skip("calls are counted by the host runtime only")
    path, _ = data_file
    with device.malloc(SIZE) as buffer:
        before = host.calls("aclrtMemcpy")
        upload(device, regions(path, buffer.addr, range(COUNT)), block_bytes=SIZE, buffers=1)
        assert host.calls("aclrtMemcpy") == before + 1


def test_arrays_are_given_as_requests_when_they_arrive(device: Device, data_file: tuple[Path, bytes]) -> None:
    path, data = data_file
    order = list(reversed(range(COUNT)))
    with device.malloc(SIZE) as buffer:
        seen = set()
        with Upload(device, regions(path, buffer.addr, order), workers=2, block_bytes=10_000) as run:
            for request in run:
                assert isinstance(request.source, FileRegion)
                at = request.source.offset
                assert buffer.read(REGION, offset_bytes=request.dev_addr - buffer.addr) == data[at : at + REGION]
                seen.add(at)
    assert len(seen) == COUNT


@pytest.mark.parametrize("block_bytes", [1000, 1 << 20])
def test_digests_of_small_regions(device: Device, data_file: tuple[Path, bytes], block_bytes: int) -> None:
    path, data = data_file
    digests: list[bytes | None] = [xxhash.xxh3_128(data[at : at + REGION]).digest() for at in range(0, SIZE, REGION)]
    digests[7] = None
    with device.malloc(SIZE) as buffer:
        plain = regions(path, buffer.addr, range(COUNT))

        def checked() -> UploadArrays:
            return UploadArrays(
                plain.sources, plain.source, plain.offset, plain.size_bytes, plain.dev_addr, digests=digests
            )

        assert upload(device, checked(), workers=2, block_bytes=block_bytes).checked == COUNT - 1
        digests[1234] = bytes(16)
        with pytest.raises(LoadError, match="digest") as caught:
            upload(device, checked(), workers=2, block_bytes=block_bytes)
    assert (caught.value.offset, caught.value.wanted, caught.value.got) == (1234 * REGION, REGION, REGION)


@pytest.mark.parametrize("buffers", [1, 3])
def test_an_event_cancels(device: Device, data_file: tuple[Path, bytes], buffers: int) -> None:
    path, _ = data_file
    cancel = threading.Event()

    class Cancelling(PreadReader):
        descriptor = None

        def read_into(self, offset: int, view: memoryview) -> int:
            cancel.set()
            return super().read_into(offset, view)

    with device.malloc(SIZE) as buffer, pytest.raises(StateError, match="cancelled after"):
        upload(
            device,
            regions(path, buffer.addr, range(COUNT)),
            workers=2,
            block_bytes=4096,
            buffers=buffers,
            cancel=cancel,
            open_file=Cancelling,
        )
    assert not [thread for thread in threading.enumerate() if thread.name == "gevar-upload"]


def test_an_event_that_is_set_before_moves_nothing(
    device: Device, data_file: tuple[Path, bytes], host: HostControls
) -> None:
    cancel = threading.Event()
    cancel.set()
    with device.malloc(SIZE) as buffer:
        before = host.calls("aclrtMemcpy") if device.runtime.backend == "host" else 0
        with pytest.raises(StateError, match="cancelled after 0 B of 1024000 B"):
            upload(device, regions(data_file[0], buffer.addr, range(COUNT)), cancel=cancel)
        if device.runtime.backend == "host":
            assert host.calls("aclrtMemcpy") == before


def test_an_event_that_is_never_set_changes_nothing(device: Device, data_file: tuple[Path, bytes]) -> None:
    path, data = data_file
    with device.malloc(SIZE) as buffer:
        requests = [UploadRequest(FileRegion(path, 0, SIZE), buffer.addr)]
        assert upload(device, requests, cancel=threading.Event()).size_bytes == SIZE
        assert buffer.read() == data
