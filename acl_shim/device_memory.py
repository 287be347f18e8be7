"""Copies to, from and within device memory that an owner holds."""

from abc import ABC, abstractmethod
from operator import index
from typing import TYPE_CHECKING

import numpy as np

from acl_shim.host_memory import HostBuffer, hold, lasting_array, release

if TYPE_CHECKING:
    from acl_shim.device import Device
    from acl_shim.stream_tasks import StreamTasks


class DeviceMemory(ABC):
    """Device memory of a known size; owners of such memory inherit from it.

    Copies check their range before the call; those without a stream block until the bytes are there, and wait for no
    stream: synchronise one that copies to the memory before you read it. The memory must not be given back while
    another thread copies from or to it.

    Thread safety: any thread may use it; copies to overlapping ranges are not ordered against each other.
    Source: aclrtMemcpy, aclrtMemcpyAsync, aclrtMemset.
    """

    __slots__ = ()

    _device: "Device"
    _size_bytes: int

    @abstractmethod
    def _handle(self) -> int:
        """Return the address of the first byte of the open memory."""

    @property
    def addr(self) -> int:
        """Address on the device.

        Raises
        ------
        StateError
            The memory was given back.
        """
        return self._handle()

    def _range(self, offset_bytes: int, size_bytes: int, what: str) -> int:
        """Return the address of a range, which must lie inside the memory."""
        if offset_bytes < 0 or size_bytes < 0 or offset_bytes + size_bytes > self._size_bytes:
            raise ValueError(
                f"{what} of {size_bytes} B at offset {offset_bytes} B does not fit the buffer of {self._size_bytes} B"
                f" on device {self._device.id}: give an offset and a size inside it"
            )
        return self._handle() + offset_bytes

    def copy_from(self, src: HostBuffer, *, offset_bytes: int = 0) -> None:
        """Copy host memory into the device memory.

        Parameters
        ----------
        src
            C-contiguous numpy array, bytes, memoryview, other buffer, or DLPack object on the host.
        offset_bytes
            Where in the device memory the first byte goes.

        Raises
        ------
        TypeError
            `src` has no host memory.
        ValueError
            `src` is not C-contiguous or does not fit.
        StateError
            The memory was given back.
        AclError
            The runtime refuses. After failure the range holds old bytes, new bytes or both.
        """
        held = hold(src, False)
        try:
            count, room = len(held), self._size_bytes - offset_bytes
            if offset_bytes < 0 or count > room:
                self._range(offset_bytes, count, "source")
            self._device.copy_in(self._handle() + offset_bytes, room, held, count)
        finally:
            release(held)

    def copy_to(self, dst: HostBuffer, *, offset_bytes: int = 0) -> None:
        """Copy as many bytes of the device memory into host memory as that holds.

        Parameters
        ----------
        dst
            Writable C-contiguous numpy array, bytearray, memoryview, other buffer, or DLPack object on the host.
        offset_bytes
            Where in the device memory the first byte comes from.

        Raises
        ------
        TypeError
            `dst` has no host memory.
        ValueError
            `dst` is read-only, not C-contiguous, or larger than the rest of the device memory.
        StateError
            The memory was given back.
        AclError
            The runtime refuses. After failure `dst` holds old bytes, new bytes or both.
        """
        held = hold(dst, True)
        try:
            count = len(held)
            if offset_bytes < 0 or count > self._size_bytes - offset_bytes:
                self._range(offset_bytes, count, "destination")
            self._device.copy_out(held, count, self._handle() + offset_bytes)
        finally:
            release(held)

    def copy_from_async(self, src: HostBuffer, stream: "StreamTasks", *, offset_bytes: int = 0) -> None:
        """Copy host memory into the device memory in stream order.

        Host and device memory are kept alive until the stream has passed the copy; `src` must not be changed before.

        Parameters
        ----------
        src
            What `copy_from` takes. Only pinned memory is copied beside the caller; for other memory the runtime
            waits until the bytes are there.
        stream
            A stream of the same device.
        offset_bytes
            Where in the device memory the first byte goes.

        Raises
        ------
        TypeError, ValueError, StateError
            As `copy_from`.
        AclError
            The runtime refuses; nothing is queued.
        """
        values = lasting_array(src, False)
        addr = self._range(offset_bytes, values.nbytes, "source")
        stream.copy_in(addr, self._size_bytes - offset_bytes, values, self)

    def copy_to_async(self, dst: HostBuffer, stream: "StreamTasks", *, offset_bytes: int = 0) -> None:
        """Copy as many bytes of the device memory into host memory as that holds, in stream order.

        Host and device memory are kept alive until the stream has passed the copy; `dst` holds the bytes after a
        synchronisation.

        Parameters
        ----------
        dst
            What `copy_to` takes. Only pinned memory is copied beside the caller; for other memory the runtime waits
            until the bytes are there.
        stream
            A stream of the same device.
        offset_bytes
            Where in the device memory the first byte comes from.

        Raises
        ------
        TypeError, ValueError, StateError
            As `copy_to`.
        AclError
            The runtime refuses; nothing is queued.
        """
        values = lasting_array(dst, True)
        stream.copy_out(values, self._range(offset_bytes, values.nbytes, "destination"), self)

    def read(self, size_bytes: int | None = None, *, offset_bytes: int = 0) -> bytes:
        """Return bytes of the device memory.

        Parameters
        ----------
        size_bytes
            How many bytes; None for the rest.
        offset_bytes
            Where in the device memory they start.

        Raises
        ------
        ValueError
            The range does not lie inside the memory.
        StateError
            The memory was given back.
        AclError
            The runtime refuses.
        """
        count = self._size_bytes - offset_bytes if size_bytes is None else index(size_bytes)
        self._range(offset_bytes, count, "read")
        copy = np.empty(count, np.uint8)
        self.copy_to(copy, offset_bytes=offset_bytes)
        return copy.tobytes()
