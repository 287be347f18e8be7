"""Writing an OM file: one static model in the newest dialect (G3), with a wide table.

The file is the 256-byte header, the table, and the partitions back to back in GE's order: MODEL_INOUT_INFO, MODEL_DEF,
WEIGHTS_DATA, TBE_KERNELS, TASK_INFO; one without bytes is left out.

Source: GE source, base/common/helper/om_file_helper.cc and model_helper.cc.
"""

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from gevar.om.graph_writer import OM_IR_VERSION, PLATFORM_VERSION, GraphWriter, inline_data
from gevar.om.header import NAME_MAX_BYTES, ModelFileHeader
from gevar.om.inout_info import MAX_BYTES as INOUT_INFO_MAX_BYTES
from gevar.om.inout_writer import pack_inout_info
from gevar.om.kernel_store import KERNEL_ITEM_HEAD, KERNEL_ITEM_MAGIC, MAX_ITEMS, MAX_NAME_BYTES
from gevar.om.memory_plan import MemoryPlan, plan_memory
from gevar.om.model_def import MAX_BYTES as MODEL_DEF_MAX_BYTES
from gevar.om.model_spec import OmModelSpec
from gevar.om.node import CONSTANT
from gevar.om.partition import WIDE_TABLE, PartitionType
from gevar.proto import task

_PLATFORM_TYPE_MINI = 1


class _Part(NamedTuple):
    """A partition to be written: `pieces` are (offset, bytes); what lies between them is zeros."""

    type: PartitionType
    size_bytes: int
    pieces: Sequence[tuple[int, bytes | memoryview]]


def write_om(path: str | os.PathLike[str], model: OmModelSpec) -> None:
    """Write a model as an OM file.

    The same model gives the same bytes. Data of a Const that are `SparseBytes` become holes in the file.

    Parameters
    ----------
    path
        The file; one that exists is replaced.
    model
        What to write, from `OmBuilder`.

    Raises
    ------
    ValueError
        A reader would refuse the model: its message would exceed protobuf's 2 GiB, its inputs and outputs 16 MiB, its
        kernels their number or the length of a name. Or the variables need more room than the model gives them, or
        data inside the message are sparse.
    OSError
        The file cannot be written.

    Notes
    -----
    After failure: `path` is as it was before; nothing else is left. The file appears under its name complete.
    Thread safety: may be called from several threads, also for one path; the last to finish wins.
    """
    plan = plan_memory(model)
    parts = _parts(model, plan)
    header, table = _head(model, parts)

    def write(file: BinaryIO) -> None:
        file.write(header + table)
        start = len(header) + len(table)
        for part in parts:
            for offset, data in part.pieces:
                file.seek(start + offset)
                file.write(data)
            start += part.size_bytes
        file.truncate(start)

    _write_atomically(Path(path), write)


def _parts(model: OmModelSpec, plan: MemoryPlan) -> list[_Part]:
    _check_inline_bytes(model)
    weight_size = plan.weights.size_bytes
    inout = pack_inout_info(model)
    if len(inout) > INOUT_INFO_MAX_BYTES:
        raise ValueError(
            f"inputs and outputs of model {model.name[:40]} take {len(inout)} B in the file, {INOUT_INFO_MAX_BYTES} B "
            "at most are read; give them shorter names"
        )
    kernels = _kernel_store(model.kernels)
    tasks = task.ModelTaskDef(
        version="1.0", memory_size=plan.memory_size, stream_num=1, weight_size=weight_size
    ).SerializeToString(deterministic=True)
    model_def = GraphWriter(model, plan).model_def([weight_size, len(kernels), 0, len(tasks), 0])
    parts = [
        _part(PartitionType.MODEL_INOUT_INFO, inout),
        _part(PartitionType.MODEL_DEF, model_def.SerializeToString(deterministic=True)),
        _Part(PartitionType.WEIGHTS_DATA, weight_size, plan.weights.pieces),
        _part(PartitionType.TBE_KERNELS, kernels),
        _part(PartitionType.TASK_INFO, tasks),
    ]
    return [part for part in parts if part.size_bytes]


def _check_inline_bytes(model: OmModelSpec) -> None:
    """Refuse data that the message of the model cannot hold, before it is made."""
    inline_bytes = sum(inline_data(node).nbytes for node in model.nodes if node.data and node.type != CONSTANT)
    if inline_bytes > MODEL_DEF_MAX_BYTES:
        raise ValueError(
            f"model {model.name} has {inline_bytes} B inside its message, protobuf allows {MODEL_DEF_MAX_BYTES} B; "
            "make the large ones Const, whose bytes lie outside"
        )


def _part(kind: PartitionType, data: bytes) -> _Part:
    return _Part(kind, len(data), [(0, data)])


def _head(model: OmModelSpec, parts: Sequence[_Part]) -> tuple[bytes, bytes]:
    """Return the header and the table."""
    entries, mem_offset = [], 0
    for part in parts:
        entries.append((part.type, mem_offset, part.size_bytes))
        mem_offset += part.size_bytes
    table = WIDE_TABLE.pack(entries)
    header = ModelFileHeader(
        name=model.name.encode()[:NAME_MAX_BYTES].decode(errors="ignore"),
        om_ir_version=OM_IR_VERSION,
        platform_version=PLATFORM_VERSION,
        platform_type=_PLATFORM_TYPE_MINI,
        model_length=len(table) + mem_offset,
    )
    return header.pack(), table


def _kernel_store(kernels: Mapping[str, bytes]) -> bytes:
    if len(kernels) > MAX_ITEMS:
        raise ValueError(f"the model has {len(kernels)} kernels, {MAX_ITEMS} at most are read")
    items = []
    for name, binary in kernels.items():
        encoded = name.encode()
        if len(encoded) > MAX_NAME_BYTES:
            raise ValueError(f"kernel name {name[:40]}… takes {len(encoded)} B, {MAX_NAME_BYTES} B at most are read")
        items += [KERNEL_ITEM_HEAD.pack(KERNEL_ITEM_MAGIC, len(encoded), len(binary)), encoded, binary]
    return b"".join(items)


def _write_atomically(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Write a new file beside the path and give it the name when it is complete and on the disk."""
    draft = path.with_name(f".gevar-{secrets.token_hex(8)}.tmp")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
