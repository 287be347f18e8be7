"""Variable memory that the caller gives as one region: every HBM variable of a device lies in it, one after the other.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::SetExternalVar, GetVarMemoryAddr.
Differs: edge 13 of docs/differences.md.
"""

import threading

from gevar.errors import AddressError
from gevar.memory import MemoryManager
from gevar.types import DevAddr, DeviceId, LogicAddr
from gevar.var.initial_value import initial_data
from gevar.var.load_state import LoadTable
from gevar.var.var_block import VarBlock


class ExternalRegion:
    """Device memory of the caller's for the HBM variables of one device; it is never freed here.

    Parameters
    ----------
    dev_addr
        First address.
    size_bytes
        Size in bytes.
    device_id
        The device.
    lock
        The manager's lock.

    Attributes
    ----------
    dev_addr, size_bytes, device_id
        As given.
    initialised : LoadTable
        Whether a block's initial value was laid down.

    Thread safety: `resolve`, from any thread.
    """

    __slots__ = ("dev_addr", "device_id", "initialised", "size_bytes")

    def __init__(self, dev_addr: DevAddr, size_bytes: int, device_id: DeviceId, lock: threading.RLock) -> None:
        self.dev_addr = dev_addr
        self.size_bytes = size_bytes
        self.device_id = device_id
        self.initialised: LoadTable[LogicAddr] = LoadTable(lock)

    def resolve(
        self, logic_addr: LogicAddr, block: VarBlock | None, base: int, owned_end: int, copier: MemoryManager
    ) -> DevAddr:
        """Return the device address of a logical one; lay down the initial value at the first question for a block.

        Parameters
        ----------
        logic_addr
            The address.
        block
            Block it lies in, if any.
        base
            Logic base: the region starts there.
        owned_end
            First logical address after all variables; the region must reach it.
        copier
            Who copies an initial value.

        Raises
        ------
        AddressError
            The region is too small for the variables, or the address does not lie in it.
        FormatError
            The initial value does not fit. Nothing is copied.
        AclError
            The copy failed; the next question copies again.
        """
        needed, offset = owned_end - base, logic_addr - base
        if self.size_bytes < needed:
            reason = f"the external region has {self.size_bytes} B and the variables need {needed} B; give a larger one"
            raise AddressError(logic_addr, reason)
        if not 0 <= offset < self.size_bytes or (block is not None and block.logic_addr < base):
            reason = f"it does not lie in the external region, {self.size_bytes} B from {base} on"
            raise AddressError(logic_addr, reason)
        if block is not None and block.desc.init_value is not None:
            self._initialise(block, DevAddr(self.dev_addr + block.logic_addr - base), copier)
        return DevAddr(self.dev_addr + offset)

    def _initialise(self, block: VarBlock, data_addr: DevAddr, copier: MemoryManager) -> None:
        """Lay down the initial value of a block, once."""
        if self.initialised.is_loaded(block.logic_addr):
            return
        data = initial_data(block)
        ticket = self.initialised.begin(block.logic_addr)
        if ticket is None:
            return
        with ticket:
            if data:
                copier.memcpy_in(data_addr, block.size_bytes, data, self.device_id)
