"""The order in which an upload reads: requests sorted by place, each byte read once, neighbours in one block.

Requests that lie close to each other are a stretch; stretches are cut into blocks, which are read at once. What a
request has in one block is a part, and parts that go on in the block and on the device are one copy. All of it is made
by arrays, so that a request costs no step of the interpreter.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gevar.weights.upload_arrays import Int64Array, UInt64Array, UploadArrays

_GAP_BYTES: Final = 16 << 10  # reading over a gap of this size costs less than another call
_GAP_SHARE: Final = 8  # no gap fills more than this part of a block
_MOST_RUN_BLOCKS: Final = 32
_LEAST_RUN_BYTES: Final = 1 << 20  # shorter ones cost more turns than they even out
_RUNS_LEFT: Final = 2  # for each reader; runs grow shorter to the end, so that the readers end together


@dataclass(frozen=True, slots=True)
class Run:
    """Blocks ``first`` to before ``end``, which one reader takes in order, of one source."""

    source: int
    first: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class LoadPlan:
    """Blocks, and what becomes of their bytes; all arrays are in the order of the blocks.

    Attributes
    ----------
    blocks : numpy.ndarray of uint64
        A row for each block: first byte in the source, bytes, number of its copies.
    source : numpy.ndarray of int64
        Number of the source of each block.
    copies : numpy.ndarray of uint64
        A row for each copy: address on the device, first byte in the block, bytes.
    copy_device : numpy.ndarray of int64
        Number of the device of each copy.
    first_copy, first_part : numpy.ndarray of int64
        Where the copies and parts of each block begin; one more value than blocks.
    part_request, part_start, part_bytes : numpy.ndarray of int64
        For each part its request, first byte in the block, and bytes.
    bytes_before : numpy.ndarray of int64
        Bytes of all parts before each; one more value than parts.
    ends : numpy.ndarray of int64
        Blocks after which a run may end, rising: not within a region that has a digest.
    least_run : int
        How many blocks a run has at least, where they are in the page cache.
    """

    blocks: UInt64Array
    source: Int64Array
    copies: UInt64Array
    copy_device: Int64Array
    first_copy: Int64Array
    first_part: Int64Array
    part_request: Int64Array
    part_start: Int64Array
    part_bytes: Int64Array
    bytes_before: Int64Array
    ends: Int64Array
    least_run: int

    @property
    def largest_block(self) -> int:
        """Bytes of the largest block; 0 without any."""
        return int(self.blocks[:, 1].max(initial=0))

    def run(self, first: int, workers: int, is_single: bool) -> Run | None:
        """Return the run from a block on, of one block or of as many as suit so many readers; None behind the last."""
        left = len(self.blocks) - first
        if left <= 0:
            return None
        wanted = 1 if is_single else min(max(left // (workers * _RUNS_LEFT), self.least_run), _MOST_RUN_BLOCKS)
        source = int(self.source[first])
        last = min(first + wanted, int(self.source.searchsorted(source, "right"))) - 1
        return Run(source, first, int(self.ends[self.ends.searchsorted(last)]) + 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Sorted:
    """Requests that have bytes, by source and place."""

    request: Int64Array
    source: Int64Array
    offset: Int64Array
    end: Int64Array
    top: Int64Array  # largest end of this request and those before it in the source

    @classmethod
    def of(cls, arrays: UploadArrays) -> "_Sorted":
        """Sort requests."""
        request = np.flatnonzero(arrays.size_bytes)
        source, offset = arrays.source[request], arrays.offset[request]
        if not _rises(source, offset):
            order = np.lexsort((offset, source))
            request, source, offset = request[order], source[order], offset[order]
        end = offset + arrays.size_bytes[request]
        return cls(request, source, offset, end, _running_top(source, end))

    @property
    def is_disjoint(self) -> bool:
        """Whether no byte belongs to two requests."""
        return bool(np.all((self.source[1:] != self.source[:-1]) | (self.offset[1:] >= self.top[:-1])))

    def begins(self, gap_bytes: int) -> NDArray[np.bool_]:
        """Tell which requests begin a stretch."""
        begins = np.ones(len(self.request), np.bool_)
        begins[1:] = (self.source[1:] != self.source[:-1]) | (self.offset[1:] - gap_bytes > self.top[:-1])
        return begins


def _rises(major: Int64Array, minor: Int64Array) -> bool:
    """Tell whether pairs are sorted."""
    same = major[1:] == major[:-1]
    return bool(np.all((major[1:] > major[:-1]) | (same & (minor[1:] >= minor[:-1]))))


def _running_top(source: Int64Array, end: Int64Array) -> Int64Array:
    """Return the largest end so far within each source: by ranks, which rise from source to source."""
    if _rises(source, end):
        return end
    order = np.lexsort((end, source))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return end[order[np.maximum.accumulate(rank)]]


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """Stretches cut into blocks, and in which of them each request begins and ends."""

    source: Int64Array
    offset: Int64Array
    size_bytes: Int64Array
    first_of: Int64Array
    last_of: Int64Array

    @classmethod
    def of(cls, regions: _Sorted, block_bytes: int) -> "_Blocks":
        """Cut sorted requests."""
        begins = regions.begins(min(_GAP_BYTES, block_bytes // _GAP_SHARE))
        first = np.flatnonzero(begins)
        start, stop = regions.offset[first], regions.top[np.append(first, len(begins))[1:] - 1]
        counts = -(-(stop - start) // block_bytes)
        offset = np.repeat(start, counts) + _numbers_within(counts) * block_bytes
        size = np.minimum(np.repeat(stop, counts) - offset, block_bytes)
        stretch = np.cumsum(begins) - 1
        before = (np.cumsum(counts) - counts)[stretch]
        first_of = before + (regions.offset - start[stretch]) // block_bytes
        last_of = before + (regions.end - 1 - start[stretch]) // block_bytes
        return cls(np.repeat(regions.source[first], counts), offset, size, first_of, last_of)


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """What requests have in blocks, in the order of the blocks.

    Where bytes go to several places, those of a block are in the order of devices and addresses, so that neighbours
    there are found although others lie between them in the file.
    """

    block: Int64Array
    request: Int64Array
    start: Int64Array
    size_bytes: Int64Array
    dev_addr: UInt64Array
    device: Int64Array

    @classmethod
    def of(cls, arrays: UploadArrays, regions: _Sorted, blocks: _Blocks) -> "_Parts":
        """Cut requests at the ends of blocks."""
        counts = blocks.last_of - blocks.first_of + 1
        region: Int64Array | slice = slice(None)
        block = blocks.first_of
        if (counts > 1).any():
            region = np.repeat(np.arange(len(counts)), counts)
            block = block[region] + _numbers_within(counts)
        base, offset, request = blocks.offset[block], regions.offset[region], regions.request[region]
        start = np.maximum(offset - base, 0)
        size = np.minimum(regions.end[region] - base, blocks.size_bytes[block]) - start
        dev_addr = arrays.dev_addr[request] + (base + start - offset).astype(np.uint64)
        device = np.zeros_like(request) if arrays.device is None else arrays.device[request]
        if regions.is_disjoint and len(arrays.devices) <= 1:
            return cls(block, request, start, size, dev_addr, device)
        order = np.lexsort((dev_addr, device, block))
        return cls(block[order], request[order], start[order], size[order], dev_addr[order], device[order])

    def begins_copy(self) -> NDArray[np.bool_]:
        """Tell which parts do not go on from the one before in block and device memory."""
        begins = np.ones(len(self.block), np.bool_)
        sizes = self.size_bytes[:-1]
        begins[1:] = (
            (self.block[1:] != self.block[:-1])
            | (self.device[1:] != self.device[:-1])
            | (self.start[1:] != self.start[:-1] + sizes)
            | (self.dev_addr[1:] != self.dev_addr[:-1] + sizes.astype(np.uint64))
        )
        return begins


def plan(arrays: UploadArrays, block_bytes: int) -> LoadPlan:
    """Make the plan of an upload.

    Parameters
    ----------
    arrays
        The requests.
    block_bytes
        Largest block.
    """
    regions = _Sorted.of(arrays)
    blocks = _Blocks.of(regions, block_bytes)
    parts = _Parts.of(arrays, regions, blocks)
    count = len(blocks.offset)
    copy = np.flatnonzero(parts.begins_copy())
    copy_bytes = np.add.reduceat(parts.size_bytes, copy) if len(copy) else parts.size_bytes
    copies_of_block = np.bincount(parts.block[copy], minlength=count)
    return LoadPlan(
        blocks=_rows(blocks.offset, blocks.size_bytes, copies_of_block),
        source=blocks.source,
        copies=_rows(parts.dev_addr[copy], parts.start[copy], copy_bytes),
        copy_device=parts.device[copy],
        first_copy=_starts(copies_of_block),
        first_part=_starts(np.bincount(parts.block, minlength=count)),
        part_request=parts.request,
        part_start=parts.start,
        part_bytes=parts.size_bytes,
        bytes_before=_starts(parts.size_bytes),
        ends=_run_ends(arrays, regions, blocks),
        least_run=max(_LEAST_RUN_BYTES // block_bytes, 1),
    )


def _run_ends(arrays: UploadArrays, regions: _Sorted, blocks: _Blocks) -> Int64Array:
    """Return the blocks after which a run may end: no request with a digest goes on."""
    count, has_digest = len(blocks.offset), arrays.has_digest
    if has_digest is None:
        return np.arange(count)
    checked = has_digest[regions.request]
    goes_on = np.bincount(blocks.first_of[checked], minlength=count)
    goes_on -= np.bincount(blocks.last_of[checked], minlength=count)
    return np.flatnonzero(np.cumsum(goes_on) == 0)


def _rows(*columns: Int64Array | UInt64Array) -> UInt64Array:
    """Return columns as an array of rows."""
    rows = np.empty((len(columns[0]), len(columns)), np.uint64)
    for number, column in enumerate(columns):
        rows[:, number] = column
    return rows


def _starts(counts: Int64Array) -> Int64Array:
    """Return where each of so many begins, and where the last ends."""
    return np.concatenate(([0], np.cumsum(counts)))


def _numbers_within(counts: Int64Array) -> Int64Array:
    """Return 0, 1, 2 … for each count."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
