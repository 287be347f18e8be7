"""Tensor descriptors out of model files and messages, found with struct and the message classes alone."""

import struct
from collections.abc import Iterator

from google.protobuf.message import Message

from gevar.proto import flow_model, ge_ir

HEADER_BYTES = 256
FLOW, BUNDLE = 3, 5
MODEL_DEF, FLOW_SUBMODEL, BUNDLE_MODEL_INFO = 0, 7, 24


def model_defs(data: bytes) -> Iterator[ge_ir.ModelDef]:
    """Yield every model of a file, those of nested files included."""
    version, model_type = struct.unpack_from("<I", data, 8)[0], data[82]
    old = version < 0x20000000 and model_type != BUNDLE  # these have other fields in the places read below
    wide = not old and (model_type in (FLOW, BUNDLE) or struct.unpack_from("<Q", data, 184)[0] > 0)
    position = HEADER_BYTES
    while position < len(data):
        table, position = _table(data, position, wide)
        for kind, size in table:
            yield from _models_of(kind, model_type, data[position : position + size])
            position += size


def _table(data: bytes, start: int, wide: bool) -> tuple[list[tuple[int, int]], int]:
    """Read type and size of each partition; return them and the end of the table."""
    (count,) = struct.unpack_from("<I", data, start)
    if wide:
        entries = [struct.unpack_from("<I12xQ", data, start + 8 + 24 * number) for number in range(count)]
        return entries, start + 8 + 24 * count
    entries = [struct.unpack_from("<I4xI", data, start + 4 + 12 * number) for number in range(count)]
    return entries, start + 4 + 12 * count


def _models_of(kind: int, model_type: int, part: bytes) -> Iterator[ge_ir.ModelDef]:
    if kind == MODEL_DEF:
        yield ge_ir.ModelDef.FromString(part)
    elif kind == BUNDLE_MODEL_INFO:
        yield from model_defs(part)
    elif kind == FLOW_SUBMODEL and model_type == FLOW:
        yield from model_defs(flow_model.SubmodelDef.FromString(part).om_data)


def descriptors(message: Message) -> Iterator[ge_ir.TensorDescriptor]:
    """Yield every tensor descriptor in a message, however deep, the message itself included."""
    if isinstance(message, ge_ir.TensorDescriptor):
        yield message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                for item in value.values():
                    yield from descriptors(item)
        elif isinstance(value, Message):
            yield from descriptors(value)
        else:
            for item in value:
                yield from descriptors(item)


def variables(model: ge_ir.ModelDef, types: set[str]) -> Iterator[ge_ir.OpDef]:
    """Yield the operators of these types, with an output description."""
    for graph in model.graph:
        yield from (op for op in graph.op if op.type in types and op.output_desc)
