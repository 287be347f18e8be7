"""Staging: pinned host memory between a file and devices, and the copies out of it.

A slot is one buffer with a stream for each device it has copied to. A reader with one slot waits for each copy; with
more slots the copies are queued, and a slot is waited for when it is its turn again.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

from acl_shim import BatchCopy, Device, Stream
from acl_shim.codes import MemcpyKind
from gevar.errors import LoadError
from gevar.weights.file_reader import PAGE_BYTES, FileReader
from gevar.weights.load_plan import Block, Copy

_TO_DEVICE: Final = MemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE


class StagingSlot:
    """One buffer and its streams; the stack gives them back, the streams first, which waits for their copies.

    Parameters
    ----------
    device
        Device the memory is pinned for.
    block_bytes
        Largest block.
    is_queued
        Whether copies are queued, not waited for.
    stack
        Ends the slot.

    Raises
    ------
    AclError
        The runtime refuses the memory.

    Thread safety: one thread at a time.
    """

    def __init__(self, device: Device, block_bytes: int, is_queued: bool, stack: ExitStack) -> None:
        # Two pages more, so that whole pages around a block fit, at a whole page of memory.
        self._buffer = stack.enter_context(device.malloc_host(block_bytes + 3 * PAGE_BYTES))
        self._stack = stack
        self._is_queued = is_queued
        self._streams: dict[int, Stream] = {}
        self._first = -self._buffer.addr % PAGE_BYTES
        self._content = self._first

    def fill(self, file: FileReader, path: str, block: Block) -> None:
        """Read a block.

        Raises
        ------
        LoadError
            The file cannot be read, or ends early; names the block, and how many of its bytes came.
        """
        shift = block.offset % file.align_bytes
        wanted = shift + block.size_bytes
        room = -(-wanted // file.align_bytes) * file.align_bytes
        got = 0
        self._content = self._first + shift
        with self._buffer.view[self._first : self._first + room] as window:
            while got < wanted:
                begin = got - got % file.align_bytes
                try:
                    with window[begin:] as rest:
                        step = file.read_into(block.offset - shift + begin, rest)
                except OSError as error:
                    raise _short(path, block, got - shift, error.strerror or str(error)) from error
                if begin + step <= got:
                    raise _short(path, block, got - shift, "the file ends here")
                got = begin + step

    def bytes_at(self, start: int, size_bytes: int) -> memoryview:
        """Return bytes of the block; release them before the slot is filled again."""
        return self._buffer.view[self._content + start : self._content + start + size_bytes]

    def copy(self, device: Device, copies: Sequence[Copy]) -> None:
        """Copy pieces of the block to addresses of a device, or queue that.

        Raises
        ------
        AclError
            The runtime refuses.
        """
        base = self._buffer.addr + self._content
        if self._is_queued:
            stream = self._stream(device)
            for _, start, size, dev_addr in copies:
                stream.memcpy_async(dev_addr, size, base + start, size, _TO_DEVICE)
        elif len(copies) == 1 or not device.runtime.supports("aclrtMemcpyBatch"):
            for _, start, size, dev_addr in copies:
                device.memcpy(dev_addr, size, base + start, size, _TO_DEVICE)
        else:
            batch = [BatchCopy(dev_addr, size, base + start, size) for _, start, size, dev_addr in copies]
            device.memcpy_batch(batch, _TO_DEVICE)

    def move(self, device: Device, descriptor: int, path: str, offset: int, size_bytes: int, dev_addr: int) -> None:
        """Bring bytes of a file to one address, block by block, in one call and at once.

        Raises
        ------
        LoadError
            As `fill`.
        AclError
            The runtime refuses.
        """
        block = Block(offset, size_bytes, [], [])
        try:
            got = device.memcpy_from_file(dev_addr, descriptor, offset, size_bytes, self._buffer)
        except OSError as error:
            raise _short(path, block, 0, error.strerror or str(error)) from error
        if got < size_bytes:
            raise _short(path, block, got, "the file ends here")

    def _stream(self, device: Device) -> Stream:
        if device.id not in self._streams:
            self._streams[device.id] = self._stack.enter_context(device.create_stream())
        return self._streams[device.id]

    def wait(self) -> None:
        """Wait until the copies that are queued are made.

        Raises
        ------
        AclError
            A copy failed.
        """
        for stream in self._streams.values():
            stream.synchronize()


def _short(path: str, block: Block, got: int, reason: str) -> LoadError:
    return LoadError(path, block.offset, block.size_bytes, min(max(got, 0), block.size_bytes), reason)
