"""Export of memory by DLPack: capsules of a row of bytes, which keep the memory alive.

Source: DLPack, include/dlpack/dlpack.h, version 1.0; Python array API, ``__dlpack__``.
"""

import ctypes
from typing import TYPE_CHECKING, cast

from acl_shim._acl import ffi, lib

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

CPU = 1
"""Device type of host memory (``kDLCPU``)."""

EXTERNAL = 12
"""Device type of an NPU's memory (``kDLExtDev``), as torch_npu uses it."""

_OLD_NAME = ctypes.create_string_buffer(b"dltensor")
_VERSIONED_NAME = ctypes.create_string_buffer(b"dltensor_versioned")


def _new_capsule(tensor: int, versioned: bool) -> "CapsuleType":
    """Return the capsule of a tensor, which ends the tensor unless a consumer takes it."""
    make = ctypes.pythonapi.PyCapsule_New
    make.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    make.restype = ctypes.py_object
    name = ctypes.addressof(_VERSIONED_NAME if versioned else _OLD_NAME)  # must outlive the capsule
    return cast("CapsuleType", make(tensor, name, lib.acl_capsule_destructor(versioned)))


def export_bytes(
    owner: object,
    addr: int,
    size_bytes: int,
    device: tuple[int, int],
    *,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> "CapsuleType":
    """Return a capsule of bytes at an address.

    Parameters
    ----------
    owner
        What keeps the memory alive; the capsule, then its consumer, holds a reference to it.
    addr, size_bytes
        The memory.
    device
        (DLPack device type, device id) of the memory.
    max_version
        Newest version of DLPack that the consumer reads; None for one before 1.0, which reads memory only.
    dl_device
        Where the consumer wants the memory; None for where it is.
    copy
        True where the consumer wants memory of its own.

    Raises
    ------
    BufferError
        The consumer wants a copy or another device: the export is of the memory itself.
    MemoryError
        There is no host memory for the description.
    """
    if copy or dl_device not in (None, device):
        raise BufferError(f"memory on DLPack device {device} is exported as it is: copy it with copy_to or copy_from")
    versioned = max_version is not None and max_version >= (1, 0)
    tensor = lib.acl_new_tensor(addr, size_bytes, *device, id(owner), versioned)
    if tensor == ffi.NULL:
        raise MemoryError("no host memory for a DLPack tensor")
    return _new_capsule(int(ffi.cast("uintptr_t", tensor)), versioned)
