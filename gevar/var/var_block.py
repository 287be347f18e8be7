"""Blocks of logical space, and the records that point variables at them.

A `VarRecord` says which block a key stands for. The block is the record of the key it was made for; other keys that
share it have records of their own. None of them changes once it is in a table, so a reader needs no lock; a new fact is
a new object. There is one for every variable, so they are made by hand: a frozen dataclass takes three times as long.
"""

from dataclasses import dataclass
from typing import ClassVar

from gevar.align import var_block_bytes
from gevar.types import DevAddr, LogicAddr, MemType, TensorDesc
from gevar.var.placing import Placing
from gevar.var.var_key import VarKey
from gevar.var.var_op import VarOp


@dataclass(frozen=True, slots=True)
class ExternMemory:
    """Device memory of the caller's that stands for a place holder's block.

    Attributes
    ----------
    dev_addr : DevAddr
        First address.
    size_bytes : int
        Size in bytes.
    live : bool
        False for an address that came with the stored state of another process: it is told, never given out.
    """

    dev_addr: DevAddr
    size_bytes: int
    live: bool = True


class VarRecord:
    """What a key stands for: a block of its own (`VarBlock`), or that of another key (`SharingRecord`).

    Attributes
    ----------
    name : str
        Batch key name.
    desc : TensorDesc
        Description the key was registered with; format and data type are those of the key.
    offset : int
        Distance from the logic base at that time, modulo 2**64; for memory other than HBM the address, or 0, as GE
        keeps it.
    op : VarOp or None
        Node the key was registered with.
    placing : Placing
        How the key came to the block.
    """

    __slots__ = ("desc", "name", "offset", "op", "placing")

    name: str
    desc: TensorDesc
    offset: int
    op: VarOp | None
    placing: Placing

    @property
    def key(self) -> VarKey:
        """The key."""
        return VarKey(self.name, self.desc.format, self.desc.dtype)

    @property
    def block(self) -> "VarBlock":
        """Where the variable lies."""
        raise NotImplementedError

    def __repr__(self) -> str:
        block = self.block
        return f"<{type(self).__name__} {self.key}: {block.size_bytes} B at {block.logic_addr}, {self.placing.value}>"


class VarBlock(VarRecord):
    """A piece of logical space, and what the key stands for that it was made for.

    The size of the description is the capacity of the block in bytes; its initial value, if any, is what device memory
    for the block starts with.

    Attributes
    ----------
    logic_addr : LogicAddr
        First address.
    mem_type : MemType
        Kind of memory.
    is_place_holder : bool
        Whether memory of the caller's stands for the block (`VarTables.extern_memory`).
    placed : bool
        False for an address that was only named: it has no memory and no place in the address index.
    """

    __slots__ = ("logic_addr", "mem_type")

    is_place_holder: ClassVar[bool] = False
    placed: ClassVar[bool] = True

    def __init__(
        self,
        name: str,
        desc: TensorDesc,
        logic_addr: LogicAddr,
        mem_type: MemType,
        offset: int = 0,
        op: VarOp | None = None,
        placing: Placing = Placing.STORED,
    ) -> None:
        self.name = name
        self.desc = desc
        self.offset = offset
        self.op = op
        self.placing = placing
        self.logic_addr = logic_addr
        self.mem_type = mem_type

    @property
    def block(self) -> "VarBlock":
        """The block itself."""
        return self

    @property
    def size_bytes(self) -> int:
        """Bytes of data the block can hold."""
        return self.desc.size

    @property
    def end(self) -> int:
        """First logical address after the data."""
        return self.logic_addr + self.desc.size

    @property
    def reserved_end(self) -> int:
        """First logical address after the data, its padding and its guard."""
        return self.logic_addr + var_block_bytes(self.desc.size)


class PlaceHolderBlock(VarBlock):
    """A block for which memory of the caller's stands."""

    __slots__ = ()

    is_place_holder = True


class NamedBlock(VarBlock):
    """An address that was only named (`VarManager.set_var_addr`), or that the manager knows of no memory at."""

    __slots__ = ()

    placed = False


class SharingRecord(VarRecord):
    """A key that stands for the block of another one, or of one that is gone."""

    __slots__ = ("_block",)

    def __init__(
        self,
        name: str,
        desc: TensorDesc,
        block: VarBlock,
        offset: int,
        op: VarOp | None = None,
        placing: Placing = Placing.STORED,
    ) -> None:
        self.name = name
        self.desc = desc
        self.offset = offset
        self.op = op
        self.placing = placing
        self._block = block

    @property
    def block(self) -> VarBlock:
        """Where the variable lies."""
        return self._block
