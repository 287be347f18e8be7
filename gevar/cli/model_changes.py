"""What changed between two OM files: nodes, places of variables, bytes of weights, other partitions.

Models are compared in the order of their files, graphs and nodes by name. Names as numbers, the dialect and the place
of bytes inside a file are no changes: only what a loader makes of them counts.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

from gevar.cli.output import shape_text
from gevar.graph import AttrMap, ComputeGraph, Model, Node
from gevar.om import OmFile
from gevar.om.attr_names_writer import COMPRESSION_ATTRS
from gevar.om.model import OmModel
from gevar.om.node import CONST_TYPES, IS_INPUT_CONST_ATTR, VARIABLE_TYPES
from gevar.om.partition import PartitionType, partition_type_name
from gevar.om.stored_bytes import Content, StreamedBytes, digest_of
from gevar.om.weight_source import WeightSource
from gevar.proto import ge_ir
from gevar.session.file_tensors import files_inside
from gevar.session.tensor_contents import TensorContent, tensor_contents
from gevar.types.data_type import DataType
from gevar.types.format import format_to_serial
from gevar.types.tensor_desc import ATTR_INIT_VALUE, TensorDesc

ADDED: Final = "added"
REMOVED: Final = "removed"
CHANGED: Final = "changed"
_OTHER_SIZES: Final = frozenset({*COMPRESSION_ATTRS, "om_info_list", "weight_size"})
"""Model attributes that follow from what is compared by itself."""
_SHOWN: Final = 120  # characters of a text
_SHOWN_BEFORE: Final = 20  # of them before the first difference
_COMPARED_APART: Final = frozenset({PartitionType.MODEL_DEF, PartitionType.WEIGHTS_DATA, PartitionType.FLOW_SUBMODEL})


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: `what` is "model", "partition", "node", "address" or "weight", `how` one of the constants above.

    `model` and `name` say where; `before` and `after` are texts, empty on the side that has nothing.
    """

    what: str
    how: str
    model: str
    name: str
    before: str = ""
    after: str = ""


def model_changes(
    first: OmFile, second: OmFile, *, first_weights: str | None = None, second_weights: str | None = None
) -> Iterator[Change]:
    """Yield what changed from one opened file to another.

    Parameters
    ----------
    first, second
        The files; they must stay open until the end.
    first_weights, second_weights
        Folders of external weights; None for `weight` beside each file.

    Raises
    ------
    ModelFileError, GraphError, VariableError, LoadError
        A file is damaged, or an external weight is missing.
    """
    sizes = [str(om.bundle_variable_size) for om in (first, second)]
    if sizes[0] != sizes[1]:
        yield Change("model", CHANGED, first.header.name, "bundle_variable_size", *sizes)
    models, others = _models(first), _models(second)
    for index in range(max(len(models), len(others))):
        if index >= len(others):
            yield Change("model", REMOVED, models[index].name, models[index].name)
        elif index >= len(models):
            yield Change("model", ADDED, others[index].name, others[index].name)
        else:
            yield from _one_model(models[index], others[index])
    yield from _weights(first, second, first_weights, second_weights)


def _models(om: OmFile) -> list[OmModel]:
    return [model for file in files_inside(om) for model in file.models]


def _one_model(first: OmModel, second: OmModel) -> Iterator[Change]:
    if first.name != second.name:
        yield Change("model", CHANGED, first.name, "name", first.name, second.name)
    messages = first.model_def(), second.model_def()
    one, other = (AttrMap.from_proto(message.attr) for message in messages)
    for name in sorted({*one, *other} - _OTHER_SIZES):
        if not _same_attr(one, other, name):
            yield Change("model", CHANGED, first.name, name, *_shown(_attr_text(one, name), _attr_text(other, name)))
    if messages[0].graph != messages[1].graph:
        graphs = [_graphs(Model.from_proto(message)) for message in messages]
        ops = [{graph.name: graph for graph in message.graph} for message in messages]
        for graph, peer in _pairs(*graphs):
            equal: set[str] = set()
            if graph is not None and peer is not None:
                equal = _equal_ops(ops[0][graph.name], ops[1][peer.name])
            yield from _graph(first.name, graph, peer, equal)
    yield from _partitions(first, second)


def _equal_ops(first: ge_ir.GraphDef, second: ge_ir.GraphDef) -> set[str]:
    """Return the names of operators that are equal in all they have."""
    others = {op.name: op for op in second.op}
    return {op.name for op in first.op if op.name in others and op == others[op.name]}


def _same_attr(one: AttrMap, other: AttrMap, name: str) -> bool:
    return name in one and name in other and one.to_proto(name) == other.to_proto(name)


def _attr_text(attrs: AttrMap, name: str) -> str:
    return repr(attrs[name]) if name in attrs else ""


def _shown(first: str, second: str) -> tuple[str, str]:
    """Two texts, cut where they are long; from shortly before their first difference on where that would be cut."""
    start = 0
    if max(len(first), len(second)) > _SHOWN:
        pairs = enumerate(zip(first, second, strict=False))
        differs = next((at for at, (one, other) in pairs if one != other), min(len(first), len(second)))
        start = max(differs - _SHOWN_BEFORE, 0)
    cut = [("…" if start and text else "") + text[start:] for text in (first, second)]
    before, after = (text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…" for text in cut)
    return before, after


def _graphs(model: Model) -> dict[str, ComputeGraph]:
    graphs = [] if model.graph is None else [model.graph, *model.graph.all_subgraphs()]
    return {graph.name: graph for graph in graphs}


def _pairs(
    first: Mapping[str, ComputeGraph], second: Mapping[str, ComputeGraph]
) -> Iterator[tuple[ComputeGraph | None, ComputeGraph | None]]:
    """Yield graphs by name; the roots belong together whatever their names."""
    rest, others = dict(first), dict(second)
    if rest and others:
        root, other_root = next(iter(rest)), next(iter(others))
        yield rest.pop(root), others.pop(other_root)
    for name in dict.fromkeys((*rest, *others)):
        yield rest.get(name), others.get(name)


def _graph(
    model: str, first: ComputeGraph | None, second: ComputeGraph | None, equal: Collection[str]
) -> Iterator[Change]:
    name = next(graph.name for graph in (first, second) if graph is not None)
    nodes = {} if first is None else {node.name: node for node in first}
    others = {} if second is None else {node.name: node for node in second}
    for node_name in dict.fromkeys((*nodes, *others)):
        where = f"{name}/{node_name}"
        if node_name not in others:
            yield Change("node", REMOVED, model, where, nodes[node_name].type)
        elif node_name not in nodes:
            yield Change("node", ADDED, model, where, "", others[node_name].type)
        elif node_name not in equal:
            yield from _node(model, where, nodes[node_name], others[node_name])


def _node(model: str, where: str, first: Node, second: Node) -> Iterator[Change]:
    one, other = _node_facts(first), _node_facts(second)
    for fact in dict.fromkeys((*one, *other)):
        before, after = one.get(fact, ""), other.get(fact, "")
        if before != after:
            how = ADDED if fact not in one else REMOVED if fact not in other else CHANGED
            yield Change("node", how, model, f"{where}: {fact}", *_shown(str(before), str(after)))
    for name in sorted({*first.op_desc.attrs, *second.op_desc.attrs} - {IS_INPUT_CONST_ATTR}):
        sides = [node.op_desc.attrs.to_proto(name) if name in node.op_desc.attrs else None for node in (first, second)]
        if sides[0] != sides[1] and not (name == "value" and first.type in CONST_TYPES):
            texts = (_attr_text(node.op_desc.attrs, name) for node in (first, second))
            yield Change("node", CHANGED, model, f"{where}: {name}", *_shown(*texts))
    if first.type in VARIABLE_TYPES and first.op_desc.output_i != second.op_desc.output_i:
        addrs = [", ".join(f"{addr:#x}" for addr in node.op_desc.output_i) for node in (first, second)]
        yield Change("address", CHANGED, model, where, *addrs)


def _node_facts(node: Node) -> dict[str, object]:
    """What a node is, without its attributes, the bytes of its value and its places in memory."""
    op = node.op_desc
    peers = [anchor.peer for anchor in node.in_data_anchors]
    return {
        "type": node.type,
        "inputs": [None if peer is None else f"{peer.node.name}:{peer.idx}" for peer in peers],
        "control inputs": sorted(before.name for before in node.in_control_nodes),
        "subgraphs": op.subgraph_instance_names,
        **_desc_facts("input", op.input_descs),
        **_desc_facts("output", op.output_descs),
    }


def _desc_facts(side: str, descs: Sequence[TensorDesc]) -> dict[str, object]:
    """What descriptions say, field by field, without places in the weights and without initial values."""
    facts: dict[str, object] = {}
    for number, desc in enumerate(descs):
        values = {one.name: getattr(desc, one.name) for one in fields(desc) if one.name != "data_offset"}
        values["attrs"] = {name: attr for name, attr in desc.attrs.items() if name != ATTR_INIT_VALUE}
        values |= {name: format_to_serial(values[name]) for name in ("format", "origin_format")}
        values |= {name: values[name].name for name in ("dtype", "origin_dtype")}
        facts |= {f"{side} {number} {name}": value for name, value in values.items()}
    return facts


def _partitions(first: OmModel, second: OmModel) -> Iterator[Change]:
    sides = [
        {part.type: part for part in model.partitions if part.type not in _COMPARED_APART and part.mem_size}
        for model in (first, second)
    ]
    for kind in dict.fromkeys((*sides[0], *sides[1])):
        texts = []
        for model, side in zip((first, second), sides, strict=True):
            if kind in side:
                what = partition_type_name(kind)
                data = StreamedBytes.of_source(model.source, side[kind].file_offset, side[kind].mem_size, what)
                texts.append(f"{data.nbytes} B, xxh3 {digest_of(data).hex()}")
            else:
                texts.append("")
        if texts[0] != texts[1]:
            how = ADDED if not texts[0] else REMOVED if not texts[1] else CHANGED
            yield Change("partition", how, first.name, partition_type_name(kind), *texts)


def _weights(first: OmFile, second: OmFile, first_weights: str | None, second_weights: str | None) -> Iterator[Change]:
    """Compare the weights of models by name; one of a model without a peer is added or removed with it."""
    sides = [_weight_texts(om, folder) for om, folder in ((first, first_weights), (second, second_weights))]
    names = [[model.name for model in _models(om)] for om in (first, second)]
    for number, name in dict.fromkeys((*sides[0], *sides[1])):
        before, after = (side.get((number, name), "") for side in sides)
        if before != after:
            how = ADDED if not before else REMOVED if not after else CHANGED
            model = names[0][number] if number < len(names[0]) else names[1][number]
            yield Change("weight", how, model, name, before, after)


def _weight_texts(om: OmFile, weight_dir: str | None) -> dict[tuple[int, str], str]:
    """Return what each weight is, by number of its model and name."""
    numbers = {id(model): number for number, model in enumerate(_models(om))}
    return {
        (numbers[id(content.tensor.model)], content.name): _weight_text(content)
        for content in tensor_contents(om, weight_dir)
    }


def _weight_text(content: TensorContent) -> str:
    desc = content.tensor.desc
    return _value_text(desc.dtype, desc.shape, content.data)


def tensor_changes(first: WeightSource, second: WeightSource) -> Iterator[Change]:
    """Yield what changed between the tensors of two files, by name; the model is the name of the second file."""
    sides = [
        {tensor.name: _value_text(tensor.dtype, tensor.shape, tensor.data) for tensor in source.tensors()}
        for source in (first, second)
    ]
    for name in dict.fromkeys((*sides[0], *sides[1])):
        before, after = (side.get(name, "") for side in sides)
        if before != after:
            how = ADDED if not before else REMOVED if not after else CHANGED
            yield Change("weight", how, second.path.stem, name, before, after)


def _value_text(dtype: DataType, shape: Sequence[int], data: Content | None) -> str:
    value = "no bytes" if data is None else f"{data.nbytes} B, xxh3 {digest_of(data).hex()}"
    return f"{dtype.name} {shape_text(shape)}, {value}"
