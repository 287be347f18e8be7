"""What can be queued on any stream, and waiting for it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from acl_shim.api_types import StreamHandle
from acl_shim.batch import BatchArguments, BatchCopy
from acl_shim.codes import MemcpyKind
from acl_shim.copies import copy_arguments
from acl_shim.errors import Argument
from acl_shim.host_memory import HostBuffer, addr_of, hold, lasting_array, release
from acl_shim.lease import Lease
from acl_shim.queued import HOST_FUNCTION, Queued
from acl_shim.stream_codes import StreamStatus, WaitValueFlag
from acl_shim.table import ANSWER, new_cell
from acl_shim.timeouts import timeout_ms

if TYPE_CHECKING:
    from acl_shim.device import Device
    from acl_shim.event import Event
    from acl_shim.runtime import Runtime
    from acl_shim.stream_scope import StreamScope

_HOST_TO_DEVICE = MemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE
_DEVICE_TO_HOST = MemcpyKind.ACL_MEMCPY_DEVICE_TO_HOST
_COMPLETE = ANSWER + StreamStatus.ACL_STREAM_STATUS_COMPLETE


class StreamTasks:
    """A stream of a device: its tasks run one after the other, beside those of other streams.

    Memory that tasks use is kept alive until the stream has passed them, which is noticed when somebody waits for the
    stream, for an event recorded on it or for the device, asks one of them, or queues many tasks.

    Thread safety: any thread may use it; tasks run in the order in which they were queued.
    Source: aclrtSynchronizeStream, aclrtStreamQuery, aclrtMemcpyAsync, aclrtMemsetAsync, aclrtStreamWaitEvent,
    aclrtValueWrite, aclrtValueWait, aclrtLaunchHostFunc.
    """

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
    def handle(self) -> StreamHandle:
        """The `aclrtStream` as a number; 0 for a default stream."""
        raise NotImplementedError

    def enter_stream(self) -> tuple["Runtime", StreamHandle, Queued]:
        """Make the stream's context current; return runtime, handle, and what is queued."""
        raise NotImplementedError

    def target(self) -> tuple[Lease, StreamHandle, Queued]:
        """Return what lives under the stream's context, handle, and what is queued, for calls that make it current."""
        raise NotImplementedError

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

    def memcpy_async(
        self, dst: int, dst_max_bytes: int, src: int, count_bytes: int, kind: int = MemcpyKind.ACL_MEMCPY_DEFAULT
    ) -> None:
        """Copy bytes between two addresses in stream order; the caller keeps both memories until it is done.

        Parameters
        ----------
        dst, src
            Addresses on the host or on a device.
        dst_max_bytes
            Room at `dst` in bytes.
        count_bytes
            How many bytes; 0 copies nothing.
        kind
            A `MemcpyKind`.

        Raises
        ------
        AclError
            The runtime refuses; nothing is queued.
        StateError
            The stream is closed.
        """
        self._queue_copy(dst, dst_max_bytes, src, count_bytes, kind)

    def _queue_copy(self, dst: int, dst_max_bytes: int, src: int, count_bytes: int, kind: int, *kept: object) -> None:
        runtime, handle, queued = self.enter_stream()
        code = runtime.api.aclrtMemcpyAsync(dst, dst_max_bytes, src, count_bytes, kind, handle)
        if code:
            arguments = copy_arguments(dst, dst_max_bytes, src, count_bytes)
            self._check(code, "aclrtMemcpyAsync", {**arguments, "kind": kind, "stream": handle})
        if kept:
            self._keep(queued, *kept)

    def copy_in(self, dst: int, dst_max_bytes: int, values: NDArray[np.uint8], owner: object = None) -> None:
        """Queue a copy of an array to a device address; keep the array and the owner of the address until then."""
        held = hold(values, False)
        try:
            self._queue_copy(dst, dst_max_bytes, addr_of(held), len(held), _HOST_TO_DEVICE, values, owner)
        finally:
            release(held)

    def copy_out(self, values: NDArray[np.uint8], src: int, owner: object = None) -> None:
        """Queue a copy from a device address to an array; keep the array and the owner of the address until then."""
        held = hold(values, True)
        try:
            self._queue_copy(addr_of(held), len(held), src, len(held), _DEVICE_TO_HOST, values, owner)
        finally:
            release(held)

    def memcpy_in_async(self, dst: int, dst_max_bytes: int, src: HostBuffer) -> None:
        """Copy host memory to a device address in stream order; `src` is kept until then.

        Parameters
        ----------
        dst
            Address on the device.
        dst_max_bytes
            Room at `dst` in bytes.
        src
            C-contiguous numpy array, bytes, memoryview, other buffer, or DLPack object on the host; it must not be
            changed before the stream has passed the copy.

        Raises
        ------
        TypeError
            `src` has no host memory.
        ValueError
            `src` is not C-contiguous, or larger than `dst_max_bytes`.
        AclError
            The runtime refuses; nothing is queued.
        StateError
            The stream is closed.
        """
        values = lasting_array(src, False)
        self.device.check_room(dst, dst_max_bytes, values.nbytes)
        self.copy_in(dst, dst_max_bytes, values)

    def memcpy_out_async(self, dst: HostBuffer, src: int) -> None:
        """Copy as many bytes from a device address as the destination holds, in stream order; `dst` is kept until then.

        Parameters
        ----------
        dst
            Writable C-contiguous numpy array, bytearray, memoryview, other buffer, or DLPack object on the host; it
            holds the bytes after a synchronisation.
        src
            Address on the device.

        Raises
        ------
        TypeError
            `dst` has no host memory.
        ValueError
            `dst` is read-only or not C-contiguous.
        AclError
            The runtime refuses; nothing is queued.
        StateError
            The stream is closed.
        """
        self.copy_out(lasting_array(dst, True), src)

    def memcpy_2d_async(
        self,
        dst: int,
        dst_pitch_bytes: int,
        src: int,
        src_pitch_bytes: int,
        width_bytes: int,
        height: int,
        kind: int,
    ) -> None:
        """Copy rows of bytes between two addresses in stream order; the caller keeps both memories until it is done.

        Parameters
        ----------
        dst, src, dst_pitch_bytes, src_pitch_bytes, width_bytes, height, kind
            As `Device.memcpy_2d`; width at most 5000000 bytes, height at most 5242880.

        Raises
        ------
        AclError
            The runtime refuses; nothing is queued.
        StateError
            The stream is closed, or the library lacks the function.
        """
        runtime, handle, _ = self.enter_stream()
        code = runtime.api.aclrtMemcpy2dAsync(
            dst, dst_pitch_bytes, src, src_pitch_bytes, width_bytes, height, kind, handle
        )
        arguments = copy_arguments(dst, dst_pitch_bytes, src, width_bytes) | {"height": height, "kind": kind}
        self._check(code, "aclrtMemcpy2dAsync", arguments)

    def memcpy_batch_async(self, copies: Sequence[BatchCopy], kind: int) -> None:
        """Make many copies in one direction in stream order; the caller keeps the memories until they are done.

        Parameters
        ----------
        copies, kind
            As `Device.memcpy_batch`.

        Raises
        ------
        ValueError
            `kind` is neither direction between host and device.
        AclError
            The runtime refuses; its arguments name the first copy that failed. Those before it are queued.
        StateError
            The stream is closed, or the library lacks the function.
        """
        batch = BatchArguments(copies, kind, self.device.id)
        runtime, handle, queued = self.enter_stream()
        if copies:
            code = runtime.api.aclrtMemcpyBatchAsync(*batch.arrays, batch.fail_index, handle)
            self._check(code, "aclrtMemcpyBatchAsync", batch.error_arguments() if code else {})
            self._keep(queued, batch)

    def memset_async(self, addr: int, max_bytes: int, value: int, count_bytes: int) -> None:
        """Fill bytes with a value in stream order.

        Parameters
        ----------
        addr, max_bytes, value, count_bytes
            As `Device.memset`.

        Raises
        ------
        AclError
            The runtime refuses; nothing is queued.
        StateError
            The stream is closed.
        """
        runtime, handle, _ = self.enter_stream()
        code = runtime.api.aclrtMemsetAsync(addr, max_bytes, value, count_bytes, handle)
        if code:
            arguments: dict[str, Argument] = {"addr": addr, "max_bytes": max_bytes, "count_bytes": count_bytes}
            self._check(code, "aclrtMemsetAsync", arguments)

    def memset_d32_async(self, addr: int, max_bytes: int, value: int, count: int) -> None:
        """Fill words of 4 bytes with a value in stream order.

        Parameters
        ----------
        addr, max_bytes, value, count
            As `Device.memset_d32`.

        Raises
        ------
        AclError
            The runtime refuses; nothing is queued.
        StateError
            The stream is closed, or the library lacks the function.
        """
        runtime, handle, _ = self.enter_stream()
        code = runtime.api.aclrtMemsetD32Async(addr, max_bytes, value, count, handle)
        arguments: dict[str, Argument] = {"addr": addr, "max_bytes": max_bytes, "count": count}
        self._check(code, "aclrtMemsetD32Async", arguments)

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
