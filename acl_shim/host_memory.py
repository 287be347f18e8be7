"""Host memory of arrays, buffers and DLPack objects, as an address and a size."""

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from acl_shim._acl import ffi, lib

if TYPE_CHECKING:
    from typing_extensions import Buffer, CapsuleType

_DL_CPU = 1  # device type of plain host memory: dlpack.h, kDLCPU


class SupportsDLPack(Protocol):
    """An object that exports its memory by DLPack."""

    def __dlpack__(self, *, stream: None = None) -> "CapsuleType":
        """Return a capsule of the memory."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return (device type, device id)."""


HostBuffer: TypeAlias = "Buffer | SupportsDLPack"
"""What copies take: numpy arrays, bytes, memoryview and other buffers, DLPack objects in host memory.

Writing into a DLPack object needs numpy 2.1; an older one gives read-only arrays for them.
"""


class Hold(Protocol):
    """Keep the memory of an object where it is, from `hold` to `release`; its length is the size in bytes.

    A hold must be released, not dropped: an interpreter before 3.12 crashes when its collector meets a memoryview and a
    hold on it in one cycle, as the traceback of a failed copy would make one.
    """

    def __len__(self) -> int:
        """Return the size in bytes."""


_from_buffer: Callable[[object, object, bool], Hold] = ffi.from_buffer
_CHARACTERS = ffi.typeof("char[]")  # a type is found faster than its name

addr_of: Callable[[Hold], int] = lib.acl_address
"""Return the address of the first byte of held memory."""

release: Callable[[Hold], None] = ffi.release
"""End a hold; its address must not be used any more."""


def _array_over(source: object) -> object:
    """Return an array over the memory of an object that has no buffer, by the other ways there are."""
    if hasattr(source, "__array_interface__"):
        return np.asarray(source)
    return _from_dlpack(cast(SupportsDLPack, source))


def _offers_array(source: object) -> bool:
    return hasattr(source, "__array_interface__") or hasattr(source, "__dlpack__")


def _from_dlpack(source: SupportsDLPack) -> object:
    """Return an array over the memory of a DLPack object."""
    name = type(source).__name__
    device_type, _ = source.__dlpack_device__()
    if device_type != _DL_CPU:
        raise TypeError(f"{name} lies on DLPack device type {device_type}, not in host memory (1): copy it there first")
    try:
        return np.from_dlpack(source)
    except (BufferError, RuntimeError) as error:
        raise TypeError(f"numpy cannot read this {name} by DLPack ({error}): pass a view of its bytes") from error


def _refusal(exporter: object, error: Exception) -> Exception:
    """Say why an object gives no buffer."""
    name = type(exporter).__name__
    if isinstance(error, TypeError):
        return TypeError(f"{name} has no buffer: pass a numpy array, bytes, a memoryview or an object with __dlpack__")
    try:
        ffi.from_buffer(exporter)
    except (BufferError, ValueError):
        shape = getattr(exporter, "shape", None)
        return ValueError(f"{name} of shape {shape} is not C-contiguous: copy it with numpy.ascontiguousarray first")
    return ValueError(f"{name} is read-only: pass a writable buffer")


def hold(source: HostBuffer, writable: bool) -> Hold:
    """Hold the memory of an object; the caller releases it, whatever happens.

    Parameters
    ----------
    source
        C-contiguous numpy array, bytes, memoryview, other buffer, or DLPack object on the host.
    writable
        Whether the memory will be written.

    Raises
    ------
    TypeError
        The object has no buffer, or its memory is not on the host.
    ValueError
        The memory is not C-contiguous, or it is read-only and shall be written.
    """
    try:
        return _from_buffer(_CHARACTERS, source, writable)
    except (BufferError, TypeError, ValueError) as error:
        if isinstance(error, TypeError) and _offers_array(source):
            return _hold_array(_array_over(source), writable)
        raise _refusal(source, error) from error


def _hold_array(values: object, writable: bool) -> Hold:
    try:
        return _from_buffer(_CHARACTERS, values, writable)
    except (BufferError, ValueError) as error:
        raise _refusal(values, error) from error


def _bytes_of(source: object) -> NDArray[np.uint8]:
    return np.frombuffer(cast(memoryview, source), np.uint8)


def lasting_array(source: HostBuffer, writable: bool) -> NDArray[np.uint8]:
    """Return the bytes of an object as an array that keeps them where they are as long as it lives.

    Parameters
    ----------
    source
        What `hold` takes.
    writable
        Whether the memory will be written.

    Raises
    ------
    TypeError, ValueError
        As `hold` does.
    """
    release(hold(source, writable))  # says what is wrong
    try:
        return _bytes_of(source)
    except TypeError:
        return _bytes_of(_array_over(source))


class HostMemory:
    """Memory of an object, held in a ``with`` block.

    Attributes
    ----------
    addr
        Address of the first byte.
    size_bytes
        Size in bytes.
    """

    __slots__ = ("_hold", "addr", "size_bytes")

    def __init__(self, held: Hold) -> None:
        self._hold = held
        self.addr = addr_of(held)
        self.size_bytes = len(held)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        release(self._hold)


def read_access(source: HostBuffer) -> HostMemory:
    """Return the memory of an object to read from, for a ``with`` block; raises as `hold` does."""
    return HostMemory(hold(source, False))


def write_access(target: HostBuffer) -> HostMemory:
    """Return the memory of an object to write into, for a ``with`` block; raises as `hold` does."""
    return HostMemory(hold(target, True))
