"""Typed face of the C function table, put together from one protocol per subject.

A protocol describes each C function: positional-only, one type per parameter, plain ints for addresses and enums, the
code as the result. `acl_shim.table.bind` makes a face for an opened library.
"""

from typing import Protocol

from acl_shim.api_device import DeviceApi, StartApi
from acl_shim.api_memory import CopyApi, MemoryApi, PoolApi
from acl_shim.api_model import ModelApi
from acl_shim.api_stream import AllocatorApi, CallbackApi, EventApi, StreamApi
from acl_shim.api_system import SystemApi, VariableApi
from acl_shim.api_types import CharArray, LiveStruct, Null
from acl_shim.api_virtual import ShareApi, VirtualMemoryApi


class HostControlsApi(Protocol):
    """Controls of the host runtime (native/include/hostacl.h)."""

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

    def hostacl_delay(self, function: bytes | Null, microseconds: int, /) -> int:
        """Make every call of a function wait first."""

    def hostacl_fail_above(self, size_bytes: int, code: int, /) -> int:
        """Make allocations above a size return a code."""

    def hostacl_short_copy(self, nth: int, size_bytes: int, code: int, /) -> int:
        """Make the nth copy from now move only its first bytes and return a code."""

    def hostacl_fail_task(self, nth: int, code: int, /) -> int:
        """Make the nth task from now fail with a code."""

    def hostacl_delay_task(self, function: bytes | Null, microseconds: int, /) -> int:
        """Make every task that a function queues wait first."""

    def hostacl_hold(self, device_id: int, /) -> int:
        """Keep the streams of a device, -1 for all, from going on."""

    def hostacl_release(self, device_id: int, /) -> int:
        """Let the streams of a device, -1 for all, go on."""

    def hostacl_symbol(self, symbol: int, size_bytes: int, /) -> int:
        """Name a variable of every device; 0 bytes take it away."""

    def hostacl_calls(self, function: bytes, /) -> int:
        """Return how often a function was called."""

    def hostacl_live(self, out: LiveStruct, /) -> int:
        """Write what is alive."""

    def hostacl_live_report(self, buf: CharArray | Null, len_bytes: int, /) -> int:
        """Write one line per live object; returns the length of the whole text in bytes."""

    def hostacl_info(self, buf: CharArray | Null, len_bytes: int, /) -> int:
        """Write what the host runtime is set to; returns the length of the whole text in bytes."""


class AclApi(
    StartApi,
    DeviceApi,
    MemoryApi,
    CopyApi,
    PoolApi,
    VirtualMemoryApi,
    ShareApi,
    StreamApi,
    CallbackApi,
    AllocatorApi,
    EventApi,
    SystemApi,
    VariableApi,
    ModelApi,
    HostControlsApi,
    Protocol,
):
    """The functions of the table, under their C names.

    Each returns the function's own code and raises nothing but `StateError`, where the library lacks the function.
    Thread safety: as the C functions, any thread; each call releases the interpreter lock.
    Source: CANN runtime, include/external/acl/acl.h, acl_rt.h, acl_mdl.h; native/include/hostacl.h.
    """
