"""The state of a manager as one value: what is written to a message, and what is read from one.

A snapshot has no device memory, no load states and no ready flags: they belong to a process.
"""

from dataclasses import dataclass, field

from gevar.types import DeviceId, LogicAddr, MemType, TensorDesc
from gevar.var.constant_index import ContentKey
from gevar.var.file_constant_index import FileSlice
from gevar.var.graph_tables import TransRoad, VarBroadCastInfo
from gevar.var.mem_resource import MemFigures
from gevar.var.memory_config import MemoryConfig
from gevar.var.var_block import ExternMemory, VarBlock, VarRecord
from gevar.var.var_tables import VarTables


@dataclass(frozen=True, slots=True)
class VarHeader:
    """What describes a manager as a whole.

    Attributes
    ----------
    version : int
        A `SessionVersion`.
    session_id, device_id, job_id
        As given to `VarManager.init`.
    config : MemoryConfig
        Sizes and logic base.
    """

    version: int
    session_id: int
    device_id: DeviceId
    job_id: int
    config: MemoryConfig


@dataclass(frozen=True, slots=True)
class UnknownFields:
    """Fields of a message that are not known here, in wire form; they are written again as they came.

    Attributes
    ----------
    manager, resource, extension : bytes
        Those of `VarManagerInfo`, `VarResourceInfo` and `VarManagerExtension`.
    """

    manager: bytes = b""
    resource: bytes = b""
    extension: bytes = b""


@dataclass(slots=True)
class VarSnapshot:
    """Variables of a session at one moment; the tables are those of `VarTables` and `GraphTables`.

    Attributes
    ----------
    header : VarHeader
        What describes the manager as a whole.
    blocks : list of VarBlock
        Blocks of variables that were assigned or restored.
    extern_memory : dict
        Memory of the caller's per address of a place holder's block.
    records : list of VarRecord
        What each key stands for.
    cur_descs, batch_names, trans_roads, changed_graph_ids, allocated_graph_ids, staged_descs, broad_casts
        As in the tables.
    constants, file_constants : list
        What placed blocks hold, by content and by place in a file; equal weights in the order they were made.
    mem_figures : dict
        Bytes assigned, and where the next variable goes, per kind of memory.
    unknown : UnknownFields
        Fields that are carried along.
    """

    header: VarHeader
    blocks: list[VarBlock] = field(default_factory=list)
    extern_memory: dict[LogicAddr, ExternMemory] = field(default_factory=dict)
    records: list[VarRecord] = field(default_factory=list)
    cur_descs: dict[str, TensorDesc] = field(default_factory=dict)
    batch_names: dict[str, str] = field(default_factory=dict)
    trans_roads: dict[str, TransRoad] = field(default_factory=dict)
    changed_graph_ids: dict[str, int] = field(default_factory=dict)
    allocated_graph_ids: dict[str, int] = field(default_factory=dict)
    staged_descs: dict[int, dict[str, TensorDesc]] = field(default_factory=dict)
    broad_casts: dict[int, dict[str, VarBroadCastInfo]] = field(default_factory=dict)
    constants: list[tuple[ContentKey, VarBlock]] = field(default_factory=list)
    file_constants: list[tuple[FileSlice, VarBlock]] = field(default_factory=list)
    mem_figures: dict[MemType, MemFigures] = field(default_factory=dict)
    unknown: UnknownFields = field(default_factory=UnknownFields)


def take_snapshot(
    header: VarHeader, tables: VarTables, mem_figures: dict[MemType, MemFigures], unknown: UnknownFields
) -> VarSnapshot:
    """Copy the tables of a manager; for a caller that holds its lock. What is in the tables never changes by itself."""
    graphs = tables.graphs
    return VarSnapshot(
        header,
        [*tables.blocks, *(block for addr, block in tables.pool_blocks.items() if tables.blocks.exact(addr) is None)],
        dict(tables.extern_memory),
        list(tables.records.values()),
        dict(tables.cur_descs),
        dict(tables.batch_names),
        dict(graphs.trans_roads),
        dict(graphs.changed_graph_ids),
        dict(graphs.allocated_graph_ids),
        {graph_id: dict(descs) for graph_id, descs in graphs.staged_descs.items()},
        {graph_id: dict(infos) for graph_id, infos in graphs.broad_casts.items()},
        [(key, block) for key, block in tables.constants.holders() if block.placed],
        [(file_slice, block) for file_slice, block in tables.file_constants.holders() if block.placed],
        mem_figures,
        unknown,
    )
