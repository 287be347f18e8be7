"""Which block already holds a weight: by content for constants, by place in a file for file constants.

A block is a candidate for what it was made to hold, never for what a later registration under the same name says. It
must be at least as large as the tensor that wants to share it; of those that are, the oldest is taken.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarResource::GetReuseAddr.
Differs: edges 11 and 12 of docs/differences.md.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import xxhash

from gevar.types import MemType
from gevar.var.var_block import VarBlock
from gevar.var.var_op import CONSTANTOP, Bytes, VarOp

_COMPARE_BYTES: Final = 256 << 10  # a bytearray compares with any buffer at the speed of memcmp; pieces stay in cache


def bytes_equal(first: memoryview, second: memoryview) -> bool:
    """Tell whether two views of bytes have equal content, without a copy of either as a whole."""
    if first.nbytes != second.nbytes:
        return False
    return all(
        bytearray(first[at : at + _COMPARE_BYTES]) == second[at : at + _COMPARE_BYTES]
        for at in range(0, first.nbytes, _COMPARE_BYTES)
    )


class SharedBlocks:
    """Blocks that hold the same weight, in the order they were made."""

    def __init__(self) -> None:
        self._holders: dict[VarBlock, None] = {}
        self._sizes: list[int] = []  # rising: a block that is not larger than the last would never be taken
        self._blocks: list[VarBlock] = []

    def __contains__(self, block: VarBlock) -> bool:
        return block in self._holders

    def __iter__(self) -> Iterator[VarBlock]:
        return iter(self._holders)

    def add(self, block: VarBlock) -> None:
        """Add a block."""
        self._holders[block] = None
        if not self._sizes or block.size_bytes > self._sizes[-1]:
            self._sizes.append(block.size_bytes)
            self._blocks.append(block)

    def remove_last(self, block: VarBlock) -> None:
        """Take out the block that was added last."""
        del self._holders[block]
        if self._blocks[-1] is block:
            self._blocks.pop()
            self._sizes.pop()

    def fitting(self, size_bytes: int) -> VarBlock | None:
        """Return the oldest block that holds this many bytes."""
        index = bisect_left(self._sizes, size_bytes)
        return self._blocks[index] if index < len(self._blocks) else None


ContentKey = tuple[int, int, bytes]
"""What content is looked up by: length in bytes, element size code, digest."""


@dataclass(slots=True, eq=False)
class Content:
    """One weight, and the blocks that hold it; of a restored one only the key is known, until equal bytes come."""

    value: memoryview | None
    blocks: SharedBlocks = field(default_factory=SharedBlocks)


@dataclass(slots=True, eq=False)
class ConstantProbe:
    """A constant on its way into the manager: its bytes, its digest, and what they were compared with so far.

    Attributes
    ----------
    value : memoryview
        Bytes of the weight.
    key : tuple
        Length in bytes, element size code, digest.
    """

    value: memoryview
    key: ContentKey
    _equal: dict[Content, bool] = field(default_factory=dict)

    def equals(self, content: Content) -> bool:
        """Tell whether the content has these bytes; asked again, the answer is remembered.

        Where the bytes of the content are not known, its key decides.
        """
        known = self._equal.get(content)
        if known is None:
            value = content.value
            known = self._equal[content] = value is None or bytes_equal(self.value, value)
        return known


class ConstantIndex:
    """Blocks by the bytes they hold.

    Parameters
    ----------
    digest
        Function that makes the digest; equal digests are followed by one comparison of the bytes.
    """

    def __init__(self, digest: Callable[[Bytes], bytes] = xxhash.xxh3_128_digest) -> None:
        self._digest = digest
        self._contents: dict[tuple[MemType, ContentKey], list[Content]] = {}

    def probe(self, op: VarOp | None) -> ConstantProbe | None:
        """Return what to look a constant up with; None for an op that never shares by content.

        That is every op but a `Constant` with an output of a known element size and a weight of at least one byte.
        """
        if op is None or op.op_type != CONSTANTOP or op.value is None or op.size_code <= 0:
            return None
        view = memoryview(op.value)
        if not view.nbytes:
            return None
        value = view.cast("B")
        return ConstantProbe(value, (value.nbytes, op.size_code, self._digest(value)))

    def find(self, probe: ConstantProbe, size_bytes: int, mem_type: MemType) -> VarBlock | None:
        """Return the oldest block with these bytes, this capacity and this kind of memory.

        Thread safety: may run beside a writer; a block that is being added may be missed.
        """
        for content in self._contents.get((mem_type, probe.key), ()):
            if probe.equals(content):
                return content.blocks.fitting(size_bytes)
        return None

    def add(self, probe: ConstantProbe, block: VarBlock) -> None:
        """Record that a block holds these bytes. They are kept, not copied."""
        contents = self._contents.setdefault((block.mem_type, probe.key), [])
        content = next((known for known in contents if probe.equals(known)), None)
        if content is None:
            content = Content(probe.value)
            contents.append(content)
        elif content.value is None:
            content.value = probe.value
        content.blocks.add(block)

    def remove_last(self, probe: ConstantProbe, block: VarBlock) -> None:
        """Take out the block that was added last for these bytes."""
        place = (block.mem_type, probe.key)
        content = next(known for known in self._contents[place] if block in known.blocks)
        content.blocks.remove_last(block)
        if not any(content.blocks):
            self._contents[place].remove(content)
        if not self._contents[place]:
            del self._contents[place]

    def add_restored(self, key: ContentKey, block: VarBlock) -> None:
        """Record that a block holds bytes of which only the key is known."""
        contents = self._contents.setdefault((block.mem_type, key), [])
        if not contents:
            contents.append(Content(None))
        contents[0].blocks.add(block)

    def holds(self, probe: ConstantProbe, block: VarBlock) -> bool:
        """Tell whether a block was made to hold these bytes."""
        contents = self._contents.get((block.mem_type, probe.key), ())
        return any(block in content.blocks for content in contents if probe.equals(content))

    def holders(self) -> Iterator[tuple[ContentKey, VarBlock]]:
        """Yield each block with the key of what it holds; blocks of equal content in the order they were made."""
        for (_, key), contents in self._contents.items():
            for content in contents:
                for block in content.blocks:
                    yield key, block


FileSlice = tuple[str, int, int]
"""Path, offset and length in bytes."""


class FileConstantIndex:
    """Blocks by path, offset and length of the file slice they hold."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[MemType, FileSlice], SharedBlocks] = {}

    def find(self, file_slice: FileSlice, size_bytes: int, mem_type: MemType) -> VarBlock | None:
        """Return the oldest block with this slice, this capacity and this kind of memory."""
        blocks = self._blocks.get((mem_type, file_slice))
        return None if blocks is None else blocks.fitting(size_bytes)

    def add(self, file_slice: FileSlice, block: VarBlock) -> None:
        """Record that a block holds this slice."""
        self._blocks.setdefault((block.mem_type, file_slice), SharedBlocks()).add(block)

    def remove_last(self, file_slice: FileSlice, block: VarBlock) -> None:
        """Take out the block that was added last for this slice."""
        blocks = self._blocks[block.mem_type, file_slice]
        blocks.remove_last(block)
        if not any(blocks):
            del self._blocks[block.mem_type, file_slice]

    def holds(self, file_slice: FileSlice, block: VarBlock) -> bool:
        """Tell whether a block was made to hold this slice."""
        return block in self._blocks.get((block.mem_type, file_slice), ())

    def holders(self) -> Iterator[tuple[FileSlice, VarBlock]]:
        """Yield each block with the slice it holds; blocks of one slice in the order they were made."""
        for (_, file_slice), blocks in self._blocks.items():
            for block in blocks:
                yield file_slice, block
