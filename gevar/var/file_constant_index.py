"""Which block already holds a file constant: by its place in a file.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarResource::GetReuseAddr.
Differs: edge 12 of docs/differences.md.
"""

from collections.abc import Iterator

from gevar.types import MemType
from gevar.var.shared_blocks import SharedBlocks
from gevar.var.var_block import VarBlock

FileSlice = tuple[str, int, int]
"""Path, offset and length in bytes."""


class FileConstantIndex:
    """Blocks by path, offset and length of the file slice they hold."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[MemType, FileSlice], SharedBlocks] = {}

    def copy(self) -> "FileConstantIndex":
        """Return an index of the same blocks."""
        copied = FileConstantIndex()
        for place, blocks in self._blocks.items():
            copied._blocks[place] = SharedBlocks(blocks.first)
            blocks.copy_to(copied._blocks[place])
        return copied

    def find(self, file_slice: FileSlice, size_bytes: int, mem_type: MemType) -> VarBlock | None:
        """Return the oldest block with this slice, this capacity and this kind of memory."""
        blocks = self._blocks.get((mem_type, file_slice))
        return None if blocks is None else blocks.fitting(size_bytes)

    def add(self, file_slice: FileSlice, block: VarBlock) -> None:
        """Record that a block holds this slice."""
        known = self._blocks.get((block.mem_type, file_slice))
        if known is None:
            self._blocks[block.mem_type, file_slice] = SharedBlocks(block)
        else:
            known.add(block)

    def remove_last(self, file_slice: FileSlice, block: VarBlock) -> None:
        """Take out the block that was added last for this slice."""
        if not self._blocks[block.mem_type, file_slice].remove_last(block):
            del self._blocks[block.mem_type, file_slice]

    def holds(self, file_slice: FileSlice, block: VarBlock) -> bool:
        """Tell whether a block was made to hold this slice."""
        blocks = self._blocks.get((block.mem_type, file_slice))
        return blocks is not None and block in blocks

    def holders(self) -> Iterator[tuple[FileSlice, VarBlock]]:
        """Yield each block with the slice it holds; blocks of one slice in the order they were made."""
        for (_, file_slice), blocks in self._blocks.items():
            for block in blocks:
                yield file_slice, block
