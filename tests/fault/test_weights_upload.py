"""Files that fail while they are read: each gives `LoadError` with path, offset, wanted and got."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gevar.errors import LoadError
from gevar.om.regular_file import file_state
from gevar.weights import FileRegion, PreadReader, UploadRequest, upload
from tests.helpers.runtime import host_runtime

SIZE = 100_000
DATA = bytes(range(250)) * 400


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "w.bin").write_bytes(DATA)
    return tmp_path / "w.bin"


def load(path: Path, reader: type[PreadReader], *, buffers: int, workers: int = 2) -> bytes:
    device = host_runtime().device(0)
    with device.malloc(SIZE) as buffer:
        requests = [UploadRequest(FileRegion(path, 0, SIZE), buffer.addr)]
        upload(
            device,
            requests,
            workers=workers,
            block_bytes=4096,
            buffers=buffers,
            past_cache=False,
            open_file=reader,
        )
        return bytes(buffer.read())


def reader_that(act: Callable[[int], None], *, at_call: int) -> type[PreadReader]:
    """A reader that does something before a read."""
    calls = 0

    class Reader(PreadReader):
        descriptor = None

        def read_into(self, offset: int, view: memoryview) -> int:
            nonlocal calls
            calls += 1
            if calls == at_call:
                act(offset)
            return super().read_into(offset, view)

    return Reader


@pytest.mark.parametrize("buffers", [1, 3])
def test_an_error_of_every_read(path: Path, buffers: int) -> None:
    def fail(offset: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    blocks = -(-SIZE // 4096)
    for number in range(1, blocks + 1):
        with pytest.raises(LoadError, match="Input/output") as caught:
            load(path, reader_that(fail, at_call=number), buffers=buffers)
        error = caught.value
        assert (error.path, error.got) == (str(path), 0)
        assert error.offset % 4096 == 0
        assert error.wanted == min(4096, SIZE - error.offset)
    assert load(path, reader_that(fail, at_call=blocks + 1), buffers=buffers) == DATA


@pytest.mark.parametrize("buffers", [1, 3])
@pytest.mark.parametrize("most_bytes", [1000, 4095])
def test_short_reads_are_gone_on_with(path: Path, buffers: int, most_bytes: int) -> None:
    class Short(PreadReader):
        descriptor = None

        def read_into(self, offset: int, view: memoryview) -> int:
            return super().read_into(offset, view[:most_bytes])

    assert load(path, Short, buffers=buffers) == DATA


@pytest.mark.parametrize("buffers", [1, 3])
def test_a_file_that_is_cut_half_way(path: Path, buffers: int) -> None:
    reader = reader_that(lambda _: os.truncate(path, 50_001), at_call=3)
    with pytest.raises(LoadError, match="ends here") as caught:
        load(path, reader, buffers=buffers)
    error = caught.value
    assert error.path == str(path)
    assert error.offset + error.wanted > 50_001
    assert error.got == max(0, min(error.wanted, 50_001 - error.offset))
    assert error.got < error.wanted


def reader_of_descriptors(act: Callable[[], int | None], *, at_call: int) -> type[PreadReader]:
    """A reader that does something before its descriptor is read from, or gives another one."""
    calls = 0

    class Reader(PreadReader):
        @property
        def descriptor(self) -> int | None:
            nonlocal calls
            calls += 1
            other = act() if calls == at_call else None
            return super().descriptor if other is None else other

    return Reader


@pytest.mark.parametrize("at_call", [1, 2])
def test_a_file_that_is_cut_before_it_is_read_at_once(path: Path, at_call: int) -> None:
    reader = reader_of_descriptors(lambda: os.truncate(path, 50_001), at_call=at_call)
    with pytest.raises(LoadError, match="ends here") as caught:
        load(path, reader, buffers=1, workers=1)
    error = caught.value
    assert error.path == str(path)
    assert error.offset % 4096 == 0
    assert error.got == max(0, min(error.wanted, 50_001 - error.offset)) < error.wanted


@pytest.mark.parametrize("at_call", [1, 2])
def test_a_file_that_cannot_be_read_at_once(path: Path, at_call: int) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with pytest.raises(LoadError, match="Is a directory") as caught:
            load(path, reader_of_descriptors(lambda: folder, at_call=at_call), buffers=1, workers=1)
    finally:
        os.close(folder)
    assert (caught.value.path, caught.value.wanted, caught.value.got) == (str(path), 4096, 0)


@pytest.mark.parametrize(("offset", "size", "got"), [(SIZE - 10, 11, 10), (SIZE + 5, 1, 0), (0, 2**62, SIZE)])
def test_a_region_beyond_the_end_is_refused_before_anything_moves(path: Path, offset: int, size: int, got: int) -> None:
    device = host_runtime().device(0)
    with device.malloc(SIZE) as buffer:
        device.memset(buffer.addr, SIZE, 0xEE, SIZE)
        requests = [
            UploadRequest(FileRegion(path, 0, 4096), buffer.addr),
            UploadRequest(FileRegion(path, offset, size), buffer.addr + 4096),
        ]
        with pytest.raises(LoadError, match="ends here") as caught:
            upload(device, requests)
        assert buffer.read() == b"\xee" * SIZE
    error = caught.value
    assert (error.path, error.offset, error.wanted, error.got) == (str(path), offset, size, got)


def test_a_file_that_cannot_be_opened_names_the_first_region(path: Path) -> None:
    device, missing = host_runtime().device(0), path.with_name("missing")
    opened = []

    class Reader(PreadReader):
        def close(self) -> None:
            opened.append(self)
            super().close()

    places = [(path, 0, 10), (missing, 30, 40), (missing, 0, 5)]
    with device.malloc(SIZE) as buffer:
        requests = [UploadRequest(FileRegion(*place), buffer.addr + 100 * n) for n, place in enumerate(places)]
        with pytest.raises(LoadError, match="No such file") as caught:
            upload(device, requests, open_file=Reader)
    assert (caught.value.path, caught.value.offset, caught.value.wanted) == (str(missing), 30, 40)
    assert len(opened) == 1


def change(path: Path, how: str) -> None:
    other = path.with_name("other")
    if how == "grown":
        with path.open("ab") as file:
            file.write(b"more")
    elif how == "cut":
        os.truncate(path, SIZE - 1)
    elif how == "replaced":
        other.write_bytes(DATA)
        other.rename(path)
    elif how == "gone":
        path.unlink()
    else:
        with path.open("rb+") as file:
            file.write(b"other")
        os.utime(path, ns=(1, 1))


@pytest.mark.parametrize("how", ["grown", "cut", "replaced", "gone", "written"])
def test_a_file_that_changes_after_it_was_read(path: Path, how: str) -> None:
    class Reader(PreadReader):
        def change(self) -> str:
            change(path, how)
            return super().change()

    words = {"grown": "grew", "cut": "was cut", "replaced": "took its place", "gone": "went away", "written": "written"}
    with pytest.raises(LoadError, match=words[how]) as caught:
        load(path, Reader, buffers=1)
    assert (caught.value.path, caught.value.wanted) == (str(path), SIZE)


@pytest.mark.parametrize("how", ["replaced", "written"])
def test_a_file_that_changed_since_it_was_looked_at(path: Path, how: str) -> None:
    found = path.stat()
    region = FileRegion(path, 0, SIZE, file_state(found))
    device = host_runtime().device(0)
    with device.malloc(SIZE) as buffer:
        assert upload(device, [UploadRequest(region, buffer.addr)]).size_bytes == SIZE
        change(path, how)
        with pytest.raises(LoadError, match="changed since it was looked at") as caught:
            upload(device, [UploadRequest(region, buffer.addr)])
    assert (caught.value.wanted, caught.value.got) == (SIZE, 0)


def test_a_pipe_in_the_place_of_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LoadError, match="pipe"):
        load(tmp_path / "pipe", PreadReader, buffers=1)
