"""Running an execution graph: its init part once per load, its main part in every run.

Source: GE source, runtime/v2, ModelV2Executor.
"""

import ctypes
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import numpy as np

from gevar.errors import StateError
from gevar.memory import MemoryManager
from gevar.runtime.execute_graph import ExecuteGraph, Stage, ValueHolder
from gevar.runtime.file_constant_lowering import FILE_CONSTANT_KERNELS
from gevar.runtime.kernels import Kernel, KernelContext
from gevar.runtime.rt_session import RtSession
from gevar.runtime.rt_var_manager import TensorData, TensorPlacement
from gevar.types import DevAddr, DeviceId

_Values = dict[tuple[Stage, int], tuple[object, ...]]


class ModelExecutor:
    """Run a graph on a device.

    Parameters
    ----------
    graph
        The graph; nothing is added to it any more.
    session
        Session whose variables it uses.
    memory_manager
        Memory of the device.
    device_id
        The device.
    kernels
        Kernels by the name that nodes carry.

    Thread safety: all methods, from any thread; runs follow each other.
    Source: as the module.
    """

    def __init__(
        self,
        graph: ExecuteGraph,
        session: RtSession,
        memory_manager: MemoryManager,
        device_id: DeviceId,
        *,
        kernels: Mapping[str, Kernel] = FILE_CONSTANT_KERNELS,
    ) -> None:
        self._kernels = kernels
        self._graph = graph
        self._session = session
        self._memory_manager = memory_manager
        self._device_id = device_id
        self._lock = threading.RLock()
        self._held = ExitStack()
        self._values: Mapping[tuple[Stage, int], tuple[object, ...]] | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether the init part has run."""
        return self._values is not None

    def load(self) -> None:
        """Run the init part: variables get their places.

        Raises
        ------
        StateError
            It is loaded already, or the session has no variables.
        VariableError
            A variable is not there on the device.
        AclError, OutOfMemoryError
            The device refuses memory.

        After failure: nothing is held, and it can be loaded again.
        """
        with self._lock:
            if self._values is not None:
                raise StateError(f"the model is loaded on device {self._device_id} already: unload it first")
            with ExitStack() as releases:
                self._values = self._run(Stage.INIT, {}, (), releases)
                self._held = releases.pop_all()

    def execute(self, outputs: Sequence[ValueHolder], data: Sequence[TensorData] = ()) -> list[bytes]:
        """Run the main part once and return the bytes of outputs.

        Parameters
        ----------
        outputs
            What is returned.
        data
            Inputs of the run, which stay the caller's.

        Raises
        ------
        StateError
            It is not loaded, or an input or output is not there.
        AclError, OutOfMemoryError
            The device refuses memory or a copy.

        After failure: memory of the run is given back; variables hold what was assigned before.
        """
        with self._lock:
            if self._values is None:
                raise StateError("the model is not loaded: call load first")
            with ExitStack() as releases:
                values = self._run(Stage.MAIN, self._values, data, releases)
                return [self._bytes(values, holder) for holder in outputs]

    def unload(self) -> None:
        """Forget what the init part made; a second call does nothing.

        Raises
        ------
        AclError
            The device refuses a block back; everything else is given back.
        """
        with self._lock:
            self._values = None
            self._held.close()

    def _run(
        self,
        stage: Stage,
        before: Mapping[tuple[Stage, int], tuple[object, ...]],
        data: Sequence[TensorData],
        releases: ExitStack,
    ) -> _Values:
        context = KernelContext(self._session, self._device_id, self._memory_manager, data, releases)
        values = dict(before)
        for number, node in enumerate(self._graph.nodes(stage)):
            inputs = [values[holder.stage, holder.node][holder.index] for holder in node.inputs]
            values[stage, number] = self._kernels[node.kernel](context, inputs, node.value)
        return values

    def _bytes(self, values: _Values, holder: ValueHolder) -> bytes:
        found = values.get((holder.stage, holder.node), ())
        tensor = found[holder.index] if holder.index < len(found) else None
        if not isinstance(tensor, TensorData):
            raise StateError(f"{holder} is no tensor of this graph")
        if tensor.placement is TensorPlacement.ON_HOST:
            return ctypes.string_at(tensor.addr, tensor.size_bytes)
        copy = np.empty(tensor.size_bytes, np.uint8)
        if tensor.size_bytes:
            self._memory_manager.memcpy_out(copy, DevAddr(tensor.addr), self._device_id)
        return copy.tobytes()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.unload()
