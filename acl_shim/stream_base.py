"""What every subject of a stream shares: its device, its handle, and what its tasks keep alive."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from acl_shim.api_types import StreamHandle
from acl_shim.errors import Argument
from acl_shim.lease import Lease
from acl_shim.queued import Queued
from acl_shim.stream_codes import StreamStatus
from acl_shim.table import new_cell

if TYPE_CHECKING:
    from acl_shim.device import Device
    from acl_shim.runtime import Runtime
    from acl_shim.stream_scope import StreamScope


class StreamBase(ABC):
    """A stream of a device or context: what it is, and how tasks are queued on it."""

    __slots__ = ()

    _scope: "StreamScope"

    @property
    def device(self) -> "Device":
        """Device the stream belongs to."""
        return self._scope.stream_device()

    @property
    def scope(self) -> "StreamScope":
        """Device or context the stream runs in."""
        return self._scope

    @property
    @abstractmethod
    def handle(self) -> StreamHandle:
        """The `aclrtStream` as a number; 0 for a default stream."""

    @abstractmethod
    def enter_stream(self) -> tuple["Runtime", StreamHandle, Queued]:
        """Make the stream's context current; return runtime, handle, and what is queued."""

    @abstractmethod
    def target(self) -> tuple[Lease, StreamHandle, Queued]:
        """Return what lives under the stream's context, handle, and what is queued, for calls that make it current."""

    def _check(self, code: int, call: str, arguments: dict[str, Argument]) -> None:
        if code:
            raise self.device.runtime.error(code, call, {**arguments, "device_id": self.device.id})

    def _keep(self, queued: Queued, *things: object) -> None:
        """Keep what a queued task uses; ask the stream what it has passed when much has gathered."""
        if queued.keep(things):
            runtime, handle, _ = self.enter_stream()
            status, mark = new_cell("int *"), queued.mark()
            code = runtime.api.aclrtStreamQuery(handle, status)  # a failure is told to who synchronises
            if code == 0 and status[0] == StreamStatus.ACL_STREAM_STATUS_COMPLETE:
                queued.passed(mark)
