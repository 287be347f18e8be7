"""Typed face of the C table: virtual memory and what processes share."""

from typing import Protocol

from acl_shim.api_types import (
    Cell,
    CharArray,
    IntArray,
    MemAccessDescArray,
    MemHandle,
    MemLocationStruct,
    PhysicalMemPropStruct,
)


class VirtualMemoryApi(Protocol):
    """Address ranges, physical memory, mappings."""

    def aclrtReserveMemAddress(self, addr: Cell, size_bytes: int, alignment: int, wanted: int, flags: int, /) -> int:
        """Write the start of a new address range."""

    def aclrtReserveMemAddressNoUCMemory(
        self, addr: Cell, size_bytes: int, alignment: int, wanted: int, flags: int, /
    ) -> int:
        """Write the start of a new address range for memory that is not unified."""

    def aclrtReleaseMemAddress(self, addr: int, /) -> int:
        """Give a range back; nothing may be mapped in it."""

    def aclrtMallocPhysical(self, handle: Cell, size_bytes: int, prop: PhysicalMemPropStruct, flags: int, /) -> int:
        """Write a handle of new physical memory."""

    def aclrtFreePhysical(self, handle: MemHandle, /) -> int:
        """Give up one reference to physical memory."""

    def aclrtMapMem(self, addr: int, size_bytes: int, offset: int, handle: MemHandle, flags: int, /) -> int:
        """Map physical memory at an address of a range."""

    def aclrtMemMapNoAccess(self, addr: int, size_bytes: int, offset: int, handle: MemHandle, flags: int, /) -> int:
        """Map physical memory that nobody may use before `aclrtMemSetAccess`."""

    def aclrtUnmapMem(self, addr: int, /) -> int:
        """Undo the map that started at an address."""

    def aclrtMemSetAccess(self, addr: int, size_bytes: int, descs: MemAccessDescArray, count: int, /) -> int:
        """Say who may use a mapping."""

    def aclrtMemGetAccess(self, addr: int, location: MemLocationStruct, flag: Cell, /) -> int:
        """Write what a location may do with a mapping."""

    def aclrtMemGetAllocationGranularity(self, prop: PhysicalMemPropStruct, option: int, granularity: Cell, /) -> int:
        """Write the unit of sizes and addresses in bytes."""

    def aclrtMemRetainAllocationHandle(self, addr: int, handle: Cell, /) -> int:
        """Write the handle mapped at an address; one more reference to give up."""

    def aclrtMemGetAllocationPropertiesFromHandle(self, handle: MemHandle, prop: PhysicalMemPropStruct, /) -> int:
        """Write what a handle was made with."""

    def aclrtMemGetAddressRange(self, addr: int, base: Cell, size_bytes: Cell, /) -> int:
        """Write start and size of the block that holds an address."""

    def aclrtMemMapSetLink(self, handle: MemHandle, link: int, /) -> int:
        """Say by which way the memory of a handle is reached."""

    def aclrtMemMapSelectedLink(self, dst: int, size: int, src: int, link: int, /) -> int:
        """Map what is mapped at one place at another one too."""


class ShareApi(Protocol):
    """What processes share by keys."""

    def aclrtMemExportToShareableHandle(self, handle: MemHandle, handle_type: int, flags: int, key: Cell, /) -> int:
        """Write a key of physical memory."""

    def aclrtMemExportToShareableHandleV2(self, handle: MemHandle, flags: int, share_type: int, key: int, /) -> int:
        """Write a key of physical memory to an address."""

    def aclrtMemImportFromShareableHandle(self, key: int, device_id: int, handle: Cell, /) -> int:
        """Write a handle of another process's physical memory."""

    def aclrtMemImportFromShareableHandleV2(self, key: int, share_type: int, flags: int, handle: Cell, /) -> int:
        """Write a handle of another process's physical memory, from a key at an address."""

    def aclrtMemSetPidToShareableHandle(self, key: int, pids: IntArray, count: int, /) -> int:
        """Say which processes may import a key."""

    def aclrtMemSetPidToShareableHandleV2(self, key: int, share_type: int, pids: IntArray, count: int, /) -> int:
        """Say which processes may import a key at an address."""

    def aclrtIpcMemGetExportKey(self, addr: int, size_bytes: int, key: CharArray, len_bytes: int, flags: int, /) -> int:
        """Write a key of a device block."""

    def aclrtIpcMemImportByKey(self, addr: Cell, key: bytes, flags: int, /) -> int:
        """Write the address of another process's block."""

    def aclrtIpcMemClose(self, key: bytes, /) -> int:
        """End the use of a key."""

    def aclrtIpcMemSetImportPid(self, key: bytes, pids: IntArray, count: int, /) -> int:
        """Say which processes may import a key of a block."""

    def aclrtMemP2PMap(self, addr: int, size: int, device_id: int, flags: int, /) -> int:
        """Let another device reach a block."""

    def aclrtIpcMemSetAttr(self, key: bytes, kind: int, value: int, /) -> int:
        """Say by which way memory behind a key is reached."""
