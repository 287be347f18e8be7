"""Adaptors around any memory resource: statistics, limit, failure hook.

Each adds one behaviour to the resource it is given first, and is a resource itself, so they can be stacked.
"""

from collections.abc import Callable

from acl_shim.codes import AclErrorCode
from acl_shim.errors import Shortage
from gevar.errors import OutOfMemoryError
from gevar.memory.memory_resource import MemoryResource, MemoryStatistics, UpstreamResource, checked_size
from gevar.memory.memory_shortage import MemoryReport, MemoryShortageError
from gevar.types import DevAddr, DeviceId


class ResourceAdaptor(UpstreamResource):
    """Pass requests on, and count what went through here; implements `MemoryResource`.

    Parameters
    ----------
    upstream
        The resource.

    Attributes
    ----------
    upstream : MemoryResource
        The resource.

    Thread safety: all methods, from any thread; `upstream` is called without a lock.
    """

    def __init__(self, upstream: MemoryResource) -> None:
        super().__init__(upstream)
        self._sizes: dict[DevAddr, int] = {}

    def allocate(self, size_bytes: int, tag: str = "") -> DevAddr:
        """Return a block; see `MemoryResource.allocate`."""
        size = checked_size(size_bytes)
        dev_addr = self.upstream.allocate(size, tag)
        with self._lock:
            self._sizes[dev_addr] = size
            self._counter.add(size)
        return dev_addr

    def free(self, dev_addr: DevAddr) -> None:
        """Take a block back; see `MemoryResource.free`. A block that did not come through here is not counted."""
        with self._lock:
            size = self._sizes.pop(dev_addr, None)
        try:
            self.upstream.free(dev_addr)
        except BaseException:
            if size is not None:
                with self._lock:
                    self._sizes[dev_addr] = size
            raise
        if size is not None:
            with self._lock:
                self._counter.remove(size)


class StatisticsResourceAdaptor(ResourceAdaptor):
    """Count what one user of a resource takes; peaks can be measured piece by piece."""

    def reset_peak(self) -> MemoryStatistics:
        """Return the statistics, and let the peak be what is out now."""
        with self._lock:
            before = self._counter.statistics()
            self._counter.reset_peak()
            return before


class LimitingResourceAdaptor(ResourceAdaptor):
    """Refuse what would take more than a number of bytes, before the resource is asked.

    Parameters
    ----------
    upstream
        The resource.
    limit_bytes
        Bytes that may be out at once.

    Raises
    ------
    ValueError
        The limit is negative.
    """

    def __init__(self, upstream: MemoryResource, limit_bytes: int) -> None:
        if limit_bytes < 0:
            raise ValueError(f"limit_bytes is {limit_bytes}: give a number from 0")
        super().__init__(upstream)
        self.limit_bytes = limit_bytes
        self._asked_bytes = 0

    def allocate(self, size_bytes: int, tag: str = "") -> DevAddr:
        """Return a block; see `MemoryResource.allocate`. Requests under way count."""
        size = checked_size(size_bytes)
        with self._lock:
            room = self.limit_bytes - self._counter.current_bytes - self._asked_bytes
            if size > room:
                raise self._limit_error(size, room)
            self._asked_bytes += size
        try:
            return super().allocate(size, tag)
        finally:
            with self._lock:
                self._asked_bytes -= size

    def _limit_error(self, size: int, room: int) -> MemoryShortageError:
        device_id, limit = self.device_id, self.limit_bytes
        shortage = Shortage(size, room, limit, device_id, "bytes below the limit")
        code, arguments = AclErrorCode.ACL_ERROR_RT_MEMORY_ALLOCATION, {"size_bytes": size}
        error = OutOfMemoryError(code, "LimitingResourceAdaptor.allocate", {**arguments}, shortage=shortage)
        advice = ("raise the limit, or free what was taken through it",)
        return MemoryShortageError(error, MemoryReport(size, device_id, "the limit", room, room, (), (), advice))


OnFailure = Callable[[int, DeviceId, OutOfMemoryError], bool]
"""Called with size in bytes, device and error of a request that did not fit; True to try again."""


class FailureCallbackResourceAdaptor(ResourceAdaptor):
    """Tell a function when memory is short, on whatever device, and try again while it says so.

    Parameters
    ----------
    upstream
        The resource.
    on_failure
        The function; it is called without a lock, on the thread that asks, and may free memory.
    """

    def __init__(self, upstream: MemoryResource, on_failure: OnFailure) -> None:
        super().__init__(upstream)
        self._on_failure = on_failure

    def allocate(self, size_bytes: int, tag: str = "") -> DevAddr:
        """Return a block; see `MemoryResource.allocate`. What the function raises comes through."""
        while True:
            try:
                return super().allocate(size_bytes, tag)
            except OutOfMemoryError as error:
                if not self._on_failure(size_bytes, self.device_id, error):
                    raise
