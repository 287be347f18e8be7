"""Bytes of weights before they are on a device: regions, memory and streams look alike."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gevar.errors import LoadError
from gevar.om.regular_file import file_state
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import StreamedBytes
from gevar.session.equal_weights import _same_bytes
from gevar.session.weight_content import (
    HEAD_BYTES,
    WeightContent,
    content_bytes,
    content_chunks,
    content_of,
    head_digest,
    slice_of,
)
from gevar.weights import FileRegion, WeightFile

SIZES = (1, 1000, HEAD_BYTES - 1, HEAD_BYTES, HEAD_BYTES + 1, 3 * HEAD_BYTES + 7)


def data_of(size: int) -> bytes:
    return (bytes(range(251)) * (size // 251 + 1))[:size]


def contents(folder: Path, data: bytes) -> list[WeightContent]:
    """The same bytes in each form; the stream comes in chunks of an odd size."""
    path = folder / "w.bin"
    path.write_bytes(b"before" + data + b"behind")

    def read() -> Iterator[bytes]:
        yield from (data[at : at + 70_001] for at in range(0, len(data), 70_001))

    region = FileRegion(path, 6, len(data), file_state(path.stat()))
    return [region, memoryview(data), StreamedBytes(len(data), read)]


@pytest.mark.parametrize("size", SIZES)
def test_every_form_has_the_same_bytes_and_digest(tmp_path: Path, size: int) -> None:
    data = data_of(size)
    found = contents(tmp_path, data)
    assert {content_bytes(content) for content in found} == {size}
    assert {b"".join(bytes(chunk) for chunk in content_chunks(content)) for content in found} == {data}
    assert len({head_digest(content) for content in found}) == 1
    changed = contents(tmp_path, bytes([data[0] ^ 1]) + data[1:])
    assert head_digest(changed[1]) != head_digest(memoryview(data))


def test_only_the_head_counts_for_the_digest() -> None:
    data = bytearray(data_of(2 * HEAD_BYTES))
    before = head_digest(memoryview(bytes(data)))
    data[HEAD_BYTES] ^= 1
    assert head_digest(memoryview(bytes(data))) == before
    data[HEAD_BYTES - 1] ^= 1
    assert head_digest(memoryview(bytes(data))) != before


def test_streams_in_any_chunks_are_compared() -> None:
    def chunks(*sizes: int, data: bytes = data_of(100)) -> Iterator[memoryview]:
        at = 0
        for size in sizes:
            yield memoryview(data)[at : at + size]
            at += size

    assert _same_bytes(chunks(1, 99), chunks(50, 25, 25))
    assert _same_bytes(chunks(), chunks())
    assert not _same_bytes(chunks(1, 98), chunks(100))
    assert not _same_bytes(chunks(100), chunks(99))
    assert not _same_bytes(chunks(60, 40), chunks(30, 70, data=data_of(99) + b"\xff"))


def test_what_bytes_are_known_by(tmp_path: Path) -> None:
    region, memory, stream = contents(tmp_path, data_of(100))
    assert isinstance(region, FileRegion)
    assert region.state is not None
    file = WeightFile(tmp_path / "archive.npz", region.state)
    plain = slice_of(region, file, "a")
    assert (plain.file, plain.offset, plain.size_bytes, plain.name) == (
        WeightFile(region.path, region.state),
        6,
        100,
        "",
    )
    assert slice_of(stream, file, "a") == slice_of(memory, file, "a") != slice_of(stream, file, "b")
    assert slice_of(stream, file, "a").file == file
    assert slice_of(memory, None, "a") != slice_of(memory, None, "a")  # nothing says where it is from


def test_a_file_is_looked_up_by_its_real_name(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(data_of(100))
    (tmp_path / "link").symlink_to("w.bin")
    paths: dict[str, Path] = {}
    source = ByteSource.of_file(tmp_path / "link")
    inner = source.range(10, 50, "part")
    found = content_of(StreamedBytes.of_source(inner, 5, 20, "w"), paths)
    assert found == FileRegion(tmp_path.resolve() / "w.bin", 15, 20, source.state)
    assert paths == {str(tmp_path / "link"): tmp_path.resolve() / "w.bin"}
    source.close()
    memory = StreamedBytes.of_source(ByteSource.of_bytes(b"1234", "m"), 1, 2, "w")
    assert content_of(memory, paths) is memory


def test_a_file_that_was_replaced_is_not_read(tmp_path: Path) -> None:
    region, *_ = contents(tmp_path, data_of(100))
    (tmp_path / "other").write_bytes(data_of(112))
    (tmp_path / "other").rename(tmp_path / "w.bin")
    with pytest.raises(LoadError, match="changed since it was looked at"):
        head_digest(region)
