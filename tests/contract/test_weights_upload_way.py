"""How an upload works: staging, arrival, cancelling, digests, several files and devices, reports."""

import errno
import fcntl
import os
import threading
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import xxhash

from acl_shim import Device
from acl_shim.host import HostControls
from gevar.errors import AclError, LoadError, StateError
from gevar.weights import FileRegion, PreadReader, Upload, UploadRequest, upload
from tests.helpers.runtime import host_runtime

KIB = 1 << 10
SIZE = 3 * 1024 * KIB + 77


@pytest.fixture
def data_file(tmp_path: Path) -> tuple[Path, bytes]:
    data = np.random.default_rng(3).integers(0, 256, SIZE, np.uint8).tobytes()
    (tmp_path / "w.bin").write_bytes(data)
    return tmp_path / "w.bin", data


class CountingReader(PreadReader):
    """Counts reads, so that what is read twice shows; it must be read by calls."""

    reads = 0
    descriptor = None

    def read_into(self, offset: int, view: memoryview) -> int:
        CountingReader.reads += 1
        return super().read_into(offset, view)


@pytest.mark.parametrize("buffers", [1, 2, 3])
@pytest.mark.parametrize("past_cache", [False, True])
@pytest.mark.parametrize("block_bytes", [4096, 100_003])
def test_every_way_of_staging_brings_the_same_bytes(
    device: Device, data_file: tuple[Path, bytes], buffers: int, past_cache: bool, block_bytes: int
) -> None:
    path, data = data_file
    pieces = [(0, 10), (5, 20_000), (20_005, 1), (60_001, 900_000), (SIZE - 5000, 5000), (5, 20_000)]
    with device.malloc(2 << 20) as buffer:
        places, at = [], 0
        for offset, size in reversed(pieces):
            places.append((at, offset, size))
            at += size + 3
        requests = [UploadRequest(FileRegion(path, o, size), buffer.addr + at) for at, o, size in places]
        report = upload(device, requests, workers=2, block_bytes=block_bytes, buffers=buffers, past_cache=past_cache)
        arrived = buffer.read()
    for at, offset, size in places:
        assert arrived[at : at + size] == data[offset : offset + size]
    assert report.buffers == buffers
    assert report.size_bytes == sum(size for _, size in pieces)
    assert report.bottleneck in ("disk", "read", "staging", "copy")
    assert ("O_DIRECT" in report.mode) == past_cache


def test_neighbours_are_read_at_once_and_equal_regions_once(device: Device, data_file: tuple[Path, bytes]) -> None:
    path, data = data_file
    CountingReader.reads = 0
    with device.malloc(200 * KIB) as buffer:
        requests = [UploadRequest(FileRegion(path, n * 512, 500), buffer.addr + n * 500) for n in range(100)]
        requests += [UploadRequest(FileRegion(path, n * 512, 500), buffer.addr + 60_000 + n * 500) for n in range(100)]
        report = upload(device, requests[::-1], workers=1, open_file=CountingReader)
        arrived = buffer.read()
    wanted = b"".join(data[n * 512 : n * 512 + 500] for n in range(100))
    assert arrived[:50_000] == arrived[60_000:110_000] == wanted
    assert (CountingReader.reads, report.reads) == (1, 1)
    assert report.read_bytes == 99 * 512 + 500
    assert report.size_bytes == 100_000


@pytest.mark.parametrize("buffers", [1, 3])
def test_tensors_are_there_when_they_are_given(device: Device, data_file: tuple[Path, bytes], buffers: int) -> None:
    path, data = data_file
    with device.malloc(SIZE) as buffer:
        requests = [UploadRequest(FileRegion(path, n, KIB), buffer.addr + n) for n in range(0, 2048 * KIB, KIB)]
        requests.append(UploadRequest(memoryview(b""), buffer.addr))
        seen = set()
        with Upload(device, requests, workers=2, block_bytes=8 * KIB, buffers=buffers) as run:
            for request in run:
                at = request.dev_addr - buffer.addr
                assert buffer.read(request.size_bytes, offset_bytes=at) == data[at : at + request.size_bytes]
                seen.add(id(request))
            assert run.wait().size_bytes == 2048 * KIB
    assert len(seen) == len(requests)


@pytest.mark.parametrize("how", ["cancel", "leave"])
@pytest.mark.parametrize("buffers", [1, 3])
def test_cancelling_drains(device: Device, data_file: tuple[Path, bytes], how: str, buffers: int) -> None:
    path, _ = data_file
    before = threading.active_count()
    reached, go_on = threading.Event(), threading.Event()

    class Held(PreadReader):
        descriptor = None

        def read_into(self, offset: int, view: memoryview) -> int:
            if offset >= 500 * KIB:
                reached.set()
                assert go_on.wait(30)
            return super().read_into(offset, view)

    with device.malloc(SIZE) as buffer:
        requests = [UploadRequest(FileRegion(path, 0, SIZE), buffer.addr)]
        with Upload(device, requests, workers=2, block_bytes=4 * KIB, buffers=buffers, open_file=Held) as run:
            assert reached.wait(30)
            if how == "cancel":
                run.cancel()
                go_on.set()
                with pytest.raises(StateError, match="cancelled after"):
                    run.wait()
            threading.Timer(0.01, go_on.set).start()
    go_on.wait(30)
    assert [t.name for t in threading.enumerate() if t.name == "gevar-upload"] == []
    assert threading.active_count() <= before + 1


def test_several_files_and_devices(host: HostControls, tmp_path: Path) -> None:
    del host
    runtime = host_runtime()
    if runtime.device_count() < 2:
        pytest.skip("the runtime has one device")
    names, devices = ("a", "b"), [runtime.device(0), runtime.device(1)]
    for name in names:
        (tmp_path / name).write_bytes(name.encode() * 10_000)
    CountingReader.reads = 0
    with devices[0].malloc(20_000) as first, devices[1].malloc(20_000) as second:
        requests = [
            UploadRequest(FileRegion(tmp_path / name, 0, 10_000), buffer.addr + 10_000 * number, device)
            for buffer, device in zip((first, second), devices, strict=True)
            for number, name in enumerate(names)
        ]
        report = upload(devices[0], requests, workers=1, open_file=CountingReader)
        for buffer in (first, second):
            assert buffer.read() == b"a" * 10_000 + b"b" * 10_000
    assert (report.size_bytes, report.read_bytes, CountingReader.reads) == (40_000, 20_000, 2)


@pytest.mark.parametrize("buffers", [1, 2])
def test_digests_are_compared(device: Device, data_file: tuple[Path, bytes], buffers: int) -> None:
    path, data = data_file
    places = [(0, 300_001), (300_001, 64), (400_000, 1_000_000)]

    def requests(address: int) -> list[UploadRequest]:
        return [
            UploadRequest(FileRegion(path, o, n), address + o, digest=xxhash.xxh3_128(data[o : o + n]).digest())
            for o, n in places
        ]

    with device.malloc(SIZE) as buffer:
        report = upload(device, requests(buffer.addr), workers=3, block_bytes=4096, buffers=buffers)
        assert report.checked == 3
        wanted = requests(buffer.addr)
        with path.open("rb+") as file:
            file.seek(1_399_999)
            file.write(bytes([data[1_399_999] ^ 1]))
        with pytest.raises(LoadError, match="digest") as caught:
            upload(device, wanted, workers=3, block_bytes=4096, buffers=buffers)
    assert (caught.value.path, caught.value.offset, caught.value.wanted) == (str(path), 400_000, 1_000_000)


@pytest.mark.parametrize("block_bytes", [4096, 1 << 20])
def test_digests_of_buffers_are_compared(device: Device, block_bytes: int) -> None:
    array = np.random.default_rng(5).integers(0, 1 << 15, (100, 300), np.int16)
    right = xxhash.xxh3_128(array.tobytes()).digest()
    with device.malloc(2 * array.nbytes) as buffer:
        places = [UploadRequest(memoryview(array), buffer.addr + n * array.nbytes, digest=right) for n in range(2)]
        assert upload(device, places, block_bytes=block_bytes, workers=2).checked == 2
        assert buffer.read() == array.tobytes() * 2
        wrong = UploadRequest(memoryview(array), buffer.addr, digest=bytes(16))
        with pytest.raises(LoadError, match=f"buffer of 60000 B: .* not {'00' * 16}: the bytes are damaged") as caught:
            upload(device, [places[1], wrong], block_bytes=block_bytes, workers=2)
    assert (caught.value.offset, caught.value.wanted) == (0, 60_000)


def test_a_digest_is_compared_behind_a_region_without_one(device: Device, data_file: tuple[Path, bytes]) -> None:
    path, _ = data_file
    with device.malloc(SIZE) as buffer:
        first = UploadRequest(FileRegion(path, 0, 20_000), buffer.addr)
        second = UploadRequest(FileRegion(path, 20_000, 10_000), buffer.addr + 20_000, digest=bytes(16))
        with pytest.raises(LoadError, match="digest") as caught:
            upload(device, [first, second], workers=1, block_bytes=4096, buffers=1)
    assert caught.value.offset == 20_000


def test_a_file_that_cannot_be_read_past_the_cache_says_why(device: Device) -> None:
    shm = Path("/dev/shm")
    if not shm.is_dir():
        pytest.skip("no memory file system")
    path = shm / "gevar-test-upload"
    path.write_bytes(b"x" * 5000)
    try:
        with device.malloc(5000) as buffer:
            report = upload(device, [UploadRequest(FileRegion(path, 0, 5000), buffer.addr)], past_cache=True)
            assert buffer.read() == b"x" * 5000
    finally:
        path.unlink()
    assert "O_DIRECT" in report.mode  # newer kernels take it, older ones refuse and the report says so


@pytest.mark.parametrize(("number", "is_taken"), [(errno.EINVAL, True), (errno.EOPNOTSUPP, True), (errno.EIO, False)])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_file_system_that_refuses_to_read_past_the_cache(
    device: Device,
    data_file: tuple[Path, bytes],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    is_taken: bool,
    workers: int,
) -> None:
    path, data = data_file
    real, refused = os.preadv, 0

    def preadv(file: int, views: list[memoryview], offset: int) -> int:
        nonlocal refused
        if fcntl.fcntl(file, fcntl.F_GETFL) & os.O_DIRECT:
            refused += 1
            raise OSError(number, os.strerror(number))
        return real(file, views, offset)

    monkeypatch.setattr(os, "preadv", preadv)
    with device.malloc(SIZE) as buffer:
        requests = [UploadRequest(FileRegion(path, 0, SIZE), buffer.addr)]
        with nullcontext() if is_taken else pytest.raises(LoadError, match=os.strerror(number)):
            report = upload(device, requests, past_cache=True, workers=workers, block_bytes=100_000)
            assert report.mode == f"page cache, O_DIRECT refused: {os.strerror(number)}"
            assert buffer.read() == data
    assert 1 <= refused <= workers


@pytest.mark.parametrize("buffers", [1, 3])
@pytest.mark.parametrize("number", [1, 5])
def test_a_copy_that_fails_leaves_nothing(
    device: Device, data_file: tuple[Path, bytes], host: HostControls, buffers: int, number: int
) -> None:
    path, _ = data_file
    function = "aclrtMemcpy" if buffers == 1 else "aclrtMemcpyAsync"
    with device.malloc(SIZE) as buffer:
        host.fail_nth(function, number, 507899)
        with pytest.raises(AclError) as caught:
            upload(
                device,
                [UploadRequest(FileRegion(path, 0, SIZE), buffer.addr)],
                workers=2,
                block_bytes=64 * KIB,
                buffers=buffers,
            )
    assert caught.value.code == 507899
