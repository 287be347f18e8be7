"""A range of device addresses with physical memory behind every page of it, made and given back as one."""

from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from acl_shim.device_memory import DeviceMemory
from acl_shim.errors import size_text
from acl_shim.mapping import Mapping
from acl_shim.physical_handle import PhysicalHandle
from acl_shim.reservation import Reservation

if TYPE_CHECKING:
    from acl_shim.device import Device


class MappedMemory(DeviceMemory):
    """Own a range, the physical memory of its pieces and their mappings; `Device.map_memory` makes them.

    Attributes
    ----------
    reservation
        The range.
    mappings
        One per piece, in the order of their addresses.

    Thread safety: any thread may use it; copies to overlapping ranges are not ordered against each other.
    Source: aclrtReserveMemAddress, aclrtMallocPhysical, aclrtMapMem.
    """

    __slots__ = ("__weakref__", "_device", "_size_bytes", "mappings", "reservation")

    def __init__(self, device: "Device", reservation: Reservation, mappings: list[Mapping]) -> None:
        self._device = device
        self._size_bytes = reservation.size_bytes
        self.reservation = reservation
        self.mappings = mappings

    @classmethod
    def create(cls, device: "Device", size_bytes: int, page_bytes: int, piece_bytes: int) -> Self:
        """Reserve, make and map in pieces; what was made is undone in reverse order where a step fails."""
        with ExitStack() as undo:
            reservation = undo.enter_context(device.reserve(size_bytes))
            mappings = []
            for offset in range(0, size_bytes, piece_bytes):
                handle = device.malloc_physical(min(piece_bytes, size_bytes - offset), page_bytes)
                undo.push(handle)
                mappings.append(undo.enter_context(reservation.map(handle, offset)))
            made = cls(device, reservation, mappings)
            undo.pop_all()
        return made

    def _handle(self) -> int:
        return self.reservation.addr

    @property
    def device(self) -> "Device":
        """Device of the memory."""
        return self._device

    @property
    def size_bytes(self) -> int:
        """Size in bytes, rounded up to whole pages."""
        return self._size_bytes

    @property
    def handles(self) -> list[PhysicalHandle]:
        """The physical memory of each piece."""
        return [mapping.handle for mapping in self.mappings]

    @property
    def closed(self) -> bool:
        """Whether the range was given back."""
        return self.reservation.closed

    def close(self) -> None:
        """Unmap the pieces, free their memory and give the range back; does nothing when that happened already.

        Raises
        ------
        AclError
            The runtime refuses a step. After failure what comes behind that step is open still and `close` may be
            called again.
        """
        for mapping in reversed(self.mappings):
            mapping.close()
            mapping.handle.close()
        self.reservation.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self.addr:#x}"
        pieces = len(self.mappings)
        return f"<MappedMemory {state} of {size_text(self._size_bytes)} in {pieces} pieces on device {self._device.id}>"
