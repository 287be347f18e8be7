"""Numbers of streams, events, notifies and callbacks, with ACL's names and values.

Source: CANN runtime headers, include/external/acl/acl_rt.h, version 1.17.0.
"""

from enum import IntEnum, IntFlag


class StreamFlag(IntFlag):
    """Choose the kind of a stream (``ACL_STREAM_*``)."""

    ACL_STREAM_FAST_LAUNCH = 1
    ACL_STREAM_FAST_SYNC = 2
    ACL_STREAM_PERSISTENT = 4
    ACL_STREAM_HUGE = 8
    ACL_STREAM_CPU_SCHEDULE = 0x10
    ACL_STREAM_DEVICE_USE_ONLY = 0x20


class StreamStatus(IntEnum):
    """Say whether a stream has work left (`aclrtStreamStatus`)."""

    ACL_STREAM_STATUS_COMPLETE = 0
    ACL_STREAM_STATUS_NOT_READY = 1
    ACL_STREAM_STATUS_RESERVED = 0xFFFF


class StreamState(IntEnum):
    """Say what happens to a stream (`aclrtStreamState`)."""

    ACL_RT_STREAM_STATE_CREATE_POST = 1
    ACL_RT_STREAM_STATE_DESTROY_PRE = 2


class StreamFailureMode(IntEnum):
    """Say what a stream does after a failed task."""

    ACL_CONTINUE_ON_FAILURE = 0
    ACL_STOP_ON_FAILURE = 1


class WaitValueFlag(IntEnum):
    """Say how `aclrtValueWait` compares (``ACL_STREAM_WAIT_VALUE_*``)."""

    ACL_STREAM_WAIT_VALUE_GEQ = 0
    ACL_STREAM_WAIT_VALUE_EQ = 1
    ACL_STREAM_WAIT_VALUE_AND = 2
    ACL_STREAM_WAIT_VALUE_NOR = 3


class EventFlag(IntFlag):
    """Choose what an event serves for (``ACL_EVENT_*``)."""

    ACL_EVENT_SYNC = 1
    ACL_EVENT_CAPTURE_STREAM_PROGRESS = 2
    ACL_EVENT_TIME_LINE = 8
    ACL_EVENT_DEVICE_USE_ONLY = 0x10
    ACL_EVENT_EXTERNAL = 0x20
    ACL_EVENT_IPC = 0x40


class EventRecordedStatus(IntEnum):
    """Say whether what an event recorded is done (`aclrtEventRecordedStatus`)."""

    ACL_EVENT_RECORDED_STATUS_NOT_READY = 0
    ACL_EVENT_RECORDED_STATUS_COMPLETE = 1


class EventWaitStatus(IntEnum):
    """Say whether the wait for an event is over (`aclrtEventWaitStatus`)."""

    ACL_EVENT_WAIT_STATUS_COMPLETE = 0
    ACL_EVENT_WAIT_STATUS_NOT_READY = 1
    ACL_EVENT_WAIT_STATUS_RESERVED = 0xFFFF


class NotifyExportFlag(IntFlag):
    """Choose who may import a notify."""

    ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT = 0
    ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION = 2


class NotifyImportFlag(IntFlag):
    """Choose what an import of a notify brings."""

    ACL_RT_NOTIFY_IMPORT_FLAG_DEFAULT = 0
    ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS = 2


class CallbackBlockType(IntEnum):
    """Say whether a stream waits for its callback (`aclrtCallbackBlockType`)."""

    ACL_CALLBACK_NO_BLOCK = 0
    ACL_CALLBACK_BLOCK = 1
