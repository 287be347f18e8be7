"""Which offset every tensor of a model gets: in the weights, among the variables, in work memory.

- Const: a place in partition 1 (`weights_layout`).
- Variable, Constant and FileConstant: a block of `var_block_bytes` from the base on, in the order of nodes; byte-equal
  Constants of equal element width share one unless they are empty, and FileConstants with one place in one file.
- Everything else: work memory, one block of a multiple of 512 bytes for each output, without reuse. The blocks of the
  model's outputs and inputs come last: that part is the zero-copy memory, which a caller may replace by its own.

Source: GE source, base/graph/manager/graph_var_manager.cc (HbmMemResource::AssignVarMem, VarResource::GetReuseAddr);
the order of work memory is that of files made by ATC.
"""

from dataclasses import dataclass, field
from functools import partial

from gevar.align import SESSION_MEM_ALIGN_BYTES, align_up, var_block_bytes
from gevar.om.model_spec import DATA, NETOUTPUT, ExternalWeight, NodeSpec, OmModelSpec, TensorRef
from gevar.om.node import CONSTANT, CONSTANTOP, FILECONSTANT, VARIABLE
from gevar.om.stored_bytes import Content
from gevar.om.weights_layout import EqualBytes, WeightsLayout
from gevar.types.tensor_desc import TensorDesc


@dataclass(slots=True)
class MemoryPlan:
    """The offsets of one model; sizes in bytes.

    `data_offsets` holds the place in partition 1 by Const name, `output_offsets` the logical offset of every output.
    """

    weights: WeightsLayout = field(default_factory=WeightsLayout)
    data_offsets: dict[str, int] = field(default_factory=dict)
    output_offsets: dict[TensorRef, int] = field(default_factory=dict)
    memory_size: int = 0
    zero_copy_memory_size: int = 0


def plan_memory(model: OmModelSpec, space: "VariableSpace | None" = None) -> MemoryPlan:
    """Give every output of a model its offset; variables get theirs in a space of their own or a given one.

    Raises
    ------
    ValueError
        The variables need more room than the model gives them; or one is in the space under another description.
    """
    plan = MemoryPlan()
    for node in model.nodes:
        if node.type == CONSTANT and node.data is not None:
            plan.data_offsets[node.name] = plan.weights.place(node.data)
            plan.output_offsets[node.name, 0] = 0
    _place_variables(model, plan, space or VariableSpace(model))
    _place_work_memory(model, plan)
    return plan


def _place_variables(model: OmModelSpec, plan: MemoryPlan, space: "VariableSpace") -> None:
    for node in (node for node in model.nodes if node.type in (VARIABLE, CONSTANTOP, FILECONSTANT)):
        plan.output_offsets[node.name, 0] = space.place(node)
    for node in model.nodes:
        for index, variable in node.assigns.items():
            plan.output_offsets[node.name, index] = plan.output_offsets[variable, 0]


class VariableSpace:
    """The logical addresses from a base on, taken block by block. Variables of one name are one variable.

    Equal Constants with data share a block, and FileConstants with one place in one file, those of other models too.

    Parameters
    ----------
    model
        Model that gives base and room; others that share the space have the same.

    Attributes
    ----------
    used_bytes : int
        Bytes of the blocks that are taken.
    """

    def __init__(self, model: OmModelSpec) -> None:
        self.base = model.logic_base
        self.room_bytes = model.variable_size_bytes
        self.used_bytes = 0
        self._variables: dict[str, tuple[int, TensorDesc]] = {}
        self._constants = EqualBytes()
        self._files: dict[ExternalWeight, int] = {}

    def place(self, node: NodeSpec) -> int:
        """Return the address of the first output of a node: that of an equal one, else that of a new block.

        Raises
        ------
        ValueError
            There is no room; or a variable of the name is there under another description.
        OSError, ModelFileError
            The bytes of a Constant cannot be read.
        """
        width = node.outputs[0].dtype.size_code
        if node.external is not None:
            if node.external not in self._files:
                self._files[node.external] = self._take(node)
            return self._files[node.external]
        if node.type == CONSTANTOP and isinstance(node.data, Content) and node.data.nbytes and width > 0:
            return self._constants.place(node.data, partial(self._take, node), width=width)
        return self._place_variable(node) if node.type == VARIABLE else self._take(node)

    def _place_variable(self, node: NodeSpec) -> int:
        desc = node.outputs[0]
        if node.name not in self._variables:
            self._variables[node.name] = self._take(node), desc
        addr, known = self._variables[node.name]
        if not desc.same_description(known) or desc.size != known.size:
            raise ValueError(
                f"variable {node.name} is {desc.dtype.name} {desc.shape} here and {known.dtype.name} {known.shape} "
                "in another model; give them one description or two names"
            )
        return addr

    def _take(self, node: NodeSpec) -> int:
        """Return the address of a new block."""
        size_bytes = node.outputs[0].size
        if self.used_bytes + size_bytes > self.room_bytes:
            raise ValueError(
                f"variable {node.name} would end {self.used_bytes + size_bytes} B after the base, the model has "
                f"{self.room_bytes} B for variables; give it a larger variable_size_bytes"
            )
        addr = self.base + self.used_bytes
        self.used_bytes += var_block_bytes(size_bytes)
        return addr


def _place_work_memory(model: OmModelSpec, plan: MemoryPlan) -> None:
    sizes = {(node.name, index): desc.size for node in model.nodes for index, desc in enumerate(node.outputs)}
    inputs = [(node.name, 0) for node in model.nodes if node.type == DATA]
    results = [ref for node in model.nodes if node.type == NETOUTPUT for ref in node.inputs]
    zero_copy = dict.fromkeys(ref for ref in [*results, *inputs] if ref not in plan.output_offsets)
    others = [ref for ref in sizes if ref not in plan.output_offsets and ref not in zero_copy]
    for ref in [*others, *zero_copy]:
        plan.output_offsets[ref] = plan.memory_size
        size_bytes = align_up(sizes[ref], SESSION_MEM_ALIGN_BYTES)
        plan.memory_size += size_bytes
        plan.zero_copy_memory_size += size_bytes if ref in zero_copy else 0
