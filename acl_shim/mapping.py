"""Pieces of an address range that physical memory is mapped to."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acl_shim.codes import MemLocationType
from acl_shim.device_memory import DeviceMemory
from acl_shim.errors import Argument
from acl_shim.lease import Lease
from acl_shim.memory_codes import MemAccessFlag
from acl_shim.owner import SizedOwner
from acl_shim.physical_handle import PhysicalHandle
from acl_shim.structs import new_access_descs, new_location
from acl_shim.table import new_cell

if TYPE_CHECKING:
    from acl_shim.reservation import Reservation


class Mapping(SizedOwner, DeviceMemory):
    """Own the map of physical memory at one place of a reservation; `Reservation.map` makes them.

    It keeps the reservation and the handle's object alive. The owning device may read and write at once, others after
    `set_access`. Unmapping waits for no task: synchronise the streams that use the memory first.

    Attributes
    ----------
    reservation
        The range it lies in.
    handle
        The physical memory.

    Thread safety: any thread may use it; copies to overlapping ranges are not ordered against each other.
    Source: aclrtMapMem, aclrtUnmapMem, aclrtMemSetAccess, aclrtMemGetAccess.
    """

    __slots__ = ("handle", "reservation")

    def __init__(
        self, reservation: "Reservation", handle: PhysicalHandle, lease: Lease, addr: int, size_bytes: int
    ) -> None:
        self.reservation = reservation
        self.handle = handle
        super().__init__(reservation.device, lease, addr, size_bytes)
        handle.mapped[self._key] = addr
        reservation.add_piece(self._key, self._open, lease, handle)

    def _give_back(self, handle: int) -> None:
        self.reservation.unmap(handle)

    def _given_back(self) -> None:
        super()._given_back()
        self.reservation.drop_piece(self._key)

    def set_access(self, device_ids: Sequence[int]) -> None:
        """Let devices read and write the piece.

        Parameters
        ----------
        device_ids
            The devices; at least one.

        Raises
        ------
        ValueError
            There is no device.
        AclError
            The runtime refuses. Nothing has changed.
        StateError
            The piece is unmapped.
        """
        if not device_ids:
            raise ValueError("device_ids is empty: name at least one device")
        descs, runtime, addr = new_access_descs(device_ids), self._device.runtime, self.addr
        code = runtime.api.aclrtMemSetAccess(addr, self._size_bytes, descs, len(device_ids))
        devices = ", ".join(str(device_id) for device_id in device_ids)
        arguments: dict[str, Argument] = {"addr": addr, "size_bytes": self._size_bytes, "devices": devices}
        runtime.check(code, "aclrtMemSetAccess", arguments)

    def access(self, device_id: int) -> MemAccessFlag:
        """Return what a device may do with the piece.

        Parameters
        ----------
        device_id
            The device.

        Raises
        ------
        AclError
            The runtime refuses.
        StateError
            The piece is unmapped.
        """
        location = new_location(MemLocationType.ACL_MEM_LOCATION_TYPE_DEVICE, device_id)
        flag, runtime, addr = new_cell("uint64_t *"), self._device.runtime, self.addr
        code = runtime.api.aclrtMemGetAccess(addr, location, flag)
        runtime.check(code, "aclrtMemGetAccess", {"addr": addr, "device_id": device_id})
        return MemAccessFlag(flag[0])
