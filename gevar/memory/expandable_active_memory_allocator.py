"""Memory that grows: one reserved range of a device, to which pages are added as it is used.

The range is as large as its user can need, not as large as the card.

Source: GE source, runtime/v1/graph/manager, ExpandableActiveMemoryAllocator.
"""

from types import TracebackType
from typing import Self

from gevar.errors import AclError, StateError
from gevar.memory.expandable_blocks import ExpandableBlocks
from gevar.memory.expandable_report import explained
from gevar.memory.expandable_sleep import Reload, Sleep


class ExpandableActiveMemoryAllocator(ExpandableBlocks):
    """Memory of one device that grows; implements `ExpandableMemoryAllocator` and `MemoryResource`.

    Parameters
    ----------
    device
        The device.
    page_bytes
        Page size, a multiple of 2 MiB; 1 GiB goes with the modes ONLY and FIRST.
    mode
        Use of 1 GiB pages.
    max_bytes
        Bytes that will be asked for at most, which bound the range; None for the memory of the device.
    shared_pools
        Pools of pages shared with other allocators, used after `set_share_phy_allocator`.
    p2p
        Whether other devices reach the memory.
    is_checked
        Whether each page keeps a record of the blocks on it, and an overlap is an `AssertionError`; None where the log
        ``gevar.memory`` is at level DEBUG.

    Raises
    ------
    ValueError
        Page size and mode do not go together, or a size is wrong.

    Notes
    -----
    Closed by `close`, by ``with``, or when it is collected.
    Thread safety: all methods, from any thread; calls of the runtime are made under the allocator's lock.
    Source: as the module.
    """

    def sleep(self, keep: str = "host", reload: Reload | None = None) -> int:
        """Give all pages back to the device and keep every address, until `wake`.

        Parameters
        ----------
        keep
            What happens to the bytes, a `KeepContents`: ``"host"`` copies them to host memory, ``"reload"`` lets
            `reload` bring them back, ``"discard"`` loses them.
        reload
            Called by `wake` with first address, size in bytes and tag of every block, without a lock.

        Returns
        -------
        int
            Bytes of physical memory that were given up.

        Raises
        ------
        ValueError
            No such way to keep bytes, or `reload` does not go with it.
        StateError
            It sleeps already.
        AclError
            The runtime refuses a step. It is awake as before.
        """
        with self._lock:
            self.begin_sleep(keep, reload)
            return self.end_sleep()

    def begin_sleep(self, keep: str = "host", reload: Reload | None = None) -> None:
        """Do what `sleep` does, but keep the pages and their bytes at hand until `end_sleep`.

        `wake` puts these very pages back, whatever was to happen to their bytes. So several allocators go to sleep
        together or not at all. Arguments and errors are those of `sleep`.
        """
        sleep = Sleep.checked(keep, reload)
        with self._lock:
            if self._sleep is not None:
                raise self._asleep_error()
            if self._table is not None:
                if sleep.keeps_copy:
                    sleep.save(self._device, ((addr, size) for addr, size, _ in self.blocks()))
                self._table.unmap_all()
            sleep.holds_pages = True
            self._sleep = sleep

    def end_sleep(self) -> int:
        """Give the pages that `begin_sleep` kept back to the device; return their bytes.

        A page that the device refuses waits, and goes back with a later call. Does nothing where none were kept.
        """
        with self._lock:
            sleep = self._sleep
            if sleep is None or not sleep.holds_pages:
                return 0
            sleep.holds_pages = False
            return 0 if self._table is None else self._table.give_back_all()

    def wake(self) -> None:
        """Put new pages behind every address, and bring the bytes back; does nothing when it is awake.

        Raises
        ------
        OutOfMemoryError, AclError
            There are not enough pages, or a step is refused. It sleeps as before.
        StateError
            Another thread is waking it.
        Exception
            What `reload` raised. It sleeps as before.
        """
        with self._lock:
            sleep, table = self._sleep, self._table
            if sleep is None:
                return
            if sleep.is_waking:
                raise StateError(f"memory that grows on device {self._device.id} is being woken by another thread")
            if table is not None and sleep.holds_pages:
                table.map_all()
            if table is None or sleep.holds_pages:
                self._sleep = None
                return
            blocks, base = self.blocks(), table.page_range.addr
            try:
                table.resume((addr - base, size) for addr, size, _ in blocks)
            except AclError as error:
                raise explained(error, self, self._counter.current_bytes) from error
            sleep.is_waking = True
        try:
            sleep.restore(self._device, blocks)
        except BaseException as error:
            with self._lock:
                sleep.is_waking = False
                try:
                    table.suspend()
                except AclError as second:
                    error.add_note(f"its pages stay, the next try uses them: {second}")
            raise
        with self._lock:
            self._sleep = None

    def close(self) -> None:
        """Free all memory, whoever uses it; the next request reserves a range anew. Raises as `free_memory`."""
        with self._lock:
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
