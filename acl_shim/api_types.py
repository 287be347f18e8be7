"""Types of the typed face: handles as numbers, cells that calls write, the C structs."""

from typing import Literal, NewType, Protocol

ContextHandle = NewType("ContextHandle", int)
"""An `aclrtContext` as a number."""

StreamHandle = NewType("StreamHandle", int)
"""An `aclrtStream` as a number."""

DEFAULT_STREAM = StreamHandle(0)
"""Stands for the default stream of the current context."""

EventHandle = NewType("EventHandle", int)
"""An `aclrtEvent` as a number."""

NotifyHandle = NewType("NotifyHandle", int)
"""An `aclrtNotify` as a number."""

MemHandle = NewType("MemHandle", int)
"""An `aclrtDrvMemHandle` as a number."""

ModelDescHandle = NewType("ModelDescHandle", int)
"""An `aclmdlDesc` as a number."""

ModelConfigHandle = NewType("ModelConfigHandle", int)
"""An `aclmdlConfigHandle` as a number."""

DatasetHandle = NewType("DatasetHandle", int)
"""An `aclmdlDataset` as a number."""

MemPoolHandle = NewType("MemPoolHandle", int)
"""An `aclrtMemPool` as a number."""

Table = NewType("Table", object)
"""Pointer to the function table of one library."""

Null = NewType("Null", object)
"""The null pointer."""

CharArray = NewType("CharArray", object)
"""A C array of characters that a call fills."""

MallocConfig = NewType("MallocConfig", object)
"""Pointer to a C struct `aclrtMallocConfig`."""

CellType = Literal["uintptr_t *", "int *", "int32_t *", "uint32_t *", "int64_t *", "uint64_t *", "size_t *"]
"""C types of the single integers that calls write."""

ArrayType = Literal["uintptr_t[]", "int32_t[]", "size_t[]"]
"""C types of the arrays of integers that calls read."""


class Cell(Protocol):
    """One C integer that a call writes; read it as ``cell[0]``."""

    def __getitem__(self, index: int, /) -> int:
        """Return the value."""


class BlocksDone(Protocol):
    """How far a call that moves blocks came; the call writes it."""

    blocks: int
    copies: int
    got: int
    os_error: int
    read_ns: int
    copy_ns: int


class FloatCell(Protocol):
    """One C float that a call writes; read it as ``cell[0]``."""

    def __getitem__(self, index: int, /) -> float:
        """Return the value."""


class IntArray(Protocol):
    """A C array of integers that a call reads."""

    def __len__(self) -> int:
        """Return the number of integers."""

    def __getitem__(self, index: int, /) -> int:
        """Return one of them."""


class MemLocationStruct(Protocol):
    """C struct `aclrtMemLocation`."""

    id: int
    type: int


class PtrAttributes(Protocol):
    """C struct `aclrtPtrAttributes`; `pageSize` in bytes."""

    location: MemLocationStruct
    pageSize: int


class MemUsageInfoStruct(Protocol):
    """C struct `aclrtMemUsageInfo`; sizes in bytes."""

    name: CharArray
    curMemSize: int
    memPeakSize: int


class MemUsageInfoArray(Protocol):
    """C array of `aclrtMemUsageInfo`."""

    def __getitem__(self, index: int, /) -> MemUsageInfoStruct:
        """Return the entry of one module."""


class MemcpyBatchAttrStruct(Protocol):
    """C struct `aclrtMemcpyBatchAttr`."""

    dstLoc: MemLocationStruct
    srcLoc: MemLocationStruct


class MemcpyBatchAttrArray(Protocol):
    """C array of `aclrtMemcpyBatchAttr`."""

    def __getitem__(self, index: int, /) -> MemcpyBatchAttrStruct:
        """Return one entry."""


class PhysicalMemPropStruct(Protocol):
    """C struct `aclrtPhysicalMemProp`."""

    handleType: int
    allocationType: int
    memAttr: int
    location: MemLocationStruct
    reserve: int


class MemAccessDescStruct(Protocol):
    """C struct `aclrtMemAccessDesc`."""

    flags: int
    location: MemLocationStruct


class MemAccessDescArray(Protocol):
    """C array of `aclrtMemAccessDesc`."""

    def __getitem__(self, index: int, /) -> MemAccessDescStruct:
        """Return one entry."""


class IpcEventHandleStruct(Protocol):
    """C struct `aclrtIpcEventHandle`."""

    reserved: CharArray


class UtilizationStruct(Protocol):
    """C struct `aclrtUtilizationInfo`, in percent."""

    cubeUtilization: int
    vectorUtilization: int
    aicpuUtilization: int
    memoryUtilization: int


class UuidStruct(Protocol):
    """C struct `aclrtUuid`."""

    bytes: CharArray


class MemPoolPropsStruct(Protocol):
    """C struct `aclrtMemPoolProps`; `maxSize` in bytes."""

    allocType: int
    handleType: int
    location: MemLocationStruct
    maxSize: int


class IODimsStruct(Protocol):
    """C struct `aclmdlIODims`."""

    name: CharArray
    dimCount: int
    dims: IntArray


class DeviceLiveStruct(Protocol):
    """C struct `hostacl_device_live_t`."""

    set_count: int
    pages_4k_used: int
    pages_4k_total: int
    pages_2m_used: int
    pages_2m_total: int
    pages_1g_used: int
    pages_1g_total: int
    committed_bytes: int


class DeviceLiveArray(Protocol):
    """C array of `hostacl_device_live_t`, one per device id."""

    def __getitem__(self, index: int, /) -> DeviceLiveStruct:
        """Return the entry of a device."""


class LiveStruct(Protocol):
    """C struct `hostacl_live_t`."""

    blocks: int
    bytes: int
    host_blocks: int
    host_bytes: int
    contexts: int
    devices_set: int
    device_count: int
    devices: DeviceLiveArray
    reservations: int
    reserved_bytes: int
    handles: int
    handle_bytes: int
    mappings: int
    exports: int
    imports: int
    managed: int
    managed_bytes: int
    allocators: int
    mem_pools: int
    registered: int
    registered_bytes: int
    streams: int
    tasks: int
    events: int
    notifies: int
    data_buffers: int
    models: int
    model_configs: int
    model_descs: int
