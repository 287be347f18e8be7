"""One page of memory that grows: where it is mapped, and how many blocks touch it."""

from acl_shim.api_types import MemHandle
from gevar.memory.physical_page_pool import PhysicalPagePool


class Page:
    """One page of a range.

    Attributes
    ----------
    addr : int
        Its address.
    handle : MemHandle
        The physical page.
    pool : PhysicalPagePool
        Where it came from.
    refs : int
        How many blocks touch it.
    """

    __slots__ = ("addr", "handle", "pool", "refs")

    def __init__(self, addr: int, handle: MemHandle, pool: PhysicalPagePool) -> None:
        self.addr = addr
        self.handle = handle
        self.pool = pool
        self.refs = 0
