"""The careful answers for sizes, logical space and blocks, as `docs/differences.md` describes them."""

from dataclasses import replace

from gevar.types import TensorDesc
from tests.golden.var.careful_blocks import (
    INT64_MAX,
    Block,
    Entry,
    Extern,
    Key,
    Tables,
    slice_of,
    weight_of,
)
from tests.golden.var.ge_pool import ModelManager
from tests.golden.var.ge_state import (
    ALIGN_BYTES,
    GUARD_BYTES,
    HBM,
    INTERNAL_ERROR,
    OPTIONS_INVALID,
    RDMA,
    GeError,
    Sizes,
    Space,
    Surroundings,
    align,
)
from tests.golden.var.values import UINT64, Op


class CarefulSpace(ModelManager):
    """Where variables lie, and what their keys stand for."""

    def __init__(self, around: Surroundings, session_id: int) -> None:
        super().__init__(around, session_id)
        self.pool_key = session_id
        self.tables = Tables()

    def set_all_memory_max_value(self) -> None:
        """Edge 23: a failure changes nothing."""
        self.sizes = settled(self.sizes)

    def set_memory_malloc_size(self, total_bytes: int) -> None:
        graph, var = int(total_bytes * 26 / 32), int(total_bytes * 5 / 32)
        self.sizes = settled(replace(self.sizes, graph_mem_max_size=graph, var_mem_max_size=var))

    def triple(self, name: str, desc: TensorDesc) -> Key:
        """Edge 2: three fields."""
        key_name = name if self.resource is None else self.resource.key_name(name)
        return key_name, int(desc.format), int(desc.dtype)

    def current(self, name: str) -> Entry | None:
        """The entry of a batch key name's current description."""
        assert self.resource is not None
        desc = self.resource.cur_descs.get(name)
        return None if desc is None else self.tables.entries.get((name, int(desc.format), int(desc.dtype)))

    def find_place(self, size: int, mem_type: int) -> tuple[int, int]:
        """Return offset and address of new space; edges 19 and 44 for device memory."""
        if mem_type != HBM:
            return self.pool_place(size, mem_type)
        base, bytes_ = self.sizes.var_mem_logic_base, align(size) + GUARD_BYTES
        addr = base + self.tables.next_offset
        while ends := [end for start, end in self.tables.reserved if start < addr + bytes_ and end > addr]:
            addr = base + -(-(max(ends) - base) // ALIGN_BYTES) * ALIGN_BYTES
        offset = addr - base
        if offset + size > self.sizes.var_mem_max_size or addr + bytes_ > INT64_MAX:
            raise GeError(INTERNAL_ERROR)
        return offset, addr

    def pool_place(self, size: int, mem_type: int) -> tuple[int, int]:
        """Edge 7: host memory has any size from 0."""
        if not self.has_mem_manager:
            raise GeError(INTERNAL_ERROR)
        sources = self.around.sources
        if mem_type == RDMA:
            raw = sources.rdma_pool_malloc(HBM, size, self.device_id)
        else:
            raw = sources.host_pool_malloc(HBM, size)
        return raw, raw

    def take_place(self, raw: int, size: int, mem_type: int, *, is_place_holder: bool) -> None:
        space = self.spaces.setdefault(mem_type, Space())
        bytes_ = align(size) + GUARD_BYTES if mem_type == HBM else size
        space.var_mem_size += bytes_
        if mem_type == HBM:
            self.tables.next_offset = raw + bytes_
            space.place_holder_size += bytes_ if is_place_holder else 0

    def add_block(
        self, key: Key, desc: TensorDesc, addr: int, mem_type: int, op: Op | None, extern: Extern | None, status: int
    ) -> None:
        """Edge 19: data never overlaps."""
        if self.tables.is_taken(addr, desc.size):
            raise GeError(status)
        block = self.tables.blocks[addr] = Block(addr, desc, mem_type, key, extern)
        if mem_type == HBM:
            self.tables.reserved.append((addr, block.reserved_end))
        self.remember_weight(op, block)

    def remember_weight(self, op: Op | None, block: Block) -> None:
        content, piece = weight_of(op), slice_of(op)
        if content is not None:
            self.tables.weights.append((*content, block))
        if piece is not None:
            self.tables.slices.append((piece, block))

    def point(self, key: Key, desc: TensorDesc, block: Block, offset: int, op: Op | None) -> None:
        assert self.resource is not None
        entry, current = self.tables.entries.get(key), self.resource.cur_descs.get(key[0])
        moves = entry is None or entry.block is not block
        if moves:
            self.tables.entries[key] = Entry(desc, block, offset, op)
        if moves or current is None or not current.same_description(desc):
            self.resource.cur_descs[key[0]] = desc

    def offset_of(self, block: Block) -> int:
        return (block.addr - self.sizes.var_mem_logic_base) % UINT64 if block.mem_type == HBM else 0


def settled(sizes: Sizes) -> Sizes:
    """Return the sizes once the usable one is their sum."""
    use = sizes.graph_mem_max_size + sizes.var_mem_max_size
    if sizes.graph_mem_max_size + (32 << 30) >= UINT64 or use >= UINT64:
        raise GeError(INTERNAL_ERROR)
    if use > 256 << 30:
        raise GeError(OPTIONS_INVALID)
    return replace(sizes, use_max_mem_size=use, var_mem_logic_base=128 << 30)
