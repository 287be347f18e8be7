"""Files of numpy (npz, npy), read and written without holding a tensor in memory, but one in the order of Fortran.

Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html (format).
"""

import io
import struct
import tokenize
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Final, cast

import numpy as np
import numpy.typing as npt

from gevar.errors import ModelFileError
from gevar.om.archive_stream import ARCHIVE_ERRORS, ArchiveStream
from gevar.om.atomic_file import write_atomically
from gevar.om.named_tensor import NamedTensor, declared_bytes, shown_shape
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import CHUNK_BYTES, StreamedBytes, chunks_of
from gevar.types.data_type import DataType

_SUFFIX: Final = ".npy"
_MAGIC: Final = b"\x93NUMPY"
_LENGTHS: Final = {(1, 0): struct.Struct("<H"), (2, 0): struct.Struct("<I"), (3, 0): struct.Struct("<I")}
"""How the length of a header is written, by version; the third has other letters in the names of fields."""
_MAX_HEADER_BYTES: Final = 10_000
"""Longest header; the limit of numpy."""
_HEADER_ERRORS: Final = (
    *(ValueError, TypeError, LookupError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError),
)
"""What numpy raises for a header that is none, which it reads by Python's parser."""
_ARCHIVE_MAGIC: Final = (b"PK\x03\x04", b"PK\x05\x06")
"""How an archive begins, the second one that is empty."""
_MOST_PACKED: Final = 1032
"""DEFLATE makes at most so many bytes of one."""
_MAX_TURNED_BYTES: Final = 4 << 30
_MAX_PACKED_TURNED_BYTES: Final = 256 << 20
"""Largest array in the order of Fortran, which is turned in memory; the second one if it is packed."""
_MAX_DIMS: Final = 64
"""Most dimensions of an array of numpy."""
_MAX_NAME_BYTES: Final = (1 << 16) - 1
"""Longest name in an archive."""

_Read = Callable[[int], bytes]
"""Returns so many bytes, fewer at the end, and goes on behind them."""


@dataclass(frozen=True, slots=True)
class _Header:
    """What a file of one array says of it: bytes of the header itself, and of the array behind it."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[np.generic]
    data_type: DataType
    header_bytes: int
    data_bytes: int

    @property
    def is_turned(self) -> bool:
        """Whether the order of the elements is another than that of C."""
        return self.is_fortran and sum(dim != 1 for dim in self.shape) > 1

    @property
    def text(self) -> str:
        """The array in words."""
        return f"{self.dtype} {shown_shape(self.shape)} takes {self.data_bytes} B"


def read_npz(path: str | PathLike[str]) -> list[NamedTensor]:
    """Return the arrays of an archive, in its order; a member that is no array is left out.

    Raises
    ------
    ModelFileError
        The file cannot be opened, is damaged, says more than it can hold, has an array twice, or one of a type that GE
        does not know; an array is packed in another way than by DEFLATE, or is in the order of Fortran and larger than
        4 GiB, packed 256 MiB.
    """
    source = ByteSource.of_file(path)
    try:
        if (head := source.read(0, min(4, source.size_bytes), "npz")) not in _ARCHIVE_MAGIC:
            raise source.error(0, "npz", f"begins with {head!r}, as no zip archive does; save it with numpy")
        stream = ArchiveStream(source)
        archive = zipfile.ZipFile(cast(BinaryIO, stream))
        stream.most_bytes = source.size_bytes
        _check_sizes(source, archive.infolist())
        found = [_member(source, archive, info) for info in archive.infolist()]
        assert source.state is not None  # it is a file
        stream.source = ByteSource.of_known_file(path, source.state)
    except ModelFileError:
        raise
    except ARCHIVE_ERRORS as error:
        raise source.error(0, "npz", f"a damaged zip archive: {str(error) or type(error).__name__:.200}") from error
    finally:
        source.close()
    return [tensor for tensor in found if tensor is not None]


def read_npy(path: str | PathLike[str]) -> list[NamedTensor]:
    """Return the array of a file, by the name of the file without its ending.

    Raises
    ------
    ModelFileError
        The file cannot be opened, is damaged, has more or fewer bytes than its array, or an array of a type that GE
        does not know, or one in the order of Fortran that is larger than 4 GiB.
    """
    source, name = ByteSource.of_file(path), Path(path).name[: -len(_SUFFIX)]
    header = _header(source, name, ArchiveStream(source).read)
    start, there_bytes = header.header_bytes, source.size_bytes - header.header_bytes
    if there_bytes != header.data_bytes:
        reason = f"{header.text}, {there_bytes} B are there; save it again"
        raise source.error(start, "data", reason)
    _check_turned(source, name, header, _MAX_TURNED_BYTES)
    plain = StreamedBytes.of_source(source, start, header.data_bytes, "data")
    return [_tensor(name, header, plain)]


def _check_sizes(source: ByteSource, members: Sequence[zipfile.ZipInfo]) -> None:
    """Refuse members that lie in each other, or stand for more bytes than they can."""
    left_bytes, names = source.size_bytes, set[str]()
    for info in members:
        field = f"array {info.filename:.60}"
        left_bytes -= info.compress_size
        most = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: _MOST_PACKED}.get(info.compress_type)
        if most is None:
            raise source.error(info.header_offset, field, "is packed in another way than DEFLATE; save it with numpy")
        if left_bytes < 0 or info.file_size > most * info.compress_size:
            reason = f"{info.file_size} B of {info.compress_size} B, more than a file of {source.size_bytes} B can hold"
            raise source.error(info.header_offset, field, reason)
        name = info.filename.removesuffix(_SUFFIX)
        if name in names:
            raise source.error(info.header_offset, field, "is there twice; save each under a name of its own")
        names.add(name)


def _member(source: ByteSource, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NamedTensor | None:
    name = info.filename.removesuffix(_SUFFIX)
    with archive.open(info) as stream:
        if name == info.filename and stream.read(len(_MAGIC)) != _MAGIC:
            return None
    with archive.open(info) as stream:
        header = _header(source, name, stream.read)
    there_bytes = info.file_size - header.header_bytes
    if there_bytes != header.data_bytes:
        reason = f"{header.text}, {there_bytes} B are there; save it again"
        raise source.error(info.header_offset, f"array {name:.60}", reason)
    is_packed = info.compress_type != zipfile.ZIP_STORED
    _check_turned(source, name, header, _MAX_PACKED_TURNED_BYTES if is_packed else _MAX_TURNED_BYTES)

    def read() -> Iterator[bytes]:
        try:
            with archive.open(info) as stream:
                stream.read(header.header_bytes)
                while chunk := stream.read(CHUNK_BYTES):
                    yield chunk
        except ARCHIVE_ERRORS as error:
            if isinstance(error, ModelFileError):
                raise
            raise ModelFileError(source.name, None, f"array {name:.60}", f"{error!s:.200}") from error

    return _tensor(name, header, StreamedBytes(header.data_bytes, read))


def _check_turned(source: ByteSource, name: str, header: _Header, most_bytes: int) -> None:
    if header.is_turned and header.data_bytes > most_bytes:
        reason = f"{header.text} in the order of Fortran, {most_bytes} B at most are turned; save it in that of C"
        raise source.error(0, f"array {name:.60}", reason)


def _header(source: ByteSource, name: str, read: _Read) -> _Header:
    """Read the header of an array, and check what it says."""
    field = f"array {name:.60}"
    head = read(len(_MAGIC) + 2)
    version = tuple(head[len(_MAGIC) :])
    if head[: len(_MAGIC)] != _MAGIC or len(version) != 2:
        raise source.error(0, field, f"begins with {head!r}, without the magic {_MAGIC!r} of numpy")
    length = _LENGTHS.get(version)
    if length is None:
        raise source.error(0, field, f"has the format version {version}; 1.0, 2.0 and 3.0 are read; save it again")
    stated = read(length.size)
    size_bytes = length.unpack(stated)[0] if len(stated) == length.size else 0
    if size_bytes > _MAX_HEADER_BYTES:
        raise source.error(0, field, f"has a header of {size_bytes} B, {_MAX_HEADER_BYTES} B at most are read")
    text = io.BytesIO(stated + read(size_bytes))
    lib = np.lib.format
    try:
        shape, is_fortran, dtype = (lib.read_array_header_1_0 if version == (1, 0) else lib.read_array_header_2_0)(text)
        data_bytes = declared_bytes(shape, dtype.itemsize)
    except _HEADER_ERRORS as error:
        raise source.error(0, field, f"has no header of numpy: {str(error) or type(error).__name__:.200}") from error
    if dtype.hasobject or dtype.type is np.void:
        reason = f"has the type {dtype!s:.60}, which is no tensor; save its fields, or its bytes as integers"
        raise source.error(0, field, reason)
    try:
        data_type = DataType.from_numpy(dtype.newbyteorder("="))
    except TypeError as error:
        raise source.error(0, field, str(error)) from error
    return _Header(shape, is_fortran, dtype, data_type, len(head) + length.size + size_bytes, data_bytes)


def _tensor(name: str, header: _Header, plain: StreamedBytes) -> NamedTensor:
    """Return an array, whose bytes are turned when they are read, if they have to be."""
    data = plain
    if not header.dtype.isnative or header.is_turned:
        data = StreamedBytes(plain.nbytes, lambda: _native(header, plain))
    return NamedTensor(name, header.data_type, header.shape, data)


def _native(header: _Header, plain: StreamedBytes) -> Iterator[bytes]:
    """Yield the bytes of an array in the order of C and of the machine."""
    native = header.dtype.newbyteorder("=")
    if not header.is_turned or not plain.nbytes:
        for chunk in chunks_of(plain):
            yield np.frombuffer(chunk, header.dtype).astype(native).tobytes()
        return
    array: npt.NDArray[np.generic] = np.empty([dim for dim in header.shape if dim != 1], header.dtype, order="F")
    stored, done = array.reshape(-1, order="F").view(np.uint8), 0
    for chunk in chunks_of(plain):
        stored[done : done + chunk.nbytes] = np.frombuffer(chunk, np.uint8)
        done += chunk.nbytes
    turned = array.astype(native, order="C", copy=False).reshape(-1).view(np.uint8)
    for start in range(0, turned.nbytes, CHUNK_BYTES):
        yield turned[start : start + CHUNK_BYTES].tobytes()


def write_npz(path: Path, tensors: Sequence[NamedTensor]) -> dict[str, NamedTensor]:
    """Write tensors as an archive; see `gevar.om.named_tensor.write_tensors`."""
    raw = {tensor.name: tensor for tensor in tensors if _numpy_type(tensor) is None}
    for name in (tensor.name for tensor in tensors):
        if "\0" in name or len((name + _SUFFIX).encode()) > _MAX_NAME_BYTES:
            reason = f"has a zero character, or more than {_MAX_NAME_BYTES} B with {_SUFFIX}"
            raise ValueError(f"the name {name:.60} {reason}; rename it or write .safetensors")

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
    if tensor.dtype.element_bits is None or tensor.dtype.is_packed or len(tensor.shape) > _MAX_DIMS:
        return None
    dtype: npt.DTypeLike = tensor.dtype.to_numpy()
    found = np.dtype(dtype)
    is_own = found.kind in "biufc" and DataType.from_numpy(found) == tensor.dtype and found.isbuiltin == 1
    return found if is_own and tensor.fills(found.itemsize) else None
