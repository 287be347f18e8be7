"""The variable manager: one identity, one logical address and one block of device memory per device for each variable.

`VarManager` is built in steps, one subject each: `SessionState` (life cycle, sizes), `VarRegistry` (names and logical
addresses), `VarMemory` (device memory), `VarGraphs` (what graphs do to variables), `VarData` (what is in the memory),
`VarSerial` (stored states), `VarBulk` (many variables at once), `VarTransaction` (calls that are taken back together),
`VarSleep` (pages given back for a while). Writers take the manager's one re-entrant lock. Look-ups that find something
read one immutable record without it; reading weights, allocating, copying and writing messages happen outside it.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager.
"""

from collections.abc import Mapping

import numpy as np

from acl_shim.host_memory import HostBuffer
from gevar.errors import StateError, VariableError
from gevar.formats import OnLoss
from gevar.status import FAILED, INTERNAL_ERROR
from gevar.types import DataType, DevAddr, DeviceId, MemType
from gevar.var.invariants import broken_invariants
from gevar.var.session_state import DEFAULT_DEVICE_ID, SessionVersion
from gevar.var.var_block import VarBlock
from gevar.var.var_memory import release_all
from gevar.var.var_rows import Savings, VarRow, explain_record, row_of, savings_of, standing_for
from gevar.var.var_sleep import VarSleep
from gevar.var.var_snapshot import UnknownFields
from gevar.var.variable import ArrayType, Variable


class VarManager(VarSleep):
    """Variables of one session; `VarManagerPool` makes one per session.

    Parameters
    ----------
    session_id
        Number of the session.

    Raises
    ------
    ValueError
        `session_id` is not an unsigned 64-bit number.

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

    def read(
        self,
        name: str,
        device_id: DeviceId | None = None,
        *,
        format: int | None = None,
        dtype: DataType | None = None,
        on_loss: OnLoss = "ieee",
    ) -> "np.ndarray[tuple[int, ...], ArrayType]":
        """Return a copy of a variable's value; raises as ``self[name]`` and `Variable.read`."""
        return self[name].read(device_id, format=format, dtype=dtype, on_loss=on_loss)

    def write(
        self,
        name: str,
        data: HostBuffer,
        device_id: DeviceId | None = None,
        *,
        format: int | None = None,
        dtype: DataType | None = None,
        on_loss: OnLoss = "ieee",
    ) -> None:
        """Set a variable's value; raises as ``self[name]`` and `Variable.write`."""
        self[name].write(data, device_id, format=format, dtype=dtype, on_loss=on_loss)

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
            self._was_closed = self._was_closed or self._resource is not None
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

    def table(self) -> tuple[VarRow, ...]:
        """Return what is registered, one row per form of a variable, by rising logical address.

        Raises
        ------
        StateError
            The manager is not initialised (status INTERNAL_ERROR).
        """
        with self._lock:
            resource = self._require(INTERNAL_ERROR)
            records = list(resource.records.values())
            currents = {resource.find_current(name) for name in resource.cur_descs}
            addrs: dict[VarBlock, dict[DeviceId, DevAddr]] = {}
            for got in self._device_records.records():
                addrs.setdefault(got.block, {})[got.device_id] = got.data_addr
            rows = [
                row_of(record, is_current=record in currents, dev_addrs=self._dev_addrs(record.block, addrs))
                for record in records
            ]
        return tuple(sorted(rows, key=lambda row: (row.logic_addr, row.key)))

    def _dev_addrs(
        self, block: VarBlock, known: Mapping[VarBlock, Mapping[DeviceId, DevAddr]]
    ) -> Mapping[DeviceId, DevAddr]:
        """Where the data of a block lies, per device; the caller's memory and that of a pool is the own device's."""
        extern = None if self._resource is None else self._resource.extern_memory.get(block.logic_addr)
        if block.is_place_holder and extern is not None:
            return {self.device_id: extern.dev_addr} if extern.live else {}
        if block.mem_type == MemType.RT_MEMORY_RDMA_HBM and block.placed:
            return {self.device_id: DevAddr(block.logic_addr)}
        addrs, base = dict(known.get(block, {})), self._config.var_mem_logic_base
        for device_id, region in self._regions.items():
            if block.mem_type == MemType.RT_MEMORY_HBM and block.placed:
                addrs[device_id] = DevAddr(region.dev_addr + block.logic_addr - base)
        return addrs

    def explain(self, name: str) -> str:
        """Say why a variable lies where it does in its current form, and who shares its block.

        Raises
        ------
        StateError
            The manager is not initialised (status INTERNAL_ERROR).
        VariableError
            There is no variable of this name, or its current form has no address (status FAILED).

        Examples
        --------
        >>> from gevar.types import DataType, Format, TensorDesc
        >>> vm = VarManager(1)
        >>> vm.init(SessionVersion.CLOUD_VERSION, session_id=1)
        >>> _ = vm.assign_var_mem("a", None, TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (2, 3), size=24))
        >>> print(vm.explain("a"))
        a_2_0: 24 B at 34359738368 in RT_MEMORY_HBM: fresh, it has new space
        """
        with self._lock:
            resource = self._require(INTERNAL_ERROR)
            self.get_cur_var_desc(name)
            record = resource.find_current(resource.key_name(name))
            if record is None:
                raise VariableError(name, "its current form has no address; assign it first", status=FAILED)
            return explain_record(record, standing_for(record.block, resource.records.values(), but=record))

    def savings(self) -> Savings:
        """Return the logical space that sharing saves, by kind of sharing.

        Raises
        ------
        StateError
            The manager is not initialised (status INTERNAL_ERROR).
        """
        with self._lock:
            return savings_of(self._require(INTERNAL_ERROR).records.values())

    def __repr__(self) -> str:
        resource = self._resource
        state = "not initialised"
        if resource is not None:
            assigned, device = self.get_var_mem_size(), self.get_var_malloc_mem_size()
            state = f"{len(resource.cur_descs)} variables, {assigned} B assigned, {device} B of device memory"
        return f"<VarManager of session {self._own_session_id}: {state}>"
