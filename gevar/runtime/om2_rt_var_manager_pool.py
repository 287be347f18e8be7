"""The OM2 managers of a process.

Source: GE source, runtime/om2, Om2RTVarManagerPool.
"""

import threading

from gevar.errors import GevarError
from gevar.memory import MemoryManager
from gevar.runtime.om2_rt_var_manager import Om2RTVarManager


class Om2RTVarManagerPool:
    """The OM2 managers of a process, one per session.

    Thread safety: all methods, from any thread.
    Source: GE source, runtime/om2, Om2RTVarManagerPool.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._managers: dict[int, Om2RTVarManager] = {}

    def get_manager(self, session_id: int, memory_manager: MemoryManager) -> Om2RTVarManager:
        """Return the manager of a session; a new one over this memory at the first question."""
        with self._lock:
            manager = self._managers.get(session_id)
            if manager is None:
                manager = self._managers[session_id] = Om2RTVarManager(session_id, memory_manager)
            return manager

    def remove_manager(self, session_id: int) -> None:
        """Take a manager out and finalise it; does nothing for a session without one.

        Raises
        ------
        AclError
            As `Om2RTVarManager.finalize`.
        """
        with self._lock:
            manager = self._managers.pop(session_id, None)
        if manager is not None:
            manager.finalize()

    def destroy(self) -> None:
        """Take every manager out and finalise it.

        Raises
        ------
        AclError
            The first failure; the other managers are finalised all the same.
        """
        failures: list[GevarError] = []
        for session_id in list(self._managers):
            try:
                self.remove_manager(session_id)
            except GevarError as error:
                failures.append(error)
        if failures:
            raise failures[0]
