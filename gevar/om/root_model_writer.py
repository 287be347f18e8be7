"""Writing a file from its parsed form.

Source: GE source, base/common/helper/model_helper.cc.
"""

from collections.abc import Iterator
from typing import Final

from gevar.graph import Node
from gevar.om.attr_names_writer import compress, forget_compression
from gevar.om.node import VARIABLE
from gevar.om.partition import PartitionType
from gevar.om.partition_writer import bundle_file, model_body, om_file
from gevar.om.root_model import GeModel, GeRootModel, NestedModel
from gevar.om.stored_bytes import Blob
from gevar.proto import ge_ir

VARIABLE_BASE_ATTR: Final = "task_gen_variable_addr"
_MOST_BYTES: Final = (1 << 63) - 1
_PLACEMENT_ATTR, _ON_HOST = "_variable_placement", "host"


def root_model_blob(root: GeRootModel) -> Blob:
    """Return the whole file that a parsed form stands for: dialect G3 with wide tables, or a bundle.

    Raises
    ------
    ValueError
        A reader would refuse the file: limits of partitions and messages; or the models of a bundle do not agree on
        their variables.
    GraphError
        The graph of a model is a subgraph of another.
    """
    if root.bundle_variable_size is not None:
        files = [nested.root for nested in root.nested if nested.root is not None]
        _check_shared_variables(files)
        size_bytes = root.bundle_variable_size or _variable_bytes(files)  # the first bundles state none
        return bundle_file([root_model_blob(file) for file in files], size_bytes)
    messages = [model.model.to_proto() for model in root.models]
    if root.is_compressed:
        compress(messages)
    else:
        for message in messages:
            forget_compression(message)
    bodies = [
        _body(model, message, root.nested if index == 0 else ())
        for index, (model, message) in enumerate(zip(root.models, messages, strict=True))
    ]
    return om_file(root.header, bodies)


def _body(model: GeModel, message: ge_ir.ModelDef, nested: "list[NestedModel] | tuple[()]") -> Blob:
    parts = [*model.partitions, *((int(PartitionType.FLOW_SUBMODEL), _flow_part(item)) for item in nested)]
    return model_body(message, parts, is_flow=bool(nested))


def _flow_part(nested: NestedModel) -> Blob:
    message = type(nested.message)()
    message.CopyFrom(nested.message)
    if nested.root is not None:
        message.om_data = root_model_blob(nested.root).read()
    return Blob.of(message.SerializeToString(deterministic=True))


def variables_of(root: GeRootModel) -> Iterator[Node]:
    """Yield the nodes of type Variable of a file, those of subgraphs too."""
    for model in root.models[:1]:  # the root has the graphs of the others
        if model.model.graph is not None:
            for graph in (model.model.graph, *model.model.graph.all_subgraphs()):
                yield from (node for node in graph if node.type == VARIABLE)


def _variable_bytes(files: list[GeRootModel]) -> int:
    """Return how far the variables of files reach from the start of their space."""
    end = 0
    for file in files:
        base = file.models[0].model.attrs.get_as(VARIABLE_BASE_ATTR, int) or 0
        for node in variables_of(file):
            for place in node.op_desc.output_i[:1]:
                end = max(end, place - base + node.op_desc.output_desc(0).size)
    return min(end, _MOST_BYTES)


def _check_shared_variables(files: list[GeRootModel]) -> None:
    """Refuse models of a bundle that share a variable and do not agree on it."""
    known: dict[str, tuple[int, Node]] = {}
    for index, file in enumerate(files):
        for node in variables_of(file):
            first, other = known.setdefault(node.name, (index, node))
            if first == index:
                continue
            place, desc = node.op_desc.output_i, node.op_desc.output_desc(0)
            other_place, other_desc = other.op_desc.output_i, other.op_desc.output_desc(0)
            if (place, desc.shape, desc.dtype) != (other_place, other_desc.shape, other_desc.dtype):
                raise ValueError(
                    f"variable {node.name} is at {place} with {desc.dtype.name} {desc.shape} in model {index} of the "
                    f"bundle, at {other_place} with {other_desc.dtype.name} {other_desc.shape} in model {first}; "
                    "give both the same place"
                )
            if node.op_desc.attrs.get_as(_PLACEMENT_ATTR, str) == _ON_HOST:
                raise ValueError(
                    f"variable {node.name} is shared in a bundle and placed on the host; place it on the device"
                )
