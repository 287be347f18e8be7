"""One reader of an upload: it reads blocks into its staging slots, checks digests, and copies."""

import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import xxhash

from gevar.errors import LoadError
from gevar.weights.file_reader import FileReader
from gevar.weights.file_region import FileRegion
from gevar.weights.load_plan import Block, Part, is_one_stretch
from gevar.weights.load_report import StageTimes
from gevar.weights.staging import StagingSlot

if TYPE_CHECKING:
    from gevar.weights.upload import Upload


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
        self._times = times
        self._stack = stack
        self._slots: deque[tuple[StagingSlot, Sequence[Part]]] = deque()
        self._hashes: dict[int, xxhash.xxh3_128] = {}

    def read_all(self) -> None:
        """Read runs until none is left or the upload ended, and wait for the last copies.

        Raises
        ------
        LoadError
            A file cannot be read, ends early, or a region has another digest.
        AclError
            The runtime refuses memory or a copy.
        """
        while (run := self._upload.take()) is not None:
            if run.path is not None and self._may_move_at_once(run.path, run.blocks):
                self._move(run.path, self._upload.file(run.path), run.blocks[0])
                self._move_at_once(run.path, run.blocks[1:])
                continue
            for block in run.blocks:
                if self._upload.is_stopped:
                    return
                if run.path is None:
                    self._copy_buffer(block)
                else:
                    self._move(run.path, self._upload.file(run.path), block)
        for slot, parts in self._slots:
            self._finish(slot, parts)

    def _finish(self, slot: StagingSlot, parts: Sequence[Part]) -> None:
        begin = time.perf_counter()
        slot.wait()
        self._times.copy_s += time.perf_counter() - begin
        if parts:
            self._upload.arrived(parts)

    def _slot(self) -> StagingSlot:
        """Return a slot that is free: a new one while there are fewer than may be, else that of the oldest copy."""
        settings = self._upload.settings
        if len(self._slots) < settings.buffers:
            begin = time.perf_counter()
            _, device = self._upload.request(0)
            slot = StagingSlot(device, settings.block_bytes, settings.buffers > 1, self._stack)
            self._times.staging_s += time.perf_counter() - begin
            return slot
        slot, parts = self._slots.popleft()
        self._finish(slot, parts)
        return slot

    def _move(self, path: Path, file: FileReader, block: Block) -> None:
        slot, times = self._slot(), self._times
        begin = time.perf_counter()
        slot.fill(file, str(path), block)
        read = time.perf_counter()
        times.read_s += read - begin
        times.reads += 1
        times.read_bytes += block.size_bytes
        self._check_digests(path, slot, block)
        begin = time.perf_counter()
        for device, copies in groupby(block.copies, lambda copy: self._upload.request(copy.request)[1]):
            slot.copy(device, list(copies))
        times.copy_s += time.perf_counter() - begin
        is_queued = self._upload.settings.buffers > 1
        self._slots.append((slot, block.parts if is_queued else ()))
        if not is_queued:
            self._upload.arrived(block.parts)

    def _may_move_at_once(self, path: Path, blocks: Sequence[Block]) -> bool:
        """Tell whether blocks after the first need no step between reading and copying."""
        is_plain = self._upload.settings.buffers == 1 and self._upload.file(path).descriptor is not None
        if not is_plain or len(blocks) < 2 or not is_one_stretch(blocks):
            return False
        numbers = (number for block in blocks for part in block.parts for number in part.requests)
        return all(self._upload.request(number)[0].digest is None for number in numbers)

    def _move_at_once(self, path: Path, blocks: Sequence[Block]) -> None:
        """Move blocks in one call; its time is shared out as that of the blocks before was."""
        slot, times, descriptor = self._slot(), self._times, self._upload.file(path).descriptor
        assert descriptor is not None
        copy = blocks[0].copies[0]
        size = sum(block.size_bytes for block in blocks)
        begin = time.perf_counter()
        device = self._upload.request(copy.request)[1]
        slot.move(device, descriptor, str(path), blocks[0].offset, size, copy.dev_addr)
        spent, known = time.perf_counter() - begin, times.read_s + times.copy_s
        times.read_s, times.copy_s = (part + spent * part / known for part in (times.read_s, times.copy_s))
        times.reads += len(blocks)
        times.read_bytes += size
        self._slots.append((slot, ()))
        self._upload.arrived([part for block in blocks for part in block.parts])

    def _copy_buffer(self, block: Block) -> None:
        request, device = self._upload.request(block.copies[0].request)
        assert isinstance(request.source, memoryview)
        begin = time.perf_counter()
        _, _, size, dev_addr = block.copies[0]
        device.memcpy_in(dev_addr, size, request.source.cast("B")[block.offset : block.offset + size])
        self._times.copy_s += time.perf_counter() - begin
        self._upload.arrived(block.parts)

    def _check_digests(self, path: Path, slot: StagingSlot, block: Block) -> None:
        """Hash the bytes of regions that have a digest, and compare where a region ends."""
        for numbers, start, size in block.parts:
            for number in numbers:
                request, _ = self._upload.request(number)
                if request.digest is None or not isinstance(request.source, FileRegion):
                    continue
                state = self._hashes.pop(number, None) or xxhash.xxh3_128()
                with slot.bytes_at(start, size) as view:
                    state.update(view)
                if block.offset + start + size < request.source.offset + request.size_bytes:
                    self._hashes[number] = state
                    continue
                self._times.checked += 1
                if state.digest() != request.digest:
                    reason = f"its digest is {state.hexdigest()}, not {request.digest.hex()}: the bytes are damaged"
                    raise LoadError(path, request.source.offset, request.size_bytes, request.size_bytes, reason)
