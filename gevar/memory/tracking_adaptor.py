"""Who holds memory: every live block with its tag, and the calls that led to it on request."""

import sys
import traceback
from dataclasses import dataclass

from gevar.memory.memory_resource import MemoryResource
from gevar.memory.memory_shortage import Holder, largest_holders
from gevar.memory.resource_adaptor import ResourceAdaptor
from gevar.types import DevAddr


@dataclass(frozen=True, slots=True)
class TrackedBlock:
    """One live block.

    Attributes
    ----------
    dev_addr : DevAddr
        First address.
    size_bytes : int
        Size in bytes, as asked for.
    tag : str
        What it is for.
    stack : tuple
        Calls that led to it as text, the last one last; empty where stacks were not asked for.
    """

    dev_addr: DevAddr
    size_bytes: int
    tag: str
    stack: tuple[str, ...] = ()


class TrackingResourceAdaptor(ResourceAdaptor):
    """Remember who holds what.

    Parameters
    ----------
    upstream
        The resource.
    with_stacks
        Whether each block remembers the calls that led to it, which costs some microseconds a call.
    """

    def __init__(self, upstream: MemoryResource, *, with_stacks: bool = False) -> None:
        super().__init__(upstream)
        self._with_stacks = with_stacks
        self._tracked: dict[DevAddr, TrackedBlock] = {}

    def allocate(self, size_bytes: int, tag: str = "") -> DevAddr:
        """Return a block; see `MemoryResource.allocate`."""
        stack = _stack() if self._with_stacks else ()
        dev_addr = super().allocate(size_bytes, tag)
        with self._lock:
            self._tracked[dev_addr] = TrackedBlock(dev_addr, size_bytes, tag, stack)
        return dev_addr

    def free(self, dev_addr: DevAddr) -> None:
        """Take a block back; see `MemoryResource.free`."""
        with self._lock:
            block = self._tracked.pop(dev_addr, None)
        try:
            super().free(dev_addr)
        except BaseException:
            if block is not None:
                with self._lock:
                    self._tracked[dev_addr] = block
            raise

    def blocks(self) -> list[TrackedBlock]:
        """Return the live blocks in the order they were allocated."""
        with self._lock:
            return list(self._tracked.values())

    def holders(self, most: int = 10) -> tuple[Holder, ...]:
        """Return who holds the most, by tag, the largest first."""
        return largest_holders(((block.tag, block.size_bytes) for block in self.blocks()), most)

    def report(self) -> str:
        """Return one line for each live block, and its calls below it."""
        lines: list[str] = []
        for block in self.blocks():
            lines.append(f"{block.dev_addr:#x} {block.size_bytes} B {block.tag!r}")
            lines += (f"    {call}" for call in block.stack)
        return "\n".join(lines)


def _stack() -> tuple[str, ...]:
    """The calls that led here, without this module's."""
    frames = traceback.StackSummary.extract(traceback.walk_stack(sys._getframe(2)), lookup_lines=False)
    return tuple(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
