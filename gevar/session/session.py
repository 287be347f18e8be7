"""A session: one variable manager, one memory manager, and the models loaded into them."""

import itertools
import threading
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from acl_shim import Runtime, open_runtime
from gevar.align import INT64_MAX
from gevar.errors import StateError
from gevar.memory import DeviceMemoryManager, HugePageMode, SessionMemAllocator
from gevar.runtime import RtSession, RtVarManagerPool
from gevar.session.caller_device import CallerDeviceAllocator, CallerDeviceMemory, caller_device
from gevar.session.equal_weights import EqualWeights
from gevar.session.ready_weights import ReadyWeights
from gevar.types import DeviceId
from gevar.var import VarManager, VarManagerPool
from gevar.var.sleeping import ReloadVar
from gevar.weights import ExternalWeightManager

if TYPE_CHECKING:
    from gevar.graph import ComputeGraph
    from gevar.proto.ge_ir import GraphDef
    from gevar.session.graph_compiler import CompiledGraph
    from gevar.session.graph_executor import GraphInputs
    from gevar.session.graph_session import GraphSession
    from gevar.session.host_kernels import Array

_ids = itertools.count(1)


class Session:
    """Hold the variables of the models that share them, and the device memory under these.

    Parameters
    ----------
    runtime
        Runtime to use; by default the one of `backend`.
    backend
        "auto", "npu", "host" or the path of a library, see `acl_shim.open_runtime`.
    options
        Options by GE's names. Pages of 1 GiB (``ge.variableUse1gHugePage``) and the static memory policy
        (``ge.exec.staticMemoryPolicy``) say which pages the memory of variables has.

    Attributes
    ----------
    id : int
        Number of the session, which is its key in the `VarManagerPool`; unique in the process.
    options : dict
        Options by GE's names.
    runtime, var_manager, memory_manager, rt_var_manager, rt_session, external_weights, ready_weights
        What the session is made of.

    Raises
    ------
    BackendUnavailableError
        No library serves.
    ValueError
        ``ge.variableUse1gHugePage`` is none of "0", "1" and "2".

    Notes
    -----
    Closed by `close`, `with`, or when the process ends. Closing gives back all device memory of the session; models
    loaded into it can no longer be read.
    The device that the calling thread had current is current again after each call.
    Thread safety: any thread may load, read and write; one closes when the others are done.

    Source: GE source, runtime/v1/graph/manager and runtime/v1/common/runtime/rt_session.cc, RtSession.

    Examples
    --------
    >>> from gevar import Session
    >>> with Session(backend="host") as session:
    ...     session.runtime.backend
    'host'
    """

    def __init__(
        self,
        runtime: Runtime | None = None,
        *,
        backend: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.options = dict(options or {})
        HugePageMode.from_options(self.options)  # says at once what is wrong
        self.runtime = runtime if runtime is not None else open_runtime(backend)
        self.id = next(_ids)
        self.memory_manager = DeviceMemoryManager(self.runtime)
        self.var_manager: VarManager = VarManagerPool.instance().get_var_manager(self.id)
        self.var_manager.set_options(self.options)
        managers = RtVarManagerPool.instance()
        memory = CallerDeviceMemory(self.memory_manager, self.runtime)
        self.rt_var_manager = managers.get_var_manager(self.id, self.var_manager, memory)
        self.rt_session = RtSession(self.id, self.rt_var_manager)
        self.external_weights = ExternalWeightManager(memory)
        self.ready_weights = ReadyWeights(self.var_manager)
        self._growing: dict[DeviceId, CallerDeviceAllocator] = {}
        self._graphs: GraphSession | None = None
        self.lock = threading.RLock()
        self._closed = False

    def init_var_memory(self, device_id: DeviceId) -> None:
        """Take the device memory of variables from memory that grows, where the runtime has it.

        Parameters
        ----------
        device_id
            Their device.

        Raises
        ------
        AclError
            There is no such device (107001).

        Source: GE source, runtime/v1/common/runtime/model_rt_var_manager.cc, ModelRtVarManager::Init.
        """
        manager = self.var_manager
        most = min(manager.get_var_mem_max_size(), INT64_MAX)
        sessions = SessionMemAllocator.instance(self.runtime)
        allocator = sessions.get_var_mem_allocator(self.id, device_id, self.options, max_bytes=max(most, 1))
        growing = self._growing.setdefault(device_id, CallerDeviceAllocator(allocator))
        manager.init_expandable_memory_allocator(growing, device_id)

    def add_graph(
        self, graph_id: int, graph: "GraphDef | ComputeGraph", options: Mapping[str, str] | None = None
    ) -> None:
        """Add a graph, which is copied; nothing is compiled yet.

        Its conversions (TransData, Cast …) stand in it already, or are none. `ge.exec.deviceId` among the options of
        the session is the device of all its graphs.

        Parameters
        ----------
        graph_id
            Number of the graph, unsigned and of 32 bits.
        graph
            A message, or a graph with its subgraphs.
        options
            Options of the graph by GE's names, which count more than those of the session. `ge.graph_key` and
            `ge.graph_compiler_cache_dir` together turn the model cache on.

        Raises
        ------
        GraphError
            The id is taken (status PARAM_INVALID), or the graph contradicts itself.
        ValueError
            The id does not fit into 32 bits, or the device is no number.
        TypeError
            The graph is something else.
        AclError, StateError
            There is no such device (107001); the session is closed.

        Source: GE source, api/session/session/inner_session.cc, InnerSession::AddGraph.
        """
        self._graph_session().add(graph_id, graph, options or {})

    def compile(self, graph_id: int) -> "CompiledGraph":
        """Compile a graph, unless that was done and no other graph has changed its variables since.

        The passes around variables run, or the model is found in the cache; variables get their memory; bytes of
        variables that get another form are converted at once. Other graphs with these variables are compiled again
        before their next run.

        Returns
        -------
        CompiledGraph
            What it was compiled to: the model, the log of the passes, the variables that were converted.

        Raises
        ------
        GraphError
            The session has no such graph; a pass refuses it; or an operator cannot be computed (status UNSUPPORTED),
            named with its node.
        VariableError, ModelFileError, FormatError
            A variable has no memory or cannot be converted; the cache is damaged.
        AclError, OutOfMemoryError, StateError
            The device refuses memory or a copy; the session is closed, or its variables sleep.

        After failure: variables, their bytes, device memory, and which graphs are to be compiled again are as before.
        Source: GE source, api/session/session/inner_session.cc, InnerSession::CompileGraph.
        """
        return self._graph_session().compile(graph_id)

    def run(self, graph_id: int, inputs: "GraphInputs" = ()) -> "list[Array]":
        """Run a graph on its device with the kernels of the host; compile and load it first where it must be.

        Variables are read and written where they lie; their values stay for the next run, of any graph.

        Parameters
        ----------
        inputs
            Arrays in the order of the attribute ``index`` of the Data nodes, or by the names of these.

        Returns
        -------
        list of numpy.ndarray
            The inputs of its NetOutput; of a graph without one, the outputs that it names. A variable among them has
            its value at the end of the run.

        Raises
        ------
        ValueError
            An input is missing, unknown, or of another type or shape. Nothing has run.
        GraphError, VariableError, ModelFileError, FormatError, LoadError
            As `compile`; or a constant cannot be loaded.
        AclError, OutOfMemoryError, StateError
            As `compile`. Variables that were written before hold their new values.

        After failure to compile or to load: as after one of `compile`; a model that was loaded stays loaded.
        Source: GE source, api/session/session/inner_session.cc, InnerSession::RunGraph.
        """
        return self._graph_session().run(graph_id, inputs)

    def remove_graph(self, graph_id: int) -> None:
        """Remove a graph and unload it; its variables stay, and so does what became of their formats.

        Raises
        ------
        GraphError
            The session has no such graph (status PARAM_INVALID).
        AclError, StateError
            The device refuses memory back; the session is closed.
        """
        self._graph_session().remove(graph_id)

    def _graph_session(self) -> "GraphSession":
        """The graphs of the session; what they need is imported at the first."""
        from gevar.session.graph_session import GraphSession

        with self.lock:
            if self._graphs is None:
                self._graphs = GraphSession(self)
            return self._graphs

    def sleep(
        self,
        kinds: Collection[str] | None = None,
        keep: str = "host",
        reload: ReloadVar | None = None,
        *,
        device_id: DeviceId | None = None,
    ) -> int:
        """Give the pages under variables in memory that grows back to the device; every address stays.

        As `VarManager.sleep`, which says more. Weights that belong to a model (Consts, and FileConstants that are no
        variables of the session) lie in plain memory and stay; closing the model gives them back.

        Raises
        ------
        ValueError, StateError, AclError
            As `VarManager.sleep`; also a `StateError` when the session is closed.
        """
        with self.lock:
            self.check_open()
            return self.var_manager.sleep(kinds, keep, reload, device_id=device_id)

    def wake(self, device_id: DeviceId | None = None) -> None:
        """Bring back pages and bytes of variables that sleep, as `VarManager.wake`.

        Raises
        ------
        OutOfMemoryError, AclError, FormatError, StateError, Exception
            As `VarManager.wake`; also a `StateError` when the session is closed.
        """
        with self.lock:
            self.check_open()
            self.var_manager.wake(device_id)

    def check_open(self) -> None:
        """Raise `StateError` when the session is closed."""
        if self._closed:
            raise StateError(f"{self} is closed; make a new session")

    @property
    def closed(self) -> bool:
        """Whether the session was closed."""
        return self._closed

    def close(self) -> None:
        """Give back all device memory of the session, and its part in shared weights; a second call does nothing.

        Raises
        ------
        AclError
            The runtime refused to take a block back. Everything else is given back.
        """
        with self.lock:
            if self._closed:
                return
            self._closed = True
        with caller_device(self.runtime), ExitStack() as stack:
            stack.callback(self.memory_manager.close)
            stack.callback(EqualWeights.instance(self.runtime).release_session, self.id)
            self.rt_session.destroy_resources(self.runtime, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else repr(self.memory_manager)
        return f"<Session {self.id} on {self.runtime.backend}: {state}>"
