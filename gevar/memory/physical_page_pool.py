"""Pages of physical memory of one size on one device, for the ranges that map them.

A page is the number by which the runtime knows it, not an object: a range takes thousands. They belong to one owner
object, so they go back when the pool is dropped too. Pages that a range gives back go to the device, or, in a pool that
several ranges share, wait for the next one; those that wait are given back before memory is called short.

Source: GE source, runtime/v1/graph/manager, PhysicalMemoryAllocator.
"""

import logging
import threading
from dataclasses import dataclass

from acl_shim import Device
from acl_shim.api_types import MemHandle
from acl_shim.errors import Argument
from acl_shim.lease import Lease
from acl_shim.mem_info import physical_pages
from acl_shim.owner import Owner
from acl_shim.structs import new_physical_prop
from acl_shim.table import new_cell
from gevar.align import GIANT_PAGE_BYTES, HUGE_PAGE_BYTES
from gevar.errors import AclError, GevarError, OutOfMemoryError, StateError
from gevar.types import DeviceId

_log = logging.getLogger("gevar.memory")


class _PageOwner(Owner):
    """Own pages by their handles."""

    __slots__ = ("handles", "lease", "page_bytes")

    def __init__(self, device: Device, lease: Lease, page_bytes: int) -> None:
        self.handles: set[MemHandle] = set()
        self.lease = lease
        self.page_bytes = page_bytes
        super().__init__(device, lease, 0)

    @property
    def is_alive(self) -> bool:
        """Whether the runtime still has the pages."""
        return self._alive()

    def give_back(self, handle: MemHandle) -> None:
        """Give one page back to the device."""
        if self._alive():
            runtime = self._device.runtime
            code = runtime.api.aclrtFreePhysical(handle)
            if code:
                raise runtime.error(code, "aclrtFreePhysical", {"handle": handle, "size_bytes": self.page_bytes})
        self.handles.discard(handle)

    def _give_back(self, _: int) -> None:
        for handle in tuple(self.handles):
            self.give_back(handle)


@dataclass(frozen=True, slots=True)
class PagePoolStatistics:
    """What a pool has.

    Attributes
    ----------
    page_bytes : int
        Size of a page in bytes.
    pages : int
        Pages that are alive.
    free_pages : int
        Pages of these that wait for their next use.
    users : int
        Ranges that use the pool.
    """

    page_bytes: int
    pages: int
    free_pages: int
    users: int


class PhysicalPagePool:
    """Hand out pages of one size.

    Parameters
    ----------
    device
        The device.
    page_bytes
        Size of a page in bytes, a multiple of 2 MiB. Pages of 1 GiB consist of one page of 1 GiB, all others of pages
        of 2 MiB.
    p2p
        Whether other devices reach the pages.
    is_shared
        Whether pages that are given back wait for the next user.

    Raises
    ------
    ValueError
        `page_bytes` is no multiple of 2 MiB.

    Thread safety: all methods, from any thread.
    Source: as the module.
    """

    def __init__(self, device: Device, page_bytes: int, *, p2p: bool = False, is_shared: bool = False) -> None:
        if page_bytes < HUGE_PAGE_BYTES or page_bytes % HUGE_PAGE_BYTES:
            raise ValueError(f"page_bytes is {page_bytes}: give a multiple of 2 MiB ({HUGE_PAGE_BYTES} B)")
        unit_bytes = GIANT_PAGE_BYTES if page_bytes == GIANT_PAGE_BYTES else HUGE_PAGE_BYTES
        self.page_bytes = page_bytes
        self.page_kind = physical_pages(unit_bytes, p2p)
        self.is_shared = is_shared
        self._device = device
        self._api = device.runtime.api
        self._cell = new_cell("uintptr_t *")
        self._prop = new_physical_prop(self.page_kind.attr, device.id)
        self._lock = threading.RLock()
        self._owner: _PageOwner | None = None
        self._free: list[MemHandle] = []
        self._users = 0

    @property
    def device_id(self) -> DeviceId:
        """Device of the pages."""
        return DeviceId(self._device.id)

    def initialize(self) -> None:
        """Count one more user."""
        with self._lock:
            self._users += 1

    def finalize(self) -> None:
        """Count one user less; with the last one all pages that wait go back to the device.

        Raises
        ------
        AclError
            The runtime refuses a page; the others are given back. The page waits, and the user counts, still.
        """
        with self._lock:
            if self._users == 1:
                self.trim()
            self._users -= 1

    def malloc_physical(self, *, reuse: bool = False) -> MemHandle:
        """Return the handle of a page; its content is not defined.

        Parameters
        ----------
        reuse
            Whether a page that somebody gave back will do.

        Raises
        ------
        OutOfMemoryError
            The device has no such page, those that waited here are given back. Nothing is left allocated.
        AclError
            The runtime refuses: 207000 where the product lacks these pages. Nothing is left allocated.
        """
        with self._lock:
            lease, owner = self._device.enter(), self._owner
            if owner is None or owner.lease is not lease:  # after a reset its pages are gone, whoever has them
                owner, self._owner, self._free = None, None, []
            elif reuse and self._free:
                return self._free.pop()
            code = self._api.aclrtMallocPhysical(self._cell, self.page_bytes, self._prop, 0)
            if code:
                self._second_try(code)
            handle = MemHandle(self._cell[0])
            if owner is None or self._owner is None:
                owner = self._owner = _PageOwner(self._device, lease, self.page_bytes)
            owner.handles.add(handle)
            return handle

    def _second_try(self, code: int) -> None:
        """Try once more where memory is short and pages wait, once these went back; else raise."""
        error = self._refusal(code)
        if not self._free or not isinstance(error, OutOfMemoryError):
            raise error
        self.trim()
        code = self._api.aclrtMallocPhysical(self._cell, self.page_bytes, self._prop, 0)
        if code:
            raise self._refusal(code)

    def _refusal(self, code: int) -> AclError:
        size_bytes, pages = self.page_bytes, self.page_kind
        arguments: dict[str, Argument] = {"page_bytes": size_bytes}
        return self._device.allocation_error(code, "aclrtMallocPhysical", size_bytes, pages, arguments)

    def free_physical(self, handle: MemHandle, *, to_device: bool = False) -> None:
        """Take a page back that is mapped nowhere; it goes to the device, or waits where the pool is shared.

        A page that the device does not take waits too; `trim` and `finalize` try again, and raise.

        Parameters
        ----------
        handle
            The page.
        to_device
            Whether it goes to the device even where the pool is shared.

        Raises
        ------
        StateError
            The page is not out.
        """
        with self._lock:
            owner = self._owner
            if owner is None or handle not in owner.handles:
                raise StateError(f"the pool of device {self._device.id} has no page {handle:#x} out: free a page once")
            self._free.append(handle)
            if to_device or not self.is_shared:
                try:
                    self.trim()
                except AclError as error:
                    _log.warning("device %d: %d pages wait in their pool: %s", self.device_id, len(self._free), error)

    def trim(self) -> int:
        """Give the pages that wait back to the device.

        Returns
        -------
        int
            Bytes that went back.

        Raises
        ------
        AclError
            The runtime refuses a page; the others are given back. The page waits still.
        """
        with self._lock:
            owner, waiting = self._owner, self._free
            if owner is None:
                return 0
            self._free, failures = [], list[GevarError]()
            for handle in waiting:
                try:
                    owner.give_back(handle)
                except GevarError as error:
                    self._free.append(handle)
                    failures.append(error)
            if not owner.handles:
                owner.close()
                self._owner = None
            if failures:
                raise failures[0]
            return len(waiting) * self.page_bytes

    @property
    def statistics(self) -> PagePoolStatistics:
        """What the pool has."""
        with self._lock:
            pages = len(self._owner.handles) if self._owner is not None else 0
            return PagePoolStatistics(self.page_bytes, pages, len(self._free), self._users)

    def __repr__(self) -> str:
        figures = self.statistics
        return f"<PhysicalPagePool of {figures.pages} pages of {self.page_bytes} B on device {self._device.id}>"
