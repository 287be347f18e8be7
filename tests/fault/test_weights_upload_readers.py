"""Readers that do not keep to the protocol, or fail beside reading: an honest error, no wrong byte, nothing left."""

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from acl_shim.host import HostControls
from gevar.errors import AclError, LoadError
from gevar.weights import FileRegion, PreadReader, Upload, UploadRequest, upload
from gevar.weights.file_reader import OpenFile, ReopeningReader
from tests.helpers.open_files import open_files
from tests.helpers.readers import reader_at
from tests.helpers.runtime import host_runtime, live_now

UNTOUCHED = 255
DATA = bytes(range(250)) * 400
EVERY_WAY = pytest.mark.parametrize(("buffers", "workers"), [(1, 1), (1, 3), (3, 1), (3, 3)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "w.bin").write_bytes(DATA)
    return tmp_path / "w.bin"


def refused(host: HostControls, path: Path, open_file: OpenFile, wanted: type[BaseException], **settings: int) -> str:
    """Load the file, expect an error, and that nothing is left of the upload; return what it says."""
    device = host_runtime().device(0)
    with device.malloc(len(DATA)) as buffer:
        device.memset(buffer.addr, len(DATA), UNTOUCHED, len(DATA))  # so that its pages are in use before
        before = live_now(host), open_files(), threading.active_count()
        requests = [UploadRequest(FileRegion(path, 0, len(DATA)), buffer.addr)]
        with pytest.raises(wanted) as caught:
            upload(device, requests, block_bytes=4096, open_file=open_file, **settings)
        assert (live_now(host), open_files(), threading.active_count()) == before
        arrived = buffer.read()
    assert all(found in (UNTOUCHED, right) for found, right in zip(arrived, DATA, strict=True))
    error = caught.value
    if isinstance(error, LoadError):
        assert error.path == str(path)
        assert 0 <= error.got <= error.wanted
        assert error.offset + error.wanted <= len(DATA)
    return str(error)


def answering(answer: Callable[[int], object]) -> OpenFile:
    """A reader that answers something else at one of its reads; it is given how much there is room for."""
    return reader_at(3, lambda view: answer(view.nbytes))


@EVERY_WAY
@pytest.mark.parametrize("past_cache", [False, True])
@pytest.mark.parametrize("beyond", [1, 4096, 2**70])
def test_more_than_there_is_room_for(
    host: HostControls, path: Path, buffers: int, workers: int, past_cache: bool, beyond: int
) -> None:
    reader = answering(lambda room: room + beyond)
    text = refused(host, path, reader, LoadError, buffers=buffers, workers=workers, past_cache=past_cache)
    assert f"its reader says that {4096 + beyond} B came where there is room for 4096 B" in text


@EVERY_WAY
def test_less_than_nothing(host: HostControls, path: Path, buffers: int, workers: int) -> None:
    text = refused(host, path, answering(lambda _: -1), LoadError, buffers=buffers, workers=workers)
    assert "its reader says that -1 B came" in text


@EVERY_WAY
@pytest.mark.parametrize("answer", [None, "4096", b""])
def test_no_number(host: HostControls, path: Path, buffers: int, workers: int, answer: object) -> None:
    refused(host, path, answering(lambda _: answer), TypeError, buffers=buffers, workers=workers)


@EVERY_WAY
@pytest.mark.parametrize("error", [RuntimeError("boom"), KeyboardInterrupt(), SystemExit(3), MemoryError()])
def test_another_error_is_raised_as_it_is(
    host: HostControls, path: Path, buffers: int, workers: int, error: BaseException
) -> None:
    def fail(_: int) -> object:
        raise error

    refused(host, path, answering(fail), type(error), buffers=buffers, workers=workers)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(), "OSError"),
        (OSError("just words"), "just words"),
        (InterruptedError(errno.EINTR, "cut off"), "cut off"),
    ],
)
def test_an_error_without_words_says_its_name(host: HostControls, path: Path, error: OSError, text: str) -> None:
    def fail(_: int) -> object:
        raise error

    assert refused(host, path, answering(fail), LoadError).endswith(f": {text}")


class Unclosable(PreadReader):
    """Tells of an error when it is closed."""

    def close(self) -> None:
        super().close()
        raise OSError(errno.EIO, "lost on closing")


class Changing(PreadReader):
    """Cannot tell whether the file was changed."""

    def change(self) -> str:
        raise OSError(errno.ESTALE, "stale")


@EVERY_WAY
def test_a_file_that_cannot_be_closed(host: HostControls, path: Path, buffers: int, workers: int) -> None:
    assert "cannot be closed: lost on closing" in refused(
        host, path, Unclosable, LoadError, buffers=buffers, workers=workers
    )


@EVERY_WAY
def test_a_file_of_which_nothing_can_be_told_at_the_end(
    host: HostControls, path: Path, buffers: int, workers: int
) -> None:
    assert "cannot be told: stale" in refused(host, path, Changing, LoadError, buffers=buffers, workers=workers)


def test_the_first_error_stays_and_is_given_again(path: Path) -> None:
    device = host_runtime().device(0)

    class Both(Unclosable):
        descriptor = None

        def read_into(self, offset: int, view: memoryview) -> int:
            raise OSError(errno.EIO, "lost on reading")

    for reader, text in ((Both, "lost on reading"), (Unclosable, "lost on closing"), (Changing, "stale")):
        with device.malloc(len(DATA)) as buffer:
            requests = [UploadRequest(FileRegion(path, 0, len(DATA)), buffer.addr)]
            with Upload(device, requests, open_file=reader) as run:
                for _ in range(2):
                    with pytest.raises(LoadError, match=text):
                        run.wait()


@pytest.mark.parametrize("align_bytes", [0, -4096, 3000, 8192])
def test_a_reader_with_steps_that_no_page_has(host: HostControls, path: Path, align_bytes: int) -> None:
    class Wide(PreadReader):
        descriptor = None

        def __init__(self, path: Path, past_cache: bool = False) -> None:
            super().__init__(path, past_cache)
            self.align_bytes = align_bytes

    assert f"at multiples of {align_bytes} B: give a divisor of 4096" in refused(host, path, Wide, ValueError)


@pytest.mark.parametrize("align_bytes", [2, 512, 4096])
def test_a_reader_with_steps_of_a_page_or_less(path: Path, align_bytes: int) -> None:
    places = [(1, 4095), (5000, 1), (5001, 80_000)]

    class Steps(PreadReader):
        descriptor = None

        def __init__(self, path: Path, past_cache: bool = False) -> None:
            super().__init__(path, past_cache)
            self.align_bytes = align_bytes

        def read_into(self, offset: int, view: memoryview) -> int:
            assert offset % align_bytes == view.nbytes % align_bytes == 0
            return super().read_into(offset, view)

    device = host_runtime().device(0)
    with device.malloc(len(DATA)) as buffer:
        requests = [UploadRequest(FileRegion(path, at, size), buffer.addr + at) for at, size in places]
        upload(device, requests, block_bytes=777, open_file=Steps)
        for at, size in places:
            assert buffer.read(size, offset_bytes=at) == DATA[at : at + size]


def test_a_file_that_cannot_be_looked_at_is_closed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> os.stat_result:
        raise OSError(errno.ESTALE, "stale")

    before = open_files()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", fail)
        with pytest.raises(OSError, match="stale"):
            PreadReader(path)
    assert open_files() == before


def test_a_file_that_is_opened_for_each_read_and_cannot_be_closed(host: HostControls, path: Path) -> None:
    calls = 0

    class Later(PreadReader):
        descriptor = None

        def close(self) -> None:
            nonlocal calls
            super().close()
            calls += 1
            if calls > 3:
                raise OSError(errno.EIO, "lost on closing")

    reopened: OpenFile = lambda path, past_cache: ReopeningReader(path, past_cache, Later)  # noqa: E731
    assert "lost on closing" in refused(host, path, reopened, LoadError)


@pytest.mark.parametrize("task", [1, 2, 9])
def test_a_copy_that_fails_when_it_is_its_turn(host: HostControls, path: Path, task: int) -> None:
    host.fail_task(task, 507899)
    assert "507899" in refused(host, path, PreadReader, AclError, buffers=3, workers=2)
