"""Move regions of files, or buffers, into device memory at the speed of the slowest link.

Each worker owns one pinned staging buffer. It takes the next span from a shared iterator and moves it block by block,
reading with ``pread`` and copying to the device, in one call of the binding that does not hold the interpreter. A file
is never copied from a map of it: a page fault inside a copy is slower than ``pread``, and turns a file that was cut
short into a signal instead of an error. The staging buffers are all the host memory used, whatever the model. A
block is small enough for the staging buffer to stay in a core's cache; a span is large enough that asking for the next
one costs nothing beside the copies.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from acl_shim import Device, PinnedBuffer
from gevar.errors import LoadError

#: Bytes read and copied at a time: fewer cost more calls, more leave the caches of a core.
DEFAULT_BLOCK_BYTES = 2 << 20
#: Blocks in a span, the piece of work that a worker takes at once and after which progress is told.
_SPAN_BLOCKS = 8
#: Below this many bytes a second worker costs more than it brings.
_ONE_WORKER_BYTES = 8 << 20
#: More readers than this do not help on the links seen so far.
_MOST_WORKERS = 4


@dataclass(frozen=True, slots=True)
class FileRegion:
    """A run of bytes in a file: ``size_bytes`` from ``offset`` (bytes from the start of the file)."""

    path: Path
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class UploadRequest:
    """Bytes to put at ``dev_addr``: a region of a file or a contiguous buffer in host memory."""

    source: FileRegion | memoryview
    dev_addr: int

    @property
    def size_bytes(self) -> int:
        """Bytes to move."""
        return self.source.size_bytes if isinstance(self.source, FileRegion) else self.source.nbytes


class UploadReport(NamedTuple):
    """What an upload did: bytes moved, seconds taken, worker threads used and bytes per block."""

    size_bytes: int
    elapsed_s: float
    workers: int
    block_bytes: int

    @property
    def gb_per_s(self) -> float:
        """Speed in 10^9 bytes per second; 0 where nothing was moved."""
        return self.size_bytes / self.elapsed_s / 1e9 if self.size_bytes and self.elapsed_s > 0 else 0.0


class _Span(NamedTuple):
    """A piece of a request: where it comes from, where it goes, how long it is."""

    file: int | None
    path: Path | None
    offset: int
    buffer: memoryview | None
    dev_addr: int
    size_bytes: int


def upload(
    device: Device,
    requests: Sequence[UploadRequest],
    *,
    workers: int | None = None,
    block_bytes: int = DEFAULT_BLOCK_BYTES,
    on_progress: Callable[[int, int], None] | None = None,
) -> UploadReport:
    """Copy every request's bytes to its device address and return when all of them are there.

    Parameters
    ----------
    device
        Where the addresses lie.
    requests
        What to move. Destinations must not overlap.
    workers
        Reader threads; by default one for less than 8 MiB, else one for each core, at most four.
    block_bytes
        Bytes read and copied at a time; also the size of each worker's staging buffer.
    on_progress
        Called with (bytes done, bytes in all) after every few blocks, from one thread at a time. An exception it raises
        stops the upload and is raised here.

    Raises
    ------
    ValueError
        ``workers`` or ``block_bytes`` is below 1.
    LoadError
        A file cannot be opened or read, or ends before a region does.
    AclError
        A copy or the allocation of a staging buffer was refused.

    Notes
    -----
    After failure: every worker has stopped and every staging buffer is freed; device memory holds an unknown part of
    the bytes. Thread safety: may be called from several threads at once.
    """
    if block_bytes < 1 or (workers is not None and workers < 1):
        raise ValueError(f"workers and block_bytes must be at least 1, got {workers} and {block_bytes}")
    total = sum(request.size_bytes for request in requests)
    count = workers or _default_workers(total)
    started = time.perf_counter()
    with ExitStack() as stack:
        spans = _Spans(_cut(requests, block_bytes * _SPAN_BLOCKS, _open_files(requests, stack)), total, on_progress)
        staging_bytes = min(block_bytes, max(total, 1))
        buffers = [stack.enter_context(device.malloc_host(staging_bytes)) for _ in range(count)]
        _run_workers(device, spans, buffers)
    return UploadReport(total, time.perf_counter() - started, count, block_bytes)


def _default_workers(total: int) -> int:
    """Choose the number of workers for this many bytes."""
    return 1 if total < _ONE_WORKER_BYTES else min(len(os.sched_getaffinity(0)), _MOST_WORKERS)


def _open_files(requests: Sequence[UploadRequest], stack: ExitStack) -> dict[Path, int]:
    """Open each file once; the stack closes them."""
    files: dict[Path, int] = {}
    for request in requests:
        if isinstance(request.source, FileRegion) and request.source.path not in files:
            files[request.source.path] = open_region(request.source, stack)
    return files


def open_region(region: FileRegion, stack: ExitStack) -> int:
    """Open the file of a region for `read_region`; the stack closes it.

    Raises
    ------
    LoadError
        The file cannot be opened.
    """
    try:
        file = os.open(region.path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise LoadError(region.path, region.offset, region.size_bytes, 0, error.strerror or str(error)) from error
    stack.callback(os.close, file)
    return file


def _cut(requests: Sequence[UploadRequest], span_bytes: int, files: dict[Path, int]) -> Iterator[_Span]:
    """Cut the requests into spans, in order."""
    for request in requests:
        source = request.source
        for done in range(0, request.size_bytes, span_bytes):
            size = min(span_bytes, request.size_bytes - done)
            target = request.dev_addr + done
            if isinstance(source, FileRegion):
                yield _Span(files[source.path], source.path, source.offset + done, None, target, size)
            else:
                yield _Span(None, None, 0, source.cast("B")[done : done + size], target, size)


class _Spans:
    """The spans still to be moved, what is done, and the first failure; shared by the workers."""

    def __init__(self, spans: Iterator[_Span], total: int, on_progress: Callable[[int, int], None] | None) -> None:
        self._spans = spans
        self._total = total
        self._done = 0
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self.failure: BaseException | None = None

    def take(self) -> _Span | None:
        """Return the next span; None when there is none or another worker failed."""
        with self._lock:
            return None if self.failure else next(self._spans, None)

    def done(self, size_bytes: int) -> None:
        """Count a span that has arrived."""
        with self._lock:
            self._done += size_bytes
            if self._on_progress and not self.failure:
                self._on_progress(self._done, self._total)

    def fail(self, error: BaseException) -> None:
        """Remember the first failure; the other workers stop at their next span."""
        with self._lock:
            self.failure = self.failure or error


def _run_workers(device: Device, spans: _Spans, buffers: list[PinnedBuffer]) -> None:
    """Move all spans with one worker for each staging buffer, the calling thread being the first."""

    def work(staging: PinnedBuffer) -> None:
        try:
            while (span := spans.take()) is not None:
                _move(device, span, staging)
                spans.done(span.size_bytes)
        except BaseException as error:  # handed to the caller below
            spans.fail(error)

    threads = [threading.Thread(target=work, args=(buffer,), name="gevar-upload") for buffer in buffers[1:]]
    for thread in threads:
        thread.start()
    work(buffers[0])
    for thread in threads:
        thread.join()
    if spans.failure:
        raise spans.failure


def _move(device: Device, span: _Span, staging: PinnedBuffer) -> None:
    """Bring one span to the device, block by block through the staging buffer when it comes from a file."""
    if span.buffer is not None:
        device.memcpy_in(span.dev_addr, span.size_bytes, span.buffer)
        return
    assert span.file is not None
    assert span.path is not None
    try:
        got = device.memcpy_from_file(span.dev_addr, span.file, span.offset, span.size_bytes, staging)
    except OSError as error:
        raise LoadError(span.path, span.offset, span.size_bytes, 0, error.strerror or str(error)) from error
    if got < span.size_bytes:
        raise LoadError(span.path, span.offset, span.size_bytes, got, "the file ends here")


def read_region(file: int, path: Path, offset: int, view: memoryview) -> None:
    """Fill ``view`` from ``offset`` of an open file.

    Raises
    ------
    LoadError
        The file cannot be read or ends early; carries how many bytes were wanted and got.
    """
    got = 0
    while got < view.nbytes:
        try:
            with view[got:] as rest:
                step = os.preadv(file, [rest], offset + got)
        except OSError as error:
            raise LoadError(path, offset, view.nbytes, got, error.strerror or str(error)) from error
        if step == 0:
            raise LoadError(path, offset, view.nbytes, got, "the file ends here")
        got += step
