"""Moving files and buffers into device memory."""

import threading
from pathlib import Path

import numpy as np
import pytest

from acl_shim import Device, DeviceBuffer
from acl_shim.host import HostControls
from gevar.errors import AclError, LoadError
from gevar.weights import FileRegion, UploadRequest, upload

MIB = 1 << 20


@pytest.fixture
def data_file(tmp_path: Path) -> tuple[Path, bytes]:
    data = np.random.default_rng(7).integers(0, 256, 9 * MIB + 13, np.uint8).tobytes()
    path = tmp_path / "weights.bin"
    path.write_bytes(data)
    return path, data


def whole(path: Path, buffer: DeviceBuffer, size_bytes: int, offset: int = 0) -> UploadRequest:
    return UploadRequest(FileRegion(path, offset, size_bytes), buffer.addr)


@pytest.mark.parametrize("workers", [None, 1, 3])
@pytest.mark.parametrize("block_bytes", [MIB, 4099, 64 * MIB])
def test_a_file_arrives(device: Device, data_file: tuple[Path, bytes], workers: int | None, block_bytes: int) -> None:
    path, data = data_file
    with device.malloc(len(data)) as buffer:
        report = upload(device, [whole(path, buffer, len(data))], workers=workers, block_bytes=block_bytes)
        assert buffer.read(len(data)) == data
    assert report.size_bytes == len(data)
    blocks = -(-len(data) // block_bytes)
    assert report.workers == min(workers, blocks) if workers else report.workers <= blocks
    assert report.elapsed_s > 0
    assert report.gb_per_s == pytest.approx(len(data) / report.elapsed_s / 1e9)


def test_regions_and_buffers_arrive_together(device: Device, data_file: tuple[Path, bytes]) -> None:
    path, data = data_file
    extra = np.arange(1000, dtype=np.float32)
    with device.malloc(MIB) as first, device.malloc(4000) as second, device.malloc(10) as third:
        requests = [
            whole(path, first, MIB, offset=len(data) - MIB),
            UploadRequest(memoryview(extra), second.addr),
            whole(path, third, 10, offset=1),
            UploadRequest(memoryview(b""), third.addr),
        ]
        report = upload(device, requests, block_bytes=300)
        assert report.size_bytes == MIB + 4010
        assert first.read(MIB) == data[-MIB:]
        assert second.read(4000) == extra.tobytes()
        assert third.read(10) == data[1:11]


def test_nothing_to_move(device: Device) -> None:
    report = upload(device, [])
    assert report.size_bytes == 0
    assert report.gb_per_s == 0.0


def test_progress_counts_up_to_the_total(device: Device, data_file: tuple[Path, bytes]) -> None:
    path, data = data_file
    seen: list[tuple[int, int]] = []
    with device.malloc(len(data)) as buffer:
        upload(
            device,
            [whole(path, buffer, len(data))],
            workers=3,
            block_bytes=4096,
            on_progress=lambda done, total: seen.append((done, total)),
        )
    assert seen[-1] == (len(data), len(data))
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert len(seen) > 1


def test_an_error_of_the_observer_stops_the_upload(device: Device, data_file: tuple[Path, bytes]) -> None:
    path, data = data_file
    before = threading.active_count()
    calls = []

    def stop(done: int, total: int) -> None:
        calls.append(done)
        raise KeyboardInterrupt

    with device.malloc(len(data)) as buffer, pytest.raises(KeyboardInterrupt):
        upload(device, [whole(path, buffer, len(data))], workers=2, block_bytes=4096, on_progress=stop)
    assert len(calls) == 1
    assert threading.active_count() == before


def test_a_file_that_ends_early(device: Device, data_file: tuple[Path, bytes]) -> None:
    path, data = data_file
    with device.malloc(len(data) + 100) as buffer, pytest.raises(LoadError) as caught:
        upload(device, [whole(path, buffer, len(data) + 100)], workers=2)
    error = caught.value
    assert error.path == str(path)
    assert error.offset + error.got == len(data)
    assert error.offset + error.wanted <= len(data) + 100


@pytest.mark.parametrize("kind", ["missing", "directory"])
def test_a_file_that_cannot_be_read(device: Device, tmp_path: Path, kind: str) -> None:
    path = tmp_path if kind == "directory" else tmp_path / "nothing"
    with device.malloc(64) as buffer, pytest.raises(LoadError, match=str(path)) as caught:
        upload(device, [whole(path, buffer, 64)])
    assert caught.value.got == 0


@pytest.mark.parametrize(("workers", "block_bytes"), [(0, MIB), (-1, MIB), (1, 0), (1025, MIB), (1, (1 << 30) + 1)])
def test_wrong_settings_are_refused(device: Device, workers: int, block_bytes: int) -> None:
    with pytest.raises(ValueError, match=r"(workers|block_bytes) is -?\d+: give 1 to"):
        upload(device, [], workers=workers, block_bytes=block_bytes)


def test_a_refused_copy_ends_every_worker(device: Device, data_file: tuple[Path, bytes], host: HostControls) -> None:
    if device.runtime.backend != "host":
        pytest.skip("failures can be planned on the host runtime only")
    path, data = data_file
    with device.malloc(len(data)) as buffer:
        host.fail_nth("aclrtMemcpy", 3, 507899)
        with pytest.raises(AclError) as caught:
            upload(device, [whole(path, buffer, len(data))], workers=2)
    assert caught.value.code == 507899
