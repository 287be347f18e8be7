"""What every source of memory has in common: blocks by size, freed by address, counted."""

import threading
from dataclasses import dataclass
from operator import index
from typing import Protocol

from gevar.align import INT64_MAX
from gevar.errors import SizeOverflowError, StateError
from gevar.status import PARAM_INVALID
from gevar.types import DevAddr, DeviceId

HOST_DEVICE_ID = DeviceId(-1)
"""Device of memory that lies on the host."""


def checked_size(size_bytes: int) -> int:
    """Return a size in bytes that memory can be asked for.

    Raises
    ------
    TypeError
        It is no integer.
    ValueError
        It is below 1.
    SizeOverflowError
        It leaves the signed 64 bits in which GE keeps sizes (status PARAM_INVALID).
    """
    size = index(size_bytes)
    if size < 1:
        raise ValueError(f"size_bytes is {size}: give at least 1 byte")
    if size > INT64_MAX:
        raise SizeOverflowError("a block of this size", size, INT64_MAX, status=PARAM_INVALID)
    return size


@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    """Bytes and blocks that a resource handed out.

    Attributes
    ----------
    current_bytes, current_count : int
        What is out now, sizes as asked for.
    peak_bytes, peak_count : int
        The most that was out at once.
    total_bytes, total_count : int
        All that was ever handed out.
    """

    current_bytes: int = 0
    current_count: int = 0
    peak_bytes: int = 0
    peak_count: int = 0
    total_bytes: int = 0
    total_count: int = 0


class StatisticsCounter:
    """Count what is handed out and taken back; `MemoryStatistics` says what the numbers are.

    What is out can only have been most before something was taken back, so the peak is looked at then.

    Thread safety: none; its owner calls under its own lock.
    """

    __slots__ = ("_back_bytes", "_back_count", "_peak_bytes", "_peak_count", "_total_bytes", "_total_count")

    def __init__(self) -> None:
        self._total_bytes = self._total_count = 0
        self._back_bytes = self._back_count = 0
        self._peak_bytes = self._peak_count = 0

    @property
    def current_bytes(self) -> int:
        """Bytes that are out."""
        return self._total_bytes - self._back_bytes

    @property
    def current_count(self) -> int:
        """Blocks that are out."""
        return self._total_count - self._back_count

    def add(self, size_bytes: int) -> None:
        """Count a block that was handed out."""
        self._total_bytes += size_bytes
        self._total_count += 1

    def remove(self, size_bytes: int) -> None:
        """Count a block that was taken back."""
        self._see_peak()
        self._back_bytes += size_bytes
        self._back_count += 1

    def _see_peak(self) -> None:
        out_bytes, out_count = self._total_bytes - self._back_bytes, self._total_count - self._back_count
        if out_bytes > self._peak_bytes:
            self._peak_bytes = out_bytes
        if out_count > self._peak_count:
            self._peak_count = out_count

    def reset_peak(self) -> None:
        """Let the peak be what is out now."""
        self._peak_bytes = self._peak_count = 0
        self._see_peak()

    def statistics(self) -> MemoryStatistics:
        """Return the numbers as they are now."""
        self._see_peak()
        return MemoryStatistics(
            current_bytes=self.current_bytes,
            current_count=self.current_count,
            peak_bytes=self._peak_bytes,
            peak_count=self._peak_count,
            total_bytes=self._total_bytes,
            total_count=self._total_count,
        )


class MemoryResource(Protocol):
    """Source of blocks of memory on one device.

    Implemented by `MemoryAllocator`, `CachingAllocator`, `RdmaPoolAllocator`, `HostMemAllocator`,
    `ExpandableActiveMemoryAllocator` and by the adaptors around any of them.

    Thread safety: all methods, from any thread.
    """

    @property
    def device_id(self) -> DeviceId:
        """Device of the blocks; `HOST_DEVICE_ID` for memory of the host."""

    @property
    def statistics(self) -> MemoryStatistics:
        """What was handed out."""

    def allocate(self, size_bytes: int, tag: str = "") -> DevAddr:
        """Return the first address of a block; its content is not defined unless the resource says so.

        Parameters
        ----------
        size_bytes
            Size in bytes, at least 1.
        tag
            What the block is for, or whose it is, in words; reports name it.

        Raises
        ------
        ValueError, SizeOverflowError
            As `checked_size`.
        OutOfMemoryError
            There is not enough memory. Nothing is left allocated.
        AclError
            The runtime refuses. Nothing is left allocated.
        StateError
            The resource is closed or not ready.
        """

    def free(self, dev_addr: DevAddr) -> None:
        """Take a block back, by its first address.

        Raises
        ------
        StateError
            There is no such block (status PARAM_INVALID). Nothing is freed.
        AclError
            The runtime refuses; the block is alive still.
        """


class UpstreamResource:
    """What resources over another resource share: the device of that one, and statistics of their own.

    Parameters
    ----------
    upstream
        The other resource.

    Attributes
    ----------
    upstream : MemoryResource
        The other resource.
    """

    def __init__(self, upstream: MemoryResource) -> None:
        self.upstream = upstream
        self._lock = threading.RLock()
        self._counter = StatisticsCounter()

    @property
    def device_id(self) -> DeviceId:
        """Device of the blocks."""
        return self.upstream.device_id

    @property
    def statistics(self) -> MemoryStatistics:
        """Blocks that were handed out here."""
        with self._lock:
            return self._counter.statistics()


def state_error(message: str, status: int) -> StateError:
    """Make a `StateError` that carries GE's status number."""
    error = StateError(message)
    error.status = status
    return error


def unknown_block(what: str, dev_addr: int) -> StateError:
    """Return the error for an address that is no block of a resource."""
    text = f"{what} has no live block at {dev_addr:#x}: free a block once, by its first address"
    return state_error(text, PARAM_INVALID)
