"""Memory that sleeps: its addresses stay, its pages go back to the device until it is woken."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from acl_shim import Device
from gevar.types import DevAddr

Reload = Callable[[DevAddr, int, str], None]
"""Bring the bytes of a block back: (first address, size in bytes, tag)."""


class KeepContents(StrEnum):
    """What happens to the bytes of memory that sleeps."""

    HOST = "host"
    """They wait in host memory."""
    RELOAD = "reload"
    """A function of the caller brings them back."""
    DISCARD = "discard"
    """They are lost."""


@dataclass(slots=True)
class Sleep:
    """Sleep of one allocator, and what it needs to be woken.

    Attributes
    ----------
    keep : KeepContents
        What happens to the bytes.
    reload : Callable or None
        Brings them back with RELOAD.
    saved : list
        (first address, bytes) of every run of blocks with HOST.
    is_waking : bool
        Whether a thread is bringing them back.
    holds_pages : bool
        Whether the pages are at hand still, with their bytes.
    """

    keep: KeepContents
    reload: Reload | None = None
    saved: list[tuple[DevAddr, NDArray[np.uint8]]] = field(default_factory=list)
    is_waking: bool = False
    holds_pages: bool = False

    @classmethod
    def checked(cls, keep: str, reload: Reload | None) -> "Sleep":
        """Return a sleep of a kind.

        Raises
        ------
        ValueError
            There is no such kind, or `reload` is given for another one than ``reload``, or missing for it.
        """
        if keep not in list(KeepContents):
            raise ValueError(f"keep is {keep!r}: give one of {', '.join(KeepContents)}")
        kind = KeepContents(keep)
        if (kind is KeepContents.RELOAD) != (reload is not None):
            raise ValueError(f"keep is {keep!r} and reload is {reload!r}: give a function with 'reload', and only then")
        return cls(kind, reload)

    @property
    def keeps_copy(self) -> bool:
        """Whether the bytes wait in host memory."""
        return self.keep is KeepContents.HOST

    @property
    def saved_bytes(self) -> int:
        """Bytes that wait in host memory."""
        return sum(values.nbytes for _, values in self.saved)

    def save(self, device: Device, blocks: Iterable[tuple[DevAddr, int]]) -> None:
        """Copy blocks to host memory, neighbours in one piece.

        Parameters
        ----------
        device
            Their device.
        blocks
            First address and size in bytes of each, by address.

        Raises
        ------
        AclError
            A copy failed.
        """
        for start, size_bytes in _joined(blocks):
            values = np.empty(size_bytes, np.uint8)
            device.memcpy_out(values, start)
            self.saved.append((DevAddr(start), values))

    def restore(self, device: Device, blocks: Iterable[tuple[DevAddr, int, str]]) -> None:
        """Bring the bytes back.

        Parameters
        ----------
        device
            Device of the blocks.
        blocks
            First address, size in bytes and tag of each.

        Raises
        ------
        AclError
            A copy failed.
        Exception
            What `reload` raises.
        """
        for start, values in self.saved:
            device.memcpy_in(start, values.nbytes, values)
        if self.reload is not None:
            for dev_addr, size_bytes, tag in blocks:
                self.reload(dev_addr, size_bytes, tag)


def _joined(blocks: Iterable[tuple[DevAddr, int]]) -> list[tuple[int, int]]:
    """Join blocks that are neighbours."""
    runs: list[tuple[int, int]] = []
    for start, size_bytes in blocks:
        if runs and sum(runs[-1]) == start:
            runs[-1] = runs[-1][0], runs[-1][1] + size_bytes
        else:
            runs.append((start, size_bytes))
    return runs
