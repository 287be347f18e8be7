"""pyACL's ``acl.util``: Python objects as pointers and back.

A pointer is the address of the object's own memory: the caller keeps the object alive as long as the pointer is used,
and whoever writes through it writes into the object.
"""

from collections.abc import Sequence
from operator import index
from typing import cast

import numpy as np
from numpy.typing import NDArray

from acl_shim._acl import ffi, lib

_CHARACTERS = ffi.typeof("char[]")

_TYPES = [np.dtype(code) for code in np.typecodes["All"]]
_BY_NUMBER: dict[int, np.dtype[np.generic]] = {one.num: one for one in _TYPES if one.itemsize and not one.hasobject}
"""numpy's number of a type (``NPY_BYTE`` is 1) -> the type, for those with a size of their own."""


def numpy_to_ptr(array: NDArray[np.generic]) -> int:
    """Return the address of a C-contiguous array.

    Parameters
    ----------
    array
        A numpy array.

    Raises
    ------
    TypeError
        It is no numpy array.
    ValueError
        It is not C-contiguous.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"numpy_to_ptr takes a numpy array, not {type(array).__name__}")
    if not array.flags.c_contiguous:
        raise ValueError(f"array of shape {array.shape} is not C-contiguous: copy it with ascontiguousarray first")
    return cast(int, array.__array_interface__["data"][0])


def bytes_to_ptr(content: bytes) -> int:
    """Return the address of a bytes object.

    Parameters
    ----------
    content
        A bytes object.

    Raises
    ------
    TypeError
        It is no bytes object.
    """
    if not isinstance(content, bytes):
        raise TypeError(f"bytes_to_ptr takes bytes, not {type(content).__name__}")
    return cast(int, lib.acl_address(ffi.from_buffer(_CHARACTERS, content)))


def _memory_at(ptr: int, size_bytes: int) -> object:
    """Return an object whose buffer is the memory at an address."""
    if size_bytes < 0:
        raise ValueError(f"size is {size_bytes} bytes: give 0 or more")
    return ffi.buffer(ffi.cast("char *", index(ptr)), size_bytes)


def ptr_to_bytes(ptr: int, size: int) -> bytes:
    """Return a copy of host memory.

    Parameters
    ----------
    ptr
        Address of the first byte.
    size
        How many bytes.

    Raises
    ------
    TypeError
        An argument is no int.
    ValueError
        `size` is negative.
    """
    return bytes(cast(memoryview, _memory_at(ptr, index(size))))


def ptr_to_numpy(ptr: int, shape: Sequence[int], dtype: int) -> NDArray[np.generic]:
    """Return an array over host memory, without a copy; the caller keeps the memory alive.

    Parameters
    ----------
    ptr
        Address of the first element.
    shape
        Number of elements in each dimension.
    dtype
        numpy's number of the element type, for example 1 for int8 and 11 for float32.

    Raises
    ------
    TypeError
        `ptr` or `dtype` is no int, or `shape` no tuple.
    ValueError
        There is no such type, or a dimension is negative.
    """
    if not isinstance(shape, tuple | list):
        raise TypeError(f"shape is a tuple of ints, not {type(shape).__name__}")
    element = _BY_NUMBER.get(index(dtype))
    if element is None:
        raise ValueError(f"dtype is {dtype}: give one of numpy's numbers, {sorted(_BY_NUMBER)}")
    dimensions = tuple(index(one) for one in shape)
    if any(one < 0 for one in dimensions):
        raise ValueError(f"shape is {dimensions}: give 0 or more elements in each dimension")
    count = int(np.prod(dimensions, dtype=np.int64))
    memory = _memory_at(ptr, count * element.itemsize)
    return np.frombuffer(cast(memoryview, memory), element).reshape(dimensions)
