"""Blocks of a runtime by kind of memory: which call and which policy each kind means.

Source: GE source, base/common/aclrt_malloc_helper.cc.
"""

from typing import Final

from acl_shim import Device
from acl_shim.buffer import DeviceBuffer
from acl_shim.codes import MemMallocPolicy, MemTypeFlag
from acl_shim.mem_info import page_kind
from acl_shim.structs import new_module_config
from acl_shim.table import new_cell
from gevar.types import MemType

GE_MODULE_ID: Final = 45
"""Number under which the runtime books GE's blocks (CANN log, dlog_pub.h, GE)."""

POLICIES: Final[dict[MemType, int]] = {
    MemType.RT_MEMORY_DEFAULT: MemTypeFlag.ACL_MEM_TYPE_HIGH_BAND_WIDTH,
    MemType.RT_MEMORY_HBM: MemTypeFlag.ACL_MEM_TYPE_HIGH_BAND_WIDTH,
    MemType.RT_MEMORY_RDMA_HBM: MemTypeFlag.ACL_MEM_TYPE_HIGH_BAND_WIDTH,
    MemType.RT_MEMORY_SPM: MemTypeFlag.ACL_MEM_TYPE_HIGH_BAND_WIDTH,
    MemType.RT_MEMORY_DDR: MemTypeFlag.ACL_MEM_TYPE_LOW_BAND_WIDTH,
    MemType.RT_MEMORY_DDR_NC: MemTypeFlag.ACL_MEM_TYPE_LOW_BAND_WIDTH,
    MemType.RT_MEMORY_P2P_HBM: MemMallocPolicy.ACL_MEM_MALLOC_HUGE_FIRST_P2P,
    MemType.RT_MEMORY_P2P_DDR: MemMallocPolicy.ACL_MEM_MALLOC_HUGE_FIRST_P2P,
    MemType.RT_MEMORY_TS: MemMallocPolicy.HUGE_FIRST,
}
"""Policy of each kind of memory that is on a device."""


def malloc_block(device: Device, mem_type: MemType, size_bytes: int, module_id: int | None) -> DeviceBuffer:
    """Allocate a block of a kind of `POLICIES`.

    Parameters
    ----------
    device
        The device.
    mem_type
        Kind of memory; RT_MEMORY_TS is for the task scheduler and has a call of its own.
    size_bytes
        Size in bytes, at least 1.
    module_id
        Module that the runtime books the block under; None where it does not book.

    Raises
    ------
    OutOfMemoryError, AclError
        The runtime refuses. Nothing is left allocated.
    StateError
        The library lacks the function, or the runtime is closed or forked.
    """
    policy = POLICIES[mem_type]
    if mem_type != MemType.RT_MEMORY_TS:
        return device.malloc(size_bytes, policy, module_id=module_id)
    config, _attributes = new_module_config(GE_MODULE_ID)
    lease, cell = device.enter(), new_cell("uintptr_t *")
    code = device.runtime.api.aclrtMallocForTaskScheduler(cell, size_bytes, policy, config)
    if code:
        call = "aclrtMallocForTaskScheduler"
        raise device.allocation_error(code, call, size_bytes, page_kind(policy), {"policy": policy})
    return DeviceBuffer(device, lease, cell[0], size_bytes)
