"""One device: its memory, copies, virtual memory, streams, sharing, contexts, figures."""

from typing import NoReturn

from acl_shim.block_copies import BlockCopyCalls
from acl_shim.context import Context
from acl_shim.device_codes import DeviceStatus
from acl_shim.lease import Lease
from acl_shim.sharing import ShareCalls
from acl_shim.structs import new_uuid, struct_bytes
from acl_shim.table import new_cell
from acl_shim.timeouts import timeout_ms


class Device(ShareCalls, BlockCopyCalls):
    """One device of a runtime; `Runtime.device` makes them.

    Nothing is called until the device is used. The first use starts the runtime and sets the device once for the
    process; every call makes the device's default context current on the calling thread first, as `aclrtSetDevice`
    does, and leaves it so.

    Thread safety: any thread may use it.
    Source: aclrtSetDevice, aclrtSetCurrentContext.
    """

    def enter(self) -> Lease:
        """Make the device's default context current on the calling thread and return what lives under it.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            Other code of the process has reset the device, or the runtime is closed or forked.
        """
        return self._enter()

    def lease(self) -> Lease:
        """Return what lives under the device's default context; takes the device where that did not happen yet.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The runtime is closed or forked.
        """
        return self._current.held or self._current.take()

    def refused(self, code: int, lease: Lease) -> NoReturn:
        """Raise for the default context, which could not be made current."""
        self._current.refused(code, lease)

    def stream_device(self) -> "Device":
        """Return the device itself."""
        return self

    def create_context(self) -> Context:
        """Make an explicit context of the device; it is current on the calling thread then.

        Raises
        ------
        AclError
            The runtime refuses. Nothing is left.
        StateError
            The runtime is closed or forked.
        """
        cell, lease = new_cell("uintptr_t *"), self._enter()
        code = self._runtime.api.aclrtCreateContext(cell, self._id)
        self._runtime.check(code, "aclrtCreateContext", {"device_id": self._id})
        return Context(self, lease, cell[0])

    def info(self, attr: int) -> int:
        """Return a figure of the device.

        Parameters
        ----------
        attr
            Which, a `DevAttr`.

        Raises
        ------
        AclError
            The runtime refuses: it does not know the figure.
        StateError
            The library lacks the function.
        """
        cell = new_cell("int64_t *")
        code = self._runtime.api.aclrtGetDeviceInfo(self._id, attr, cell)
        self._runtime.check(code, "aclrtGetDeviceInfo", {"device_id": self._id, "attr": attr})
        return cell[0]

    def uuid(self) -> bytes:
        """Return the id of the device's hardware, 16 bytes.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The library lacks the function.
        """
        uuid = new_uuid()
        self._runtime.check(
            self._runtime.api.aclrtDeviceGetUuid(self._id, uuid), "aclrtDeviceGetUuid", {"device_id": self._id}
        )
        return struct_bytes(uuid.bytes)

    def status(self) -> DeviceStatus:
        """Return whether the device works.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The library lacks the function.
        """
        cell = new_cell("int *")
        code = self._runtime.api.aclrtQueryDeviceStatus(self._id, cell)
        self._runtime.check(code, "aclrtQueryDeviceStatus", {"device_id": self._id})
        return DeviceStatus(cell[0])

    def stream_priorities(self) -> tuple[int, int]:
        """Return the numbers of the lowest and of the highest stream priority.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The library lacks the function.
        """
        least, greatest = new_cell("int32_t *"), new_cell("int32_t *")
        self._enter()
        code = self._runtime.api.aclrtDeviceGetStreamPriorityRange(least, greatest)
        self._runtime.check(code, "aclrtDeviceGetStreamPriorityRange", {"device_id": self._id})
        return least[0], greatest[0]

    def abort_tasks(self, timeout_s: float | None = None) -> None:
        """Drop the tasks of all streams of the device, of every context; the streams can be used then.

        Who waits for one of the tasks meanwhile gets 107022.

        Parameters
        ----------
        timeout_s
            Seconds to wait for tasks under way at most, above 0; None to wait for ever.

        Raises
        ------
        ValueError
            `timeout_s` is out of range.
        AclError
            The runtime refuses; 507046 where the time is over, the tasks are dropped all the same.
        StateError
            The library lacks the function.
        """
        milliseconds = 0 if timeout_s is None else timeout_ms(timeout_s)
        lease = self._enter()
        before = [(queued, queued.mark(), queued.planned()) for queued in tuple(lease.queues)]
        code = self._runtime.api.aclrtDeviceTaskAbort(self._id, milliseconds)
        self._runtime.check(code, "aclrtDeviceTaskAbort", {"device_id": self._id, "timeout_ms": milliseconds})
        for queued, mark, keys in before:
            queued.dropped(mark, keys)
