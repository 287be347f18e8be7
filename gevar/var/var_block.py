"""Blocks of logical space, and the records that point variables at them.

A `VarBlock` is a piece of logical space with the description it was made with; a `VarRecord` says which block a key
stands for. Several records may share a block. Both never change, so a reader needs no lock; a new fact is a new object.
"""

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True, eq=False)
class VarBlock:
    """A piece of logical space.

    Attributes
    ----------
    logic_addr : LogicAddr
        First address.
    desc : TensorDesc
        Description the block was made with. Its size is the capacity of the block in bytes; its initial value, if any,
        is what device memory for the block starts with.
    mem_type : MemType
        Kind of memory.
    key : VarKey
        Key the block was made for.
    is_place_holder : bool
        Whether memory of the caller's stands for the block (`VarTables.extern_memory`).
    placed : bool
        False for an address that was only named (`VarManager.set_var_addr`): it has no memory and no place in the
        address index.
    placing : Placing
        How it came to its place.
    """

    logic_addr: LogicAddr
    desc: TensorDesc
    mem_type: MemType
    key: VarKey
    is_place_holder: bool = False
    placed: bool = True
    placing: Placing = Placing.STORED

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


@dataclass(frozen=True, slots=True, eq=False)
class VarRecord:
    """What a key stands for.

    Attributes
    ----------
    key : VarKey
        The key.
    desc : TensorDesc
        Description the key was registered with.
    block : VarBlock
        Where the variable lies.
    offset : int
        Distance from the logic base at that time, modulo 2**64; for memory other than HBM the address, or 0, as GE
        keeps it.
    op : VarOp or None
        Node the key was registered with.
    placing : Placing
        How the key came to the block.
    """

    key: VarKey
    desc: TensorDesc
    block: VarBlock
    offset: int
    op: VarOp | None
    placing: Placing = Placing.STORED
