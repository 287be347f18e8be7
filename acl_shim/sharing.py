"""What a device shares: with other devices, with other processes, with host memory of the caller."""

from acl_shim.allocation import checked_size
from acl_shim.errors import Argument
from acl_shim.event import Event
from acl_shim.host_memory import HostBuffer, addr_of, hold, lasting_array, release
from acl_shim.host_registration import HostRegistration
from acl_shim.ipc import ImportedBuffer
from acl_shim.mem_info import HUGE_PAGE_BYTES, physical_pages
from acl_shim.memory_codes import HostRegisterFlag, IpcImportFlag
from acl_shim.notify import Notify
from acl_shim.physical_handle import PhysicalHandle
from acl_shim.stream_codes import NotifyImportFlag
from acl_shim.stream_scope import StreamScope
from acl_shim.structs import new_event_key
from acl_shim.table import new_cell
from acl_shim.virtual_memory import VirtualMemoryCalls


class ShareCalls(VirtualMemoryCalls, StreamScope):
    """Peer access, imports, registration of host memory."""

    def bare_tgid(self) -> int:
        """Return the id of this process as exporters name it in `allow_import`.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The library lacks the function.
        """
        cell = new_cell("int32_t *")
        self._enter()
        self._runtime.check(self._runtime.api.aclrtDeviceGetBareTgid(cell), "aclrtDeviceGetBareTgid", {})
        return cell[0]

    def can_access_peer(self, peer_id: int) -> bool:
        """Return whether the device can reach the memory of another one.

        Parameters
        ----------
        peer_id
            The other device.

        Raises
        ------
        AclError
            The runtime refuses: 100000 for the device itself, 107001 where there is no such device.
        StateError
            The library lacks the function.
        """
        cell = new_cell("int32_t *")
        code = self._runtime.api.aclrtDeviceCanAccessPeer(cell, self._id, peer_id)
        self._runtime.check(code, "aclrtDeviceCanAccessPeer", {"device_id": self._id, "peer_id": peer_id})
        return cell[0] == 1

    def enable_peer_access(self, peer_id: int) -> None:
        """Let the device reach the memory of another one; copies between them need it in the direction they take.

        Parameters
        ----------
        peer_id
            The other device.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The library lacks the function.
        """
        self._enter()
        code = self._runtime.api.aclrtDeviceEnablePeerAccess(peer_id, 0)
        self._runtime.check(code, "aclrtDeviceEnablePeerAccess", {"device_id": self._id, "peer_id": peer_id})

    def disable_peer_access(self, peer_id: int) -> None:
        """End what `enable_peer_access` began.

        Parameters
        ----------
        peer_id
            The other device.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The library lacks the function.
        """
        self._enter()
        code = self._runtime.api.aclrtDeviceDisablePeerAccess(peer_id)
        self._runtime.check(code, "aclrtDeviceDisablePeerAccess", {"device_id": self._id, "peer_id": peer_id})

    def import_block(self, key: str, size_bytes: int, *, enable_peer_access: bool = False) -> ImportedBuffer:
        """Import another process's block of device memory.

        Parameters
        ----------
        key
            What `DeviceBuffer.export_key` gave there.
        size_bytes
            Size of the block in bytes, as the exporter tells it.
        enable_peer_access
            Whether this device may reach the memory where it lies on another one.

        Raises
        ------
        ValueError
            `size_bytes` is below 1.
        AclError
            The runtime refuses: the key is unknown, imported already, or not meant for this process. Nothing is left.
        StateError
            The library lacks the function.
        """
        size, cell = checked_size(size_bytes), new_cell("uintptr_t *")
        flags = IpcImportFlag.ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS if enable_peer_access else 0
        lease = self._enter()
        code = self._runtime.api.aclrtIpcMemImportByKey(cell, key.encode(), flags)
        self._runtime.check(code, "aclrtIpcMemImportByKey", {"key": key, "flags": flags, "device_id": self._id})
        return ImportedBuffer(self._as_device(), lease, cell[0], size, key)

    def import_handle(self, key: int, size_bytes: int, page_bytes: int = HUGE_PAGE_BYTES) -> PhysicalHandle:
        """Import another process's physical memory, to be mapped here.

        Parameters
        ----------
        key
            What `PhysicalHandle.export_key` gave there.
        size_bytes, page_bytes
            Size of the memory and of its pages in bytes, as the exporter tells them.

        Raises
        ------
        ValueError
            The size is below 1, or there are no such pages.
        AclError
            The runtime refuses: the key is unknown or not meant for this process. Nothing is left.
        StateError
            The library lacks the function.
        """
        physical_pages(page_bytes, False)
        size, cell = checked_size(size_bytes), new_cell("uintptr_t *")
        lease = self._enter()
        code = self._runtime.api.aclrtMemImportFromShareableHandle(key, self._id, cell)
        self._runtime.check(code, "aclrtMemImportFromShareableHandle", {"key": key, "device_id": self._id})
        return PhysicalHandle(self._as_device(), lease, cell[0], size, page_bytes)

    def import_notify(self, key: str, *, enable_peer_access: bool = False) -> Notify:
        """Import another process's notify.

        Parameters
        ----------
        key
            What `Notify.export_key` gave there.
        enable_peer_access
            Whether this device may reach it where it lies on another one.

        Raises
        ------
        AclError
            The runtime refuses. Nothing is left.
        StateError
            The library lacks the function.
        """
        cell = new_cell("uintptr_t *")
        flags = NotifyImportFlag.ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS if enable_peer_access else 0
        lease = self._enter()
        code = self._runtime.api.aclrtNotifyImportByKey(cell, key.encode(), flags)
        self._runtime.check(code, "aclrtNotifyImportByKey", {"key": key, "flags": flags, "device_id": self._id})
        return Notify(self._as_device(), lease, cell[0], self)

    def import_event(self, key: bytes) -> Event:
        """Import another process's event.

        Parameters
        ----------
        key
            What `Event.export_key` gave there.

        Raises
        ------
        ValueError
            The key has another length.
        AclError
            The runtime refuses. Nothing is left.
        StateError
            The library lacks the function.
        """
        handle, cell = new_event_key(key), new_cell("uintptr_t *")
        lease = self._enter()
        code = self._runtime.api.aclrtIpcOpenEventHandle(handle, cell)
        self._runtime.check(code, "aclrtIpcOpenEventHandle", {"device_id": self._id})
        return Event(self._as_device(), lease, cell[0], self)

    def host_register(self, memory: HostBuffer, flags: int = HostRegisterFlag.ACL_HOST_REG_PINNED) -> HostRegistration:
        """Pin host memory of the caller, so that the device copies from and to it directly.

        Parameters
        ----------
        memory
            Writable buffer that starts on a page of 4 KiB, for example of `mmap.mmap`.
        flags
            `HostRegisterFlag` bits: pinned, also mapped at a device address, or read-only.

        Raises
        ------
        TypeError, ValueError
            `memory` is not a writable C-contiguous buffer of host memory.
        AclError
            The runtime refuses: 507910 where a part is pinned already, 207000 where the product lacks it.
        StateError
            The library lacks the function.
        """
        values = lasting_array(memory, True)
        held = hold(values, True)
        addr = addr_of(held)
        release(held)
        lease = self._enter()
        code = self._runtime.api.aclrtHostRegisterV2(addr, values.nbytes, flags)
        arguments: dict[str, Argument] = {"addr": addr, "size_bytes": values.nbytes, "flags": flags}
        self._runtime.check(code, "aclrtHostRegisterV2", {**arguments, "device_id": self._id})
        return HostRegistration(self._as_device(), lease, addr, values)
