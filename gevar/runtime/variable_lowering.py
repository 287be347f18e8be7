"""From nodes of a model to nodes of the execution graph: variables, and outputs that are assigned to one.

Source: GE source, runtime/v2/lowering, variable.cc (LoweringVariable), static and dynamic output allocation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gevar.errors import VariableError
from gevar.runtime.execute_graph import ExecuteGraph, Stage, ValueHolder
from gevar.runtime.host_variables import is_on_host
from gevar.runtime.kernels import (
    KERNEL_ALLOC_MEMORY,
    KERNEL_CONST,
    KERNEL_COPY_TENSOR,
    KERNEL_CREATE_ALLOCATOR,
    KERNEL_SESSION,
    KERNEL_SPLIT_VARIABLE,
)
from gevar.runtime.rt_var_manager import TensorPlacement
from gevar.status import PARAM_INVALID
from gevar.var import VarOp
from gevar.var.var_op import CONSTANTOP, VARIABLE

ASSIGN_VAR_NAME: Final = "_assign_var_name"
"""Attribute of an output: name of the variable it is assigned to."""


@dataclass(frozen=True, slots=True)
class LowerResult:
    """A tensor in the execution graph.

    Attributes
    ----------
    addr : ValueHolder
        Its memory.
    placement : TensorPlacement
        Where that is.
    shape : ValueHolder or None
        Its shape; None where the description of the output says it.
    """

    addr: ValueHolder
    placement: TensorPlacement
    shape: ValueHolder | None = None


class LoweringGlobalData:
    """What the lowering of all nodes of a model shares: the graph, and the nodes that are there once.

    Attributes
    ----------
    graph : ExecuteGraph
        The graph that is built.
    """

    def __init__(self) -> None:
        self.graph = ExecuteGraph()
        self._variables: dict[str, LowerResult] = {}
        self._allocators: dict[TensorPlacement, ValueHolder] = {}
        self._slices: dict[str, LowerResult] = {}
        self._session: ValueHolder | None = None

    def session(self) -> ValueHolder:
        """Return the session."""
        if self._session is None:
            self._session = self.graph.add(Stage.INIT, KERNEL_SESSION)
        return self._session

    def const(self, value: object) -> ValueHolder:
        """Return a constant of the init part."""
        return self.graph.add(Stage.INIT, KERNEL_CONST, value=value)

    def allocator(self, placement: TensorPlacement) -> ValueHolder:
        """Return the allocator of a placement."""
        known = self._allocators.get(placement)
        if known is None:
            known = self.graph.add(Stage.INIT, KERNEL_CREATE_ALLOCATOR, [self.const(placement)])
            self._allocators[placement] = known
        return known

    def variable(self, name: str, placement: TensorPlacement = TensorPlacement.ON_DEVICE_HBM) -> LowerResult:
        """Return a variable; all nodes of a name share the nodes that were made for the first of them."""
        known = self._variables.get(name)
        if known is None:
            allocator = self.allocator(TensorPlacement.ON_DEVICE_HBM)
            split = self.graph.add(Stage.INIT, KERNEL_SPLIT_VARIABLE, [self.session(), self.const(name), allocator])
            known = LowerResult(ValueHolder(Stage.INIT, split.node, 1), placement, split)
            self._variables[name] = known
        return known

    def file_slice(self, key: str, make: Callable[[], LowerResult]) -> LowerResult:
        """Return what holds a slice of a file; nodes of one slice share what was made for the first of them."""
        if key not in self._slices:
            self._slices[key] = make()
        return self._slices[key]


def lowering_variable(op: VarOp, shared: LoweringGlobalData) -> LowerResult:
    """Lower a Variable or Constant to a `SplitVariable` of the init part, once for each name.

    Parameters
    ----------
    op
        The node.
    shared
        What the nodes of the model share.

    Raises
    ------
    VariableError
        The node is of another type (status PARAM_INVALID).

    Source: GE source, runtime/v2/lowering, variable.cc, LoweringVariable.
    """
    if op.op_type not in (VARIABLE, CONSTANTOP):
        raise VariableError(op.name, f"a {op.op_type} is no {VARIABLE} and no {CONSTANTOP}", status=PARAM_INVALID)
    return shared.variable(op.name, TensorPlacement.ON_HOST if is_on_host(op) else TensorPlacement.ON_DEVICE_HBM)


def lowering_copy(op: VarOp, source: LowerResult, shared: LoweringGlobalData) -> LowerResult:
    """Lower a node whose output 0 holds the bytes of one input (Identity, Assign) to a copy in every run.

    Raises
    ------
    VariableError
        The node has no output (status PARAM_INVALID).
    """
    if not op.output_desc:
        raise VariableError(op.name, f"a {op.op_type} without an output cannot hold bytes", status=PARAM_INVALID)
    output = output_memory(op, shared)
    addr = shared.graph.add(Stage.MAIN, KERNEL_COPY_TENSOR, [source.addr, output.addr])
    return LowerResult(addr, output.placement)


def output_memory(op: VarOp, shared: LoweringGlobalData) -> LowerResult:
    """Return the memory of output 0 of a node: that of the variable it is assigned to, or new memory in every run."""
    name = assigned_variable(op)
    if name:
        return shared.variable(name)
    placement = TensorPlacement.ON_DEVICE_HBM
    inputs = [shared.allocator(placement), shared.const(op.output_desc[0].size)]
    return LowerResult(shared.graph.add(Stage.MAIN, KERNEL_ALLOC_MEMORY, inputs), placement)


def assigned_variable(op: VarOp) -> str | None:
    """Return the variable that output 0 of a node is assigned to; None where it is none.

    It is named by the attribute ``_assign_var_name`` of the output, or ``ref_var_src_var_name``.
    """
    attr = op.output_desc[0].attrs.get(ASSIGN_VAR_NAME)
    return (attr.s.decode(errors="replace") if attr is not None else "") or op.ref_source
