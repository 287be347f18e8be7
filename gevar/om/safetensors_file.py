"""Files of safetensors, read without loading a tensor: only the places of the bytes are wanted, to stream them.

::

    header length u64 | header, JSON: {name: {dtype, shape, data_offsets: [begin, end]}} | data

Beside the tensors the header may have an object of texts named `__metadata__`.

The package safetensors gives out whole tensors; what it refuses is refused here, too, and so is a name that is there
twice, and a header whose values would take more memory than `MAX_VALUES_BYTES`.

Source: https://github.com/huggingface/safetensors, README (format, not code).
"""

import json
import struct
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Final

from gevar.align import INT64_MAX
from gevar.errors import ModelFileError
from gevar.om.atomic_file import write_atomically
from gevar.om.json_fields import JsonObject, strict_json
from gevar.om.named_tensor import NamedTensor, declared_bytes, shown_shape
from gevar.om.regular_file import path_inside
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import Blob, StreamedBytes
from gevar.types.data_type import DataType

_LENGTH: Final = struct.Struct("<Q")
_MAX_HEADER_BYTES: Final = 100_000_000
"""Longest header; the limit of the package."""
MAX_VALUES_BYTES: Final = 256 << 20
"""Most bytes of memory that the values of a header or an index may take: those of some 250 000 tensors."""
_METADATA: Final = "__metadata__"
_TYPES: Final = {
    "F64": DataType.DT_DOUBLE,
    "F32": DataType.DT_FLOAT,
    "F16": DataType.DT_FLOAT16,
    "BF16": DataType.DT_BF16,
    "F8_E5M2": DataType.DT_FLOAT8_E5M2,
    "F8_E4M3": DataType.DT_FLOAT8_E4M3FN,
    "F8_E8M0": DataType.DT_FLOAT8_E8M0,
    "I64": DataType.DT_INT64,
    "I32": DataType.DT_INT32,
    "I16": DataType.DT_INT16,
    "I8": DataType.DT_INT8,
    "U64": DataType.DT_UINT64,
    "U32": DataType.DT_UINT32,
    "U16": DataType.DT_UINT16,
    "U8": DataType.DT_UINT8,
    "BOOL": DataType.DT_BOOL,
    "C64": DataType.DT_COMPLEX64,
}
_NAMES: Final = {dtype: name for name, dtype in _TYPES.items()}


def read_safetensors(path: str | PathLike[str], folder: Path | None = None) -> list[NamedTensor]:
    """Return the tensors of a file, in the order of their bytes.

    Parameters
    ----------
    path
        The file.
    folder
        Folder that no link leads out of, with any number of files: each is opened again when it is read. None where the
        file may be a link; it stays open.

    Raises
    ------
    ModelFileError
        The file cannot be opened, is damaged, or has a tensor of a type that GE does not know.
    """
    source = ByteSource.of_file(path) if folder is None else ByteSource.of_file_in(folder, Path(path))
    if source.size_bytes < _LENGTH.size:
        raise source.error(0, "header length", f"{source.size_bytes} B, no room for it")
    (length,) = _LENGTH.unpack(source.read(0, _LENGTH.size, "header length"))
    if length > min(_MAX_HEADER_BYTES, source.size_bytes - _LENGTH.size):
        reason = f"{length} B are declared, the file has {source.size_bytes} B, {_MAX_HEADER_BYTES} B at most are read"
        raise source.error(0, "header length", reason)
    entries = _entries(source, source.read(_LENGTH.size, length, "header"))
    found, data_start = [], _LENGTH.size + length
    data_source = source if folder is None or source.state is None else ByteSource.of_known_file(path, source.state)
    end = 0
    for begin, stop, name, entry in entries:
        dtype, shape = _form(source, name, entry, stop - begin)
        if begin != end:
            reason = f"tensor {name:.60} begins at {begin}, {end} expected; save the file again"
            raise source.error(data_start + end, "data_offsets", reason)
        end = stop
        data = StreamedBytes.of_source(data_source, data_start + begin, stop - begin, f"tensor {name:.60}")
        found.append(NamedTensor(name, dtype, tuple(shape), data))
    if data_start + end != source.size_bytes:
        reason = f"the tensors end there, the file has {source.size_bytes} B; fetch or save it again"
        raise source.error(data_start + end, "data", reason)
    return found


def read_safetensors_index(path: str | PathLike[str]) -> list[NamedTensor]:
    """Return the tensors that an index names (`weight_map`: name to file), in its order.

    Raises
    ------
    ModelFileError
        The index cannot be opened or has another form; a file that it names lies elsewhere, leads out of the folder, is
        damaged, or does not have the tensor.
    """
    source = ByteSource.of_file(path)
    try:
        if source.size_bytes > _MAX_HEADER_BYTES:
            raise source.error(0, "index", f"takes {source.size_bytes} B, {_MAX_HEADER_BYTES} B at most are read")
        parsed = strict_json(source.read(0, source.size_bytes, "index"), MAX_VALUES_BYTES)
    except ValueError as error:
        if isinstance(error, ModelFileError):
            raise
        raise source.error(0, "index", str(error)) from error
    finally:
        source.close()
    places = parsed.get("weight_map") if isinstance(parsed, dict) else None
    if not isinstance(places, dict) or not all(isinstance(file, str) for file in places.values()):
        raise source.error(0, "weight_map", "is no object of file names")
    folder = Path(path).parent.resolve()
    shards = {file: _shard(source, folder, file) for file in dict.fromkeys(places.values())}
    for name, file in places.items():
        if name not in shards[file]:
            raise source.error(0, "weight_map", f"tensor {name:.60} is not in {file}; fetch the files again")
    return [shards[file][name] for name, file in places.items()]


def _shard(index: ByteSource, folder: Path, file: str) -> dict[str, NamedTensor]:
    """Return the tensors of a file that an index names."""
    try:
        path = path_inside(folder, file)
    except OSError as error:
        reason = f"{file!r:.60} does not lie in the folder of the index: {error.strerror}"
        raise index.error(0, "weight_map", reason) from error
    if "/" in file or path != folder / file:
        raise index.error(0, "weight_map", f"{file!r:.60} does not lie in the folder of the index; copy it there")
    return {tensor.name: tensor for tensor in read_safetensors(path, folder)}


def _entries(source: ByteSource, header: bytes) -> list[tuple[int, int, str, JsonObject]]:
    """Return begin, end, name and entry of each tensor of a header, in the order of their bytes."""
    try:
        parsed = strict_json(header, MAX_VALUES_BYTES)
    except ValueError as error:
        raise source.error(_LENGTH.size, "header", str(error)) from error
    if not isinstance(parsed, dict):
        raise source.error(_LENGTH.size, "header", "is no object of objects")
    texts = parsed.pop(_METADATA, None)
    if texts is not None and not (isinstance(texts, dict) and all(isinstance(text, str) for text in texts.values())):
        raise source.error(_LENGTH.size, "header", f"{_METADATA} is no object of texts")
    found = []
    for name, entry in parsed.items():
        if not isinstance(entry, dict):
            raise source.error(_LENGTH.size, "header", "is no object of objects")
        place = entry.get("data_offsets")
        numbers = place if isinstance(place, list) else []
        if len(numbers) != 2 or not all(type(item) is int and 0 <= item <= INT64_MAX for item in numbers):
            raise source.error(_LENGTH.size, "header", f"tensor {name:.60} has no data_offsets of two numbers")
        found.append((numbers[0], numbers[1], name, entry))
    return sorted(found, key=lambda item: item[:2])


def _form(source: ByteSource, name: str, entry: Mapping[str, object], place_bytes: int) -> tuple[DataType, list[int]]:
    """Return type and shape of a tensor whose place has so many bytes."""
    shape, dtype = entry.get("shape"), _TYPES.get(str(entry.get("dtype")))
    what = f"tensor {name:.60}"
    if dtype is None:
        reason = f"{what} has type {entry.get('dtype')!r:.60}; convert it to one of {', '.join(_TYPES)}"
        raise source.error(_LENGTH.size, "header", reason)
    if not isinstance(shape, list):
        raise source.error(_LENGTH.size, "header", f"{what} has shape {shape!r:.60}, no list of sizes")
    try:
        size_bytes = declared_bytes(shape, dtype.size_code)
    except ValueError as error:
        raise source.error(_LENGTH.size, "header", f"{what}: {error}") from error
    if place_bytes != size_bytes:
        reason = f"{what} of {shown_shape(shape)} {dtype.name} takes {size_bytes} B, its place has {place_bytes} B"
        raise source.error(_LENGTH.size, "header", reason)
    return dtype, shape


def write_safetensors(path: Path, tensors: Sequence[NamedTensor]) -> dict[str, NamedTensor]:
    """Write tensors as a file; see `gevar.om.named_tensor.write_tensors`."""
    raw = {tensor.name: tensor for tensor in tensors if not _has_type(tensor)}
    if any(tensor.name == _METADATA for tensor in tensors):
        raise ValueError(f"a safetensors file has no tensor named {_METADATA}; rename it or write .npz")
    header: dict[str, object] = {}
    if raw:
        header[_METADATA] = {name: f"{tensor.dtype.name} {list(tensor.shape)}" for name, tensor in raw.items()}
    position, blobs = 0, []
    for tensor in sorted(tensors, key=lambda tensor: (-_width(tensor), tensor.name)):
        end = position + tensor.data.nbytes
        dtype = "U8" if tensor.name in raw else _NAMES[tensor.dtype]
        shape = [tensor.data.nbytes] if tensor.name in raw else list(tensor.shape)
        header[tensor.name] = {"dtype": dtype, "shape": shape, "data_offsets": [position, end]}
        blobs.append(Blob.of(tensor.data))
        position = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH.size)
    if len(text) > _MAX_HEADER_BYTES:
        raise ModelFileError(path, 0, "header", f"takes {len(text)} B, {_MAX_HEADER_BYTES} B at most are read")
    write_atomically(path, Blob.joined([Blob.of(_LENGTH.pack(len(text)) + text), *blobs]).write_to)
    return raw


def _has_type(tensor: NamedTensor) -> bool:
    """Whether a file has the type of a tensor, and its bytes are those of its shape."""
    return tensor.dtype in _NAMES and tensor.fills(tensor.dtype.size_code)


def _width(tensor: NamedTensor) -> int:
    """Bytes that the place of a tensor should be a multiple of."""
    return tensor.dtype.size_code if _has_type(tensor) else 1
