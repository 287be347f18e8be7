"""One device: made current on the calling thread before each call, its memory, its copies."""

from operator import index
from typing import TYPE_CHECKING

from acl_shim.buffer import DeviceBuffer, PinnedBuffer, PinnedMemory
from acl_shim.codes import AclErrorCode, MemAttr, MemcpyKind, MemLocationType, MemMallocPolicy
from acl_shim.errors import AclError, Shortage
from acl_shim.host_memory import HostBuffer, addr_of, hold, release
from acl_shim.lease import CurrentDevice
from acl_shim.mem_info import MemInfo, PointerAttributes, page_kind
from acl_shim.structs import new_module_config, new_ptr_attributes
from acl_shim.table import new_cell

if TYPE_CHECKING:
    from acl_shim.runtime import Runtime


def _size(size_bytes: int) -> int:
    size = index(size_bytes)
    if size <= 0:
        raise ValueError(f"size_bytes is {size}: give at least 1 byte")
    return size


class Device:
    """One device of a runtime; `Runtime.device` makes them.

    Nothing is called until the device is used. The first use starts the runtime and sets the device once for the
    process; every call makes the device's default context current on the calling thread first, as `aclrtSetDevice`
    does, and leaves it so.

    Thread safety: any thread may use it.
    Source: aclrtSetDevice, aclrtSetCurrentContext.
    """

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

        Lowers the device's count by the one this process raised it by; others in the process keep theirs. No other
        thread may be using the device meanwhile.

        Raises
        ------
        StateError
            Buffers on the device are open. Nothing has changed.
        AclError
            The runtime refuses. After failure the device is in use still.
        """
        self._current.reset()

    def forget(self) -> None:
        """End the hold on the device without a call, for a runtime that has dropped it by itself."""
        self._current.forget()

    def mem_info(self, attr: int = MemAttr.ACL_HBM_MEM) -> MemInfo:
        """Return free and total memory of a pool.

        Parameters
        ----------
        attr
            The pool, a `MemAttr`. The default counts 2 MiB and 4 KiB pages, not 1 GiB pages.

        Raises
        ------
        AclError
            The runtime refuses: 107016 for an unknown pool, 207000 for one the product lacks.
        """
        free, total = new_cell("size_t *"), new_cell("size_t *")
        self._enter()
        code = self._runtime.api.aclrtGetMemInfo(attr, free, total)
        self._runtime.check(code, "aclrtGetMemInfo", {"attr": attr, "device_id": self._id})
        return MemInfo(free[0], total[0])

    def malloc(
        self, size_bytes: int, policy: int = MemMallocPolicy.HUGE_FIRST, *, module_id: int | None = None
    ) -> DeviceBuffer:
        """Allocate device memory; its content is not defined.

        Parameters
        ----------
        size_bytes
            Size in bytes, at least 1.
        policy
            A `MemMallocPolicy`, to which `MemTypeFlag` bits may be added.
        module_id
            Module that the runtime books the block under; then `aclrtMallocWithCfg` is called, which does not pad.

        Raises
        ------
        ValueError
            `size_bytes` is below 1.
        OutOfMemoryError
            The page class has not enough memory. Nothing is left allocated.
        AclError
            The runtime refuses. Nothing is left allocated.
        StateError
            The library lacks the function, or the runtime is closed or forked.
        """
        size = _size(size_bytes)
        api, cell = self._runtime.api, new_cell("uintptr_t *")
        lease = self._enter()
        if module_id is None:
            call, code = "aclrtMalloc", api.aclrtMalloc(cell, size, policy)
        else:
            config, _attributes = new_module_config(module_id)
            call, code = "aclrtMallocWithCfg", api.aclrtMallocWithCfg(cell, size, policy, config)
        if code:
            raise self._allocation_error(code, call, size, policy)
        return DeviceBuffer(self, lease, cell[0], size)

    def _allocation_error(self, code: int, call: str, size_bytes: int, policy: int) -> AclError:
        """Return the error of a failed allocation, with the figures of the pool when memory is short."""
        arguments = {"size_bytes": size_bytes, "policy": policy, "device_id": self._id}
        if code != AclErrorCode.ACL_ERROR_RT_MEMORY_ALLOCATION:
            return self._runtime.error(code, call, arguments)
        text = self._runtime.recent_text() or ""
        pages, attr = page_kind(policy)
        free, total = new_cell("size_t *"), new_cell("size_t *")
        known = self._runtime.api.aclrtGetMemInfo(attr, free, total) == 0
        shortage = Shortage(size_bytes, free[0] if known else None, total[0] if known else None, self._id, pages)
        return self._runtime.error(code, call, arguments, text=text, shortage=shortage)

    def malloc_host(self, size_bytes: int) -> PinnedBuffer:
        """Allocate host memory that the device can copy from and to directly; its content is not defined.

        Parameters
        ----------
        size_bytes
            Size in bytes, at least 1.

        Raises
        ------
        ValueError
            `size_bytes` is below 1.
        AclError
            The runtime refuses. Nothing is left allocated.
        """
        size = _size(size_bytes)
        cell = new_cell("uintptr_t *")
        lease = self._enter()
        code = self._runtime.api.aclrtMallocHost(cell, size)
        self._runtime.check(code, "aclrtMallocHost", {"size_bytes": size, "device_id": self._id})
        return PinnedBuffer(PinnedMemory(self, lease, cell[0], size))

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
            arguments = {"dst": dst, "dst_max_bytes": dst_max_bytes, "src": src, "count_bytes": count_bytes}
            raise self._runtime.error(code, "aclrtMemcpy", arguments)

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
            `src` is not C-contiguous, or larger than `dst_max_bytes`.
        AclError
            The runtime refuses. After failure the destination holds old bytes, new bytes or both.
        """
        held = hold(src, False)
        try:
            count = len(held)
            if count > dst_max_bytes:
                raise ValueError(
                    f"source of {count} B does not fit the {dst_max_bytes} B at {dst:#x} on device {self._id}: give a"
                    " smaller source"
                )
            self.memcpy(dst, dst_max_bytes, addr_of(held), count, MemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE)
        finally:
            release(held)

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
            `dst` is read-only or not C-contiguous.
        AclError
            The runtime refuses. After failure `dst` holds old bytes, new bytes or both.
        """
        held = hold(dst, True)
        try:
            count = len(held)
            self.memcpy(addr_of(held), count, src, count, MemcpyKind.ACL_MEMCPY_DEVICE_TO_HOST)
        finally:
            release(held)

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

    def pointer_attributes(self, addr: int) -> PointerAttributes:
        """Return where an address lives.

        Parameters
        ----------
        addr
            Any address, of the host or of a device.

        Raises
        ------
        AclError
            The address is in the device's range and not allocated, or the runtime refuses otherwise.
        StateError
            The library lacks the function.
        """
        attributes = new_ptr_attributes()
        self._enter()
        code = self._runtime.api.aclrtPointerGetAttributes(addr, attributes)
        self._runtime.check(code, "aclrtPointerGetAttributes", {"addr": addr})
        location = attributes.location
        return PointerAttributes(MemLocationType(location.type), location.id, attributes.pageSize)

    def __repr__(self) -> str:
        return f"<Device {self._id} of {self._runtime!r}>"
