"""Device memory for one block: from memory that grows where a device has it, else from the memory manager.

A block of device memory has 512 bytes of guard, the data in units of 512 bytes, and 512 bytes of guard.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::GetAutoMallocVarAddr.
Differs: edges 16, 17 and 41 of docs/differences.md.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from gevar.align import SESSION_MEM_ALIGN_BYTES, var_block_bytes
from gevar.errors import AclError, GevarError, StateError
from gevar.memory import ExpandableMemoryAllocator, MemoryManager
from gevar.memory.expandable_memory_allocator import BlockFreeing
from gevar.options import VARIABLE_USE_1G_HUGE_PAGE
from gevar.types import DevAddr, DeviceId, MemType
from gevar.var.initial_value import initial_data
from gevar.var.var_block import VarBlock

_log = logging.getLogger("gevar.var")


class BlockOwner(Protocol):
    """Who takes the memory of a block back; every `MemoryManager` does."""

    def free_memory(self, mem_type: MemType, dev_addr: DevAddr, device_id: DeviceId) -> None:
        """Take memory back, by kind, first address and device."""


class _Caller:
    """The caller, whose memory is never freed here."""

    def free_memory(self, mem_type: MemType, dev_addr: DevAddr, device_id: DeviceId) -> None:
        """Leave the memory alone."""


CALLER: Final[BlockOwner] = _Caller()
"""Owner of memory that `VarManager.set_var_mgr_dev_addr` named."""


@dataclass(slots=True, eq=False)
class DeviceRecord:
    """Device memory of one block on one device.

    Attributes
    ----------
    block : VarBlock
        The block.
    device_id : DeviceId
        The device.
    dev_addr : DevAddr
        First address of the memory, guard included.
    capacity_bytes : int
        Bytes of the memory, guard included.
    mem_type : MemType
        Kind of memory it was allocated as.
    owner : BlockOwner or None
        Who allocated it, and will free it; None for memory that is given back with its `ExpandableMemory`.
    data_addr : DevAddr
        First address of the data.
    """

    block: VarBlock
    device_id: DeviceId
    dev_addr: DevAddr
    capacity_bytes: int
    mem_type: MemType
    owner: BlockOwner | None
    data_addr: DevAddr

    def release(self) -> None:
        """Give the memory back to its owner.

        Raises
        ------
        AclError, StateError
            The owner cannot free it; it is the owner's to give back then.
        """
        if self.owner is not None:
            self.owner.free_memory(self.mem_type, self.dev_addr, self.device_id)


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


def allocate_block(
    block: VarBlock,
    mem_type: MemType,
    device_id: DeviceId,
    manager: MemoryManager,
    expandable: ExpandableMemory | None,
    *,
    huge_page_only: bool,
) -> DeviceRecord:
    """Allocate memory for a block and lay down its initial value.

    Parameters
    ----------
    block
        The block.
    mem_type
        Kind of memory.
    device_id
        The device.
    manager
        Plain memory, and copies.
    expandable
        Memory that grows, which is asked first; None where the device has none.
    huge_page_only
        Whether plain memory may not be used, since it has no pages of 1 GiB.

    Raises
    ------
    FormatError
        The initial value does not fit.
    AclError, OutOfMemoryError, StateError
        There is no memory, or the copy failed.

    After failure: nothing is handed out.
    """
    try:
        fill = _fill(block, manager, device_id) if block.desc.attrs else None
        size_bytes = var_block_bytes(block.desc.size)
        if expandable is not None:
            dev_addr = expandable.obtain(block.name, size_bytes, device_id, fill, keep=huge_page_only)
            if dev_addr is not None:
                data_addr = DevAddr(dev_addr + SESSION_MEM_ALIGN_BYTES)
                return DeviceRecord(block, device_id, dev_addr, size_bytes, mem_type, None, data_addr)
        if huge_page_only:
            raise StateError(
                f"{VARIABLE_USE_1G_HUGE_PAGE} is 1 and device {device_id} has no memory that grows:"
                " call init_expandable_memory_allocator, or allow other pages"
            )
        return _plain_record(block, mem_type, device_id, manager, fill)
    except GevarError as error:
        error.add_note(f"the memory was for {block.size_bytes} B of variable {block.key} on device {device_id}")
        if expandable is not None and expandable.failure:
            error.add_note(f"variables get plain memory, since memory that grows failed: {expandable.failure}")
        raise


def _fill(block: VarBlock, manager: MemoryManager, device_id: DeviceId) -> Callable[[DevAddr], None] | None:
    """What lays down the initial value of a block, given the address of its memory; None where it has none."""
    data = initial_data(block)
    if not data:
        return None

    def fill(dev_addr: DevAddr) -> None:
        manager.memcpy_in(DevAddr(dev_addr + SESSION_MEM_ALIGN_BYTES), block.size_bytes, data, device_id)

    return fill


def _plain_record(
    block: VarBlock,
    mem_type: MemType,
    device_id: DeviceId,
    manager: MemoryManager,
    fill: Callable[[DevAddr], None] | None,
) -> DeviceRecord:
    """Take plain memory for a block, and give it back if it cannot be filled."""
    size_bytes = var_block_bytes(block.size_bytes)
    dev_addr = manager.malloc_memory(mem_type, block.name, size_bytes, device_id)
    data_addr = DevAddr(dev_addr + SESSION_MEM_ALIGN_BYTES)
    record = DeviceRecord(block, device_id, dev_addr, size_bytes, mem_type, manager, data_addr)
    try:
        if fill is not None:
            fill(dev_addr)
    except BaseException:
        record.release()
        raise
    return record
