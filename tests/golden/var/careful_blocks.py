"""Tables of a careful manager: what keys stand for, and blocks of logical space."""

from dataclasses import dataclass, field

from gevar.types import DataType, MemType, TensorDesc
from gevar.types.data_type import element_size_code
from tests.golden.var.ge_state import GUARD_BYTES, HOST, RDMA, RESERVED, GeError, align
from tests.golden.var.ge_variables import place_holder_addr, size_code, tensor_bytes
from tests.golden.var.values import UINT64, Op, UnknownForm

INT64_MAX = (1 << 63) - 1
POOL_TYPES = (RDMA, HOST)
KINDS = frozenset(int(kind) for kind in MemType)
USABLE_KINDS = KINDS - {RESERVED}
TEXTS = (DataType.DT_STRING, DataType.DT_STRING_REF)
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
    if is_unsound(op):
        raise GeError(status)
    return addr, int_value(op.attrs["size"]), True


def is_unsound(op: Op | None) -> bool:
    """Whether an operator is a place holder that GE takes, of no known size, or whose memory ends behind 64 bits."""
    if op is None or op.op_type != "ConstPlaceHolder":
        return False
    shape, dtype, size = op.attrs.get("storage_shape"), op.attrs.get("dtype"), op.attrs.get("size")
    if not isinstance(shape, tuple) or not isinstance(dtype, DataType) or not isinstance(size, int):
        return False
    if not isinstance(op.attrs.get("addr"), int):
        return False
    if next((dim for dim in shape if dim <= 0), 0) < 0 or int_value(op.attrs["addr"]) % UINT64 + size >= UINT64:
        return True
    if dtype in TEXTS:
        return tensor_bytes(shape, DataType.DT_COMPLEX128) > size
    return element_size_code(dtype) <= 0


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
    if not isinstance(value, int):
        raise UnknownForm(f"{value!r} is no integer")
    return value
