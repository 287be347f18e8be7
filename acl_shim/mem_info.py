"""Facts about device memory: figures of a pool, where an address lives, what pages a policy takes."""

from dataclasses import dataclass
from typing import NamedTuple

from acl_shim.codes import MemAttr, MemLocationType, MemMallocPolicy

_POLICY_BITS = 0xFF  # the bits above are wishes (MemTypeFlag)


class MemInfo(NamedTuple):
    """What a pool of a device has, in bytes.

    Attributes
    ----------
    free_bytes, total_bytes
        Free memory and all memory of the pool, for all processes.
    """

    free_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class PointerAttributes:
    """Where an address lives.

    Attributes
    ----------
    location_type
        Host, device, or unknown to the runtime.
    device_id
        The device, for device memory.
    page_size_bytes
        Size of the pages behind the address.
    """

    location_type: MemLocationType
    device_id: int
    page_size_bytes: int


@dataclass(frozen=True, slots=True)
class AddressRange:
    """A range of device addresses: the block or mapping that holds an address, or memory that is given to a call.

    Attributes
    ----------
    base
        First address.
    size_bytes
        Size in bytes; of a block or mapping it is rounded up to whole pages.
    """

    base: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class MemUsage:
    """What one module holds on a device.

    Attributes
    ----------
    name
        The module.
    current_bytes, peak_bytes
        What it holds now, and the most it held, in bytes.
    """

    name: str
    current_bytes: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class PageKind:
    """A page class.

    Attributes
    ----------
    text
        The class in words, for example ``2 MiB pages``.
    attr
        Pool whose figures tell what is left of it.
    """

    text: str
    attr: MemAttr


_PAGE_KINDS: dict[int, PageKind] = {
    MemMallocPolicy.HUGE_FIRST: PageKind("2 MiB pages, else 4 KiB pages", MemAttr.ACL_HBM_MEM),
    MemMallocPolicy.HUGE_ONLY: PageKind("2 MiB pages", MemAttr.ACL_HBM_MEM_HUGE),
    MemMallocPolicy.NORMAL_ONLY: PageKind("4 KiB pages", MemAttr.ACL_HBM_MEM_NORMAL),
    MemMallocPolicy.HUGE_FIRST_P2P: PageKind("2 MiB P2P pages, else 4 KiB P2P pages", MemAttr.ACL_HBM_MEM_P2P_HUGE),
    MemMallocPolicy.HUGE_ONLY_P2P: PageKind("2 MiB P2P pages", MemAttr.ACL_HBM_MEM_P2P_HUGE),
    MemMallocPolicy.NORMAL_ONLY_P2P: PageKind("4 KiB P2P pages", MemAttr.ACL_HBM_MEM_P2P_NORMAL),
    MemMallocPolicy.HUGE1G_ONLY: PageKind("1 GiB pages", MemAttr.ACL_HBM_MEM_HUGE1G),
    MemMallocPolicy.HUGE1G_ONLY_P2P: PageKind("1 GiB P2P pages", MemAttr.ACL_HBM_MEM_P2P_HUGE1G),
}


def page_kind(policy: int) -> PageKind:
    """Return the page class a policy takes.

    Parameters
    ----------
    policy
        A `MemMallocPolicy`, `MemTypeFlag` bits included; an unknown one acts as ``HUGE_FIRST``, as the runtime does.
    """
    return _PAGE_KINDS.get(policy & _POLICY_BITS, _PAGE_KINDS[MemMallocPolicy.HUGE_FIRST])


HUGE_PAGE_BYTES = 2 << 20
GIANT_PAGE_BYTES = 1 << 30

_PHYSICAL_PAGES: dict[tuple[int, bool], PageKind] = {
    (HUGE_PAGE_BYTES, False): PageKind("2 MiB pages", MemAttr.ACL_HBM_MEM_HUGE),
    (GIANT_PAGE_BYTES, False): PageKind("1 GiB pages", MemAttr.ACL_HBM_MEM_HUGE1G),
    (HUGE_PAGE_BYTES, True): PageKind("2 MiB P2P pages", MemAttr.ACL_MEM_P2P_HUGE),
    (GIANT_PAGE_BYTES, True): PageKind("1 GiB P2P pages", MemAttr.ACL_MEM_P2P_HUGE1G),
}


def physical_pages(page_bytes: int, p2p: bool) -> PageKind:
    """Return the page class of physical memory.

    Parameters
    ----------
    page_bytes
        2 MiB or 1 GiB.
    p2p
        Whether other devices reach the pages.

    Raises
    ------
    ValueError
        There are no such pages.
    """
    try:
        return _PHYSICAL_PAGES[page_bytes, p2p]
    except KeyError:
        raise ValueError(
            f"page_bytes is {page_bytes}: give {HUGE_PAGE_BYTES} (2 MiB) or {GIANT_PAGE_BYTES} (1 GiB)"
        ) from None
