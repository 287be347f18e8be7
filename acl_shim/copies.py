"""Copies and fills of a device that wait until the bytes are there."""

from collections.abc import Sequence

from acl_shim.batch import BatchArguments, BatchCopy
from acl_shim.codes import MemcpyKind, MemLocationType
from acl_shim.device_base import DeviceBase
from acl_shim.errors import Argument, StateError
from acl_shim.host_memory import Hold, HostBuffer, addr_of, hold, release
from acl_shim.structs import new_ptr_attributes

_UNREGISTERED = int(MemLocationType.ACL_MEM_LOCATION_TYPE_UNREGISTERED)


def copy_arguments(dst: int, dst_max_bytes: int, src: int, count_bytes: int) -> dict[str, Argument]:
    """Return the arguments of a copy as an error shows them."""
    return {"dst": dst, "dst_max_bytes": dst_max_bytes, "src": src, "count_bytes": count_bytes}


class CopyCalls(DeviceBase):
    """Copies and fills between raw addresses, of the host or of devices."""

    def copy_in(self, dst: int, dst_max_bytes: int, held: Hold, count_bytes: int) -> None:
        """Copy held host memory to a device address and wait; raises `AclError` where the runtime refuses."""
        lease = self._current.held or self._current.take()
        code = self._runtime.api.copy_in(lease.context, dst, dst_max_bytes, held, count_bytes)
        if code:
            arguments = copy_arguments(dst, dst_max_bytes, addr_of(held), count_bytes)
            self._refuse_in_context(code, "aclrtMemcpy", arguments, lease)

    def copy_out(self, held: Hold, count_bytes: int, src: int) -> None:
        """Copy from a device address to held host memory and wait; raises `AclError` where the runtime refuses."""
        lease = self._current.held or self._current.take()
        code = self._runtime.api.copy_out(lease.context, held, src, count_bytes)
        if code:
            arguments = copy_arguments(addr_of(held), count_bytes, src, count_bytes)
            self._refuse_in_context(code, "aclrtMemcpy", arguments, lease)

    def memcpy(
        self,
        dst: int,
        dst_max_bytes: int,
        src: int,
        count_bytes: int,
        kind: int = MemcpyKind.ACL_MEMCPY_DEFAULT,
    ) -> None:
        """Copy bytes between two addresses and wait until they are there.

        Parameters
        ----------
        dst, src
            Addresses on the host or on a device; the direction follows from them.
        dst_max_bytes
            Room at `dst` in bytes.
        count_bytes
            How many bytes; 0 copies nothing.
        kind
            A `MemcpyKind`.

        Raises
        ------
        AclError
            The runtime refuses. After failure the destination holds old bytes, new bytes or both.
        """
        self._enter()
        code = self._runtime.api.aclrtMemcpy(dst, dst_max_bytes, src, count_bytes, kind)
        if code:
            raise self._runtime.error(code, "aclrtMemcpy", copy_arguments(dst, dst_max_bytes, src, count_bytes))

    def memcpy_in(self, dst: int, dst_max_bytes: int, src: HostBuffer) -> None:
        """Copy host memory to a device address and wait until it is there.

        Parameters
        ----------
        dst
            Address on the device.
        dst_max_bytes
            Room at `dst` in bytes.
        src
            C-contiguous numpy array, bytes, memoryview, other buffer, or DLPack object on the host.

        Raises
        ------
        TypeError
            `src` has no host memory.
        ValueError
            `src` is not C-contiguous, or larger than `dst_max_bytes`; `dst` is plain host memory.
        AclError
            The runtime refuses. After failure the destination holds old bytes, new bytes or both.
        """
        held = hold(src, False)
        try:
            self.check_room(dst, dst_max_bytes, len(held))
            self.check_direction(dst, len(held), f"from the host to device {self._id}", "destination")
            self.copy_in(dst, dst_max_bytes, held, len(held))
        finally:
            release(held)

    def check_room(self, dst: int, dst_max_bytes: int, count_bytes: int) -> None:
        """Raise `ValueError` where a source does not fit its destination."""
        if count_bytes > dst_max_bytes:
            raise ValueError(
                f"source of {count_bytes} B does not fit the {dst_max_bytes} B at {dst:#x} on device {self._id}: give a"
                " smaller source"
            )

    def check_direction(self, addr: int, count_bytes: int, direction: str, end: str) -> None:
        """Raise `ValueError` where the end of a copy that must lie on a device is host memory that no device reaches.

        Pinned and registered host memory may have a device address. The copy itself tells what belongs to nothing, and
        decides where the library does not answer.
        """
        if not count_bytes:
            return
        attributes = new_ptr_attributes()
        try:
            refused = self._runtime.api.aclrtPointerGetAttributes(addr, attributes)
        except StateError:
            return
        if not refused and attributes.location.type == _UNREGISTERED:
            raise ValueError(
                f"copy of {count_bytes} B {direction}: the {end} {addr:#x} is host memory: give an address on the"
                " device"
            )

    def memcpy_out(self, dst: HostBuffer, src: int) -> None:
        """Copy as many bytes from a device address as the destination holds, and wait until they are there.

        Parameters
        ----------
        dst
            Writable C-contiguous numpy array, bytearray, memoryview, other buffer, or DLPack object on the host.
        src
            Address on the device.

        Raises
        ------
        TypeError
            `dst` has no host memory.
        ValueError
            `dst` is read-only or not C-contiguous; `src` is plain host memory.
        AclError
            The runtime refuses. After failure `dst` holds old bytes, new bytes or both.
        """
        held = hold(dst, True)
        try:
            self.check_direction(src, len(held), f"from device {self._id} to the host", "source")
            self.copy_out(held, len(held), src)
        finally:
            release(held)

    def memcpy_2d(
        self,
        dst: int,
        dst_pitch_bytes: int,
        src: int,
        src_pitch_bytes: int,
        width_bytes: int,
        height: int,
        kind: int,
    ) -> None:
        """Copy rows of bytes between two addresses and wait until they are there.

        Parameters
        ----------
        dst, src
            Addresses of the first rows.
        dst_pitch_bytes, src_pitch_bytes
            From the start of one row to the start of the next, in bytes; at least `width_bytes`.
        width_bytes
            How much of each row, in bytes; 0 copies nothing.
        height
            How many rows; 0 copies nothing.
        kind
            A `MemcpyKind`: host to device, device to host or device to device.

        Raises
        ------
        AclError
            The runtime refuses. After failure the destination holds old bytes, new bytes or both.
        StateError
            The library lacks the function.
        """
        self._enter()
        code = self._runtime.api.aclrtMemcpy2d(dst, dst_pitch_bytes, src, src_pitch_bytes, width_bytes, height, kind)
        if code:
            arguments = copy_arguments(dst, dst_pitch_bytes, src, width_bytes) | {"height": height, "kind": kind}
            raise self._runtime.error(code, "aclrtMemcpy2d", arguments)

    def memcpy_batch(self, copies: Sequence[BatchCopy], kind: int) -> None:
        """Make many copies in one direction and wait until their bytes are there.

        Parameters
        ----------
        copies
            The copies; none makes no call.
        kind
            ``ACL_MEMCPY_HOST_TO_DEVICE`` or ``ACL_MEMCPY_DEVICE_TO_HOST``.

        Raises
        ------
        ValueError
            `kind` is another.
        AclError
            The runtime refuses; its arguments name the first copy that failed. Those before it are made.
        StateError
            The library lacks the function.
        """
        batch = BatchArguments(copies, kind, self._id)
        if not copies:
            return
        self._enter()
        code = self._runtime.api.aclrtMemcpyBatch(*batch.arrays, batch.fail_index)
        if code:
            raise self._runtime.error(code, "aclrtMemcpyBatch", batch.error_arguments())

    def memset(self, addr: int, max_bytes: int, value: int, count_bytes: int) -> None:
        """Fill bytes with a value and wait until they are there.

        Parameters
        ----------
        addr
            First byte.
        max_bytes
            Room at `addr` in bytes.
        value
            Value of each byte; its low 8 bits count.
        count_bytes
            How many bytes; 0 sets nothing.

        Raises
        ------
        AclError
            The runtime refuses. After failure the range holds old bytes, new bytes or both.
        """
        self._enter()
        code = self._runtime.api.aclrtMemset(addr, max_bytes, value, count_bytes)
        if code:
            arguments = {"addr": addr, "max_bytes": max_bytes, "value": value, "count_bytes": count_bytes}
            raise self._runtime.error(code, "aclrtMemset", arguments)

    def memset_d32(self, addr: int, max_bytes: int, value: int, count: int) -> None:
        """Fill words of 4 bytes with a value and wait until they are there.

        Parameters
        ----------
        addr
            First word, at a multiple of 4.
        max_bytes
            Room at `addr` in bytes.
        value
            Value of each word, 0 to 2**32 - 1.
        count
            How many words; 0 sets nothing.

        Raises
        ------
        AclError
            The runtime refuses. After failure the range holds old words, new words or both.
        StateError
            The library lacks the function.
        """
        self._enter()
        code = self._runtime.api.aclrtMemsetD32(addr, max_bytes, value, count)
        if code:
            arguments = {"addr": addr, "max_bytes": max_bytes, "value": value, "count": count}
            raise self._runtime.error(code, "aclrtMemsetD32", arguments)
