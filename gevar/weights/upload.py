"""Move regions of files, or buffers, into device memory at the speed of the slowest link.

Readers take runs of blocks from a plan; each reads with ``pread`` into pinned staging buffers of its own and copies
from there. A file is never copied from a map of it: a page fault inside a copy is slower than ``pread``, and turns a
file that was cut short into a signal instead of an error. The staging buffers are all the host memory that bytes take,
whatever the model. A file that is another one when all of it was read is an error.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Self

from acl_shim import Device
from acl_shim.block_copies import StopFlag
from gevar.errors import StateError
from gevar.weights.arrivals import Arrivals, OnProgress
from gevar.weights.file_reader import OpenFile, PreadReader
from gevar.weights.file_region import UploadRequest
from gevar.weights.load_plan import LoadPlan, Run, plan
from gevar.weights.load_report import StageTimes, UploadReport, report_of
from gevar.weights.load_settings import LoadSettings
from gevar.weights.open_files import OpenFiles
from gevar.weights.upload_arrays import UploadArrays, arrays_of
from gevar.weights.upload_reader import UploadReader


class Upload:
    """An upload under way: start it once, with ``with``, and iterate over what arrives, or `wait` for all.

    Leaving the block before the end cancels: readers stop at their next block, queued copies are waited for, and
    everything but the bytes on the device is given back.

    Parameters
    ----------
    device
        Where the addresses of requests lie that name no device.
    requests
        What to move, as objects or as arrays. Destinations must not overlap.
    workers, block_bytes, buffers, past_cache
        See `LoadSettings`.
    on_progress
        Called with (bytes done, bytes in all), from one thread at a time. An exception it raises stops the upload and
        is raised by `wait`.
    cancel
        Cancels the upload once it is set: before a reader takes its next block, or its next blocks where many are moved
        in one call, of 64 MiB at most by default.
    open_file
        Opens a file for reading.

    Raises
    ------
    TypeError
        A setting is no integer, a source neither a region of a file nor a buffer.
    ValueError
        A setting, or a number of a request, is out of range; a buffer is not contiguous.

    Starting raises `LoadError`, or `ValueError` for a destination in plain host memory, before anything is moved.
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
        requests: Sequence[UploadRequest] | UploadArrays,
        *,
        workers: int | None = None,
        block_bytes: int | None = None,
        buffers: int | None = None,
        past_cache: bool | None = None,
        on_progress: OnProgress | None = None,
        cancel: threading.Event | None = None,
        open_file: OpenFile = PreadReader,
    ) -> None:
        self.arrays = arrays_of(requests)
        self.settings = settings = LoadSettings.choose(
            int(self.arrays.size_bytes.sum()),
            self.arrays.copies,
            is_card=device.runtime.backend != "host",
            workers=workers,
            block_bytes=block_bytes,
            buffers=buffers,
            past_cache=past_cache,
        )
        self.devices = tuple(device if one is None else one for one in self.arrays.devices)
        self.device = device
        self.stop = StopFlag()
        self._requests = requests
        self._arrivals = Arrivals(self.arrays.size_bytes, settings.block_bytes, on_progress)
        self._cancel = cancel
        self._open_file = open_file
        self._lock = threading.RLock()  # taken by itself: an interrupt may fall into the methods of a condition
        self._changed = threading.Condition(self._lock)
        self._stack = ExitStack()
        self._threads: list[threading.Thread] = []
        self._times: list[StageTimes] = []
        self._working = self._taken = 0
        self._failure: BaseException | None = None
        self._is_ended, self._started, self._ended_s = False, 0.0, 0.0

    def __enter__(self) -> Self:
        try:
            self._start(0)
        except BaseException:
            self._drain()
            raise
        return self

    def _start(self, callers: int) -> None:
        """Open the files, plan, and start readers but for the caller's own; after failure nothing is open."""
        if self._started:
            raise StateError("the upload was started before: make a new one")
        self._started = time.perf_counter()
        with ExitStack() as stack:
            self.files = OpenFiles(self.arrays, self._open_file, self.settings.past_cache, stack)
            self.plan: LoadPlan = plan(self.arrays, self.settings.block_bytes)
            for number, device in enumerate(self.devices):
                copies = self.plan.copies[self.plan.copy_device == number]
                device.check_destinations(copies[:, 0], copies[:, 2])
            self._stack = stack.pop_all()
        self._working = max(min(self.settings.workers, len(self.plan.blocks)), 1)
        self._times = [StageTimes() for _ in range(self._working)]
        for times in self._times[callers:]:
            thread = threading.Thread(target=self._work, args=(times,), name="gevar-upload")
            self._threads.append(thread)
            try:
                thread.start()
            except RuntimeError as error:
                self._threads.pop()
                self._fail(error)
                return

    def __iter__(self) -> Iterator[UploadRequest]:
        """Give each request when its bytes are on the device; raise as `wait` at the end."""
        while (number := self._next_arrived()) is not None:
            yield self._requests[number]
        self.wait()

    def _next_arrived(self) -> int | None:
        """Wait for a request to be complete; None at the end, or where the upload failed."""
        with self._lock:
            while not self._failure:
                number = self._arrivals.pop()
                if number is not None or not self._working:
                    return number
                self._changed.wait()
        return None

    def cancel(self) -> None:
        """Stop the upload; `wait` then raises `StateError`, except where everything is there."""
        self._fail(StateError(f"the upload was cancelled after {self._arrivals.done} B of {self._arrivals.total} B"))

    def wait(self) -> UploadReport:
        """Wait for the end; called again, it gives the same.

        Raises
        ------
        LoadError
            A file cannot be read or closed, ends before a region does, was changed meanwhile, or has another digest.
        AclError
            A copy or the allocation of a staging buffer was refused.
        StateError
            The upload was cancelled, or not started.

        Notes
        -----
        After failure: every reader has stopped, files and staging buffers are given back; device memory holds an
        unknown part of the bytes.
        """
        if not self._times:
            raise StateError("the upload was not started: do that with `with`")
        for thread in self._threads:
            thread.join()
        if not self._is_ended:
            self._is_ended = True
            try:
                with self._stack:
                    if not self._failure:
                        self.files.check()
            except BaseException as error:
                self._failure = self._failure or error
        if self._failure:
            raise self._failure
        total, elapsed_s = self._arrivals.total, self._ended_s - self._started
        return report_of(total, elapsed_s, self.settings, self._times, self.files.modes)

    def __exit__(self, *_: object) -> None:
        try:
            self._drain()
        except BaseException:  # an interrupt; who does not want to wait interrupts once more
            self._drain()
            raise

    def _drain(self) -> None:
        """Stop the readers, wait for them, and give everything back."""
        if self._working:
            self.cancel()
        for thread in filter(threading.Thread.is_alive, self._threads):  # others ended, or did not start
            thread.join()
        self._stack.close()

    def run(self) -> UploadReport:
        """Do all of it, with the calling thread as a reader; raises as `wait`, and what opening raises."""
        try:
            self._start(1)
            self._work(self._times[0])
            return self.wait()
        finally:
            self.__exit__()

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            if self._arrivals.done < self._arrivals.total or not isinstance(error, StateError):
                self._failure = self._failure or error
                self.stop.set()
            self._changed.notify_all()

    def _work(self, times: StageTimes) -> None:
        """Be one reader."""
        try:
            with ExitStack() as stack:
                try:
                    UploadReader(self, times, stack).read_all()
                except BaseException as error:  # handed to who waits, before one of what is given back
                    self._fail(error)
        except BaseException as error:
            self._fail(error)
        with self._lock:
            self._working -= 1
            self._ended_s = time.perf_counter()
            self._changed.notify_all()

    def take(self, is_single: bool) -> Run | None:
        """Return the next run, of one block or of many; None when there is none, or the upload ended."""
        with self._lock:
            run = None if self.is_stopped else self.plan.run(self._taken, self.settings.workers, is_single)
            self._taken = run.end if run else self._taken
            return run

    @property
    def is_stopped(self) -> bool:
        """Whether a reader failed, or the upload was cancelled."""
        if self._cancel and self._cancel.is_set():
            self.cancel()
        return self._failure is not None

    def arrived(self, first: int, end: int) -> None:
        """Count blocks ``first`` to before ``end``, whose bytes are on the device."""
        with self._lock:
            self._arrivals.count(self.plan, first, end)
            self._changed.notify_all()
            if self._failure:
                return
            try:
                self._arrivals.tell()
            except BaseException as error:
                self._failure = error  # no other reader tells any after that
                self.stop.set()
                raise


def upload(
    device: Device,
    requests: Sequence[UploadRequest] | UploadArrays,
    *,
    workers: int | None = None,
    block_bytes: int | None = None,
    buffers: int | None = None,
    past_cache: bool | None = None,
    on_progress: OnProgress | None = None,
    cancel: threading.Event | None = None,
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
        cancel=cancel,
        open_file=open_file,
    ).run()
