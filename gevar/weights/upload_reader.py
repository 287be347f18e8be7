"""One reader of an upload: it reads blocks into its staging slots, checks digests, and copies."""

import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from resource import RUSAGE_THREAD, getrusage
from typing import TYPE_CHECKING, Final

import numpy as np
import xxhash

from acl_shim.host_memory import read_access
from gevar.errors import LoadError
from gevar.weights.load_plan import Run
from gevar.weights.load_report import StageTimes
from gevar.weights.staging import StagingSlot, short_read
from gevar.weights.upload_arrays import UInt64Array

if TYPE_CHECKING:
    from gevar.weights.upload import Upload

_SECTOR_BYTES: Final = 512  # unit of ru_inblock
_NO_BLOCKS: Final = (0, 0)


class UploadReader:
    """One thread's part of an upload.

    Parameters
    ----------
    upload
        Where runs come from.
    times
        What the thread spent; filled in.
    stack
        Ends the staging slots.
    """

    def __init__(self, upload: "Upload", times: StageTimes, stack: ExitStack) -> None:
        self._upload = upload
        self._plan = upload.plan
        self._settings = upload.settings
        self._times = times
        self._stack = stack
        self._slots: deque[tuple[StagingSlot, tuple[int, int]]] = deque()
        self._hashes: dict[int, xxhash.xxh3_128] = {}
        self._is_checked = upload.arrays.has_digest

    def read_all(self) -> None:
        """Read runs until none is left or the upload ended, and wait for the last copies.

        Readers take one block at a time while bytes come from a disk, so that the file is read in its order; from the
        page cache that order is nothing, and fewer turns cost less.

        Raises
        ------
        LoadError
            A file cannot be read, ends early, or a region has another digest.
        AclError
            The runtime refuses memory or a copy.
        """
        sectors = first_sectors = getrusage(RUSAGE_THREAD).ru_inblock
        is_single = True
        while (run := self._upload.take(is_single)) is not None:
            self._read(run)
            before, sectors = sectors, getrusage(RUSAGE_THREAD).ru_inblock
            self._times.disk_bytes = (sectors - first_sectors) * _SECTOR_BYTES
            is_single = sectors > before
        for slot, blocks in self._slots:
            self._finish(slot, blocks)

    def _read(self, run: Run) -> None:
        source = self._upload.arrays.sources[run.source]
        if isinstance(source, Path):
            descriptor = self._upload.files.reader(run.source).descriptor
            if descriptor is not None and self._may_move_at_once(run):
                self._move_at_once(source, descriptor, run)
                return
        for block in range(run.first, run.end):
            if self._upload.is_stopped:
                return
            if isinstance(source, Path):
                self._move(source, run.source, block)
            else:
                self._copy_buffer(source, block)

    def _finish(self, slot: StagingSlot, blocks: tuple[int, int]) -> None:
        begin = time.perf_counter()
        slot.wait()
        self._times.copy_s += time.perf_counter() - begin
        if blocks != _NO_BLOCKS:
            self._upload.arrived(*blocks)

    def _slot(self) -> StagingSlot:
        """Return a slot that is free: a new one while there are fewer than may be, else that of the oldest copy."""
        if len(self._slots) < self._settings.buffers:
            begin = time.perf_counter()
            is_queued = self._settings.buffers > 1
            slot = StagingSlot(self._upload.device, self._plan.largest_block, is_queued, self._stack)
            self._times.staging_s += time.perf_counter() - begin
            return slot
        slot, blocks = self._slots.popleft()
        self._finish(slot, blocks)
        return slot

    def _may_move_at_once(self, run: Run) -> bool:
        """Tell whether a run needs no step between reading and copying, and has one device."""
        if self._settings.buffers > 1 or self._has_digest(run.first, run.end):
            return False
        devices = self._plan.copy_device[self._plan.first_copy[run.first] : self._plan.first_copy[run.end]]
        return len(self._upload.devices) == 1 or bool((devices == devices[0]).all())

    def _move_at_once(self, path: Path, descriptor: int, run: Run) -> None:
        """Move a run in one call."""
        plan, times, slot = self._plan, self._times, self._slot()
        copies = slice(int(plan.first_copy[run.first]), int(plan.first_copy[run.end]))
        device, blocks = self._upload.devices[plan.copy_device[copies.start]], plan.blocks[run.first : run.end]
        moved = slot.move(device, descriptor, blocks, plan.copies[copies], self._upload.stop)
        times.read_s += moved.read_s
        times.copy_s += moved.copy_s
        times.reads += moved.blocks
        times.read_bytes += int(blocks[: moved.blocks, 1].sum())
        self._slots.append((slot, _NO_BLOCKS))
        if moved.blocks:
            self._upload.arrived(run.first, run.first + moved.blocks)
        if moved.blocks < len(blocks) and not self._upload.is_stopped:
            offset, size, _ = blocks[moved.blocks].tolist()
            raise short_read(str(path), offset, size, moved.got, moved.os_error)

    def _move(self, path: Path, source: int, block: int) -> None:
        """Read a block, check it, and copy what is in it."""
        slot, times = self._slot(), self._times
        offset, size, _ = self._plan.blocks[block].tolist()
        begin = time.perf_counter()
        slot.fill(self._upload.files.reader(source), str(path), offset, size)
        read = time.perf_counter()
        times.read_s += read - begin
        times.reads += 1
        times.read_bytes += size
        self._check_digests(path, slot.bytes_at, block)
        begin = time.perf_counter()
        for number, copies in self._copies(block):
            slot.copy(self._upload.devices[number], copies)
        times.copy_s += time.perf_counter() - begin
        is_queued = self._settings.buffers > 1
        self._slots.append((slot, (block, block + 1) if is_queued else _NO_BLOCKS))
        if not is_queued:
            self._upload.arrived(block, block + 1)

    def _copies(self, block: int) -> list[tuple[int, UInt64Array]]:
        """Return the copies of a block, for each device."""
        first, end = self._plan.first_copy[block : block + 2].tolist()
        copies, devices = self._plan.copies[first:end], self._plan.copy_device[first:end]
        cuts = [0, *(np.flatnonzero(np.diff(devices)) + 1).tolist(), end - first]
        return [(int(devices[a]), copies[a:b]) for a, b in pairwise(cuts)]

    def _copy_buffer(self, source: memoryview, block: int) -> None:
        offset = int(self._plan.blocks[block, 0])
        what = f"buffer of {source.nbytes} B"
        self._check_digests(what, lambda start, size: source.cast("B")[offset + start : offset + start + size], block)
        begin = time.perf_counter()
        with read_access(source) as memory:
            for number, copies in self._copies(block):
                self._upload.devices[number].memcpy_block(copies, memory.addr + offset)
        self._times.copy_s += time.perf_counter() - begin
        self._upload.arrived(block, block + 1)

    def _parts(self, first: int, end: int) -> slice:
        return slice(int(self._plan.first_part[first]), int(self._plan.first_part[end]))

    def _has_digest(self, first: int, end: int) -> bool:
        if self._is_checked is None:
            return False
        return bool(self._is_checked[self._plan.part_request[self._parts(first, end)]].any())

    def _check_digests(self, source: Path | str, bytes_at: Callable[[int, int], memoryview], block: int) -> None:
        """Hash the bytes of regions that have a digest, and compare where a region ends."""
        if not self._has_digest(block, block + 1):
            return
        begin = time.perf_counter()
        plan, arrays, parts = self._plan, self._upload.arrays, self._parts(block, block + 1)
        assert arrays.digests is not None
        columns = (plan.part_request[parts], plan.part_start[parts], plan.part_bytes[parts])
        for number, start, size in zip(*(column.tolist() for column in columns), strict=True):
            wanted = arrays.digests[number]
            if wanted is None:
                continue
            state = self._hashes.pop(number, None) or xxhash.xxh3_128()
            with bytes_at(start, size) as view:
                state.update(view)
            offset, total = int(arrays.offset[number]), int(arrays.size_bytes[number])
            if int(plan.blocks[block, 0]) + start + size < offset + total:
                self._hashes[number] = state
                continue
            self._times.checked += 1
            if state.digest() != wanted:
                reason = f"its digest is {state.hexdigest()}, not {wanted.hex()}: the bytes are damaged"
                raise LoadError(source, offset, total, total, reason)
        self._times.check_s += time.perf_counter() - begin
