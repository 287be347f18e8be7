"""The careful answers for device memory, as `docs/differences.md` describes them, in plain tables."""

from dataclasses import dataclass, field

from gevar.proto.tensor_descriptor import tensor_desc_from_proto
from gevar.types import TensorDesc
from tests.golden.var.careful_blocks import POOL_TYPES, Block, Extern, Key, Tables
from tests.golden.var.careful_variables import CarefulVariables
from tests.golden.var.ge_memory import HUGE_PAGE_OPTION
from tests.golden.var.ge_state import (
    ALIGN_BYTES,
    FAILED,
    GUARD_BYTES,
    HBM,
    OTHER_VERSION,
    PARAM_INVALID,
    RDMA,
    Expandable,
    GeError,
    Surroundings,
    align,
)
from tests.golden.var.values import Op


@dataclass
class Piece:
    """Device memory of a block; `is_plain` tells whether it is freed by itself."""

    dev_addr: int
    size_bytes: int
    mem_type: int
    is_plain: bool


@dataclass
class Region:
    """External memory of one device, and the blocks whose initial value it has."""

    start: int
    size_bytes: int
    filled: set[int] = field(default_factory=set)


@dataclass
class Device:
    """What a careful manager has on one device; only the last expandable allocator may be usable."""

    pieces: dict[int, Piece] = field(default_factory=dict)
    loaded: set[int] = field(default_factory=set)
    ready: set[Key] = field(default_factory=set)
    expandables: list[Expandable] = field(default_factory=list)
    is_usable: bool = False
    region: Region | None = None


class CarefulMemory(CarefulVariables):
    """A manager that gives GE's answers but at the sharp edges."""

    def __init__(self, around: Surroundings, session_id: int) -> None:
        super().__init__(around, session_id)
        self.on: dict[int, Device] = {}

    def device(self, device: int) -> Device:
        return self.on.setdefault(device, Device())

    def get_var_malloc_size(self, desc: TensorDesc) -> int:
        """Edge 44: a negative size is a wrong argument."""
        if desc.size < 0:
            raise GeError(PARAM_INVALID)
        return super().get_var_malloc_size(desc)

    def get_var_malloc_mem_size(self) -> int:
        return sum(piece.size_bytes for device in self.on.values() for piece in device.pieces.values())

    def set_external_var(self, size_bytes: int | None) -> None:
        """Edge 13: a region belongs to a device; here to device 0."""
        region = None
        if size_bytes is not None:
            region = Region(self.around.sources.external_region(size_bytes), size_bytes)
        self.device(0).region = region

    def keep_expandable(self, expandable: Expandable | None) -> None:
        """Edge 41: an allocator belongs to a device; here to device 0."""
        device = self.device(0)
        if expandable is None or device.is_usable:
            return
        self.around.sources.note("expandable_set_reuse", value=False)
        self.around.sources.note("expandable_set_share_phy_allocator", value=False)
        device.expandables.append(expandable)
        device.is_usable = True

    def memory_addr(self, addr: int, mem_type: int, device: int) -> int | None:
        if not self.has_mem_manager:
            return None
        block = None if self.resource is None else self.block_of(addr)
        if mem_type == RDMA or (block is not None and block.mem_type in POOL_TYPES):
            return addr
        if block is not None and block.extern is not None:
            return in_place_holder(block.extern, addr - block.addr)
        region = self.device(device).region
        if region is not None and mem_type == HBM:
            return self.in_region(region, block, addr)
        if block is None:
            return None
        piece = self.device(device).pieces.get(block.addr) or self.obtain(block, mem_type, device)
        return None if piece is None else piece.dev_addr + ALIGN_BYTES + addr - block.addr

    def block_of(self, addr: int) -> Block | None:
        """The block that starts at an address, or whose data goes on there."""
        blocks = self.tables.blocks
        inside = (block for block in blocks.values() if block.addr < addr < block.addr + block.size)
        return blocks.get(addr) or next(inside, None)

    def needed_bytes(self) -> int:
        """Distance from the logic base to the end of the last variable whose memory is the manager's."""
        ends = [b.reserved_end for b in self.tables.blocks.values() if b.mem_type == HBM and b.extern is None]
        return max(ends, default=0) - self.sizes.var_mem_logic_base

    def in_region(self, region: Region, block: Block | None, addr: int) -> int | None:
        """Edge 13: the region reaches the end of all variables; initial values are laid down once."""
        base = self.sizes.var_mem_logic_base
        if region.size_bytes < self.needed_bytes() or not 0 <= addr - base < region.size_bytes:
            return None
        if block is not None:
            if block.addr < base:
                return None
            data = initial_bytes(block.desc)
            if data is None:
                return None
            if block.addr not in region.filled:
                region.filled.add(block.addr)
                self.around.sources.write(region.start + block.addr - base, data)
        return region.start + addr - base

    def obtain(self, block: Block, mem_type: int, device: int) -> Piece | None:
        """Edge 17: the initial value is checked first and laid down at the start of the data."""
        data, size_bytes = initial_bytes(block.desc), align(block.size) + GUARD_BYTES
        if data is None:
            return None
        piece = self.grow(device, size_bytes, mem_type) or self.plain(device, size_bytes, mem_type)
        if piece is not None:
            self.around.sources.write(piece.dev_addr + ALIGN_BYTES, data)
            self.device(device).pieces[block.addr] = piece
        return piece

    @property
    def huge_page_only(self) -> bool:
        return self.around.options.get(HUGE_PAGE_OPTION) == "1"

    def grow(self, number: int, size_bytes: int, mem_type: int) -> Piece | None:
        """Edges 16 and 41: memory that grows is asked while it is usable, on its own device."""
        device = self.device(number)
        if not device.is_usable:
            return None
        capacity = device.expandables[-1].capacity_bytes
        dev_addr = self.around.sources.expandable_malloc(size_bytes, True, capacity)
        if dev_addr is None:
            device.is_usable = self.huge_page_only
            return None
        return Piece(dev_addr, size_bytes, mem_type, is_plain=False)

    def plain(self, number: int, size_bytes: int, mem_type: int) -> Piece | None:
        if self.huge_page_only:
            return None
        dev_addr = self.around.sources.device_malloc(mem_type, size_bytes, number)
        return None if dev_addr is None else Piece(dev_addr, size_bytes, mem_type, is_plain=True)

    def free_var_memory(self) -> None:
        if not self.has_mem_manager:
            raise GeError(FAILED)
        if self.resource is None:  # as in GE, memory that grows stays in use
            for device in self.on.values():
                for _ in device.expandables:
                    self.around.sources.note("expandable_free_all")
            return
        self.give_back()

    def give_back(self) -> None:
        """Edges 16 and 18: every piece to its owner, as what it was; states go with the memory."""
        sources = self.around.sources
        for number, device in self.on.items():
            for piece in device.pieces.values():
                if piece.is_plain:
                    sources.device_free(piece.mem_type, piece.dev_addr, number)
        for device in self.on.values():
            for _ in device.expandables:
                sources.note("expandable_free_all")
            device.pieces, device.expandables, device.is_usable = {}, [], False
            device.loaded, device.ready = set(), set()

    def destroy(self) -> None:
        """Edge 4: the variables are forgotten; memory is given back whether or not there is a memory manager."""
        self.resource = None
        self.tables, self.spaces = Tables(), {}
        self.version, self.device_id, self.session_id = OTHER_VERSION, 0, 0
        for device in self.on.values():
            if device.region is not None:
                device.region.filled = set()
        self.give_back()

    def check_and_set_var_loaded(self, op: Op, device: int) -> bool:
        """Edge 22: only known addresses are recorded, and names do not count."""
        if op.load_addr is None or not self.is_var_addr(op.load_addr):
            return False
        loaded = self.device(device).loaded
        if op.load_addr in loaded:
            return True
        loaded.add(op.load_addr)
        return False

    def set_var_is_ready(self, name: str, desc: TensorDesc, device: int) -> None:
        if self.resource is not None:
            self.device(device).ready.add(self.triple(name, desc))

    def is_var_ready(self, name: str, desc: TensorDesc, device: int) -> bool:
        return self.resource is not None and self.triple(name, desc) in self.device(device).ready

    def rename_ready(self, old: Key, new: Key) -> None:
        for device in self.on.values():
            if old in device.ready:
                device.ready = device.ready - {old} | {new}


def in_place_holder(extern: Extern, inner: int) -> int | None:
    """Edges 15 and 24: the inner offset counts; memory of another process is never given out."""
    start, size_bytes, is_live = extern
    return start + inner if is_live and (inner == 0 or inner < size_bytes) else None


def initial_bytes(desc: TensorDesc) -> bytes | None:
    """Return what a variable starts with, or None where the value does not fit it."""
    value = desc.init_value
    if value is None:
        return b""
    fits = tensor_desc_from_proto(value.desc).same_description(desc) and len(value.data) <= desc.size
    return value.data if fits else None
