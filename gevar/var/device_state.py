"""What a manager knows of one device: memory, load states, and what was called ready."""

import threading

from gevar.types import LogicAddr
from gevar.var.block_memory import DeviceRecord
from gevar.var.expandable_memory import ExpandableMemory
from gevar.var.load_state import LoadTable
from gevar.var.resolved_table import ResolvedTable
from gevar.var.var_key import VarKey


class DeviceState:
    """What is on one device.

    Attributes
    ----------
    records : dict
        Published records by logical address of the block.
    memory : LoadTable
        Whether a block has memory.
    data : LoadTable
        Whether a block's data was loaded, as callers told; by logical address, too.
    ready : set
        Keys of variables that callers called ready.
    ready_elsewhere : set
        Keys of these whose memory is not the manager's, so that they stay ready when that is freed.
    expandables : list
        Memory that grows that blocks were taken from; only the last one may be usable.
    version : int
        Raised with every change of `records`.
    """

    __slots__ = ("_resolved", "data", "expandables", "memory", "ready", "ready_elsewhere", "records", "version")

    def __init__(self, lock: threading.RLock) -> None:
        self.records: dict[LogicAddr, DeviceRecord] = {}
        self.memory: LoadTable[LogicAddr] = LoadTable(lock)
        self.data: LoadTable[int] = LoadTable(lock)
        self.ready: set[VarKey] = set()
        self.ready_elsewhere: set[VarKey] = set()
        self.expandables: list[ExpandableMemory] = []
        self.version = 0
        self._resolved = ResolvedTable.of((), 0)

    def resolved(self, lock: threading.RLock) -> ResolvedTable:
        """Return the published records as arrays; the lock is taken only if they have changed."""
        table = self._resolved
        if table.version == self.version:
            return table
        with lock:
            records, version = list(self.records.values()), self.version
        table = self._resolved = ResolvedTable.of(records, version)
        return table
