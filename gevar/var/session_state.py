"""Life cycle and sizes of one session's variable memory: the ground the variable manager stands on."""

import logging
import threading
from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Final

from gevar.align import UINT64_MAX
from gevar.errors import StateError
from gevar.memory import MemoryManager
from gevar.options import MemoryOptions
from gevar.status import FAILED, PARAM_INVALID
from gevar.types import DevAddr, DeviceId, MemType
from gevar.var.mem_resource import MemResource
from gevar.var.memory_config import MAX_MEMORY_BYTES, MemoryConfig
from gevar.var.var_resource import VarResource

DEFAULT_DEVICE_ID: Final = DeviceId(0)
"""Device that is meant where none is named (GE: kDefaultDeviceId)."""

_log = logging.getLogger("gevar.var")


class SessionVersion(IntEnum):
    """Kind of product a session is for.

    Source: GE source, base/graph/manager/graph_var_manager.h, SessionVersion.
    """

    CLOUD_VERSION = 0
    MINI_VERSION = 1
    OTHER_VERSION = 2


def state_error(message: str, status: int) -> StateError:
    """Make a `StateError` that carries GE's status number."""
    error = StateError(message)
    error.status = status
    return error


class SessionState:
    """Lock, tables and sizes of a session; `VarManager` builds on it.

    Attributes
    ----------
    session_id : int
        Number of the session; 0 after `VarManager.destroy`.
    version : SessionVersion
        As given to `init`.
    device_id : DeviceId
        Device that calls without a device mean.
    job_id : int
        As given to `init`.
    memory_options : MemoryOptions
        What the options of the session say about memory.
    """

    def __init__(self, session_id: int) -> None:
        if not 0 <= session_id <= UINT64_MAX:
            raise ValueError(f"session_id is {session_id}: give a number in 0..{UINT64_MAX}")
        self._lock = threading.RLock()
        self._own_session_id = session_id
        self._resource: VarResource | None = None
        self._was_closed = False
        self._mem_resources: dict[MemType, MemResource] = {}
        self._mem_manager: MemoryManager | None = None
        self._config = MemoryConfig()
        self.session_id = session_id
        self.version = SessionVersion.OTHER_VERSION
        self.device_id = DEFAULT_DEVICE_ID
        self.job_id = 0
        self.memory_options = MemoryOptions.from_options({})

    def init(self, version: int, session_id: int, device_id: DeviceId = DEFAULT_DEVICE_ID, job_id: int = 0) -> None:
        """Make the manager ready for variables; does nothing, and says so in the log, when it is ready already.

        Parameters
        ----------
        version
            A `SessionVersion`.
        session_id
            The session the manager was made for.
        device_id
            Device that calls without a device mean.
        job_id
            Number of the job; kept for the state that is stored.

        Raises
        ------
        StateError
            The manager belongs to another session (status PARAM_INVALID).
        ValueError
            No such version, or a negative device id.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::Init.
        Differs: edges 1 and 4 of docs/differences.md.
        """
        with self._lock:
            if self._resource is not None:
                _log.warning("session %d is initialised already: nothing is changed", self.session_id)
                return
            if session_id != self._own_session_id:
                reason = f"the manager of session {self._own_session_id} was given session id {session_id}: take the"
                raise state_error(f"{reason} manager of that session from the pool", PARAM_INVALID)
            if device_id < 0:
                raise ValueError(f"device_id is {device_id}: give a number from 0")
            self.version = SessionVersion(version)
            self.session_id, self.device_id, self.job_id = session_id, device_id, job_id
            self._resource = VarResource()

    @property
    def is_var_resource_inited(self) -> bool:
        """Whether the manager is ready for variables."""
        return self._resource is not None

    def set_mem_manager(self, mem_manager: MemoryManager | None) -> None:
        """Say where device memory comes from; None takes it away. Memory that is there stays with its owner.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::SetMemManager.
        """
        with self._lock:
            self._mem_manager = mem_manager

    @property
    def has_memory_manager(self) -> bool:
        """Whether there is a source of device memory."""
        return self._mem_manager is not None

    def get_rdma_pool_memory(self, memory_type: MemType, size_bytes: int) -> DevAddr:
        """Return registered memory of the manager's device, from the pool of a kind of memory.

        Raises
        ------
        StateError
            There is no memory manager, or it has no such pool.
        AclError, OutOfMemoryError
            The pool has no room.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::GetRdmaPoolMemory.
        """
        return self._require_mem_manager().get_rdma_pool_memory(memory_type, size_bytes, self.device_id)

    def get_host_pool_memory(self, memory_type: MemType, size_bytes: int) -> int:
        """Return the address of zeroed host memory, from the pool of a kind of memory.

        Raises
        ------
        StateError
            There is no memory manager, or it has no such pool.
        AclError, OutOfMemoryError
            There is no memory.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::GetHostPoolMemory.
        """
        return self._require_mem_manager().get_host_pool_memory(memory_type, size_bytes)

    def set_options(self, options: Mapping[str, str]) -> None:
        """Set the options of the session, by GE's names, in place of all that were set; they hold for every thread.

        Differs: edge 42 of docs/differences.md.
        """
        self.memory_options = MemoryOptions.from_options(options)

    @property
    def memory_config(self) -> MemoryConfig:
        """Sizes and logic base, as they are now."""
        return self._config

    def get_graph_memory_max_size(self, for_check: bool = False) -> int:
        """Return the bytes that graphs may take.

        Parameters
        ----------
        for_check
            Whether the number is for a check: there is no limit then while graphs are only evaluated
            (``ge.evaluateGraphResourceMode``).

        Source: GE source, base/graph/manager/graph_var_manager.h, VarManager::GetGraphMemoryMaxSize.
        """
        unlimited = for_check and self.memory_options.is_evaluate_graph_resource_mode
        return UINT64_MAX if unlimited else self._config.graph_mem_max_size

    def get_var_mem_max_size(self, for_check: bool = False) -> int:
        """Return the bytes that variables may take; `for_check` as in `get_graph_memory_max_size`.

        Source: GE source, base/graph/manager/graph_var_manager.h, VarManager::GetVarMemMaxSize.
        """
        unlimited = for_check and self.memory_options.is_evaluate_graph_resource_mode
        return UINT64_MAX if unlimited else self._config.var_mem_max_size

    def get_use_max_memory_size(self) -> int:
        """Return the bytes that graphs and variables may take; no limit while graphs are only evaluated.

        Source: GE source, base/graph/manager/graph_var_manager.h, VarManager::GetUseMaxMemorySize.
        """
        unlimited = self.memory_options.is_evaluate_graph_resource_mode
        return UINT64_MAX if unlimited else self._config.use_max_mem_size

    def get_var_mem_logic_base(self) -> int:
        """Return the logical address at which variables in device memory start.

        Source: GE source, base/graph/manager/graph_var_manager.h, VarManager::GetVarMemLogicBase.
        """
        return self._config.var_mem_logic_base

    def set_memory_malloc_size(self, total_bytes: int, *, ceiling_bytes: int = MAX_MEMORY_BYTES) -> None:
        """Settle all sizes from the memory of the device; the logic base becomes 128 GiB.

        Parameters
        ----------
        total_bytes
            Memory of the device.
        ceiling_bytes
            Largest usable size that is accepted.

        Raises
        ------
        SizeOverflowError
            The usable size is above the ceiling (status GE_GRAPH_OPTIONS_INVALID). Nothing is changed.
        ValueError
            `total_bytes` is negative.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::SetMemoryMallocSize.
        Differs: edge 23 of docs/differences.md.
        """
        with self._lock:
            self._config = self._config.with_total_memory(total_bytes, ceiling_bytes)

    def set_all_memory_max_value(self, *, ceiling_bytes: int = MAX_MEMORY_BYTES) -> None:
        """Settle the usable size as the sum of graph and variable memory; the logic base becomes 128 GiB.

        Parameters
        ----------
        ceiling_bytes
            Largest usable size that is accepted.

        Raises
        ------
        SizeOverflowError
            The sum is above the ceiling (status GE_GRAPH_OPTIONS_INVALID) or leaves 64 bits (status INTERNAL_ERROR).
            Nothing is changed.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::SetAllMemoryMaxValue.
        Differs: edge 23 of docs/differences.md.
        """
        with self._lock:
            self._config = self._config.with_all_memory_max_value(ceiling_bytes)

    def update_memory_config(self, config: MemoryConfig) -> None:
        """Replace all sizes and the logic base. Variables that are there keep their addresses.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::UpdateMemoryConfig.
        Differs: edge 5 of docs/differences.md.
        """
        with self._lock:
            self._config = config

    def set_var_mem_logic_base(self, logic_base: int) -> None:
        """Set where logical addresses start. Variables that are there keep their addresses.

        Raises
        ------
        ValueError
            `logic_base` is not an unsigned 64-bit number.
        """
        with self._lock:
            self._config = replace(self._config, var_mem_logic_base=logic_base)

    def set_var_mem_max_size(self, size_bytes: int) -> None:
        """Set the bytes that variables may take.

        Raises
        ------
        ValueError
            `size_bytes` is not an unsigned 64-bit number.
        """
        with self._lock:
            self._config = replace(self._config, var_mem_max_size=size_bytes)

    def _require_mem_manager(self) -> MemoryManager:
        manager = self._mem_manager
        if manager is None:
            raise state_error(f"session {self.session_id} has no memory manager: call set_mem_manager", FAILED)
        return manager

    def _require(self, status: int) -> VarResource:
        """Return the tables; raise with GE's status while there are none."""
        resource = self._resource
        if resource is None:
            closed = "; it was closed, and its variables are gone" if self._was_closed else ""
            reason = f"the manager of session {self._own_session_id} is not initialised: call init{closed}"
            raise state_error(reason, status)
        return resource
