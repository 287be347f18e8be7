"""Which outputs of an operator are the same memory as one of its inputs.

Source: GE source, compiler/graph/passes/variable_optimize/variable_prepare_op_pass.cc,
VariablePrepareOpPass::GenerateRefTypeAndInputOutputMap, GetWritableNodeOutIndex.
"""

from collections.abc import Mapping
from operator import itemgetter
from types import MappingProxyType
from typing import Final

from gevar.compile.descriptions import ints_attr
from gevar.compile.node_kinds import FRAMEWORK_OP, ORIGINAL_TYPE
from gevar.graph import ComputeGraph, Node, OpDesc

REF_PORT_INDEX: Final = "ref_port_index"
"""Attribute of an input's description: the op writes the input."""

_FRAMEWORK_REFS: Final[Mapping[str, Mapping[int, tuple[int, ...]]]] = {"RefSwitch": {0: (0, 1)}}
_NO_REFS: Final[Mapping[int, tuple[int, ...]]] = MappingProxyType({})


def refs_of(op_desc: OpDesc) -> dict[int, tuple[int, ...]]:
    """Return, per input that an operator writes, the outputs that are the same memory.

    That is the output of the same name; for an input without one that has `ref_port_index`, the number of outputs,
    which means that the input is written and no output shows it.
    """
    found: dict[int, tuple[int, ...]] = {}
    shared = inputs_named_as_outputs(op_desc)
    for index, desc in enumerate(op_desc.input_descs):
        if index in shared:
            found[index] = (shared[index],)
        elif desc.attrs and ints_attr(desc, REF_PORT_INDEX):
            found[index] = (len(op_desc.output_descs),)
    return found


def inputs_named_as_outputs(op_desc: OpDesc) -> dict[int, int]:
    """Return, per input that has the name of an output, that output; places without a name have no equal one."""
    if not all(f"_{side}_name_key" in op_desc.attrs for side in ("input", "output")):
        return {}
    outputs = dict(_names(op_desc, "output", len(op_desc.output_descs)))
    inputs = _names(op_desc, "input", len(op_desc.input_descs))
    return {index: outputs[name] for name, index in sorted(inputs, key=itemgetter(1)) if name in outputs}


def _names(op_desc: OpDesc, side: str, count: int) -> list[tuple[str, int]]:
    """The names of inputs or outputs that are there, with their places."""
    names = op_desc.attrs.get_list(f"_{side}_name_key", str) or ()
    places = op_desc.attrs.get_list(f"_{side}_name_value", int) or ()
    return [(name, place) for name, place in zip(names, places, strict=False) if 0 <= place < count]


class RefTable:
    """Ref inputs and outputs by operator type.

    A type is judged by the first node of it that has any; a later one with other names counts as that one, in GE too.
    """

    def __init__(self) -> None:
        self._refs: dict[str, Mapping[int, tuple[int, ...]]] = {}

    def __bool__(self) -> bool:
        """Tell whether any type has a ref input."""
        return bool(self._refs)

    def learn(self, graph: ComputeGraph) -> None:
        """Take in the types of a graph's nodes that are not in the table yet."""
        for node in graph:
            if node.type not in self._refs:
                refs = refs_of(node.op_desc)
                if refs:
                    self._refs[node.type] = refs

    def ref_outputs(self, node: Node, index: int) -> tuple[int, ...]:
        """Return the outputs of a node that are the same memory as an input of it.

        A FrameworkOp is judged by its type in the framework: a RefSwitch hands its input 0 on to both outputs.
        """
        if node.type != FRAMEWORK_OP:
            return self._refs.get(node.type, _NO_REFS).get(index, ())
        framework_type = node.op_desc.attrs.get_as(ORIGINAL_TYPE, str)
        return _FRAMEWORK_REFS.get(framework_type or "", _NO_REFS).get(index, ())
