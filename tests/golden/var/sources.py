"""Simulated sources of memory, as the recorded sequences had them, and the list of calls made to them.

Addresses are numbers only. Nothing is used twice; contents start as zero bytes. A source of one kind numbers its
allocations from 0 in each sequence.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.golden.facts import Json

SPACES: dict[str, int] = {
    "device": 1 << 56,
    "expandable": 2 << 56,
    "host_pool": 3 << 56,
    "rdma_pool": 4 << 56,
    "external": 5 << 56,
}
"""First address of each source."""
SPACE_BYTES = 1 << 56
LARGEST_BYTES = 1 << 44
"""Addresses that a larger piece gets, so that absurd sizes do not use up a space."""
GAP_BYTES = 1 << 12
"""Addresses left free behind every allocation, so that one that runs over lands nowhere."""


@dataclass
class Source:
    """Allocations of one kind: their first addresses and sizes in rising order."""

    space: str
    starts: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    @property
    def handed_out_bytes(self) -> int:
        return sum(self.sizes)

    def take(self, size_bytes: int) -> int:
        start = SPACES[self.space]
        if self.starts:
            taken = min(max(self.sizes[-1], 0), LARGEST_BYTES)
            start = self.starts[-1] + -(-taken // GAP_BYTES) * GAP_BYTES + GAP_BYTES
        self.starts.append(start)
        self.sizes.append(size_bytes)
        return start

    def place(self, addr: int) -> dict[str, Json]:
        """Return an address of this space as a result states it."""
        index = bisect_right(self.starts, addr) - 1
        return {"space": self.space, "alloc": index, "off": addr - self.starts[index]}


class Sources:
    """All sources of one sequence, the bytes that were written, and the calls made since `take_events`."""

    def __init__(self) -> None:
        self.device = Source("device")
        self.expandable = Source("expandable")
        self.host_pool = Source("host_pool")
        self.rdma_pool = Source("rdma_pool")
        self.external = Source("external")
        self.device_limit_bytes: int | None = None
        self.written: dict[int, int] = {}
        self._events: list[dict[str, Json]] = []

    def device_malloc(self, memory_type: int, size_bytes: int, device: int) -> int | None:
        addr = _within(self.device, size_bytes, self.device_limit_bytes)
        self._record("device_malloc", self.device, addr, memory_type=memory_type, size=size_bytes, device=device)
        return addr

    def device_free(self, memory_type: int, addr: int, device: int) -> None:
        place = self.place(addr) or {"space": "absolute", "off": addr}
        self._events.append({"call": "device_free", "memory_type": memory_type, "device": device, "addr": place})

    def host_pool_malloc(self, memory_type: int, size_bytes: int) -> int:
        addr = self.host_pool.take(size_bytes)
        self._record("host_pool_malloc", self.host_pool, addr, memory_type=memory_type, size=size_bytes)
        return addr

    def rdma_pool_malloc(self, memory_type: int, size_bytes: int, device: int) -> int:
        addr = self.rdma_pool.take(size_bytes)
        self._record("rdma_pool_malloc", self.rdma_pool, addr, memory_type=memory_type, size=size_bytes, device=device)
        return addr

    def expandable_malloc(self, size_bytes: int, incremental: bool, capacity_bytes: int | None) -> int | None:
        addr = _within(self.expandable, size_bytes, capacity_bytes)
        self._record("expandable_malloc", self.expandable, addr, size=size_bytes, incremental=incremental)
        return addr

    def note(self, call: str, **facts: Json) -> None:
        """Record a call that hands nothing out."""
        self._events.append({"call": call, **facts})

    def external_region(self, size_bytes: int) -> int:
        return self.external.take(size_bytes)

    def write(self, addr: int, data: bytes) -> None:
        self.written.update(enumerate(data, addr))

    def read(self, addr: int, size_bytes: int) -> bytes:
        return bytes(self.written.get(at, 0) for at in range(addr, addr + size_bytes))

    def place(self, addr: int) -> dict[str, Json] | None:
        """Return an address that lies in a source as a result states it; None for any other number."""
        for source in (self.device, self.expandable, self.host_pool, self.rdma_pool, self.external):
            if source.starts and source.starts[0] <= addr < SPACES[source.space] + SPACE_BYTES:
                place = source.place(addr)
                if source is self.external:
                    del place["alloc"]
                return place
        return None

    def take_events(self) -> list[dict[str, Json]]:
        """Return the calls since the last question; frees that follow each other are sorted."""
        events, self._events = self._events, []
        done: list[dict[str, Json]] = []
        frees: list[dict[str, Json]] = []
        for event in [*events, {}]:
            if event.get("call") == "device_free":
                frees.append(event)
                continue
            done += sorted(frees, key=_free_order)
            frees = []
            if event:
                done.append(event)
        return done

    def _record(self, call: str, source: Source, addr: int | None, **facts: Json) -> None:
        self._events.append({"call": call, **facts, "alloc": None if addr is None else len(source.starts) - 1})


def _within(source: Source, size_bytes: int, limit_bytes: int | None) -> int | None:
    if limit_bytes is not None and source.handed_out_bytes + size_bytes > limit_bytes:
        return None
    return source.take(size_bytes)


def _free_order(event: Mapping[str, Any]) -> tuple[int, str, int, int]:
    addr: Mapping[str, Any] = event["addr"]
    return event["device"], addr["space"], addr.get("alloc", -1), addr["off"]
