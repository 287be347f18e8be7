"""Files of numpy (npz, npy), read and written without holding a tensor in memory.

Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html (format).
"""

import io
import math
import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Final, Literal, cast

import numpy as np
import numpy.typing as npt

from gevar.errors import ModelFileError
from gevar.om.atomic_file import write_atomically
from gevar.om.named_tensor import NamedTensor
from gevar.om.regular_file import FileState, file_state, open_named
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import CHUNK_BYTES, StreamedBytes, chunks_of
from gevar.types.data_type import DataType

_SUFFIX: Final = ".npy"
_MAX_HEADER_BYTES: Final = 1 << 17
"""Most bytes of a file of one array that its header is looked for in."""
_DAMAGES: Final = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, OSError, RuntimeError)
"""What zipfile and numpy raise for a damaged archive."""


def read_npz(path: str | PathLike[str]) -> list[NamedTensor]:
    """Return the arrays of an archive, in its order.

    Raises
    ------
    ModelFileError
        The file cannot be opened, is damaged, or has an array of a type that GE does not know.
    """
    try:
        with open_named(path) as file, zipfile.ZipFile(file) as archive:
            names = [info.filename for info in archive.infolist() if info.filename.endswith(_SUFFIX)]
            state = file_state(os.fstat(file.fileno()))
            return [_tensor(Path(path), state, archive, name) for name in names]
    except ModelFileError:
        raise
    except _DAMAGES as error:
        raise ModelFileError(path if isinstance(path, str) else Path(path), None, "npz", str(error)) from error


def read_npy(path: str | PathLike[str]) -> list[NamedTensor]:
    """Return the array of a file, by the name of the file without its ending.

    Raises
    ------
    ModelFileError
        The file cannot be opened, is damaged, has more or fewer bytes than its array, or an array of a type that GE
        does not know.
    """
    source, name = ByteSource.of_file(path), Path(path).name.removesuffix(_SUFFIX)
    head = io.BytesIO(source.read(0, min(source.size_bytes, _MAX_HEADER_BYTES), "header"))
    try:
        shape, is_fortran, dtype = _array_header(head)
    except ValueError as error:
        raise source.error(0, "header", str(error)) from error
    data_type = _data_type(Path(path), name, dtype)
    start, size_bytes = head.tell(), math.prod(shape) * dtype.itemsize
    if source.size_bytes - start != size_bytes:
        raise source.error(
            start, "data", f"{shape} {dtype} takes {size_bytes} B, {source.size_bytes - start} B are there"
        )
    if dtype.isnative and not (is_fortran and len(shape) > 1):
        return [NamedTensor(name, data_type, shape, StreamedBytes.of_source(source, start, size_bytes, "data"))]
    order: Literal["F", "C"] = "F" if is_fortran else "C"
    array: npt.NDArray[np.generic] = np.ndarray(shape, dtype, source.read(start, size_bytes, "data"), order=order)
    return [NamedTensor(name, data_type, shape, _native_bytes(array))]


def _native_bytes(array: npt.NDArray[np.generic]) -> memoryview:
    """Return the bytes of an array in the order of C and of the machine."""
    native = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False)).reshape(-1)
    return native.view(np.uint8).data


def _data_type(path: Path, name: str, dtype: np.dtype[np.generic]) -> DataType:
    if dtype.hasobject or dtype.names is not None:
        raise ModelFileError(path, None, f"array {name}", f"has the type {dtype}, which is no tensor")
    try:
        return DataType.from_numpy(dtype.newbyteorder("="))
    except TypeError as error:
        raise ModelFileError(path, None, f"array {name}", str(error)) from error


def _tensor(path: Path, state: FileState, archive: zipfile.ZipFile, member: str) -> NamedTensor:
    name = member.removesuffix(_SUFFIX)
    with archive.open(member) as stream:
        file = cast(BinaryIO, stream)
        shape, is_fortran, dtype = _array_header(file)
        data_type = _data_type(path, name, dtype)
        size_bytes, there_bytes = math.prod(shape) * dtype.itemsize, archive.getinfo(member).file_size
        if dtype.isnative and not (is_fortran and len(shape) > 1):
            data = StreamedBytes(size_bytes, lambda: _read(path, state, member))
            return NamedTensor(name, data_type, shape, data)
    if size_bytes > there_bytes:
        raise ModelFileError(path, None, f"array {name}", f"takes {size_bytes} B, {there_bytes} B are there")
    with archive.open(member) as stream:
        array = np.lib.format.read_array(cast(BinaryIO, stream), allow_pickle=False)
    return NamedTensor(name, data_type, shape, _native_bytes(array))


def _array_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(file)
    raise ValueError(f"an array of format version {version}, 1.0 and 2.0 are read")


def _read(path: Path, state: FileState, member: str) -> Iterator[bytes]:
    """Yield the bytes of an array."""
    try:
        with open_named(path, state) as opened, zipfile.ZipFile(opened) as archive, archive.open(member) as stream:
            file = cast(BinaryIO, stream)
            _array_header(file)
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
    except _DAMAGES as error:
        raise ModelFileError(path, None, f"array {member.removesuffix(_SUFFIX)}", str(error)) from error


def write_npz(path: Path, tensors: Sequence[NamedTensor]) -> dict[str, NamedTensor]:
    """Write tensors as an archive; see `gevar.om.named_tensor.write_tensors`."""
    raw = {tensor.name: tensor for tensor in tensors if _numpy_type(tensor) is None}

    def write(file: BinaryIO) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for tensor in tensors:
                with archive.open(zipfile.ZipInfo(tensor.name + _SUFFIX), "w", force_zip64=True) as member:
                    _write_array(cast(BinaryIO, member), tensor)

    write_atomically(path, write)
    return raw


def _write_array(file: BinaryIO, tensor: NamedTensor) -> None:
    dtype = _numpy_type(tensor)
    shape = (tensor.data.nbytes,) if dtype is None else tensor.shape
    descr = np.lib.format.dtype_to_descr(np.dtype(np.uint8) if dtype is None else dtype)
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    for chunk in chunks_of(tensor.data):
        file.write(chunk)


def _numpy_type(tensor: NamedTensor) -> np.dtype[np.generic] | None:
    """Return numpy's own type of a tensor whose bytes are those of its shape; None without one."""
    if tensor.dtype.element_bits is None or tensor.dtype.is_packed:
        return None
    dtype: npt.DTypeLike = tensor.dtype.to_numpy()
    found = np.dtype(dtype)
    is_own = found.kind in "biufc" and DataType.from_numpy(found) == tensor.dtype and found.isbuiltin == 1
    return found if is_own and math.prod(tensor.shape) * found.itemsize == tensor.data.nbytes else None
