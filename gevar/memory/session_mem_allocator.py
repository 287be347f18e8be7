"""Memory that grows, of all sessions of a runtime: one allocator for each session, device and page size.

Source: GE source, runtime/v1/graph/manager, SessionMemAllocator.
"""

import threading
from collections.abc import Mapping
from typing import Final

from acl_shim import Runtime
from gevar.align import HUGE_PAGE_BYTES
from gevar.errors import StateError
from gevar.memory.expandable_active_memory_allocator import ExpandableActiveMemoryAllocator
from gevar.memory.expandable_range import SharedPagePools
from gevar.memory.huge_page_policy import HugePageMode, expandable_page_bytes
from gevar.memory.per_runtime import PerRuntime
from gevar.options import MemoryOptions
from gevar.types import DeviceId, MemType

_P2P: Final[dict[MemType, bool]] = {
    MemType.RT_MEMORY_DEFAULT: False,
    MemType.RT_MEMORY_HBM: False,
    MemType.RT_MEMORY_P2P_HBM: True,
    MemType.RT_MEMORY_P2P_DDR: True,
}
"""Kinds of memory that can grow, and whether other devices reach them."""


class SessionMemAllocator:
    """Find the memory that grows of a session, and make it at the first question.

    Parameters
    ----------
    runtime
        Runtime of the devices.

    Thread safety: all methods, from any thread.
    Source: as the module.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._devices = runtime.device
        self._lock = threading.Lock()
        self._pools = SharedPagePools()
        self._allocators: dict[tuple[int, DeviceId, MemType, int], ExpandableActiveMemoryAllocator] = {}

    @staticmethod
    def instance(runtime: Runtime) -> "SessionMemAllocator":
        """Return the one that all sessions of a runtime share."""
        return _SHARED.of(runtime)

    def get_mem_allocator(
        self,
        session_id: int,
        device_id: DeviceId,
        mem_type: MemType = MemType.RT_MEMORY_HBM,
        page_bytes: int = HUGE_PAGE_BYTES,
        *,
        mode: HugePageMode = HugePageMode.NONE,
        max_bytes: int | None = None,
    ) -> ExpandableActiveMemoryAllocator:
        """Return the allocator of a session, device, kind of memory and page size; the same one each time.

        Parameters
        ----------
        session_id, device_id, mem_type, page_bytes
            What it is known by.
        mode
            Use of 1 GiB pages, when it is made.
        max_bytes
            Bytes that will be asked for at most, when it is made; None for the memory of the device.

        Raises
        ------
        ValueError
            Page size and mode do not go together, a size is wrong, or this kind of memory cannot grow.
        AclError
            There is no such device (107001).
        StateError
            The allocator that is there uses 1 GiB pages otherwise: the mode is fixed when it is made.
        """
        if mem_type not in _P2P:
            raise ValueError(f"{MemType(mem_type).name} cannot grow: give RT_MEMORY_HBM, or RT_MEMORY_P2P_HBM or _DDR")
        key = session_id, device_id, mem_type, page_bytes
        with self._lock:
            allocator = self._allocators.get(key)
            if allocator is None:
                allocator = ExpandableActiveMemoryAllocator(
                    self._devices(device_id),
                    page_bytes,
                    mode=mode,
                    max_bytes=max_bytes,
                    shared_pools=self._pools,
                    p2p=_P2P[mem_type],
                )
                self._allocators[key] = allocator
            elif allocator.mode is not mode:
                raise StateError(
                    f"session {session_id} has memory that grows in mode {allocator.mode.name} on device {device_id},"
                    f" not {mode.name}: remove its allocators first"
                )
            return allocator

    def get_var_mem_allocator(
        self,
        session_id: int,
        device_id: DeviceId,
        options: Mapping[str, str],
        *,
        environ: Mapping[str, str] | None = None,
        max_bytes: int | None = None,
    ) -> ExpandableActiveMemoryAllocator:
        """Return the allocator for the variables of a session, with pages as its options say.

        Parameters
        ----------
        session_id, device_id
            Session and device.
        options
            Options of the session by GE's names; their text is checked.
        environ
            Environment variables; those of the process where None.
        max_bytes
            Bytes that variables may take; None for the memory of the device.

        Raises
        ------
        ValueError
            ``ge.variableUse1gHugePage`` is none of "0", "1", "2", or `max_bytes` is below 1.
        AclError, StateError
            As `get_mem_allocator`.

        Source: GE source, runtime/v1/common/runtime/model_rt_var_manager.cc, ModelRtVarManager::Init.
        """
        mode = HugePageMode.from_options(options)
        page_bytes = expandable_page_bytes(mode, MemoryOptions.from_options(options, environ))
        hbm = MemType.RT_MEMORY_HBM
        return self.get_mem_allocator(session_id, device_id, hbm, page_bytes, mode=mode, max_bytes=max_bytes)

    def remove_allocator(self, session_id: int, device_id: DeviceId | None = None) -> None:
        """Forget the allocators of a session, on one device or on all; who holds one keeps it and its memory."""
        with self._lock:
            for key in [key for key in self._allocators if key[0] == session_id and device_id in (None, key[1])]:
                del self._allocators[key]

    def allocators(self, session_id: int) -> list[ExpandableActiveMemoryAllocator]:
        """Return the allocators of a session."""
        with self._lock:
            return [allocator for key, allocator in self._allocators.items() if key[0] == session_id]


_SHARED: Final = PerRuntime(SessionMemAllocator)
