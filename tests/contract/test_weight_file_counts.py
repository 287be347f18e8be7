"""More files of weights than a process may have open."""

import errno
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from acl_shim import Device, Runtime
from gevar import Session, load_model
from gevar.errors import LoadError, ModelFileError
from gevar.om import OmBuilder
from gevar.om.regular_file import file_state
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import read_all
from gevar.session.weight_sources import open_weights
from gevar.weights import FileRegion, PreadReader, Upload, UploadRequest
from gevar.weights.file_reader import ReopeningReader
from tests.helpers.open_files import open_files

FILES = 60


@pytest.fixture
def model(tmp_path: Path) -> Path:
    builder = OmBuilder("net")
    for number in range(FILES):
        builder.output(builder.const(f"c{number}", np.full(5, number, np.float32)))
    builder.write(tmp_path / "m.om", external_weight=1)
    return tmp_path / "m.om"


@contextmanager
def few_files(more: int) -> Iterator[None]:
    """Let the process open only so many files more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = {int(path.name) for path in Path("/proc/self/fd").iterdir()}
    free = (number for number in range(soft) if number not in used)
    resource.setrlimit(resource.RLIMIT_NOFILE, (list(islice(free, more + 1))[more], hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def number_of(name: str) -> int:
    return int(name.partition("_")[0][1:])


def test_a_model_is_loaded(runtime: Runtime, model: Path) -> None:
    with Session(runtime) as session, few_files(FILES // 2):
        with load_model(model, session=session) as loaded:
            for row in loaded.rows:
                assert loaded.read(row.name).tolist() == [number_of(row.name)] * 5
            assert loaded.verify(model).differences == ()
            assert loaded.verify(model).tensors == FILES
        assert session.memory_manager.counts.live_blocks == 0


def test_uploads_by_several_threads(device: Device, tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(FILES)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]) * 10)
    together = threading.Barrier(3)

    class Slow(PreadReader):
        def __init__(self, path: Path, past_cache: bool = False) -> None:
            time.sleep(0.001)  # the others open theirs meanwhile, if they may
            super().__init__(path, past_cache)

    def load() -> bytes:
        with device.malloc(FILES * 10) as buffer:
            requests = [UploadRequest(FileRegion(path, 0, 10), buffer.addr + n * 10) for n, path in enumerate(paths)]
            with Upload(device, requests, workers=2, open_file=Slow) as run:
                together.wait(60)  # all of them have their files open
                run.wait()
            return bytes(buffer.read())

    with ThreadPoolExecutor(3) as threads, few_files(FILES):
        found = [future.result() for future in [threads.submit(load) for _ in range(3)]]
    assert found == [b"".join(path.read_bytes() for path in paths)] * 3


def test_weights_are_taken_out(model: Path) -> None:
    with few_files(FILES // 3), open_weights(model) as source:
        found = {tensor.name: np.frombuffer(read_all(tensor.data), np.float32) for tensor in source.tensors()}
    assert {name: array.tolist() for name, array in found.items()} == {f"c{n}": [n] * 5 for n in range(FILES)}


# --- a file that is open only while it is read ------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "w.bin").write_bytes(bytes(range(100)))
    return tmp_path / "w.bin"


def replace(path: Path) -> None:
    path.with_suffix(".new").write_bytes(bytes(100))
    path.with_suffix(".new").rename(path)


CHANGES: tuple[Callable[[Path], None], ...] = (replace, Path.unlink, lambda path: os.truncate(path, 50))


def test_a_reader_that_opens_its_file_again(path: Path) -> None:
    opened = open_files()
    reader, plain = ReopeningReader(path, False, PreadReader), PreadReader(path)
    assert (reader.align_bytes, reader.mode, reader.state) == (plain.align_bytes, plain.mode, plain.state)
    assert reader.descriptor is None
    plain.close()
    found = bytearray(30)
    assert reader.read_into(80, memoryview(found)) == 20
    assert found == bytes(range(80, 100)) + bytes(10)
    assert reader.read_into(100, memoryview(found)) == 0
    assert reader.change() == ""
    reader.close()
    assert open_files() == opened


@pytest.mark.parametrize("change", CHANGES)
def test_a_reader_whose_file_changed(path: Path, change: Callable[[Path], None]) -> None:
    reader = ReopeningReader(path, False, PreadReader)
    change(path)
    opened = open_files()
    with pytest.raises(OSError, match=r"changed while it was read|No such file") as caught:
        reader.read_into(0, memoryview(bytearray(10)))
    assert caught.value.errno in (errno.ESTALE, errno.ENOENT)
    assert "while it was read" in reader.change()
    assert open_files() == opened
    with pytest.raises(FileNotFoundError):
        ReopeningReader(path.with_name("none"), False, PreadReader)


@pytest.mark.parametrize("change", CHANGES)
def test_a_source_that_opens_its_file_again(path: Path, change: Callable[[Path], None]) -> None:
    opened = open_files()
    source = ByteSource.of_known_file(path, file_state(path.stat()))
    assert (source.size_bytes, source.name, source.state) == (100, str(path), file_state(path.stat()))
    assert source.read(90, 10, "end") == bytes(range(90, 100))
    assert source.range(10, 20, "part").view(5, 2, "some").tobytes() == b"\x0f\x10"
    with pytest.raises(ModelFileError, match="do not lie inside"):
        source.read(91, 10, "end")
    change(path)
    for read in (source.read, source.view):
        with pytest.raises(ModelFileError, match=r"changed since it was looked at|cannot be opened"):
            read(0, 10, "start")
    source.close()
    assert open_files() <= opened + 1  # the map of the view


def test_a_load_of_many_files_of_which_one_changes(runtime: Runtime, model: Path) -> None:
    opened: set[Path] = set()

    def open_file(path: Path, past_cache: bool) -> PreadReader:
        if path in opened:  # again, to read it
            path.write_bytes(bytes(20))
        opened.add(path)
        return PreadReader(path, past_cache)

    with Session(runtime) as session, few_files(FILES // 2):
        with pytest.raises(LoadError, match="changed while it was read"):
            load_model(model, session=session, open_file=open_file)
        assert session.memory_manager.counts.live_blocks == 0
