"""Streams as owner objects, and the default stream of a device or context."""

from typing import TYPE_CHECKING

from acl_shim.api_types import DEFAULT_STREAM, StreamHandle
from acl_shim.lease import Lease
from acl_shim.owner import StreamOwner
from acl_shim.queued import Queued
from acl_shim.stream_codes import StreamFailureMode
from acl_shim.stream_tasks import StreamTasks
from acl_shim.table import new_cell

if TYPE_CHECKING:
    from acl_shim.device import Device
    from acl_shim.runtime import Runtime
    from acl_shim.stream_scope import StreamScope


class Stream(StreamOwner, StreamTasks):
    """Own one stream; `Device.create_stream` and `Context.create_stream` make them.

    `close` and the finaliser wait for the tasks that are queued; `destroy_force` drops them.

    Thread safety: any thread may use it; tasks run in the order in which they were queued.
    Source: aclrtCreateStream, aclrtCreateStreamWithConfig, aclrtDestroyStream.
    """

    __slots__ = ("_queued", "_scope")

    def __init__(self, device: "Device", lease: Lease, handle: int, scope: "StreamScope") -> None:
        self._scope = scope  # a context lives as long as its streams
        self._queued = Queued()
        super().__init__(device, lease, handle)
        lease.queues.add(self._queued)

    def target(self) -> tuple[Lease, StreamHandle, Queued]:
        """Return what lives under the stream's context, handle, and what is queued."""
        return self._scope.lease(), StreamHandle(self._handle()), self._queued

    def enter_stream(self) -> tuple["Runtime", StreamHandle, Queued]:
        """Make the stream's context current; return runtime, handle, and what is queued."""
        handle = StreamHandle(self._handle())
        self._scope.enter()
        return self._device.runtime, handle, self._queued

    @property
    def handle(self) -> StreamHandle:
        """The `aclrtStream` as a number.

        Raises
        ------
        StateError
            The stream is closed.
        """
        return StreamHandle(self._handle())

    @property
    def id(self) -> int:
        """The runtime's number of the stream.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The stream is closed.
        """
        runtime, handle, _ = self.enter_stream()
        number = new_cell("int32_t *")
        self._check(runtime.api.aclrtStreamGetId(handle, number), "aclrtStreamGetId", {"stream": handle})
        return number[0]

    @property
    def priority(self) -> int:
        """Priority of the stream, 0 the highest.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The stream is closed, or the library lacks the function.
        """
        runtime, handle, _ = self.enter_stream()
        number = new_cell("uint32_t *")
        code = runtime.api.aclrtStreamGetPriority(handle, number)
        self._check(code, "aclrtStreamGetPriority", {"stream": handle})
        return number[0]

    @property
    def flags(self) -> int:
        """`StreamFlag` bits of the stream.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The stream is closed, or the library lacks the function.
        """
        runtime, handle, _ = self.enter_stream()
        number = new_cell("uint32_t *")
        self._check(runtime.api.aclrtStreamGetFlags(handle, number), "aclrtStreamGetFlags", {"stream": handle})
        return number[0]

    def stop_on_failure(self) -> None:
        """Drop the tasks behind a failed one, on this and the other streams of the context; once per stream.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The stream is closed, or the library lacks the function.
        """
        runtime, handle, _ = self.enter_stream()
        mode = StreamFailureMode.ACL_STOP_ON_FAILURE
        code = runtime.api.aclrtSetStreamFailureMode(handle, mode)
        self._check(code, "aclrtSetStreamFailureMode", {"stream": handle, "mode": mode})

    def abort(self) -> None:
        """Drop the tasks that have not begun, and what failed; the stream is empty then and can be used.

        Who waits for one of the tasks meanwhile gets 107023.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The stream is closed, or the library lacks the function.
        """
        runtime, handle, queued = self.enter_stream()
        mark, keys = queued.mark(), queued.planned()
        code = runtime.api.aclrtStreamAbort(handle)
        self._check(code, "aclrtStreamAbort", {"stream": handle})
        queued.dropped(mark, keys)

    def stop(self) -> None:
        """End the task the stream is at; a wait is over at once, and the next task runs.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The stream is closed, or the library lacks the function.
        """
        runtime, handle, _ = self.enter_stream()
        self._check(runtime.api.aclrtStreamStop(handle), "aclrtStreamStop", {"stream": handle})

    def _home(self) -> "StreamScope":
        return self._scope

    def _give_back(self, handle: int) -> None:
        code = self._device.runtime.api.aclrtDestroyStream(StreamHandle(handle))
        self._check(code, "aclrtDestroyStream", {"stream": handle})

    def _give_back_force(self, handle: int) -> None:
        code = self._device.runtime.api.aclrtDestroyStreamForce(StreamHandle(handle))
        self._check(code, "aclrtDestroyStreamForce", {"stream": handle})

    def close(self) -> None:
        """Wait for the tasks and destroy the stream; does nothing when that happened already.

        Raises
        ------
        AclError
            The runtime refuses. After failure the stream is open still and `close` may be called again.
        HostFunctionError
            Python functions raised. The stream is closed.
        """
        super().close()
        self._queued.raise_errors()

    def destroy_force(self) -> None:
        """Drop the tasks that have not begun and destroy the stream; does nothing when it is closed.

        Raises
        ------
        AclError
            The runtime refuses. After failure the stream is open still.
        HostFunctionError
            Python functions that were called raised. The stream is closed.
        """
        self._close(self._give_back_force)
        self._queued.raise_errors()

    def _given_back(self) -> None:
        super()._given_back()
        self._queued.end()


class DefaultStream(StreamTasks):
    """The default stream of a device or of a context; `Device.default_stream` and `Context.default_stream` give it.

    It belongs to the context and is never closed.

    Thread safety: any thread may use it; tasks run in the order in which they were queued.
    """

    __slots__ = ("_scope",)

    def __init__(self, scope: "StreamScope") -> None:
        self._scope = scope

    def target(self) -> tuple[Lease, StreamHandle, Queued]:
        """Return what lives under the stream's context, handle, and what is queued."""
        lease = self._scope.lease()
        return lease, DEFAULT_STREAM, lease.queued

    def enter_stream(self) -> tuple["Runtime", StreamHandle, Queued]:
        """Make the stream's context current; return runtime, handle, and what is queued."""
        lease = self._scope.enter()
        return self._scope.stream_device().runtime, DEFAULT_STREAM, lease.queued

    @property
    def handle(self) -> StreamHandle:
        """0, which stands for the default stream of the current context."""
        return DEFAULT_STREAM

    def __repr__(self) -> str:
        return f"<DefaultStream of {self._scope!r}>"
