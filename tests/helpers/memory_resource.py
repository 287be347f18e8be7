"""A memory resource over plain numbers, for what is built on resources."""

from dataclasses import dataclass, field

from gevar.errors import AclError, OutOfMemoryError
from gevar.memory.memory_resource import MemoryStatistics, StatisticsCounter, checked_size, unknown_block
from gevar.types import DevAddr, DeviceId


@dataclass
class FakeResource:
    """Hands out addresses up to a capacity; blocks follow each other without a gap."""

    capacity: int = 1 << 50
    device: DeviceId = field(default_factory=lambda: DeviceId(0))
    next_addr: int = 1 << 44
    live: dict[DevAddr, int] = field(default_factory=dict)
    asked: list[tuple[int, str]] = field(default_factory=list)
    refuse_free: int = 0
    counter: StatisticsCounter = field(default_factory=StatisticsCounter)

    @property
    def device_id(self) -> DeviceId:
        return self.device

    @property
    def statistics(self) -> MemoryStatistics:
        return self.counter.statistics()

    def allocate(self, size_bytes: int, tag: str = "") -> DevAddr:
        size = checked_size(size_bytes)
        self.asked.append((size, tag))
        if sum(self.live.values()) + size > self.capacity:
            raise OutOfMemoryError(207001, "FakeResource.allocate", {"size_bytes": size})
        addr, self.next_addr = DevAddr(self.next_addr), self.next_addr + size
        self.live[addr] = size
        self.counter.add(size)
        return addr

    def free(self, dev_addr: DevAddr) -> None:
        if self.refuse_free:
            self.refuse_free -= 1
            raise AclError(507899, "FakeResource.free", {"addr": dev_addr})
        if dev_addr not in self.live:
            raise unknown_block("the fake resource", dev_addr)
        self.counter.remove(self.live.pop(dev_addr))
