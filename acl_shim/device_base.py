"""What every subject of a device shares: its number, its runtime, its hold by this process."""

from typing import TYPE_CHECKING, NoReturn

from acl_shim.api_types import DEFAULT_STREAM
from acl_shim.errors import Argument
from acl_shim.lease import CurrentDevice, Lease
from acl_shim.stream_codes import StreamStatus
from acl_shim.table import CONTEXT_REFUSED, new_cell

if TYPE_CHECKING:
    from acl_shim.runtime import Runtime


class DeviceBase:
    """One device of a runtime: made current on the calling thread before each call, set once for the process."""

    def __init__(self, runtime: "Runtime", device_id: int) -> None:
        self._runtime = runtime
        self._id = device_id
        self._current = CurrentDevice(runtime, device_id)
        self._enter = self._current.enter

    @property
    def id(self) -> int:
        """Number of the device, from 0."""
        return self._id

    @property
    def runtime(self) -> "Runtime":
        """Runtime the device belongs to."""
        return self._runtime

    def reset(self) -> None:
        """Give the device back to the runtime; the next use sets it again. Does nothing where it is not in use.

        Lowers the device's count by the one this process raised it by; others in the process keep theirs. Waits for
        the default stream. No other thread may be using the device meanwhile.

        Raises
        ------
        StateError
            Buffers or other owners on the device are open. Nothing has changed.
        AclError
            The runtime refuses. After failure the device is in use still.
        """
        self._current.reset()

    def idle(self) -> bool:
        """Return whether the default stream has nothing left to do, so that a reset does not wait.

        Raises
        ------
        AclError
            The runtime refuses.
        """
        if self._current.held is None or not self._runtime.supports("aclrtStreamQuery"):
            return True
        status = new_cell("int *")
        self._enter()
        code = self._runtime.api.aclrtStreamQuery(DEFAULT_STREAM, status)
        self._runtime.check(code, "aclrtStreamQuery", {"device_id": self._id})
        return status[0] == StreamStatus.ACL_STREAM_STATUS_COMPLETE

    def _refuse_in_context(self, code: int, call: str, arguments: dict[str, Argument], lease: Lease) -> NoReturn:
        """Raise for a call that makes the default context current and returned a code."""
        if code >= CONTEXT_REFUSED:
            self._current.refused(code - CONTEXT_REFUSED, lease)
        raise self._runtime.error(code, call, arguments)

    def forget(self) -> None:
        """End the hold on the device without a call, for a runtime that has dropped it by itself."""
        self._current.forget()

    def __repr__(self) -> str:
        return f"<Device {self._id} of {self._runtime!r}>"
