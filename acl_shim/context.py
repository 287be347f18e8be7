"""Explicit contexts: streams and events of a device apart from its default context."""

from typing import TYPE_CHECKING, NoReturn

from acl_shim.api_types import ContextHandle
from acl_shim.errors import StateError
from acl_shim.lease import Lease
from acl_shim.owner import Owner
from acl_shim.stream_scope import StreamScope

if TYPE_CHECKING:
    from acl_shim.device import Device


class Context(Owner, StreamScope):
    """Own one explicit context of a device; `Device.create_context` makes them.

    Memory belongs to the device, whatever context is current; streams, events and notifies belong to the context they
    were made in.

    Thread safety: any thread may use it; it may be current on several.
    Source: aclrtCreateContext, aclrtDestroyContext, aclrtSetCurrentContext.
    """

    __slots__ = ("_inner",)

    def __init__(self, device: "Device", lease: Lease, handle: int) -> None:
        self._inner = lease.inner(ContextHandle(handle))
        super().__init__(device, lease, handle)

    def stream_device(self) -> "Device":
        """Return the device of the context."""
        return self._device

    @property
    def handle(self) -> ContextHandle:
        """The `aclrtContext` as a number.

        Raises
        ------
        StateError
            The context is closed.
        """
        return ContextHandle(self._handle())

    def enter(self) -> Lease:
        """Make the context, and so its device, current on the calling thread; it stays so until another is.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The context is closed, or the runtime is closed or forked.
        """
        lease = self.lease()
        code = self._device.runtime.api.aclrtSetCurrentContext(lease.context)
        if code:
            self.refused(code, lease)
        return lease

    def lease(self) -> Lease:
        """Return what lives under the context.

        Raises
        ------
        StateError
            The context is closed.
        """
        self._handle()
        return self._inner

    def refused(self, code: int, lease: Lease) -> NoReturn:
        """Raise for the context, which could not be made current."""
        arguments = {"context": lease.context, "device_id": self._device.id}
        raise self._device.runtime.error(code, "aclrtSetCurrentContext", arguments)

    def close(self) -> None:
        """Destroy the context; does nothing when that happened already.

        Where it was current, the calling thread has no context afterwards.

        Raises
        ------
        StateError
            Streams or events made in it are open. The context is open still.
        AclError
            The runtime refuses. After failure the context is open still and `close` may be called again.
        """
        if self._inner.owned and self._inner.device_alive:
            raise StateError(
                f"Context on device {self._device.id} is in use by {self._inner.owned_text()}: close them first"
            )
        super().close()

    def _finalise(self) -> None:
        super().close()  # what is open in it keeps it alive, so that is out of reach as well

    def _give_back(self, handle: int) -> None:
        runtime = self._device.runtime
        code = runtime.api.aclrtDestroyContext(ContextHandle(handle))
        if code:
            raise runtime.error(code, "aclrtDestroyContext", {"context": handle, "device_id": self._device.id})
        self._inner.end(host_alive=True)
