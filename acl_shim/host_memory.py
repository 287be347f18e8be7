"""Host memory of arrays, buffers and DLPack objects, as an address and a size."""

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, cast

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


class HostMemory(NamedTuple):
    """Host memory of an object.

    Attributes
    ----------
    addr
        Address of the first byte.
    size_bytes
        Size in bytes.
    guard
        Keeps the memory where it is; hold it as long as the address is used.
    """

    addr: int
    size_bytes: int
    guard: object


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
        guard = ffi.from_buffer(exporter, require_writable=writable)
    except (BufferError, TypeError, ValueError) as error:
        raise _refusal(exporter, error) from error
    return HostMemory(lib.acl_address(guard), len(guard), guard)


def read_access(source: HostBuffer) -> HostMemory:
    """Return the memory of an object to read from.

    Raises
    ------
    TypeError
        The object has no buffer, or its memory is not on the host.
    ValueError
        The memory is not C-contiguous.
    """
    return _access(source, writable=False)


def write_access(target: HostBuffer) -> HostMemory:
    """Return the memory of an object to write into.

    Raises
    ------
    TypeError
        The object has no buffer, or its memory is not on the host.
    ValueError
        The memory is read-only or not C-contiguous.
    """
    return _access(target, writable=True)
