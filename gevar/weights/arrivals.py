"""What of an upload is on the device: bytes done, requests that are complete, and who is told of it."""

from collections import deque
from collections.abc import Callable
from typing import Final

import numpy as np

from gevar.weights.load_plan import LoadPlan
from gevar.weights.upload_arrays import Int64Array

OnProgress = Callable[[int, int], None]

_TELL_BLOCKS: Final = 4  # so many between two calls of on_progress


class Arrivals:
    """Count what arrives.

    Parameters
    ----------
    size_bytes
        Bytes of each request.
    block_bytes
        Largest block.
    on_progress
        Called with (bytes done, bytes in all); None to tell nobody.

    Attributes
    ----------
    total, done : int
        Bytes in all, and bytes on the device.

    Thread safety: one thread at a time; the upload holds its lock.
    """

    def __init__(self, size_bytes: Int64Array, block_bytes: int, on_progress: OnProgress | None) -> None:
        self.total, self.done = int(size_bytes.sum()), 0
        self._missing = size_bytes.copy()
        self._complete = deque(np.flatnonzero(size_bytes == 0).tolist())
        self._counted: deque[tuple[Int64Array, Int64Array]] = deque()
        self._on_progress = on_progress
        self._tell_bytes = _TELL_BLOCKS * block_bytes
        self._told = 0

    def count(self, plan: LoadPlan, first: int, end: int) -> None:
        """Count blocks ``first`` to before ``end``."""
        begin, stop = int(plan.first_part[first]), int(plan.first_part[end])
        self.done += int(plan.bytes_before[stop] - plan.bytes_before[begin])
        self._counted.append((plan.part_request[begin:stop], plan.part_bytes[begin:stop]))

    def pop(self) -> int | None:
        """Return the number of a request whose bytes are there, each once; None where none has come since."""
        while not self._complete and self._counted:
            request, size = self._counted.popleft()
            np.subtract.at(self._missing, request, size)
            self._complete.extend(np.unique(request[self._missing[request] == 0]).tolist())
        return self._complete.popleft() if self._complete else None

    def tell(self) -> None:
        """Tell the progress where enough has come since the last time; raises what `on_progress` raises."""
        is_due = self.done == self.total or self.done - self._told >= self._tell_bytes
        if is_due and self._on_progress:
            self._told = self.done
            self._on_progress(self.done, self.total)
