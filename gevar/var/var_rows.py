"""What a manager knows of its variables, as rows and words for people."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gevar.align import var_block_bytes
from gevar.types import DataType, DevAddr, DeviceId, LogicAddr, MemType
from gevar.types.format import format_to_serial
from gevar.var.placing import SHARED_PLACINGS, Placing
from gevar.var.var_block import VarBlock, VarRecord
from gevar.var.var_key import VarKey


@dataclass(frozen=True, slots=True)
class VarRow:
    """One form of a variable: name, format and data type.

    Attributes
    ----------
    name : str
        Batch key name.
    key : VarKey
        The key.
    op_type : str or None
        Type of the node it was registered with; None where there was none.
    dtype : DataType
        Element type.
    format : int
        Full 32-bit format value.
    shape : tuple of int
        Dimensions in elements.
    logic_addr : LogicAddr
        First logical address.
    block_bytes : int
        Logical space of its block, guard included; in memory of a pool the size of the data.
    capacity_bytes : int
        Data that the block can hold.
    mem_type : MemType
        Kind of memory.
    placing : Placing
        How this form came to its block.
    space : Placing
        How the block came to its place: ASSIGNED, MOVED, RESTORED, NAMED or STORED.
    owner : VarKey
        Key the block was made for.
    is_current : bool
        Whether it is the current form of its name.
    dev_addrs : tuple
        Device and address of the data, for each device that has memory for it.
    """

    name: str
    key: VarKey
    op_type: str | None
    dtype: DataType
    format: int
    shape: tuple[int, ...]
    logic_addr: LogicAddr
    block_bytes: int
    capacity_bytes: int
    mem_type: MemType
    placing: Placing
    space: Placing
    owner: VarKey
    is_current: bool
    dev_addrs: tuple[tuple[DeviceId, DevAddr], ...]

    def __str__(self) -> str:
        fmt, current = format_to_serial(self.format), "" if self.is_current else ", not current"
        where = f"{self.logic_addr} in {self.mem_type.name}, {self.capacity_bytes} B of {self.block_bytes} B"
        devices = "".join(f", device {device_id} {addr:#x}" for device_id, addr in self.dev_addrs)
        form = f"{self.op_type or 'no node'} {self.dtype.name} {fmt} {list(self.shape)}"
        return f"{self.key}: {form} at {where}, {self.placing.value}{current}{devices}"


@dataclass(frozen=True, slots=True)
class Savings:
    """Logical space that variables would take if nothing was shared, in bytes with guards.

    Attributes
    ----------
    equal_weight_bytes : int
        Constants on the block of one with equal bytes.
    file_slice_bytes : int
        File constants on the block of one with the same file slice.
    reference_bytes : int
        References on the block of their variable.
    form_bytes : int
        Forms of a name on the block that it has in another form.
    """

    equal_weight_bytes: int
    file_slice_bytes: int
    reference_bytes: int
    form_bytes: int

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return self.equal_weight_bytes + self.file_slice_bytes + self.reference_bytes + self.form_bytes


def _taken_bytes(size_bytes: int, mem_type: MemType) -> int:
    """Space that a block takes; a pool has no guards."""
    return var_block_bytes(size_bytes) if mem_type == MemType.RT_MEMORY_HBM else size_bytes


def row_of(record: VarRecord, *, is_current: bool, dev_addrs: Mapping[DeviceId, DevAddr]) -> VarRow:
    """Return the row of a record."""
    key, desc, block = record.key, record.desc, record.block
    return VarRow(
        key.name,
        key,
        None if record.op is None else record.op.op_type,
        desc.dtype,
        int(desc.format),
        desc.shape,
        block.logic_addr,
        _taken_bytes(block.size_bytes, block.mem_type),
        block.size_bytes,
        block.mem_type,
        record.placing,
        block.placing,
        block.key,
        is_current,
        tuple(sorted(dev_addrs.items())),
    )


def savings_of(records: Iterable[VarRecord]) -> Savings:
    """Return what records save by standing for blocks that were there."""
    saved = dict.fromkeys(SHARED_PLACINGS, 0)
    for record in records:
        if record.placing in saved:
            saved[record.placing] += _taken_bytes(record.desc.size, record.block.mem_type)
    return Savings(*saved.values())


def standing_for(block: VarBlock, records: Iterable[VarRecord], *, but: VarRecord) -> Iterator[VarRecord]:
    """Yield the other records that stand for a block."""
    return (record for record in records if record.block is block and record is not but)


def explain_record(record: VarRecord, others: Iterable[VarRecord]) -> str:
    """Say in one line how a record came to its block, and in more who made it and who else stands for it."""
    block = record.block
    where = f"{record.desc.size} B at {block.logic_addr} in {block.mem_type.name}"
    lines = [f"{_printable(record.key)}: {where}: {_reason(record)}"]
    if record is not block:
        lines.append(f"its block was made for {_printable(block.key)} ({block.size_bytes} B, {block.placing.value})")
    lines += [f"{_printable(other.key)} stands for the same block: {other.placing.value}" for other in others]
    return "\n".join(lines)


def _printable(key: VarKey) -> str:
    """A key on one line, whatever the name."""
    text = str(key)
    return text if text.isprintable() else repr(text)


def _reason(record: VarRecord) -> str:
    """Why a record is where it is."""
    block = record.block
    reasons: dict[Placing, str] = {
        Placing.ASSIGNED: "fresh, it has new space",
        Placing.RESTORED: "restored, its compiled model gave it this place",
        Placing.MOVED: f"moved to new space of {block.size_bytes} B, because it grew beyond the block it had",
        Placing.REUSED: f"reused, because it fits into the {block.size_bytes} B that its name has in another form",
        Placing.EQUAL_WEIGHT: f"shared with {block.key.name!r}, because their weights are equal",
        Placing.FILE_SLICE: f"shared with {block.key.name!r}, because their file slices are the same",
        Placing.REFERENCE: f"shared with {block.key.name!r}, because one is a reference to the other",
        Placing.NAMED: "named, the caller gave this address",
        Placing.STORED: "stored, a stored state had it here",
    }
    return reasons[record.placing]
