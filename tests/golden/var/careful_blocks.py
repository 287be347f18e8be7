"""Tables of a careful manager: what keys stand for, and blocks of logical space."""

from dataclasses import dataclass, field

from gevar.types import TensorDesc
from tests.golden.var.ge_state import GUARD_BYTES, HOST, RDMA, GeError, align
from tests.golden.var.ge_variables import place_holder_addr, size_code
from tests.golden.var.values import Op

INT64_MAX = (1 << 63) - 1
POOL_TYPES = (RDMA, HOST)
Key = tuple[str, int, int]
"""Name, format and data type."""
Extern = tuple[int, int, bool]
"""Memory of a place holder: address, bytes, whether it belongs to this process."""


@dataclass(eq=False)
class Block:
    """A piece of logical space."""

    addr: int
    desc: TensorDesc
    mem_type: int
    key: Key
    extern: Extern | None = None

    @property
    def size(self) -> int:
        return self.desc.size

    @property
    def reserved_end(self) -> int:
        return self.addr + align(self.size) + GUARD_BYTES


@dataclass(eq=False)
class Entry:
    """What a key stands for."""

    desc: TensorDesc
    block: Block
    offset: int
    op: Op | None


@dataclass
class Tables:
    """Variables of a careful manager."""

    entries: dict[Key, Entry] = field(default_factory=dict)
    blocks: dict[int, Block] = field(default_factory=dict)
    reserved: list[tuple[int, int]] = field(default_factory=list)
    pool_blocks: dict[int, Block] = field(default_factory=dict)
    next_offset: int = 0
    weights: list[tuple[bytes, int, Block]] = field(default_factory=list)
    slices: list[tuple[tuple[str, int, int], Block]] = field(default_factory=list)

    def is_taken(self, addr: int, size: int) -> bool:
        """Whether data at an address would overlap that of a block."""
        return any(
            other.addr <= addr < max(other.addr + other.size, other.addr + 1) or addr <= other.addr < addr + size
            for other in self.blocks.values()
        )


def checked_place_holder(op: Op | None, status: int) -> Extern | None:
    """Edge 10: the attributes are checked before anything is taken; None for any other operator."""
    if op is None or op.op_type != "ConstPlaceHolder":
        return None
    try:
        addr = place_holder_addr(op)
    except GeError as error:
        raise GeError(status) from error
    return addr, int_value(op.attrs["size"]), True


def weight_of(op: Op | None) -> tuple[bytes, int] | None:
    """Bytes and element size of a constant that can share by content; only a `Constant` can."""
    if op is None or op.op_type != "Constant" or not op.weight or size_code(op) <= 0:
        return None
    return op.weight, size_code(op)


def slice_of(op: Op | None) -> tuple[str, int, int] | None:
    """Path, offset and length of a file constant with a location."""
    if op is None or op.op_type != "FileConstant" or not op.attrs.get("location"):
        return None
    path, offset, length = op.attrs["location"], op.attrs.get("offset", 0), op.attrs.get("length", 0)
    return str(path), int_value(offset), int_value(length)


def int_value(value: object) -> int:
    """Return the value of an integer attribute."""
    assert isinstance(value, int)
    return value
