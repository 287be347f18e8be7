"""Reading bytes of a file or a buffer: ranges, files that change, closing."""

import os
from pathlib import Path

import pytest

from gevar.errors import ModelFileError, StateError
from gevar.om.source import ByteSource
from tests.helpers.open_files import open_files

DATA = bytes(range(200))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "model#.om"
    file.write_bytes(DATA)
    return file


@pytest.fixture(params=["file", "bytes", "bytearray", "memoryview"])
def any_source(request: pytest.FixtureRequest, path: Path) -> ByteSource:
    if request.param == "file":
        return ByteSource.of_file(path)
    buffer = {"bytes": DATA, "bytearray": bytearray(DATA), "memoryview": memoryview(DATA)}[request.param]
    return ByteSource.of_bytes(buffer, "name")


def test_read_and_view(any_source: ByteSource) -> None:
    assert any_source.size_bytes == len(DATA)
    assert any_source.read(0, 200, "x") == DATA
    assert any_source.read(200, 0, "x") == b""
    view = any_source.view(10, 5, "x")
    assert view == DATA[10:15]
    assert view.readonly


def test_range_counts_from_its_start(any_source: ByteSource) -> None:
    part = any_source.range(50, 100, "part").range(10, 20, "part")
    assert part.base == 60
    assert part.read(1, 3, "x") == DATA[61:64]
    assert part.view(0, 20, "x") == DATA[60:80]


@pytest.mark.parametrize(("offset", "size"), [(-1, 2), (0, -1), (0, 101), (101, 0), (100, 1), (2**64, 1)])
def test_outside_the_range(any_source: ByteSource, offset: int, size: int) -> None:
    part = any_source.range(50, 100, "part")
    for call in (part.read, part.view, part.range):
        with pytest.raises(ModelFileError) as caught:
            call(offset, size, "thing")
        assert caught.value.field == "thing"
        assert caught.value.offset == 50 + max(offset, 0)


def test_errors_name_the_place_in_the_whole_file(any_source: ByteSource) -> None:
    error = any_source.range(50, 10, "part").error(3, "field", "reason")
    assert (error.file, error.offset, error.field, error.reason) == (any_source.name, 53, "field", "reason")


def test_buffer_is_not_copied() -> None:
    buffer = bytearray(DATA)
    view = ByteSource.of_bytes(buffer, "name").view(0, 3, "x")
    buffer[1] = 99
    assert view[1] == 99


def test_file_is_named_by_its_path(path: Path) -> None:
    assert ByteSource.of_file(path).name == str(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"cannot be opened: .*No such file") as caught:
        ByteSource.of_file(tmp_path / "none.om")
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_path_with_nul() -> None:
    with pytest.raises(ModelFileError, match="cannot be opened"):
        ByteSource.of_file("a\0b")


def test_only_regular_files(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    before = open_files()
    for path in (tmp_path, fifo, Path("/dev/zero")):
        with pytest.raises(ModelFileError, match="not a regular file"):
            ByteSource.of_file(path)
    assert open_files() == before


def test_file_that_is_cut_while_read(path: Path) -> None:
    source = ByteSource.of_file(path)
    os.truncate(path, 120)
    assert source.read(0, 120, "x") == DATA[:120]
    with pytest.raises(ModelFileError, match="was cut from 200 B to 120 B") as caught:
        source.read(100, 50, "x")
    assert caught.value.offset == 120
    for size in (50, 20):  # no view at all of a file that is being cut
        with pytest.raises(ModelFileError, match="was cut from 200 B to 120 B"):
            source.view(100, size, "x")


def test_file_that_is_cut_after_the_map_was_made(path: Path) -> None:
    source = ByteSource.of_file(path)
    assert source.view(0, 1, "x") == DATA[:1]
    os.truncate(path, 0)
    with pytest.raises(ModelFileError, match="to 0 B"):
        source.view(0, 1, "x")


def test_close(path: Path) -> None:
    before = open_files()
    source = ByteSource.of_file(path)
    part = source.range(10, 10, "part")
    view = part.view(0, 10, "x")
    source.close()
    source.close()
    for call in (part.read, part.view):
        with pytest.raises(StateError, match="was closed"):
            call(0, 1, "x")
    assert view == DATA[10:20]  # the map lives as long as its views
    del view
    assert open_files() == before


def test_dropping_closes(path: Path) -> None:
    before = open_files()
    source = ByteSource.of_file(path)
    assert open_files() == before + 1
    del source
    assert open_files() == before


def test_closing_a_buffer_does_nothing() -> None:
    source = ByteSource.of_bytes(DATA, "name")
    source.close()
    assert source.read(0, 2, "x") == DATA[:2]
