"""Virtual memory of a device: address ranges, physical memory, and both together."""

from acl_shim.allocation import MemoryCalls, checked_size
from acl_shim.errors import Argument
from acl_shim.mapped_memory import MappedMemory
from acl_shim.mem_info import HUGE_PAGE_BYTES, AddressRange, physical_pages
from acl_shim.memory_codes import MemGranularity
from acl_shim.physical_handle import PhysicalHandle
from acl_shim.reservation import Reservation
from acl_shim.structs import new_physical_prop
from acl_shim.table import new_cell

_HUGE_RANGE = 1  # flag of a range for huge pages, as torch_npu and GE pass it


class VirtualMemoryCalls(MemoryCalls):
    """Address ranges and physical memory of a device."""

    def reserve(self, size_bytes: int, *, addr: int = 0) -> Reservation:
        """Reserve a range of addresses; it costs no memory.

        Parameters
        ----------
        size_bytes
            Size in bytes, at least 1; the runtime rounds up to 2 MiB.
        addr
            Wanted start, a multiple of 2 MiB, for larger ranges of the next power of two or 1 GiB; 0 leaves the
            choice to the runtime.

        Raises
        ------
        ValueError
            `size_bytes` is below 1.
        AclError
            The runtime refuses: 507899 where the wanted range is in use, 107000 where it is not aligned, 207001 where
            the address space has no such room. Nothing is left reserved.
        StateError
            The library lacks the function, or the runtime is closed or forked.
        """
        size, cell = checked_size(size_bytes), new_cell("uintptr_t *")
        lease = self._enter()
        code = self._runtime.api.aclrtReserveMemAddress(cell, size, 0, addr, _HUGE_RANGE)
        if code:
            arguments: dict[str, Argument] = {"size_bytes": size, "addr": addr, "device_id": self._id}
            raise self._runtime.error(code, "aclrtReserveMemAddress", arguments)
        return Reservation(self._as_device(), lease, cell[0], size)

    def granularity(self, page_bytes: int = HUGE_PAGE_BYTES, *, recommended: bool = False, p2p: bool = False) -> int:
        """Return the unit of sizes and places of physical memory, in bytes.

        Parameters
        ----------
        page_bytes
            Page size: 2 MiB or 1 GiB.
        recommended
            Whether to ask for the unit that serves best, not the smallest.
        p2p
            Whether other devices reach the pages.

        Raises
        ------
        ValueError
            There are no such pages.
        AclError
            The runtime refuses: 207000 where the product lacks the pages.
        StateError
            The library lacks the function.
        """
        prop = new_physical_prop(physical_pages(page_bytes, p2p).attr, self._id)
        minimum, best = (
            MemGranularity.ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM,
            MemGranularity.ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED,
        )
        cell, option = new_cell("size_t *"), best if recommended else minimum
        self._enter()
        code = self._runtime.api.aclrtMemGetAllocationGranularity(prop, option, cell)
        arguments: dict[str, Argument] = {"page_bytes": page_bytes, "option": option, "device_id": self._id}
        self._runtime.check(code, "aclrtMemGetAllocationGranularity", arguments)
        return cell[0]

    def malloc_physical(
        self, size_bytes: int, page_bytes: int = HUGE_PAGE_BYTES, *, p2p: bool = False
    ) -> PhysicalHandle:
        """Allocate physical memory; it has no address before it is mapped, and its content is not defined.

        Parameters
        ----------
        size_bytes
            Size in bytes, a multiple of `page_bytes`.
        page_bytes
            Page size: 2 MiB or 1 GiB.
        p2p
            Whether other devices reach the pages.

        Raises
        ------
        ValueError
            There are no such pages, or the size is not a multiple of them.
        OutOfMemoryError
            The page class has not enough memory. Nothing is left allocated.
        AclError
            The runtime refuses: 207000 where the product lacks the pages. Nothing is left allocated.
        StateError
            The library lacks the function.
        """
        pages, size = physical_pages(page_bytes, p2p), checked_size(size_bytes)
        if size % page_bytes:
            raise ValueError(f"size_bytes is {size}: give a multiple of the page size, {page_bytes} B")
        cell, prop = new_cell("uintptr_t *"), new_physical_prop(pages.attr, self._id)
        lease = self._enter()
        code = self._runtime.api.aclrtMallocPhysical(cell, size, prop, 0)
        if code:
            raise self.allocation_error(code, "aclrtMallocPhysical", size, pages, {"page_bytes": page_bytes})
        return PhysicalHandle(self._as_device(), lease, cell[0], size, page_bytes)

    def map_memory(
        self, size_bytes: int, page_bytes: int = HUGE_PAGE_BYTES, *, piece_bytes: int | None = None
    ) -> MappedMemory:
        """Reserve a range and map new physical memory to all of it; its content is not defined.

        Parameters
        ----------
        size_bytes
            Size in bytes, at least 1; rounded up to whole pages.
        page_bytes
            Page size: 2 MiB or 1 GiB.
        piece_bytes
            Size of each piece of physical memory, a multiple of `page_bytes`; the last may be smaller. None for one
            piece.

        Raises
        ------
        ValueError
            A size is below 1, there are no such pages, or a piece is not a multiple of them.
        OutOfMemoryError
            The page class has not enough memory. Nothing is left.
        AclError
            The runtime refuses a step. Nothing is left.
        StateError
            The library lacks a function.
        """
        physical_pages(page_bytes, False)
        size = -(-checked_size(size_bytes) // page_bytes) * page_bytes
        piece = size if piece_bytes is None else checked_size(piece_bytes)
        if piece % page_bytes:
            raise ValueError(f"piece_bytes is {piece}: give a multiple of the page size, {page_bytes} B")
        return MappedMemory.create(self._as_device(), size, page_bytes, piece)

    def address_range(self, addr: int) -> AddressRange:
        """Return the block or mapping that holds an address.

        Parameters
        ----------
        addr
            An address on the device.

        Raises
        ------
        AclError
            The address belongs to nothing.
        StateError
            The library lacks the function.
        """
        base, size = new_cell("uintptr_t *"), new_cell("size_t *")
        self._enter()
        code = self._runtime.api.aclrtMemGetAddressRange(addr, base, size)
        self._runtime.check(code, "aclrtMemGetAddressRange", {"addr": addr, "device_id": self._id})
        return AddressRange(base[0], size[0])
