"""The weights of an ONNX file: initialisers and the tensors of Constant nodes, those of inner graphs too.

Bytes in external files are streamed from there; such a file must lie in the folder of the ONNX file.

Source: https://github.com/onnx/onnx, onnx.proto and docs/ExternalData.md.
"""

import math
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gevar.errors import ModelFileError
from gevar.om.named_tensor import NamedTensor
from gevar.om.regular_file import open_named
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import Content, StreamedBytes
from gevar.types.data_type import DataType

if TYPE_CHECKING:
    import onnx

_TYPES: Final = {
    1: DataType.DT_FLOAT,
    2: DataType.DT_UINT8,
    3: DataType.DT_INT8,
    4: DataType.DT_UINT16,
    5: DataType.DT_INT16,
    6: DataType.DT_INT32,
    7: DataType.DT_INT64,
    9: DataType.DT_BOOL,
    10: DataType.DT_FLOAT16,
    11: DataType.DT_DOUBLE,
    12: DataType.DT_UINT32,
    13: DataType.DT_UINT64,
    14: DataType.DT_COMPLEX64,
    15: DataType.DT_COMPLEX128,
    16: DataType.DT_BF16,
    17: DataType.DT_FLOAT8_E4M3FN,
    19: DataType.DT_FLOAT8_E5M2,
    24: DataType.DT_FLOAT8_E8M0,
}
"""Numbers of onnx.TensorProto.DataType; those of packed types, texts and float8 without infinities have no equal."""


def read_onnx(path: str | PathLike[str]) -> list[NamedTensor]:
    """Return the weights of a file: initialisers by their names, Constant nodes by the names of their outputs.

    A name that several graphs have gets that of its graph in front.

    Raises
    ------
    ModuleNotFoundError
        The package onnx is not installed.
    ModelFileError
        The file cannot be opened or decoded; a tensor has a type that GE does not know, is sparse, or its bytes are
        not as many as its shape needs; or its external file is missing, too short or outside the folder.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        with open_named(path) as file:
            model = onnx.load_model_from_string(file.read())
    except (OSError, DecodeError, ValueError) as error:
        raise ModelFileError(Path(path), None, "ONNX model", str(error) or type(error).__name__) from error
    if not model.HasField("graph"):
        raise ModelFileError(Path(path), None, "ONNX model", "has no graph")
    reader = _Reader(Path(path))
    found: dict[str, NamedTensor] = {}
    for graph, name, stored in _tensors(reader, model.graph):
        unique = name if name not in found else f"{graph}/{name}"
        number = 2
        while unique in found:
            unique, number = f"{graph}/{name}/{number}", number + 1
        found[unique] = reader.tensor(unique, stored)
    return list(found.values())


def _tensors(reader: "_Reader", graph: "onnx.GraphProto") -> Iterator[tuple[str, str, "onnx.TensorProto"]]:
    """Yield (graph name, tensor name, tensor) of a graph and the graphs inside its nodes."""
    waiting = [graph]
    while waiting:
        graph = waiting.pop()
        if graph.sparse_initializer:
            raise reader.error(graph.sparse_initializer[0].values.name, "is sparse; make it dense")
        for tensor in graph.initializer:
            yield graph.name, tensor.name, tensor
        inner = []
        for node in graph.node:
            for attribute in node.attribute:
                if node.op_type == "Constant" and attribute.name == "value":
                    yield graph.name, node.output[0] if node.output else node.name, attribute.t
                inner += [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
        waiting += reversed(inner)


class _Reader:
    """Finds the bytes of tensors of one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sources: dict[Path, ByteSource] = {}

    def error(self, name: str, reason: str) -> ModelFileError:
        return ModelFileError(self._path, None, f"tensor {name}", reason)

    def tensor(self, name: str, stored: "onnx.TensorProto") -> NamedTensor:
        import onnx

        dtype = _TYPES.get(stored.data_type)
        if dtype is None:
            raise self.error(name, f"has the type {stored.data_type} of ONNX, which has no equal in GE; convert it")
        shape = tuple(stored.dims)
        size_bytes = math.prod(shape) * dtype.size_code
        if min(shape, default=0) < 0:
            raise self.error(name, f"has the shape {shape}")
        if stored.data_location == onnx.TensorProto.EXTERNAL:
            data: Content = self._external(name, stored, size_bytes)
        elif stored.HasField("raw_data"):
            data = memoryview(stored.raw_data)
        else:
            try:
                data = memoryview(onnx.numpy_helper.to_array(stored).tobytes())
            except (ValueError, TypeError) as error:
                raise self.error(name, str(error)) from error
        if data.nbytes != size_bytes:
            raise self.error(name, f"has {data.nbytes} B, {dtype.name} of shape {shape} takes {size_bytes} B")
        return NamedTensor(name, dtype, shape, data)

    def _external(self, name: str, stored: "onnx.TensorProto", size_bytes: int) -> Content:
        entries = {entry.key: entry.value for entry in stored.external_data}
        location = entries.get("location", "")
        try:
            offset, length = int(entries.get("offset", 0)), int(entries.get("length", size_bytes))
        except ValueError as error:
            raise self.error(name, f"offset or length of its external data is no number: {error}") from error
        source = self._source(name, location)
        if offset < 0 or length < 0 or offset + length > source.size_bytes:
            reason = f"offset {offset} with {length} B leaves the {source.size_bytes} B of {location}"
            raise self.error(name, reason)
        return StreamedBytes.of_source(source, offset, length, f"tensor {name}")

    def _source(self, name: str, location: str) -> ByteSource:
        folder = self._path.parent.resolve()
        path = (folder / location).resolve()
        if not location or "\0" in location or not path.is_relative_to(folder):
            raise self.error(name, f"external data {location!r} do not lie in the folder of the file, {folder}")
        if path not in self._sources:
            self._sources[path] = ByteSource.of_file_in(folder, path)
        return self._sources[path]
