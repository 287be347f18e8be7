"""Blocks of files on their way to a device: many reads and copies in one call, without the interpreter."""

from typing import TYPE_CHECKING, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from acl_shim._acl import ffi
from acl_shim.api_types import DEFAULT_STREAM, BlocksDone, Cell
from acl_shim.copies import CopyCalls, copy_arguments
from acl_shim.errors import Argument
from acl_shim.table import new_cell

if TYPE_CHECKING:
    from acl_shim.pinned import PinnedBuffer
    from acl_shim.stream import Stream

BLOCK_COLUMNS: Final = 3
"""Columns of an array of blocks: first byte in the file, bytes, how many of the copies are of this block."""

COPY_COLUMNS: Final = 3
"""Columns of an array of copies: address on the device, first byte in the block, bytes."""

_NEIGHBOURHOOD_SHIFT: Final = 21  # a piece of 2 MiB is a device's, or the host's
_LAST: Final = np.iinfo(np.uint64).max

_BLOCKS = ffi.typeof("acl_block[]")
_COPIES = ffi.typeof("acl_block_copy[]")
_DONE = ffi.typeof("acl_blocks_done *")


class BlocksMoved(NamedTuple):
    """How far a call that moves blocks came.

    Attributes
    ----------
    blocks : int
        Blocks that are on the device.
    got : int
        Bytes that came of the block after those, where it could not be read.
    os_error : int
        Why no more of it came; 0 at the end of the file.
    read_s, copy_s : float
        Seconds spent reading and copying.
    """

    blocks: int
    got: int
    os_error: int
    read_s: float
    copy_s: float


class StopFlag:
    """Stop calls that move blocks, before their next block. Thread safety: any thread may set it."""

    __slots__ = ("cell",)

    def __init__(self) -> None:
        self.cell: Cell = new_cell("int *")

    def set(self) -> None:
        """Set the flag; it stays so."""
        cast("list[int]", self.cell)[0] = 1


class BlockCopyCalls(CopyCalls):
    """Copies of blocks of files, many in one call."""

    def check_destinations(self, dst: NDArray[np.uint64], size_bytes: NDArray[np.uint64]) -> None:
        """Refuse places that are plain host memory, before many copies to them that do not look.

        Places that lie close to each other, by first or last byte, are looked up once.

        Parameters
        ----------
        dst
            First bytes.
        size_bytes
            Bytes at each of them; 0 is not looked up.

        Raises
        ------
        ValueError
            A place is plain host memory.
        """
        used = np.flatnonzero(size_bytes)
        ends = np.concatenate([dst[used], dst[used] + size_bytes[used] - np.uint64(1)])
        places = ends >> np.uint64(_NEIGHBOURHOOD_SHIFT)
        others = np.flatnonzero(np.diff(places, prepend=places[:1] + np.uint64(1)))  # most are beside the one before
        places = places[others] - places.min(initial=_LAST)
        small = np.uint16 if places.max(initial=0) < 1 << 16 else np.uint64  # which is sorted in a tenth of the time
        _, first = np.unique(places.astype(small), return_index=True)
        for at in others[np.sort(first)].tolist():
            size = int(size_bytes[used[at % len(used)]])
            self.check_direction(int(ends[at]), size, f"from the host to device {self._id}", "destination")

    def memcpy_blocks(
        self, file: int, blocks: NDArray[np.uint64], copies: NDArray[np.uint64], staging: "PinnedBuffer", stop: StopFlag
    ) -> BlocksMoved:
        """Read blocks of a file one after the other into host memory, and copy pieces of each to the device.

        Parameters
        ----------
        file
            Descriptor of an open file.
        blocks
            A row for each block, see `BLOCK_COLUMNS`; C-contiguous.
        copies
            A row for each copy, in the order of their blocks, see `COPY_COLUMNS`; C-contiguous.
        staging
            Host memory for one block at a time. One call may use it at a time.
        stop
            Ends the call early.

        Returns
        -------
        BlocksMoved
            How far it came; fewer blocks than given where one could not be read, the file ends, or `stop` is set.

        Raises
        ------
        ValueError
            An array is not as said; a block is larger than `staging`, a copy ends behind it, or the counts do not add
            up.
        AclError
            The runtime refuses; its arguments name the copy.

        Notes
        -----
        After failure each destination holds old bytes, new bytes or both.
        """
        _check_rows("blocks", blocks)
        _check_rows("copies", copies)
        room, largest = staging.size_bytes, int(blocks[:, 1].max(initial=0))
        if largest > room:
            raise ValueError(f"a block of {largest} B does not fit host memory of {room} B")
        starts, sizes = copies[:, 1], copies[:, 2]
        if any(int(column.max(initial=0)) > room for column in (starts, sizes, starts + sizes)):  # a sum may be wrapped
            raise ValueError(f"a copy ends behind host memory of {room} B: give pieces of their block")
        if (blocks[:, 2] > len(copies)).any() or int(blocks[:, 2].sum()) != len(copies):
            counts = sum(blocks[:, 2].tolist())
            raise ValueError(f"blocks have {counts} copies, but {len(copies)} are given")
        lease, done = self._current.held or self._current.take(), _new_done()
        memory = staging.addr
        with ffi.from_buffer(_BLOCKS, blocks) as rows, ffi.from_buffer(_COPIES, copies) as pieces:
            code = self._runtime.api.move_blocks(
                lease.context, file, memory, rows, len(blocks), pieces, stop.cell, done
            )
        if code:
            self._refuse_in_context(code, "aclrtMemcpy", _refused_copy(copies, done, memory), lease)
        return BlocksMoved(done.blocks, done.got, done.os_error, done.read_ns / 1e9, done.copy_ns / 1e9)

    def memcpy_block(self, copies: NDArray[np.uint64], src: int, stream: "Stream | None" = None) -> None:
        """Copy pieces of host memory to the device, at once or in the order of a stream.

        Parameters
        ----------
        copies
            A row for each copy, see `COPY_COLUMNS`; C-contiguous.
        src
            Address of the host memory, which must be pinned where there is a stream, and stay until it has passed.
        stream
            A stream of the device; None to wait until the bytes are there.

        Raises
        ------
        ValueError
            `copies` is not as said.
        AclError
            The runtime refuses; its arguments name the copy. Those before it are made, or queued.
        StateError
            The stream is closed.
        """
        _check_rows("copies", copies)
        if stream is None:
            lease, handle, call = self._current.held or self._current.take(), DEFAULT_STREAM, "aclrtMemcpy"
        else:
            (lease, handle, _), call = stream.target(), "aclrtMemcpyAsync"
        done = _new_done()
        with ffi.from_buffer(_COPIES, copies) as pieces:
            code = self._runtime.api.copy_block(
                lease.context, src, pieces, len(copies), stream is not None, handle, done
            )
        if code:
            arguments = _refused_copy(copies, done, src)
            if stream is None:
                self._refuse_in_context(code, call, arguments, lease)
            stream.scope.refuse(code, call, arguments, lease)


def _check_rows(name: str, rows: NDArray[np.uint64]) -> None:
    """Refuse what C would read as something else."""
    if rows.dtype != np.uint64 or rows.ndim != 2 or rows.shape[1] != BLOCK_COLUMNS or not rows.flags.c_contiguous:
        text = f"{name} are {rows.dtype} of shape {rows.shape}"
        raise ValueError(f"{text}: give uint64, {BLOCK_COLUMNS} in each row, C-contiguous")


def _new_done() -> BlocksDone:
    return cast(BlocksDone, ffi.new(_DONE))


def _refused_copy(copies: NDArray[np.uint64], done: BlocksDone, memory: int) -> dict[str, Argument]:
    """Return the arguments of the copy that was refused, if one was."""
    if done.copies >= len(copies):
        return {"copies": len(copies)}
    dst, start, size = (int(value) for value in copies[done.copies])
    return {**copy_arguments(dst, size, memory + start, size), "copies": len(copies), "failed": done.copies}
