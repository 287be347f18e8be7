"""Blocks of pinned host memory as owner objects."""

import contextlib
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from acl_shim._acl import ffi
from acl_shim.dlpack import CPU, export_bytes
from acl_shim.errors import AclError, StateError, size_text
from acl_shim.host_memory import addr_of, hold, release
from acl_shim.owner import SizedOwner

if TYPE_CHECKING:
    from typing_extensions import Buffer, CapsuleType

    from acl_shim.device import Device


class PinnedMemory(SizedOwner):
    """Own the memory behind a `PinnedBuffer`."""

    __slots__ = ()

    _lives_on_host = True

    def _give_back(self, handle: int) -> None:
        runtime = self._device.runtime
        code = runtime.api.aclrtFreeHost(handle)
        if code:
            raise runtime.error(code, "aclrtFreeHost", {"addr": handle, "size_bytes": self._size_bytes})

    def _keep(self, _: object) -> None:
        """Do nothing: a pointer whose destructor this is keeps the memory alive."""

    def export(self) -> object:
        """Return an object whose buffer is the memory and which keeps it alive."""
        return ffi.buffer(ffi.gc(ffi.cast("char *", self._handle()), self._keep), self._size_bytes)


class PinnedBuffer:
    """Own one block of pinned host memory; `Device.malloc_host` makes them.

    The memory outlives the owner as long as a slice of `view`, or an array made from it, is alive, so that none of
    them ever points to memory that is gone; it goes back to the runtime with the last of them. numpy and DLPack (device
    type 1) take the buffer itself as an array of bytes, without a copy; from Python 3.12 on it is a buffer.

    Thread safety: any thread may use it.
    Source: aclrtMallocHost, aclrtFreeHost.
    """

    __slots__ = ("__weakref__", "_device", "_exporter", "_memory", "_size_bytes", "_view")

    def __init__(self, memory: PinnedMemory) -> None:
        self._device = memory.device
        self._size_bytes = memory.size_bytes
        self._open(memory)

    def _open(self, memory: PinnedMemory) -> None:
        exporter = memory.export()
        self._memory: PinnedMemory | None = memory
        self._exporter = weakref.ref(exporter)
        self._view: memoryview | None = memoryview(cast("Buffer", exporter))

    @property
    def device(self) -> "Device":
        """Device the memory is pinned for."""
        return self._device

    @property
    def size_bytes(self) -> int:
        """Size in bytes, as asked for."""
        return self._size_bytes

    @property
    def closed(self) -> bool:
        """Whether the buffer was closed."""
        return self._memory is None

    @property
    def view(self) -> memoryview:
        """Writable view of the bytes.

        Raises
        ------
        StateError
            The buffer is closed.
        """
        if self._view is None:
            raise self._closed_error()
        return self._view

    @property
    def addr(self) -> int:
        """Address of the first byte.

        Raises
        ------
        StateError
            The buffer is closed.
        """
        held = hold(self.view, False)
        try:
            return addr_of(held)
        finally:
            release(held)

    def _exported(self) -> object:
        """Return the object whose buffer is the memory and which keeps it alive."""
        exporter = self._exporter()
        if self._view is None or exporter is None:
            raise self._closed_error()
        return exporter

    def _closed_error(self) -> StateError:
        return StateError(f"PinnedBuffer of {size_text(self._size_bytes)} is closed: make a new one")

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(cast("Buffer", self._exported()))

    @property
    def __array_interface__(self) -> dict[str, object]:
        """Description of the bytes for numpy; the array keeps the memory alive.

        Raises
        ------
        StateError
            The buffer is closed.
        """
        return {"version": 3, "shape": (self._size_bytes,), "typestr": "|u1", "data": self._exported()}

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> "CapsuleType":
        """Return a capsule of the bytes, which keeps the memory alive.

        Parameters
        ----------
        stream
            Not used: host memory has no stream.
        max_version, dl_device, copy
            As the array API says; a copy or another device is refused.

        Raises
        ------
        BufferError
            The consumer wants a copy or another device.
        StateError
            The buffer is closed.
        """
        exporter, device = self._exported(), self.__dlpack_device__()
        wishes = {"max_version": max_version, "dl_device": dl_device}
        return export_bytes(exporter, self.addr, self._size_bytes, device, copy=copy, **wishes)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return (1, 0)."""
        return CPU, 0

    def close(self) -> None:
        """Give the memory back, or leave that to the last slice or array made from `view`; harmless when repeated.

        Raises
        ------
        AclError
            The runtime refuses. After failure the buffer is open still and `close` may be called again.
        """
        memory, view = self._memory, self._view
        if memory is None or view is None:
            return
        with contextlib.suppress(BufferError):  # an array made from the view keeps the memory
            view.release()
        self._memory = self._view = None
        if self._exporter() is not None:
            return
        try:
            memory.close()
        except AclError:
            self._open(memory)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._view is None else f"{self.addr:#x}"
        return f"<PinnedBuffer {state} of {size_text(self._size_bytes)} on device {self._device.id}>"
