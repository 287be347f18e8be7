"""Facts about device memory: figures of a pool, where an address lives, what pages a policy takes."""

from dataclasses import dataclass

from acl_shim.codes import MemAttr, MemLocationType, MemMallocPolicy

_POLICY_BITS = 0xFF  # the bits above are wishes (MemTypeFlag)

_PAGE_KINDS: dict[int, tuple[str, MemAttr]] = {
    MemMallocPolicy.HUGE_FIRST: ("2 MiB pages, else 4 KiB pages", MemAttr.ACL_HBM_MEM),
    MemMallocPolicy.HUGE_ONLY: ("2 MiB pages", MemAttr.ACL_HBM_MEM_HUGE),
    MemMallocPolicy.NORMAL_ONLY: ("4 KiB pages", MemAttr.ACL_HBM_MEM_NORMAL),
    MemMallocPolicy.HUGE_FIRST_P2P: ("2 MiB P2P pages, else 4 KiB P2P pages", MemAttr.ACL_HBM_MEM_P2P_HUGE),
    MemMallocPolicy.HUGE_ONLY_P2P: ("2 MiB P2P pages", MemAttr.ACL_HBM_MEM_P2P_HUGE),
    MemMallocPolicy.NORMAL_ONLY_P2P: ("4 KiB P2P pages", MemAttr.ACL_HBM_MEM_P2P_NORMAL),
    MemMallocPolicy.HUGE1G_ONLY: ("1 GiB pages", MemAttr.ACL_HBM_MEM_HUGE1G),
    MemMallocPolicy.HUGE1G_ONLY_P2P: ("1 GiB P2P pages", MemAttr.ACL_HBM_MEM_P2P_HUGE1G),
}


@dataclass(frozen=True, slots=True)
class MemInfo:
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


def page_kind(policy: int) -> tuple[str, MemAttr]:
    """Return the page class a policy takes, in words, and the pool whose figures tell what is left of it.

    Parameters
    ----------
    policy
        A `MemMallocPolicy`, `MemTypeFlag` bits included; an unknown one acts as ``HUGE_FIRST``, as the runtime does.
    """
    return _PAGE_KINDS.get(policy & _POLICY_BITS, _PAGE_KINDS[MemMallocPolicy.HUGE_FIRST])
