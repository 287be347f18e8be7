"""Device blocks and pinned host blocks as owner objects."""

import contextlib
import weakref
from operator import index
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

import numpy as np

from acl_shim._acl import ffi
from acl_shim.codes import MemcpyKind
from acl_shim.errors import AclError, StateError, size_text
from acl_shim.host_memory import HostBuffer, addr_of, hold, release
from acl_shim.owner import Owner

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from acl_shim.device import Device


_HOST_TO_DEVICE = MemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE
_DEVICE_TO_HOST = MemcpyKind.ACL_MEMCPY_DEVICE_TO_HOST


class DeviceBuffer(Owner):
    """Own one block of device memory; `Device.malloc` makes them.

    Copies check their range before the call and block until the bytes are there. A buffer must not be closed while
    another thread copies from or to it.

    Thread safety: any thread may use it; copies to overlapping ranges are not ordered against each other.
    Source: aclrtMalloc, aclrtFree, aclrtMemcpy.
    """

    __slots__ = ()

    def _give_back(self, handle: int) -> None:
        runtime = self._device.runtime
        code = runtime.api.aclrtFree(handle)
        if code:
            raise runtime.error(code, "aclrtFree", {"addr": handle, "size_bytes": self._size_bytes})

    @property
    def addr(self) -> int:
        """Address on the device.

        Raises
        ------
        StateError
            The buffer is closed.
        """
        return self._handle()

    def _range(self, offset_bytes: int, size_bytes: int, what: str) -> int:
        """Return the address of a range, which must lie inside the block."""
        if offset_bytes < 0 or size_bytes < 0 or offset_bytes + size_bytes > self._size_bytes:
            raise ValueError(
                f"{what} of {size_bytes} B at offset {offset_bytes} B does not fit the buffer of {self._size_bytes} B"
                f" on device {self._device.id}: give an offset and a size inside it"
            )
        return self._handle() + offset_bytes

    def copy_from(self, src: HostBuffer, *, offset_bytes: int = 0) -> None:
        """Copy host memory into the block.

        Parameters
        ----------
        src
            C-contiguous numpy array, bytes, memoryview, other buffer, or DLPack object on the host.
        offset_bytes
            Where in the block the first byte goes.

        Raises
        ------
        TypeError
            `src` has no host memory.
        ValueError
            `src` is not C-contiguous or does not fit.
        StateError
            The buffer is closed.
        AclError
            The runtime refuses. After failure the range holds old bytes, new bytes or both.
        """
        held = hold(src, False)
        try:
            count = len(held)
            addr = self._range(offset_bytes, count, "source")
            self._device.memcpy(addr, self._size_bytes - offset_bytes, addr_of(held), count, _HOST_TO_DEVICE)
        finally:
            release(held)

    def copy_to(self, dst: HostBuffer, *, offset_bytes: int = 0) -> None:
        """Copy as many bytes of the block into host memory as that holds.

        Parameters
        ----------
        dst
            Writable C-contiguous numpy array, bytearray, memoryview, other buffer, or DLPack object on the host.
        offset_bytes
            Where in the block the first byte comes from.

        Raises
        ------
        TypeError
            `dst` has no host memory.
        ValueError
            `dst` is read-only, not C-contiguous, or larger than the rest of the block.
        StateError
            The buffer is closed.
        AclError
            The runtime refuses. After failure `dst` holds old bytes, new bytes or both.
        """
        held = hold(dst, True)
        try:
            count = len(held)
            addr = self._range(offset_bytes, count, "destination")
            self._device.memcpy(addr_of(held), count, addr, count, _DEVICE_TO_HOST)
        finally:
            release(held)

    def read(self, size_bytes: int | None = None, *, offset_bytes: int = 0) -> bytes:
        """Return bytes of the block.

        Parameters
        ----------
        size_bytes
            How many bytes; None for the rest of the block.
        offset_bytes
            Where in the block they start.

        Raises
        ------
        ValueError
            The range does not lie inside the block.
        StateError
            The buffer is closed.
        AclError
            The runtime refuses.
        """
        count = self._size_bytes - offset_bytes if size_bytes is None else index(size_bytes)
        self._range(offset_bytes, count, "read")
        copy = np.empty(count, np.uint8)
        self.copy_to(copy, offset_bytes=offset_bytes)
        return copy.tobytes()


class PinnedMemory(Owner):
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
    them ever points to memory that is gone; it goes back to the runtime with the last of them.

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
            raise StateError(f"PinnedBuffer of {size_text(self._size_bytes)} is closed: make a new one")
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
