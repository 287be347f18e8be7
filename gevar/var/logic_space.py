"""Ranges of logical space that are taken, as disjoint intervals in rising order."""

from bisect import bisect_left, bisect_right

from gevar.align import align_up


class LogicSpace:
    """Set of taken logical addresses.

    Attributes
    ----------
    end : int
        First address after every taken range; 0 while none is taken.

    Touching and overlapping ranges become one, so a session in which nothing was restored has one interval.

    Examples
    --------
    >>> space = LogicSpace()
    >>> space.take(512, 2048)
    >>> space.first_free(0, 1024, base=0, align_bytes=512)
    2048
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self.end = 0

    def copy(self) -> "LogicSpace":
        """Return a set of the same addresses."""
        space = LogicSpace()
        space.assign(self)
        return space

    def assign(self, other: "LogicSpace") -> None:
        """Take the addresses of another set in place of the own ones."""
        self._starts, self._ends, self.end = list(other._starts), list(other._ends), other.end

    def take(self, start: int, end: int) -> None:
        """Mark the addresses from `start` up to, not including, `end` as taken."""
        if self._ends and self._ends[-1] == start <= end:  # goes on where the last one ends, as assigned blocks do
            self._ends[-1] = self.end = end
            return
        first = bisect_left(self._ends, start)
        last = bisect_right(self._starts, end)
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]
        self.end = self._ends[-1]

    def holds(self, start: int, end: int) -> bool:
        """Tell whether every address of a range is taken."""
        index = bisect_right(self._starts, start) - 1
        return index >= 0 and end <= self._ends[index]

    def first_free(self, addr: int, size_bytes: int, *, base: int, align_bytes: int) -> int:
        """Return the first address from `addr` on where `size_bytes` fit between taken ranges.

        Where a taken range is in the way, the next candidate is its end, rounded up to a multiple of `align_bytes`
        counted from `base`.
        """
        while True:
            index = bisect_right(self._ends, addr)
            if index == len(self._ends) or self._starts[index] >= addr + size_bytes:
                return addr
            addr = base + align_up(self._ends[index] - base, align_bytes)
