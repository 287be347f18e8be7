"""Staging: pinned host memory between a file and devices, and the copies out of it.

A slot is one buffer with a stream for each device it has copied to. A reader with one slot waits for each copy; with
more slots the copies are queued, and a slot is waited for when it is its turn again.
"""

import os
from contextlib import ExitStack

from acl_shim import Device, Stream
from acl_shim.block_copies import BlocksMoved, StopFlag
from gevar.errors import LoadError
from gevar.weights.file_reader import PAGE_BYTES, FileReader, os_reason
from gevar.weights.upload_arrays import UInt64Array


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

    def fill(self, file: FileReader, path: str, offset: int, size_bytes: int) -> None:
        """Read a block.

        Raises
        ------
        LoadError
            The file cannot be read, ends early, or its reader tells of bytes that there is no room for; names the
            block, and how many of its bytes came.
        """
        shift = offset % file.align_bytes
        wanted = shift + size_bytes
        room = -(-wanted // file.align_bytes) * file.align_bytes
        got = 0

        def failed(cause: int | str | OSError) -> LoadError:
            return short_read(path, offset, size_bytes, got - shift, cause)

        self._content = self._first + shift
        with self._buffer.view[self._first : self._first + room] as window:
            while got < wanted:
                begin = got - got % file.align_bytes
                try:
                    with window[begin:] as rest:
                        step = file.read_into(offset - shift + begin, rest)
                except OSError as error:
                    raise failed(error) from error
                if not 0 <= step <= room - begin:
                    raise failed(f"its reader says that {step} B came where there is room for {room - begin} B")
                if begin + step <= got:
                    raise failed(0)
                got = begin + step

    def bytes_at(self, start: int, size_bytes: int) -> memoryview:
        """Return bytes of the block; release them before the slot is filled again."""
        return self._buffer.view[self._content + start : self._content + start + size_bytes]

    def copy(self, device: Device, copies: UInt64Array) -> None:
        """Copy pieces of the block to addresses of a device, or queue that.

        Raises
        ------
        AclError
            The runtime refuses.
        """
        stream = self._stream(device) if self._is_queued else None
        device.memcpy_block(copies, self._buffer.addr + self._content, stream)

    def move(
        self, device: Device, descriptor: int, blocks: UInt64Array, copies: UInt64Array, stop: StopFlag
    ) -> BlocksMoved:
        """Bring blocks of a file to a device, one after the other, in one call and at once.

        Raises
        ------
        AclError
            The runtime refuses.
        """
        return device.memcpy_blocks(descriptor, blocks, copies, self._buffer, stop)

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


def short_read(path: str, offset: int, wanted: int, got: int, cause: int | str | OSError) -> LoadError:
    """Return the error of a block that did not come whole, by a number of the system; 0 stands for the end."""
    if isinstance(cause, OSError):
        cause = os_reason(cause)
    elif isinstance(cause, int):
        cause = os.strerror(cause) if cause else "the file ends here"
    return LoadError(path, offset, wanted, min(max(got, 0), wanted), cause)
