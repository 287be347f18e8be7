"""Typed face of the C function table.

`AclApi` describes each C function of the table: positional-only, one type per parameter, plain ints for addresses and
enums, the code as the result. `bind` makes one for an opened library. A function that the library lacks raises
`StateError` before anything is called, so the others pay nothing for the check.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal, NewType, NoReturn, Protocol, cast

from acl_shim._acl import ffi, lib
from acl_shim.errors import StateError

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


NULL = Null(ffi.NULL)


def new_cell(ctype: CellType) -> Cell:
    """Return a zeroed cell for one out value."""
    return cast(Cell, ffi.new(ctype))


def new_ptr_attributes() -> PtrAttributes:
    """Return a zeroed `aclrtPtrAttributes`."""
    return cast(PtrAttributes, ffi.new("aclrtPtrAttributes *"))


def new_live() -> LiveStruct:
    """Return a zeroed `hostacl_live_t`."""
    return cast(LiveStruct, ffi.new("hostacl_live_t *"))


def function_names() -> Iterator[str]:
    """Yield the C names of the functions of the table, in its order."""
    index = 0
    while (name := lib.acl_symbol_name(index)) != ffi.NULL:
        yield ffi.string(name).decode()
        index += 1


def has_function(table: Table, name: str) -> bool:
    """Return whether a library has a function, in the table or not."""
    return bool(lib.acl_has(table, name.encode()))


class _BoundApi:
    """Holds one callable per function of the table."""


class _RefusingApi:
    """Stands in for a face that must not be used any more."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __getattr__(self, name: str) -> NoReturn:
        raise StateError(f"{name} was not called: {self._reason}")


def _text_call(call: Callable[..., object]) -> Callable[..., str | None]:
    """Wrap a function that returns a C string."""

    def text_or_none() -> str | None:
        text = call()
        return None if text == ffi.NULL else ffi.string(text).decode("utf-8", "replace")

    return text_or_none


def _missing_call(name: str, library: str) -> Callable[..., int]:
    """Return what stands for a function that the library lacks."""

    def missing(*_: object) -> NoReturn:
        raise StateError(f"{library} has no {name}: ask supports({name!r}) first, or install a newer CANN")

    return missing


def bind(table: Table, library: str) -> AclApi:
    """Return the typed face of an opened library.

    Parameters
    ----------
    table
        Function table of the library.
    library
        Path of the library, for the message about a function it lacks.
    """
    face = _BoundApi()
    for name in function_names():
        wrapper = getattr(lib, f"acl_{name}")
        call = partial(wrapper, table)
        if not has_function(table, name):
            setattr(face, name, _missing_call(name, library))
        elif ffi.typeof(wrapper).result.kind == "pointer":
            setattr(face, name, _text_call(call))
        else:
            setattr(face, name, call)
    return cast(AclApi, face)


def refusing(reason: str) -> AclApi:
    """Return a face whose every function raises `StateError` with the reason."""
    return cast(AclApi, _RefusingApi(reason))
