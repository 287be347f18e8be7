"""Memory that a device hands out: blocks, pinned host memory, managed memory, pools; and figures of it."""

from collections.abc import Callable
from functools import partial
from operator import index
from typing import TYPE_CHECKING, cast

from acl_shim.api_types import IntArray
from acl_shim.buffer import DeviceBuffer, ManagedBuffer
from acl_shim.codes import AclErrorCode, MemAttr, MemLocationType, MemMallocPolicy
from acl_shim.device_base import DeviceBase
from acl_shim.errors import AclError, Argument, Shortage
from acl_shim.mem_info import MemInfo, MemUsage, PageKind, PointerAttributes, page_kind
from acl_shim.memory_codes import ManagedFlag
from acl_shim.memory_pool import MemoryPool
from acl_shim.pinned import PinnedBuffer, PinnedMemory
from acl_shim.structs import new_module_config, new_pool_props, new_ptr_attributes, new_usage_infos
from acl_shim.table import new_cell, new_figures, read_text

if TYPE_CHECKING:
    from acl_shim.device import Device


def checked_size(size_bytes: int) -> int:
    """Return a size in bytes, which must be at least 1."""
    size = index(size_bytes)
    if size <= 0:
        raise ValueError(f"size_bytes is {size}: give at least 1 byte")
    return size


_new_mem_info: Callable[[tuple[int, int]], MemInfo] = partial(tuple.__new__, MemInfo)  # without a Python function
_spare_figures: list[IntArray] = []  # to make them takes a fifth of `MemoryCalls.mem_info`; one for each thread at once


class MemoryCalls(DeviceBase):
    """Allocation of memory, and figures of it."""

    def _as_device(self) -> "Device":
        return cast("Device", self)

    def mem_info(self, attr: int = MemAttr.ACL_HBM_MEM) -> MemInfo:
        """Return free and total memory of a pool.

        Parameters
        ----------
        attr
            The pool, a `MemAttr`. The default counts 2 MiB and 4 KiB pages, not 1 GiB pages.

        Raises
        ------
        AclError
            The runtime refuses: 107016 for an unknown pool, 207000 for one the product lacks.
        """
        lease = self._current.held or self._current.take()
        try:
            figures = _spare_figures.pop()
        except IndexError:
            figures = new_figures()
        code = self._runtime.api.mem_info(lease.context, attr, figures)
        if code:
            self._refuse_in_context(code, "aclrtGetMemInfo", {"attr": attr, "device_id": self._id}, lease)
        info = _new_mem_info((figures[0], figures[1]))
        _spare_figures.append(figures)
        return info

    def malloc(
        self, size_bytes: int, policy: int = MemMallocPolicy.HUGE_FIRST, *, module_id: int | None = None
    ) -> DeviceBuffer:
        """Allocate device memory; its content is not defined.

        Parameters
        ----------
        size_bytes
            Size in bytes, at least 1.
        policy
            A `MemMallocPolicy`, to which `MemTypeFlag` bits may be added.
        module_id
            Module that the runtime books the block under; then `aclrtMallocWithCfg` is called, which does not pad.

        Raises
        ------
        ValueError
            `size_bytes` is below 1.
        OutOfMemoryError
            The page class has not enough memory. Nothing is left allocated.
        AclError
            The runtime refuses. Nothing is left allocated.
        StateError
            The library lacks the function, or the runtime is closed or forked.
        """
        size = checked_size(size_bytes)
        api, cell = self._runtime.api, new_cell("uintptr_t *")
        lease = self._enter()
        if module_id is None:
            call, code = "aclrtMalloc", api.aclrtMalloc(cell, size, policy)
        else:
            config, _attributes = new_module_config(module_id)
            call, code = "aclrtMallocWithCfg", api.aclrtMallocWithCfg(cell, size, policy, config)
        if code:
            raise self.allocation_error(code, call, size, page_kind(policy), {"policy": policy})
        return DeviceBuffer(self._as_device(), lease, cell[0], size)

    def allocation_error(
        self, code: int, call: str, size_bytes: int, pages: PageKind, arguments: dict[str, Argument]
    ) -> AclError:
        """Return the error of a failed allocation, with the figures of the pool when memory is short."""
        shown = {"size_bytes": size_bytes, **arguments, "device_id": self._id}
        if code != AclErrorCode.ACL_ERROR_RT_MEMORY_ALLOCATION:
            return self._runtime.error(code, call, shown)
        text = self._runtime.recent_text() or ""
        free, total = new_cell("size_t *"), new_cell("size_t *")
        known = self._runtime.api.aclrtGetMemInfo(pages.attr, free, total) == 0
        shortage = Shortage(size_bytes, free[0] if known else None, total[0] if known else None, self._id, pages.text)
        return self._runtime.error(code, call, shown, text=text, shortage=shortage)

    def malloc_host(self, size_bytes: int) -> PinnedBuffer:
        """Allocate host memory that the device can copy from and to directly; its content is not defined.

        Parameters
        ----------
        size_bytes
            Size in bytes, at least 1.

        Raises
        ------
        ValueError
            `size_bytes` is below 1.
        AclError
            The runtime refuses. Nothing is left allocated.
        """
        size = checked_size(size_bytes)
        cell = new_cell("uintptr_t *")
        lease = self._enter()
        code = self._runtime.api.aclrtMallocHost(cell, size)
        self._runtime.check(code, "aclrtMallocHost", {"size_bytes": size, "device_id": self._id})
        return PinnedBuffer(PinnedMemory(self._as_device(), lease, cell[0], size))

    def malloc_managed(self, size_bytes: int) -> ManagedBuffer:
        """Allocate memory that host and devices reach at one address; its content is not defined.

        Parameters
        ----------
        size_bytes
            Size in bytes, at least 1.

        Raises
        ------
        ValueError
            `size_bytes` is below 1.
        AclError
            The runtime refuses: 207000 where the product lacks it. Nothing is left allocated.
        StateError
            The library lacks the function.
        """
        size = checked_size(size_bytes)
        cell = new_cell("uintptr_t *")
        lease = self._enter()
        code = self._runtime.api.aclrtMemAllocManaged(cell, size, ManagedFlag.ACL_RT_MEM_ATTACH_GLOBAL)
        self._runtime.check(code, "aclrtMemAllocManaged", {"size_bytes": size, "device_id": self._id})
        return ManagedBuffer(self._as_device(), lease, cell[0], size)

    def create_memory_pool(self, max_bytes: int = 0) -> MemoryPool:
        """Make a pool whose blocks are taken and freed in stream order.

        Parameters
        ----------
        max_bytes
            Most that the pool may hold, in bytes; 0 for no limit.

        Raises
        ------
        AclError
            The runtime refuses: 207000 where the product lacks it. Nothing is left.
        StateError
            The library lacks the function.
        """
        cell, props = new_cell("uintptr_t *"), new_pool_props(self._id, max_bytes)
        lease = self._enter()
        code = self._runtime.api.aclrtMemPoolCreate(cell, props)
        self._runtime.check(code, "aclrtMemPoolCreate", {"max_bytes": max_bytes, "device_id": self._id})
        return MemoryPool(self._as_device(), lease, cell[0])

    def mem_usage(self, most: int = 64) -> list[MemUsage]:
        """Return what the modules of all processes hold on the device, the largest first.

        Parameters
        ----------
        most
            How many modules at most.

        Raises
        ------
        AclError
            The runtime refuses: 207000 where the product lacks it.
        StateError
            The library lacks the function.
        """
        infos, written = new_usage_infos(most), new_cell("size_t *")
        self._enter()
        code = self._runtime.api.aclrtGetMemUsageInfo(self._id, infos, most, written)
        self._runtime.check(code, "aclrtGetMemUsageInfo", {"device_id": self._id, "most": most})
        found = (infos[number] for number in range(written[0]))
        return [MemUsage(read_text(info.name), info.curMemSize, info.memPeakSize) for info in found]

    def pointer_attributes(self, addr: int) -> PointerAttributes:
        """Return where an address lives.

        Parameters
        ----------
        addr
            Any address, of the host or of a device.

        Raises
        ------
        AclError
            The address is in the device's range and not allocated, or the runtime refuses otherwise.
        StateError
            The library lacks the function.
        """
        attributes = new_ptr_attributes()
        self._enter()
        code = self._runtime.api.aclrtPointerGetAttributes(addr, attributes)
        self._runtime.check(code, "aclrtPointerGetAttributes", {"addr": addr})
        location = attributes.location
        return PointerAttributes(MemLocationType(location.type), location.id, attributes.pageSize)
