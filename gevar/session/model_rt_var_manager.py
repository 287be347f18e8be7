"""The run-time view of a session's variables: restored from models, found by name with shape and memory.

Source: GE source, runtime/v1/common/runtime/model_rt_var_manager.cc, ModelRtVarManager.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gevar.errors import StateError, VariableError
from gevar.memory import MemoryManager
from gevar.status import FAILED
from gevar.types import DevAddr, DeviceId, LogicAddr, MemType, TensorDesc
from gevar.var import VarManager, VarOp
from gevar.var.var_op import CONSTANTOP, VARIABLE

SESSION_VERSION: Final = 0
"""Session version of an offline model (GE: ClOUD_VERSION)."""


@dataclass(frozen=True, slots=True)
class VarShapeAndMemory:
    """A variable as a kernel needs it.

    Attributes
    ----------
    desc
        Description it was restored with; carries origin and storage shape.
    logic_addr, dev_addr
        Logical address, and device address of the first byte of data.
    size_bytes
        Stored size in bytes.
    """

    desc: TensorDesc
    logic_addr: LogicAddr
    dev_addr: DevAddr
    size_bytes: int


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

    def init(self, device_id: DeviceId, logic_var_base: int, total_var_size: int) -> None:
        """Set up the session's variable manager with base and size of the first model; later calls change nothing.

        Parameters
        ----------
        device_id
            Device of the first model.
        logic_var_base
            First logical address of the variable space.
        total_var_size
            Bytes of the variable space.

        Raises
        ------
        ValueError
            Base or size is negative or leaves 64 bits. Nothing has changed.
        """
        with self._lock:
            if self._inited:
                return
            vm = self._var_manager
            if not vm.is_var_resource_inited:
                vm.init(SESSION_VERSION, self._session_id, device_id, 0)
                vm.set_var_mem_logic_base(logic_var_base)
                vm.set_var_mem_max_size(total_var_size)
            if not vm.has_memory_manager:
                vm.set_mem_manager(self._memory_manager)
            self._inited = True

    def restore_device_variables(self, ops: Iterable[VarOp], device_id: DeviceId) -> None:
        """Restore each Variable and Constant that is not there yet, get its device memory, and record where it lies.

        Other kinds of nodes are passed over. An initial value is copied when memory is got; the bytes of a Constant
        are not, see `VarManager.begin_var_load`.

        Raises
        ------
        StateError
            `init` was not called.
        VariableError, AddressError
            A variable contradicts one that is there, does not lie in the variable space, or has a size of 0 (status
            FAILED).
        AclError
            The device refuses memory or a copy.

        Notes
        -----
        After failure: the variables before the refused one stay restored, as in GE.
        """
        if not self._inited:
            raise StateError("the run-time variable manager is not initialised: call init first")
        for op in ops:
            if op.op_type in (VARIABLE, CONSTANTOP):
                self._restore(op, device_id)

    def _restore(self, op: VarOp, device_id: DeviceId) -> None:
        vm, desc = self._var_manager, op.output_desc[0]
        if not vm.is_var_exist(op.name, desc):
            vm.restore_var_mem(op.name, op, desc, MemType.RT_MEMORY_HBM)
        if desc.size <= 0:
            reason = f"its size is {desc.size} B; a variable at run time needs at least 1 B"
            raise VariableError(op.name, reason, status=FAILED)
        logic_addr = vm.get_var_addr(op.name, desc)
        dev_addr = vm.get_var_memory_addr(logic_addr, MemType.RT_MEMORY_HBM, device_id)
        with self._lock:
            record = VarShapeAndMemory(desc, logic_addr, dev_addr, desc.size)
            self._records.setdefault((op.name, device_id), record)

    def get_var_shape_and_memory(self, name: str, device_id: DeviceId) -> VarShapeAndMemory:
        """Return where a restored variable lies.

        Raises
        ------
        VariableError
            The name was not restored on this device.
        """
        record = self._records.get((name, device_id))
        if record is None:
            raise VariableError(name, f"not restored on device {device_id}; load a model that has it", status=FAILED)
        return record

    def destroy(self) -> None:
        """Forget every record; variables and memory belong to the variable manager and stay."""
        with self._lock:
            self._records.clear()
            self._inited = False
