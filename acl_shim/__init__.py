"""cffi binding of the ACL runtime: one code path for an NPU's library and for the host runtime."""

from acl_shim.batch import BatchCopy
from acl_shim.buffer import DeviceBuffer, ManagedBuffer
from acl_shim.context import Context
from acl_shim.device import Device
from acl_shim.event import Event
from acl_shim.host_registration import HostRegistration
from acl_shim.ipc import ImportedBuffer, IpcExport
from acl_shim.loader import open_runtime
from acl_shim.mapped_memory import MappedMemory
from acl_shim.mapping import Mapping
from acl_shim.mem_info import AddressRange, MemInfo, MemUsage, PointerAttributes
from acl_shim.memory_pool import MemoryPool, PoolBlock
from acl_shim.notify import Notify
from acl_shim.physical_handle import PhysicalHandle
from acl_shim.pinned import PinnedBuffer
from acl_shim.reservation import Reservation
from acl_shim.runtime import Runtime
from acl_shim.stream import DefaultStream, Stream

__all__ = [
    "AddressRange",
    "BatchCopy",
    "Context",
    "DefaultStream",
    "Device",
    "DeviceBuffer",
    "Event",
    "HostRegistration",
    "ImportedBuffer",
    "IpcExport",
    "ManagedBuffer",
    "MappedMemory",
    "Mapping",
    "MemInfo",
    "MemUsage",
    "MemoryPool",
    "Notify",
    "PhysicalHandle",
    "PinnedBuffer",
    "PointerAttributes",
    "PoolBlock",
    "Reservation",
    "Runtime",
    "Stream",
    "open_runtime",
]
