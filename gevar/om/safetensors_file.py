"""Files of safetensors, read without loading a tensor: only the places of the bytes are wanted, to stream them.

::

    header length u64 | header, JSON: {name: {dtype, shape, data_offsets: [begin, end]}} | data

Beside the tensors the header may have an object of texts named `__metadata__`.

The package safetensors gives out whole tensors; what is checked here is what it checks.

Source: https://github.com/huggingface/safetensors, README (format, not code).
"""

import json
import math
import struct
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Final

from gevar.errors import ModelFileError
from gevar.om.atomic_file import write_atomically
from gevar.om.named_tensor import NamedTensor
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import Blob, StreamedBytes
from gevar.types.data_type import DataType

_LENGTH: Final = struct.Struct("<Q")
_MAX_HEADER_BYTES: Final = 100_000_000
"""Longest header; the limit of the package."""
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
        Folder that no link leads out of; None where the file may be a link.

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
    end = 0
    for name, entry in entries:
        dtype, shape, begin, stop = _entry(source, name, entry)
        if begin != end:
            raise source.error(data_start + end, "data_offsets", f"tensor {name} begins at {begin}, {end} expected")
        end = stop
        data = StreamedBytes.of_source(source, data_start + begin, stop - begin, f"tensor {name}")
        found.append(NamedTensor(name, dtype, shape, data))
    if data_start + end != source.size_bytes:
        raise source.error(data_start + end, "data", f"the tensors end there, the file has {source.size_bytes} B")
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
        parsed = json.loads(source.read(0, source.size_bytes, "index"))
    except (ValueError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise source.error(0, "index", f"is no JSON: {error}") from error
    finally:
        source.close()
    places = parsed.get("weight_map") if isinstance(parsed, dict) else None
    if not isinstance(places, dict) or not all(isinstance(file, str) for file in places.values()):
        raise source.error(0, "weight_map", "is no object of file names")
    folder = Path(path).parent.resolve()
    shards = {}
    for file in dict.fromkeys(places.values()):
        if file in ("", ".", "..") or "/" in file or "\0" in file or (folder / file).resolve() != folder / file:
            raise source.error(0, "weight_map", f"{file!r} does not lie in the folder of the index; copy it there")
        shards[file] = {tensor.name: tensor for tensor in read_safetensors(folder / file, folder)}
    for name, file in places.items():
        if name not in shards[file]:
            raise source.error(0, "weight_map", f"tensor {name} is not in {file}")
    return [shards[file][name] for name, file in places.items()]


def _entries(source: ByteSource, header: bytes) -> list[tuple[str, dict[str, object]]]:
    """Return the tensors of a header in the order of their bytes."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a name is there twice")
        return dict(pairs)

    try:
        parsed = json.loads(header, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise source.error(_LENGTH.size, "header", f"is no JSON: {error}") from error
    entries = parsed.items() if isinstance(parsed, dict) else ()
    tensors = [(name, entry) for name, entry in entries if name != _METADATA]
    if not isinstance(parsed, dict) or not all(isinstance(entry, dict) for _, entry in tensors):
        raise source.error(_LENGTH.size, "header", "is no object of objects")
    for name, entry in tensors:
        if not _are_sizes(entry.get("data_offsets")) or len(entry["data_offsets"]) != 2:
            raise source.error(_LENGTH.size, "header", f"tensor {name} has no data_offsets of two numbers")
    return sorted(tensors, key=lambda item: tuple(item[1]["data_offsets"]))


def _entry(source: ByteSource, name: str, entry: Mapping[str, object]) -> tuple[DataType, tuple[int, ...], int, int]:
    """Return type, shape, begin and end of a tensor."""
    shape, offsets, dtype = entry.get("shape"), entry["data_offsets"], _TYPES.get(str(entry.get("dtype")))
    if dtype is None:
        known = ", ".join(_TYPES)
        raise source.error(_LENGTH.size, "header", f"tensor {name} has type {entry.get('dtype')!r}; known are {known}")
    if not isinstance(shape, list) or not _are_sizes(shape):
        raise source.error(_LENGTH.size, "header", f"tensor {name} has shape {shape!r}, no list of sizes")
    assert isinstance(offsets, list)  # checked when the tensors were put in order
    begin, end = offsets
    size_bytes = math.prod(shape) * dtype.size_code
    if end - begin != size_bytes:
        reason = f"tensor {name} of {shape} {dtype.name} takes {size_bytes} B, its place has {end - begin} B"
        raise source.error(_LENGTH.size, "header", reason)
    return dtype, tuple(shape), begin, end


def _are_sizes(value: object) -> bool:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


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
    return tensor.dtype in _NAMES and math.prod(tensor.shape) * tensor.dtype.size_code == tensor.data.nbytes


def _width(tensor: NamedTensor) -> int:
    """Bytes that the place of a tensor should be a multiple of."""
    return tensor.dtype.size_code if _has_type(tensor) else 1
