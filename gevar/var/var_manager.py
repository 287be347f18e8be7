"""The variable manager: one identity, one logical address and one block of device memory per device for each variable.

`VarManager` is built in steps, one subject each: `SessionState` (life cycle, sizes), `VarRegistry` (names and logical
addresses), `VarMemory` (device memory), `VarGraphs` (what graphs do to variables), `VarData` (what is in the memory),
`VarSerial` (stored states). Writers take the manager's one re-entrant lock. Look-ups that find something read one
immutable record without it; reading weights, allocating, copying and writing messages happen outside it.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager.
"""

from gevar.errors import StateError
from gevar.var.invariants import broken_invariants
from gevar.var.session_state import DEFAULT_DEVICE_ID, SessionVersion
from gevar.var.var_memory import release_all
from gevar.var.var_serial import VarSerial
from gevar.var.var_snapshot import UnknownFields
from gevar.var.variable import Variable


class VarManager(VarSerial):
    """Variables of one session; `VarManagerPool` makes one per session.

    Parameters
    ----------
    session_id
        Number of the session.

    Thread safety: any thread may use it.

    Examples
    --------
    >>> from gevar.types import DataType, Format, TensorDesc
    >>> vm = VarManager(1)
    >>> vm.init(SessionVersion.CLOUD_VERSION, session_id=1)
    >>> vm.assign_var_mem("a", None, TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (2, 3), size=24))
    34359738368
    >>> vm.get_var_mem_size()
    1536
    """

    def __getitem__(self, name: str) -> Variable:
        """Return the variable of a name.

        Raises
        ------
        StateError
            The manager is not initialised.
        VariableError
            There is no variable of this name; names that look alike are named.
        """
        self.get_cur_var_desc(name)
        return Variable(self, name)

    def destroy(self) -> None:
        """Free all device memory and forget every variable; the manager can be initialised again.

        The memory manager, the sizes and external regions stay; the session id reads 0 until `init`.

        Raises
        ------
        AclError
            An owner could not free a block. The manager is destroyed all the same, and the block is its owner's to give
            back.

        Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::Destroy.
        Differs: edge 4 of docs/differences.md.
        """
        with self._lock:
            self._resource = None
            self._mem_resources = {}
            self._unknown_fields = UnknownFields()
            self.version = SessionVersion.OTHER_VERSION
            self.session_id, self.device_id = 0, DEFAULT_DEVICE_ID
            for region in self._regions.values():
                region.initialised.clear()
            records, expandables = self._take_memory()
        self.log_graph_var_mem_info()
        release_all(records, expandables)

    def check(self) -> None:
        """Check that the tables fit together: no overlap, every key resolves, sizes add up.

        For tests and for a person in doubt; it looks at everything and holds the lock meanwhile.

        Raises
        ------
        StateError
            They do not; the message says what is wrong.
        """
        with self._lock:
            resource = self._resource
            if resource is None:
                return
            records = self._device_records.records()
            malloc_bytes = self._device_records.malloc_bytes
            broken = list(broken_invariants(resource, self._mem_resources, records, malloc_bytes))
        if broken:
            raise StateError(f"the tables of session {self.session_id} do not fit together: {'; '.join(broken)}")

    def __repr__(self) -> str:
        resource = self._resource
        state = "not initialised" if resource is None else f"{len(resource.cur_descs)} variables"
        return f"<VarManager of session {self._own_session_id}: {state}>"
