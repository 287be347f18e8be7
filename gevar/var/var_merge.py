"""Tables from a restored state, and what of them goes into tables that hold variables already.

GE inserts what is new and passes over the rest without a word. Here everything is checked first: what both have must be
equal, and no new block may lie on a known one.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarResource::VarResourceFromDeserial.
Differs: edge 24 of docs/differences.md.
"""

from collections.abc import Mapping
from typing import TypeVar

from gevar.errors import AddressError
from gevar.status import PARAM_INVALID
from gevar.types import MemType
from gevar.var.info_fields import entry, refused
from gevar.var.var_block import SharingRecord, VarBlock, VarRecord
from gevar.var.var_resource import VarResource
from gevar.var.var_snapshot import VarSnapshot

K = TypeVar("K", int, str)
V = TypeVar("V")


def tables_of(snapshot: VarSnapshot) -> VarResource:
    """Return the tables of a restored state.

    Raises
    ------
    ModelFileError
        Two of its variables overlap.
    """
    tables = VarResource()
    tables.is_restored = True
    for block in snapshot.blocks:
        if block.logic_addr < tables.blocks.end:
            _refuse_overlap(tables, block)
        tables.place_block(block, snapshot.extern_memory.get(block.logic_addr))
    tables.records.update({(one.name, one.desc.format, one.desc.dtype): one for one in snapshot.records})
    tables.cur_descs.update(snapshot.cur_descs)
    tables.batch_names.update(snapshot.batch_names)
    graphs = tables.graphs
    graphs.trans_roads.update(snapshot.trans_roads)
    graphs.allocated_graph_ids.update(snapshot.allocated_graph_ids)
    graphs.staged_descs.update(snapshot.staged_descs)
    graphs.broad_casts.update(snapshot.broad_casts)
    for name, graph_id in snapshot.changed_graph_ids.items():
        graphs.set_changed_graph_id(name, graph_id)
    for key, block in snapshot.constants:
        tables.constants.add_restored(key, block)
    for file_slice, block in snapshot.file_constants:
        tables.file_constants.add(file_slice, block)
    return tables


def check_mergeable(tables: VarResource, incoming: VarResource) -> None:
    """Check that `merge` would lose and overwrite nothing.

    Raises
    ------
    ModelFileError
        Something that both have differs, or blocks would overlap.
    """
    for block in incoming.blocks:
        known = tables.blocks.exact(block.logic_addr)
        if known is None:
            _refuse_overlap(tables, block)
        elif not _alike(known, block):
            field = entry("var_resource.var_dev_addr_mgr_map", block.logic_addr)
            raise refused(field, f"{block.key} is there already as {known.key}, and they differ")
    for key, record in incoming.records.items():
        here = tables.blocks.exact(record.block.logic_addr) if key not in tables.records else None
        if here is not None and here.mem_type != record.block.mem_type:
            raise refused("var_resource.var_addr_mgr_map", f"{record.key} is of another kind of memory than {here.key}")
        mine = tables.records.get(key)
        if mine is not None and not (_alike_place(mine, record) and mine.desc == record.desc):
            raise refused("var_resource.var_addr_mgr_map", f"{record.key} is there already, and they differ")
    mine_graphs, their_graphs = tables.graphs, incoming.graphs
    _check_agree(tables.cur_descs, incoming.cur_descs, "var_resource.cur_var_tensor_desc_map")
    _check_agree(tables.batch_names, incoming.batch_names, "gevar.batch_var_name_map")
    _check_agree(mine_graphs.trans_roads, their_graphs.trans_roads, "var_resource.var_to_trans_road")
    changed = "var_resource.var_names_to_changed_graph_id"
    _check_agree(mine_graphs.changed_graph_ids, their_graphs.changed_graph_ids, changed)
    allocated = "var_resource.var_names_to_allocated_graph_id"
    _check_agree(mine_graphs.allocated_graph_ids, their_graphs.allocated_graph_ids, allocated)
    for graph_id, descs in their_graphs.staged_descs.items():
        field = entry("gevar.staged_var_desc", graph_id)
        _check_agree(mine_graphs.staged_descs.get(graph_id, {}), descs, field)
    for graph_id, infos in their_graphs.broad_casts.items():
        field = entry("var_resource.var_broad_cast_info", graph_id)
        _check_agree(mine_graphs.broad_casts.get(graph_id, {}), infos, field)


def merge(tables: VarResource, incoming: VarResource) -> None:
    """Add to tables what a restored state has and they do not; for a state that `check_mergeable` let pass."""
    tables.is_restored = True
    fresh = {block for block in incoming.blocks if tables.blocks.exact(block.logic_addr) is None}
    for block in incoming.blocks:
        if block in fresh:
            tables.place_block(block, incoming.extern_memory.get(block.logic_addr))
    for key, record in incoming.records.items():
        if key not in tables.records:
            block = tables.blocks.exact(record.block.logic_addr) or record.block
            if block is not record.block:
                record = SharingRecord(record.name, record.desc, block, record.offset, record.op, record.placing)
            tables.records[key] = record
    tables.cur_descs.update(incoming.cur_descs)
    tables.batch_names.update(incoming.batch_names)
    mine, theirs = tables.graphs, incoming.graphs
    mine.trans_roads.update(theirs.trans_roads)
    mine.allocated_graph_ids.update(theirs.allocated_graph_ids)
    for name, graph_id in theirs.changed_graph_ids.items():
        mine.set_changed_graph_id(name, graph_id)
    for graph_id, descs in theirs.staged_descs.items():
        mine.staged_descs.setdefault(graph_id, {}).update(descs)
    for graph_id, infos in theirs.broad_casts.items():
        mine.broad_casts.setdefault(graph_id, {}).update(infos)
    for content_key, block in incoming.constants.holders():
        if block in fresh:
            tables.constants.add_restored(content_key, block)
    for file_slice, block in incoming.file_constants.holders():
        if block in fresh:
            tables.file_constants.add(file_slice, block)


def uses_logic_base(tables: VarResource) -> bool:
    """Tell whether any variable lies in memory whose addresses count from the logic base."""
    in_blocks = any(block.mem_type == MemType.RT_MEMORY_HBM for block in tables.blocks)
    return in_blocks or any(one.block.mem_type == MemType.RT_MEMORY_HBM for one in tables.records.values())


def _refuse_overlap(tables: VarResource, block: VarBlock) -> None:
    try:
        tables.blocks.refuse_overlap(block, status=PARAM_INVALID)
    except AddressError as error:
        field = entry("var_resource.var_dev_addr_mgr_map", block.logic_addr)
        raise refused(field, str(error)) from error


def _alike(one: VarBlock, other: VarBlock) -> bool:
    """Whether two blocks that start at one address are the same."""
    return (one.desc, one.mem_type, one.is_place_holder) == (other.desc, other.mem_type, other.is_place_holder)


def _alike_place(one: VarRecord, other: VarRecord) -> bool:
    return (one.block.logic_addr, one.block.mem_type) == (other.block.logic_addr, other.block.mem_type)


def _check_agree(mine: Mapping[K, V], theirs: Mapping[K, V], field: str) -> None:
    for key in mine.keys() & theirs.keys():
        if mine[key] != theirs[key]:
            raise refused(entry(field, key), "it is there already, and they differ")
