"""Weights that models share because their bytes are equal, whatever file, model or session they come from.

What is shared is a block as a whole: the weights partition of a model, a slice of a file, a tensor. A block is found by
the slice of a file it was brought from, without reading anything; else by size and the digest of its first bytes, and
then all of its bytes are compared with those that are asked for. It goes with the last model that uses it, whichever
session that belongs to.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from acl_shim import Runtime
from gevar.errors import StateError
from gevar.memory import DeviceMemoryManager
from gevar.memory.per_runtime import PerRuntime
from gevar.session.weight_content import (
    WeightContent,
    content_bytes,
    content_chunks,
    first_difference,
    head_digest,
)
from gevar.types import DevAddr, DeviceId, MemType
from gevar.weights import WeightBlock, WeightSlice

_HBM: Final = MemType.RT_MEMORY_HBM
_ContentKey = tuple[DeviceId, int, bytes]


class EqualBlock(WeightBlock):
    """A block of equal weights.

    Attributes
    ----------
    content_key : tuple
        Device, bytes and digest of the head of what it holds.
    content : region, memory or stream; or None
        The same bytes elsewhere, as long as they are not on the device yet.
    slices : list of WeightSlice
        What was asked for and found here.
    sessions : Counter
        How often each session uses it.
    """

    __slots__ = ("content", "content_key", "sessions", "slices")

    def __init__(
        self, key: WeightSlice, content: WeightContent, content_key: _ContentKey, dev_addr: DevAddr, size_bytes: int
    ) -> None:
        super().__init__(key, content_key[0], dev_addr, size_bytes)
        self.users = 0
        self.content: WeightContent | None = content
        self.content_key = content_key
        self.slices = [key]
        self.sessions: Counter[int] = Counter()


class EqualWeights:
    """The blocks of equal weights of a runtime; one for all sessions.

    Parameters
    ----------
    runtime
        Runtime of the devices.

    Thread safety: all methods, from any thread; `acquire` and `arrived` inside `load`.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._lock = threading.RLock()
        self._is_loading = False
        self._runtime = runtime
        self._memory = DeviceMemoryManager(runtime)
        self._table = threading.Lock()
        self._by_slice: dict[tuple[DeviceId, WeightSlice], EqualBlock] = {}
        self._by_content: dict[_ContentKey, list[EqualBlock]] = {}
        self._refused: list[EqualBlock] = []

    @staticmethod
    def instance(runtime: Runtime) -> "EqualWeights":
        """Return the one that all sessions of a runtime share."""
        return _SHARED.of(runtime)

    @contextmanager
    def load(self) -> Iterator[None]:
        """Be the one load that shares, until all bytes arrived or what was got is given back; others wait.

        Raises
        ------
        StateError
            This thread is in such a load already.
        """
        with self._lock:
            if self._is_loading:
                raise StateError("a load that shares equal weights is under way in this thread: wait for its end")
            self._is_loading = True
            try:
                yield
            finally:
                self._is_loading = False

    def acquire(
        self, key: WeightSlice, content: WeightContent, size_bytes: int, device_id: DeviceId, session_id: int
    ) -> tuple[EqualBlock, bool]:
        """Return a block with these bytes, and whether it is new, so that they are to be brought.

        Parameters
        ----------
        key
            The slice of a file that they are; that file was looked at.
        content
            The bytes; read unless the slice is there already.
        size_bytes
            Bytes that the block must have, at least as many as there are.
        device_id, session_id
            Its device, and the session that uses it.

        Raises
        ------
        LoadError, ModelFileError
            The bytes cannot be read.
        AclError, OutOfMemoryError
            The device refuses memory, or a copy to compare with. Nothing has changed.
        """
        found = self._use(self._fitting(key, size_bytes, device_id), session_id)
        if found is not None:
            return found, False
        content_key = (device_id, content_bytes(content), head_digest(content))
        found = self._equal_block(content_key, content, size_bytes, session_id)
        if found is not None:
            with self._table:
                found.slices.append(key)
                self._by_slice[device_id, key] = found
            return found, False
        purpose = f"equal weights, first of {key.file.path.name}"
        dev_addr = self._memory.malloc_memory(_HBM, purpose, size_bytes, device_id)
        new = EqualBlock(key, content, content_key, dev_addr, size_bytes)
        with self._table:
            new.users, new.sessions[session_id] = 1, 1
            self._by_slice[device_id, key] = new
            self._by_content.setdefault(content_key, []).append(new)
        return new, True

    def _fitting(self, key: WeightSlice, size_bytes: int, device_id: DeviceId) -> EqualBlock | None:
        block = self._by_slice.get((device_id, key))
        return block if block is not None and block.size_bytes >= size_bytes else None

    def _use(self, block: EqualBlock | None, session_id: int) -> EqualBlock | None:
        """Count a user of a block; None where there is none, or it went or was written to meanwhile."""
        with self._table:
            if block is None or block.is_private or not block.users:
                return None
            block.users += 1
            block.sessions[session_id] += 1
            return block

    def _equal_block(
        self, content_key: _ContentKey, content: WeightContent, size_bytes: int, session_id: int
    ) -> EqualBlock | None:
        """Use a block with these bytes; while one is compared it is used, so that it stays and nobody writes to it."""
        with self._table:
            candidates = list(self._by_content.get(content_key, ()))
        for block in candidates:
            if block.size_bytes < size_bytes or self._use(block, session_id) is None:
                continue
            with ExitStack() as stack:
                stack.callback(self.release, block, session_id)
                if self._holds(block, content):
                    stack.pop_all()
                    return block
        return None

    def _holds(self, block: EqualBlock, content: WeightContent) -> bool:
        """Compare bytes with those of a block of the same size and head."""
        if block.content is None:
            device = self._runtime.device(block.device_id)
            return first_difference(content, device, block.dev_addr) is None
        return _same_bytes(content_chunks(block.content), content_chunks(content))

    def arrived(self, block: WeightBlock) -> None:
        """Say that the bytes of a new block are on the device."""
        assert isinstance(block, EqualBlock)
        block.content = None

    def make_private(self, block: WeightBlock) -> None:
        """Share a block with nobody any more, before its user writes to it.

        Raises
        ------
        StateError
            As `WeightBlock.make_private`.
        """
        with self._table:
            block.make_private()

    def release(self, block: EqualBlock, session_id: int, times: int = 1) -> None:
        """Give a block back that `acquire` gave; with its last user its memory goes.

        Raises
        ------
        AclError
            The device refuses the memory; the next release tries again.
        """
        with self._table:
            block.users -= times
            block.sessions[session_id] -= times
            if block.users:
                return
            for key in block.slices:
                if self._by_slice.get((block.device_id, key)) is block:
                    del self._by_slice[block.device_id, key]
            same = self._by_content[block.content_key]
            same.remove(block)
            if not same:
                del self._by_content[block.content_key]
            given_back, self._refused = [*self._refused, block], []
        with ExitStack() as stack:
            for one in given_back:
                stack.callback(self._free, one)

    def _free(self, block: EqualBlock) -> None:
        """Free the memory of a block; where that is refused, the next release tries again."""
        try:
            self._memory.free_memory(_HBM, block.dev_addr, block.device_id)
        except BaseException:
            with self._table:
                self._refused.append(block)
            raise

    def release_session(self, session_id: int) -> None:
        """Give back all that a session uses, when it is closed; raises as `release`, at the end."""
        with self._table:
            blocks = [block for same in self._by_content.values() for block in same if block.sessions[session_id]]
        with ExitStack() as stack:
            for block in blocks:
                stack.callback(self.release, block, session_id, block.sessions[session_id])

    @property
    def device_bytes(self) -> int:
        """Bytes of all blocks."""
        return self._memory.counts.live_bytes


def _same_bytes(first: Iterator[memoryview], second: Iterator[memoryview]) -> bool:
    """Compare two streams of equal length, whatever chunks they come in."""
    one = other = memoryview(b"")
    while True:
        one, other = one or next(first, memoryview(b"")), other or next(second, memoryview(b""))
        size = min(one.nbytes, other.nbytes)
        if not size:
            return one.nbytes == other.nbytes
        if one[:size] != other[:size]:
            return False
        one, other = one[size:], other[size:]


_SHARED: Final = PerRuntime(EqualWeights)
