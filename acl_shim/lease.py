"""The hold of this process on a device: taken at the first use, made current on each thread, given back once."""

from typing import TYPE_CHECKING, NoReturn
from weakref import WeakSet

from acl_shim.api_types import ContextHandle
from acl_shim.codes import AclErrorCode
from acl_shim.errors import StateError, size_text
from acl_shim.queued import Queued
from acl_shim.table import new_cell

if TYPE_CHECKING:
    from acl_shim.runtime import Runtime


class Lease:
    """One `aclrtSetDevice` of this process, from the set to the reset; also one explicit context of a device.

    Attributes
    ----------
    context
        The device's default context, or the explicit one.
    device_alive
        False once the device was reset: what lived on it is gone.
    host_alive
        False once the runtime takes no calls for what was made under the lease: the process was forked or ends.
    owned
        Open owners: (kind, number of the owner) -> size in bytes, 0 where it has none.
    queued
        What the tasks of the default stream need.
    queues
        What the tasks of each stream need, the default stream included.
    """

    __slots__ = ("__weakref__", "_inner", "context", "device_alive", "host_alive", "owned", "queued", "queues")

    def __init__(self, context: ContextHandle) -> None:
        self.context = context
        self.device_alive = True
        self.host_alive = True
        self.owned: dict[tuple[str, int], int] = {}
        self.queued = Queued()
        self.queues: WeakSet[Queued] = WeakSet([self.queued])
        self._inner: WeakSet[Lease] = WeakSet()

    def inner(self, context: ContextHandle) -> "Lease":
        """Return a lease for an explicit context, which ends with this one."""
        lease = Lease(context)
        self._inner.add(lease)
        return lease

    def end(self, *, host_alive: bool) -> None:
        """Mark what was made under the lease as gone."""
        self.device_alive = False
        self.host_alive = host_alive
        for queued in tuple(self.queues):
            queued.end()
            queued.log_errors()
        for lease in tuple(self._inner):
            lease.end(host_alive=host_alive)

    def owned_text(self) -> str:
        """Return what is open under the lease: ``2 DeviceBuffer (3.00 MiB (3145728 B))``; empty where nothing is."""
        counts: dict[str, tuple[int, int]] = {}
        for (kind, _), size_bytes in self.owned.copy().items():
            number, total = counts.get(kind, (0, 0))
            counts[kind] = number + 1, total + size_bytes
        return ", ".join(
            f"{number} {kind}" + (f" ({size_text(total)})" if total else "") for kind, (number, total) in counts.items()
        )


class CurrentDevice:
    """Make one device current on threads; take it at the first use.

    The device is set once for the process, however many threads use it: the others switch to its default context,
    which leaves the device's count alone.

    Attributes
    ----------
    held
        The hold; None where the device is not taken.

    Thread safety: any thread may use it.
    Source: aclrtSetDevice, aclrtSetCurrentContext, aclrtResetDevice.
    """

    __slots__ = ("_id", "_runtime", "held")

    def __init__(self, runtime: "Runtime", device_id: int) -> None:
        self._runtime = runtime
        self._id = device_id
        self.held: Lease | None = None

    def enter(self) -> Lease:
        """Make the device's default context current on the calling thread.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            Other code of the process has reset the device, or the runtime is closed or forked.
        """
        lease = self.held or self.take()
        code = self._runtime.api.aclrtSetCurrentContext(lease.context)
        if code:
            self.refused(code, lease)
        return lease

    def refused(self, code: int, lease: Lease) -> NoReturn:
        """Raise for a context that cannot be made current."""
        error = self._runtime.error(code, "aclrtSetCurrentContext", {"context": lease.context, "device_id": self._id})
        if code != AclErrorCode.ACL_ERROR_RT_PARAM_INVALID:
            raise error
        self.forget(host_alive=True)  # 107000: the context is destroyed
        raise StateError(
            f"device {self._id} was reset by other code of this process, its memory is gone: load again what was there"
        ) from error

    def take(self) -> Lease:
        """Set the device for this process, once, and return the hold."""
        runtime, api = self._runtime, self._runtime.api
        with runtime.lock:
            if self.held is not None:
                return self.held
            runtime.start()
            runtime.check(api.aclrtSetDevice(self._id), "aclrtSetDevice", {"device_id": self._id})
            context = new_cell("uintptr_t *")
            code = api.aclrtGetCurrentContext(context)
            if code:
                error = runtime.error(code, "aclrtGetCurrentContext", {"device_id": self._id})
                runtime.check(api.aclrtResetDevice(self._id), "aclrtResetDevice", {"device_id": self._id})
                raise error
            self.held = Lease(ContextHandle(context[0]))
            return self.held

    def reset(self) -> None:
        """Give the device back; `Device.reset` says what that means."""
        with self._runtime.lock:
            lease = self.held
            if lease is None:
                return
            if lease.owned:
                raise StateError(f"device {self._id} is in use by {lease.owned_text()}: close them first")
            code = self._runtime.api.aclrtResetDevice(self._id)
            if code != AclErrorCode.ACL_ERROR_RT_CONTEXT_RELEASE_ERROR:  # that one: others reset it by force already
                self._runtime.check(code, "aclrtResetDevice", {"device_id": self._id})
            self.forget()

    def forget(self, *, host_alive: bool = False) -> None:
        """End the hold without a call; pinned memory outlives the device where `host_alive` says so."""
        lease, self.held = self.held, None
        if lease is not None:
            lease.end(host_alive=host_alive)
