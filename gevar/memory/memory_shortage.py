"""What an out-of-memory error says: what was asked, what is free, who holds the most, what to try."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from acl_shim import Device
from acl_shim.codes import MemAttr
from acl_shim.errors import Shortage, one_line, size_text
from gevar.align import GIANT_PAGE_BYTES, HUGE_PAGE_BYTES
from gevar.errors import AclError, OutOfMemoryError
from gevar.options import VARIABLE_USE_1G_HUGE_PAGE

MOST_HOLDERS: Final = 5
"""How many holders a report names."""

NO_TAG: Final = "blocks without a tag"
HUGE_PAGES: Final = "2 MiB pages"
GIANT_PAGES: Final = "1 GiB pages"

_NORMAL_PAGE_BYTES: Final = 4096
_PAGE_CLASSES: Final = (
    ("4 KiB pages", MemAttr.ACL_HBM_MEM_NORMAL, _NORMAL_PAGE_BYTES),
    (HUGE_PAGES, MemAttr.ACL_HBM_MEM_HUGE, HUGE_PAGE_BYTES),
    (GIANT_PAGES, MemAttr.ACL_HBM_MEM_HUGE1G, GIANT_PAGE_BYTES),
)


@dataclass(frozen=True, slots=True)
class PageClassFigures:
    """What a device has of one page class.

    Attributes
    ----------
    name : str
        The class, for example ``2 MiB pages``.
    free_bytes, total_bytes : int
        Free memory and all memory of the class.
    largest_free_bytes : int
        Largest block that fits: pages of a block need not be neighbours, so it is all free whole pages.
    """

    name: str
    free_bytes: int
    total_bytes: int
    largest_free_bytes: int


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds memory.

    Attributes
    ----------
    tag : str
        What the blocks are for.
    size_bytes, count : int
        Bytes and number of the blocks.
    """

    tag: str
    size_bytes: int
    count: int

    @property
    def name(self) -> str:
        """The tag in one line of printable characters."""
        return one_line(self.tag)


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """State of memory at the moment a request did not fit.

    Attributes
    ----------
    requested_bytes : int
        Size asked for.
    device_id : int
        The device.
    where : str
        Memory that was asked, in words.
    free_bytes, largest_free_bytes : int
        Free memory there, and its largest run.
    page_classes : tuple
        `PageClassFigures` of the device.
    holders : tuple
        `Holder`, the largest first.
    advice : tuple
        What to try.
    """

    requested_bytes: int
    device_id: int
    where: str
    free_bytes: int
    largest_free_bytes: int
    page_classes: tuple[PageClassFigures, ...]
    holders: tuple[Holder, ...]
    advice: tuple[str, ...]

    @property
    def fragmentation(self) -> float:
        """Share of the free memory outside its largest run, 0 to 1."""
        return 1 - self.largest_free_bytes / self.free_bytes if self.free_bytes else 0.0

    @property
    def line(self) -> str:
        """The report in one line."""
        held = ", ".join(f"{holder.name} {size_text(holder.size_bytes)}" for holder in self.holders)
        parts = [
            f"{self.where} has {size_text(self.free_bytes)} free, the largest run {size_text(self.largest_free_bytes)}",
            f"most is held by {held}" if held else "",
            f"try: {'; or '.join(self.advice)}" if self.advice else "",
        ]
        return "; ".join(part for part in parts if part)

    @property
    def text(self) -> str:
        """The report for people, in several lines."""
        largest = f"largest run {size_text(self.largest_free_bytes)}, fragmentation {self.fragmentation:.0%}"
        lines = [
            f"out of memory on device {self.device_id}: {size_text(self.requested_bytes)} asked of {self.where}",
            f"  free there: {size_text(self.free_bytes)}, {largest}",
        ]
        lines += [
            f"  {pages.name}: {size_text(pages.free_bytes)} free of {size_text(pages.total_bytes)},"
            f" largest run {size_text(pages.largest_free_bytes)}"
            for pages in self.page_classes
        ]
        lines += [
            f"  held by {holder.tag!r}: {size_text(holder.size_bytes)} in {holder.count} blocks"
            for holder in self.holders
        ]
        return "\n".join(lines + [f"  try: {step}" for step in self.advice])


class MemoryShortageError(OutOfMemoryError):
    """Raised where a request for device memory does not fit, with the state of the memory at that moment.

    Parameters
    ----------
    error
        The refusal.
    report
        The state.

    Attributes
    ----------
    report : MemoryReport
        The state; ``report.text`` is for people.
    largest_free_bytes : int
        Largest run that was free in the memory asked.
    held_on_device : tuple
        `Holder` of each of the variables that hold the most on the device, in whatever memory; empty where none asked.
    """

    def __init__(self, error: OutOfMemoryError, report: MemoryReport) -> None:
        shortage = Shortage(
            report.requested_bytes,
            error.free_bytes,
            error.total_bytes,
            report.device_id,
            error.page_kind or "any pages",
        )
        super().__init__(error.code, error.call, error.arguments, error.text, shortage=shortage)
        self.args = (f"{self.args[0]}; {report.line}",)
        self.report = report
        self.largest_free_bytes = report.largest_free_bytes
        self.held_on_device: tuple[Holder, ...] = ()


def page_class_figures(device: Device) -> tuple[PageClassFigures, ...]:
    """Return what a device has of each page class; classes that the runtime does not tell about are left out."""
    found: list[PageClassFigures] = []
    for name, attr, page_bytes in _PAGE_CLASSES:
        try:
            info = device.mem_info(attr)
        except AclError:
            continue
        largest = info.free_bytes // page_bytes * page_bytes
        found.append(PageClassFigures(name, info.free_bytes, info.total_bytes, largest))
    return tuple(found)


def largest_holders(tagged: Iterable[tuple[str, int]], most: int = MOST_HOLDERS) -> tuple[Holder, ...]:
    """Return who holds the most, from (tag, size in bytes) of every block."""
    sums: dict[str, tuple[int, int]] = {}
    for name, size_bytes in tagged:
        tag = name or NO_TAG
        total, count = sums.get(tag, (0, 0))
        sums[tag] = total + size_bytes, count + 1
    ranked = sorted(sums.items(), key=lambda entry: (-entry[1][0], entry[0]))
    return tuple(Holder(tag, total, count) for tag, (total, count) in ranked[:most])


def advice_for(
    requested_bytes: int,
    page_kind: str | None,
    page_classes: tuple[PageClassFigures, ...],
    holders: tuple[Holder, ...],
    own: Mapping[str, int],
    *,
    names_option: bool = True,
) -> tuple[str, ...]:
    """Return what to try.

    Parameters
    ----------
    requested_bytes
        Size asked for.
    page_kind
        Page class asked for, in words.
    page_classes, holders
        As in `MemoryReport`.
    own
        Figures in bytes of the memory that was asked, where it has them: ``room`` and ``limit`` of its range,
        ``cached`` for what it keeps unused, ``free`` and ``largest`` of its free runs.
    names_option
        Whether another value of the option for 1 GiB pages may help.
    """
    steps: list[str] = []
    limit = own.get("limit")
    if limit is not None and requested_bytes > own.get("room", limit):
        steps.append(f"raise the bound of {size_text(limit)} that this memory was made with")
    if own.get("free", 0) >= requested_bytes > own.get("largest", requested_bytes):
        steps.append("free blocks that are neighbours: the free memory lies in pieces")
    if own.get("cached", 0):
        steps.append(f"free the {size_text(own['cached'])} that are kept unused")
    for pages in page_classes if names_option else ():
        if page_kind == GIANT_PAGES:
            if pages.name == HUGE_PAGES and pages.largest_free_bytes >= requested_bytes:
                steps.append(f"set {VARIABLE_USE_1G_HUGE_PAGE} to 2, so that 2 MiB pages serve too")
        elif pages.name == GIANT_PAGES and pages.largest_free_bytes >= requested_bytes:
            steps.append(f"set {VARIABLE_USE_1G_HUGE_PAGE} to 2: {size_text(pages.free_bytes)} of 1 GiB pages are free")
    if holders:
        steps.append(f"free {holders[0].name}, or put it to sleep")
    return tuple(steps) or ("free memory of other processes, or ask for less",)


def plain_shortage(
    error: OutOfMemoryError, requested_bytes: int, device: Device, held: Iterable[tuple[str, int]]
) -> MemoryShortageError:
    """Return the error of a plain block that does not fit.

    Parameters
    ----------
    error
        The refusal.
    requested_bytes
        Size asked for.
    device
        The device.
    held
        Tag and size in bytes of the blocks that are out.
    """
    classes, holders = page_class_figures(device), largest_holders(held)
    plain = [pages for pages in classes if pages.name != GIANT_PAGES]
    free = sum(pages.free_bytes for pages in plain)
    largest = max((pages.largest_free_bytes for pages in plain), default=0)  # a block has pages of one class
    advice = advice_for(requested_bytes, error.page_kind, classes, holders, {"free": free, "largest": largest})
    where = "plain device memory"
    report = MemoryReport(requested_bytes, device.id, where, free, largest, classes, holders, advice)
    return MemoryShortageError(error, report)
