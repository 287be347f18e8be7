"""The run-time view of a session's variables: restored from models, found by name with shape and memory.

Source: GE source, runtime/v1/common/runtime/model_rt_var_manager.cc, ModelRtVarManager.
"""

import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from gevar.errors import StateError, VariableError
from gevar.memory import MemoryManager
from gevar.runtime.host_variables import assign_on_host, is_on_host
from gevar.runtime.rt_var_manager import TensorPlacement, VarShapeAndMemory
from gevar.status import FAILED
from gevar.types import DevAddr, DeviceId, MemType
from gevar.var import VarManager, VarOp
from gevar.var.var_op import CONSTANTOP, VARIABLE

SESSION_VERSION: Final = 0
"""Session version of an offline model (GE: ClOUD_VERSION)."""


class ModelRtVarManager:
    """Restore the variables of models into a session and keep where each lies, by name and device.

    Thread safety: all methods, from any thread.

    Differs: edge 26 of docs/differences.md; records are kept by (name, device) and made in one step.
    """

    def __init__(self, session_id: int, var_manager: VarManager, memory_manager: MemoryManager) -> None:
        self._session_id = session_id
        self._var_manager = var_manager
        self._memory_manager = memory_manager
        self._lock = threading.RLock()
        self._inited = False
        self._records: dict[tuple[str, DeviceId], VarShapeAndMemory] = {}

    def init(
        self,
        device_id: DeviceId,
        logic_var_base: int,
        total_var_size: int,
        external_addr: DevAddr | None = None,
        external_size: int = 0,
    ) -> None:
        """Set up the session's variable manager with base and size of the first model; later calls change nothing.

        A variable manager that is set up already keeps its base, size and memory.

        Parameters
        ----------
        device_id
            Device of the first model.
        logic_var_base
            First logical address of the variable space.
        total_var_size
            Bytes of the variable space.
        external_addr, external_size
            Memory of the caller's for the variables on that device, see `VarManager.set_external_var`; None for none.

        Raises
        ------
        ValueError
            A base, size, address or device is negative or leaves 64 bits. Nothing has changed.
        """
        with self._lock:
            if self._inited:
                return
            vm = self._var_manager
            if not vm.is_var_resource_inited:
                config = replace(vm.memory_config, var_mem_logic_base=logic_var_base, var_mem_max_size=total_var_size)
                if external_addr is not None:
                    vm.set_external_var(external_addr, external_size, device_id)
                try:
                    vm.init(SESSION_VERSION, self._session_id, device_id, 0)
                except BaseException:
                    if external_addr is not None:
                        vm.set_external_var(None, device_id=device_id)
                    raise
                vm.update_memory_config(config)
            if not vm.has_memory_manager:
                vm.set_mem_manager(self._memory_manager)
            self._inited = True

    def restore_device_variables(
        self, ops: Iterable[VarOp], device_id: DeviceId, *, graph_id: int = 0, need_collect: bool = True
    ) -> None:
        """Restore each Variable and Constant that is not there yet, get its device memory, and record where it lies.

        Other kinds of nodes are passed over. An initial value is copied when memory is got; the bytes of a Constant
        are not, see `VarManager.begin_var_load`. A Variable whose attribute ``_variable_placement`` is ``host`` gets
        host memory of the session, the same for all devices.

        Parameters
        ----------
        ops
            The nodes.
        device_id
            The device.
        graph_id
            Graph that counts as the first user of the variables that are new.
        need_collect
            Whether memory is got and recorded; else variables get it when they are asked for.

        Raises
        ------
        StateError
            `init` was not called, or the variables of the device sleep.
        VariableError, AddressError
            A variable contradicts one that is there, does not lie in the variable space, or has a size of 0 (status
            FAILED).
        FormatError
            An initial value does not fit its variable.
        AclError
            The device refuses memory or a copy.

        Notes
        -----
        After failure: the variables before the refused one stay restored, as in GE.
        """
        if not self._inited:
            raise StateError("the run-time variable manager is not initialised: call init first")
        if self._var_manager.is_asleep(device_id):
            raise StateError(f"variables of session {self._session_id} sleep on device {device_id}: call wake first")
        for op in ops:
            if op.op_type in (VARIABLE, CONSTANTOP):
                self._restore(op, device_id, graph_id, need_collect=need_collect)

    def _restore(self, op: VarOp, device_id: DeviceId, graph_id: int, *, need_collect: bool) -> None:
        vm, desc = self._var_manager, op.output_desc[0]
        if is_on_host(op):
            assign_on_host(vm, op, graph_id)
        elif not vm.is_var_exist(op.name, desc):
            vm.restore_var_mem(op.name, op, desc, MemType.RT_MEMORY_HBM)
            vm.set_allocated_graph_id(op.name, graph_id)
        if not need_collect:
            return
        if desc.size <= 0:
            reason = f"its size is {desc.size} B; a variable at run time needs at least 1 B"
            raise VariableError(op.name, reason, status=FAILED)
        logic_addr, mem_type = vm.get_var_addr_and_type(op.name, desc)
        dev_addr = vm.get_var_memory_addr(logic_addr, mem_type, device_id)
        is_hosted = mem_type == MemType.RT_MEMORY_HOST
        placement = TensorPlacement.ON_HOST if is_hosted else TensorPlacement.ON_DEVICE_HBM
        with self._lock:
            record = VarShapeAndMemory(desc, logic_addr, dev_addr, desc.size, placement)
            self._records.setdefault((op.name, device_id), record)

    def get_var_shape_and_memory(self, name: str, device_id: DeviceId) -> VarShapeAndMemory:
        """Return where a restored variable lies; it gets memory again where that was freed since.

        Raises
        ------
        VariableError
            The name was not restored on this device (status FAILED).
        StateError, AclError, OutOfMemoryError
            As `VarManager.get_var_memory_addr`.

        Differs: GE tells the address of memory that was freed.
        """
        record = self._records.get((name, device_id))
        if record is None:
            raise VariableError(name, f"not restored on device {device_id}; load a model that has it", status=FAILED)
        dev_addr = self._var_manager.get_var_memory_addr(record.logic_addr, MemType.RT_MEMORY_HBM, device_id)
        return record if dev_addr == record.dev_addr else replace(record, dev_addr=dev_addr)

    def destroy(self) -> None:
        """Forget every record; variables and memory belong to the variable manager and stay."""
        with self._lock:
            self._records.clear()
            self._inited = False


class RtVarManagerPool:
    """The run-time variable managers of a process, one per session.

    Thread safety: all methods, from any thread.
    Source: GE source, runtime/v1/common/runtime/model_rt_var_manager.cc, RtVarManagerPool.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._managers: dict[int, ModelRtVarManager] = {}

    @classmethod
    def instance(cls) -> "RtVarManagerPool":
        """Return the pool of the process."""
        return _POOL

    def get_var_manager(
        self, session_id: int, var_manager: VarManager, memory_manager: MemoryManager
    ) -> ModelRtVarManager:
        """Return the manager of a session; a new one, over these managers, at the first question."""
        with self._lock:
            manager = self._managers.get(session_id)
            if manager is None:
                manager = ModelRtVarManager(session_id, var_manager, memory_manager)
                self._managers[session_id] = manager
            return manager

    def find(self, session_id: int) -> ModelRtVarManager | None:
        """Return the manager of a session; None where there is none."""
        return self._managers.get(session_id)

    def remove_rt_var_manager(self, session_id: int) -> None:
        """Take a manager out and let it forget its records; does nothing for a session without one."""
        with self._lock:
            manager = self._managers.pop(session_id, None)
        if manager is not None:
            manager.destroy()

    def destroy(self) -> None:
        """Take every manager out and let it forget its records."""
        for session_id in list(self._managers):
            self.remove_rt_var_manager(session_id)


_POOL = RtVarManagerPool()
