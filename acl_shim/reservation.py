"""Ranges of device addresses as owner objects."""

from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING

from acl_shim.errors import Argument
from acl_shim.lease import Lease
from acl_shim.mapping import Mapping
from acl_shim.owner import SizedOwner
from acl_shim.physical_handle import PhysicalHandle

if TYPE_CHECKING:
    from acl_shim.device import Device

_Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Piece:
    """What a mapped piece needs to be unmapped without its `Mapping`, which may be out of reach already."""

    cell: list[int]  # the address while it is mapped; pop() decides who unmaps
    lease: Lease
    handle: PhysicalHandle


class Reservation(SizedOwner):
    """Own one range of device addresses; `Device.reserve` makes them.

    A range costs no memory. Physical memory is mapped to pieces of it. `close` and the finaliser unmap every piece that
    is mapped, the last first, and give the range back. A range belongs to the device of its first piece.

    Thread safety: any thread may use it; it must not be closed while another thread maps.
    Source: aclrtReserveMemAddress, aclrtReleaseMemAddress, aclrtMapMem, aclrtMemMapNoAccess.
    """

    __slots__ = ("_pieces",)

    _lives_on_host = True  # the last reset of the device drops what is mapped, not the range

    def __init__(self, device: "Device", lease: Lease, handle: int, size_bytes: int) -> None:
        self._pieces: dict[_Key, _Piece] = {}
        super().__init__(device, lease, handle, size_bytes)

    @property
    def addr(self) -> int:
        """First address of the range.

        Raises
        ------
        StateError
            The reservation is closed.
        """
        return self._handle()

    @property
    def mapped_bytes(self) -> int:
        """How much of the range is mapped, in bytes."""
        return sum(piece.handle.size_bytes for piece in self._pieces.copy().values())

    def map(self, handle: PhysicalHandle, offset_bytes: int = 0, *, accessible: bool = True) -> Mapping:
        """Map physical memory to a place of the range.

        Parameters
        ----------
        handle
            The memory; it may be mapped several times, and all places show the same bytes.
        offset_bytes
            Where in the range the piece starts, a multiple of the handle's page size.
        accessible
            Whether the owning device may use the piece at once; else nobody may before `Mapping.set_access`.

        Raises
        ------
        ValueError
            The piece does not lie inside the range.
        AclError
            The runtime refuses: 507899 for a place that is mapped already or not aligned, or for a handle of another
            device than the range belongs to. Nothing is mapped.
        StateError
            Reservation or handle is closed, or the library lacks the function.
        """
        offset, size_bytes = index(offset_bytes), handle.size_bytes
        if offset < 0 or offset + size_bytes > self._size_bytes:
            raise ValueError(
                f"a piece of {size_bytes} B at offset {offset} B does not fit the range of {self._size_bytes} B: give"
                " an offset inside it"
            )
        addr, runtime = self._handle() + offset, self._device.runtime
        if accessible:
            call, code = "aclrtMapMem", runtime.api.aclrtMapMem(addr, size_bytes, 0, handle.handle, 0)
        else:
            call, code = "aclrtMemMapNoAccess", runtime.api.aclrtMemMapNoAccess(addr, size_bytes, 0, handle.handle, 0)
        if code:
            arguments: dict[str, Argument] = {"addr": addr, "size_bytes": size_bytes, "handle": handle.handle}
            raise runtime.error(code, call, {**arguments, "device_id": handle.device.id})
        return Mapping(self, handle, handle.lease, addr, size_bytes)

    def add_piece(self, key: _Key, cell: list[int], lease: Lease, handle: PhysicalHandle) -> None:
        """Note a piece that was mapped."""
        self._pieces[key] = _Piece(cell, lease, handle)

    def drop_piece(self, key: _Key) -> None:
        """Forget a piece that is not mapped any more."""
        piece = self._pieces.pop(key, None)
        if piece is not None:
            piece.handle.mapped.pop(key, None)
            piece.lease.owned.pop(key, None)

    def unmap(self, addr: int) -> None:
        """Unmap the piece that starts at an address; `Mapping.close` does more.

        Raises
        ------
        AclError
            The runtime refuses. The piece is mapped still.
        """
        runtime = self._device.runtime
        code = runtime.api.aclrtUnmapMem(addr)
        if code:
            raise runtime.error(code, "aclrtUnmapMem", {"addr": addr, "device_id": self._device.id})

    def _unmap_all(self) -> None:
        """Unmap what is mapped, the last piece first."""
        for key, piece in reversed(tuple(self._pieces.items())):
            try:
                addr = piece.cell.pop()
            except IndexError:  # another thread unmaps it
                continue
            try:
                if piece.lease.device_alive:
                    self.unmap(addr)
            except BaseException:
                piece.cell.append(addr)
                raise
            self.drop_piece(key)

    def _give_back(self, handle: int) -> None:
        self._unmap_all()
        runtime = self._device.runtime
        code = runtime.api.aclrtReleaseMemAddress(handle)
        if code:
            raise runtime.error(code, "aclrtReleaseMemAddress", {"addr": handle, "size_bytes": self._size_bytes})
