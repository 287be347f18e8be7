"""Blocks of device memory as owner objects."""

import weakref
from typing import TYPE_CHECKING

from acl_shim.device_memory import DeviceMemory
from acl_shim.dlpack import EXTERNAL, export_bytes
from acl_shim.errors import StateError
from acl_shim.ipc import IpcExport
from acl_shim.lease import Lease
from acl_shim.owner import SizedOwner

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

    from acl_shim.device import Device


class _Export:
    """Keeps a block alive as long as somebody uses it by DLPack."""

    __slots__ = ("__weakref__", "_buffer")

    def __init__(self, buffer: "DeviceBuffer") -> None:
        self._buffer = buffer


class DeviceBuffer(SizedOwner, DeviceMemory):
    """Own one block of device memory; `Device.malloc` makes them.

    Copies check their range before the call and block until the bytes are there. A buffer must not be closed while
    another thread copies from or to it.

    By DLPack the block is an array of bytes on device type 12 (external device), without a copy; what was exported
    keeps the buffer alive.

    Thread safety: any thread may use it; copies to overlapping ranges are not ordered against each other.
    Source: aclrtMalloc, aclrtFree, aclrtMemcpy.
    """

    __slots__ = ("_export", "_ipc_export")

    def __init__(self, device: "Device", lease: Lease, handle: int, size_bytes: int) -> None:
        self._export: weakref.ref[_Export] | None = None
        self._ipc_export: weakref.ref[IpcExport] | None = None
        super().__init__(device, lease, handle, size_bytes)

    def close(self) -> None:
        """Give the block back; does nothing when that happened already.

        Raises
        ------
        StateError
            Somebody uses the block by DLPack, or its key is open. The buffer is open still.
        AclError
            The runtime refuses. After failure the buffer is open still and `close` may be called again.
        """
        if self._export is not None and self._export() is not None:
            raise StateError(f"DeviceBuffer {self._what()} is in use by DLPack: drop what was made from it first")
        if (export := self._open_key()) is not None:
            raise StateError(f"DeviceBuffer {self._what()} is exported as {export.key}: close the IpcExport first")
        super().close()

    def _give_back(self, handle: int) -> None:
        runtime = self._device.runtime
        code = runtime.api.aclrtFree(handle)
        if code:
            raise runtime.error(code, "aclrtFree", {"addr": handle, "size_bytes": self._size_bytes})

    def _open_key(self) -> IpcExport | None:
        export = self._ipc_export() if self._ipc_export is not None else None
        return None if export is None or export.closed else export

    def export_key(self, *, check_pid: bool = True) -> IpcExport:
        """Return a key by which other processes import the block; the same one as long as it is open.

        Parameters
        ----------
        check_pid
            Whether only the processes of `IpcExport.allow_import` may do so.

        Raises
        ------
        AclError
            The runtime refuses: the block starts inside a page.
        StateError
            The buffer is closed, or the library lacks the function.
        """
        export = self._open_key()
        if export is None:
            export = IpcExport.create(self, self._lease, check_pid=check_pid)
            self._ipc_export = weakref.ref(export)
        return export

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> "CapsuleType":
        """Return a capsule of the block's bytes, which keeps the buffer alive.

        Parameters
        ----------
        stream
            Not used: a block has no stream of its own; synchronise those that write it.
        max_version, dl_device, copy
            As the array API says; a copy or another device is refused.

        Raises
        ------
        BufferError
            The consumer wants a copy or another device.
        StateError
            The buffer is closed.
        """
        export = self._export() if self._export is not None else None
        if export is None:
            export = _Export(self)
            self._export = weakref.ref(export)
        return export_bytes(
            export,
            self._handle(),
            self._size_bytes,
            self.__dlpack_device__(),
            max_version=max_version,
            dl_device=dl_device,
            copy=copy,
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return (12, device id)."""
        return EXTERNAL, self._device.id


class ManagedBuffer(SizedOwner, DeviceMemory):
    """Own memory that host and devices reach at one address; `Device.malloc_managed` makes them.

    Thread safety: any thread may use it; copies to overlapping ranges are not ordered against each other.
    Source: aclrtMemAllocManaged, aclrtFree.
    """

    __slots__ = ()

    def _give_back(self, handle: int) -> None:
        runtime = self._device.runtime
        code = runtime.api.aclrtFree(handle)
        if code:
            raise runtime.error(code, "aclrtFree", {"addr": handle, "size_bytes": self._size_bytes})
