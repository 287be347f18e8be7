"""Memory that grows, on one device, as blocks of variables take it and give it back.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::GetAutoMallocVarAddr.
Differs: edges 16, 17 and 41 of docs/differences.md.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from gevar.errors import AclError
from gevar.memory import ExpandableMemoryAllocator
from gevar.memory.expandable_memory_allocator import BlockFreeing
from gevar.types import DevAddr, DeviceId

_log = logging.getLogger("gevar.var")


class ExpandableMemory:
    """Memory that grows, on one device, from the first block until all of it is given back.

    One thread at a time takes memory and fills it, so nothing is given back while a copy is under way. A piece that was
    taken in vain goes back; where the allocator takes no single pieces, it waits for the next block of its size.

    Attributes
    ----------
    allocator : ExpandableMemoryAllocator
        The memory.
    is_usable : bool
        Whether blocks are still taken from it.
    failure : str
        Why they are not, where a failure decided it.

    Thread safety: all methods, from any thread.
    """

    def __init__(self, allocator: ExpandableMemoryAllocator) -> None:
        self.allocator = allocator
        self._lock = threading.RLock()
        self._spare: dict[int, list[DevAddr]] = {}
        self.is_usable = True
        self.failure = ""

    def obtain(
        self, tag: str, size_bytes: int, device_id: DeviceId, fill: Callable[[DevAddr], None] | None, *, keep: bool
    ) -> DevAddr | None:
        """Return memory that holds what a block starts with.

        Parameters
        ----------
        tag
            Whose it is, in words.
        size_bytes
            Its size in bytes, guard included.
        device_id
            Its device.
        fill
            Lays down what the memory starts with; None where it starts with anything.
        keep
            Whether there is no other memory to turn to.

        Returns
        -------
        DevAddr or None
            None when blocks are no longer taken from here, which a failure decides unless `keep`.

        Raises
        ------
        AclError, OutOfMemoryError
            The copy failed, or with `keep` the allocation. Nothing is handed out.
        """
        with self._lock:
            if not self.is_usable:
                return None
            spare = self._spare.get(size_bytes) if self._spare else None
            try:
                dev_addr = spare.pop() if spare else self.allocator.malloc_memory(tag, size_bytes, True)
            except AclError as error:
                if keep:
                    raise
                self.is_usable, self.failure = False, str(error)
                text = "device %d: variables get plain memory from now on, since memory that grows failed: %s"
                _log.warning(text, device_id, error)
                return None
            if fill is not None:
                try:
                    fill(dev_addr)
                except BaseException as error:
                    self._take_back(dev_addr, size_bytes, error)
                    raise
            return dev_addr

    def give_back(self, dev_addr: DevAddr, size_bytes: int) -> None:
        """Take a piece back that nobody uses, unless all was given back meanwhile.

        Raises
        ------
        AclError
            The allocator cannot; the piece waits for the next block of its size.
        """
        with self._lock:
            if self.is_usable:
                self._take_back(dev_addr, size_bytes, None)

    def give_back_own(self, pieces: Mapping[DevAddr, int]) -> dict[DevAddr, int]:
        """Take those pieces back that are from here, and return the others; all are without users.

        Parameters
        ----------
        pieces
            Size in bytes by first address.

        Raises
        ------
        AclError
            The allocator cannot take one of them; it has taken the others.
        """
        with self._lock:
            allocator = self.allocator
            if not isinstance(allocator, BlockFreeing):
                if self.is_usable:
                    for dev_addr, size_bytes in pieces.items():
                        self._spare.setdefault(size_bytes, []).append(dev_addr)
                return {}
            out = {dev_addr for dev_addr, _, _ in allocator.blocks()}
            own = out & pieces.keys()
            if own == out and own:
                allocator.free_memory()
            else:
                with ExitStack() as stack:
                    for dev_addr in own:
                        stack.callback(allocator.free, dev_addr)
        return {dev_addr: size_bytes for dev_addr, size_bytes in pieces.items() if dev_addr not in own}

    def _take_back(self, dev_addr: DevAddr, size_bytes: int, error: BaseException | None) -> None:
        """Give a piece back, and the range with the only one; what cannot go waits for a block of its size."""
        allocator = self.allocator
        try:
            if isinstance(allocator, BlockFreeing):
                if len(allocator.blocks()) == 1:
                    allocator.free_memory()
                else:
                    allocator.free(dev_addr)
                return
        except AclError as second:
            if error is None:
                raise
            error.add_note(f"the {size_bytes} B taken for it wait for the next block of this size: {second}")
        self._spare.setdefault(size_bytes, []).append(dev_addr)

    @contextmanager
    def held(self) -> Iterator[ExpandableMemoryAllocator]:
        """Give the allocator, while no other thread takes memory of it, fills it or gives it back."""
        with self._lock:
            yield self.allocator

    def release(self, *, is_kept: bool = False) -> None:
        """Give all memory back, once nobody is filling a piece of it.

        Parameters
        ----------
        is_kept
            Whether blocks are taken from here afterwards as before.

        Raises
        ------
        AclError
            The allocator cannot; it is the allocator's to give back then.
        """
        with self._lock:
            self.is_usable = self.is_usable and is_kept
            self.allocator.free_memory()
