"""Bytes on their way into a file, and files that appear complete or not at all."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
import xxhash

from gevar.errors import ModelFileError, StateError
from gevar.om.atomic_file import write_atomically
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import CHUNK_BYTES, Blob, StreamedBytes, are_equal, chunks_of, digest_of, read_all


def stream(*chunks: bytes, size: int | None = None) -> StreamedBytes:
    def read() -> Iterator[bytes]:
        yield from chunks

    return StreamedBytes(sum(map(len, chunks)) if size is None else size, read)


def test_chunks_of_memory_and_of_a_source_are_alike() -> None:
    data = bytes(index % 251 for index in range(2 * CHUNK_BYTES + 5))
    source = ByteSource.of_bytes(b"ab" + data + b"c", "bytes")
    streamed = StreamedBytes.of_source(source, 2, len(data), "data")
    sizes = [CHUNK_BYTES, CHUNK_BYTES, 5]
    assert [len(chunk) for chunk in chunks_of(memoryview(data))] == sizes
    assert [len(chunk) for chunk in chunks_of(streamed)] == sizes
    assert read_all(streamed) == read_all(memoryview(data)) == data
    assert digest_of(streamed) == digest_of(memoryview(data)) == xxhash.xxh3_128_digest(data)
    assert are_equal(streamed, memoryview(data))
    assert not are_equal(streamed, memoryview(data[:-1]))
    assert not are_equal(streamed, memoryview(data[:-1] + b"\xff"))


def test_a_stream_may_be_read_again() -> None:
    data = stream(b"abc", b"d")
    assert read_all(data) == read_all(data) == b"abcd"
    assert read_all(stream()) == b""


@pytest.mark.parametrize(("size", "came"), [(5, 4), (3, 4), (0, 2)])
def test_a_stream_of_another_length_is_refused(size: int, came: int) -> None:
    with pytest.raises(ValueError, match=f"{size} B were to be read, {came} B came"):
        read_all(stream(b"ab", b"cd", size=size))


def test_a_file_that_was_cut_or_closed(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"x" * 100)
    source = ByteSource.of_file(path)
    data = StreamedBytes.of_source(source, 0, 100, "data")
    path.write_bytes(b"x" * 50)
    with pytest.raises(ModelFileError, match="was cut"):
        read_all(data)
    source.close()
    with pytest.raises(StateError):
        read_all(data)


def test_blobs_are_joined_and_written_with_holes() -> None:
    hole = Blob(1000, [(10, memoryview(b"abc")), (500, stream(b"de", b"f"))])
    joined = Blob.joined([Blob.of(b"head"), hole, Blob.of(b""), Blob.of(b"tail")])
    assert joined.size_bytes == 1008
    assert [offset for offset, _ in joined.pieces] == [0, 14, 504, 1004]
    expected = b"head" + bytes(10) + b"abc" + bytes(487) + b"def" + bytes(497) + b"tail"
    assert joined.read() == expected
    file = io.BytesIO()
    joined.write_to(file)
    assert file.getvalue().ljust(1008, b"\0") == expected


def test_a_blob_that_ends_in_a_hole(tmp_path: Path) -> None:
    path = tmp_path / "hole"
    write_atomically(path, Blob(1 << 30, [(5, memoryview(b"x"))]).write_to)
    assert path.stat().st_size == 1 << 30
    assert path.stat().st_blocks * 512 < 1 << 20


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    seen = []

    def write(file: BinaryIO) -> None:
        file.write(b"new")
        seen.append(path.read_bytes())

    write_atomically(path, write, before_naming=lambda: seen.append(path.read_bytes()))
    assert seen == [b"old", b"old"]
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("step", ["write", "before_naming", "naming"])
def test_a_failure_leaves_the_old_file(tmp_path: Path, step: str) -> None:
    path = tmp_path / "file"
    if step == "naming":
        path.mkdir()
    else:
        path.write_bytes(b"old")

    def fails(*_: object) -> None:
        raise OSError("no space")

    def works(*_: object) -> None:
        pass

    with pytest.raises(OSError, match=r"no space|directory"):
        write_atomically(
            path, fails if step == "write" else works, before_naming=fails if step == "before_naming" else None
        )
    assert list(tmp_path.iterdir()) == [path]
    assert path.is_dir() or path.read_bytes() == b"old"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"the folder to write to is not there: .*no/file"):
        write_atomically(tmp_path / "no" / "file", lambda file: None)
