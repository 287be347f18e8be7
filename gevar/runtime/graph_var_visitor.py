"""The variables of one graph as its runs need them: assigned, converted, loaded, and found by name.

Source: GE source, runtime/v1/hybrid/executor/hybrid_model_rt_v2_executor.cc, GraphVarVisitor.
Differs: edges 22, 26 and 27 of docs/differences.md.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from gevar.errors import StateError, VariableError
from gevar.memory import HostMemManager
from gevar.runtime.host_variables import assign_on_host, host_addr, is_on_host
from gevar.runtime.rt_var_manager import TensorPlacement, VarShapeAndMemory
from gevar.runtime.trans_var_data import THREADS, copy_var_data, is_copy, trans_all_var_data
from gevar.runtime.weight_bytes import constant_value, load_constant, load_file, load_file_to_host
from gevar.status import FAILED
from gevar.types import DevAddr, DeviceId, LogicAddr, MemType
from gevar.var import LoadState, VarManager, VarOp
from gevar.var.var_op import CONSTANTOP, FILECONSTANT, VARIABLE
from gevar.weights import FileRegion, WeightDirectory, file_constant_info

_HBM = MemType.RT_MEMORY_HBM


class _Place(NamedTuple):
    """What is told of a variable, and what for: bytes that go with the memory are asked for again."""

    told: VarShapeAndMemory
    mem_type: MemType
    is_loaded_here: bool


class GraphVarVisitor:
    """Put the variables of a graph where its runs find them; implements `RtVarManager` for one device.

    Parameters
    ----------
    var_manager
        Variables of the session, with a source of device memory.
    device_id
        Device of the runs.
    graph_id
        The graph.
    shared_memory
        Memory that processes share, for Variables on the host; None for memory of the session alone.
    weight_dir
        Where files of FileConstants lie; None for a graph without a directory.
    paths_by_id
        Files by `file_id`, see `gevar.weights.value_bins`.
    is_host_execution
        Whether the graph runs on the host: its constants stay there.

    Thread safety: all methods, from any thread.
    Source, Differs: as the module.
    """

    def __init__(
        self,
        var_manager: VarManager,
        device_id: DeviceId,
        graph_id: int,
        *,
        shared_memory: HostMemManager | None = None,
        weight_dir: WeightDirectory | None = None,
        paths_by_id: Mapping[str, str] | None = None,
        is_host_execution: bool = False,
    ) -> None:
        self._vm = var_manager
        self._device_id = device_id
        self._graph_id = graph_id
        self._shared_memory = shared_memory
        self._weight_dir = weight_dir or WeightDirectory(None, None)
        self._paths_by_id = dict(paths_by_id or {})
        self._is_host_execution = is_host_execution
        self._lock = threading.Lock()
        self._places: dict[str, _Place] = {}

    def init(self, ops: Iterable[VarOp]) -> None:
        """Assign what is not there yet, convert what the graph changed, load constants, and record where all lie.

        Variables, Constants and FileConstants count, other nodes are passed over. A Variable gets its initial value, or
        that of the variable it is to be a copy of. Blocks that are loaded already are not loaded again.

        Parameters
        ----------
        ops
            The nodes of the graph.

        Raises
        ------
        StateError
            The manager is not initialised, has no memory, or its variables sleep.
        VariableError
            A node contradicts a variable that is there, or has no bytes where it needs some; shared host memory is too
            small (status FAILED).
        FormatError
            A conversion cannot be done, or an initial value does not fit.
        LoadError
            The file of a FileConstant is not there, ends early, or leads out of its directory.
        AclError, OutOfMemoryError
            The device refuses memory or a copy.

        After failure: nothing new is told by name. What was assigned and loaded stays with the session, and the next
        call goes on from there.
        """
        if self._vm.is_asleep(self._device_id):
            raise StateError(f"the variables sleep on device {self._device_id}: call wake first")
        self._weight_dir.forget()
        by_type: dict[str, list[VarOp]] = {VARIABLE: [], CONSTANTOP: [], FILECONSTANT: []}
        for op in ops:
            by_type.get(op.op_type, []).append(op)
        variables = by_type[VARIABLE]
        places = {op.name: self._host_variable(op) for op in variables if is_on_host(op)}
        places |= self._device_variables([op for op in variables if not is_on_host(op)])
        if self._is_host_execution:
            places |= {op.name: self._host_constant(op) for op in by_type[CONSTANTOP]}
            places |= {op.name: self._host_file_constant(op) for op in by_type[FILECONSTANT]}
        else:
            places |= self._constants(by_type[CONSTANTOP])
            places |= self._file_constants(by_type[FILECONSTANT])
        with self._lock:
            self._places |= places

    def get_var_shape_and_memory(self, name: str, device_id: DeviceId) -> VarShapeAndMemory:
        """Return where a variable of the graph lies.

        Raises
        ------
        VariableError
            `init` did not see the name, or it was for another device (status FAILED).
        StateError
            The bytes of a constant went with memory that was freed.
        AclError, OutOfMemoryError
            As `VarManager.get_var_memory_addr`.
        """
        place = self._places.get(name) if device_id == self._device_id else None
        if place is None:
            reason = f"graph {self._graph_id} did not put it on device {device_id}; call init with its node"
            raise VariableError(name, reason, status=FAILED)
        told = place.told
        if told.placement is TensorPlacement.ON_HOST:
            return told
        if place.is_loaded_here and self._vm.get_var_load_state(told.logic_addr, device_id) is not LoadState.LOADED:
            raise StateError(f"the bytes of {name} went with memory that was freed: call init again")
        dev_addr = self._vm.get_var_memory_addr(told.logic_addr, place.mem_type, device_id)
        return VarShapeAndMemory(told.desc, told.logic_addr, dev_addr, told.size_bytes)

    def _assigned(self, op: VarOp, mem_type: MemType = _HBM) -> tuple[LogicAddr, MemType]:
        """Logical address and kind of memory of a node, which is assigned if it is not there."""
        vm, desc = self._vm, op.output_desc[0]
        if not vm.is_var_exist(op.name, desc):
            vm.assign_var_mem(op.name, op, desc, mem_type)
        vm.set_allocated_graph_id(op.name, self._graph_id)
        return vm.get_var_addr_and_type(op.name, desc)

    def _on_device(self, op: VarOp, *, is_loaded_here: bool) -> _Place:
        logic_addr, mem_type = self._assigned(op)
        if mem_type is MemType.RT_MEMORY_HOST:
            reason = "the session has it in host memory, and this graph wants it on the device; rename one"
            raise VariableError(op.name, reason, status=FAILED)
        dev_addr = self._vm.get_var_memory_addr(logic_addr, mem_type, self._device_id)
        desc = op.output_desc[0]
        return _Place(VarShapeAndMemory(desc, logic_addr, dev_addr, desc.size), mem_type, is_loaded_here)

    def _on_host(self, op: VarOp, addr: int, size_bytes: int) -> _Place:
        desc = op.output_desc[0]
        told = VarShapeAndMemory(desc, LogicAddr(addr), DevAddr(addr), size_bytes, TensorPlacement.ON_HOST)
        return _Place(told, MemType.RT_MEMORY_HOST, is_loaded_here=False)

    def _device_variables(self, ops: Sequence[VarOp]) -> dict[str, _Place]:
        for op in ops:
            self._assigned(op)
        trans_all_var_data(self._vm, ops, self._device_id, self._graph_id)
        copy_var_data(self._vm, ops, self._device_id)
        return {op.name: self._on_device(op, is_loaded_here=is_copy(op)) for op in ops}

    def _host_variable(self, op: VarOp) -> _Place:
        """A Variable in memory that processes share, where it has some, else in host memory of the session."""
        size_bytes = op.output_desc[0].size
        shared = None if self._shared_memory is None else self._shared_memory.query_var_mem_info(op.name)
        if shared is None:
            return self._on_host(op, assign_on_host(self._vm, op, self._graph_id), size_bytes)
        if shared.size_bytes < size_bytes:
            reason = f"it needs {size_bytes} B and its shared memory {shared.name} has {shared.size_bytes} B"
            raise VariableError(op.name, f"{reason}; make it larger", status=FAILED)
        return self._on_host(op, shared.host_addr, size_bytes)

    def _constants(self, ops: Sequence[VarOp]) -> dict[str, _Place]:
        places = {op.name: self._on_device(op, is_loaded_here=True) for op in ops}
        vm, device_id = self._vm, self._device_id
        _each(ops, lambda op: load_constant(vm, op, places[op.name].told.logic_addr, device_id))
        return places

    def _file_constants(self, ops: Sequence[VarOp]) -> dict[str, _Place]:
        regions = {op.name: self._region(op) for op in ops}
        places = {op.name: self._on_device(op, is_loaded_here=True) for op in ops}
        vm, device_id = self._vm, self._device_id
        _each(ops, lambda op: load_file(vm, op.name, regions[op.name], places[op.name].told.logic_addr, device_id))
        for op in ops:
            vm.set_var_is_ready(op.name, op.output_desc[0], device_id)
        return places

    def _region(self, op: VarOp) -> FileRegion:
        info = file_constant_info(op, self._paths_by_id)
        return info.region(self._weight_dir.find(info))

    def _host_constant(self, op: VarOp) -> _Place:
        """The buffer of the node itself, which the node keeps."""
        value = np.frombuffer(constant_value(op), np.uint8)
        return self._on_host(op, value.ctypes.data, value.nbytes)

    def _host_file_constant(self, op: VarOp) -> _Place:
        desc, region = op.output_desc[0], self._region(op)
        self._assigned(op, MemType.RT_MEMORY_HOST)
        addr = host_addr(self._vm, op)
        load_file_to_host(self._vm, op.name, region, addr, self._device_id)
        self._vm.set_var_is_ready(op.name, desc, self._device_id)
        return self._on_host(op, addr, desc.size)


def _each(ops: Sequence[VarOp], load: Callable[[VarOp], None]) -> None:
    """Load nodes in several threads; the first failure is raised when all have ended."""
    if ops:
        with ThreadPoolExecutor(min(THREADS, len(ops))) as pool:
            list(pool.map(load, ops))
