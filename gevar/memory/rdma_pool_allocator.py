"""One block of device memory that is registered for network transfer, cut into pieces.

Source: GE source, runtime/v1/graph/manager, RdmaPoolAllocator.
"""

from typing import Final

from acl_shim.codes import AclErrorCode
from acl_shim.errors import Shortage
from gevar.align import align_up
from gevar.errors import OutOfMemoryError
from gevar.memory.free_runs import FreeRuns
from gevar.memory.memory_resource import (
    MemoryResource,
    UpstreamResource,
    checked_size,
    state_error,
    unknown_block,
)
from gevar.memory.memory_shortage import MemoryReport, MemoryShortageError, largest_holders
from gevar.status import GE_MULTI_INIT, INTERNAL_ERROR
from gevar.types import DevAddr

RDMA_PAGE_BYTES: Final = 4096
"""Unit of pieces: registration goes by page. GE takes 512."""


class RdmaPoolAllocator(UpstreamResource):
    """Pieces of one registered block; implements `MemoryResource`.

    The smallest free piece that has room is taken, and cut where the request is at most half of it.

    Parameters
    ----------
    upstream
        Where the block comes from.

    Thread safety: all methods, from any thread.
    Source: as the module.
    """

    def __init__(self, upstream: MemoryResource) -> None:
        super().__init__(upstream)
        self._base: tuple[DevAddr, int] | None = None
        self._free = FreeRuns()
        self._live: dict[int, tuple[int, int, str]] = {}  # address -> (bytes of the piece, bytes asked for, tag)

    @property
    def has_memory(self) -> bool:
        """Whether the block is there."""
        return self._base is not None

    def init_memory(self, size_bytes: int) -> None:
        """Allocate the block.

        Parameters
        ----------
        size_bytes
            Its size in bytes; rounded up to whole pages.

        Raises
        ------
        StateError
            There is a block already (status GE_MULTI_INIT).
        AclError, OutOfMemoryError
            There is no memory. Nothing has changed.
        """
        size = align_up(checked_size(size_bytes), RDMA_PAGE_BYTES)
        with self._lock:
            if self._base is not None:
                raise state_error(f"the RDMA pool of device {self.device_id} is initialised already", GE_MULTI_INIT)
            base = self.upstream.allocate(size, "RDMA pool")
            self._base = base, size
            self._free.add(base, size)

    def get_base_addr(self) -> tuple[DevAddr, int]:
        """Return first address and size in bytes of the block.

        Raises
        ------
        StateError
            There is no block (status INTERNAL_ERROR).
        """
        with self._lock:
            if self._base is None:
                raise state_error(f"the RDMA pool of device {self.device_id} has no memory: init it", INTERNAL_ERROR)
            return self._base

    def allocate(self, size_bytes: int, tag: str = "") -> DevAddr:
        """Return a piece, which starts on a page; see `MemoryResource.allocate`."""
        asked = checked_size(size_bytes)
        size = align_up(asked, RDMA_PAGE_BYTES)
        with self._lock:
            self.get_base_addr()
            found = self._free.take(size)
            if found is None:
                raise self._shortage(asked)
            start, room = found
            if 2 * size <= room:
                self._free.add(start + size, room - size, (start + size, start + room))
                room = size
            self._live[start] = room, asked, tag
            self._counter.add(asked)
            return DevAddr(start)

    def _shortage(self, size_bytes: int) -> MemoryShortageError:
        device_id, free = self.device_id, self._free
        total = 0 if self._base is None else self._base[1]
        shortage = Shortage(size_bytes, free.total_bytes, total, device_id, "registered memory")
        code, arguments = AclErrorCode.ACL_ERROR_RT_MEMORY_ALLOCATION, {"size_bytes": size_bytes}
        error = OutOfMemoryError(code, "RdmaPoolAllocator.allocate", {**arguments}, shortage=shortage)
        holders = largest_holders((tag, asked) for _, asked, tag in self._live.values())
        pieces = free.total_bytes >= size_bytes
        advice = "free neighbouring pieces: the free memory lies in pieces" if pieces else "make the pool larger"
        report = MemoryReport(
            size_bytes, device_id, "the RDMA pool", free.total_bytes, free.largest_bytes, (), holders, (advice,)
        )
        return MemoryShortageError(error, report)

    def free(self, dev_addr: DevAddr) -> None:
        """Take a piece back; see `MemoryResource.free`."""
        with self._lock:
            piece = self._live.pop(dev_addr, None)
            if piece is None:
                raise unknown_block(f"the RDMA pool of device {self.device_id}", dev_addr)
            self._free.add(dev_addr, piece[0])
            self._counter.remove(piece[1])

    def finalize(self) -> None:
        """Give the block back, whatever pieces are out; does nothing without one.

        Raises
        ------
        AclError
            The runtime refuses; the pool is as before.
        """
        with self._lock:
            if self._base is None:
                return
            self.upstream.free(self._base[0])
            for _, asked, _ in self._live.values():
                self._counter.remove(asked)
            self._base, self._free, self._live = None, FreeRuns(), {}
