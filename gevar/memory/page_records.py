"""What lies on each page, for debugging: two blocks never hold one byte, and each is released as it was made.

GE keeps such records when its log is at level info, and looks through all of a page; here a look-up costs O(log n).

Source: GE source, runtime/v1/graph/manager, ExpandableActiveMemoryAllocatorImp.
"""

from collections.abc import Iterable

from sortedcontainers import SortedDict


class PageRecords:
    """Parts of a range that blocks take, by page.

    Thread safety: none; its owner calls under its own lock.
    """

    def __init__(self) -> None:
        self._pages: dict[int, SortedDict[int, int]] = {}  # address of the page -> first offset -> end

    def add(self, page_addrs: Iterable[int], begin: int, end: int) -> None:
        """Record a block on its pages.

        Parameters
        ----------
        page_addrs
            Addresses of the pages.
        begin, end
            First offset of the block in the range, and the one behind its last byte.

        Raises
        ------
        AssertionError
            It overlaps another block.
        """
        for page_addr in page_addrs:
            taken = self._pages.setdefault(page_addr, SortedDict())
            at = taken.bisect_left(begin)
            before = taken.peekitem(at - 1) if at else None
            after = taken.peekitem(at) if at < len(taken) else None
            if (before is not None and before[1] > begin) or (after is not None and after[0] < end):
                neighbours = ", ".join(str(other) for other in (before, after) if other is not None)
                raise AssertionError(f"block {begin}..{end} on page {page_addr:#x} overlaps one of {neighbours}")
            taken[begin] = end

    def remove(self, page_addrs: Iterable[int], begin: int) -> None:
        """Drop the record of a block.

        Raises
        ------
        AssertionError
            There is none.
        """
        for page_addr in page_addrs:
            taken = self._pages.get(page_addr, SortedDict())
            if begin not in taken:
                raise AssertionError(f"no block of page {page_addr:#x} starts at offset {begin}")
            del taken[begin]
            if not taken:
                del self._pages[page_addr]

    @property
    def pages(self) -> int:
        """How many pages hold a block."""
        return len(self._pages)
