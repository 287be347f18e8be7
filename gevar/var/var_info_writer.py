"""From the state of a manager to the message that GE reads.

Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::VarManagerToSerial,
VarResource::VarResourceToSerial.
"""

import logging
from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from gevar.errors import VariableError
from gevar.status import FAILED
from gevar.types import TensorDesc
from gevar.var.graph_tables import TransRoad
from gevar.var.var_block import VarRecord
from gevar.var.var_info_extension import write_extension
from gevar.var.var_snapshot import VarSnapshot
from gevar.var.wire_key import wire_key

if TYPE_CHECKING:
    from google.protobuf.internal.containers import MessageMap

    from gevar.proto.ge_ir import TensorDescriptor
    from gevar.proto.var_manager import TransNodeMultiInfo, VarAddrMgrInfo, VarDescInfo, VarManagerInfo, VarResourceInfo

_log = logging.getLogger("gevar.var")


def write_info(snapshot: VarSnapshot, *, strict: bool, extension: bool) -> "VarManagerInfo":
    """Return the message that holds a state.

    Parameters
    ----------
    snapshot
        The state.
    strict
        Whether variables whose keys are one text in GE's form are refused. Else GE's map gets the first of them by
        name, the log names them, and the extension holds them all.
    extension
        Whether the message gets what GE's fields have no place for, in a field that GE passes over.

    Raises
    ------
    VariableError
        Two variables have one key in GE's form (status FAILED).
    ValueError
        A number or text does not fit its field.
    """
    from gevar.proto.var_manager import VarManagerInfo

    header, config = snapshot.header, snapshot.header.config
    info = VarManagerInfo(
        version=header.version,
        session_id=header.session_id,
        device_id=header.device_id,
        job_id=header.job_id,
        graph_mem_max_size=config.graph_mem_max_size,
        var_mem_max_size=config.var_mem_max_size,
        var_mem_logic_base=config.var_mem_logic_base,
        use_max_mem_size=config.use_max_mem_size,
    )
    info.MergeFromString(snapshot.unknown.manager)
    for mem_type, figures in snapshot.mem_figures.items():
        info.mem_resource_map[mem_type].var_mem_size = figures.var_mem_size
    info.var_resource.SetInParent()
    shadowed = _write_records(info.var_resource, snapshot, strict=strict)
    _write_resource(info.var_resource, snapshot)
    if extension:
        write_extension(info.gevar, snapshot, shadowed)
    return info


def _write_records(resource: "VarResourceInfo", snapshot: VarSnapshot, *, strict: bool) -> list[VarRecord]:
    """Write what each key stands for; return the records of every key that stands for more than one."""
    shadowed: list[VarRecord] = []
    by_text = sorted(snapshot.records, key=lambda record: (wire_key(record.key), record.key))
    for text, group in groupby(by_text, key=lambda record: wire_key(record.key)):
        records = list(group)
        if len(records) > 1:
            names = " and ".join(repr(record.key.name) for record in records)
            if strict:
                reason = f"{names} have this one key in GE's form; rename one, or write with strict=False"
                raise VariableError(text, reason, status=FAILED)
            _log.warning("key %r is that of %s: GE will read the first of them only", text, names)
            shadowed += records
        write_record(resource.var_addr_mgr_map[text], records[0])
    return shadowed


def write_record(info: "VarAddrMgrInfo", record: VarRecord) -> None:
    """Write what one key stands for."""
    from gevar.proto.tensor_descriptor import tensor_desc_to_proto

    info.desc.CopyFrom(tensor_desc_to_proto(record.desc))
    info.address, info.offset, info.memory_type = record.block.logic_addr, record.offset, record.block.mem_type


def _write_resource(resource: "VarResourceInfo", snapshot: VarSnapshot) -> None:
    """Write everything but the records."""
    from gevar.proto.tensor_descriptor import tensor_desc_to_proto

    resource.MergeFromString(snapshot.unknown.resource)
    for block in snapshot.blocks:
        resource.var_offset_map[block.logic_addr] = block.mem_type
        entry = resource.var_dev_addr_mgr_map[block.logic_addr]
        entry.desc.CopyFrom(tensor_desc_to_proto(block.desc))
        entry.address = block.logic_addr
        extern = snapshot.extern_memory.get(block.logic_addr)
        entry.dev_addr = 0 if extern is None else extern.dev_addr
    write_descs(resource.cur_var_tensor_desc_map, snapshot.cur_descs)
    _write_roads(resource.var_to_trans_road, snapshot.trans_roads)
    resource.var_names_to_changed_graph_id.update(snapshot.changed_graph_ids)
    resource.var_names_to_allocated_graph_id.update(snapshot.allocated_graph_ids)
    for graph_id, infos in snapshot.broad_casts.items():
        broadcasts = resource.var_broad_cast_info[graph_id].broadcast_info
        for name, info in infos.items():
            one = broadcasts[name]
            one.var_name, one.broadcast_name, one.idx = info.var_name, info.broadcast_name, info.idx
            one.input_offset, one.input_size = info.input_offset, info.input_size
            one.output_offset, one.output_size = info.output_offset, info.output_size


def write_descs(descs: "MessageMap[str, TensorDescriptor]", by_name: Mapping[str, TensorDesc]) -> None:
    """Write descriptions by name."""
    from gevar.proto.tensor_descriptor import tensor_desc_to_proto

    for name, desc in by_name.items():
        descs[name].CopyFrom(tensor_desc_to_proto(desc))


def _write_roads(roads: "MessageMap[str, TransNodeMultiInfo]", by_name: Mapping[str, TransRoad]) -> None:
    from gevar.proto.tensor_descriptor import tensor_desc_to_proto

    for name, road in by_name.items():
        steps = roads[name].node_info
        for step in road:
            one = steps.add(node_type=step.node_type)
            one.input.CopyFrom(tensor_desc_to_proto(step.input))
            one.output.CopyFrom(tensor_desc_to_proto(step.output))


def write_desc_info(descs: Mapping[str, TensorDesc], roads: Mapping[str, TransRoad]) -> "VarDescInfo":
    """Return the message that holds current descriptions and conversions, and nothing else.

    Source: GE source, base/graph/manager/graph_var_manager.cc, VarManager::VarDescInfoToSerial.
    """
    from gevar.proto.var_manager import VarDescInfo

    info = VarDescInfo()
    write_descs(info.cur_var_tensor_desc_map, descs)
    _write_roads(info.var_to_trans_road, roads)
    return info
