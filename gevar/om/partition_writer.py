"""Partitions and tables on the way into a file: the order of GE's writer, its limits, and the lengths that follow.

A model is its table and the partitions back to back, without those that have no bytes::

    SO_BINS, CUSTOM_OPS, TILING_DATA, MODEL_INOUT_INFO, MODEL_DEF, WEIGHTS_DATA, TBE_KERNELS, CUST_AICPU_KERNELS,
    TASK_INFO, FLOW_MODEL, FLOW_SUBMODEL…

Source: GE source, base/common/helper/om_file_helper.cc and model_helper.cc.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from google.protobuf.message import EncodeError

from gevar.om.header import VERSION_2, ModelFileHeader, ModelType
from gevar.om.model_def import MAX_BYTES as MODEL_DEF_MAX_BYTES
from gevar.om.partition import MAX_FLOW_PARTITIONS, MAX_PARTITIONS, WIDE_TABLE, PartitionType, partition_type_name
from gevar.om.stored_bytes import Blob
from gevar.proto import ge_ir

OM_INFO_LIST_ATTR: Final = "om_info_list"

_ORDER: Final = (
    *(PartitionType.SO_BINS, PartitionType.CUSTOM_OPS, PartitionType.TILING_DATA, PartitionType.MODEL_INOUT_INFO),
    *(PartitionType.MODEL_DEF, PartitionType.WEIGHTS_DATA, PartitionType.TBE_KERNELS),
    *(PartitionType.CUST_AICPU_KERNELS, PartitionType.TASK_INFO, PartitionType.FLOW_MODEL),
    PartitionType.FLOW_SUBMODEL,
)
OM_INFO_TYPES: Final = (
    *(PartitionType.WEIGHTS_DATA, PartitionType.TBE_KERNELS, PartitionType.CUST_AICPU_KERNELS),
    *(PartitionType.TASK_INFO, PartitionType.SO_BINS),
)
"""What the sizes in `om_info_list` are of."""
_LARGE: Final = (PartitionType.WEIGHTS_DATA, PartitionType.TBE_KERNELS, PartitionType.CUST_AICPU_KERNELS)
_MAX_BYTES: Final = (1 << 32) - 1
"""Longest partition of a type that is not in `_LARGE`."""
_VT_LIST_INT: Final = 2
_ADVICE: Final = "move constants out of it, into the weights or external files"


def model_body(message: ge_ir.ModelDef, partitions: Sequence[tuple[int, Blob]], *, is_flow: bool = False) -> Blob:
    """Return table and partitions of one model; `om_info_list` of the message is brought up to date.

    Raises
    ------
    ValueError
        A reader would refuse the model: nothing is in it, it has too many partitions, or one that is too long.
    """
    _update_om_info(message, partitions)
    model_def = Blob.of(_serialised(message))
    if not model_def.size_bytes:
        raise ValueError("a model without name, version, graphs and attributes has no definition to write; name it")
    parts = [part for part in ((PartitionType.MODEL_DEF, model_def), *partitions) if part[1].size_bytes]
    parts.sort(key=lambda part: _ORDER.index(part[0]) if part[0] in _ORDER else len(_ORDER))
    _check(message.name, parts, MAX_FLOW_PARTITIONS if is_flow else MAX_PARTITIONS)
    return Blob.joined([Blob.of(_table(parts)), *(blob for _, blob in parts)])


def om_file(header: ModelFileHeader, bodies: Sequence[Blob]) -> Blob:
    """Return a whole file in dialect G3; version, lengths, checksum and number of models of the header are set."""
    written = replace(
        header,
        version=VERSION_2,
        checksum=bytes(64),
        length=0,
        model_num=len(bodies),
        model_length=sum(body.size_bytes for body in bodies),
    )
    return Blob.joined([Blob.of(written.pack()), *bodies])


def bundle_file(files: Sequence[Blob], variable_size: int) -> Blob:
    """Return a bundle of whole files.

    Its header has neither magic nor version, its length is that of the whole file, and the offsets in its table count
    from the end of the header, all as GE writes it.
    """
    size = Blob.of(variable_size.to_bytes(8, "little"))
    parts = [(PartitionType.BUNDLE_MODEL_VAR_INFO, size), *((PartitionType.BUNDLE_MODEL_INFO, file) for file in files)]
    table = _table(parts, WIDE_TABLE.table_bytes(len(parts)))
    header = ModelFileHeader(
        magic=0,
        headsize=0,
        version=0,
        modeltype=ModelType.MODEL_TYPE_BUNDLE_MODEL,
        model_num=len(files),
    )
    body = Blob.joined([Blob.of(table), *(blob for _, blob in parts)])
    head = replace(header, model_length=len(header.pack()) + body.size_bytes).pack()
    return Blob.joined([Blob.of(head), body])


def _serialised(message: ge_ir.ModelDef) -> bytes:
    try:
        data = message.SerializeToString(deterministic=True)
    except EncodeError as error:  # what protobuf says where it would be longer than it can count
        raise ValueError(f"the message of model {message.name!r} is too long: {error}; {_ADVICE}") from error
    if len(data) > MODEL_DEF_MAX_BYTES:
        size = f"{len(data)} B, protobuf allows {MODEL_DEF_MAX_BYTES} B"
        raise ValueError(f"the message of model {message.name!r} takes {size}; {_ADVICE}")
    return data


def _table(parts: Sequence[tuple[int, Blob]], mem_offset: int = 0) -> bytes:
    entries = []
    for kind, blob in parts:
        entries.append((kind, mem_offset, blob.size_bytes))
        mem_offset += blob.size_bytes
    return WIDE_TABLE.pack(entries)


def _check(name: str, parts: Sequence[tuple[int, Blob]], max_num: int) -> None:
    if len(parts) > max_num:
        raise ValueError(f"model {name!r} has {len(parts)} partitions, {max_num} at most are read")
    for kind, blob in parts:
        if kind not in _LARGE and blob.size_bytes > _MAX_BYTES:
            kind_name = partition_type_name(kind)
            reason = f"takes {blob.size_bytes} B, {_MAX_BYTES} B at most are read"
            raise ValueError(f"{kind_name} of model {name!r} {reason}")


def _update_om_info(message: ge_ir.ModelDef, partitions: Sequence[tuple[int, Blob]]) -> None:
    """Write the sizes of partitions into the list of a model that has one; old files have four of the five."""
    if OM_INFO_LIST_ATTR not in message.attr:
        return
    stored = message.attr[OM_INFO_LIST_ATTR].list
    sizes = dict(reversed([(kind, blob.size_bytes) for kind, blob in partitions]))
    stored.val_type = _VT_LIST_INT
    stored.i[:] = [sizes.get(kind, 0) for kind in OM_INFO_TYPES[: len(stored.i)]]
