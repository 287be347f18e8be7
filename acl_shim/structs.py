"""C structs that calls read or fill, made from plain numbers."""

from collections.abc import Sequence
from typing import cast

from acl_shim._acl import ffi
from acl_shim.api_types import (
    IODimsStruct,
    IpcEventHandleStruct,
    MallocConfig,
    MemAccessDescArray,
    MemcpyBatchAttrArray,
    MemLocationStruct,
    MemPoolPropsStruct,
    MemUsageInfoArray,
    PhysicalMemPropStruct,
    PtrAttributes,
    UuidStruct,
)
from acl_shim.codes import MallocAttrType, MemLocationType
from acl_shim.memory_codes import MemAccessFlag

EVENT_KEY_BYTES = 64
"""Length of the keys of events."""

_ON_DEVICE = MemLocationType.ACL_MEM_LOCATION_TYPE_DEVICE


def new_ptr_attributes() -> PtrAttributes:
    """Return a zeroed `aclrtPtrAttributes`."""
    return cast(PtrAttributes, ffi.new("aclrtPtrAttributes *"))


def new_module_config(module_id: int) -> tuple[MallocConfig, object]:
    """Return an `aclrtMallocConfig` that names a module, and the array it points to: keep both for the call."""
    return new_malloc_config([{"attr": MallocAttrType.ACL_RT_MEM_ATTR_MODULE_ID, "value": {"moduleId": module_id}}])


def new_malloc_config(attributes: Sequence[object]) -> tuple[MallocConfig, object]:
    """Return an `aclrtMallocConfig`, and the array it points to: keep both for the call.

    Parameters
    ----------
    attributes
        One mapping per `aclrtMallocAttribute`, by the names of its fields.
    """
    array = ffi.new("aclrtMallocAttribute[]", list(attributes))
    return MallocConfig(ffi.new("aclrtMallocConfig *", {"attrs": array, "numAttrs": len(attributes)})), array


def new_location(location_type: int, location_id: int) -> MemLocationStruct:
    """Return an `aclrtMemLocation`."""
    return cast(MemLocationStruct, ffi.new("aclrtMemLocation *", {"type": location_type, "id": location_id}))


def new_physical_prop(attr: int, device_id: int) -> PhysicalMemPropStruct:
    """Return an `aclrtPhysicalMemProp` of memory on a device.

    Parameters
    ----------
    attr
        The page class, a `MemAttr`.
    device_id
        The device.
    """
    location = {"type": _ON_DEVICE, "id": device_id}
    return cast(PhysicalMemPropStruct, ffi.new("aclrtPhysicalMemProp *", {"memAttr": attr, "location": location}))


def new_access_descs(
    device_ids: Sequence[int], flags: int = MemAccessFlag.ACL_RT_MEM_ACCESS_FLAGS_READWRITE
) -> MemAccessDescArray:
    """Return an `aclrtMemAccessDesc` per device.

    Parameters
    ----------
    device_ids
        The devices.
    flags
        What they may do, a `MemAccessFlag`.
    """
    descs = [{"flags": flags, "location": {"type": _ON_DEVICE, "id": device_id}} for device_id in device_ids]
    return cast(MemAccessDescArray, ffi.new("aclrtMemAccessDesc[]", descs))


def new_batch_attrs(dst: tuple[int, int], src: tuple[int, int]) -> MemcpyBatchAttrArray:
    """Return one `aclrtMemcpyBatchAttr`.

    Parameters
    ----------
    dst, src
        (`MemLocationType`, id) of destinations and sources.
    """
    locations = {
        "dstLoc": {"type": dst[0], "id": dst[1]},
        "srcLoc": {"type": src[0], "id": src[1]},
    }
    return cast(MemcpyBatchAttrArray, ffi.new("aclrtMemcpyBatchAttr[1]", [locations]))


def new_usage_infos(count: int) -> MemUsageInfoArray:
    """Return zeroed `aclrtMemUsageInfo` for a number of modules."""
    return cast(MemUsageInfoArray, ffi.new("aclrtMemUsageInfo[]", count))


def new_pool_props(device_id: int, max_bytes: int) -> MemPoolPropsStruct:
    """Return an `aclrtMemPoolProps` of memory on a device.

    Parameters
    ----------
    device_id
        The device.
    max_bytes
        Most that the pool may hold, in bytes; 0 for no limit.
    """
    location = {"type": _ON_DEVICE, "id": device_id}
    return cast(MemPoolPropsStruct, ffi.new("aclrtMemPoolProps *", {"location": location, "maxSize": max_bytes}))


def new_io_dims() -> IODimsStruct:
    """Return a zeroed `aclmdlIODims`."""
    return cast(IODimsStruct, ffi.new("aclmdlIODims *"))


def new_uuid() -> UuidStruct:
    """Return a zeroed `aclrtUuid`."""
    return cast(UuidStruct, ffi.new("aclrtUuid *"))


def new_event_key(content: bytes = bytes(EVENT_KEY_BYTES)) -> IpcEventHandleStruct:
    """Return an `aclrtIpcEventHandle`, zeroed where no content is given.

    Parameters
    ----------
    content
        64 bytes.

    Raises
    ------
    ValueError
        The content has another length.
    """
    if len(content) != EVENT_KEY_BYTES:
        raise ValueError(f"key of {len(content)} bytes: give the {EVENT_KEY_BYTES} bytes of Event.export_key")
    return cast(IpcEventHandleStruct, ffi.new("aclrtIpcEventHandle *", {"reserved": content}))


def struct_bytes(field: object) -> bytes:
    """Return the bytes of an array in a struct, zeros included."""
    return bytes(ffi.buffer(field))
