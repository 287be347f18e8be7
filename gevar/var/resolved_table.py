"""Device memory of many blocks as arrays, so that many addresses are resolved by one search."""

from collections.abc import Iterable
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from gevar.var.block_memory import DeviceRecord

AddrArray = npt.NDArray[np.uint64]
"""Addresses."""

_NOWHERE: Final = np.empty(0, np.intp)


class ResolvedTable:
    """Blocks that have memory on one device, as they were at one moment.

    Parameters
    ----------
    version
        `DeviceState.version` at that moment.
    starts, ends
        First logical address of each block's data, rising, and the first one after it.
    shifts
        What takes a logical address in the block to its device address, modulo 2**64.

    Thread safety: it never changes.
    """

    __slots__ = ("_ends", "_shifts", "_starts", "version")

    def __init__(self, version: int, starts: AddrArray, ends: AddrArray, shifts: AddrArray) -> None:
        self.version = version
        self._starts = starts
        self._ends = ends
        self._shifts = shifts

    @classmethod
    def of(cls, records: Iterable[DeviceRecord], version: int) -> Self:
        """Make the table of the device memory in `records`."""
        rows = [(one.block.logic_addr, max(one.block.size_bytes, 1), one.data_addr) for one in records]
        columns = np.array([(0, 0, 0), *rows], np.uint64)  # no address is before the first row, and none in it
        starts, sizes, data_addrs = columns[np.argsort(columns[:, 0], kind="stable")].T.copy()
        return cls(version, starts, starts + sizes, data_addrs - starts)

    def resolve(self, addrs: AddrArray) -> tuple[AddrArray, npt.NDArray[np.intp]]:
        """Look addresses up.

        Returns
        -------
        tuple
            Device address of each, and the places of those that lie in no block of the table; what is found there is
            not defined.
        """
        places = np.searchsorted(self._starts, addrs, side="right")
        places -= 1
        is_inside = addrs < self._ends.take(places)
        missing = _NOWHERE if is_inside.all() else np.flatnonzero(~is_inside)
        return addrs + self._shifts.take(places), missing
