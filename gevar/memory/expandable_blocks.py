"""Blocks of memory that grows: places in one reserved range, and pages under them.

Blocks never move. Beyond GE a single one can be freed: its pages go back, and the next that fits takes its place.

Source: GE source, runtime/v1/graph/manager, ExpandableActiveMemoryAllocator.
"""

from acl_shim.codes import AclErrorCode
from gevar.errors import AclError, StateError
from gevar.memory.expandable_range import (
    close_source,
    open_source,
    range_bytes,
    range_error,
)
from gevar.memory.expandable_report import explained
from gevar.memory.expandable_state import ExpandableState
from gevar.memory.memory_resource import checked_size, unknown_block
from gevar.memory.page_range import PageRange
from gevar.memory.page_table import PageTable
from gevar.types import DevAddr


class ExpandableBlocks(ExpandableState):
    """The part of `ExpandableActiveMemoryAllocator` that hands blocks out and takes them back."""

    def malloc_memory(self, purpose: str, size_bytes: int, incremental: bool = False) -> DevAddr:
        """Return memory; its content is not defined.

        Parameters
        ----------
        purpose
            What it is for, in words; reports name it.
        size_bytes
            Size in bytes, at least 1.
        incremental
            Whether the memory is a block of its own; else it starts where the range does, and all who ask so get the
            same memory.

        Raises
        ------
        ValueError, SizeOverflowError
            As `checked_size`.
        OutOfMemoryError
            The range or the device has no room. Nothing is left allocated.
        AclError
            The runtime refuses a step. Nothing is left allocated.
        StateError
            The memory sleeps, the runtime lacks a function, or it was reset; without `incremental` also where single
            blocks were freed.
        """
        size = checked_size(size_bytes)
        with self._lock:
            if self._sleep is not None:
                raise self._asleep_error()
            table = self._table
            if table is not None and not table.page_range.is_alive:
                self._device.runtime.device_count()  # a runtime that is closed or forked says so
                raise StateError(f"device {self._device.id} was reset, its memory is gone: call free_memory first")
            try:
                if table is None:
                    table = self._reserve()
                offset = self._grow(table, size, purpose) if incremental else self._fix(table, size, purpose)
            except AclError as error:
                told = explained(error, self, size)
                self._drop_empty_range(told)
                raise told from error
            return DevAddr(table.page_range.addr + offset)

    def _drop_empty_range(self, error: AclError) -> None:
        """Give a range back in which nothing lies, after a failure."""
        if self._table is not None and not self._blocks and not self._fixed:
            try:
                self._release()
            except AclError as second:
                error.add_note(f"the empty range stays reserved: {second}")

    def allocate(self, size_bytes: int, tag: str = "") -> DevAddr:
        """Return a block; see `malloc_memory` with `incremental`, which it is under the name of every resource."""
        return self.malloc_memory(tag, size_bytes, True)

    def _reserve(self) -> PageTable:
        """Reserve the range."""
        device, mode, page_bytes = self._device, self.mode, self.page_bytes
        limit = range_bytes(device, page_bytes, mode, self.max_bytes)
        try:
            page_range = PageRange.reserve(device, limit)
        except AclError as error:
            self._refused = error.code == AclErrorCode.ACL_ERROR_RT_FEATURE_NOT_SUPPORT
            raise
        shared = self._shared_pools if self._share_phy_allocator else None
        source = open_source(device, page_bytes, mode, shared, self._decisions, p2p=self._p2p)
        self._limit = limit
        self._table = PageTable(page_range, source, reuse=self._reuse, is_checked=self._is_checked)
        return self._table

    def _grow(self, table: PageTable, size: int, tag: str) -> int:
        """Give a block a place, the smallest free one before the end or at the end, and pages."""
        hole = self._holes.take(size) if self._holes.total_bytes else None
        if hole is None:
            offset = self._used
            end = offset + size
            if end > self._limit:
                raise range_error(self._device.id, size, self._limit - offset, self._limit)
            table.touch(offset, end)
            self._used = end
        else:
            offset = self._fill_hole(table, hole, size)
        self._blocks[offset] = size, tag
        self._counter.add(size)
        return offset

    def _fill_hole(self, table: PageTable, hole: tuple[int, int], size: int) -> int:
        """Put a block at the start of a free place that was taken out; after failure the place is back."""
        start, room = hole
        try:
            table.touch(start, start + size)
        except BaseException:
            self._holes.add(start, room)
            raise
        if room > size:
            self._holes.add(start + size, room - size)
        return start

    def _fix(self, table: PageTable, size: int, tag: str) -> int:
        """Make the range physical up to a size, for one more user from its start."""
        used = self._used
        if self._holes.total_bytes:
            raise StateError(
                f"single blocks of device {self._device.id} were freed: free_memory before {tag!r} shares it"
            )
        if size > self._limit:
            raise range_error(self._device.id, size, self._limit, self._limit)
        if size > used:
            table.touch(used, size)
            self._fixed[used] = size - used, tag
            self._used = size
            self._counter.add(size - used)
        self._use_count += 1
        return 0

    def free(self, dev_addr: DevAddr) -> None:
        """Free one block that `malloc_memory` gave as a block of its own; the others keep their addresses.

        Raises
        ------
        StateError
            There is no such block (status PARAM_INVALID), the memory sleeps, or users of the other form hold it.
        AclError
            The runtime refuses; the block is alive still.

        Differs: GE frees all blocks together only.
        """
        with self._lock:
            table = self._table
            offset = -1 if table is None else dev_addr - table.page_range.addr
            block = self._blocks.get(offset)
            if table is None or block is None:
                raise unknown_block(f"memory that grows on device {self._device.id}", dev_addr)
            if self._sleep is not None:
                raise self._asleep_error()
            if self._use_count:
                raise StateError(f"{self._use_count} users share the range from its start: use free_memory")
            table.release(offset, offset + block[0])
            del self._blocks[offset]
            self._counter.remove(block[0])
            start, size = self._holes.add(offset, block[0])
            if start + size == self._used:
                self._holes.remove(start)
                self._used = start

    def free_memory(self) -> None:
        """Free all memory, pages and range; with users of the fixed-base form, only when the last of them says so.

        Raises
        ------
        AclError
            The runtime refuses. What was handed out is as before; where only a page could not go back to the device,
            all is freed and the page goes back with the next call.

        Source: GE source, runtime/v1/graph/manager, ExpandableActiveMemoryAllocator::FreeMemory.
        """
        with self._lock:
            if self._use_count > 1:
                self._use_count -= 1
            else:
                self._release()

    def _release(self) -> None:
        table = self._table
        if table is None:
            self._sleep = None
            self._close_sources()
            return
        if self._sleep is not None and self._sleep.is_waking:
            raise StateError(f"memory that grows on device {self._device.id} is being woken: free it afterwards")
        table.release_range()
        for size, _ in (*self._blocks.values(), *self._fixed.values()):
            self._counter.remove(size)
        self._forget()
        self._sources.append(table.source)
        self._close_sources()

    def _close_sources(self) -> None:
        """End the use of pools; one that the device refuses a page is tried again with the next call."""
        while self._sources:
            close_source(self._sources[-1])
            self._sources.pop()
