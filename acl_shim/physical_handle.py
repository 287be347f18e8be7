"""Physical memory as an owner object: pages of a device that mappings give an address."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acl_shim.api_types import MemHandle
from acl_shim.errors import StateError, size_text
from acl_shim.lease import Lease
from acl_shim.memory_codes import ExportFlag, MemHandleType
from acl_shim.owner import SizedOwner
from acl_shim.table import new_array, new_cell

if TYPE_CHECKING:
    from acl_shim.device import Device


class PhysicalHandle(SizedOwner):
    """Own one reference to physical memory; `Device.malloc_physical` and `Device.import_handle` make them.

    The runtime counts references: one for each PhysicalHandle and one for each mapping. The memory goes back with the
    last; until then it keeps its bytes, mapped or not. So a handle may be closed while it is mapped.

    Attributes
    ----------
    page_bytes
        Size of its pages in bytes: 2 MiB or 1 GiB.

    Thread safety: any thread may use it.
    Source: aclrtMallocPhysical, aclrtFreePhysical, aclrtMemRetainAllocationHandle.
    """

    __slots__ = ("mapped", "page_bytes")

    def __init__(self, device: "Device", lease: Lease, handle: int, size_bytes: int, page_bytes: int) -> None:
        self.page_bytes = page_bytes
        self.mapped: dict[tuple[str, int], int] = {}
        """Open mappings made with this object: key of the mapping -> its address."""
        super().__init__(device, lease, handle, size_bytes)

    def _give_back(self, handle: int) -> None:
        runtime = self._device.runtime
        code = runtime.api.aclrtFreePhysical(MemHandle(handle))
        if code:
            raise runtime.error(code, "aclrtFreePhysical", {"handle": handle, "size_bytes": self._size_bytes})

    @property
    def handle(self) -> MemHandle:
        """The `aclrtDrvMemHandle` as a number.

        Raises
        ------
        StateError
            The handle is closed.
        """
        return MemHandle(self._handle())

    @property
    def lease(self) -> Lease:
        """Hold on the device under which the memory was made."""
        return self._lease

    @property
    def map_count(self) -> int:
        """How many mappings made with this object are open."""
        return len(self.mapped)

    def retain(self) -> "PhysicalHandle":
        """Return a second owner of the same memory.

        Raises
        ------
        StateError
            The handle is not mapped: the runtime finds it by an address only.
        AclError
            The runtime refuses. Nothing is left.
        """
        addr = next(iter(self.mapped.copy().values()), None)
        if addr is None:
            raise StateError(f"PhysicalHandle {self._what()} is not mapped: map it before it is retained")
        cell, runtime = new_cell("uintptr_t *"), self._device.runtime
        code = runtime.api.aclrtMemRetainAllocationHandle(addr, cell)
        runtime.check(code, "aclrtMemRetainAllocationHandle", {"addr": addr, "device_id": self._device.id})
        return PhysicalHandle(self._device, self._lease, cell[0], self._size_bytes, self.page_bytes)

    def export_key(self, *, check_pid: bool = True) -> int:
        """Return a key by which another process imports the memory; the same key each time.

        Parameters
        ----------
        check_pid
            Whether only the processes of `allow_import` may do so.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The handle is closed, or the library lacks the function.
        """
        key, runtime = new_cell("uint64_t *"), self._device.runtime
        flags = 0 if check_pid else ExportFlag.ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION
        kind = MemHandleType.ACL_MEM_HANDLE_TYPE_NONE
        code = runtime.api.aclrtMemExportToShareableHandle(self.handle, kind, flags, key)
        runtime.check(code, "aclrtMemExportToShareableHandle", {"handle": self.handle, "flags": flags})
        return key[0]

    def allow_import(self, key: int, pids: Sequence[int]) -> None:
        """Say which processes may import the memory.

        Parameters
        ----------
        key
            What `export_key` gave.
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
        code = runtime.api.aclrtMemSetPidToShareableHandle(key, array, len(pids))
        runtime.check(code, "aclrtMemSetPidToShareableHandle", {"key": key, "pids": len(pids)})

    def _what(self) -> str:
        return f"of {size_text(self._size_bytes)} in pages of {size_text(self.page_bytes)} on device {self._device.id}"
