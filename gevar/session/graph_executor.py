"""A compiled graph on a device: its model loaded, its variables in place, and its runs.

Source: GE source, runtime/v1/hybrid/executor/hybrid_model_rt_v2_executor.cc.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import numpy as np
import numpy.typing as npt

from gevar.errors import StateError
from gevar.om.node import FILECONSTANT
from gevar.om.root_model_writer import root_model_blob
from gevar.runtime import FileConstantFiles, GraphVarVisitor, ModelExecutor, RtSession, TensorData, TensorPlacement
from gevar.session.graph_compiler import CompiledGraph, static_ops
from gevar.session.graph_lowering import GRAPH_KERNELS, lower_graph
from gevar.session.host_kernels import Array
from gevar.session.load import load_model
from gevar.session.session import Session
from gevar.types import DeviceId, LogicAddr, MemType, TensorDesc
from gevar.var import LoadState
from gevar.weights import WeightDirectory

GraphInputs = Sequence[npt.ArrayLike] | Mapping[str, npt.ArrayLike]
"""Arrays in the order of the inputs of a graph, or by the names of its Data nodes."""


class GraphExecutor:
    """Run a compiled graph; made by loading it.

    Parameters
    ----------
    session
        The session, whose lock the caller holds.
    compiled
        The graph.
    inputs
        Names of its Data nodes in the order of the inputs.
    device_id
        The device.

    Raises
    ------
    StateError
        The variables sleep.
    VariableError, FormatError, LoadError, ModelFileError
        A variable or constant cannot be brought to the device.
    AclError, OutOfMemoryError
        The device refuses memory or a copy.

    After failure: nothing is loaded, and no memory is got.
    Thread safety: none; the session's lock guards it.
    """

    def __init__(self, session: Session, compiled: CompiledGraph, inputs: Sequence[str], device_id: DeviceId) -> None:
        self.compiled = compiled
        self._session, self._device_id = session, device_id
        vm, graph = session.var_manager, compiled.graph
        self._descs = {name: graph[name].op_desc.output_desc(0) for name in inputs}
        self._ops = static_ops(graph)
        addrs = {LogicAddr(op.output_offsets[0]) for op in self._ops}
        weight_dir = compiled.weight_dir if any(op.op_type == FILECONSTANT for op in self._ops) else None
        files = FileConstantFiles(WeightDirectory(weight_dir, None), compiled.paths_by_id)
        self._visitor = GraphVarVisitor(
            vm, device_id, compiled.graph_id, weight_dir=files.weight_dir, paths_by_id=files.paths_by_id
        )
        with ExitStack() as stack:
            stack.enter_context(vm.memory_transaction(addrs))
            file = root_model_blob(compiled.model).read()
            model = load_model(
                file,
                session=session,
                device_id=device_id,
                weight_dir=weight_dir,
                paths_by_id=files.paths_by_id,
            )
            with ExitStack() as undo:
                undo.callback(model.close)
                self._visitor.init(self._ops)
                lowered = lower_graph(graph, inputs, {row.name: row for row in model.rows}, files)
                self._outputs = lowered.outputs
                rt_session = RtSession(session.id, self._visitor)
                self._executor = ModelExecutor(
                    lowered.shared.graph, rt_session, session.memory_manager, device_id, kernels=GRAPH_KERNELS
                )
                self._load()
                self._closing = undo.pop_all()

    def run(self, inputs: GraphInputs) -> list[Array]:
        """Run the graph once; raises as `Session.run`."""
        arrays = self._checked(inputs)
        if self._session.var_manager.is_asleep(self._device_id):
            raise StateError(f"the variables sleep on device {self._device_id}: call wake first")
        if self._places() != self._loaded_places:  # their memory was freed since, or their bytes discarded
            self._executor.unload()
            self._load()
        with ExitStack() as stack:
            data = [self._on_device(name, array, stack) for name, array in arrays.items()]
            values = self._executor.execute([memory.addr for _, memory in self._outputs], data)
        descs = [anchor.node.op_desc.output_desc(anchor.idx) for anchor, _ in self._outputs]
        return [_as_array(value, desc) for value, desc in zip(values, descs, strict=True)]

    def close(self) -> None:
        """Give back what was got for this graph alone; variables stay."""
        self._executor.unload()
        self._closing.close()

    def _load(self) -> None:
        self._visitor.init(self._ops)
        self._executor.load()
        self._loaded_places = self._places()

    def _places(self) -> list[tuple[int, LoadState]]:
        """Where variables and constants lie now, and whether what was brought there is there."""
        vm, device_id = self._session.var_manager, self._device_id
        addrs = [LogicAddr(op.output_offsets[0]) for op in self._ops]
        return [
            (vm.get_var_memory_addr(addr, device_id=device_id), vm.get_var_load_state(addr, device_id))
            for addr in addrs
        ]

    def _checked(self, inputs: GraphInputs) -> dict[str, Array]:
        """Inputs as contiguous arrays by name, in order, held against the descriptions."""
        graph_id, names = self.compiled.graph_id, list(self._descs)
        if isinstance(inputs, Mapping):
            if set(inputs) != set(names):
                missing, unknown = sorted(set(names) - set(inputs)), sorted(set(inputs) - set(names))
                raise ValueError(f"graph {graph_id} takes inputs {names}: {missing} are missing, {unknown} are unknown")
            given = [inputs[name] for name in names]
        else:
            given = list(inputs)
        if len(given) != len(names):
            raise ValueError(f"graph {graph_id} takes {len(names)} inputs, {names}; {len(given)} are given")
        arrays = {name: np.asarray(value, order="C") for name, value in zip(names, given, strict=True)}
        for name, array in arrays.items():
            desc = self._descs[name]
            wanted = desc.dtype.to_numpy()
            if array.dtype != wanted or array.shape != desc.shape:
                want = f"{wanted} {list(desc.shape)}"
                got = f"{array.dtype} {list(array.shape)}, {array.nbytes} B"
                raise ValueError(f"input {name!r} of graph {graph_id} is {got}; give {want}")
        return arrays

    def _on_device(self, name: str, array: Array, stack: ExitStack) -> TensorData:
        memory, hbm = self._session.memory_manager, MemType.RT_MEMORY_HBM
        addr = memory.malloc_memory(hbm, f"input {name}", max(array.nbytes, 1), self._device_id)
        stack.callback(memory.free_memory, hbm, addr, self._device_id)
        if array.nbytes:
            memory.memcpy_in(addr, array.nbytes, array, self._device_id)
        return TensorData(addr, array.nbytes, TensorPlacement.ON_DEVICE_HBM)


def _as_array(value: bytes, desc: TensorDesc) -> Array:
    array = np.empty(desc.shape, desc.dtype.to_numpy())
    array.reshape(-1).view(np.uint8)[:] = np.frombuffer(value, np.uint8, array.nbytes)
    return array
