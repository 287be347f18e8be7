"""A few pinned host buffers that copies to and from a device share."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from acl_shim import Device, PinnedBuffer
from gevar.errors import AclError, StateError
from gevar.memory.memory_resource import MemoryStatistics, StatisticsCounter, checked_size
from gevar.types import DeviceId


class PinnedStagingPool:
    """Lend pinned buffers of one size; who comes when all are lent waits.

    Buffers are allocated when they are first needed and kept until `close`.

    Parameters
    ----------
    device
        Device that they are pinned for.
    buffer_bytes
        Size of each in bytes.
    max_buffers
        How many there are at most.

    Raises
    ------
    ValueError
        A number is below 1.

    Notes
    -----
    Closed by `close` or by ``with``.
    Thread safety: all methods, from any thread.
    """

    def __init__(self, device: Device, buffer_bytes: int, max_buffers: int) -> None:
        if max_buffers < 1:
            raise ValueError(f"max_buffers is {max_buffers}: give at least 1")
        self._device = device
        self._buffer_bytes = checked_size(buffer_bytes)
        self._max_buffers = max_buffers
        self._changed = threading.Condition()
        self._free: list[PinnedBuffer] = []
        self._made = 0
        self._counter = StatisticsCounter()
        self._closed = False

    @property
    def device_id(self) -> DeviceId:
        """Device that the buffers are pinned for."""
        return DeviceId(self._device.id)

    @property
    def statistics(self) -> MemoryStatistics:
        """Buffers that were lent."""
        with self._changed:
            return self._counter.statistics()

    @property
    def pinned_bytes(self) -> int:
        """Bytes of all buffers, lent or not."""
        with self._changed:
            return self._made * self._buffer_bytes

    @contextmanager
    def buffer(self, timeout_s: float | None = None) -> Iterator[PinnedBuffer]:
        """Lend a buffer for a ``with`` block.

        Parameters
        ----------
        timeout_s
            How long to wait for one in seconds; None for ever.

        Raises
        ------
        StateError
            The pool is closed, or no buffer came back in time.
        AclError
            The runtime refuses to make one. Nothing is left.
        """
        buffer = self._take(timeout_s)
        try:
            yield buffer
        finally:
            self._give(buffer)

    def _take(self, timeout_s: float | None) -> PinnedBuffer:
        with self._changed:
            ready = self._changed.wait_for(self._is_ready, timeout_s)
            if self._closed:
                raise StateError("the staging pool is closed: make a new one")
            if not ready:
                raise StateError(f"all {self._max_buffers} staging buffers are lent after {timeout_s} s: give one back")
            buffer = self._free.pop() if self._free else self._device.malloc_host(self._buffer_bytes)
            self._made = max(self._made, self._counter.current_count + 1 + len(self._free))
            self._counter.add(self._buffer_bytes)
            return buffer

    def _is_ready(self) -> bool:
        return self._closed or bool(self._free) or self._counter.current_count < self._max_buffers

    def _give(self, buffer: PinnedBuffer) -> None:
        with self._changed:
            self._counter.remove(self._buffer_bytes)
            if not self._closed:
                self._free.append(buffer)
                self._changed.notify()
                return
            self._made -= 1
        buffer.close()

    def close(self) -> None:
        """Give the buffers back, those that are lent when they come; called again, it does what is left.

        Raises
        ------
        AclError
            The runtime refuses a buffer, which stays; `close` may be called again.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            failures: list[AclError] = []
            for buffer in tuple(self._free):
                try:
                    buffer.close()
                except AclError as error:
                    failures.append(error)
                else:
                    self._free.remove(buffer)
                    self._made -= 1
            if failures:
                raise failures[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
