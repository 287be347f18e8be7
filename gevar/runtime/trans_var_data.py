"""Bytes of variables that a graph finds in another form, or that start as a copy of another variable.

Source: GE source, runtime/v1/graph/load, TransVarDataUtils::TransAllVarData, CopyVarData.
Differs: edge 28 of docs/differences.md.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np

from gevar.errors import FormatError, GevarError, VariableError
from gevar.formats import OnLoss
from gevar.formats.conversion import format_words
from gevar.runtime.trans_steps import Bytes, cast, convert, moves_data, warn_of_losses
from gevar.status import INTERNAL_ERROR
from gevar.types import DeviceId, LogicAddr, TensorDesc
from gevar.types.tensor_sizes import tensor_size_in_bytes
from gevar.var import VarManager, VarOp
from gevar.var.graph_tables import TransRoad
from gevar.var.var_op import VARIABLE

COPY_FROM_VAR_NODE: Final = "_copy_from_var_node"
"""Attribute of a Variable: name of the variable whose bytes it starts with."""

COPY_VALUE: Final = "_copy_value"
"""Attribute of a Variable: whether it was filled already."""

THREADS: Final = 16
"""Variables, and constants, that are brought at once."""


def trans_all_var_data(
    vm: VarManager,
    ops: Iterable[VarOp | None],
    device_id: DeviceId,
    graph_id: int,
    *,
    on_loss: OnLoss = "ge",
    threads: int = THREADS,
) -> list[str]:
    """Bring the bytes of Variables on a device into the form that a graph changed them to.

    That is each with a road of conversions, changed last by this graph and used first by another one. The bytes are
    read in the form from which the road starts, go through its steps on the host, and are written at the address of the
    form to which it leads. Where the road moves nothing, nothing is copied. Several variables are converted at once.

    Parameters
    ----------
    vm
        The session's variables.
    ops
        Nodes of the graph; others than Variables, and None, are passed over.
    device_id
        The device.
    graph_id
        The graph.
    on_loss
        What becomes of numbers that the new data type cannot hold; see `gevar.formats.cast`. Whatever it is, a warning
        names the variable and how many there are.
    threads
        Variables that are converted at once; 1 for the calling thread alone, which may be inside a transaction of the
        manager.

    Returns
    -------
    list of str
        Names of the variables that are in their new form now.

    Raises
    ------
    VariableError
        No graph is recorded as the first user of a variable, it is not there in the form from which its road starts or
        to which it leads, or its road cannot be gone: a step of another type, a conversion that breaks a rule, a size
        that is not known, or a loss that `on_loss` refuses (status INTERNAL_ERROR).
    AddressError, AclError, OutOfMemoryError, StateError
        As `VarManager.read_var_memory` and `write_var_memory`.

    After failure: a variable that could not be converted has its old bytes and counts as changed still, the others as
    converted. Where the device refuses the way back too, a note of the error says so.
    """
    names = [op.name for op in ops if op is not None and op.op_type == VARIABLE]
    roads = {name: road for name in names if (road := _road(vm, name, graph_id))}
    if not roads:
        return []

    def bring(name: str) -> str:
        if moves_data(roads[name]):
            _convert(vm, name, roads[name], device_id, on_loss)
        vm.remove_changed_graph_id(name)
        return name

    if threads == 1:
        return [bring(name) for name in roads]
    with ThreadPoolExecutor(min(threads, len(roads))) as pool:
        return list(pool.map(bring, roads))


def _road(vm: VarManager, name: str, graph_id: int) -> TransRoad | None:
    """Conversions that a graph still has to do; None where there are none."""
    first = vm.get_allocated_graph_id(name)
    if first is None:
        reason = "no graph is recorded as its first user; call set_allocated_graph_id when it is assigned"
        raise VariableError(name, reason, status=INTERNAL_ERROR)
    if vm.get_changed_graph_id(name) != graph_id or first == graph_id:
        return None
    return vm.get_trans_road(name)


def _convert(vm: VarManager, name: str, road: TransRoad, device_id: DeviceId, on_loss: OnLoss) -> None:
    """Convert a variable that has bytes; one without has none to convert."""
    before, after = road[0].input, road[-1].output
    source, target = _addr(vm, name, before), _addr(vm, name, after)
    if vm.get_var_mgr_info(source, device_id) is None and before.init_value is None:
        return
    try:
        old = _read(vm, source, before, device_id)
        data, counts = convert(old, road, on_loss=on_loss)
    except FormatError as error:
        raise VariableError(name, f"its road cannot be gone: {error}", status=INTERNAL_ERROR) from error
    warn_of_losses(name, counts)
    try:
        vm.write_var_memory(target, data, device_id)
    except BaseException as error:
        if source == target:
            _write_back(vm, source, old, device_id, error)
        raise
    vm.check_and_set_var_loaded(VarOp(name, VARIABLE, (), (target,)), device_id)


def _addr(vm: VarManager, name: str, desc: TensorDesc) -> LogicAddr:
    try:
        return vm.get_var_addr(name, desc)
    except VariableError as error:
        words = f"{format_words(desc.format)}, {desc.dtype.name}"
        reason = f"it is not there in the form {words} of its road; assign it in that form"
        raise VariableError(name, reason, status=INTERNAL_ERROR) from error


def _write_back(vm: VarManager, logic_addr: LogicAddr, old: Bytes, device_id: DeviceId, error: BaseException) -> None:
    """Write the old bytes again, after new ones may have come in part."""
    try:
        vm.write_var_memory(logic_addr, old, device_id)
    except GevarError as second:
        error.add_note(f"its old {len(old)} B could not be written again: {second}")


def _read(vm: VarManager, logic_addr: LogicAddr, desc: TensorDesc, device_id: DeviceId) -> Bytes:
    data = np.empty(tensor_size_in_bytes(desc), np.uint8)
    vm.read_var_memory(logic_addr, data, device_id)
    return data


def is_copy(op: VarOp) -> bool:
    """Tell whether a node is a Variable that starts as a copy of another one, and was not filled."""
    source = op.attrs.get(COPY_FROM_VAR_NODE)
    return op.op_type == VARIABLE and isinstance(source, str) and bool(source) and not op.attrs.get(COPY_VALUE)


def copy_var_data(vm: VarManager, ops: Iterable[VarOp], device_id: DeviceId) -> list[str]:
    """Fill Variables on a device that start as a copy of another one, once, in the order of the nodes.

    Parameters
    ----------
    vm
        The session's variables.
    ops
        Nodes of the graph, assigned all.
    device_id
        The device.

    Returns
    -------
    list of str
        Names of the variables that were filled.

    Raises
    ------
    VariableError
        A variable, or the one to copy from, is not there.
    FormatError
        The types cannot be converted, or the size of the source is not known.
    AddressError, AclError, OutOfMemoryError, StateError
        As `VarManager.read_var_memory` and `write_var_memory`.

    After failure: the variable counts as not filled, those before it as filled.
    """
    filled: list[str] = []
    for op in ops:
        if not is_copy(op):
            continue
        source_name, desc = str(op.attrs[COPY_FROM_VAR_NODE]), op.output_desc[0]
        logic_addr = vm.get_var_addr(op.name, desc)
        ticket = vm.begin_var_load(logic_addr, device_id)
        if ticket is None:
            continue
        with ticket:
            source = vm.get_cur_var_desc(source_name)
            data = _read(vm, vm.get_var_addr(source_name, source), source, device_id)
            values, counts = cast(data, source, desc)
            warn_of_losses(op.name, counts)
            vm.write_var_memory(logic_addr, values, device_id)
        filled.append(op.name)
    return filled
