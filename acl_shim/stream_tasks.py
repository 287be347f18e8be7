"""What can be queued on any stream, and waiting for it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from acl_shim.queued import HOST_FUNCTION
from acl_shim.stream_codes import StreamStatus, WaitValueFlag
from acl_shim.stream_copies import StreamCopies
from acl_shim.table import ANSWER
from acl_shim.timeouts import timeout_ms

if TYPE_CHECKING:
    from acl_shim.event import Event

_COMPLETE = ANSWER + StreamStatus.ACL_STREAM_STATUS_COMPLETE


class StreamTasks(StreamCopies):
    """A stream of a device: its tasks run one after the other, beside those of other streams.

    Memory that tasks use is kept alive until the stream has passed them, which is noticed when somebody waits for the
    stream, for an event recorded on it or for the device, asks one of them, or queues many tasks.

    Thread safety: any thread may use it; tasks run in the order in which they were queued.
    Source: aclrtSynchronizeStream, aclrtStreamQuery, aclrtMemcpyAsync, aclrtMemsetAsync, aclrtStreamWaitEvent,
    aclrtValueWrite, aclrtValueWait, aclrtLaunchHostFunc.
    """

    __slots__ = ()

    def synchronize(self, timeout_s: float | None = None) -> None:
        """Wait until every task queued so far is done.

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
            Python functions raised.
        StateError
            The stream is closed.
        """
        milliseconds = None if timeout_s is None else timeout_ms(timeout_s)
        runtime, handle, queued = self.enter_stream()
        mark = queued.mark()
        if milliseconds is None:
            call, code = "aclrtSynchronizeStream", runtime.api.aclrtSynchronizeStream(handle)
        else:
            call = "aclrtSynchronizeStreamWithTimeout"
            code = runtime.api.aclrtSynchronizeStreamWithTimeout(handle, milliseconds)
        if code:
            self._check(code, call, {"stream": handle, "timeout_ms": milliseconds})
        queued.passed(mark)
        queued.raise_errors()

    def query(self) -> bool:
        """Return whether every task queued so far is done.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The stream is closed.
        """
        lease, handle, queued = self.target()
        mark = queued.mark()
        answer = self._scope.stream_device().runtime.api.query_stream(lease.context, handle)
        if answer == _COMPLETE:
            queued.passed(mark)
            return True
        if answer < ANSWER:
            self._scope.refuse(answer, "aclrtStreamQuery", {"stream": handle}, lease)
        return False

    def record(self, event: "Event") -> None:
        """Let an event record where the stream is: `Event.record` with this stream.

        Parameters
        ----------
        event
            An event of the same context.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            Stream or event is closed.
        """
        event.record(self)

    def wait_event(self, event: "Event") -> None:
        """Let the stream wait for what an event last recorded.

        Parameters
        ----------
        event
            The event; one that never recorded anything is not waited for.

        Raises
        ------
        AclError
            The runtime refuses: 207000 for an event that does not serve for waiting.
        StateError
            Stream or event is closed.
        """
        runtime, handle, queued = self.enter_stream()
        code = runtime.api.aclrtStreamWaitEvent(handle, event.handle)
        if code:
            self._check(code, "aclrtStreamWaitEvent", {"stream": handle, "event": event.handle})
        self._keep(queued, event)

    def value_write(self, addr: int, value: int) -> None:
        """Write a 64-bit word of device memory in stream order.

        Parameters
        ----------
        addr
            Address of the word, at a multiple of 8.
        value
            The word, 0 to 2**64 - 1.

        Raises
        ------
        AclError
            The runtime refuses; nothing is queued.
        StateError
            The stream is closed, or the library lacks the function.
        """
        runtime, handle, _ = self.enter_stream()
        code = runtime.api.aclrtValueWrite(addr, value, 0, handle)
        self._check(code, "aclrtValueWrite", {"addr": addr, "value": value, "stream": handle})

    def value_wait(self, addr: int, value: int, flag: WaitValueFlag = WaitValueFlag.ACL_STREAM_WAIT_VALUE_GEQ) -> None:
        """Let the stream wait until a 64-bit word of device memory compares with a value.

        Parameters
        ----------
        addr
            Address of the word, at a multiple of 8.
        value
            What the word is compared with, 0 to 2**64 - 1.
        flag
            How: at least, equal, a common bit, or not all bits.

        Raises
        ------
        AclError
            The runtime refuses; nothing is queued.
        StateError
            The stream is closed, or the library lacks the function.
        """
        runtime, handle, _ = self.enter_stream()
        code = runtime.api.aclrtValueWait(addr, value, flag, handle)
        self._check(code, "aclrtValueWait", {"addr": addr, "value": value, "flag": flag, "stream": handle})

    def launch_host_func(self, function: Callable[[], object]) -> None:
        """Call a Python function in stream order, on a thread of the runtime; tasks behind it wait for it.

        The function must not call the runtime. What it raises is raised as `HostFunctionError` to whoever next
        synchronises the stream or the device, or closes the stream. No function starts once the interpreter ends.

        Parameters
        ----------
        function
            Called without arguments; its result is dropped.

        Raises
        ------
        TypeError
            `function` cannot be called.
        AclError
            The runtime refuses; the function is never called.
        StateError
            The stream is closed, or the library lacks the function.
        """
        if not callable(function):
            raise TypeError(f"{type(function).__name__} cannot be called: pass a function without arguments")
        runtime, handle, queued = self.enter_stream()
        key = queued.plan(function)
        try:
            code = runtime.api.aclrtLaunchHostFunc(handle, HOST_FUNCTION, key)
            self._check(code, "aclrtLaunchHostFunc", {"stream": handle})
        except BaseException:
            queued.cancel(key)
            raise
