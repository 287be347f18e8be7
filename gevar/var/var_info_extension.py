"""What GE's message has no place for, in gevar's own field of it: written, and read.

GE loses these when it stores a manager: names of batches, staged descriptions, what blocks hold (so that equal weights
share after a restoration), bytes of the caller's memory, the variables that nodes are references to, and how much of
the assigned space place holders take.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from gevar.align import INT64_MAX
from gevar.types import DataType, LogicAddr, TensorDesc
from gevar.var.info_fields import at_most, entry, read_desc, read_mem_type, refused
from gevar.var.mem_resource import POOL_MEM_TYPES, MemFigures
from gevar.var.var_block import VarBlock, VarRecord
from gevar.var.var_key import VarKey
from gevar.var.var_op import REF_VAR_SRC_VAR_NAME, VARIABLE, VarOp
from gevar.var.var_snapshot import VarSnapshot
from gevar.var.wire_key import name_of_wire_key, wire_key

if TYPE_CHECKING:
    from gevar.proto.var_manager import VarManagerExtension

DIGEST_BYTES: Final = 16
"""Bytes of an xxh3-128 digest."""


class _Named(Protocol):
    """A key with its description, in a stored state or on the way into one."""

    @property
    def name(self) -> str: ...
    @property
    def desc(self) -> TensorDesc: ...


def maker_names(entries: Iterable[tuple[LogicAddr, _Named]]) -> Callable[[LogicAddr, TensorDesc], str]:
    """Return the function that tells the name a block was most likely made for, from address and description.

    It is the first key at its address that is registered with its very description, else the first key there.

    Parameters
    ----------
    entries
        Address of everything that is registered, and its key and description.
    """
    only: dict[LogicAddr, _Named] = {}
    several: dict[LogicAddr, list[_Named]] = {}
    for logic_addr, one in entries:
        first = only.setdefault(logic_addr, one)
        if first is not one:
            several.setdefault(logic_addr, [first]).append(one)

    def maker_name(logic_addr: LogicAddr, desc: TensorDesc) -> str:
        if logic_addr not in several:
            return only[logic_addr].name if logic_addr in only else ""
        by_key = sorted(several[logic_addr], key=lambda one: (one.name, one.desc.format, one.desc.dtype))
        return next((one.name for one in by_key if one.desc == desc), by_key[0].name)

    return maker_name


def write_extension(extension: "VarManagerExtension", snapshot: VarSnapshot, shadowed: list[VarRecord]) -> None:
    """Write what GE's fields do not hold.

    Parameters
    ----------
    extension
        Where to.
    snapshot
        The state.
    shadowed
        Records of keys whose text in GE's form is that of another one, too.
    """
    from gevar.var.var_info_writer import write_descs, write_record

    extension.MergeFromString(snapshot.unknown.extension)
    extension.batch_var_name_map.update(snapshot.batch_names)
    for graph_id, descs in snapshot.staged_descs.items():
        write_descs(extension.staged_var_desc[graph_id].desc, descs)
    unclear = [one for one in snapshot.records if one.name.endswith("_") and not _tells_its_name(one, snapshot)]
    for record in dict.fromkeys(shadowed + unclear):
        write_record(extension.var_record.add(name=record.name).info, record)
    _write_blocks(extension, snapshot)
    for record in snapshot.records:
        if record.op is not None and record.op.ref_source is not None:
            key = record.key
            extension.reference.add(
                name=key.name, format=key.format, dtype=key.dtype, src_var_name=record.op.ref_source
            )
    for mem_type, figures in snapshot.mem_figures.items():
        one = extension.mem_resource[mem_type]
        one.const_place_holder_mem_size = figures.const_place_holder_mem_size
        one.next_offset = figures.next_offset


def _tells_its_name(record: VarRecord, snapshot: VarSnapshot) -> bool:
    """Whether a reader of the key finds the name in it; not always where the name ends in an underscore."""
    return name_of_wire_key(wire_key(record.key), record.desc, snapshot.cur_descs) == record.name


def _write_blocks(extension: "VarManagerExtension", snapshot: VarSnapshot) -> None:
    """Write what is known of blocks; those in memory of a pool are not restored."""
    is_simple = len(snapshot.records) == len(snapshot.blocks) and set(map(type, snapshot.records)) <= {VarBlock}
    maker_name = maker_names([] if is_simple else [(record.block.logic_addr, record) for record in snapshot.records])
    for block in [] if is_simple else snapshot.blocks:  # a key with a block of its own made that block
        if block.mem_type in POOL_MEM_TYPES:
            continue
        if block.name != maker_name(block.logic_addr, block.desc):
            extension.block_name[block.logic_addr] = block.name
        if block.is_place_holder:
            extension.place_holder_size[block.logic_addr] = snapshot.extern_memory[block.logic_addr].size_bytes
    for (length, size_code, digest), block in snapshot.constants:
        if block.mem_type not in POOL_MEM_TYPES:
            extension.constant.add(address=block.logic_addr, length=length, size_code=size_code, digest=digest)
    for (location, offset, length), block in snapshot.file_constants:
        if block.mem_type not in POOL_MEM_TYPES:
            extension.file_constant.add(address=block.logic_addr, location=location, offset=offset, length=length)


def read_extension(snapshot: VarSnapshot, extension: "VarManagerExtension") -> None:
    """Complete a state by what GE's fields do not hold.

    Raises
    ------
    ModelFileError
        Something is told of a block, key or kind of memory that is not there, or cannot be.
    """
    snapshot.batch_names.update(extension.batch_var_name_map)
    for graph_id, staged in extension.staged_var_desc.items():
        field = entry("gevar.staged_var_desc", graph_id)
        snapshot.staged_descs[graph_id] = {name: read_desc(td, field) for name, td in staged.desc.items()}
    _read_references(snapshot, extension)
    _read_blocks(snapshot, extension)
    for number, one in extension.mem_resource.items():
        field = entry("gevar.mem_resource", number)
        before = snapshot.mem_figures.get(read_mem_type(number, field))
        if before is None:
            raise refused(field, "mem_resource_map has no such kind of memory")
        holders = at_most(one.const_place_holder_mem_size, before.var_mem_size, f"{field}.const_place_holder_mem_size")
        next_offset = at_most(one.next_offset, INT64_MAX, f"{field}.next_offset")
        snapshot.mem_figures[read_mem_type(number, field)] = MemFigures(before.var_mem_size, holders, next_offset)


def _read_references(snapshot: VarSnapshot, extension: "VarManagerExtension") -> None:
    """Give the records of references a node that says what they refer to."""
    if not extension.reference:
        return
    records = {record.key: record for record in snapshot.records}
    for number, one in enumerate(extension.reference):
        key = VarKey(one.name, one.format, DataType.from_number(one.dtype))
        if key not in records:
            raise refused(entry("gevar.reference", number), f"{key} is not there")
        attrs = MappingProxyType({REF_VAR_SRC_VAR_NAME: one.src_var_name})
        records[key].op = VarOp(one.name, VARIABLE, attrs=attrs)


def _read_blocks(snapshot: VarSnapshot, extension: "VarManagerExtension") -> None:
    """Read what blocks hold, and how much memory place holders have."""
    blocks = {block.logic_addr: block for block in snapshot.blocks}

    def block_at(addr: int, field: str) -> VarBlock:
        block = blocks.get(LogicAddr(addr))
        if block is None:
            raise refused(field, f"no variable starts at {addr}")
        return block

    for addr in extension.block_name:
        block_at(addr, entry("gevar.block_name", addr))
    for addr, size_bytes in extension.place_holder_size.items():
        field = entry("gevar.place_holder_size", addr)
        if not block_at(addr, field).is_place_holder:
            raise refused(field, "it is no place holder")
        memory = snapshot.extern_memory[LogicAddr(addr)]
        snapshot.extern_memory[LogicAddr(addr)] = replace(memory, size_bytes=at_most(size_bytes, INT64_MAX, field))
    for number, one in enumerate(extension.constant):
        field = entry("gevar.constant", number)
        if len(one.digest) != DIGEST_BYTES or not one.length or not one.size_code:
            raise refused(field, f"{one.length} B, size code {one.size_code}, digest of {len(one.digest)} B")
        key = (one.length, one.size_code, one.digest)
        snapshot.constants.append((key, block_at(one.address, field)))
    for number, file in enumerate(extension.file_constant):
        field = entry("gevar.file_constant", number)
        if not file.location:
            raise refused(field, "it has no location")
        file_slice = (file.location, file.offset, file.length)
        snapshot.file_constants.append((file_slice, block_at(file.address, field)))
