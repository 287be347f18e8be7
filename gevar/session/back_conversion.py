"""FileConstants that become constants with their bytes inside the model.

Source: GE source, base/common/file_constant_utils, the conversion back to Const.
Differs: row back-to-const of docs/differences.md.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final, Literal

from gevar.compile.model_cache_load import has_tasks
from gevar.errors import GraphError
from gevar.graph import Node
from gevar.om import StreamedBytes
from gevar.om.consts import VALUE_ATTR
from gevar.om.model_def import MAX_BYTES
from gevar.om.node import CONSTANT, CONSTANTOP
from gevar.om.stored_bytes import read_all
from gevar.om.weights_placing import check_size, place_weights
from gevar.proto import ge_ir
from gevar.proto.tensor_descriptor import tensor_desc_to_proto
from gevar.session.external_weight_files import EXTERNAL_ATTRS, ExternalNode, nodes_of
from gevar.types import DataType, TensorDesc

ConstKind = Literal["const", "constant"]
"""Const lies in the weights of the model, Constant among the variables, where the FileConstant was."""
_FORM_ATTRS: Final = ("dtype", "shape", "original_shape")


def convert_file_constants(nodes: Sequence[ExternalNode], kind: ConstKind) -> None:
    """Turn FileConstants into constants with their bytes inside the model, in place.

    Parameters
    ----------
    nodes
        The FileConstants. Their files are read when the model is written, for a Constant at once.
    kind
        "const": a Const, whose bytes lie in the weights partition; only for static models without tasks, since tasks
        hold the addresses of variables. "constant": a Constant, which keeps the address, and whose bytes are in the
        message.

    Raises
    ------
    ValueError
        The kind is "const", and a model has tasks or parts; or it is "constant", and a message has no room for the
        bytes.
    GraphError
        Two nodes of one model have one name; the bytes are not as many as the description says.
    ModelFileError
        A file cannot be read, or changed since it was looked at.

    After failure: nodes may be converted in part; write the model only after success.
    """
    by_model: dict[int, list[ExternalNode]] = defaultdict(list)
    for one in nodes:
        by_model[id(one.model)].append(one)
    for group in by_model.values():
        if kind == "constant":
            _to_constants(group)
        else:
            _to_consts(group)


def _to_constants(nodes: Sequence[ExternalNode]) -> None:
    """Constants lie where their FileConstants were, so tasks find them there."""
    inline_bytes = sum(one.info.needed_bytes for one in nodes)
    if inline_bytes > MAX_BYTES:
        raise ValueError(
            f"{inline_bytes} B of external weights would lie inside a message, protobuf allows {MAX_BYTES} B; "
            "make them Const, or leave them outside"
        )
    for one in nodes:
        content = one.content
        check_size(one.node, content)
        value = ge_ir.TensorDef(desc=tensor_desc_to_proto(_desc(one)), data=read_all(content))
        _become(one.node, CONSTANTOP, value)


def _to_consts(nodes: Sequence[ExternalNode]) -> None:
    model = nodes[0].model
    if has_tasks(model):
        reason = f"model {model.model.name} has tasks, which hold the addresses of its external weights"
        raise ValueError(f"{reason}; make them Constant")
    if nodes[0].is_part:
        raise ValueError(f"model {model.model.name!r} is part of a dynamic one and shares graphs; make them Constant")
    names = Counter(node.name for node in nodes_of(model))
    contents: dict[str, StreamedBytes] = {}
    for one in nodes:
        if names[one.node.name] > 1:
            raise GraphError(model.model.name, "two nodes have this name; rename one", node=one.node.name)
        contents[one.node.name] = one.content
        _become(one.node, CONSTANT, ge_ir.TensorDef(desc=tensor_desc_to_proto(_desc(one))))
    place_weights(model, contents)
    for one in nodes:
        one.node.op_desc.output_i = (0,)
        for reader in one.node.out_data_anchor(0).peers:
            _follow(reader.node, reader.idx)


def _follow(reader: Node, index: int) -> None:
    """Let an input that has an offset have that of its Const; offsets are those of linked inputs."""
    place = sum(anchor.peer is not None for anchor in reader.in_data_anchors[:index])
    offsets = list(reader.op_desc.input_i)
    if place < len(offsets):
        offsets[place] = reader.op_desc.input_desc(index).data_offset
        reader.op_desc.input_i = tuple(offsets)


def _become(node: Node, op_type: str, value: ge_ir.TensorDef) -> None:
    attrs = node.op_desc.attrs
    for name in (*EXTERNAL_ATTRS, *_FORM_ATTRS):
        if name in attrs:
            del attrs[name]
    node.op_desc.type = op_type
    attrs.set_proto(VALUE_ATTR, ge_ir.AttrDef(t=value))


def _desc(one: ExternalNode) -> TensorDesc:
    """Return the description of the bytes: that of the output, with the element type that the node tells."""
    op_desc = one.node.op_desc
    dtype = op_desc.attrs.get_as("dtype", DataType)
    desc = op_desc.output_desc(0)
    return desc if dtype is None else desc.replace(dtype=dtype)
