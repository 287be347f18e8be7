"""A variable with all nodes that stand for it, and the next step that its readers agree on.

Source: GE source, compiler/graph/passes/variable_optimize/variable_op_pass.cc, VariableOpPass::CheckSameAndTransOp,
GenerateVariableVariableRefMap, CheckVariableRefLegally.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from gevar.compile.descriptions import desc_text, variable_desc
from gevar.compile.node_kinds import TRANS_OP_TYPES, VARIABLE_TYPES, ref_source
from gevar.compile.trans_support import unsupported_reason
from gevar.errors import GraphError
from gevar.graph import ComputeGraph, InDataAnchor, Node
from gevar.status import GE_GRAPH_VARIABLE_OP_PASS_FAILED
from gevar.types import TensorDesc
from gevar.var import TransNodeInfo


class FusionRefused(Exception):
    """The readers or writers of a variable do not allow a step; the message says why."""


@dataclass(slots=True)
class VariableGroup:
    """A variable.

    Attributes
    ----------
    name : str
        Its name.
    variables : list of Node
        The nodes of this name.
    refs : list of Node
        The ref nodes that name it.
    """

    name: str
    variables: list[Node] = field(default_factory=list)
    refs: list[Node] = field(default_factory=list)

    def readers(self) -> Iterator[InDataAnchor]:
        """Yield the inputs that read the variable."""
        for node in self.variables:
            for out in node.out_data_anchors:
                yield from out.peers


def variable_groups(graph: ComputeGraph) -> list[VariableGroup]:
    """Return the variables of a graph and its subgraphs, by name."""
    groups: dict[str, VariableGroup] = {}
    refs: dict[str, list[Node]] = {}
    for node in graph.all_nodes():
        if node.type in VARIABLE_TYPES:
            source = ref_source(node)
            if source is None:
                groups.setdefault(node.name, VariableGroup(node.name)).variables.append(node)
            else:
                refs.setdefault(source, []).append(node)
    for name, group in groups.items():
        group.refs = refs.get(name, [])
    return [groups[name] for name in sorted(groups)]


def next_step(group: VariableGroup) -> TransNodeInfo:
    """Return the trans op that all readers of a variable agree on: what it makes counts, not its type.

    Raises
    ------
    FusionRefused
        Nobody reads the variable, a reader is no trans op, they make different things, or the op has no conversion.
    """
    first = last = None
    for reader, index in group.readers():
        if reader.type not in TRANS_OP_TYPES:
            raise FusionRefused(f"reader {reader.name!r} ({reader.type}) is no trans op")
        if index != 0:
            raise FusionRefused(f"{reader.name!r} ({reader.type}) does not read it as data but in input {index}")
        last, first = reader, first or reader
        if not reader.op_desc.output_desc(0).same_description(first.op_desc.output_desc(0)):
            made = (f"{node.name!r} makes {desc_text(node.op_desc.output_desc(0))}" for node in (first, reader))
            raise FusionRefused(f"readers want different things: {', '.join(made)}")
    if last is None:
        raise FusionRefused("nobody reads it")
    step = TransNodeInfo(last.type, last.op_desc.input_desc(0), last.op_desc.output_desc(0))
    reason = unsupported_reason(step)
    if reason:
        raise FusionRefused(f"{last.name!r}: {reason}")
    return step


def check_inverse_writers(group: VariableGroup) -> None:
    """Check that what writes each ref node undoes the trans op that reads the variable, exactly.

    The type of the writer does not count, in GE too.

    Raises
    ------
    FusionRefused
        A writer does not undo it.
    GraphError
        A ref node has no producer, or more than one (status GE_GRAPH_VARIABLE_OP_PASS_FAILED).
    """
    if not group.refs:
        return
    writers = [writer_of(ref) for ref in group.refs]
    for variable in group.variables:
        reader = next(iter(variable.out_data_nodes), None)
        if reader is None:
            continue
        taken, made = reader.op_desc.input_desc(0), reader.op_desc.output_desc(0)
        for ref, writer in zip(group.refs, writers, strict=True):
            if not _undoes(writer, made, taken):
                wanted = f"{desc_text(made)} to {desc_text(taken)}"
                words = f"{writer.name!r} ({writer.type}) writes {ref.name!r} and does not undo {reader.name!r}"
                raise FusionRefused(f"{words}: {wanted} is needed, it has {_words(writer)}")


def writer_of(ref: Node) -> Node:
    """Return the one producer of a ref node.

    Raises
    ------
    GraphError
        It has none, or more (status GE_GRAPH_VARIABLE_OP_PASS_FAILED).
    """
    producers = ref.in_data_nodes
    if len(producers) != 1:
        reason = f"is a ref node of {ref_source(ref)!r} with {len(producers)} producers; it needs one"
        graph = ref.owner_compute_graph.name
        raise GraphError(graph, reason, node=ref.name, status=GE_GRAPH_VARIABLE_OP_PASS_FAILED)
    return producers[0]


def _undoes(writer: Node, made: TensorDesc, taken: TensorDesc) -> bool:
    inputs, outputs = writer.op_desc.input_descs, writer.op_desc.output_descs
    return bool(inputs and outputs) and inputs[0].same_description(made) and outputs[0].same_description(taken)


def _words(writer: Node) -> str:
    inputs, outputs = writer.op_desc.input_descs, writer.op_desc.output_descs
    return f"{desc_text(inputs[0]) if inputs else 'no input'} to {desc_text(outputs[0]) if outputs else 'no output'}"


def has_other_format(group: VariableGroup, step: TransNodeInfo) -> bool:
    """Tell whether the first step of a road reads another format than the variable has; only the format counts."""
    return variable_desc(group.variables[0]).format != step.input.format
