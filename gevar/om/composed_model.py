"""Files of several models that are made by hand: bundles and dynamic files, whose models share their variables."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gevar.graph import Model
from gevar.om.attr_names_writer import SHAPE_PARTITIONED_ATTR
from gevar.om.header import ModelFileHeader, ModelType
from gevar.om.memory_plan import VariableSpace
from gevar.om.model_spec import DATA, NETOUTPUT, NodeSpec, OmModelSpec, TensorRef
from gevar.om.partition import PartitionType
from gevar.om.root_model import GeModel, GeRootModel, NestedModel
from gevar.om.spec_writer import spec_header, spec_parts
from gevar.om.stored_bytes import Blob
from gevar.proto import ge_ir, task
from gevar.types.tensor_desc import TensorDesc

PARTITIONED_CALL: Final = "PartitionedCall"
PARENT_NODE_INDEX_ATTR: Final = "_parent_node_index"


def bundle(models: Sequence[OmModelSpec]) -> GeRootModel:
    """Return a bundle of models, for `write_om`; variables of one name are one variable.

    Raises
    ------
    ValueError
        There is no model; two have another logic base or size of variables; or a variable has two descriptions. Also
        as `write_om`.

    Source: GE source, base/common/helper/model_helper.cc.
    """
    space = _shared_space(models)
    files = []
    for model in models:
        message, partitions = spec_parts(model, space)
        files.append(GeRootModel(spec_header(model), [GeModel(Model.from_proto(message), partitions)]))
    header = ModelFileHeader(modeltype=ModelType.MODEL_TYPE_BUNDLE_MODEL)
    return GeRootModel(header, nested=[NestedModel(file) for file in files], bundle_variable_size=space.used_bytes)


def dynamic(name: str, models: Sequence[OmModelSpec], *, compress: bool = False) -> GeRootModel:
    """Return a dynamic file for `write_om`: a root, partitioned by shape, that calls each model as a subgraph.

    Inputs and outputs of the root are those of all models, in order. Variables of one name are one variable.

    Parameters
    ----------
    name
        Name of the root.
    models
        The sub-models, each with a name of its own.
    compress
        Whether attribute names become numbers; one table in the root then serves all.

    Raises
    ------
    ValueError
        As `bundle`; or two models have one name, or that of the root.

    Source: GE source, base/common/helper/model_helper.cc.
    """
    space = _shared_space(models)
    if len({name, *(model.name for model in models)}) <= len(models):
        raise ValueError(f"the models of {name!r} have the names {[model.name for model in models]}; make them differ")
    parts = [spec_parts(_as_subgraph(model), space) for model in models]
    for model, (message, _) in zip(models, parts, strict=True):
        message.graph[0].name = model.name
        _number_results(message.graph[0])
    root = _root(name, models)
    message, partitions = spec_parts(root)
    _complete_root(message, models, [sub for sub, _ in parts])
    kept = [(PartitionType.MODEL_INOUT_INFO, partitions[0][1]), (PartitionType.TASK_INFO, _root_tasks(message))]
    built = [GeModel(Model.from_proto(message), [(int(kind), blob) for kind, blob in kept])]
    for sub, sub_partitions in parts:
        others = [part for part in sub_partitions if part[0] != PartitionType.MODEL_INOUT_INFO]
        built.append(GeModel(Model.from_proto(sub), others))
    return GeRootModel(replace(spec_header(root), is_unknow_model=1), built, is_compressed=compress)


def _shared_space(models: Sequence[OmModelSpec]) -> VariableSpace:
    if not models:
        raise ValueError("no model is given; give one or more")
    places = {(model.logic_base, model.variable_size_bytes) for model in models}
    if len(places) > 1:
        raise ValueError(f"the models have {len(places)} variable spaces {sorted(places)}; give all one base and size")
    return VariableSpace(models[0])


def _as_subgraph(model: OmModelSpec) -> OmModelSpec:
    """Say of each input which one of the calling node it is."""
    nodes, index = [], 0
    for node in model.nodes:
        if node.type == DATA:
            node = replace(node, attrs={**node.attrs, PARENT_NODE_INDEX_ATTR: index})
            index += 1
        nodes.append(node)
    return replace(model, nodes=tuple(nodes))


def _number_results(graph: ge_ir.GraphDef) -> None:
    """Say of each result which output of the calling node it is."""
    for op in graph.op:
        if op.type == NETOUTPUT:
            for index, desc in enumerate(op.input_desc):
                desc.attr[PARENT_NODE_INDEX_ATTR].i = index


def _root(name: str, models: Sequence[OmModelSpec]) -> OmModelSpec:
    nodes: list[NodeSpec] = []
    results: list[TensorRef] = []
    result_names: list[str] = []
    for model in models:
        inputs = [replace(node, name=f"{model.name}/{node.name}") for node in model.nodes if node.type == DATA]
        outputs = _output_descs(model)
        refs = tuple((node.name, 0) for node in inputs)
        nodes += [*inputs, NodeSpec(_call_name(model), PARTITIONED_CALL, refs, outputs)]
        results += [(_call_name(model), index) for index in range(len(outputs))]
        result_names += model.output_names or [""] * len(outputs)
    if results:
        nodes.append(NodeSpec("Node_Output", NETOUTPUT, tuple(results)))
    first = models[0]
    return OmModelSpec(
        name,
        tuple(nodes),
        tuple(result_names),
        logic_base=first.logic_base,
        variable_size_bytes=first.variable_size_bytes,
    )


def _call_name(model: OmModelSpec) -> str:
    return f"{model.name}/{PARTITIONED_CALL}"


def _output_descs(model: OmModelSpec) -> tuple[TensorDesc, ...]:
    descs = {node.name: node.outputs for node in model.nodes}
    refs = [ref for node in model.nodes if node.type == NETOUTPUT for ref in node.inputs]
    return tuple(descs[name][index] for name, index in refs)


def _complete_root(message: ge_ir.ModelDef, models: Sequence[OmModelSpec], parts: Sequence[ge_ir.ModelDef]) -> None:
    """Give the root its subgraphs, and the sizes of a model without weights."""
    graph = message.graph[0]
    graph.attr[SHAPE_PARTITIONED_ATTR].b = True
    called = {_call_name(model): model.name for model in models}
    for op in graph.op:
        if op.type == PARTITIONED_CALL:
            op.subgraph_name.append(called[op.name])
    for part in parts:
        message.graph.add().CopyFrom(part.graph[0])
    message.attr["weight_size"].i = 0
    message.attr["variable_size"].i = max(part.attr["variable_size"].i for part in parts)


def _root_tasks(message: ge_ir.ModelDef) -> Blob:
    tasks = task.ModelTaskDef(version="1.0", memory_size=message.attr["memory_size"].i, stream_num=1)
    return Blob.of(tasks.SerializeToString(deterministic=True))
