"""The managers of a process, by session."""

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gevar.errors import GevarError
from gevar.types import DeviceId
from gevar.var.session_state import DEFAULT_DEVICE_ID
from gevar.var.var_manager import VarManager

if TYPE_CHECKING:
    from gevar.proto.var_manager import MultiVarManagerInfo


class VarManagerPool:
    """One `VarManager` per session.

    Managers never call the pool, and the pool calls a manager only after it has let go of its own lock, so the two
    locks cannot wait for each other.

    Thread safety: any thread may use it.
    Source: GE source, base/graph/manager/graph_var_manager.cc, VarManagerPool.
    Differs: edge 3 of docs/differences.md.

    Examples
    --------
    >>> pool = VarManagerPool()
    >>> pool.get_var_manager(1) is pool.get_var_manager(1), pool
    (True, <VarManagerPool of 1 sessions: 1>)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._managers: dict[int, VarManager] = {}

    def __repr__(self) -> str:
        with self._lock:
            sessions = sorted(self._managers)
        named = ", ".join(map(str, sessions[:8])) + (", …" if len(sessions) > 8 else "")
        return f"<VarManagerPool of {len(sessions)} sessions{': ' if sessions else ''}{named}>"

    @classmethod
    def instance(cls) -> "VarManagerPool":
        """Return the pool of the process."""
        return _POOL

    def get_var_manager(self, session_id: int) -> VarManager:
        """Return the manager of a session; a new one, not initialised, at the first question.

        Raises
        ------
        ValueError
            `session_id` is not an unsigned 64-bit number.
        """
        with self._lock:
            manager = self._managers.get(session_id)
            if manager is None:
                manager = self._managers[session_id] = VarManager(session_id)
            return manager

    def multi_var_manager_to_serial(self, session_ids: Iterable[int]) -> "MultiVarManagerInfo":
        """Return the states of some sessions as one message, in the order given.

        Raises
        ------
        StateError, ValueError, VariableError
            As `VarManager.var_manager_to_serial`; a session without a manager has none that is initialised.

        Source: GE source, graph_metadef/proto/var_manager.proto, MultiVarManagerInfo.
        """
        from gevar.proto.var_manager import MultiVarManagerInfo

        infos = [self.get_var_manager(session_id).var_manager_to_serial() for session_id in session_ids]
        return MultiVarManagerInfo(var_manager_info=infos)

    def multi_var_manager_to_deserial(
        self, info: "MultiVarManagerInfo", device_id: DeviceId = DEFAULT_DEVICE_ID
    ) -> list[VarManager]:
        """Take over states, each into the manager of the session it names; return those managers.

        Raises
        ------
        ModelFileError
            As `VarManager.var_manager_to_deserial`. Managers of the states before have theirs; the one refused is as it
            was.

        Source: GE source, graph_metadef/proto/var_manager.proto, MultiVarManagerInfo.
        """
        managers = []
        for one in info.var_manager_info:
            manager = self.get_var_manager(one.session_id)
            manager.var_manager_to_deserial(one, device_id)
            managers.append(manager)
        return managers

    def remove_var_manager(self, session_id: int) -> None:
        """Take a manager out and destroy it; does nothing for a session without one.

        Whoever still holds the manager has one that is destroyed.

        Raises
        ------
        AclError
            As `VarManager.destroy`. The manager is out of the pool all the same.
        """
        with self._lock:
            manager = self._managers.pop(session_id, None)
        if manager is not None:
            manager.destroy()

    def destroy(self) -> None:
        """Take every manager out and destroy it.

        Raises
        ------
        AclError
            The first failure of a `VarManager.destroy`; the other managers are destroyed all the same.
        """
        with self._lock:
            managers = list(self._managers.values())
            self._managers.clear()
        failures: list[GevarError] = []
        for manager in managers:
            try:
                manager.destroy()
            except GevarError as error:
                failures.append(error)
        if failures:
            raise failures[0]


_POOL = VarManagerPool()
