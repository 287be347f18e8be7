"""cffi binding of the ACL runtime: one code path for an NPU's library and for the host runtime."""

from acl_shim.buffer import DeviceBuffer, PinnedBuffer
from acl_shim.device import Device
from acl_shim.loader import open_runtime
from acl_shim.mem_info import MemInfo, PointerAttributes
from acl_shim.runtime import Runtime

__all__ = ["Device", "DeviceBuffer", "MemInfo", "PinnedBuffer", "PointerAttributes", "Runtime", "open_runtime"]
