"""The report of an upload names what held it up; there are no more readers and pinned memory than blocks need."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xxhash

from acl_shim import Device
from acl_shim.host import HostControls
from gevar.om.stored_bytes import StreamedBytes
from gevar.session.stream_upload import Stream, upload_all
from gevar.types import DevAddr
from gevar.weights import FileRegion, PreadReader, UploadReport, UploadRequest, upload, upload_reader

SIZE = 40_000
DATA = bytes(range(250)) * (SIZE // 250)
SLOW_S = 0.1
_REAL_DIGEST = xxhash.xxh3_128


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "w.bin").write_bytes(DATA)
    return tmp_path / "w.bin"


class Slow(PreadReader):
    """A file that is slow to read."""

    descriptor = None

    def read_into(self, offset: int, view: memoryview) -> int:
        time.sleep(SLOW_S)
        return super().read_into(offset, view)


class SlowDigest:
    """A digest that is slow to be made."""

    def __init__(self) -> None:
        self._real = _REAL_DIGEST()

    def update(self, data: memoryview) -> None:
        time.sleep(SLOW_S)
        self._real.update(data)

    def digest(self) -> bytes:
        return self._real.digest()


@pytest.mark.parametrize(
    ("slow", "buffers", "wanted"),
    [
        ("file", 1, "read"),
        ("file", 3, "read"),
        ("aclrtMallocHost", 1, "staging"),
        ("aclrtMallocHost", 3, "staging"),
        ("digest", 1, "check"),
        ("digest", 3, "check"),
        ("aclrtMemcpy", 1, "copy"),
        ("aclrtMemcpyAsync", 3, "copy"),
        ("task", 3, "copy"),
    ],
)
def test_what_is_slow_is_named(
    device: Device,
    path: Path,
    host: HostControls,
    monkeypatch: pytest.MonkeyPatch,
    buffers: int,
    slow: str,
    wanted: str,
) -> None:
    if slow == "digest":
        monkeypatch.setattr(upload_reader.xxhash, "xxh3_128", SlowDigest)
    elif slow == "task":
        host.delay_task("aclrtMemcpyAsync", SLOW_S)
    elif slow != "file":
        host.delay(slow, SLOW_S)
    digest = _REAL_DIGEST(DATA).digest() if slow == "digest" else None
    with device.malloc(SIZE) as buffer:
        report = upload(
            device,
            [UploadRequest(FileRegion(path, 0, SIZE), buffer.addr, digest=digest)],
            block_bytes=SIZE // 2,
            buffers=buffers,
            open_file=Slow if slow == "file" else PreadReader,
        )
        assert buffer.read() == DATA
    assert report.bottleneck == wanted, report


@pytest.mark.parametrize(("slow", "wanted"), [("stream", "read"), ("copy", "copy")])
def test_what_is_slow_is_named_of_bytes_that_no_file_has(
    device: Device, host: HostControls, slow: str, wanted: str
) -> None:
    def chunks() -> Iterator[bytes]:
        for start in range(0, SIZE, SIZE // 2):
            time.sleep(SLOW_S if slow == "stream" else 0)
            yield DATA[start : start + SIZE // 2]

    if slow == "copy":
        host.delay("aclrtMemcpy", SLOW_S)
    with device.malloc(SIZE) as buffer:
        stream = Stream(StreamedBytes(SIZE, chunks), DevAddr(buffer.addr))
        report = upload_all(device, [], [stream], workers=None, on_progress=None, cancel=None, open_file=PreadReader)
        assert buffer.read() == DATA
    assert (report.bottleneck, report.size_bytes) == (wanted, SIZE)
    assert report.read_s + report.copy_s <= report.elapsed_s


@pytest.mark.parametrize(
    ("workers", "block_bytes", "wanted"), [(8, 1 << 20, 1), (8, 10_000, 4), (3, 10_000, 3), (1024, 39_999, 2)]
)
def test_there_are_no_more_readers_than_blocks(
    device: Device, path: Path, host: HostControls, workers: int, block_bytes: int, wanted: int
) -> None:
    del host

    def load(pieces: int) -> UploadReport:
        size = SIZE // pieces
        with device.malloc(SIZE) as buffer:
            places = [(at, buffer.addr + at) for at in range(0, SIZE, size)]
            requests = [UploadRequest(FileRegion(path, at, size), addr) for at, addr in places]
            report = upload(device, requests, workers=workers, block_bytes=block_bytes)
            assert buffer.read() == DATA
        return report

    assert [load(pieces).workers for pieces in (1, 2)] == [wanted, wanted]


def test_nothing_is_read_by_one_reader(device: Device) -> None:
    assert upload(device, [], workers=1024).workers == 1
    buffer = memoryview(np.arange(10))
    with device.malloc(buffer.nbytes) as block:
        assert upload(device, [UploadRequest(buffer, block.addr)], workers=7).workers == 1


@pytest.mark.parametrize("buffers", [1, 4])
def test_pinned_memory_is_no_larger_than_the_blocks(
    device: Device, path: Path, host: HostControls, buffers: int
) -> None:
    most = 0

    class Watching(PreadReader):
        descriptor = None

        def read_into(self, offset: int, view: memoryview) -> int:
            nonlocal most
            most = max(most, host.live().host_bytes)
            return super().read_into(offset, view)

    with device.malloc(SIZE) as buffer:
        request = UploadRequest(FileRegion(path, 0, SIZE), buffer.addr)
        upload(device, [request], block_bytes=1 << 30, buffers=buffers, open_file=Watching)
        assert buffer.read() == DATA
    assert SIZE <= most <= SIZE + 5 * 4096
