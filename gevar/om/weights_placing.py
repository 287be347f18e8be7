"""Moving the bytes of constants out of a graph and into the weights partition of its model.

What lies there already keeps its place, and so does a piece that is replaced by one of its size. Any other goes behind
the last one, by the rules of `weights_layout`; the Const and every operator that reads it then say where.

Source: GE source, compiler/graph/build/model_builder.cc, ModelBuilder::MergeWeights.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from gevar.align import SESSION_MEM_ALIGN_BYTES
from gevar.errors import GraphError
from gevar.graph import Node, OpDesc, ValueType
from gevar.om.consts import VALUE_ATTR
from gevar.om.node import CONSTANT, IS_INPUT_CONST_ATTR
from gevar.om.partition import PartitionType
from gevar.om.root_model import GeModel
from gevar.om.stored_bytes import Blob, Content
from gevar.om.weights_layout import WeightsLayout
from gevar.proto import ge_ir
from gevar.proto.tensor_descriptor import tensor_desc_from_proto, tensor_desc_to_proto
from gevar.types.tensor_desc import TensorDesc
from gevar.types.tensor_sizes import tensor_size_in_bytes

_NOTHING: Final[Mapping[str, Content]] = {}


def place_weights(model: GeModel, weights: Mapping[str, Content] = _NOTHING) -> None:
    """Put the bytes of Const nodes into the weights partition of a model, in place.

    Parameters
    ----------
    model
        The model. Its Const nodes have their bytes in the attribute `value`, in `weights`, or in the partition already.
    weights
        Bytes by the name of the Const; they count more than those in the graph, and are read when the file is written.

    Raises
    ------
    GraphError
        There is no Const of a name in `weights`; or a Const has no attribute `value`, or there are more or fewer bytes
        than its description says.
    OSError, ModelFileError
        Bytes cannot be read.

    After failure: the model is as before.
    """
    consts = [node for node in _nodes(model) if node.type == CONSTANT]
    values = {node: _value(node) for node in consts}
    missing = set(weights) - {node.name for node in consts}
    if missing:
        raise GraphError(None, f"weights are given for {min(missing)!r}, which is no Const of model {model.model.name}")
    descs = {node: tensor_desc_from_proto(value.desc) for node, value in values.items()}
    users = Counter(desc.data_offset for desc in descs.values())
    ends = [desc.data_offset + desc.weight_size for desc in descs.values() if desc.data_offset]
    layout = WeightsLayout(max([SESSION_MEM_ALIGN_BYTES, *ends]))
    replaced: list[tuple[int, Content]] = []
    places: dict[Node, TensorDesc] = {}
    for node, desc in descs.items():
        data = weights.get(node.name) or memoryview(values[node].data)
        if data.nbytes:
            check_size(node, data)
            if desc.data_offset and desc.weight_size == data.nbytes and users[desc.data_offset] == 1:
                replaced.append((desc.data_offset, data))
            else:
                places[node] = desc.replace(data_offset=layout.place(data), weight_size=data.nbytes)
    for node, desc in places.items():
        _point(node, values[node], desc)
    if places or replaced:
        old = model.partition(PartitionType.WEIGHTS_DATA)
        size_bytes = max(old.size_bytes, layout.size_bytes)
        model.set_weights(Blob(size_bytes, [*old.pieces, *replaced, *layout.pieces]))


def _nodes(model: GeModel) -> Iterator[Node]:
    graph = model.model.graph
    for part in () if graph is None else (graph, *graph.all_subgraphs()):
        yield from part


def _value(node: Node) -> ge_ir.TensorDef:
    attrs = node.op_desc.attrs
    if VALUE_ATTR not in attrs or attrs.value_type(VALUE_ATTR) is not ValueType.VT_TENSOR:
        raise GraphError(node.owner_compute_graph.name, "is a Const without a tensor as its value", node=node.name)
    return attrs.to_proto(VALUE_ATTR).t


def check_size(node: Node, data: Content) -> None:
    """Refuse bytes that are more or fewer than the output of a node has.

    Raises
    ------
    GraphError
        They are.
    """
    desc = node.op_desc.output_desc(0)
    if desc.dtype.element_bits is not None and tensor_size_in_bytes(desc) != data.nbytes:
        reason = f"{desc.dtype.name} {desc.shape} takes {tensor_size_in_bytes(desc)} B, {data.nbytes} B are given"
        raise GraphError(node.owner_compute_graph.name, reason, node=node.name)


def _point(node: Node, value: ge_ir.TensorDef, desc: TensorDesc) -> None:
    """Let a Const and its readers say where its bytes lie."""
    stored = tensor_desc_to_proto(desc)
    stored.name, stored.has_out_attr = value.desc.name, value.desc.has_out_attr
    node.op_desc.attrs.set_proto(VALUE_ATTR, ge_ir.AttrDef(t=ge_ir.TensorDef(desc=stored)))
    for reader in node.out_data_anchor(0).peers:
        op = reader.node.op_desc
        op.update_input_desc(reader.idx, op.input_desc(reader.idx).replace(data_offset=desc.data_offset))
        _mark(op, reader.idx)


def _mark(op: OpDesc, index: int) -> None:
    """Mark an input as constant, in the attribute and in the field where that is used."""
    count = len(op.input_descs)
    flags = list(op.attrs.get_list(IS_INPUT_CONST_ATTR, bool) or ())
    flags += [False] * (count - len(flags))
    flags[index] = True
    op.attrs.set(IS_INPUT_CONST_ATTR, flags, ValueType.VT_LIST_BOOL)
    if op.is_input_const:
        op.is_input_const = tuple(flags)
