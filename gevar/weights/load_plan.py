"""The order in which an upload reads: requests sorted by place, equal regions read once, neighbours in one block.

A block is read at once, and holds pieces of one region or of many; a run is a row of blocks that one reader takes. The
plan is made while it is carried out: what is in memory beside the requests is one run for each reader.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

from gevar.weights.file_region import FileRegion, UploadRequest

_GAP_BYTES: Final = 16 << 10  # reading over a gap of this size costs less than another call
_RUN_BLOCKS: Final = 8


class Copy(NamedTuple):
    """Bytes of a block that go to one address: request that names the device, place in the block, size, address."""

    request: int
    start: int
    size_bytes: int
    dev_addr: int


class Part(NamedTuple):
    """Bytes of a block that belong to requests: their numbers, place in the block, size."""

    requests: tuple[int, ...]
    start: int
    size_bytes: int


class Block(NamedTuple):
    """Bytes that are read at once: place in the file, size, and what becomes of them."""

    offset: int
    size_bytes: int
    copies: list[Copy]
    parts: list[Part]


class Run(NamedTuple):
    """Blocks that one reader takes in order; `path` is None for a request that is a buffer."""

    path: Path | None
    blocks: list[Block]


def is_one_stretch(blocks: Sequence[Block]) -> bool:
    """Tell whether blocks follow each other in the file, and all their bytes on one device."""
    if any(len(block.copies) != 1 or block.copies[0].size_bytes != block.size_bytes for block in blocks):
        return False
    first, shift = blocks[0].copies[0], blocks[0].copies[0].dev_addr - blocks[0].offset
    ends = (block.offset + block.size_bytes for block in blocks)
    return all(
        block.offset == end
        and block.copies[0].dev_addr - block.offset == shift
        and block.copies[0].request == first.request
        for block, end in zip(blocks[1:], ends, strict=False)
    )


_Region = tuple[int, int, tuple[int, ...]]


def plan(requests: Sequence[UploadRequest], block_bytes: int) -> Iterator[Run]:
    """Cut requests into runs; a region with a digest is never cut by the end of a run."""
    by_path: dict[Path, list[tuple[int, int, int]]] = {}
    for number, request in enumerate(requests):
        source = request.source
        if isinstance(source, FileRegion):
            if source.size_bytes:
                by_path.setdefault(source.path, []).append((source.offset, source.size_bytes, number))
        elif source.nbytes:
            yield from _buffer_runs(number, request, block_bytes)
    for path, places in by_path.items():
        places.sort()
        regions = ((*key, tuple(number for *_, number in same)) for key, same in groupby(places, itemgetter(0, 1)))
        yield from _file_runs(path, regions, requests, block_bytes)


def _buffer_runs(number: int, request: UploadRequest, block_bytes: int) -> Iterator[Run]:
    for done in range(0, request.size_bytes, block_bytes * _RUN_BLOCKS):
        size = min(block_bytes * _RUN_BLOCKS, request.size_bytes - done)
        copies, parts = [Copy(number, 0, size, request.dev_addr + done)], [Part((number,), 0, size)]
        yield Run(None, [Block(done, size, copies, parts)])


def _file_runs(
    path: Path, regions: Iterator[_Region], requests: Sequence[UploadRequest], block_bytes: int
) -> Iterator[Run]:
    run: list[Block] = []
    for block, may_end in _blocks(regions, requests, block_bytes):
        run.append(block)
        if may_end and len(run) >= _RUN_BLOCKS:
            yield Run(path, run)
            run = []
    if run:
        yield Run(path, run)


def _blocks(
    regions: Iterator[_Region], requests: Sequence[UploadRequest], block_bytes: int
) -> Iterator[tuple[Block, bool]]:
    """Cut regions into blocks; with each, whether a run may end after it."""
    start = end = 0
    copies: list[Copy] = []
    parts: list[Part] = []
    for offset, size_bytes, numbers in regions:
        done, has_digest = 0, any(requests[number].digest is not None for number in numbers)
        while done < size_bytes:
            place = offset + done
            if parts and (place < start or place > end + _GAP_BYTES or place >= start + block_bytes):
                yield Block(start, end - start, copies, parts), not (done and has_digest)
                copies, parts = [], []
            if not parts:
                start = end = place
            size = min(size_bytes - done, start + block_bytes - place)
            parts.append(Part(numbers, place - start, size))
            for number in numbers:
                _add_copy(copies, requests, Copy(number, place - start, size, requests[number].dev_addr + done))
            done += size
            end = max(end, place + size)
    if parts:
        yield Block(start, end - start, copies, parts), True


def _add_copy(copies: list[Copy], requests: Sequence[UploadRequest], new: Copy) -> None:
    """Add a copy, as a part of the last one where it goes on on both sides."""
    if copies:
        last = copies[-1]
        size = last.size_bytes
        if (
            new.dev_addr == last.dev_addr + size
            and new.start == last.start + size
            and requests[new.request].device is requests[last.request].device
        ):
            copies[-1] = Copy(last.request, last.start, size + new.size_bytes, last.dev_addr)
            return
    copies.append(new)
