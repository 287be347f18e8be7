"""The parts of a file that a model made by hand gives: its message, its other partitions and the header.

Source: GE source, compiler/graph/build/model_builder.cc.
"""

from collections.abc import Mapping

from gevar.om.graph_writer import OM_IR_VERSION, PLATFORM_VERSION, GraphWriter
from gevar.om.header import NAME_MAX_BYTES, ModelFileHeader
from gevar.om.inout_info import MAX_BYTES as INOUT_INFO_MAX_BYTES
from gevar.om.inout_writer import pack_inout_info
from gevar.om.kernel_store import KERNEL_ITEM_HEAD, KERNEL_ITEM_MAGIC, MAX_ITEMS, MAX_NAME_BYTES
from gevar.om.memory_plan import MemoryPlan, VariableSpace, plan_memory
from gevar.om.model_def import MAX_BYTES as MODEL_DEF_MAX_BYTES
from gevar.om.model_spec import OmModelSpec
from gevar.om.node import CONSTANT
from gevar.om.partition import PartitionType
from gevar.om.stored_bytes import Blob
from gevar.proto import ge_ir, task

_PLATFORM_TYPE_MINI = 1


def spec_parts(model: OmModelSpec, space: VariableSpace | None = None) -> tuple[ge_ir.ModelDef, list[tuple[int, Blob]]]:
    """Return the message of a model and its other partitions.

    Parameters
    ----------
    model
        The model.
    space
        Variable space that it shares with others; by default one of its own.

    Raises
    ------
    ValueError
        A reader would refuse the model, or its variables have no room; see `gevar.om.writer.write_om`.
    OSError, ModelFileError
        Data cannot be read.
    """
    _check_inline_bytes(model)
    plan = plan_memory(model, space)
    inout = pack_inout_info(model)
    if len(inout) > INOUT_INFO_MAX_BYTES:
        raise ValueError(
            f"inputs and outputs of model {model.name[:40]} take {len(inout)} B in the file, {INOUT_INFO_MAX_BYTES} B "
            "at most are read; give them shorter names"
        )
    partitions: list[tuple[int, Blob]] = [
        (PartitionType.MODEL_INOUT_INFO, Blob.of(inout)),
        (PartitionType.WEIGHTS_DATA, plan.weights.blob),
        (PartitionType.TBE_KERNELS, Blob.of(_kernel_store(model.kernels))),
        (PartitionType.TASK_INFO, Blob.of(_tasks(plan))),
    ]
    return GraphWriter(model, plan).model_def(), partitions


def _tasks(plan: MemoryPlan) -> bytes:
    message = task.ModelTaskDef(
        version="1.0", memory_size=plan.memory_size, stream_num=1, weight_size=plan.weights.size_bytes
    )
    return message.SerializeToString(deterministic=True)


def _check_inline_bytes(model: OmModelSpec) -> None:
    """Refuse data that the message of the model cannot hold, before it is made."""
    inline_bytes = 0
    for node in model.nodes:
        if node.data is not None and node.type != CONSTANT:
            inline_bytes += node.data.nbytes
    if inline_bytes > MODEL_DEF_MAX_BYTES:
        raise ValueError(
            f"model {model.name} has {inline_bytes} B inside its message, protobuf allows {MODEL_DEF_MAX_BYTES} B; "
            "make the large ones Const, whose bytes lie outside, or use external weights"
        )


def spec_header(model: OmModelSpec) -> ModelFileHeader:
    """Return the header of a model's file."""
    return ModelFileHeader(
        name=model.name.encode()[:NAME_MAX_BYTES].decode(errors="ignore"),
        om_ir_version=OM_IR_VERSION,
        platform_version=PLATFORM_VERSION,
        platform_type=_PLATFORM_TYPE_MINI,
    )


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
