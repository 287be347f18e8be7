"""Where streams, events and notifies are made: a device's default context, or an explicit context."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from acl_shim.api_types import ContextHandle, StreamHandle
from acl_shim.codes import AclErrorCode
from acl_shim.errors import Argument
from acl_shim.event import Event
from acl_shim.lease import Lease
from acl_shim.notify import Notify
from acl_shim.stream import DefaultStream, Stream
from acl_shim.table import CONTEXT_REFUSED, new_cell
from acl_shim.timeouts import timeout_ms

if TYPE_CHECKING:
    from acl_shim.device import Device


class StreamScope(ABC):
    """A context in which streams run."""

    __slots__ = ()

    @abstractmethod
    def enter(self) -> Lease:
        """Make the context current on the calling thread and return what lives under it.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The context is gone, or the runtime is closed or forked.
        """

    @abstractmethod
    def lease(self) -> Lease:
        """Return what lives under the context, for calls that make it current themselves.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The context is gone, or the runtime is closed or forked.
        """

    @abstractmethod
    def refused(self, code: int, lease: Lease) -> NoReturn:
        """Raise for the context, which could not be made current."""

    @abstractmethod
    def stream_device(self) -> "Device":
        """Return the device of the context."""

    def refuse(self, code: int, call: str, arguments: dict[str, Argument], lease: Lease) -> NoReturn:
        """Raise for a call that makes the context current and returned a code.

        Parameters
        ----------
        code
            What it returned: the code of the call, or that of the context plus `CONTEXT_REFUSED`.
        call
            Name of the C function.
        arguments
            Its arguments by name.
        lease
            What lives under the context.
        """
        if code >= CONTEXT_REFUSED:
            self.refused(code - CONTEXT_REFUSED, lease)
        device = self.stream_device()
        raise device.runtime.error(code, call, {**arguments, "device_id": device.id})

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the context current for a ``with`` block; then the one that was, where there was one."""
        runtime, before = self.stream_device().runtime, new_cell("uintptr_t *")
        code = runtime.api.aclrtGetCurrentContext(before)
        if code != AclErrorCode.ACL_ERROR_RT_CONTEXT_NULL:
            runtime.check(code, "aclrtGetCurrentContext", {})
        self.enter()
        try:
            yield
        finally:
            if code == 0:
                context = ContextHandle(before[0])
                runtime.check(
                    runtime.api.aclrtSetCurrentContext(context), "aclrtSetCurrentContext", {"context": context}
                )

    def default_handle(self) -> StreamHandle:
        """Return the handle of the default stream, for calls that do not take 0 for it; the context is current then.

        Raises
        ------
        AclError
            The runtime refuses.
        """
        self.enter()
        runtime, cell = self.stream_device().runtime, new_cell("uintptr_t *")
        code = runtime.api.aclrtCtxGetCurrentDefaultStream(cell)
        runtime.check(code, "aclrtCtxGetCurrentDefaultStream", {"device_id": self.stream_device().id})
        return StreamHandle(cell[0])

    @property
    def default_stream(self) -> DefaultStream:
        """The default stream of the context."""
        return DefaultStream(self)

    def create_stream(self, priority: int | None = None, flags: int = 0) -> Stream:
        """Make a stream.

        Parameters
        ----------
        priority
            0 the highest to 7 the lowest; what is out of range is moved into it. None for that of
            `aclrtCreateStream`.
        flags
            `StreamFlag` bits.

        Raises
        ------
        AclError
            The runtime refuses: 207008 where the device has no stream left. Nothing is left.
        StateError
            The context is gone, or the library lacks the function.
        """
        cell, device = new_cell("uintptr_t *"), self.stream_device()
        lease, api = self.enter(), device.runtime.api
        if priority is None and not flags:
            call, code = "aclrtCreateStream", api.aclrtCreateStream(cell)
        else:
            call = "aclrtCreateStreamWithConfig"
            code = api.aclrtCreateStreamWithConfig(cell, priority or 0, flags)
        device.runtime.check(code, call, {"priority": priority, "flags": flags, "device_id": device.id})
        return Stream(device, lease, cell[0], self)

    def create_event(self, flags: int = 0, *, extended: bool = False) -> Event:
        """Make an event.

        Parameters
        ----------
        flags
            `EventFlag` bits; 0 for an event that serves for waiting and measuring.
        extended
            Whether the event takes no hardware event; then `flags` must not be 0, and `reset` and `query_wait` are
            refused.

        Raises
        ------
        ValueError
            `extended` without flags.
        AclError
            The runtime refuses: 107000 for flags that do not go together. Nothing is left.
        StateError
            The context is gone, or the library lacks the function.
        """
        if extended and not flags:
            raise ValueError("flags are 0: give EventFlag bits for an extended event")
        cell, device = new_cell("uintptr_t *"), self.stream_device()
        lease, api = self.enter(), device.runtime.api
        if extended:
            call, code = "aclrtCreateEventExWithFlag", api.aclrtCreateEventExWithFlag(cell, flags)
        elif flags:
            call, code = "aclrtCreateEventWithFlag", api.aclrtCreateEventWithFlag(cell, flags)
        else:
            call, code = "aclrtCreateEvent", api.aclrtCreateEvent(cell)
        device.runtime.check(code, call, {"flags": flags, "device_id": device.id})
        return Event(device, lease, cell[0], self)

    def create_notify(self, flags: int = 0) -> Notify:
        """Make a notify.

        Parameters
        ----------
        flags
            0, or 1 for one that only the device uses.

        Raises
        ------
        AclError
            The runtime refuses. Nothing is left.
        StateError
            The context is gone, or the library lacks the function.
        """
        cell, device = new_cell("uintptr_t *"), self.stream_device()
        lease = self.enter()
        code = device.runtime.api.aclrtCreateNotify(cell, flags)
        device.runtime.check(code, "aclrtCreateNotify", {"flags": flags, "device_id": device.id})
        return Notify(device, lease, cell[0], self)

    def synchronize(self, timeout_s: float | None = None) -> None:
        """Wait until every task queued so far on the streams of the context is done.

        Parameters
        ----------
        timeout_s
            Seconds to wait at most, above 0; None to wait for ever.

        Raises
        ------
        ValueError
            `timeout_s` is out of range.
        AclError
            A task failed, with its code; 507046 where the time is over, the tasks go on.
        HostFunctionError
            Python functions on one of the streams raised; those of other streams are raised by the next call.
        StateError
            The context is gone.
        """
        milliseconds = None if timeout_s is None else timeout_ms(timeout_s)
        device = self.stream_device()
        lease, api = self.enter(), device.runtime.api
        marks = [(queued, queued.mark()) for queued in tuple(lease.queues)]
        if milliseconds is None:
            call, code = "aclrtSynchronizeDevice", api.aclrtSynchronizeDevice()
        else:
            call = "aclrtSynchronizeDeviceWithTimeout"
            code = api.aclrtSynchronizeDeviceWithTimeout(milliseconds)
        device.runtime.check(code, call, {"device_id": device.id, "timeout_ms": milliseconds})
        for queued, mark in marks:
            queued.passed(mark)
        for queued, _ in marks:
            queued.raise_errors()
