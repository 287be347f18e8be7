"""Everything that can be said about an OM file, as one tree of plain values.

`om_facts` reads structure only: header, tables, MODEL_DEF without large values, task list, heads of kernels. With
`deep` it also reads all bytes, for digests, and looks for unknown fields. Sizes and offsets are bytes; the
`file_offset` of a partition counts from the start of its OM, that of a constant from the start of the whole file.
"""

import hashlib
import math
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence

from gevar.errors import ModelFileError
from gevar.om.attr_names import ATTR_NAME_ENUM_ATTR, ATTR_VALUE_ENUM_ATTR, ATTRS_USE_STRING_VALUE_ATTR
from gevar.om.attr_value import plain_value
from gevar.om.consts import ConstNode, ConstStorage
from gevar.om.header import Dialect
from gevar.om.model import OmModel
from gevar.om.model_def import pieces
from gevar.om.node import CONST_TYPES, VARIABLE_TYPES, OmNode
from gevar.om.om_file import OmFile, SubModel
from gevar.om.op_def import WHAT, merge_piece
from gevar.om.partition import NARROW_TABLE, WIDE_TABLE, Partition, PartitionType, partition_type_name
from gevar.om.source import ByteSource
from gevar.om.wire import count_unknown_fields
from gevar.proto import ge_ir, task
from gevar.types.format import format_to_serial
from gevar.types.tensor_desc import TensorDesc
from gevar.types.tensor_sizes import padding_bytes

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
"""A value of the tree, as the json module writes it."""

VAR_LIKE_TYPES = (*dict.fromkeys((*CONST_TYPES, *VARIABLE_TYPES)), "Data", "RefData")
"""Node types that are counted over all models of a file."""
_HEADER_FIELDS = (
    *("magic", "headsize", "version", "length", "is_encrypt", "is_checksum", "modeltype", "genmode", "name", "ops"),
    *("om_ir_version", "model_num", "platform_version", "platform_type", "model_length", "need_check_os_cpu_info"),
    "is_unknow_model",
)
_TABLE_ATTRS = (ATTR_NAME_ENUM_ATTR, ATTR_VALUE_ENUM_ATTR, ATTRS_USE_STRING_VALUE_ATTR)
_FLOW_TYPES = (PartitionType.FLOW_MODEL, PartitionType.FLOW_SUBMODEL)
_CHUNK_BYTES = 1 << 20


def om_facts(om: OmFile, *, deep: bool = False) -> dict[str, Json]:
    """Return all facts of an OM file; with `deep` also digests, checksums of constants and unknown fields.

    Raises
    ------
    ModelFileError
        Something that the facts need is damaged: all but kernel stores and task lists, whose state is a fact.
    """
    wide = om.header.has_wide_table
    facts: dict[str, Json] = {
        "size": om.size_bytes,
        "dialect": str(om.dialect),
        "header": {name: getattr(om.header, name) for name in _HEADER_FIELDS},
        "table_entry_bytes": (WIDE_TABLE if wide else NARROW_TABLE).entry.size,
        "narrow": not wide,
        "end_of_last_partition": max(partition.end for partition in om.partitions),
    }
    if deep:
        facts["sha256"] = _sha256(om.source)
    if om.is_bundle:
        facts["bundle_variable_size"] = om.bundle_variable_size
        facts["models"] = [{"partitions": [_partition(partition) for partition in om.partitions]}]
    else:
        facts["models"] = [_model(om, model, deep=deep) for model in om.models]
        facts["attr_name_levels"] = max(model.attr_name_rounds(exact=deep) for model in om.models)
        facts["var_like_nodes"] = _var_like_nodes(om)
        if deep:
            facts["graph_decodes"] = True
    if om.submodels:
        facts["submodels"] = [_submodel(submodel, deep=deep) for submodel in om.submodels]
    return facts


def _submodel(submodel: SubModel, *, deep: bool) -> dict[str, Json]:
    nested = {} if submodel.om is None else om_facts(submodel.om, deep=deep)
    return {
        "name": submodel.name,
        "model_type": submodel.model_type,
        "om_data_file_path": submodel.om_data_file_path,
        **nested,
    }


def _model(om: OmFile, model: OmModel, *, deep: bool) -> dict[str, Json]:
    if deep:
        model.check_decodes()
    mobile = om.dialect == Dialect.M
    consts = model.const_nodes()
    rows, mismatches = _const_rows(consts, deep=deep)
    facts: dict[str, Json] = {
        "partitions": [_partition(partition, mobile=mobile) for partition in model.partitions],
        "model_def": _model_def(model, mismatches, deep=deep),
        "consts": _consts(consts, rows),
        "variables": [_variable(node) for node in model.variable_nodes()],
    }
    weights = model.partition_source(PartitionType.WEIGHTS_DATA)
    if weights is not None:
        facts["weights"] = {"size": weights.size_bytes, **({"sha256": _sha256(weights)} if deep else {})}
    tasks = model.partition_source(PartitionType.TASK_INFO)
    if tasks is not None:
        facts["task"] = _task(tasks)
    facts |= _stores(model)
    if om.header.is_flow:
        flow = [part for part in model.partitions if part.type in _FLOW_TYPES]
        facts["flow_partitions"] = [_flow_partition(om, part, deep=deep) for part in flow]
    return facts


def _flow_partition(om: OmFile, partition: Partition, *, deep: bool) -> dict[str, Json]:
    source = om.source.range(partition.file_offset, partition.mem_size, "flow partition")
    return {
        "type": partition.type,
        "size": partition.mem_size,
        **({"sha256": _sha256(source)} if deep else {}),
    }


def _stores(model: OmModel) -> dict[str, Json]:
    """Facts of the partitions that list items: kernels, shared objects, inputs and outputs."""
    facts: dict[str, Json] = {}
    for key, number in (
        ("kernels", PartitionType.TBE_KERNELS),
        ("cust_aicpu_kernels", PartitionType.CUST_AICPU_KERNELS),
        ("custom_ops", PartitionType.CUSTOM_OPS),
    ):
        store = model.kernel_store(number)
        if store is not None:
            facts[key] = {
                "count": len(store.items),
                "consumed": store.consumed_bytes,
                "size": store.size_bytes,
                "bad": store.fault is not None,
            }
    items = model.so_items()
    if items:
        facts["so_bins"] = [
            {"name": item.name, "vendor": item.vendor, "so_type": item.so_type, "size": item.size_bytes}
            for item in items
        ]
    inout = model.inout_info()
    if inout is not None:
        facts["inout_tlv"] = {"blocks": inout.blocks, "consumed": inout.size_bytes, "size": inout.size_bytes}
    return facts


def _partition(partition: Partition, *, mobile: bool = False) -> dict[str, Json]:
    return {
        "type": partition.type,
        "name": partition_type_name(partition.type, mobile=mobile),
        "mem_offset": partition.mem_offset,
        "mem_size": partition.mem_size,
        "file_offset": partition.file_offset,
    }


def _model_def(model: OmModel, mismatches: int, *, deep: bool) -> dict[str, Json]:
    facts: dict[str, Json] = {
        "name": model.name,
        "version": model.version,
        "custom_version": model.custom_version,
        "compressed_attrs": model.is_compressed,
        "size_vs_shape_mismatch": mismatches,
        "attrs": _attrs(model.attrs),
        "graphs": [
            {
                "name": graph.name,
                "ops": len(graph.nodes),
                "types": dict(sorted(Counter(node.type for node in graph.nodes).items())),
            }
            for graph in model.graphs
        ],
    }
    source = model.partition_source(PartitionType.MODEL_DEF)
    if deep and source is not None:
        facts["unknown_fields"] = count_unknown_fields(source, 0, source.size_bytes, ge_ir.ModelDef.DESCRIPTOR, WHAT)
    return facts


def _attrs(attrs: Mapping[str, ge_ir.AttrDef]) -> dict[str, Json]:
    """Model attributes with a plain value, without the tables of names."""
    values = {name: plain_value(attrs[name]) for name in sorted(attrs) if name not in _TABLE_ATTRS}
    return {name: value for name, value in values.items() if value is not None and not isinstance(value, bytes)}


def _const_rows(consts: Sequence[ConstNode], *, deep: bool) -> tuple[list[Json], int]:
    """Facts of the constants that have a value, and how many have other bytes than their shape says."""
    rows: list[Json] = []
    mismatches = 0
    for const in consts:
        desc = const.desc  # read at each call
        mismatches += _mismatch(const, desc)
        if const.storage != ConstStorage.NONE:
            rows.append(_const(const, desc, deep=deep))
    return rows, mismatches


def _mismatch(const: ConstNode, desc: TensorDesc | None) -> bool:
    """Whether the bytes of a constant are not those of its shape and type, where these have a size."""
    if desc is None or desc.dtype.element_bits is None or min(desc.shape, default=0) < 0:
        return False
    return -(-math.prod(desc.shape) * desc.dtype.element_bits // 8) != const.size_bytes


def _consts(consts: Sequence[ConstNode], rows: list[Json]) -> dict[str, Json]:
    def count_and_bytes(storage: ConstStorage) -> list[int]:
        """Count, and declared bytes, which in a root graph may lie elsewhere."""
        sizes = [const.declared_bytes for const in consts if const.storage == storage]
        return [len(sizes), sum(sizes)]

    return {
        "total": len(consts),
        "inline": count_and_bytes(ConstStorage.INLINE),
        "by_data_offset": count_and_bytes(ConstStorage.DATA_OFFSET),
        "by_merged_offset": count_and_bytes(ConstStorage.MERGED_OFFSET),
        "without_value": count_and_bytes(ConstStorage.NONE)[0],
        "list": rows,
    }


def _const(const: ConstNode, desc: TensorDesc | None, *, deep: bool) -> dict[str, Json]:
    return {
        "name": const.name,
        "dtype": None if desc is None else desc.dtype.name,
        "shape": None if desc is None else desc.shape,
        "layout": const.layout,
        "storage": str(const.storage),
        "offset": const.offset,
        "size": const.size_bytes,
        "file_offset": const.file_offset,
        **({"crc32": f"{zlib.crc32(const.data()):08x}"} if deep else {}),
    }


def _variable(node: OmNode) -> dict[str, Json]:
    """Facts of a node in variable memory; those of the description are null or empty for one without output."""
    desc = node.output_descs[0] if node.output_descs else None
    return {
        "name": node.name,
        "type": node.type,
        "graph": node.graph_name,
        "dtype": None if desc is None else desc.dtype.name,
        "format": None if desc is None else format_to_serial(desc.format),
        "shape": [] if desc is None else desc.shape,
        "origin_format": None if desc is None else format_to_serial(desc.origin_format),
        "origin_shape": None if desc is None else desc.origin_shape,
        "size": 0 if desc is None else desc.size,
        "padding_bytes": 0 if desc is None else padding_bytes(desc),
        "logic_addr": node.output_i[0] if node.output_i else None,
    }


def _task(source: ByteSource) -> dict[str, Json]:
    """Facts of a task list, decoded and dropped piece by piece; the last value of a number counts, as in protobuf."""
    what = PartitionType.TASK_INFO.name
    count = memory_size = weight_size = 0
    try:
        for start, end in pieces(source, 0, source.size_bytes, what):
            message = task.ModelTaskDef()
            merge_piece(message, source, start, end, what)
            count += len(message.task)
            memory_size = message.memory_size or memory_size
            weight_size = message.weight_size or weight_size
    except ModelFileError as error:
        if error.field != what:  # the file itself cannot be read
            raise
        return {"decodes": False}
    return {"decodes": True, "tasks": count, "memory_size": memory_size, "weight_size": weight_size}


def _var_like_nodes(om: OmFile) -> dict[str, Json]:
    types = Counter(node.type for model in om.models for graph in model.graphs for node in graph.nodes)
    return {name: types[name] for name in VAR_LIKE_TYPES}


def _sha256(source: ByteSource) -> str:
    digest = hashlib.sha256()
    for start in range(0, source.size_bytes, _CHUNK_BYTES):
        digest.update(source.read(start, min(_CHUNK_BYTES, source.size_bytes - start), "digest"))
    return digest.hexdigest()
