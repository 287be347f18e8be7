"""What is said when memory that grows is short or refused."""

from typing import Protocol

from acl_shim import Device
from gevar.errors import AclError, OutOfMemoryError
from gevar.memory.expandable_range import ExpandableFigures
from gevar.memory.huge_page_policy import HugePageMode
from gevar.memory.memory_shortage import (
    MemoryReport,
    MemoryShortageError,
    advice_for,
    largest_holders,
    page_class_figures,
)
from gevar.options import VARIABLE_USE_1G_HUGE_PAGE
from gevar.types import DevAddr


class Reported(Protocol):
    """What a report asks an allocator."""

    @property
    def device(self) -> Device:
        """Its device."""

    @property
    def mode(self) -> HugePageMode:
        """Use of 1 GiB pages."""

    @property
    def max_bytes(self) -> int | None:
        """Bound that was set on its range; None for that of the device."""

    @property
    def figures(self) -> ExpandableFigures:
        """What it has and holds."""

    def blocks(self) -> list[tuple[DevAddr, int, str]]:
        """Return first address, size and tag of every block."""


def explained(error: AclError, allocator: Reported, size_bytes: int) -> AclError:
    """Return the error of a request with what is known about the memory.

    Parameters
    ----------
    error
        The refusal of a step.
    allocator
        Memory that was asked.
    size_bytes
        Size asked for.

    Returns
    -------
    AclError
        A `MemoryShortageError` where memory is short; an error of the same code that names the option where only pages
        of 1 GiB are allowed; else the error itself.
    """
    where = "memory that grows"
    if allocator.mode is HugePageMode.ONLY:
        where += f" of 1 GiB pages only ({VARIABLE_USE_1G_HUGE_PAGE} is 1)"
    if isinstance(error, OutOfMemoryError):
        return MemoryShortageError(error, _report(error, allocator, size_bytes, where))
    if allocator.mode is HugePageMode.ONLY:
        return AclError(error.code, error.call, error.arguments, error.text, facts=f"{where} takes no other pages")
    return error


def _report(error: OutOfMemoryError, allocator: Reported, size_bytes: int, where: str) -> MemoryReport:
    figures, device = allocator.figures, allocator.device
    room = figures.reserved_bytes - figures.used_bytes
    classes = page_class_figures(device)
    holders = largest_holders((tag, size) for _, size, tag in allocator.blocks())
    own = {"free": room + figures.hole_bytes, "largest": max(room, figures.largest_hole_bytes)}
    if allocator.max_bytes is not None:
        own |= {"room": own["largest"], "limit": figures.reserved_bytes}
    may_widen = allocator.mode is not HugePageMode.FIRST
    advice = advice_for(size_bytes, error.page_kind, classes, holders, own, names_option=may_widen)
    return MemoryReport(size_bytes, device.id, where, own["free"], own["largest"], classes, holders, advice)
