"""Events: points of a stream that others wait for and measure between."""

from typing import TYPE_CHECKING

from acl_shim.api_types import EventHandle
from acl_shim.errors import Argument
from acl_shim.lease import Lease
from acl_shim.owner import Owner
from acl_shim.queued import Queued
from acl_shim.stream_codes import EventRecordedStatus, EventWaitStatus
from acl_shim.structs import new_event_key, struct_bytes
from acl_shim.table import ANSWER, new_cell, new_float_cell
from acl_shim.timeouts import timeout_ms

if TYPE_CHECKING:
    from acl_shim.device import Device
    from acl_shim.stream_scope import StreamScope
    from acl_shim.stream_tasks import StreamTasks


_COMPLETE = ANSWER + EventRecordedStatus.ACL_EVENT_RECORDED_STATUS_COMPLETE


class Event(Owner):
    """Own one event; `Device.create_event`, `Context.create_event` and `Device.import_event` make them.

    Thread safety: any thread may use it.
    Source: aclrtCreateEvent, aclrtCreateEventWithFlag, aclrtCreateEventExWithFlag, aclrtDestroyEvent.
    """

    __slots__ = ("_recorded", "_scope")

    def __init__(self, device: "Device", lease: Lease, handle: int, scope: "StreamScope") -> None:
        self._scope = scope  # a context lives as long as its events
        self._recorded: tuple[Queued, int] | None = None  # the stream it recorded last, and how far that was
        super().__init__(device, lease, handle)

    def _give_back(self, handle: int) -> None:
        runtime = self._device.runtime
        code = runtime.api.aclrtDestroyEvent(EventHandle(handle))
        if code:
            raise runtime.error(code, "aclrtDestroyEvent", {"event": handle, "device_id": self._device.id})

    @property
    def handle(self) -> EventHandle:
        """The `aclrtEvent` as a number.

        Raises
        ------
        StateError
            The event is closed.
        """
        return EventHandle(self._handle())

    def _check(self, code: int, call: str, arguments: dict[str, Argument]) -> None:
        if code:
            raise self._device.runtime.error(code, call, {**arguments, "device_id": self._device.id})

    def record(self, stream: "StreamTasks") -> None:
        """Record where a stream is; replaces what was recorded before.

        Parameters
        ----------
        stream
            A stream of the same context.

        Raises
        ------
        AclError
            The runtime refuses: 107003 for a stream of another context.
        StateError
            Event or stream is closed.
        """
        event = self.handle
        lease, handle, queued = stream.target()
        mark = queued.mark()
        code = self._device.runtime.api.record_event(lease.context, event, handle)
        if code:
            stream.scope.refuse(code, "aclrtRecordEvent", {"event": event, "stream": handle}, lease)
        self._recorded = queued, mark

    def reset(self, stream: "StreamTasks") -> None:
        """Take back in stream order what was recorded, so that the event can be recorded and waited for anew.

        Parameters
        ----------
        stream
            A stream of the same context.

        Raises
        ------
        AclError
            The runtime refuses: 207000 for an event that does not serve for it.
        StateError
            Event or stream is closed.
        """
        event = self.handle
        runtime, handle, _ = stream.enter_stream()
        code = runtime.api.aclrtResetEvent(event, handle)
        self._check(code, "aclrtResetEvent", {"event": event, "stream": handle})

    def _reached(self, recorded: tuple[Queued, int] | None) -> None:
        """Drop what the stream kept up to the record."""
        if recorded is not None:
            queued, mark = recorded
            queued.passed(mark)

    def query(self) -> bool:
        """Return whether what was recorded last is done; what an event says that never recorded depends on its kind.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The event is closed.
        """
        event, recorded, lease = self.handle, self._recorded, self._scope.lease()
        answer = self._device.runtime.api.query_event(lease.context, event)
        if answer == _COMPLETE:
            self._reached(recorded)
            return True
        if answer < ANSWER:
            self._scope.refuse(answer, "aclrtQueryEventStatus", {"event": event}, lease)
        return False

    def query_wait(self) -> bool:
        """Return whether the streams that wait for the event have gone on.

        Raises
        ------
        AclError
            The runtime refuses: 207000 for an event made with ``extended``.
        StateError
            The event is closed, or the library lacks the function.
        """
        event, status = self.handle, new_cell("int *")
        self._scope.enter()
        code = self._device.runtime.api.aclrtQueryEventWaitStatus(event, status)
        self._check(code, "aclrtQueryEventWaitStatus", {"event": event})
        return status[0] == EventWaitStatus.ACL_EVENT_WAIT_STATUS_COMPLETE

    def synchronize(self, timeout_s: float | None = None) -> None:
        """Wait until what was recorded last is done; returns at once where nothing was.

        Parameters
        ----------
        timeout_s
            Seconds to wait at most, above 0; None to wait for ever.

        Raises
        ------
        ValueError
            `timeout_s` is out of range.
        AclError
            The runtime refuses; 507047 where the time is over.
        StateError
            The event is closed.
        """
        milliseconds = None if timeout_s is None else timeout_ms(timeout_s)
        event, recorded = self.handle, self._recorded
        self._scope.enter()
        api = self._device.runtime.api
        if milliseconds is None:
            call, code = "aclrtSynchronizeEvent", api.aclrtSynchronizeEvent(event)
        else:
            call = "aclrtSynchronizeEventWithTimeout"
            code = api.aclrtSynchronizeEventWithTimeout(event, milliseconds)
        self._check(code, call, {"event": event, "timeout_ms": milliseconds})
        self._reached(recorded)

    def elapsed_ms(self, end: "Event") -> float:
        """Return the time from this event to another, in milliseconds, as the device measured it.

        Parameters
        ----------
        end
            The later event; an earlier one gives a negative time or an error, as the product does.

        Raises
        ------
        AclError
            The runtime refuses: 107006 where one is not reached yet, 507000 where one never recorded.
        StateError
            An event is closed.
        """
        start, milliseconds = self.handle, new_float_cell()
        self._scope.enter()
        code = self._device.runtime.api.aclrtEventElapsedTime(milliseconds, start, end.handle)
        self._check(code, "aclrtEventElapsedTime", {"start": start, "end": end.handle})
        return milliseconds[0]

    def timestamp_us(self) -> int:
        """Return when the event was reached, in microseconds of the device's clock.

        Raises
        ------
        AclError
            The runtime refuses: 107006 where it is not reached yet, 507000 where it never recorded.
        StateError
            The event is closed.
        """
        event, microseconds = self.handle, new_cell("uint64_t *")
        self._scope.enter()
        code = self._device.runtime.api.aclrtEventGetTimestamp(event, microseconds)
        self._check(code, "aclrtEventGetTimestamp", {"event": event})
        return microseconds[0]

    def export_key(self) -> bytes:
        """Return a key by which another process imports the event, made with ``ACL_EVENT_IPC``; 64 bytes.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The event is closed, or the library lacks the function.
        """
        event, key = self.handle, new_event_key()
        self._scope.enter()
        code = self._device.runtime.api.aclrtIpcGetEventHandle(event, key)
        self._check(code, "aclrtIpcGetEventHandle", {"event": event})
        return struct_bytes(key.reserved)
