"""What must hold between the tables of a manager at every moment nobody changes them."""

from collections.abc import Iterator
from itertools import pairwise

from gevar.align import INT64_MAX, var_block_bytes
from gevar.types import MemType
from gevar.var.block_memory import CALLER, DeviceRecord
from gevar.var.mem_resource import MemResource
from gevar.var.var_block import VarBlock
from gevar.var.var_key import VarKey
from gevar.var.var_resource import VarResource


def broken_invariants(
    resource: VarResource, mem_resources: dict[MemType, MemResource], records: list[DeviceRecord], malloc_bytes: int
) -> Iterator[str]:
    """Yield a line for everything that does not hold; nothing when all is well."""
    yield from _broken_blocks(resource)
    yield from _broken_records(resource)
    for mem in mem_resources.values():
        if not 0 <= mem.const_place_holder_mem_size <= mem.var_mem_size:
            yield f"place holders take {mem.const_place_holder_mem_size} B of {mem.var_mem_size} B assigned"
    hbm = mem_resources.get(MemType.RT_MEMORY_HBM)
    hbm_bytes = sum(var_block_bytes(block.size_bytes) for block in _hbm_blocks(resource))
    if hbm is not None and hbm.var_mem_size > hbm_bytes and not resource.is_restored:
        yield f"{hbm.var_mem_size} B are assigned and blocks take {hbm_bytes} B"
    yield from _broken_device_records(resource, records, malloc_bytes)


def _hbm_blocks(resource: VarResource) -> list[VarBlock]:
    return [block for block in resource.blocks if block.mem_type == MemType.RT_MEMORY_HBM]


def _broken_blocks(resource: VarResource) -> Iterator[str]:
    """Blocks are disjoint, taken in the logical space, found by each of their addresses, and inside 63 bits."""
    for before, after in pairwise(resource.blocks):
        if before.logic_addr >= after.logic_addr or before.end > after.logic_addr:
            yield f"{before.key} up to {before.end} overlaps {after.key} from {after.logic_addr}"
    for block in resource.blocks:
        last = max(block.logic_addr, block.end - 1)
        if resource.blocks.find(block.logic_addr) is not block or resource.blocks.find(last) is not block:
            yield f"{block.key} is not found at its own addresses"
        if not block.placed or block.size_bytes < 0 or block.end > INT64_MAX:
            yield f"{block.key} has a block of {block.size_bytes} B at {block.logic_addr}"
    owned_ends = [0]
    for block in _hbm_blocks(resource):
        if not resource.space.holds(block.logic_addr, block.reserved_end):
            yield f"the space of {block.key} is not taken"
        if not block.is_place_holder:
            owned_ends.append(block.reserved_end)
    if resource.owned_end != max(owned_ends):
        yield f"variables end at {max(owned_ends)}, recorded is {resource.owned_end}"


def _broken_records(resource: VarResource) -> Iterator[str]:
    """Every key has a block that is known, and every name a record for its current description."""
    for key, record in resource.records.items():
        known = resource.blocks.exact(record.block.logic_addr) is record.block
        if known != record.block.placed:
            yield f"{VarKey(*key)} stands for a block that is not known"
        if record.key != key:
            yield f"{VarKey(*key)} has a description of another form"
    for name, desc in resource.cur_descs.items():
        if (name, desc.format, desc.dtype) not in resource.records and not resource.is_restored:
            yield f"the current description of {name!r} has no record"


def _broken_device_records(resource: VarResource, records: list[DeviceRecord], malloc_bytes: int) -> Iterator[str]:
    """Device memory belongs to known blocks, is large enough, adds up, and is not handed out twice."""
    for record in records:
        block = record.block
        if resource.blocks.exact(block.logic_addr) is not block:
            yield f"device {record.device_id} has memory for {block.key}, which is not known"
        if record.capacity_bytes < var_block_bytes(block.size_bytes):
            yield f"{block.key} has {record.capacity_bytes} B on device {record.device_id} for {block.size_bytes} B"
    own = [record for record in records if record.owner is not CALLER]
    total = sum(record.capacity_bytes for record in own)
    if total != malloc_bytes:
        yield f"device memory adds up to {total} B, recorded are {malloc_bytes} B"
    by_addr = sorted(own, key=lambda record: (record.device_id, record.dev_addr))
    for first, second in pairwise(by_addr):
        if first.device_id == second.device_id and first.dev_addr + first.capacity_bytes > second.dev_addr:
            yield f"{first.block.key} and {second.block.key} share memory on device {first.device_id}"
