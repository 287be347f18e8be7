"""Host memory of arrays, buffers and DLPack objects, as an address and a size."""

from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, cast

import numpy as np

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
"""What copies take: numpy arrays, bytes, memoryview and other buffers, DLPack objects in host memory."""


class HostMemory:
    """Host memory of an object, held where it is until the end of the ``with`` block.

    The hold must not outlive the block: an interpreter before 3.12 crashes when its collector meets a memoryview and a
    hold on it in the same cycle, as the traceback of a failed copy would make one.

    Attributes
    ----------
    addr
        Address of the first byte.
    size_bytes
        Size in bytes.
    """

    __slots__ = ("_hold", "addr", "size_bytes")

    def __init__(self, exporter: object, *, writable: bool) -> None:
        self._hold = ffi.from_buffer(exporter, require_writable=writable)
        self.addr: int = lib.acl_address(self._hold)
        self.size_bytes = len(self._hold)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        ffi.release(self._hold)


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


def _access(source: HostBuffer, *, writable: bool) -> HostMemory:
    plain = isinstance(source, np.ndarray) or not hasattr(source, "__dlpack__")
    exporter = source if plain else _from_dlpack(cast(SupportsDLPack, source))
    try:
        return HostMemory(exporter, writable=writable)
    except (BufferError, TypeError, ValueError) as error:
        raise _refusal(exporter, error) from error


def read_access(source: HostBuffer) -> HostMemory:
    """Return the memory of an object to read from, for a ``with`` block.

    Raises
    ------
    TypeError
        The object has no buffer, or its memory is not on the host.
    ValueError
        The memory is not C-contiguous.
    """
    return _access(source, writable=False)


def write_access(target: HostBuffer) -> HostMemory:
    """Return the memory of an object to write into, for a ``with`` block.

    Raises
    ------
    TypeError
        The object has no buffer, or its memory is not on the host.
    ValueError
        The memory is read-only or not C-contiguous.
    """
    return _access(target, writable=True)
