"""Decoding MODEL_DEF: the graphs of a model as messages, piece by piece, with the large values left in the file.

The partition is decoded in pieces of about one mebibyte, so its bytes never lie in memory as a whole beside the
messages made from them. Of an operator only names and type are decoded, the rest when it is asked for. Two things are
not decoded at all:

- the model attribute `tasks`, a copy of the TASK_INFO partition;
- the data of a constant kept inline (an operator attribute that holds a TensorDef) from `APART_BYTES` on. Its place in
  the file is recorded instead, which also lets a loader read it without passing through a message.

Source: om_format of GE: graph_metadef/proto/ge_ir.proto.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError, Message

from gevar.om.source import ByteSource
from gevar.om.wire import LENGTH_DELIMITED, WireField, read_text, walk_fields
from gevar.proto import ge_ir, ge_ir_outline

WHAT = "MODEL_DEF"
TASKS_ATTR = "tasks"
APART_BYTES = 1 << 15
"""Inline tensor data of this size or more stays in the file."""
_PIECE_BYTES = 1 << 20
MAX_BYTES = (1 << 31) - 1
"""Limit of protobuf for one message."""
_PART_BYTES = 400
"""Memory that an operator or a graph takes at least, whatever is in it."""
_PARTS_FACTOR = 4
_PARTS_BYTES = 48 << 20
"""Operators and graphs may take so many times the bytes of the partition, and so many more."""

Handler = Callable[[WireField], None]


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """Some bytes in a model's file: `offset` and `size_bytes` count from the start of the MODEL_DEF partition."""

    offset: int
    size_bytes: int


@dataclass(slots=True)
class DecodedModelDef:
    """A model definition without `tasks` and without the tensor data in `apart`.

    `apart` maps (graph index, op index) to the place of the data by attribute name as stored.
    """

    message: ge_ir_outline.ModelDef
    apart: dict[tuple[int, int], dict[str, StoredBytes]] = field(default_factory=dict)

    def whole(self) -> ge_ir.ModelDef:
        """Return the message with all of each operator decoded; a new one at each call.

        Raises
        ------
        DecodeError
            An operator does not decode.
        """
        return ge_ir.ModelDef.FromString(self.message.SerializeToString())


def merge_piece(message: Message, source: ByteSource, start: int, end: int, what: str) -> None:
    """Decode bytes `start` to `end`, whole fields of a message, into the message.

    Raises
    ------
    ModelFileError
        They are no such fields: damaged, text that is not UTF-8, or nested too deep.
    """
    if start == end:
        return
    try:
        message.MergeFromString(source.read(start, end - start, what))
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        name = message.DESCRIPTOR.full_name
        raise source.error(start, what, f"{end - start} B do not decode as {name}: {error}") from error


def pieces(source: ByteSource, start: int, end: int, what: str) -> list[tuple[int, int]]:
    """Split a message at field boundaries into pieces of about one mebibyte, or one field where that is larger."""
    found = []
    for item in walk_fields(source, start, end, what):
        if item.end - start >= _PIECE_BYTES:
            found.append((start, item.end))
            start = item.end
    return [*found, (start, end)] if start < end else found


def decode_model_def(source: ByteSource) -> DecodedModelDef:
    """Decode a MODEL_DEF partition; `source` is the partition.

    Raises
    ------
    ModelFileError
        The partition is larger than protobuf allows, is not a model definition, or has more operators than its bytes
        have room for. What is in an operator is not looked at, if it is small.
    """
    if source.size_bytes > MAX_BYTES:
        raise source.error(0, WHAT, f"{source.size_bytes} B, protobuf allows {MAX_BYTES} B at most")
    return _Decoder(source).decode()


def decode_head(source: ByteSource) -> ge_ir.ModelDef:
    """Decode a MODEL_DEF partition without its graphs and without `tasks`; errors as `decode_model_def`."""
    return ge_ir.ModelDef.FromString(_Decoder(source).head().SerializeToString())


def graph_parts(source: ByteSource) -> Iterator[tuple[ge_ir.GraphDef, Iterator[ge_ir.OpDef]]]:
    """Yield each graph of a MODEL_DEF partition without its operators, and these, decoded one by one.

    Raises
    ------
    ModelFileError
        A graph or an operator does not decode.
    """
    graph = _numbers(ge_ir.ModelDef, "graph")["graph"]
    for item in walk_fields(source, 0, source.size_bytes, WHAT):
        if item.number == graph and item.wire_type == LENGTH_DELIMITED:
            yield _graph_parts(source, item)


def _graph_parts(source: ByteSource, graph: WireField) -> tuple[ge_ir.GraphDef, Iterator[ge_ir.OpDef]]:
    message = ge_ir.GraphDef()
    op, start = _numbers(message, "op")["op"], graph.value_start
    for item in walk_fields(source, graph.value_start, graph.end, WHAT):
        if item.number == op and item.wire_type == LENGTH_DELIMITED:
            merge_piece(message, source, start, item.start, WHAT)
            start = item.end
    merge_piece(message, source, start, graph.end, WHAT)
    return message, _ops(source, graph, op)


def _ops(source: ByteSource, graph: WireField, number: int) -> Iterator[ge_ir.OpDef]:
    for item in walk_fields(source, graph.value_start, graph.end, WHAT):
        if item.number == number and item.wire_type == LENGTH_DELIMITED:
            op = ge_ir.OpDef()
            merge_piece(op, source, item.value_start, item.end, WHAT)
            yield op


class _Decoder:
    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._decoded = DecodedModelDef(ge_ir_outline.ModelDef())

    def decode(self) -> DecodedModelDef:
        self._merge_model(self._graph)
        return self._decoded

    def head(self) -> ge_ir_outline.ModelDef:
        self._merge_model(lambda _graph: None)
        self._decoded.message.ClearField("graph")  # the small ones
        return self._decoded.message

    def _merge_model(self, graph: Handler) -> None:
        message = self._decoded.message
        fields = _numbers(message, "graph", "attr")
        self._merge(message, 0, self._source.size_bytes, {fields["graph"]: graph, fields["attr"]: self._model_attr})
        message.attr.pop(TASKS_ATTR, None)
        self._check_parts()

    def _check_parts(self) -> None:
        """Refuse operators of next to no bytes, of which a small file may have millions."""
        parts = sum(1 + len(graph.op) for graph in self._decoded.message.graph)
        if parts * _PART_BYTES > _PARTS_FACTOR * self._source.size_bytes + _PARTS_BYTES:
            reason = f"more than {parts - 1} operators and graphs in {self._source.size_bytes} B"
            raise self._source.error(0, WHAT, reason)

    def _merge(self, message: Message, start: int, end: int, handlers: Mapping[int, Handler]) -> None:
        """Decode fields into a message; those that are large and have a handler are given to it."""
        walk = walk_fields(self._source, start, end, WHAT, large_bytes=APART_BYTES // 2, piece_bytes=_PIECE_BYTES)
        for item in walk:
            large = item.end - item.value_start >= APART_BYTES and item.wire_type == LENGTH_DELIMITED
            if large and item.number in handlers:
                merge_piece(message, self._source, start, item.start, WHAT)
                handlers[item.number](item)
                start = item.end
            elif item.end - start >= _PIECE_BYTES:
                merge_piece(message, self._source, start, item.end, WHAT)
                start = item.end
                self._check_parts()
        merge_piece(message, self._source, start, end, WHAT)

    def _graph(self, item: WireField) -> None:
        graphs = self._decoded.message.graph
        graph = graphs.add()
        index = len(graphs) - 1
        handlers = {_numbers(graph, "op")["op"]: lambda op_item: self._op(graph, index, op_item)}
        self._merge(graph, item.value_start, item.end, handlers)
        self._check_parts()

    def _op(self, graph: ge_ir_outline.GraphDef, graph_index: int, item: WireField) -> None:
        op, place = ge_ir.OpDef(), (graph_index, len(graph.op))
        handlers = {_numbers(op, "attr")["attr"]: lambda attr_item: self._op_attr(op, place, attr_item)}
        self._merge(op, item.value_start, item.end, handlers)
        graph.op.add().MergeFromString(op.SerializeToString())

    def _op_attr(self, op: ge_ir.OpDef, place: tuple[int, int], item: WireField) -> None:
        name, values = self._map_entry(item)
        op.attr.pop(name, None)
        attr = op.attr[name]

        def tensor(tensor_item: WireField) -> None:
            attr.t.SetInParent()
            handlers = {_numbers(attr.t, "data")["data"]: data}
            self._merge(attr.t, tensor_item.value_start, tensor_item.end, handlers)

        def data(data_item: WireField) -> None:
            stored = StoredBytes(data_item.value_start, data_item.end - data_item.value_start)
            self._decoded.apart.setdefault(place, {})[name] = stored

        for value in values:
            self._merge(attr, value.value_start, value.end, {_numbers(attr, "t")["t"]: tensor})

    def _model_attr(self, item: WireField) -> None:
        message = self._decoded.message
        if self._map_entry(item)[0] != TASKS_ATTR:
            merge_piece(message, self._source, item.start, item.end, WHAT)

    def _map_entry(self, item: WireField) -> tuple[str, list[WireField]]:
        """Return the key of a map entry and the fields that hold its value."""
        name, values = "", []
        for part in walk_fields(self._source, item.value_start, item.end, WHAT):
            if part.wire_type == LENGTH_DELIMITED and part.number == 1:
                name = read_text(self._source, part, WHAT)
            elif part.wire_type == LENGTH_DELIMITED and part.number == 2:
                values.append(part)
        return name, values


def _numbers(message: Message | type[Message], *names: str) -> dict[str, int]:
    return {name: message.DESCRIPTOR.fields_by_name[name].number for name in names}
