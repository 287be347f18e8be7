"""What a cached model is made of beside the variables: constants, initial values, and the switch of the passes.

GE looks at variables alone, and trusts the graph key for everything else. Digests are stored with the model; a model of
other weights, or of other passes, is not used.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import xxhash

from gevar.compile.node_kinds import CONST_TYPES, VARIABLE_TYPES
from gevar.compile.switches import VARIABLE_ACC, variable_acc
from gevar.graph import ComputeGraph, GeTensor, Node
from gevar.graph.attr_value import ValueType
from gevar.om import GeRootModel
from gevar.types import TensorDesc
from gevar.var import FILECONSTANT

SOURCE_DIGESTS: Final = "_gevar_source_digests"
"""Attribute of the first model of a cached file: a line of digest and name for each thing."""

_VALUE: Final = "value"
_PLACE: Final = ("offset", "length", "file_path", "file_id")
_LOCATION: Final = "location"


def source_digests(graph: ComputeGraph, options: Mapping[str, str]) -> dict[str, str]:
    """Return 32 hexadecimal digits for each weight of a graph that is to be compiled, and whether variables may change.

    Weights are constants with description and bytes, the places of external weights (of a `location` the name of the
    file, as directories may move), and initial values of variables.

    Parameters
    ----------
    graph
        The graph before it is compiled, with its subgraphs.
    options
        Options of session and graph.

    Returns
    -------
    dict
        Digests by node, behind the names of subgraphs; the switch by the name of its option.

    Raises
    ------
    GraphError
        The options exclude each other (status GE_GRAPH_OPTIONS_INVALID).
    """
    found = {VARIABLE_ACC: str(variable_acc(options))}
    for node in graph.all_nodes():
        content = list(_content(node))
        if content:
            owner = node.owner_compute_graph
            found[node.name if owner is graph else f"{owner.name}/{node.name}"] = _digest(node.type, *content)
    return found


def mark_source(model: GeRootModel, digests: Mapping[str, str]) -> None:
    """Let a model tell what it was made of."""
    if model.models:
        lines = [f"{digest} {name}" for name, digest in digests.items()]
        model.models[0].model.attrs.set(SOURCE_DIGESTS, lines, ValueType.VT_LIST_STRING)


def other_source(model: GeRootModel, digests: Mapping[str, str]) -> str | None:
    """Return the name of something that a model was made of and that is another one now; None where nothing is.

    What only one of both has does not count, so that a model that does not tell, such as GE's, is right.
    """
    lines = model.models[0].model.attrs.get_list(SOURCE_DIGESTS, str) or ()
    for line in lines:
        digest, _, name = line.partition(" ")
        if digests.get(name, digest) != digest:
            return name
    return None


def _content(node: Node) -> Iterator[str | bytes]:
    attrs, descs = node.op_desc.attrs, node.op_desc.output_descs
    if node.type in CONST_TYPES:
        weight = attrs.get_as(_VALUE, GeTensor)
        if weight is not None:
            yield _form(weight.desc)
            yield weight.data
    elif node.type == FILECONSTANT:
        name = (attrs.get_as(_LOCATION, str) or "").rpartition("/")[2]
        yield repr([name, *(attrs.get(key) for key in _PLACE)])
    elif node.type in VARIABLE_TYPES and descs and descs[0].init_value is not None:
        yield descs[0].init_value.SerializeToString(deterministic=True)


def _form(desc: TensorDesc) -> str:
    return f"{desc.dtype} {desc.format} {desc.shape}"


def _digest(*parts: str | bytes) -> str:
    digest = xxhash.xxh3_128()
    for part in parts:
        data = part.encode(errors="surrogateescape") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()
