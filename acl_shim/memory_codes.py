"""Numbers of virtual memory, sharing, host registration and pools, with ACL's names and values.

Source: CANN runtime headers, include/external/acl/acl_rt.h, version 1.17.0.
"""

from enum import IntEnum, IntFlag


class MemHandleType(IntEnum):
    """Say how a handle of physical memory may be shared (`aclrtMemHandleType`)."""

    ACL_MEM_HANDLE_TYPE_NONE = 0
    ACL_MEM_HANDLE_TYPE_POSIX = 2


class MemAllocationType(IntEnum):
    """Say whether physical memory stays in place (`aclrtMemAllocationType`)."""

    ACL_MEM_ALLOCATION_TYPE_PINNED = 0


class MemSharedHandleType(IntEnum):
    """Say what kind of key shares a handle (`aclrtMemSharedHandleType`)."""

    ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT = 1
    ACL_MEM_SHARE_HANDLE_TYPE_FABRIC = 2


class MemGranularity(IntEnum):
    """Choose a granularity of physical memory (`aclrtMemGranularityOptions`)."""

    ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM = 0
    ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1
    ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF = 0xFFFF


class MemAccessFlag(IntEnum):
    """Say what a location may do with a mapping (`aclrtMemAccessFlags`)."""

    ACL_RT_MEM_ACCESS_FLAGS_NONE = 0
    ACL_RT_MEM_ACCESS_FLAGS_READ = 1
    ACL_RT_MEM_ACCESS_FLAGS_READWRITE = 3


class HostRegisterType(IntEnum):
    """Choose the use of registered host memory (`aclrtHostRegisterType`)."""

    ACL_HOST_REGISTER_MAPPED = 0
    ACL_HOST_REGISTER_IOMEMORY = 4
    ACL_HOST_REGISTER_READONLY = 8


class HostRegisterFlag(IntFlag):
    """Choose the use of registered host memory (``ACL_HOST_REG_*``, second version)."""

    ACL_HOST_REG_MAPPED = 2
    ACL_HOST_REG_IOMEMORY = 4
    ACL_HOST_REG_READONLY = 8
    ACL_HOST_REG_PINNED = 0x10000000


class MemPoolAttr(IntEnum):
    """Name a setting or figure of a memory pool (`aclrtMemPoolAttr`)."""

    ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1
    ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC = 2
    ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3
    ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD = 4
    ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT = 5
    ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH = 6
    ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT = 7
    ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH = 8


class ExportFlag(IntFlag):
    """Choose how a key of memory may be used (``ACL_RT_VMM_EXPORT_FLAG_*``)."""

    ACL_RT_VMM_EXPORT_FLAG_DEFAULT = 0
    ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION = 1


class IpcExportFlag(IntFlag):
    """Choose how a key of a block may be used."""

    ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT = 0
    ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION = 1


class IpcImportFlag(IntFlag):
    """Choose what an import of a block brings."""

    ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT = 0
    ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS = 1


class ManagedFlag(IntFlag):
    """Choose who sees managed memory."""

    ACL_RT_MEM_ATTACH_GLOBAL = 1
