"""Bytes that go into a file later: in memory, read in chunks from where they lie, or zeros that nobody writes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

import xxhash

from gevar.om.source import ByteSource

CHUNK_BYTES: Final = 4 << 20
"""Most bytes of a streamed value that are in memory at a time."""


@dataclass(frozen=True, slots=True)
class SparseBytes:
    """Zero bytes that nobody writes: they become a hole in the file.

    Each has a place of its own in the file: they are not merged, though they are equal.
    """

    nbytes: int


@dataclass(frozen=True, slots=True)
class StreamedBytes:
    """Bytes that are read when they are needed, each time anew, and never lie in memory as a whole.

    Attributes
    ----------
    nbytes
        How many there are.
    open
        Starts reading: yields all of them in chunks of `CHUNK_BYTES`, the last one shorter.
    source, offset
        Where they lie one after the other as they are; no source where they are made while they are read.
    """

    nbytes: int
    open: Callable[[], Iterator[bytes]]
    source: ByteSource | None = None
    offset: int = 0

    @classmethod
    def of_source(cls, source: ByteSource, offset: int, size_bytes: int, what: str) -> "StreamedBytes":
        """Return a range of a file or buffer, which must stay open until it was written; `what` names it in errors."""

        def read() -> Iterator[bytes]:
            for start in range(offset, offset + size_bytes, CHUNK_BYTES):
                yield source.read(start, min(CHUNK_BYTES, offset + size_bytes - start), what)

        return cls(size_bytes, read, source, offset)


Content = memoryview | StreamedBytes
"""Bytes with a value of their own: all but zeros that nobody writes."""


def chunks_of(data: Content) -> Iterator[memoryview]:
    """Yield bytes in chunks of `CHUNK_BYTES`, the last one shorter.

    Raises
    ------
    OSError, ModelFileError
        They cannot be read.
    ValueError
        There are more or fewer than was said.
    """
    if isinstance(data, memoryview):
        yield from (data[start : start + CHUNK_BYTES] for start in range(0, data.nbytes, CHUNK_BYTES))
        return
    done = 0
    for chunk in data.open():
        done += len(chunk)
        if done > data.nbytes:
            break
        yield memoryview(chunk)
    if done != data.nbytes:
        raise ValueError(f"{data.nbytes} B were to be read, {done} B came; do not change the source")


def write_all(data: Content, file: BinaryIO) -> None:
    """Write bytes to a file; errors are those of `chunks_of`, and OSError of the file."""
    for chunk in chunks_of(data):
        file.write(chunk)


def read_all(data: Content) -> bytes:
    """Return bytes as a whole; errors are those of `chunks_of`."""
    return bytes(data) if isinstance(data, memoryview) else b"".join(chunks_of(data))


def digest_of(data: Content) -> bytes:
    """Return the xxh3 digest of 128 bits; errors are those of `chunks_of`."""
    digest = xxhash.xxh3_128()
    for chunk in chunks_of(data):
        digest.update(chunk)
    return digest.digest()


def are_equal(first: Content, second: Content) -> bool:
    """Compare two values byte by byte; errors are those of `chunks_of`."""
    if first.nbytes != second.nbytes:
        return False
    return all(one == other for one, other in zip(chunks_of(first), chunks_of(second), strict=True))


@dataclass(frozen=True, slots=True)
class Blob:
    """A range of a file to be: `pieces` are (offset, bytes); what none covers is zeros, of two the later one counts."""

    size_bytes: int
    pieces: Sequence[tuple[int, Content]]

    @classmethod
    def of(cls, data: bytes | Content) -> "Blob":
        """Return a range that holds just these bytes."""
        content = memoryview(data) if isinstance(data, bytes) else data
        return cls(content.nbytes, [(0, content)] if content.nbytes else [])

    @classmethod
    def joined(cls, blobs: Iterable["Blob"]) -> "Blob":
        """Return ranges back to back."""
        pieces, size_bytes = [], 0
        for blob in blobs:
            pieces += [(size_bytes + offset, data) for offset, data in blob.pieces]
            size_bytes += blob.size_bytes
        return cls(size_bytes, pieces)

    def write_to(self, file: BinaryIO) -> None:
        """Write the range to an empty file; errors are those of `chunks_of`, and OSError of the file."""
        for offset, data in self.pieces:
            file.seek(offset)
            write_all(data, file)
        file.truncate(self.size_bytes)

    def read(self) -> bytes:
        """Return the range as bytes in memory; errors are those of `chunks_of`."""
        found = bytearray(self.size_bytes)
        for offset, data in self.pieces:
            found[offset : offset + data.nbytes] = read_all(data)
        return bytes(found)
