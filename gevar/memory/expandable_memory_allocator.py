"""What the variable manager asks of memory that grows: pieces of one reserved range, all given back at once."""

from typing import Protocol, runtime_checkable

from gevar.types import DevAddr


class ExpandableMemoryAllocator(Protocol):
    """Memory of one device in one range of addresses, to which physical pages are added as it is used.

    Source: GE source, base/graph/manager/memory_manager.h, ExpandableMemoryAllocator.
    """

    def is_support_expandable_memory(self) -> bool:
        """Tell whether the device can do it; an allocator that cannot is not used."""

    def set_reuse(self, reuse: bool) -> None:
        """Say whether pages that another owner gave back may be used."""

    def set_share_phy_allocator(self, share_phy_allocator: bool) -> None:
        """Say whether pages come from the pool that all sessions share; else they go with this allocator."""

    def malloc_memory(self, purpose: str, size_bytes: int, incremental: bool = False) -> DevAddr:
        """Return memory; its content is not defined.

        Parameters
        ----------
        purpose
            What it is for, in words.
        size_bytes
            Size in bytes.
        incremental
            Whether the piece comes after those that are out; else it starts where the range does.

        Raises
        ------
        AclError, OutOfMemoryError
            There is not enough memory, or the device cannot do it. Nothing is left allocated.
        """

    def free_memory(self) -> None:
        """Give back all that was handed out.

        Raises
        ------
        AclError
            The runtime refuses.
        """


@runtime_checkable
class BlockFreeing(Protocol):
    """Memory that grows and takes single blocks back; `ExpandableActiveMemoryAllocator` is one, GE's is not."""

    def free(self, dev_addr: DevAddr) -> None:
        """Take a block back, by its first address.

        Raises
        ------
        AclError
            The runtime refuses; the block is alive still.
        """

    def blocks(self) -> list[tuple[DevAddr, int, str]]:
        """Return first address, size in bytes and tag of every block."""
