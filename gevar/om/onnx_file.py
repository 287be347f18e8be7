"""The weights of an ONNX file: initialisers and the tensors of Constant nodes, of inner graphs and functions too.

Bytes in external files are streamed from there; such a file must lie in the folder of the ONNX file. Where its SHA-1 is
stated, it is compared when the bytes of a tensor have been read.

Source: https://github.com/onnx/onnx, onnx.proto and docs/ExternalData.md.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gevar.errors import ModelFileError
from gevar.om.named_tensor import NamedTensor, declared_bytes, shown_shape
from gevar.om.regular_file import path_inside
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import Content, StreamedBytes
from gevar.om.wire import parts_bytes
from gevar.types.data_type import DataType

_WHAT: Final = "ONNX model"
_MAX_MODEL_BYTES: Final = (1 << 31) - 1
"""Limit of protobuf for one message."""
_PARTS_FACTOR: Final = 8
_PARTS_BYTES: Final = 48 << 20
"""Messages and texts of a model may take so many times its bytes, and so many more, beside what is in them."""
_UNCOUNTED_BYTES: Final = 1 << 19
"""A model of so few bytes cannot take more."""

if TYPE_CHECKING:
    import onnx
    from google._upb._message import Descriptor as CompiledDescriptor
    from google.protobuf.descriptor import Descriptor

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

    A name that several graphs have gets that of its graph in front, and a number if that is there, too.

    Raises
    ------
    ModuleNotFoundError
        The package onnx is not installed.
    ModelFileError
        The file cannot be opened or decoded; a tensor has a type that GE does not know, is sparse, is a segment of
        another, or its bytes are not as many as its shape needs; or its external file is missing, too short or outside
        the folder.
    """
    import onnx
    from google.protobuf.message import DecodeError

    source = ByteSource.of_file(path)
    try:
        _check_size(source, onnx.ModelProto.DESCRIPTOR)
        model = onnx.load_model_from_string(source.read(0, source.size_bytes, _WHAT))
    except (DecodeError, ValueError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise source.error(0, _WHAT, str(error) or type(error).__name__) from error
    finally:
        source.close()
    if not model.HasField("graph"):
        raise source.error(0, _WHAT, "has no graph")
    reader = _Reader(Path(path))
    found: dict[str, NamedTensor] = {}
    times = Counter[str]()
    for graph, name, stored in _tensors(reader, model):
        unique = reader.text(name, "a name")
        while unique in found:
            base = f"{reader.text(graph, 'the name of a graph')}/{name}"
            times[base] += 1
            unique = base if times[base] == 1 else f"{base}/{times[base]}"
        found[unique] = reader.tensor(unique, stored)
    return list(found.values())


def _check_size(source: ByteSource, descriptor: "Descriptor | CompiledDescriptor") -> None:
    """Refuse a model that is too large, or would be in memory."""
    if source.size_bytes > _MAX_MODEL_BYTES:
        reason = f"takes {source.size_bytes} B, {_MAX_MODEL_BYTES} B at most are read; keep weights in external data"
        raise source.error(0, _WHAT, reason)
    most_bytes = _PARTS_FACTOR * source.size_bytes + _PARTS_BYTES
    if source.size_bytes > _UNCOUNTED_BYTES and parts_bytes(source, descriptor, _WHAT, most_bytes) > most_bytes:
        raise source.error(0, _WHAT, f"its {source.size_bytes} B stand for more than {most_bytes} B of memory")


def _tensors(reader: "_Reader", model: "onnx.ModelProto") -> Iterator[tuple[str, str, "onnx.TensorProto"]]:
    """Yield (graph name, tensor name, tensor) of the graph and the functions, and the graphs inside their nodes."""
    waiting: list[onnx.GraphProto | onnx.FunctionProto] = [*reversed(model.functions), model.graph]
    while waiting:
        graph = waiting.pop()
        for sparse in getattr(graph, "sparse_initializer", ()):
            raise reader.error(sparse.values.name, "is sparse; make it dense")
        for tensor in getattr(graph, "initializer", ()):
            yield graph.name, tensor.name, tensor
        inner: list[onnx.GraphProto] = []
        for node in graph.node:
            for attribute in node.attribute:
                name = node.output[0] if node.output else node.name
                if node.op_type == "Constant" and attribute.name == "value":
                    yield graph.name, name, attribute.t
                if node.op_type == "Constant" and attribute.name == "sparse_value":
                    raise reader.error(name, "is sparse; make it dense")
                inner += [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
        waiting += reversed(inner)


class _Reader:
    """Finds the bytes of tensors of one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sources: dict[Path, ByteSource] = {}
        self._sha1: dict[str, str] = {}

    def error(self, name: str, reason: str) -> ModelFileError:
        return ModelFileError(self._path, None, f"tensor {name:.60}", reason)

    def text(self, text: object, what: str) -> str:
        """Return a text of the model, which comes as bytes where it is not UTF-8."""
        if not isinstance(text, str):
            raise ModelFileError(self._path, None, _WHAT, f"{what} is {text!r:.60}, not UTF-8; save it again")
        return text

    def tensor(self, name: str, stored: "onnx.TensorProto") -> NamedTensor:
        import onnx

        dtype = _TYPES.get(stored.data_type)
        if dtype is None:
            raise self.error(name, f"has the type {_type_name(stored)} of ONNX, which has no equal in GE; convert it")
        if stored.HasField("segment"):
            raise self.error(name, "is a segment of a tensor; save it as a whole")
        shape = tuple(stored.dims)
        try:
            size_bytes = declared_bytes(shape, dtype.size_code)
            if stored.data_location == onnx.TensorProto.EXTERNAL:
                data: Content = self._external(name, stored)
            elif stored.HasField("raw_data"):
                data = memoryview(stored.raw_data)
            else:
                data = memoryview(onnx.numpy_helper.to_array(stored).tobytes())
        except (ValueError, TypeError) as error:
            if isinstance(error, ModelFileError):
                raise
            raise self.error(name, str(error)) from error
        if data.nbytes != size_bytes:
            reason = f"has {data.nbytes} B, {dtype.name} of shape {shown_shape(shape)} takes {size_bytes} B"
            raise self.error(name, f"{reason}; save the model again")
        return NamedTensor(name, dtype, shape, data)

    def _external(self, name: str, stored: "onnx.TensorProto") -> StreamedBytes:
        entries = {entry.key: self.text(entry.value, f"{entry.key!r:.60}") for entry in stored.external_data}
        location = entries.get("location", "")
        source = self._source(name, location)
        try:
            offset = int(entries.get("offset", 0))
            length = int(entries.get("length", max(source.size_bytes - offset, 0)))
        except ValueError as error:
            raise self.error(name, f"offset or length of its external data is no number: {error!s:.60}") from error
        if offset < 0 or length < 0 or offset + length > source.size_bytes:
            reason = f"offset {offset} with {length} B leaves the {source.size_bytes} B of {location:.60}"
            raise self.error(name, f"{reason}; fetch the file again")
        data = StreamedBytes.of_source(source, offset, length, f"tensor {name:.60}")
        wanted = entries.get("checksum")
        return data if wanted is None else StreamedBytes(length, self._checked(name, data, wanted))

    def _checked(self, name: str, data: StreamedBytes, wanted: str) -> Callable[[], Iterator[bytes]]:
        """Return how to read bytes of a file with a check sum."""

        def read() -> Iterator[bytes]:
            yield from data.open()
            assert data.source is not None  # made of one
            file = data.source
            if file.name not in self._sha1:
                digest = hashlib.sha1(usedforsecurity=False)
                for chunk in StreamedBytes.of_source(file, 0, file.size_bytes, "external data").open():
                    digest.update(chunk)
                self._sha1[file.name] = digest.hexdigest()
            if self._sha1[file.name] != wanted.lower():
                reason = f"the file {file.name} of its bytes has the SHA-1 {self._sha1[file.name]}, not {wanted:.60}"
                raise self.error(name, f"{reason}: it is damaged, fetch it again")

        return read

    def _source(self, name: str, location: str) -> ByteSource:
        folder = Path(os.path.realpath(self._path.parent))
        try:
            path = path_inside(folder, location)
        except OSError as error:
            reason = f"external data {location!r:.60} do not lie in the folder of the file: {error.strerror}"
            raise self.error(name, reason) from error
        if path not in self._sources:
            opened = ByteSource.of_file_in(folder, path)
            assert opened.state is not None  # it is a file
            self._sources[path] = ByteSource.of_known_file(path, opened.state)
            opened.close()
        return self._sources[path]


def _type_name(stored: "onnx.TensorProto") -> str:
    """Return the number of a type, and the name where it has one."""
    import onnx

    names = {number: name for name, number in onnx.TensorProto.DataType.items()}
    return f"{stored.data_type} ({names[stored.data_type]})" if stored.data_type in names else str(stored.data_type)
