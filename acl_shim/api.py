"""Typed face of the C function table.

`AclApi` describes each C function of the table: positional-only, one type per parameter, plain ints for addresses and
enums, the code as the result. `acl_shim.table.bind` makes one for an opened library.
"""

from typing import Literal, NewType, Protocol

ContextHandle = NewType("ContextHandle", int)
"""An `aclrtContext` as a number."""

Table = NewType("Table", object)
"""Pointer to the function table of one library."""

Null = NewType("Null", object)
"""The null pointer."""

CharArray = NewType("CharArray", object)
"""A C array of characters that a call fills."""

MallocConfig = NewType("MallocConfig", object)
"""Pointer to a C struct `aclrtMallocConfig`."""

CellType = Literal["uintptr_t *", "int *", "int32_t *", "uint32_t *", "uint64_t *", "size_t *"]
"""C types of the single values that calls write."""


class Cell(Protocol):
    """One C integer that a call writes; read it as ``cell[0]``."""

    def __getitem__(self, index: int, /) -> int:
        """Return the value."""


class MemLocationStruct(Protocol):
    """C struct `aclrtMemLocation`."""

    id: int
    type: int


class PtrAttributes(Protocol):
    """C struct `aclrtPtrAttributes`; `pageSize` in bytes."""

    location: MemLocationStruct
    pageSize: int


class DeviceLiveStruct(Protocol):
    """C struct `hostacl_device_live_t`."""

    set_count: int
    pages_4k_used: int
    pages_4k_total: int
    pages_2m_used: int
    pages_2m_total: int
    pages_1g_used: int
    pages_1g_total: int
    committed_bytes: int


class LiveStruct(Protocol):
    """C struct `hostacl_live_t`."""

    blocks: int
    bytes: int
    host_blocks: int
    host_bytes: int
    contexts: int
    devices_set: int
    device_count: int
    devices: "DeviceLiveArray"


class DeviceLiveArray(Protocol):
    """C array of `hostacl_device_live_t`, one per device id."""

    def __getitem__(self, index: int, /) -> DeviceLiveStruct:
        """Return the entry of a device."""


class AclApi(Protocol):
    """The functions of the table, under their C names.

    Each returns the function's own code and raises nothing but `StateError`, where the library lacks the function.
    Thread safety: as the C functions, any thread; each call releases the interpreter lock.
    Source: CANN runtime, include/external/acl/acl.h, acl_rt.h; native/include/hostacl.h.
    """

    def aclInit(self, config_path: bytes | Null, /) -> int:
        """Start the runtime; 100002 where it is started already."""

    def aclFinalize(self) -> int:
        """End the runtime for everybody in the process."""

    def aclFinalizeReference(self, ref_count: Cell, /) -> int:
        """Undo one `aclInit`; writes how many are left."""

    def aclGetRecentErrMsg(self) -> str | None:
        """Return and clear the newest message of the calling thread."""

    def aclrtGetLastError(self, level: int, /) -> int:
        """Return and clear the last error of the calling thread."""

    def aclrtPeekAtLastError(self, level: int, /) -> int:
        """Return the last error of the calling thread."""

    def aclrtGetRunMode(self, run_mode: Cell, /) -> int:
        """Write a `RunMode`."""

    def aclrtGetSocName(self) -> str | None:
        """Return the product's name."""

    def aclrtSetDevice(self, device_id: int, /) -> int:
        """Make a device's default context current on the calling thread and raise the device's count."""

    def aclrtResetDevice(self, device_id: int, /) -> int:
        """Lower the device's count; its memory and context end at 0."""

    def aclrtResetDeviceForce(self, device_id: int, /) -> int:
        """End the device's memory and context whatever the count."""

    def aclrtGetDevice(self, device_id: Cell, /) -> int:
        """Write the device that is current on the calling thread."""

    def aclrtGetDeviceCount(self, count: Cell, /) -> int:
        """Write the number of devices."""

    def aclrtCreateContext(self, context: Cell, device_id: int, /) -> int:
        """Write a new context of a device and make it current on the calling thread."""

    def aclrtDestroyContext(self, context: ContextHandle, /) -> int:
        """Destroy a context made by `aclrtCreateContext`."""

    def aclrtSetCurrentContext(self, context: ContextHandle, /) -> int:
        """Make a context, and so its device, current on the calling thread."""

    def aclrtGetCurrentContext(self, context: Cell, /) -> int:
        """Write the context that is current on the calling thread."""

    def aclrtMalloc(self, dev_ptr: Cell, size_bytes: int, policy: int, /) -> int:
        """Write the address of a new device block."""

    def aclrtMallocAlign32(self, dev_ptr: Cell, size_bytes: int, policy: int, /) -> int:
        """Write the address of a new device block, its size rounded to 32 bytes without padding."""

    def aclrtMallocCached(self, dev_ptr: Cell, size_bytes: int, policy: int, /) -> int:
        """Write the address of a new device block that the device's processors may cache."""

    def aclrtMallocWithCfg(self, dev_ptr: Cell, size_bytes: int, policy: int, cfg: MallocConfig | Null, /) -> int:
        """Write the address of a new device block with attributes."""

    def aclrtFree(self, dev_ptr: int, /) -> int:
        """Free a device block."""

    def aclrtMallocHost(self, host_ptr: Cell, size_bytes: int, /) -> int:
        """Write the address of a new pinned host block."""

    def aclrtMallocHostWithCfg(self, host_ptr: Cell, size_bytes: int, cfg: MallocConfig | Null, /) -> int:
        """Write the address of a new pinned host block with attributes."""

    def aclrtFreeHost(self, host_ptr: int, /) -> int:
        """Free a pinned host block."""

    def aclrtMemcpy(self, dst: int, dst_max_bytes: int, src: int, count_bytes: int, kind: int, /) -> int:
        """Copy bytes and wait until they are there."""

    def aclrtMemset(self, addr: int, max_bytes: int, value: int, count_bytes: int, /) -> int:
        """Fill bytes with the low 8 bits of a value."""

    def aclrtGetMemInfo(self, attr: int, free_bytes: Cell, total_bytes: Cell, /) -> int:
        """Write what a pool of the current device has."""

    def aclrtPointerGetAttributes(self, addr: int, attributes: PtrAttributes, /) -> int:
        """Write where an address lives."""

    def hostacl_version(self) -> str | None:
        """Return the version text of the host runtime."""

    def hostacl_error(self) -> str | None:
        """Return the last refusal of a control on the calling thread."""

    def hostacl_configure(self, key: bytes, value: bytes, /) -> int:
        """Set one option of the host runtime."""

    def hostacl_reset(self) -> int:
        """Bring the host runtime back to its start."""

    def hostacl_fail(self, function: bytes | Null, nth: int, code: int, /) -> int:
        """Make the nth call of a function from now return a code."""

    def hostacl_calls(self, function: bytes, /) -> int:
        """Return how often a function was called."""

    def hostacl_live(self, out: LiveStruct, /) -> int:
        """Write what is alive."""

    def hostacl_live_report(self, buf: CharArray | Null, len_bytes: int, /) -> int:
        """Write one line per live object; returns the length of the whole text in bytes."""

    def hostacl_info(self, buf: CharArray | Null, len_bytes: int, /) -> int:
        """Write what the host runtime is set to; returns the length of the whole text in bytes."""
