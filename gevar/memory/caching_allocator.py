"""Blocks of device memory that are kept when they are freed, for the next request of their size.

Not for variables: for feature maps and what comes and goes.

Source: GE source, runtime/v1/graph/manager, CachingAllocator.
Differs: edge 36 of docs/differences.md.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

from sortedcontainers import SortedDict

from gevar.align import GIB, MIB, SESSION_MEM_ALIGN_BYTES, align_up
from gevar.errors import OutOfMemoryError
from gevar.memory.free_runs import FreeRuns
from gevar.memory.memory_resource import (
    MemoryResource,
    UpstreamResource,
    checked_size,
    unknown_block,
)
from gevar.types import DevAddr

BIN_BYTES: Final = (
    512 * 1024,
    *(size * MIB + SESSION_MEM_ALIGN_BYTES for size in (8, 32, 128, 256, 512)),
    GIB,
)
"""Largest request of each bin, but the last, which takes all larger ones."""


@dataclass(frozen=True, slots=True)
class _Segment:
    """One block of the upstream resource."""

    start: int
    size_bytes: int
    bin: int

    @property
    def bounds(self) -> tuple[int, int]:
        return self.start, self.start + self.size_bytes


class CachingAllocator(UpstreamResource):
    """Keep freed blocks in bins by size; implements `MemoryResource`.

    A request looks in its own bin only, takes the smallest block with room, and splits it where the request is at most
    half of it. Each operation costs O(log n).

    Parameters
    ----------
    upstream
        Where memory comes from.

    Thread safety: all methods, from any thread; `upstream` is called under the allocator's lock.
    Source: as the module.
    """

    def __init__(self, upstream: MemoryResource) -> None:
        super().__init__(upstream)
        self._bins = [FreeRuns() for _ in BIN_BYTES]
        self._segments: SortedDict[int, _Segment] = SortedDict()
        self._live: dict[int, tuple[int, int, _Segment]] = {}  # address -> (bytes of the block, asked for, segment)
        self._whole: dict[int, _Segment] = {}  # segments without a live block

    @property
    def segment_bytes(self) -> int:
        """Bytes that were taken from the upstream resource."""
        with self._lock:
            return sum(segment.size_bytes for segment in self._segments.values())

    @property
    def cached_bytes(self) -> int:
        """Bytes of these that `free_cached_blocks` would give back."""
        with self._lock:
            return sum(segment.size_bytes for segment in self._whole.values())

    def allocate(self, size_bytes: int, tag: str = "") -> DevAddr:
        """Return a block of whole units of 512 bytes; see `MemoryResource.allocate`."""
        asked = checked_size(size_bytes)
        size = align_up(asked, SESSION_MEM_ALIGN_BYTES)
        number = min(bisect_left(BIN_BYTES, size), len(BIN_BYTES) - 1)
        with self._lock:
            runs = self._bins[number]
            found = runs.take(size)
            if found is None:
                self._extend(number, size, tag)
                found = runs.take(size)
            if found is None:
                raise AssertionError(f"a new segment of bin {number} has no room for {size} B")
            start, room = found
            segment = self._segment(start)
            self._whole.pop(segment.start, None)
            if 2 * size <= room:
                runs.add(start + size, room - size, segment.bounds)
                room = size
            self._live[start] = room, asked, segment
            self._counter.add(asked)
            return DevAddr(start)

    def _segment(self, addr: int) -> _Segment:
        """The segment that an address lies in."""
        segment: _Segment = self._segments.peekitem(self._segments.bisect_right(addr) - 1)[1]
        return segment

    def _extend(self, number: int, size: int, tag: str) -> None:
        """Take a segment from upstream; give cached ones back first where there is no memory otherwise."""
        wanted = BIN_BYTES[number] if size <= BIN_BYTES[number] else align_up(size, GIB)
        try:
            start = self.upstream.allocate(wanted, tag)
        except OutOfMemoryError:
            if not self.free_cached_blocks():
                raise
            start = self.upstream.allocate(wanted, tag)
        segment = _Segment(start, wanted, number)
        self._segments[start] = segment
        self._bins[number].add(start, wanted, segment.bounds)
        self._whole[start] = segment

    def free(self, dev_addr: DevAddr) -> None:
        """Keep a block for the next request; see `MemoryResource.free`."""
        with self._lock:
            block = self._live.pop(dev_addr, None)
            if block is None:
                raise unknown_block(f"the caching allocator of device {self.device_id}", dev_addr)
            room, asked, segment = block
            self._counter.remove(asked)
            if self._bins[segment.bin].add(dev_addr, room, segment.bounds) == (segment.start, segment.size_bytes):
                self._whole[segment.start] = segment

    def free_cached_blocks(self) -> int:
        """Give back segments without a live block.

        Returns
        -------
        int
            Bytes that went back.

        Raises
        ------
        AclError
            The runtime refuses a segment, which is kept; those before it went back.
        """
        freed = 0
        with self._lock:
            for segment in tuple(self._whole.values()):
                self.upstream.free(DevAddr(segment.start))
                self._bins[segment.bin].remove(segment.start)
                del self._whole[segment.start], self._segments[segment.start]
                freed += segment.size_bytes
        return freed

    def try_free_cached_blocks(self) -> int:
        """Do as `free_cached_blocks`, but return 0 at once where another thread uses the allocator.

        So a thread that is short of memory waits for no lock of an allocator that may be waiting for its memory.
        """
        if not self._lock.acquire(blocking=False):
            return 0
        try:
            return self.free_cached_blocks()
        finally:
            self._lock.release()
