"""Pages behind one range of addresses: taken where they are touched first, counted, given back with the last user.

Two neighbours share the page on their boundary. A slot of the range has one page of the wanted size; where that is
1 GiB and cannot be had, pages of 2 MiB at the touched places. Every operation happens completely or leaves the table as
it was; what cannot even be undone is said in a note on the error.

Source: GE source, runtime/v1/graph/manager, ExpandableActiveMemoryAllocatorImp.
"""

from collections.abc import Iterable, Iterator

from acl_shim.api_types import MemHandle
from gevar.align import HUGE_PAGE_BYTES
from gevar.errors import AclError
from gevar.memory.huge_page_policy import PageSource
from gevar.memory.page import Page
from gevar.memory.page_range import PageRange
from gevar.memory.page_records import PageRecords
from gevar.memory.physical_page_pool import PhysicalPagePool


class PageTable:
    """Pages of one range, by offset from its start.

    Parameters
    ----------
    page_range
        The range.
    source
        Where pages come from.
    reuse
        Whether pages that another owner gave back will do.
    is_checked
        Whether each page keeps a record of the blocks on it, and overlaps are refused.

    Attributes
    ----------
    physical_bytes : int
        Bytes of the pages that are there.

    Thread safety: none; its owner calls under its own lock.
    """

    def __init__(self, page_range: PageRange, source: PageSource, *, reuse: bool, is_checked: bool = False) -> None:
        self.page_range = page_range
        self.source = source
        self._page_bytes = source.pool.page_bytes
        self._reuse = reuse
        self._pages: dict[int, Page] = {}  # slot -> page of the wanted size
        self._small: dict[int, Page] = {}  # 2 MiB unit -> page, in slots without one
        self._split: dict[int, int] = {}  # slot -> how many 2 MiB pages it has
        self._records = PageRecords() if is_checked else None
        self.physical_bytes = 0

    def pages(self) -> Iterator[Page]:
        """Yield every page."""
        yield from self._pages.values()
        yield from self._small.values()

    def touch(self, begin: int, end: int) -> None:
        """Make a part of the range physical, for one more block.

        Parameters
        ----------
        begin, end
            First offset of the block, and the one behind its last byte.

        Raises
        ------
        AclError, OutOfMemoryError
            A page cannot be had or mapped. The table is as before.
        """
        page_bytes, pages = self._page_bytes, self._pages
        first, slot = begin // page_bytes, (end - 1) // page_bytes
        if first == slot and (page := pages.get(slot)) is not None:
            page.refs += 1  # the usual case: a block on a page that is there
        else:
            touched: list[Page] = []
            try:
                while slot >= first:
                    page = pages.get(slot)
                    if page is None and slot not in self._split:
                        handle = self.source.malloc_page(reuse=self._reuse)
                        if handle is not None:
                            page = pages[slot] = self._map(slot * page_bytes, handle, self.source.pool)
                    if page is None:
                        self._touch_units(slot, begin, end, touched)
                    else:
                        page.refs += 1
                        touched.append(page)
                    slot -= 1
            except BaseException as error:
                self._undo_touch(touched, error)
                raise
        if self._records is not None:
            self._records.add((page.addr for page in self.touched(begin, end)), begin, end)

    def _touch_units(self, slot: int, begin: int, end: int, touched: list[Page]) -> None:
        """Make the part of a slot physical that a block takes, by pages of 2 MiB."""
        for unit in reversed(self._units(slot, begin, end)):
            small = self._small.get(unit)
            if small is None:
                handle = self.source.malloc_fallback(reuse=self._reuse)
                pool = self.source.fallback or self.source.pool
                small = self._small[unit] = self._map(unit * HUGE_PAGE_BYTES, handle, pool)
                self._split[slot] = self._split.get(slot, 0) + 1
            small.refs += 1
            touched.append(small)

    def _units(self, slot: int, begin: int, end: int) -> range:
        """2 MiB units of a slot that a part of the range touches."""
        low, high = max(begin, slot * self._page_bytes), min(end, (slot + 1) * self._page_bytes)
        return range(low // HUGE_PAGE_BYTES, (high - 1) // HUGE_PAGE_BYTES + 1)

    def _map(self, offset: int, handle: MemHandle, pool: PhysicalPagePool) -> Page:
        addr = self.page_range.addr + offset
        try:
            self.page_range.map(addr, pool.page_bytes, handle)
        except BaseException:
            pool.free_physical(handle)
            raise
        self.physical_bytes += pool.page_bytes
        return Page(addr, handle, pool)

    def _undo_touch(self, touched: list[Page], error: BaseException) -> None:
        """Take back what a failed `touch` did; a page that cannot be unmapped stays, for the next block there."""
        for page in reversed(touched):
            page.refs -= 1
            if not page.refs:
                try:
                    self.page_range.unmap(page.addr)
                except AclError as second:
                    error.add_note(f"a page that was made before the failure stays mapped: {second}")
                else:
                    self._forget(page)

    def _forget(self, page: Page, *, to_device: bool = False) -> None:
        """Drop a page that is unmapped, and give its memory to the pool."""
        offset = page.addr - self.page_range.addr
        if page.pool is self.source.pool:
            del self._pages[offset // self._page_bytes]
            self.source.renew_budget()
        else:
            del self._small[offset // HUGE_PAGE_BYTES]
            slot = offset // self._page_bytes
            self._split[slot] -= 1
            if not self._split[slot]:
                del self._split[slot]
        self.physical_bytes -= page.pool.page_bytes
        if self.page_range.is_alive:
            page.pool.free_physical(page.handle, to_device=to_device)

    def touched(self, begin: int, end: int) -> list[Page]:
        """Return the pages under a part of the range that is physical, by address."""
        found: list[Page] = []
        for slot in range(begin // self._page_bytes, (end - 1) // self._page_bytes + 1):
            page = self._pages.get(slot)
            if page is not None:
                found.append(page)
            else:
                found += (self._small[unit] for unit in self._units(slot, begin, end))
        return found

    def release(self, begin: int, end: int) -> None:
        """Take back what `touch` did for one block; pages that no other block touches go to their pools.

        Raises
        ------
        AclError
            A page cannot be unmapped. The table is as before.
        """
        pages = self.touched(begin, end)
        last = [page for page in pages if page.refs == 1]
        self.page_range.unmap_pages(last)
        for page in pages:
            page.refs -= 1
        for page in last:
            self._forget(page)
        if self._records is not None:
            self._records.remove((page.addr for page in pages), begin)

    def release_range(self) -> None:
        """Unmap every page, give the range back, and the pages to their pools.

        Raises
        ------
        AclError
            A page cannot be unmapped, or the range not given back. Everything is as before.
        """
        pages = list(self.pages())
        self.page_range.unmap_pages(pages)
        try:
            self.page_range.close()
        except BaseException as error:
            self.page_range.remap_pages(pages, error)
            raise
        for page in pages:
            self._forget(page)

    def unmap_all(self) -> None:
        """Unmap every page; pages and their bytes stay, until `give_back_all` or `map_all`.

        Raises
        ------
        AclError
            A page cannot be unmapped. Everything is as before.
        """
        self.page_range.unmap_pages(self.pages())

    def map_all(self) -> None:
        """Map every page again, after `unmap_all`.

        Raises
        ------
        AclError
            A page cannot be mapped. Everything is as before.
        """
        self.page_range.map_pages(self.pages())

    def give_back_all(self) -> int:
        """Give every page back to the device, after `unmap_all`; the range stays. Return the bytes given back."""
        freed = self.physical_bytes
        for page in list(self.pages()):
            self._forget(page, to_device=True)
        self._forget_records()
        return freed

    def suspend(self) -> None:
        """Unmap every page and give it back to the device; the range stays.

        Raises
        ------
        AclError
            A page cannot be unmapped. Everything is as before.
        """
        self.unmap_all()
        self.give_back_all()

    def resume(self, blocks: Iterable[tuple[int, int]]) -> None:
        """Make the places of blocks physical again, after `suspend`; which pages serve is decided anew.

        Parameters
        ----------
        blocks
            First offset and size in bytes of each.

        Raises
        ------
        AclError, OutOfMemoryError
            A page cannot be had or mapped. There is no page, as before.
        """
        for page in list(self.pages()):  # left by a failure whose undoing failed too
            page.refs = 0
            if page.addr not in self.page_range.mapped:
                self._forget(page)
        try:
            for begin, size_bytes in blocks:
                self.touch(begin, begin + size_bytes)
        except BaseException as error:
            pages = list(self.pages())
            for page in pages:
                page.refs = 1
            self._undo_touch(pages, error)
            self._forget_records()
            raise

    def _forget_records(self) -> None:
        if self._records is not None:
            self._records = PageRecords()
