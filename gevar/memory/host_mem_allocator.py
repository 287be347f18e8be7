"""Host memory for variables that are placed on the host.

Source: GE source, runtime/v1/graph/manager, HostMemAllocator.
"""

import threading
from operator import index
from typing import Final

import numpy as np
from numpy.typing import NDArray

from acl_shim.codes import AclErrorCode
from acl_shim.host_memory import HostBuffer, lasting_array
from gevar.align import INT64_MAX
from gevar.errors import OutOfMemoryError, SizeOverflowError
from gevar.memory.memory_resource import (
    HOST_DEVICE_ID,
    MemoryStatistics,
    StatisticsCounter,
    state_error,
    unknown_block,
)
from gevar.status import GE_GRAPH_FREE_FAILED, PARAM_INVALID
from gevar.types import DevAddr, DeviceId

HOST_ALIGN_BYTES: Final = 64
"""Unit at which host blocks start."""


class HostMemAllocator:
    """Zeroed host memory, known by its address until it is freed; implements `MemoryResource`.

    Thread safety: all methods, from any thread.
    Source: as the module.
    Differs: edge 7 of docs/differences.md: any size from 0 is zeroed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counter = StatisticsCounter()
        self._blocks: dict[int, tuple[NDArray[np.uint8], int, str]] = {}  # address -> (memory, bytes asked for, tag)

    @property
    def device_id(self) -> DeviceId:
        """`HOST_DEVICE_ID`."""
        return HOST_DEVICE_ID

    @property
    def statistics(self) -> MemoryStatistics:
        """Blocks that were handed out, foreign memory included."""
        with self._lock:
            return self._counter.statistics()

    def allocate(self, size_bytes: int, tag: str = "") -> DevAddr:
        """Return zeroed memory; it may have no bytes, and its address is its own even then.

        Parameters
        ----------
        size_bytes
            Size in bytes, from 0.
        tag
            What it is for.

        Raises
        ------
        ValueError
            `size_bytes` is negative.
        SizeOverflowError
            `size_bytes` leaves 63 bits (status PARAM_INVALID).
        OutOfMemoryError
            The machine has not enough memory.
        """
        size = index(size_bytes)
        if size < 0:
            raise ValueError(f"size_bytes is {size}: give a size from 0")
        if size > INT64_MAX:
            raise SizeOverflowError("host memory of this size", size, INT64_MAX, status=PARAM_INVALID)
        try:
            memory = np.zeros(size + HOST_ALIGN_BYTES, np.uint8)  # the kernel gives zeroed pages when they are touched
        except (MemoryError, ValueError) as error:
            code = AclErrorCode.ACL_ERROR_RT_MEMORY_ALLOCATION
            raise OutOfMemoryError(code, "HostMemAllocator.allocate", {"size_bytes": size}) from error
        start = -(-memory.ctypes.data // HOST_ALIGN_BYTES) * HOST_ALIGN_BYTES
        self._keep(start, memory, size, tag)
        return DevAddr(start)

    def allocate_existing(self, buffer: HostBuffer, tag: str = "") -> DevAddr:
        """Make memory of the caller known, and keep it alive until it is freed here.

        Parameters
        ----------
        buffer
            Writable C-contiguous memory.
        tag
            What it is for.

        Raises
        ------
        TypeError, ValueError
            It is no such memory.
        StateError
            It is known already (status PARAM_INVALID).
        """
        memory = lasting_array(buffer, True)
        start = memory.ctypes.data
        self._keep(start, memory, memory.nbytes, tag)
        return DevAddr(start)

    def _keep(self, start: int, memory: NDArray[np.uint8], size: int, tag: str) -> None:
        with self._lock:
            if start in self._blocks:
                raise state_error(f"host memory at {start:#x} is known already: free it first", PARAM_INVALID)
            self._blocks[start] = memory, size, tag
            self._counter.add(size)

    def view(self, dev_addr: DevAddr) -> NDArray[np.uint8]:
        """Return the bytes of a block; the array keeps them alive.

        Raises
        ------
        StateError
            There is no such block (status PARAM_INVALID).
        """
        with self._lock:
            block = self._blocks.get(dev_addr)
        if block is None:
            raise unknown_block("host memory", dev_addr)
        memory, size, _ = block
        skipped = dev_addr - memory.ctypes.data
        return memory[skipped : skipped + size]

    def free(self, dev_addr: DevAddr) -> None:
        """Forget a block; its memory goes with the last array that was made from it.

        Raises
        ------
        StateError
            There is no such block (status PARAM_INVALID; GE_GRAPH_FREE_FAILED for address 0).
        """
        with self._lock:
            block = self._blocks.pop(dev_addr, None)
            if block is not None:
                self._counter.remove(block[1])
        if block is None:
            error = unknown_block("host memory", dev_addr)
            if dev_addr == 0:
                error.status = GE_GRAPH_FREE_FAILED
            raise error

    def close(self) -> None:
        """Forget every block."""
        with self._lock:
            for _, size, _ in self._blocks.values():
                self._counter.remove(size)
            self._blocks = {}
