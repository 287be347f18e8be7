"""Notifies: flags that one stream sets and another waits for and takes back, across devices and processes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acl_shim.api_types import NotifyHandle
from acl_shim.errors import Argument
from acl_shim.lease import Lease
from acl_shim.owner import Owner
from acl_shim.stream_codes import NotifyExportFlag
from acl_shim.table import new_array, new_text, read_text

if TYPE_CHECKING:
    from acl_shim.device import Device
    from acl_shim.stream_scope import StreamScope
    from acl_shim.stream_tasks import StreamTasks

KEY_BYTES = 65
"""Length of the keys of notifies and of blocks, closing zero included."""


class Notify(Owner):
    """Own one notify; `Device.create_notify`, `Context.create_notify` and `Device.import_notify` make them.

    Thread safety: any thread may use it.
    Source: aclrtCreateNotify, aclrtDestroyNotify, aclrtRecordNotify, aclrtWaitAndResetNotify.
    """

    __slots__ = ("_scope",)

    def __init__(self, device: "Device", lease: Lease, handle: int, scope: "StreamScope") -> None:
        self._scope = scope  # a context lives as long as its notifies
        super().__init__(device, lease, handle)

    def _give_back(self, handle: int) -> None:
        self._check(
            self._device.runtime.api.aclrtDestroyNotify(NotifyHandle(handle)), "aclrtDestroyNotify", {"notify": handle}
        )

    @property
    def handle(self) -> NotifyHandle:
        """The `aclrtNotify` as a number.

        Raises
        ------
        StateError
            The notify is closed.
        """
        return NotifyHandle(self._handle())

    def _check(self, code: int, call: str, arguments: dict[str, Argument]) -> None:
        if code:
            raise self._device.runtime.error(code, call, {**arguments, "device_id": self._device.id})

    def record(self, stream: "StreamTasks") -> None:
        """Set the notify in stream order.

        Parameters
        ----------
        stream
            A stream of any device.

        Raises
        ------
        AclError
            The runtime refuses; nothing is queued.
        StateError
            Notify or stream is closed.
        """
        notify = self.handle
        runtime, handle, _ = stream.enter_stream()
        code = runtime.api.aclrtRecordNotify(notify, handle)
        self._check(code, "aclrtRecordNotify", {"notify": notify, "stream": handle})

    def wait(self, stream: "StreamTasks", timeout_s: int = 0) -> None:
        """Let a stream wait until the notify is set, and take it back.

        Parameters
        ----------
        stream
            A stream of the notify's device.
        timeout_s
            Whole seconds after which the task fails; 0 for ever.

        Raises
        ------
        AclError
            The runtime refuses; nothing is queued.
        StateError
            Notify or stream is closed.
        """
        notify = self.handle
        runtime, handle, _ = stream.enter_stream()
        code = runtime.api.aclrtWaitAndResetNotify(notify, handle, timeout_s)
        self._check(code, "aclrtWaitAndResetNotify", {"notify": notify, "stream": handle, "timeout_s": timeout_s})

    def export_key(self, *, check_pid: bool = True) -> str:
        """Return a key by which another process imports the notify.

        Parameters
        ----------
        check_pid
            Whether only the processes of `allow_import` may do so.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The notify is closed, or the library lacks the function.
        """
        key = new_text(KEY_BYTES)
        flags = 0 if check_pid else NotifyExportFlag.ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION
        code = self._device.runtime.api.aclrtNotifyGetExportKey(self.handle, key, KEY_BYTES, flags)
        self._check(code, "aclrtNotifyGetExportKey", {"notify": self.handle, "flags": flags})
        return read_text(key)

    def allow_import(self, pids: Sequence[int]) -> None:
        """Say which processes may import the notify.

        Parameters
        ----------
        pids
            What `Device.bare_tgid` gives in each of them.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The notify is closed, or the library lacks the function.
        """
        array = new_array("int32_t[]", pids)
        code = self._device.runtime.api.aclrtNotifySetImportPid(self.handle, array, len(pids))
        self._check(code, "aclrtNotifySetImportPid", {"notify": self.handle, "pids": len(pids)})
