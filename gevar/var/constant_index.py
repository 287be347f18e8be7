"""Which block already holds a constant, by content.

A block is a candidate for what it was made to hold, never for what a later registration under the same name says.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarResource::GetReuseAddr.
Differs: edges 11 and 12 of docs/differences.md.
"""

from collections.abc import Callable, Iterator
from typing import Final, cast

import xxhash

from gevar.types import MemType
from gevar.var.shared_blocks import NO_BLOCKS, SharedBlocks
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


def _view(op: VarOp) -> memoryview:
    """The bytes of a weight. A view is larger than all else that is kept of a small one, so none is kept."""
    view = memoryview(b"" if op.value is None else op.value)
    if view.format == "B" and view.ndim == 1:
        return view
    return view.cast("B") if view.nbytes else memoryview(b"")


ContentKey = tuple[int, int, bytes]
"""What content is looked up by: length in bytes, element size code, digest."""


class Content(SharedBlocks):
    """One weight, and the blocks of one kind of memory that hold it.

    Attributes
    ----------
    op : VarOp or None
        Node that has the weight; None for a restored one, of which only the key is known until equal bytes come.
    following : Content or None
        Another weight with the same key, or the same one in another kind of memory.
    """

    __slots__ = ("following", "op")

    def __init__(self, first: VarBlock, op: VarOp | None) -> None:
        self.first = first
        self._others = None
        self._rising = NO_BLOCKS
        self.op = op
        self.following: Content | None = None

    def copy(self) -> "Content":
        """Return the same content and those that follow, apart from these."""
        first = last = Content(self.first, self.op)
        self.copy_to(first)
        following = self.following
        while following is not None:
            last.following = Content(following.first, following.op)
            last = last.following
            following.copy_to(last)
            following = following.following
        return first


class ConstantProbe:
    """A constant on its way into the manager: its bytes, its digest, and what they were compared with so far.

    Attributes
    ----------
    op : VarOp
        Node that has the weight.
    key : tuple
        Length in bytes, element size code, digest.
    """

    __slots__ = ("_equal", "key", "op")

    def __init__(self, op: VarOp, key: ContentKey) -> None:
        self.op = op
        self.key = key
        self._equal: dict[Content, bool] | None = None

    def equals(self, content: Content) -> bool:
        """Tell whether the content has these bytes; asked again, the answer is remembered.

        Where the bytes of the content are not known, its key decides.
        """
        if self._equal is None:
            self._equal = {}
        known = self._equal.get(content)
        if known is None:
            known = self._equal[content] = content.op is None or bytes_equal(_view(self.op), _view(content.op))
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
        self._contents: dict[ContentKey, Content] = {}

    def copy(self) -> "ConstantIndex":
        """Return an index of the same blocks."""
        copied = ConstantIndex(self._digest)
        copied._contents = {key: content.copy() for key, content in self._contents.items()}
        return copied

    def probe(self, op: VarOp | None) -> ConstantProbe | None:
        """Return what to look a constant up with; None for an op that never shares by content.

        That is every op but a `Constant` with an output of a known element size and a weight of at least one byte.
        """
        if op is None or op.op_type != CONSTANTOP or op.value is None:
            return None
        size_code, value = op.size_code, _view(op)
        if size_code <= 0 or not value:
            return None
        return ConstantProbe(op, (len(value), size_code, self._digest(value)))

    def find(self, probe: ConstantProbe, size_bytes: int, mem_type: MemType) -> VarBlock | None:
        """Return the oldest block with these bytes, this capacity and this kind of memory.

        Thread safety: may run beside a writer; a block that is being added may be missed.
        """
        if probe.key not in self._contents:
            return None
        content = self._content(probe, mem_type)
        return None if content is None else content.fitting(size_bytes)

    def _content(self, probe: ConstantProbe, mem_type: MemType) -> Content | None:
        """The content with these bytes in a kind of memory."""
        content = self._contents.get(probe.key)
        while content is not None and not (content.first.mem_type == mem_type and probe.equals(content)):
            content = content.following
        return content

    def add(self, probe: ConstantProbe, block: VarBlock) -> None:
        """Record that a block holds these bytes. They are kept, not copied."""
        if probe.key not in self._contents:
            self._contents[probe.key] = Content(block, probe.op)
            return
        content = self._content(probe, block.mem_type)
        if content is None:
            self._append(probe.key, Content(block, probe.op))
            return
        if content.op is None:
            content.op = probe.op
        content.add(block)

    def _append(self, key: ContentKey, content: Content) -> None:
        """Add a content behind those of the same key."""
        last = self._contents.setdefault(key, content)
        while last.following is not None:
            last = last.following
        if last is not content:
            last.following = content

    def remove_last(self, probe: ConstantProbe, block: VarBlock) -> None:
        """Take out the block that was added last for these bytes."""
        before, content = None, self._contents[probe.key]
        while block not in content:
            before, content = content, cast("Content", content.following)
        if content.remove_last(block):
            return
        if before is not None:
            before.following = content.following
        elif content.following is not None:
            self._contents[probe.key] = content.following
        else:
            del self._contents[probe.key]

    def add_restored(self, key: ContentKey, block: VarBlock) -> None:
        """Record that a block holds bytes of which only the key is known."""
        content = self._contents.get(key)
        while content is not None and content.first.mem_type != block.mem_type:
            content = content.following
        if content is None:
            self._append(key, Content(block, None))
        else:
            content.add(block)

    def holds(self, probe: ConstantProbe, block: VarBlock) -> bool:
        """Tell whether a block was made to hold these bytes."""
        content = self._content(probe, block.mem_type)
        return content is not None and block in content

    def holders(self) -> Iterator[tuple[ContentKey, VarBlock]]:
        """Yield each block with the key of what it holds; blocks of equal content in the order they were made."""
        for key, first in self._contents.items():
            content: Content | None = first
            while content is not None:
                for block in content:
                    yield key, block
                content = content.following
