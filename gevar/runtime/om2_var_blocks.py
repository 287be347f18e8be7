"""Device memory of OM2 variables: one block for each key and device, got once and told when it is whole.

Source: GE source, runtime/om2, Om2RTVarManager.
Differs: edge 29 of docs/differences.md.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from gevar.errors import GevarError, StateError
from gevar.memory import MemoryManager
from gevar.types import DevAddr, DeviceId, MemType
from gevar.var.load_state import LoadTable

Place = tuple[str, DeviceId]
"""Key of a variable, and device."""


@dataclass(frozen=True, slots=True)
class Om2VarBlock:
    """Memory of a key on a device.

    Attributes
    ----------
    dev_addr : DevAddr
        First byte.
    size_bytes : int
        Bytes.
    mem_type : MemType
        Kind of memory.
    is_owned : bool
        Whether it is freed here; else it is the caller's.
    """

    dev_addr: DevAddr
    size_bytes: int
    mem_type: MemType
    is_owned: bool


class Om2VarBlocks:
    """The blocks of one manager.

    Parameters
    ----------
    memory_manager
        Where they come from.
    lock
        The manager's lock.

    Thread safety: all methods, from any thread; memory is got and filled without the lock.
    """

    def __init__(self, memory_manager: MemoryManager, lock: threading.RLock) -> None:
        self._memory = memory_manager
        self._lock = lock
        self._blocks: dict[Place, Om2VarBlock] = {}
        self._places: LoadTable[Place] = LoadTable(lock)

    def find(self, key: str, device_id: DeviceId) -> Om2VarBlock | None:
        """Return the memory that a key has on a device; None where it has none."""
        return self._blocks.get((key, device_id))

    def obtain(self, key: str, device_id: DeviceId, make: Callable[[], Om2VarBlock | None]) -> Om2VarBlock | None:
        """Return the memory of a key; call `make` where nobody has, and tell others when it is through.

        Raises
        ------
        StateError
            Everything was freed meanwhile; the new memory is given back.
        Exception
            What `make` raises; the next call tries again.
        """
        place = key, device_id
        while True:
            with self._lock:
                block = self._blocks.get(place)
                if block is not None:
                    return block
                ticket, is_mine = self._places.enter(place)
            if ticket is None:
                return self._blocks.get(place)
            if is_mine:
                break
            ticket.wait()
        with ticket:
            block = make()
            with self._lock:
                is_current = self._places.states.get(place) is ticket
                if is_current and block is not None:
                    self._blocks[place] = block
                elif block is None:
                    ticket.abort()
        if block is not None and not is_current:
            self.free(block, device_id)
            raise StateError(f"all memory was freed while {key} got some on device {device_id}: ask again")
        return block

    def malloc(self, key: str, mem_type: MemType, size_bytes: int, device_id: DeviceId) -> Om2VarBlock:
        """Get a block; raises as `MemoryManager.malloc_memory`."""
        addr = self._memory.malloc_memory(mem_type, f"OM2 variable {key}", size_bytes, device_id)
        return Om2VarBlock(addr, size_bytes, mem_type, is_owned=True)

    def free(self, block: Om2VarBlock, device_id: DeviceId) -> None:
        """Give a block back if it is owned; raises as `MemoryManager.free_memory`."""
        if block.is_owned:
            self._memory.free_memory(block.mem_type, block.dev_addr, device_id)

    def free_all(self) -> None:
        """Forget every block and free those that are owned.

        Raises
        ------
        AclError
            The device refuses a block; the others are freed, and it is its owner's to give back.
        """
        with self._lock:
            blocks, self._blocks = self._blocks, {}
            self._places.clear()
        failures: list[GevarError] = []
        for (_, device_id), block in blocks.items():
            try:
                self.free(block, device_id)
            except GevarError as error:
                failures.append(error)
        if failures:
            raise failures[0]
