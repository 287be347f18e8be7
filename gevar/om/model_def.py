"""Decoding MODEL_DEF: the graphs of a model as messages, piece by piece, with the large values left in the file.

The partition is decoded in pieces of about 128 KiB, so its bytes never lie in memory as a whole beside the messages
made from them. Of an operator only names and type are decoded, the rest when it is asked for. Not decoded at all are
the model attribute `tasks`, a copy of the TASK_INFO partition, and what `gevar.om.op_def` leaves out of operators.

What is decoded is counted, see `gevar.om.allowance`.

Source: GE source, graph_metadef/proto/ge_ir.proto.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from gevar.om.allowance import Allowance
from gevar.om.op_def import APART_BYTES, WHAT, Apart, is_field, map_entry, merge_kept, merge_piece, read_op
from gevar.om.source import ByteSource
from gevar.om.wire import WireField, walk_fields
from gevar.proto import ge_ir, ge_ir_outline

TASKS_ATTR: Final = "tasks"
MAX_BYTES: Final = (1 << 31) - 1
"""Limit of protobuf for one message."""
_GRAPH, _ATTR, _OP = 7, 11, 6
"""Numbers of the fields ModelDef.graph and attr, and GraphDef.op."""
_PIECE_BYTES: Final = 1 << 17
_PART_BYTES: Final = 400
"""Memory that an operator or a graph takes beside its bytes."""
_NAME_BYTES: Final = 64
"""Memory that the name of a subgraph takes beside its bytes."""

Handler = Callable[[WireField], None]


@dataclass(slots=True)
class DecodedModelDef:
    """A model definition without `tasks` and without what is in `apart`, which is by (graph index, op index)."""

    message: ge_ir_outline.ModelDef
    apart: dict[tuple[int, int], Apart] = field(default_factory=dict)


def pieces(source: ByteSource, start: int, end: int, what: str) -> list[tuple[int, int]]:
    """Split a message at field boundaries into pieces of about 128 KiB, or one field where that is larger."""
    found = []
    for item in walk_fields(source, start, end, what):
        if item.end - start >= _PIECE_BYTES:
            found.append((start, item.end))
            start = item.end
    return [*found, (start, end)] if start < end else found


def decode_model_def(source: ByteSource, allowance: Allowance) -> DecodedModelDef:
    """Decode a MODEL_DEF partition; `source` is the partition.

    Raises
    ------
    ModelFileError
        The partition is larger than protobuf allows, is not a model definition, or would take more memory than is
        left. What is in an operator is not looked at, if it is small.
    """
    if source.size_bytes > MAX_BYTES:
        raise source.error(0, WHAT, f"{source.size_bytes} B, protobuf allows {MAX_BYTES} B at most")
    decoder = _Decoder(source, allowance)
    _head(source, allowance, decoder.message, decoder.graph)
    return DecodedModelDef(decoder.message, decoder.apart)


def decode_head(source: ByteSource, allowance: Allowance) -> ge_ir.ModelDef:
    """Decode a MODEL_DEF partition without its graphs and without `tasks`; errors as `decode_model_def`."""
    message = ge_ir.ModelDef()
    _head(source, allowance, message, lambda _graph: None)
    return message


def _head(
    source: ByteSource, allowance: Allowance, message: "ge_ir.ModelDef | ge_ir_outline.ModelDef", graph: Handler
) -> None:
    """Decode all of a model but its graphs and `tasks` into a message; its graphs are given away."""

    def replaced(item: WireField) -> bytes | None:
        if is_field(item, _GRAPH):
            graph(item)
            return b""
        is_large = is_field(item, _ATTR) and item.end - item.value_start >= APART_BYTES
        return b"" if is_large and map_entry(source, item)[0] == TASKS_ATTR else None

    merge_kept(message, source, (0, source.size_bytes), replaced, allowance)
    message.attr.pop(TASKS_ATTR, None)


Op = tuple[ge_ir.OpDef, Apart]
"""An operator without what was left out of it."""


def graph_parts(source: ByteSource, allowance: Allowance) -> Iterator[tuple[ge_ir.GraphDef, Iterator[Op]]]:
    """Yield each graph of a MODEL_DEF partition without its operators, and these, decoded one by one.

    Raises
    ------
    ModelFileError
        A graph or an operator does not decode, or would take more memory than is left.
    """
    for item in walk_fields(source, 0, source.size_bytes, WHAT):
        if is_field(item, _GRAPH):
            message = ge_ir.GraphDef()
            place = item.value_start, item.end
            merge_kept(message, source, place, lambda part: b"" if is_field(part, _OP) else None, allowance)
            yield message, _ops(source, item, allowance)


def _ops(source: ByteSource, graph: WireField, allowance: Allowance) -> Iterator[Op]:
    for item in walk_fields(source, graph.value_start, graph.end, WHAT):
        if is_field(item, _OP):
            op = ge_ir.OpDef()
            yield op, read_op(op, source, item, allowance)


class _Decoder:
    """Decodes names and types of all operators."""

    def __init__(self, source: ByteSource, allowance: Allowance) -> None:
        self._source = source
        self._allowance = allowance
        self.message = ge_ir_outline.ModelDef()
        self.apart: dict[tuple[int, int], Apart] = {}

    def graph(self, item: WireField) -> None:
        """Decode a graph; large operators go one by one, others together."""
        graph, start = self.message.graph.add(), item.value_start
        self._allowance.take(_PART_BYTES + item.end - item.start, "the bytes of graphs")
        place = len(self.message.graph) - 1
        walk = walk_fields(self._source, start, item.end, WHAT, large_bytes=APART_BYTES // 2, piece_bytes=_PIECE_BYTES)
        for part in walk:
            if is_field(part, _OP) and part.end - part.value_start >= APART_BYTES:
                self._merge(graph, start, part.start)
                op = graph.op.add()
                apart = read_op(op, self._source, part, self._allowance)
                if apart.data or apart.attrs:
                    self.apart[place, len(graph.op) - 1] = apart
                self._take_ops(graph, len(graph.op) - 1)
                start = part.end
            elif part.end - start >= _PIECE_BYTES:
                self._merge(graph, start, part.end)
                start = part.end
        self._merge(graph, start, item.end)

    def _merge(self, graph: ge_ir_outline.GraphDef, start: int, end: int) -> None:
        count = len(graph.op)
        merge_piece(graph, self._source, start, end, WHAT)
        self._take_ops(graph, count)

    def _take_ops(self, graph: ge_ir_outline.GraphDef, first: int) -> None:
        """Count operators, of which a few bytes may hold many, and the names of subgraphs likewise."""
        count = len(graph.op)
        self._allowance.take(_PART_BYTES * (count - first), f"{count} operators and graphs")
        names = sum(len(graph.op[place].subgraph_name) for place in range(first, count))
        self._allowance.take(_NAME_BYTES * names, f"{names} names of subgraphs")
