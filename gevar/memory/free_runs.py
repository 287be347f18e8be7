"""Free runs of addresses: best fit, neighbours merged."""

from sortedcontainers import SortedList


class FreeRuns:
    """Runs of free addresses that do not touch each other.

    Every operation costs O(log n) in the number of runs.

    Thread safety: none; its owner calls under its own lock.
    """

    __slots__ = ("_by_size", "_sizes", "_starts", "total_bytes")

    def __init__(self) -> None:
        self._by_size: SortedList[tuple[int, int]] = SortedList()  # (size, start)
        self._sizes: dict[int, int] = {}  # start -> size
        self._starts: dict[int, int] = {}  # end -> start
        self.total_bytes = 0
        """Bytes of all runs."""

    def __len__(self) -> int:
        return len(self._sizes)

    @property
    def largest_bytes(self) -> int:
        """Bytes of the largest run; 0 where there is none."""
        return self._by_size[-1][0] if self._by_size else 0

    def runs(self) -> list[tuple[int, int]]:
        """Return (start, size) of every run, by start."""
        return sorted(self._sizes.items())

    def add(self, start: int, size_bytes: int, bounds: tuple[int, int] | None = None) -> tuple[int, int]:
        """Add a run, merged with its neighbours.

        Parameters
        ----------
        start, size_bytes
            The run; it touches no free address.
        bounds
            First address and end of the memory that it belongs to, beyond which nothing is merged; None for no bounds.

        Returns
        -------
        tuple
            Start and size of the run that it became.
        """
        end = start + size_bytes
        low, high = (None, None) if bounds is None else bounds
        if start != low and (before := self._starts.get(start)) is not None:
            self.remove(before)
            start = before
        if end != high and (after := self._sizes.get(end)) is not None:
            self.remove(end)
            end += after
        size_bytes = end - start
        self._sizes[start] = size_bytes
        self._starts[end] = start
        self._by_size.add((size_bytes, start))
        self.total_bytes += size_bytes
        return start, size_bytes

    def remove(self, start: int) -> int:
        """Take out the run that starts at an address and return its size.

        Raises
        ------
        KeyError
            No run starts there.
        """
        size_bytes = self._sizes.pop(start)
        del self._starts[start + size_bytes]
        self._by_size.remove((size_bytes, start))
        self.total_bytes -= size_bytes
        return size_bytes

    def take(self, size_bytes: int) -> tuple[int, int] | None:
        """Take out the smallest run that has room, the first of its size; None where there is none."""
        at = self._by_size.bisect_left((size_bytes, 0))
        if at == len(self._by_size):
            return None
        found, start = self._by_size[at]
        self.remove(start)
        return start, found
