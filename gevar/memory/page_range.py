"""A reserved range of device addresses into which pages are mapped one by one."""

from collections.abc import Iterable

from acl_shim import Device
from acl_shim.api_types import MemHandle
from acl_shim.lease import Lease
from acl_shim.owner import SizedOwner
from acl_shim.table import new_cell
from gevar.errors import AclError
from gevar.memory.page import Page

_HUGE_RANGE = 1  # flag of a range for huge pages


class PageRange(SizedOwner):
    """Own a range of addresses, and what is mapped in it.

    A range costs no memory. `close` and the finaliser unmap what is mapped and give the range back. Pages are handles
    of the runtime, see `PhysicalPagePool`; they are not given back here.

    Attributes
    ----------
    addr : int
        First address.
    mapped : dict
        Address of each mapped page -> its handle.

    Thread safety: none beyond that of closing; its owner calls under its own lock.
    Source: aclrtReserveMemAddress, aclrtMapMem, aclrtUnmapMem, aclrtReleaseMemAddress.
    """

    __slots__ = ("_api", "addr", "mapped")

    _lives_on_host = True  # the last reset of the device drops what is mapped, not the range

    def __init__(self, device: Device, lease: Lease, addr: int, size_bytes: int) -> None:
        self.addr = addr
        self.mapped: dict[int, MemHandle] = {}
        self._api = device.runtime.api
        super().__init__(device, lease, addr, size_bytes)

    @property
    def is_alive(self) -> bool:
        """Whether the device has not been reset since the range was reserved."""
        return self._lease.device_alive

    @classmethod
    def reserve(cls, device: Device, size_bytes: int) -> "PageRange":
        """Reserve a range.

        Parameters
        ----------
        device
            Device whose pages will be mapped.
        size_bytes
            Size in bytes.

        Raises
        ------
        AclError
            The runtime refuses. Nothing is left reserved.
        """
        lease, cell, runtime = device.enter(), new_cell("uintptr_t *"), device.runtime
        code = runtime.api.aclrtReserveMemAddress(cell, size_bytes, 0, 0, _HUGE_RANGE)
        runtime.check(code, "aclrtReserveMemAddress", {"size_bytes": size_bytes, "device_id": device.id})
        return cls(device, lease, cell[0], size_bytes)

    def map(self, addr: int, size_bytes: int, handle: MemHandle) -> None:
        """Map a page.

        Parameters
        ----------
        addr
            Where, a whole page of the range.
        size_bytes
            Size of the page in bytes.
        handle
            The page.

        Raises
        ------
        AclError
            The runtime refuses. Nothing is mapped.
        """
        code = self._api.aclrtMapMem(addr, size_bytes, 0, handle, 0)
        if code:
            raise self._error(code, "aclrtMapMem", addr)
        self.mapped[addr] = handle

    def unmap(self, addr: int) -> None:
        """Unmap the page that starts at an address.

        Raises
        ------
        AclError
            The runtime refuses; the page is mapped still.
        """
        if self._lease.device_alive:
            code = self._api.aclrtUnmapMem(addr)
            if code:
                raise self._error(code, "aclrtUnmapMem", addr)
        self.mapped.pop(addr, None)

    def map_pages(self, pages: Iterable[Page]) -> None:
        """Map those of some pages that are not mapped, all or none.

        Raises
        ------
        AclError
            A page cannot be mapped. Everything is as before; what cannot be undone is noted on the error.
        """
        done: list[Page] = []
        try:
            for page in pages:
                if page.addr not in self.mapped:
                    self.map(page.addr, page.pool.page_bytes, page.handle)
                    done.append(page)
        except BaseException as error:
            for page in done:
                try:
                    self.unmap(page.addr)
                except AclError as second:
                    error.add_note(f"a page that was mapped before the failure stays mapped: {second}")
            raise

    def unmap_pages(self, pages: Iterable[Page]) -> None:
        """Unmap those of some pages that are mapped, all or none.

        Raises
        ------
        AclError
            A page cannot be unmapped. Everything is as before; what cannot be undone is noted on the error.
        """
        done: list[Page] = []
        try:
            for page in pages:
                if page.addr in self.mapped:
                    self.unmap(page.addr)
                    done.append(page)
        except BaseException as error:
            self.remap_pages(done, error)
            raise

    def remap_pages(self, pages: Iterable[Page], error: BaseException) -> None:
        """Map pages again that were unmapped before a failure; what does not work is noted on the error."""
        for page in pages:
            try:
                self.map(page.addr, page.pool.page_bytes, page.handle)
            except AclError as second:
                error.add_note(f"the page at {page.addr:#x} is not mapped any more: free all of this memory: {second}")

    def _error(self, code: int, call: str, addr: int) -> AclError:
        return self._device.runtime.error(code, call, {"addr": addr, "device_id": self._device.id})

    def _give_back(self, handle: int) -> None:
        for addr in tuple(self.mapped):
            self.unmap(addr)
        code = self._api.aclrtReleaseMemAddress(handle)
        if code:
            arguments = {"addr": handle, "size_bytes": self._size_bytes}
            raise self._device.runtime.error(code, "aclrtReleaseMemAddress", {**arguments})
