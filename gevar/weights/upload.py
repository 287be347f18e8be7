"""Move regions of files, or buffers, into device memory at the speed of the slowest link.

Readers take runs of blocks from a plan; each reads with ``pread`` into pinned staging buffers of its own and copies
from there. A file is never copied from a map of it: a page fault inside a copy is slower than ``pread``, and turns a
file that was cut short into a signal instead of an error. The staging buffers are all the host memory used, whatever
the model. A file that is not the one it was at the start, when all of it was read, is an error.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from resource import RUSAGE_THREAD, getrusage
from types import TracebackType
from typing import Self

from acl_shim import Device
from gevar.errors import LoadError, StateError
from gevar.weights.file_reader import FileReader, OpenFile, PreadReader
from gevar.weights.file_region import FileRegion, UploadRequest
from gevar.weights.load_plan import Part, Run, plan
from gevar.weights.load_report import StageTimes, UploadReport
from gevar.weights.load_settings import LoadSettings
from gevar.weights.upload_reader import UploadReader

OnProgress = Callable[[int, int], None]
_SECTOR_BYTES = 512  # unit of ru_inblock
_TELL_BLOCKS = 4  # so many between two calls of on_progress


class Upload:
    """An upload under way: start it with ``with``, iterate over what arrives, or `wait` for all.

    Leaving the block before the end cancels: readers stop at their next block, queued copies are waited for, and
    everything but the bytes on the device is given back.

    Parameters
    ----------
    device
        Where the addresses of requests lie that name no device.
    requests
        What to move. Destinations must not overlap.
    workers, block_bytes, buffers, past_cache
        See `LoadSettings`.
    on_progress
        Called with (bytes done, bytes in all), from one thread at a time. An exception it raises stops the upload and
        is raised by `wait`.
    open_file
        Opens a file for reading.

    Raises
    ------
    ValueError
        A setting is out of range.

    Thread safety: `cancel` from any thread, the rest from one.

    Examples
    --------
    >>> from acl_shim import open_runtime
    >>> device = open_runtime("host").device(0)
    >>> with device.malloc(4) as block, Upload(device, [UploadRequest(memoryview(b"abcd"), block.addr)]) as upload:
    ...     for request in upload:
    ...         bytes(block.read(request.size_bytes))
    b'abcd'
    """

    def __init__(
        self,
        device: Device,
        requests: Sequence[UploadRequest],
        *,
        workers: int | None = None,
        block_bytes: int | None = None,
        buffers: int | None = None,
        past_cache: bool | None = None,
        on_progress: OnProgress | None = None,
        open_file: OpenFile = PreadReader,
    ) -> None:
        sizes = [request.size_bytes for request in requests]
        self._total = sum(sizes)
        self.settings = LoadSettings.choose(
            self._total,
            is_card=device.runtime.backend != "host",
            workers=workers,
            block_bytes=block_bytes,
            buffers=buffers,
            past_cache=past_cache,
        )
        self._device = device
        self._requests = requests
        self._runs = plan(requests, self.settings.block_bytes)
        self._missing = sizes
        self._arrived = deque(number for number, size in enumerate(sizes) if not size)
        self._on_progress = on_progress
        self._open_file = open_file
        self._changed = threading.Condition()
        self._stack = ExitStack()
        self._files: dict[Path, FileReader] = {}
        self._threads: list[threading.Thread] = []
        self._times = [StageTimes() for _ in range(self.settings.workers)]
        self._working = self._done = self._told = 0
        self._tell_bytes = _TELL_BLOCKS * self.settings.block_bytes
        self._failure: BaseException | None = None
        self._is_ended = False
        self._started = self._ended_s = 0.0

    def __enter__(self) -> Self:
        self._start(self.settings.workers)
        return self

    def _start(self, threads: int) -> None:
        """Open the files and start so many readers; raises `LoadError`, with nothing open."""
        self._started = time.perf_counter()
        with ExitStack() as stack:
            self._open_files(stack)
            self._stack = stack.pop_all()
        self._working = self.settings.workers
        for number in range(self.settings.workers - threads, self.settings.workers):
            thread = threading.Thread(target=self._work, args=(self._times[number],), name="gevar-upload")
            try:
                thread.start()
            except RuntimeError as error:
                self._working -= 1
                self._fail(error)
                return
            self._threads.append(thread)

    def _open_files(self, stack: ExitStack) -> None:
        for request in self._requests:
            source = request.source
            if not isinstance(source, FileRegion):
                continue
            if source.path not in self._files:
                try:
                    self._files[source.path] = self._open_file(source.path, self.settings.past_cache)
                except OSError as error:
                    raise _refused(source, error.strerror or str(error)) from error
                stack.callback(self._files[source.path].close)
            if source.state not in (None, self._files[source.path].state):
                raise _refused(source, "the file changed since it was looked at; load again")

    def __iter__(self) -> Iterator[UploadRequest]:
        """Give each request when its bytes are on the device; raise as `wait` at the end."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._arrived or not self._working or self._failure)
                number = self._arrived.popleft() if self._arrived and not self._failure else None
            if number is None:
                break
            yield self._requests[number]
        self.wait()

    def cancel(self) -> None:
        """Stop the upload; `wait` then raises `StateError`, except where everything is there."""
        self._fail(StateError(f"the upload was cancelled after {self._done} B of {self._total} B"))

    def wait(self) -> UploadReport:
        """Wait for the end; called again, it gives the same.

        Raises
        ------
        LoadError
            A file cannot be read, ends before a region does, was changed meanwhile, or has another digest.
        AclError
            A copy or the allocation of a staging buffer was refused.
        StateError
            The upload was cancelled.

        Notes
        -----
        After failure: every reader has stopped, files and staging buffers are given back; device memory holds an
        unknown part of the bytes.
        """
        for thread in self._threads:
            thread.join()
        if not self._failure and not self._is_ended:
            self._check_files()
        self._is_ended = True
        self._stack.close()
        if self._failure:
            raise self._failure
        return self._report()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if any(thread.is_alive() for thread in self._threads):
            self.cancel()
        for thread in self._threads:
            thread.join()
        self._stack.close()

    def run(self) -> UploadReport:
        """Do all of it, with the calling thread as a reader; raises as `wait`, and what opening raises."""
        try:
            self._start(self.settings.workers - 1)
            self._work(self._times[0])
            return self.wait()
        finally:
            self.__exit__(None, None, None)

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            if self._done < self._total or not isinstance(error, StateError):
                self._failure = self._failure or error
            self._changed.notify_all()

    def _work(self, times: StageTimes) -> None:
        """Be one reader."""
        before = getrusage(RUSAGE_THREAD).ru_inblock
        try:
            with ExitStack() as stack:
                try:
                    UploadReader(self, times, stack).read_all()
                except BaseException as error:  # handed to who waits, before one of what is given back
                    self._fail(error)
        except BaseException as error:
            self._fail(error)
        times.disk_bytes = (getrusage(RUSAGE_THREAD).ru_inblock - before) * _SECTOR_BYTES
        with self._changed:
            self._working -= 1
            self._ended_s = time.perf_counter()
            self._changed.notify_all()

    def take(self) -> Run | None:
        """Return the next run; None when there is none, or the upload ended."""
        with self._changed:
            return None if self._failure else next(self._runs, None)

    @property
    def is_stopped(self) -> bool:
        """Whether a reader failed, or the upload was cancelled."""
        return self._failure is not None

    def file(self, path: Path) -> FileReader:
        """Return the reader of a file."""
        return self._files[path]

    def request(self, number: int) -> tuple[UploadRequest, Device]:
        """Return a request, and its device."""
        request = self._requests[number]
        return request, request.device or self._device

    def arrived(self, parts: Sequence[Part]) -> None:
        """Count parts whose bytes are on the device."""
        with self._changed:
            for numbers, _, size in parts:
                self._done += size * len(numbers)
                for number in numbers:
                    self._missing[number] -= size
                    if not self._missing[number]:
                        self._arrived.append(number)
            self._changed.notify_all()
            if not self._failure and (self._done == self._total or self._done - self._told >= self._tell_bytes):
                self._told = self._done
                self._tell()

    def _tell(self) -> None:
        """Tell the progress; no other reader tells any once that has raised."""
        try:
            if self._on_progress:
                self._on_progress(self._done, self._total)
        except BaseException as error:
            self._failure = error
            raise

    def _check_files(self) -> None:
        """Refuse files that are not what they were at the start."""
        for path, file in self._files.items():
            if reason := file.change():
                sizes = [
                    r.size_bytes for r in self._requests if isinstance(r.source, FileRegion) and r.source.path == path
                ]
                self._failure = LoadError(path, 0, sum(sizes), sum(sizes), reason)

    def _report(self) -> UploadReport:
        settings, times = self.settings, self._times
        return UploadReport(
            self._total,
            self._ended_s - self._started,
            settings.workers,
            settings.block_bytes,
            settings.buffers,
            read_bytes=sum(one.read_bytes for one in times),
            reads=sum(one.reads for one in times),
            disk_bytes=sum(one.disk_bytes for one in times),
            read_s=sum(one.read_s for one in times),
            staging_s=sum(one.staging_s for one in times),
            copy_s=sum(one.copy_s for one in times),
            mode="; ".join(dict.fromkeys(file.mode for file in self._files.values())),
            checked=sum(one.checked for one in times),
        )


def _refused(region: FileRegion, reason: str) -> LoadError:
    return LoadError(region.path, region.offset, region.size_bytes, 0, reason)


def upload(
    device: Device,
    requests: Sequence[UploadRequest],
    *,
    workers: int | None = None,
    block_bytes: int | None = None,
    buffers: int | None = None,
    past_cache: bool | None = None,
    on_progress: OnProgress | None = None,
    open_file: OpenFile = PreadReader,
) -> UploadReport:
    """Copy every request's bytes to its device address and return when all of them are there.

    Parameters, Raises and Notes are those of `Upload` and `Upload.wait`.

    Thread safety: may be called from several threads at once.
    """
    return Upload(
        device,
        requests,
        workers=workers,
        block_bytes=block_bytes,
        buffers=buffers,
        past_cache=past_cache,
        on_progress=on_progress,
        open_file=open_file,
    ).run()
