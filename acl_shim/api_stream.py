"""Typed face of the C table: streams, callbacks, events, notifies."""

from typing import Protocol

from acl_shim.api_types import (
    Cell,
    CharArray,
    EventHandle,
    FloatCell,
    IntArray,
    IpcEventHandleStruct,
    NotifyHandle,
    StreamHandle,
)


class StreamApi(Protocol):
    """Streams; the stream 0 is the default stream of the current context; time-outs in milliseconds, -1 for ever."""

    def aclrtCreateStream(self, stream: Cell, /) -> int:
        """Write a new stream of the current context."""

    def aclrtCreateStreamWithConfig(self, stream: Cell, priority: int, flag: int, /) -> int:
        """Write a new stream of the current context with a priority, 0 the highest, and `StreamFlag` bits."""

    def aclrtDestroyStream(self, stream: StreamHandle, /) -> int:
        """Wait for a stream's tasks and destroy it."""

    def aclrtDestroyStreamForce(self, stream: StreamHandle, /) -> int:
        """Drop a stream's tasks and destroy it."""

    def aclrtSynchronizeStream(self, stream: StreamHandle, /) -> int:
        """Wait for a stream's tasks; returns what one of them failed with."""

    def aclrtSynchronizeStreamWithTimeout(self, stream: StreamHandle, timeout_ms: int, /) -> int:
        """Wait for a stream's tasks; 507046 where the time is over first."""

    def aclrtStreamQuery(self, stream: StreamHandle, status: Cell, /) -> int:
        """Write a `StreamStatus`."""

    def aclrtStreamGetId(self, stream: StreamHandle, stream_id: Cell, /) -> int:
        """Write a stream's number."""

    def aclrtStreamGetPriority(self, stream: StreamHandle, priority: Cell, /) -> int:
        """Write a stream's priority."""

    def aclrtStreamGetFlags(self, stream: StreamHandle, flags: Cell, /) -> int:
        """Write a stream's `StreamFlag` bits."""

    def aclrtDeviceGetStreamPriorityRange(self, least: Cell, greatest: Cell, /) -> int:
        """Write the numbers of the lowest and the highest priority."""

    def aclrtSetStreamFailureMode(self, stream: StreamHandle, mode: int, /) -> int:
        """Say what a stream does after a failed task, a `StreamFailureMode`."""

    def aclrtStreamAbort(self, stream: StreamHandle, /) -> int:
        """Drop the tasks of a stream that have not begun."""

    def aclrtRegStreamStateCallback(self, name: bytes, function: int, args: int, /) -> int:
        """Have a function called when streams are made and destroyed; a function of 0 ends that."""

    def query_stream(self, context: int, stream: StreamHandle, /) -> int:
        """Make a context current and return a `StreamStatus` plus `ANSWER`, or what `copy_in` returns."""

    def aclrtGetThreadLastTaskId(self, task_id: Cell, /) -> int:
        """Write the number of the last task that the calling thread queued."""

    def aclrtValueWrite(self, addr: int, value: int, flag: int, stream: StreamHandle, /) -> int:
        """Write a 64-bit word of device memory in stream order."""

    def aclrtValueWait(self, addr: int, value: int, flag: int, stream: StreamHandle, /) -> int:
        """Let a stream wait for a 64-bit word of device memory."""

    def aclrtDeviceTaskAbort(self, device_id: int, timeout_ms: int, /) -> int:
        """Drop the tasks of all streams of a device; 0 ms wait for ever."""

    def aclrtStreamStop(self, stream: StreamHandle, /) -> int:
        """End the task that a stream is at."""


class CallbackApi(Protocol):
    """Functions that the runtime calls; a function is the address of a C function."""

    def aclrtLaunchCallback(self, function: int, user_data: int, block_type: int, stream: StreamHandle, /) -> int:
        """Have a function called in stream order by a thread that serves the stream."""

    def aclrtSubscribeReport(self, thread_id: int, stream: StreamHandle, /) -> int:
        """Let a thread serve the callbacks of a stream."""

    def aclrtUnSubscribeReport(self, thread_id: int, stream: StreamHandle, /) -> int:
        """End what `aclrtSubscribeReport` began."""

    def aclrtProcessReport(self, timeout_ms: int, /) -> int:
        """Call what is due on the calling thread, or wait for it."""

    def aclrtLaunchHostFunc(self, stream: StreamHandle, function: int, args: int, /) -> int:
        """Have a function called in stream order on a thread of the runtime."""

    def aclrtSubscribeHostFunc(self, thread_id: int, stream: StreamHandle, /) -> int:
        """Let a thread call the host functions of a stream."""

    def aclrtUnSubscribeHostFunc(self, thread_id: int, stream: StreamHandle, /) -> int:
        """End what `aclrtSubscribeHostFunc` began."""

    def aclrtProcessHostFunc(self, timeout_ms: int, /) -> int:
        """Call the host functions that are due on the calling thread, or wait for one."""

    def aclrtSetExceptionInfoCallback(self, function: int, /) -> int:
        """Have a function called when a task fails; a function of 0 ends that."""

    def aclrtGetTaskIdFromExceptionInfo(self, info: int, /) -> int:
        """Return the number of the failed task."""

    def aclrtGetStreamIdFromExceptionInfo(self, info: int, /) -> int:
        """Return the number of its stream."""

    def aclrtGetThreadIdFromExceptionInfo(self, info: int, /) -> int:
        """Return the thread that queued it."""

    def aclrtGetDeviceIdFromExceptionInfo(self, info: int, /) -> int:
        """Return its device."""

    def aclrtGetErrorCodeFromExceptionInfo(self, info: int, /) -> int:
        """Return the code it failed with."""


class AllocatorApi(Protocol):
    """Custom allocators of streams: kept by the runtime, called by others; functions are addresses of C functions."""

    def aclrtAllocatorCreateDesc(self) -> int:
        """Return a new description; 0 where there is none."""

    def aclrtAllocatorDestroyDesc(self, desc: int, /) -> int:
        """Destroy a description."""

    def aclrtAllocatorSetObjToDesc(self, desc: int, allocator: int, /) -> int:
        """Set the object that the functions get."""

    def aclrtAllocatorSetAllocFuncToDesc(self, desc: int, function: int, /) -> int:
        """Set the function that allocates."""

    def aclrtAllocatorSetFreeFuncToDesc(self, desc: int, function: int, /) -> int:
        """Set the function that frees."""

    def aclrtAllocatorSetAllocAdviseFuncToDesc(self, desc: int, function: int, /) -> int:
        """Set the function that allocates at a wished address."""

    def aclrtAllocatorSetGetAddrFromBlockFuncToDesc(self, desc: int, function: int, /) -> int:
        """Set the function that gives the address of a block."""

    def aclrtAllocatorRegister(self, stream: StreamHandle, desc: int, /) -> int:
        """Give a stream an allocator."""

    def aclrtAllocatorGetByStream(
        self, stream: StreamHandle, desc: Cell, allocator: Cell, alloc: Cell, free: Cell, advise: Cell, addr: Cell, /
    ) -> int:
        """Write the parts of a stream's allocator."""

    def aclrtAllocatorUnregister(self, stream: StreamHandle, /) -> int:
        """Take a stream's allocator away."""


class EventApi(Protocol):
    """Events and notifies; the stream 0 is the default stream of the current context."""

    def aclrtCreateEvent(self, event: Cell, /) -> int:
        """Write a new event."""

    def aclrtCreateEventWithFlag(self, event: Cell, flag: int, /) -> int:
        """Write a new event with `EventFlag` bits."""

    def aclrtCreateEventExWithFlag(self, event: Cell, flag: int, /) -> int:
        """Write a new event with `EventFlag` bits that takes no hardware event."""

    def aclrtDestroyEvent(self, event: EventHandle, /) -> int:
        """Destroy an event."""

    def aclrtRecordEvent(self, event: EventHandle, stream: StreamHandle, /) -> int:
        """Let an event record where a stream is."""

    def aclrtRecordEventWithFlag(self, event: EventHandle, stream: StreamHandle, flag: int, /) -> int:
        """Let an event record where a stream is, as a node of its own where the flag is 1."""

    def aclrtResetEvent(self, event: EventHandle, stream: StreamHandle, /) -> int:
        """Take back in stream order what an event recorded."""

    def aclrtStreamWaitEvent(self, stream: StreamHandle, event: EventHandle, /) -> int:
        """Let a stream wait for an event."""

    def aclrtStreamWaitEventWithFlag(
        self, stream: StreamHandle, event: EventHandle, timeout_ms: int, flag: int, /
    ) -> int:
        """Let a stream wait for an event, as a node of its own where the flag is 1."""

    def aclrtSetOpWaitTimeout(self, timeout_s: int, /) -> int:
        """Say how long streams wait for events, in seconds; 0 for ever."""

    def aclrtQueryEventStatus(self, event: EventHandle, status: Cell, /) -> int:
        """Write an `EventRecordedStatus`."""

    def query_event(self, context: int, event: EventHandle, /) -> int:
        """Make a context current and return an `EventRecordedStatus` plus `ANSWER`, or what `copy_in` returns."""

    def record_event(self, context: int, event: EventHandle, stream: StreamHandle, /) -> int:
        """Make a context current and let an event record where a stream is; the result is that of `copy_in`."""

    def aclrtQueryEventWaitStatus(self, event: EventHandle, status: Cell, /) -> int:
        """Write an `EventWaitStatus`."""

    def aclrtSynchronizeEvent(self, event: EventHandle, /) -> int:
        """Wait for what an event recorded."""

    def aclrtSynchronizeEventWithTimeout(self, event: EventHandle, timeout_ms: int, /) -> int:
        """Wait for what an event recorded; 507047 where the time is over first."""

    def aclrtEventElapsedTime(self, milliseconds: FloatCell, start: EventHandle, end: EventHandle, /) -> int:
        """Write the time between two events."""

    def aclrtEventGetTimestamp(self, event: EventHandle, microseconds: Cell, /) -> int:
        """Write when an event was reached."""

    def aclrtIpcGetEventHandle(self, event: EventHandle, handle: IpcEventHandleStruct, /) -> int:
        """Write a key of an event for another process."""

    def aclrtIpcOpenEventHandle(self, handle: IpcEventHandleStruct, event: Cell, /) -> int:
        """Write an event of another process."""

    def aclrtCreateNotify(self, notify: Cell, flag: int, /) -> int:
        """Write a new notify."""

    def aclrtDestroyNotify(self, notify: NotifyHandle, /) -> int:
        """Destroy a notify."""

    def aclrtRecordNotify(self, notify: NotifyHandle, stream: StreamHandle, /) -> int:
        """Set a notify in stream order."""

    def aclrtWaitAndResetNotify(self, notify: NotifyHandle, stream: StreamHandle, timeout_s: int, /) -> int:
        """Let a stream wait for a notify and take it back; 0 seconds for ever."""

    def aclrtNotifyGetExportKey(self, notify: NotifyHandle, key: CharArray, len_bytes: int, flags: int, /) -> int:
        """Write a key of a notify."""

    def aclrtNotifyImportByKey(self, notify: Cell, key: bytes, flags: int, /) -> int:
        """Write a notify of another process."""

    def aclrtNotifySetImportPid(self, notify: NotifyHandle, pids: IntArray, count: int, /) -> int:
        """Say which processes may import a notify."""
