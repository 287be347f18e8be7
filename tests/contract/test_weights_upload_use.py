"""How an upload is started, used, and ended at any point: by its caller, an observer, an event, a lack of threads."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from acl_shim import Device
from acl_shim.host import HostControls
from gevar.errors import LoadError, StateError
from gevar.weights import FileRegion, PreadReader, Upload, UploadRequest, upload
from tests.helpers.open_files import open_files
from tests.helpers.readers import reader_at
from tests.helpers.runtime import live_now

COUNT, SIZE = 60, 1000
DATA = bytes(range(250)) * (COUNT * SIZE // 250)
EVERY_WAY = pytest.mark.parametrize(("buffers", "workers"), [(1, 1), (1, 3), (3, 1), (3, 3)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "w.bin").write_bytes(DATA)
    return tmp_path / "w.bin"


@contextmanager
def requests(device: Device, path: Path, host: HostControls) -> Iterator[list[UploadRequest]]:
    """Give requests; afterwards nothing of an upload may be left."""
    with device.malloc(len(DATA)) as buffer:
        device.memset(buffer.addr, len(DATA), 255, len(DATA))  # so that its pages are in use before
        before = live_now(host), open_files(), threading.active_count()
        yield [UploadRequest(FileRegion(path, at, SIZE), buffer.addr + at) for at in range(0, len(DATA), SIZE)]
        assert (live_now(host), open_files(), threading.active_count()) == before


def at_read(number: int, act: Callable[[], object]) -> type[PreadReader]:
    """A reader that does something before a read."""
    return reader_at(number, lambda _: act(), then_reads=True)


def test_an_upload_is_started_before_it_is_waited_for(device: Device, path: Path, host: HostControls) -> None:
    with requests(device, path, host) as wanted:
        for use in (Upload.wait, list):
            with pytest.raises(StateError, match="was not started"):
                use(Upload(device, wanted))


@pytest.mark.parametrize("how", ["after it ended", "while it runs", "after it failed"])
def test_an_upload_is_started_once(device: Device, path: Path, host: HostControls, how: str) -> None:
    with requests(device, path, host) as wanted:
        run = Upload(device, wanted)
        if how == "after it failed":
            path.unlink()
            with pytest.raises(LoadError):
                run.run()
        elif how == "after it ended":
            assert run.run().size_bytes == len(DATA)
        else:
            with run, pytest.raises(StateError, match="started before"):
                run.run()
        for start in (run.__enter__, run.run):
            with pytest.raises(StateError, match="started before"):
                start()


@pytest.mark.parametrize("is_file", [True, False])
@pytest.mark.parametrize("buffers", [1, 3])
def test_host_memory_is_no_destination(
    device: Device, path: Path, host: HostControls, buffers: int, is_file: bool
) -> None:
    own = np.full(SIZE, 7, np.uint8)
    source = FileRegion(path, 0, SIZE) if is_file else memoryview(DATA[:SIZE])
    with requests(device, path, host) as wanted:
        copies = host.calls("aclrtMemcpy") + host.calls("aclrtMemcpyAsync")
        for addr in (own.ctypes.data, 1, 1 << 63):
            with pytest.raises(ValueError, match=f"copy of {SIZE} B from the host to device 0: .* {addr:#x} is host"):
                upload(device, [*wanted, UploadRequest(source, addr)], buffers=buffers)
        with pytest.raises(ValueError, match="1000 B at device address 0xfffffffffffffc19, beyond 2"):
            upload(device, [*wanted, UploadRequest(source, 2**64 - 999)], buffers=buffers)
        assert host.calls("aclrtMemcpy") + host.calls("aclrtMemcpyAsync") == copies
    assert (own == 7).all()


@EVERY_WAY
@pytest.mark.parametrize("number", [1, 2, 7, COUNT])
def test_an_event_cancels_before_the_next_block(
    device: Device, path: Path, host: HostControls, buffers: int, workers: int, number: int
) -> None:
    cancel, reads = threading.Event(), 0

    class Counting(at_read(number, cancel.set)):  # type: ignore[misc]
        def read_into(self, offset: int, view: memoryview) -> int:
            nonlocal reads
            reads += 1
            return super().read_into(offset, view)

    settings = {"buffers": buffers, "workers": workers, "block_bytes": SIZE}
    with requests(device, path, host) as wanted:
        try:
            upload(device, wanted, cancel=cancel, open_file=Counting, **settings)
        except StateError as error:
            assert "cancelled after" in str(error)  # noqa: PT017 - the last block may be the end, too
        else:
            assert number == COUNT
    assert reads < number + workers


@EVERY_WAY
@pytest.mark.parametrize("number", [1, 2, 7, COUNT - 3])
def test_a_method_cancels_from_a_reader(
    device: Device, path: Path, host: HostControls, buffers: int, workers: int, number: int
) -> None:
    settings = {"buffers": buffers, "workers": workers, "block_bytes": SIZE}
    with requests(device, path, host) as wanted:
        run: Upload
        run = Upload(device, wanted, open_file=at_read(number, lambda: run.cancel()), **settings)
        with run, pytest.raises(StateError, match=r"cancelled after \d+ B of 60000 B"):
            run.wait()


@EVERY_WAY
@pytest.mark.parametrize("error", [StateError("mine"), ValueError("mine"), KeyboardInterrupt("mine")])
def test_an_observer_ends_it(
    device: Device, path: Path, host: HostControls, buffers: int, workers: int, error: BaseException
) -> None:
    def stop(done: int, total: int) -> None:
        raise error

    settings = {"buffers": buffers, "workers": workers, "block_bytes": SIZE}
    with requests(device, path, host) as wanted:
        with pytest.raises(type(error), match="mine"):
            upload(device, wanted, on_progress=stop, **settings)
        with Upload(device, wanted, on_progress=stop, **settings) as run, pytest.raises(type(error), match="mine"):
            list(run)


@EVERY_WAY
@pytest.mark.parametrize("how", ["break", "close", "raise", "cancel", "leave"])
def test_who_takes_tensors_ends_it(
    device: Device, path: Path, host: HostControls, buffers: int, workers: int, how: str
) -> None:
    with requests(device, path, host) as wanted:
        run = Upload(device, wanted, block_bytes=SIZE, buffers=buffers, workers=workers)
        try:
            with run:
                arrivals = iter(run)
                assert next(arrivals) in wanted
                if how == "close":
                    arrivals.close()  # type: ignore[attr-defined]
                    assert run.wait().size_bytes == len(DATA)
                elif how == "raise":
                    raise KeyError
                elif how == "cancel":
                    run.cancel()
                    list(arrivals)
                elif how == "break":
                    for _ in arrivals:
                        break
        except KeyError:
            assert how == "raise"
        except StateError as error:
            assert (how, "cancelled after" in str(error)) == ("cancel", True)  # noqa: PT017 - where it had not ended


@pytest.mark.parametrize("number", [1, 2, 3])
def test_threads_that_do_not_start(
    device: Device, path: Path, host: HostControls, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    start, calls = threading.Thread.start, 0

    def failing(thread: threading.Thread) -> None:
        nonlocal calls
        calls += thread.name == "gevar-upload"
        if calls == number:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", failing)
    with requests(device, path, host) as wanted:
        run = Upload(device, wanted, workers=4, block_bytes=SIZE)
        with pytest.raises(RuntimeError, match="can't start"):
            run.run()
        calls = 0
        with Upload(device, wanted, workers=4, block_bytes=SIZE) as run, pytest.raises(RuntimeError, match="can't"):
            list(run)


@EVERY_WAY
def test_an_interrupt_while_threads_start(
    device: Device, path: Path, host: HostControls, monkeypatch: pytest.MonkeyPatch, buffers: int, workers: int
) -> None:
    start, is_first = threading.Thread.start, True

    def interrupted(thread: threading.Thread) -> None:
        nonlocal is_first
        start(thread)
        if is_first and thread.name == "gevar-upload":
            is_first = False
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    settings = {"workers": workers, "buffers": buffers, "block_bytes": SIZE}
    with requests(device, path, host) as wanted:
        if workers > 1:
            with pytest.raises(KeyboardInterrupt):
                upload(device, wanted, **settings)
        is_first = True
        with pytest.raises(KeyboardInterrupt):
            Upload(device, wanted, **settings).__enter__()


@EVERY_WAY
def test_an_interrupt_while_threads_are_waited_for(
    device: Device, path: Path, host: HostControls, monkeypatch: pytest.MonkeyPatch, buffers: int, workers: int
) -> None:
    join, is_first, go_on = threading.Thread.join, True, threading.Event()

    def interrupted(thread: threading.Thread, timeout: float | None = None) -> None:
        nonlocal is_first
        go_on.set()
        if is_first and thread.name == "gevar-upload":
            is_first = False
            raise KeyboardInterrupt
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with requests(device, path, host) as wanted:
        run = Upload(
            device,
            wanted,
            block_bytes=SIZE,
            buffers=buffers,
            workers=workers,
            open_file=at_read(2, lambda: go_on.wait(30)),
        )
        with pytest.raises(KeyboardInterrupt), run:
            pass
