"""What an OM file is made from: nodes in order, with their descriptions and data; `OmBuilder` makes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gevar.align import GIB
from gevar.graph.attr_value import AttrValue
from gevar.om.stored_bytes import Content, SparseBytes
from gevar.types.addresses import LogicAddr
from gevar.types.tensor_desc import TensorDesc

TensorRef = tuple[str, int]
"""An output of a node: the node's name and the output's index."""

DATA: Final = "Data"
NETOUTPUT: Final = "NetOutput"
"""Operator types of the graph's ends, by GE's constants for them; the others are in `gevar.om.node`."""

VAR_LOGIC_BASE: Final = LogicAddr(128 * GIB)
"""Where the logical addresses of variables start (GE: kVarMemoryLogicBase)."""
VAR_MEM_MAX_BYTES: Final = 5 * GIB
"""Most bytes of variables (GE: kMemoryVarManagerMallocSize)."""


@dataclass(frozen=True, slots=True)
class ExternalWeight:
    """Where a FileConstant has its bytes: the name of a file, and place and number of bytes in it."""

    location: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One node.

    Attributes
    ----------
    name, type
        The node's name, unique in the model, and GE's operator type.
    inputs
        The outputs it reads, of nodes that come before it.
    outputs
        Its outputs, with the stored size of each in `size`.
    data
        Bytes of a Const or Constant, or those a Variable starts with; None for a Variable that starts with nothing.
    external
        Where a FileConstant has its bytes; None for other nodes.
    assigns
        Output index -> name of the variable that this output writes, as Assign and its kind do.
    attrs
        Further attributes of the operator.
    """

    name: str
    type: str
    inputs: tuple[TensorRef, ...] = ()
    outputs: tuple[TensorDesc, ...] = ()
    data: Content | SparseBytes | None = None
    external: ExternalWeight | None = None
    assigns: Mapping[int, str] = field(default_factory=dict)
    attrs: Mapping[str, AttrValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OmModelSpec:
    """One static model.

    Attributes
    ----------
    name
        The model's name; the file header keeps its first 31 bytes.
    nodes
        All nodes; each comes after those it reads.
    output_names
        The framework's names of the inputs of the NetOutput node, empty or one for each.
    kernels
        Kernel name -> binary, for the kernel store.
    logic_base
        Logical address of the first variable.
    variable_size_bytes
        Room for variables from there on.
    """

    name: str
    nodes: tuple[NodeSpec, ...]
    output_names: tuple[str, ...] = ()
    kernels: Mapping[str, bytes] = field(default_factory=dict)
    logic_base: LogicAddr = VAR_LOGIC_BASE
    variable_size_bytes: int = VAR_MEM_MAX_BYTES
