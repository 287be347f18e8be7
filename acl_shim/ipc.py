"""Blocks of device memory that processes share by a key of text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acl_shim.device_memory import DeviceMemory
from acl_shim.lease import Lease
from acl_shim.memory_codes import IpcExportFlag
from acl_shim.notify import KEY_BYTES
from acl_shim.owner import Owner, SizedOwner
from acl_shim.table import new_array, new_text, read_text

if TYPE_CHECKING:
    from acl_shim.buffer import DeviceBuffer
    from acl_shim.device import Device
    from acl_shim.runtime import Runtime


def _close_key(runtime: "Runtime", key: str) -> None:
    code = runtime.api.aclrtIpcMemClose(key.encode())
    runtime.check(code, "aclrtIpcMemClose", {"key": key})


class IpcExport(Owner):
    """Own the key of a block that other processes may import; `DeviceBuffer.export_key` makes them.

    It keeps the block alive. The importers close first, then this, then the block.

    Attributes
    ----------
    key
        The key, which importers give to `Device.import_block`.
    buffer
        The block.

    Thread safety: any thread may use it.
    Source: aclrtIpcMemGetExportKey, aclrtIpcMemSetImportPid, aclrtIpcMemClose.
    """

    __slots__ = ("buffer", "key")

    def __init__(self, buffer: "DeviceBuffer", lease: Lease, key: str) -> None:
        self.buffer = buffer
        self.key = key
        super().__init__(buffer.device, lease, buffer.addr)

    @classmethod
    def create(cls, buffer: "DeviceBuffer", lease: Lease, *, check_pid: bool) -> "IpcExport":
        """Ask the runtime for the key of a block; `DeviceBuffer.export_key` says more."""
        runtime, key = buffer.device.runtime, new_text(KEY_BYTES)
        flags = 0 if check_pid else IpcExportFlag.ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION
        code = runtime.api.aclrtIpcMemGetExportKey(buffer.addr, buffer.size_bytes, key, KEY_BYTES, flags)
        arguments = {"addr": buffer.addr, "size_bytes": buffer.size_bytes, "flags": flags}
        runtime.check(code, "aclrtIpcMemGetExportKey", arguments)
        return cls(buffer, lease, read_text(key))

    def _give_back(self, _: int) -> None:
        if not self.buffer.closed:  # else both were collected, and the key went with the block
            _close_key(self._device.runtime, self.key)

    def allow_import(self, pids: Sequence[int]) -> None:
        """Say which processes may import the block.

        Parameters
        ----------
        pids
            What `Device.bare_tgid` gives in each of them.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The library lacks the function.
        """
        runtime, array = self._device.runtime, new_array("int32_t[]", pids)
        code = runtime.api.aclrtIpcMemSetImportPid(self.key.encode(), array, len(pids))
        runtime.check(code, "aclrtIpcMemSetImportPid", {"key": self.key, "pids": len(pids)})


class ImportedBuffer(SizedOwner, DeviceMemory):
    """Own the import of another process's block; `Device.import_block` makes them.

    Attributes
    ----------
    key
        The exporter's key.

    Thread safety: any thread may use it; copies to overlapping ranges are not ordered against each other.
    Source: aclrtIpcMemImportByKey, aclrtIpcMemClose.
    """

    __slots__ = ("key",)

    def __init__(self, device: "Device", lease: Lease, addr: int, size_bytes: int, key: str) -> None:
        self.key = key
        super().__init__(device, lease, addr, size_bytes)

    def _give_back(self, _: int) -> None:
        _close_key(self._device.runtime, self.key)
