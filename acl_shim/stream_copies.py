"""Copies and fills in stream order."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from acl_shim.batch import BatchArguments, BatchCopy
from acl_shim.codes import MemcpyKind
from acl_shim.copies import copy_arguments
from acl_shim.errors import Argument
from acl_shim.host_memory import HostBuffer, addr_of, hold, lasting_array, release
from acl_shim.stream_base import StreamBase

_HOST_TO_DEVICE = MemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE
_DEVICE_TO_HOST = MemcpyKind.ACL_MEMCPY_DEVICE_TO_HOST


class StreamCopies(StreamBase):
    """The copies of a stream; see `StreamTasks`."""

    __slots__ = ()

    def memcpy_async(
        self, dst: int, dst_max_bytes: int, src: int, count_bytes: int, kind: int = MemcpyKind.ACL_MEMCPY_DEFAULT
    ) -> None:
        """Copy bytes between two addresses in stream order; the caller keeps both memories until it is done.

        Parameters
        ----------
        dst, src
            Addresses on the host or on a device.
        dst_max_bytes
            Room at `dst` in bytes.
        count_bytes
            How many bytes; 0 copies nothing.
        kind
            A `MemcpyKind`.

        Raises
        ------
        AclError
            The runtime refuses; nothing is queued.
        StateError
            The stream is closed.
        """
        self._queue_copy(dst, dst_max_bytes, src, count_bytes, kind)

    def _queue_copy(self, dst: int, dst_max_bytes: int, src: int, count_bytes: int, kind: int, *kept: object) -> None:
        runtime, handle, queued = self.enter_stream()
        code = runtime.api.aclrtMemcpyAsync(dst, dst_max_bytes, src, count_bytes, kind, handle)
        if code:
            arguments = copy_arguments(dst, dst_max_bytes, src, count_bytes)
            self._check(code, "aclrtMemcpyAsync", {**arguments, "kind": kind, "stream": handle})
        if kept:
            self._keep(queued, *kept)

    def copy_in(self, dst: int, dst_max_bytes: int, values: NDArray[np.uint8], owner: object = None) -> None:
        """Queue a copy of an array to a device address; keep the array and the owner of the address until then."""
        held = hold(values, False)
        try:
            self._queue_copy(dst, dst_max_bytes, addr_of(held), len(held), _HOST_TO_DEVICE, values, owner)
        finally:
            release(held)

    def copy_out(self, values: NDArray[np.uint8], src: int, owner: object = None) -> None:
        """Queue a copy from a device address to an array; keep the array and the owner of the address until then."""
        held = hold(values, True)
        try:
            self._queue_copy(addr_of(held), len(held), src, len(held), _DEVICE_TO_HOST, values, owner)
        finally:
            release(held)

    def memcpy_in_async(self, dst: int, dst_max_bytes: int, src: HostBuffer) -> None:
        """Copy host memory to a device address in stream order; `src` is kept until then.

        Parameters
        ----------
        dst
            Address on the device.
        dst_max_bytes
            Room at `dst` in bytes.
        src
            C-contiguous numpy array, bytes, memoryview, other buffer, or DLPack object on the host; it must not be
            changed before the stream has passed the copy.

        Raises
        ------
        TypeError
            `src` has no host memory.
        ValueError
            `src` is not C-contiguous, or larger than `dst_max_bytes`; `dst` is plain host memory.
        AclError
            The runtime refuses; nothing is queued.
        StateError
            The stream is closed.
        """
        values, device = lasting_array(src, False), self.device
        device.check_room(dst, dst_max_bytes, values.nbytes)
        device.check_direction(dst, values.nbytes, f"from the host to device {device.id}", "destination")
        self.copy_in(dst, dst_max_bytes, values)

    def memcpy_out_async(self, dst: HostBuffer, src: int) -> None:
        """Copy as many bytes from a device address as the destination holds, in stream order; `dst` is kept until then.

        Parameters
        ----------
        dst
            Writable C-contiguous numpy array, bytearray, memoryview, other buffer, or DLPack object on the host; it
            holds the bytes after a synchronisation.
        src
            Address on the device.

        Raises
        ------
        TypeError
            `dst` has no host memory.
        ValueError
            `dst` is read-only or not C-contiguous; `src` is plain host memory.
        AclError
            The runtime refuses; nothing is queued.
        StateError
            The stream is closed.
        """
        values, device = lasting_array(dst, True), self.device
        device.check_direction(src, values.nbytes, f"from device {device.id} to the host", "source")
        self.copy_out(values, src)

    def memcpy_2d_async(
        self,
        dst: int,
        dst_pitch_bytes: int,
        src: int,
        src_pitch_bytes: int,
        width_bytes: int,
        height: int,
        kind: int,
    ) -> None:
        """Copy rows of bytes between two addresses in stream order; the caller keeps both memories until it is done.

        Parameters
        ----------
        dst, src, dst_pitch_bytes, src_pitch_bytes, width_bytes, height, kind
            As `Device.memcpy_2d`; width at most 5000000 bytes, height at most 5242880.

        Raises
        ------
        AclError
            The runtime refuses; nothing is queued.
        StateError
            The stream is closed, or the library lacks the function.
        """
        runtime, handle, _ = self.enter_stream()
        code = runtime.api.aclrtMemcpy2dAsync(
            dst, dst_pitch_bytes, src, src_pitch_bytes, width_bytes, height, kind, handle
        )
        arguments = copy_arguments(dst, dst_pitch_bytes, src, width_bytes) | {"height": height, "kind": kind}
        self._check(code, "aclrtMemcpy2dAsync", arguments)

    def memcpy_batch_async(self, copies: Sequence[BatchCopy], kind: int) -> None:
        """Make many copies in one direction in stream order; the caller keeps the memories until they are done.

        Parameters
        ----------
        copies, kind
            As `Device.memcpy_batch`.

        Raises
        ------
        ValueError
            `kind` is neither direction between host and device.
        AclError
            The runtime refuses; its arguments name the first copy that failed. Those before it are queued.
        StateError
            The stream is closed, or the library lacks the function.
        """
        batch = BatchArguments(copies, kind, self.device.id)
        runtime, handle, queued = self.enter_stream()
        if copies:
            code = runtime.api.aclrtMemcpyBatchAsync(*batch.arrays, batch.fail_index, handle)
            self._check(code, "aclrtMemcpyBatchAsync", batch.error_arguments() if code else {})
            self._keep(queued, batch)

    def memset_async(self, addr: int, max_bytes: int, value: int, count_bytes: int) -> None:
        """Fill bytes with a value in stream order.

        Parameters
        ----------
        addr, max_bytes, value, count_bytes
            As `Device.memset`.

        Raises
        ------
        AclError
            The runtime refuses; nothing is queued.
        StateError
            The stream is closed.
        """
        runtime, handle, _ = self.enter_stream()
        code = runtime.api.aclrtMemsetAsync(addr, max_bytes, value, count_bytes, handle)
        if code:
            arguments: dict[str, Argument] = {"addr": addr, "max_bytes": max_bytes, "count_bytes": count_bytes}
            self._check(code, "aclrtMemsetAsync", arguments)

    def memset_d32_async(self, addr: int, max_bytes: int, value: int, count: int) -> None:
        """Fill words of 4 bytes with a value in stream order.

        Parameters
        ----------
        addr, max_bytes, value, count
            As `Device.memset_d32`.

        Raises
        ------
        AclError
            The runtime refuses; nothing is queued.
        StateError
            The stream is closed, or the library lacks the function.
        """
        runtime, handle, _ = self.enter_stream()
        code = runtime.api.aclrtMemsetD32Async(addr, max_bytes, value, count, handle)
        arguments: dict[str, Argument] = {"addr": addr, "max_bytes": max_bytes, "count": count}
        self._check(code, "aclrtMemsetD32Async", arguments)
