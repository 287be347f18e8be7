"""Reading a graph from a file: an OM model, or a message `ModelDef` or `GraphDef`, in wire form or as text."""

from collections import deque
from pathlib import Path
from typing import Final, Protocol, TypeVar

from google.protobuf import text_format
from google.protobuf.message import Message

from gevar.errors import GraphError, ModelFileError
from gevar.graph import ComputeGraph, Model
from gevar.om import open_om
from gevar.om.header import MODEL_FILE_MAGIC, OM2_MAGIC
from gevar.om.regular_file import MAX_MESSAGE_BYTES, named_file, open_named, read_whole
from gevar.proto import ge_ir
from gevar.proto.parse import parse_message

_TEXT_SUFFIXES: Final = frozenset({".txt", ".pbtxt", ".prototxt"})
_M = TypeVar("_M", bound=Message)


class _Reader(Protocol):
    """Reads a message from bytes."""

    def __call__(self, cls: type[_M], data: bytes, /) -> _M: ...


def read_graph_file(path: str | Path) -> ComputeGraph:
    """Return the root graph in a file, with its subgraphs.

    Parameters
    ----------
    path
        An OM file, known by `.om` or its first bytes (its first model counts), or a message: first tried as text where
        the name ends in `.txt`, `.pbtxt` or `.prototxt`, else in wire form, then the other way. A `ModelDef` without
        graphs is read as a `GraphDef`.

    Raises
    ------
    ModelFileError
        The file is none of these, or its graph is wrong; it names the file.
    OSError
        The file cannot be read, is not a regular one, or has 2 GiB or more.
    """
    path = Path(path)
    try:
        model_def = _read_model_def(path)
        graph = Model.from_proto(model_def).graph
        deque(() if graph is None else graph.all_nodes(), maxlen=0)  # all graphs that nodes run are there
    except GraphError as error:
        raise ModelFileError(path, None, "graph", str(error), status=error.status) from error
    except ModelFileError as error:
        if error.file is not None:
            raise
        raise ModelFileError(path, error.offset, error.field, error.reason, status=error.status) from error
    if graph is None:
        raise ModelFileError(path, None, model_def.DESCRIPTOR.full_name, "the model has no graph")
    return graph


def _read_model_def(path: Path) -> ge_ir.ModelDef:
    with open_named(path) as file:
        magic = file.read(len(OM2_MAGIC))
    if path.suffix == ".om" or magic in (MODEL_FILE_MAGIC.to_bytes(4, "little"), OM2_MAGIC):
        with open_om(path) as om:
            return om.models[0].model_def()
    data = read_whole(named_file(path), MAX_MESSAGE_BYTES, path)
    is_text = path.suffix in _TEXT_SUFFIXES
    try:
        found = _read_message(data, _from_text if is_text else parse_message)
    except ModelFileError as error:
        try:
            found = _read_message(data, parse_message if is_text else _from_text)
        except ModelFileError:
            which = "as text" if is_text else "in wire form"
            reason = f"no ModelDef and no GraphDef {which}, nor otherwise: {error.reason}; give one, or an OM file"
            raise ModelFileError(path, error.offset, error.field, reason, status=error.status) from error
    if not found.graph:
        raise ModelFileError(path, None, found.DESCRIPTOR.full_name, "no node is in it; give an OM file or a graph")
    return found


def _read_message(data: bytes, read: _Reader) -> ge_ir.ModelDef:
    """A ModelDef, or the GraphDef that has nodes as one; empty where neither has any."""
    try:
        model_def = read(ge_ir.ModelDef, data)
        if model_def.graph:
            return model_def
    except ModelFileError:  # a graph's fields are others than a model's
        pass
    graph_def = read(ge_ir.GraphDef, data)
    return ge_ir.ModelDef(name=graph_def.name, graph=[graph_def]) if graph_def.op else ge_ir.ModelDef()


def _from_text(cls: type[_M], data: bytes) -> _M:
    try:
        return text_format.Parse(data.decode(), cls())
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise ModelFileError(None, None, cls.DESCRIPTOR.full_name, str(error)) from error
