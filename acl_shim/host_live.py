"""What is alive in the host runtime."""

from dataclasses import dataclass

from acl_shim.api_types import LiveStruct


@dataclass(frozen=True, slots=True)
class DeviceLive:
    """What is alive on one device of the host runtime.

    Attributes
    ----------
    set_count
        `aclrtSetDevice` calls not undone yet.
    pages_4k_used, pages_4k_total, pages_2m_used, pages_2m_total, pages_1g_used, pages_1g_total
        Pages of each class.
    committed_bytes
        Host memory behind the device's pages now, in bytes.
    """

    set_count: int
    pages_4k_used: int
    pages_4k_total: int
    pages_2m_used: int
    pages_2m_total: int
    pages_1g_used: int
    pages_1g_total: int
    committed_bytes: int


@dataclass(frozen=True, slots=True)
class LiveObjects:
    """What is alive in the host runtime.

    Attributes
    ----------
    blocks, bytes
        Device blocks, and their bytes rounded up to whole pages.
    host_blocks, host_bytes
        Pinned host blocks, and their bytes rounded up to whole pages.
    contexts
        Explicit contexts.
    reservations, reserved_bytes
        Reserved ranges of addresses, and their bytes.
    handles, handle_bytes
        Physical memory handles, those held by mappings only included, and the bytes of their pages.
    mappings
        Maps of physical memory into reserved ranges.
    exports, imports
        Handles and blocks offered to other processes, and those of other processes in use here.
    managed, managed_bytes
        Pieces of managed memory, and their bytes.
    allocators, mem_pools
        Descriptions of custom allocators; memory pools, whose blocks count as blocks.
    registered, registered_bytes
        Ranges of host memory registered by the caller, and their bytes.
    streams, tasks
        Streams without the default ones; tasks of all streams that are not through.
    events, notifies
        Events and notifies.
    data_buffers
        Descriptions of memory that `aclCreateDataBuffer` made.
    models, model_configs, model_descs
        Loaded models; configurations of loads, and descriptions of models.
    devices_set
        Devices that are set.
    devices
        One entry per device.
    """

    blocks: int
    bytes: int
    host_blocks: int
    host_bytes: int
    contexts: int
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
    devices_set: int
    devices: tuple[DeviceLive, ...]

    @property
    def nothing(self) -> bool:
        """Whether nothing is alive and no device is set."""
        return not any(getattr(self, name) for name in self.__slots__ if name != "devices")


def live_objects(live: LiveStruct) -> LiveObjects:
    """Return what a filled `hostacl_live_t` says."""
    entries = [live.devices[number] for number in range(live.device_count)]
    fields = DeviceLive.__dataclass_fields__
    devices = tuple(DeviceLive(*(getattr(entry, name) for name in fields)) for entry in entries)
    counts = {name: getattr(live, name) for name in LiveObjects.__dataclass_fields__ if name != "devices"}
    return LiveObjects(**counts, devices=devices)
