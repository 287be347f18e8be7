"""Memory that grows, asleep: whose bytes wait on the host, whose a function brings back, and whose are lost.

An allocator sleeps as a whole, so what is asked for some variables only is sorted out here: the bytes of the others
wait in host memory.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gevar.errors import GevarError
from gevar.memory import ExpandableMemoryAllocator, MemoryManager
from gevar.memory.expandable_sleep import KeepContents, Reload, Sleep
from gevar.types import DevAddr, DeviceId
from gevar.var.block_memory import DeviceRecord
from gevar.var.initial_value import initial_data
from gevar.var.var_block import VarBlock
from gevar.var.var_op import CONSTANTOP, FILECONSTANT, VARIABLE

SLEEPING_KINDS: Final = (VARIABLE, CONSTANTOP, FILECONSTANT)
"""Types of nodes whose variables have memory of the manager's."""

ReloadVar = Callable[[DeviceRecord], None]
"""Bring the bytes of a variable back: `block.size_bytes` of them at `data_addr` of the device."""


@runtime_checkable
class SleepingAllocator(ExpandableMemoryAllocator, Protocol):
    """Memory that grows and can sleep; `gevar.memory.ExpandableActiveMemoryAllocator` is one."""

    def begin_sleep(self, keep: str = "host", reload: Reload | None = None) -> None:
        """Do all of going to sleep that can fail; `wake` undoes it without a loss until `end_sleep`."""

    def end_sleep(self) -> int:
        """Give all pages back to the device, and return their bytes; every address stays."""

    def wake(self) -> None:
        """Put pages behind every address, and bring the bytes back; all or nothing."""


def kind_of(block: VarBlock) -> str:
    """Return the type of the node that a block was made for; a variable without a node is a Variable."""
    return VARIABLE if block.op is None else block.op.op_type


@dataclass(slots=True)
class SleepPlan:
    """What is to become of the bytes of variables.

    Attributes
    ----------
    keep : KeepContents
        What happens to those of some kinds.
    kinds : frozenset of str
        These kinds, by the type of the node; the bytes of all others wait in host memory.
    reload : Callable or None
        Brings bytes back with RELOAD.
    """

    keep: KeepContents
    kinds: frozenset[str]
    reload: ReloadVar | None

    @classmethod
    def checked(cls, kinds: Collection[str] | None, keep: str, reload: ReloadVar | None) -> Self:
        """Return a plan.

        Raises
        ------
        ValueError
            There is no such kind of variable, or no such way to keep bytes, or `reload` does not go with it.
        """
        chosen = frozenset(SLEEPING_KINDS if kinds is None else [kinds] if isinstance(kinds, str) else kinds)
        if unknown := sorted(chosen.difference(SLEEPING_KINDS)):
            raise ValueError(f"kinds has {', '.join(map(repr, unknown))}: give some of {', '.join(SLEEPING_KINDS)}")
        Sleep.checked(keep, None if reload is None else lambda *_: None)
        return cls(KeepContents(keep), chosen, reload)

    def contents(self, records: Iterable[DeviceRecord], copier: MemoryManager, device_id: DeviceId) -> "Contents":
        """Copy what is to wait on the host, and say how a device's bytes come back.

        Raises
        ------
        AclError
            A copy failed.
        """
        contents = Contents(copier, device_id, self.reload)
        for record in records:
            if kind_of(record.block) in self.kinds:
                contents.chosen[record.dev_addr] = record
            else:
                values = contents.saved[record.dev_addr] = np.empty(record.capacity_bytes, np.uint8)
                copier.memcpy_out(values, record.dev_addr, device_id)
        return contents


@dataclass(slots=True)
class Contents:
    """How the bytes of a device come back when its memory wakes.

    Attributes
    ----------
    copier : MemoryManager
        Copies them.
    device_id : DeviceId
        The device.
    reload : Callable or None
        Brings those of `chosen` back; without it they start anew, with their initial value if they have one.
    saved : dict
        Bytes of blocks that waited on the host, by device address.
    chosen : dict
        Memory whose bytes do not wait on the host, by device address.
    """

    copier: MemoryManager
    device_id: DeviceId
    reload: ReloadVar | None
    saved: dict[DevAddr, NDArray[np.uint8]] = field(default_factory=dict)
    chosen: dict[DevAddr, DeviceRecord] = field(default_factory=dict)

    def restore(self, dev_addr: DevAddr, size_bytes: int, _tag: str) -> None:
        """Bring the bytes of one block back.

        Raises
        ------
        AclError
            A copy failed.
        Exception
            What `reload` raises.
        """
        values, record = self.saved.get(dev_addr), self.chosen.get(dev_addr)
        if values is not None:
            self.copier.memcpy_in(dev_addr, size_bytes, values, self.device_id)
        elif record is not None and self.reload is not None:
            self.reload(record)
        elif record is not None and (data := initial_data(record.block)):
            self.copier.memcpy_in(record.data_addr, record.block.size_bytes, data, self.device_id)


@dataclass(slots=True)
class Nap:
    """Sleep of one allocator.

    Attributes
    ----------
    allocator : SleepingAllocator
        The allocator.
    contents : Contents or None
        How bytes come back; None where all wait with the allocator.
    """

    allocator: SleepingAllocator
    contents: Contents | None

    def begin(self) -> None:
        """Let it go to sleep as far as that can fail. Raises as `ExpandableActiveMemoryAllocator.sleep`."""
        if self.contents is None:
            self.allocator.begin_sleep(KeepContents.HOST)
        else:
            self.allocator.begin_sleep(KeepContents.RELOAD, self.contents.restore)

    def begin_and_end(self) -> None:
        """Let it sleep."""
        self.begin()
        self.allocator.end_sleep()


def undo_each(naps: list[Nap], undo: Callable[[Nap], object], error: BaseException) -> list[Nap]:
    """Undo naps, the last one first; return those that could not be undone, each with a note on the error."""
    left = []
    for nap in reversed(naps):
        try:
            undo(nap)
        except GevarError as second:
            error.add_note(f"what was done before the failure could not be undone, wake again: {second}")
            left.append(nap)
    return left
