"""A session: one variable manager, one memory manager, and the models loaded into them."""

import itertools
import threading
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from acl_shim import Runtime, open_runtime
from gevar.align import INT64_MAX
from gevar.errors import StateError
from gevar.memory import DeviceMemoryManager, HugePageMode, SessionMemAllocator
from gevar.runtime import RtSession, RtVarManagerPool
from gevar.session.caller_device import CallerDeviceAllocator, CallerDeviceMemory, caller_device
from gevar.session.equal_weights import EqualWeights
from gevar.session.graphs_of_session import GraphsOfSession
from gevar.session.ready_weights import ReadyWeights
from gevar.types import DeviceId
from gevar.var import VarManager, VarManagerPool
from gevar.var.sleeping import ReloadVar
from gevar.weights import ExternalWeightManager

_ids = itertools.count(1)


class Session(GraphsOfSession):
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
    runtime, var_manager, memory_manager, rt_var_manager, rt_session, external_weights, equal_weights,
    ready_weights
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
        super().__init__()
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
        self.equal_weights = EqualWeights.instance(self.runtime)
        self.ready_weights = ReadyWeights(self.var_manager)
        self._growing: dict[DeviceId, CallerDeviceAllocator] = {}
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
        StateError
            The session is closed.

        Source: GE source, runtime/v1/common/runtime/model_rt_var_manager.cc, ModelRtVarManager::Init.
        """
        with self.lock:
            self.check_open()
            manager = self.var_manager
            most = min(manager.get_var_mem_max_size(), INT64_MAX)
            sessions = SessionMemAllocator.instance(self.runtime)
            allocator = sessions.get_var_mem_allocator(self.id, device_id, self.options, max_bytes=max(most, 1))
            growing = self._growing.setdefault(device_id, CallerDeviceAllocator(allocator))
            manager.init_expandable_memory_allocator(growing, device_id)

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
            stack.callback(self.equal_weights.release_session, self.id)
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
