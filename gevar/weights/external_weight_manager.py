"""Device memory of external weights in one session: one block for each slice of a file and device.

A block lives as long as a model uses it. Its bytes are brought once; who comes later shares them.

Source: GE source, base/graph/manager/graph_external_weight_manager.cc, ExternalWeightManager.
Differs: edge 33 of docs/differences.md: that bytes are loaded is said of a block, not of a session.
"""

import threading
from typing import NamedTuple

from gevar.errors import StateError
from gevar.memory import MemoryManager
from gevar.types import DevAddr, DeviceId, MemType
from gevar.weights.weight_directory import WeightFile

_HBM = MemType.RT_MEMORY_HBM


class WeightSlice(NamedTuple):
    """Bytes of a file: `size_bytes` from `offset` on; those of tensor `name` where the file packs or turns them."""

    file: WeightFile
    offset: int
    size_bytes: int
    name: str = ""


class WeightBlock:
    """A block that holds a slice of a file.

    Attributes
    ----------
    key : WeightSlice
        What it holds.
    device_id : DeviceId
        Its device.
    dev_addr : DevAddr
        Its first byte.
    size_bytes : int
        Its size, at least that of the slice.
    users : int
        How many models use it.
    is_checked : bool
        Whether its bytes were compared with the digests that are listed for them.
    is_private : bool
        Whether its one user has written to it; nobody shares it any more.
    """

    __slots__ = ("dev_addr", "device_id", "is_checked", "is_private", "key", "size_bytes", "users")

    def __init__(self, key: WeightSlice, device_id: DeviceId, dev_addr: DevAddr, size_bytes: int) -> None:
        self.key = key
        self.device_id = device_id
        self.dev_addr = dev_addr
        self.size_bytes = size_bytes
        self.users = 1
        self.is_checked = self.is_private = False

    def make_private(self) -> None:
        """Share the block with nobody any more; for who holds the lock of its manager, as the others here.

        Raises
        ------
        StateError
            More than one uses it: writing would change the weights of another model. Nothing has changed.
        """
        if self.users > 1:
            what = f"{self.users} tensors or models share these weights, a write would change them all"
            raise StateError(f"{what}: close the other models, or load without sharing")
        self.is_private = True


class ExternalWeightManager:
    """The blocks of a session.

    Parameters
    ----------
    memory_manager
        Memory of the devices.

    Thread safety: all methods, from any thread. Who gets a new block brings its bytes, or releases it, before another
    thread may ask; the lock of the session sees to that.
    Source, Differs: as the module.
    """

    def __init__(self, memory_manager: MemoryManager) -> None:
        self._memory = memory_manager
        self._lock = threading.Lock()
        self._blocks: dict[tuple[DeviceId, WeightSlice], list[WeightBlock]] = {}

    def acquire(self, key: WeightSlice, size_bytes: int, device_id: DeviceId) -> tuple[WeightBlock, bool]:
        """Return a block that holds a slice, and whether it is new, so that its bytes are to be brought.

        Parameters
        ----------
        key
            The slice.
        size_bytes
            Bytes that the block must have, at least 1.
        device_id
            The device.

        Raises
        ------
        AclError, OutOfMemoryError
            The device refuses memory. Nothing has changed.
        """
        if (known := self.find(key, size_bytes, device_id)) is not None:
            return known, False
        with self._lock:
            blocks = self._blocks.setdefault((device_id, key), [])
            try:
                purpose = f"weights of {key.file.path.name}"
                dev_addr = self._memory.malloc_memory(_HBM, purpose, size_bytes, device_id)
            except BaseException:
                self._drop_empty(device_id, key)
                raise
            blocks.append(WeightBlock(key, device_id, dev_addr, size_bytes))
            return blocks[-1], True

    def find(self, key: WeightSlice, size_bytes: int, device_id: DeviceId) -> WeightBlock | None:
        """Return a block as `acquire`, with one user more; None where there is none."""
        with self._lock:
            for block in self._blocks.get((device_id, key), ()):
                if block.size_bytes >= size_bytes and not block.is_private:
                    block.users += 1
                    return block
        return None

    def make_private(self, block: WeightBlock) -> None:
        """Share a block with nobody any more, before its user writes to it.

        Raises
        ------
        StateError
            As `WeightBlock.make_private`.
        """
        with self._lock:
            block.make_private()

    def release(self, block: WeightBlock) -> None:
        """Give a block back that `acquire` gave; with its last user its memory goes.

        Raises
        ------
        AclError
            The device refuses the memory; it is its owner's to give back.
        """
        with self._lock:
            block.users -= 1
            if block.users:
                return
            self._blocks[block.device_id, block.key].remove(block)
            self._drop_empty(block.device_id, block.key)
        self._memory.free_memory(_HBM, block.dev_addr, block.device_id)

    def _drop_empty(self, device_id: DeviceId, key: WeightSlice) -> None:
        if not self._blocks[device_id, key]:
            del self._blocks[device_id, key]

    @property
    def device_bytes(self) -> int:
        """Bytes of all blocks."""
        with self._lock:
            return sum(block.size_bytes for blocks in self._blocks.values() for block in blocks)
