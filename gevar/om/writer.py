"""Writing an OM file in the newest dialect (G3), with wide tables: a model made by hand, or a file in parsed form.

Source: GE source, base/common/helper/om_file_helper.cc and model_helper.cc.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from gevar.graph import Model
from gevar.om.atomic_file import write_atomically
from gevar.om.attr_names_writer import compress as compress_names
from gevar.om.external_weights_writer import ExternalWeightMode, ExternalWeightsWriter, movable_nodes
from gevar.om.graph_writer import OM_IR_VERSION, PLATFORM_VERSION, GraphWriter
from gevar.om.header import NAME_MAX_BYTES, ModelFileHeader
from gevar.om.inout_info import MAX_BYTES as INOUT_INFO_MAX_BYTES
from gevar.om.inout_writer import pack_inout_info
from gevar.om.kernel_store import KERNEL_ITEM_HEAD, KERNEL_ITEM_MAGIC, MAX_ITEMS, MAX_NAME_BYTES
from gevar.om.memory_plan import MemoryPlan, plan_memory
from gevar.om.model_def import MAX_BYTES as MODEL_DEF_MAX_BYTES
from gevar.om.model_spec import OmModelSpec
from gevar.om.node import CONSTANT
from gevar.om.partition import PartitionType
from gevar.om.partition_writer import model_body, om_file
from gevar.om.root_model import GeModel, GeRootModel
from gevar.om.root_model_writer import root_model_blob
from gevar.om.stored_bytes import Blob
from gevar.proto import ge_ir, task

_PLATFORM_TYPE_MINI = 1


def write_om(
    path: str | os.PathLike[str],
    model: OmModelSpec | GeRootModel,
    *,
    compress: bool = False,
    external_weight: ExternalWeightMode = 0,
    weight_dir: str | os.PathLike[str] | None = None,
) -> None:
    """Write an OM file.

    The same model gives the same bytes. Data that are `SparseBytes` become holes in the file; of streamed data a few
    mebibytes are in memory at a time.

    Parameters
    ----------
    path
        The file; one that exists is replaced.
    model
        What to write: a model from `OmBuilder`, or a file in parsed form from `GeRootModel.from_om`.
    compress
        Whether attribute names become numbers. A file in parsed form says so itself.
    external_weight
        Where the bytes of constants go: 0 into the file, 1 into a file for each content, 2 into one file, as GE's
        option `ge.externalWeight`. Only for a model from `OmBuilder`.
    weight_dir
        Folder for external weights; by default `weight` beside the file, where a loader looks for them.

    Raises
    ------
    ValueError
        A reader would refuse the model: its message would exceed protobuf's 2 GiB, its inputs and outputs 16 MiB, its
        kernels their number or the length of a name, its partitions their number or 4 GiB. Or the variables need more
        room than the model gives them, data inside the message or in an external file are sparse, or the models of a
        bundle disagree on a variable. Or an option does not go with a file in parsed form.
    GraphError
        A graph contradicts itself.
    OSError, ModelFileError
        The file cannot be written, or data cannot be read.

    Notes
    -----
    After failure: `path` and the folder of weights are as they were before; nothing else is left. The file appears
    under its name complete, after its weights.
    Thread safety: may be called from several threads, also for one path; the last to finish wins.
    """
    target = Path(path)
    if isinstance(model, GeRootModel):
        if compress or external_weight:
            raise ValueError(
                "a file in parsed form is written as it is; set its is_compressed, or build the model anew"
            )
        write_atomically(target, root_model_blob(model).write_to)
        return
    if not external_weight or not movable_nodes(model):
        write_atomically(target, _blob(model, compress=compress).write_to)
        return
    folder = target.parent / "weight" if weight_dir is None else Path(weight_dir)
    with ExternalWeightsWriter(folder, external_weight, prefix=target.stem) as weights:
        blob = _blob(weights.move_out(model), compress=compress)
        write_atomically(target, blob.write_to, before_naming=weights.write_meta)
        weights.commit()


def parsed(model: OmModelSpec) -> GeRootModel:
    """Return a model from `OmBuilder` in the form that a file is parsed to, for a bundle or for changes to its graph.

    Raises
    ------
    ValueError
        As `write_om`.
    """
    message, partitions = _message(model)
    return GeRootModel(_header(model), [GeModel(Model.from_proto(message), partitions)])


def _blob(model: OmModelSpec, *, compress: bool) -> Blob:
    message, partitions = _message(model)
    if compress:
        compress_names([message])
    return om_file(_header(model), [model_body(message, partitions)])


def _message(model: OmModelSpec) -> tuple[ge_ir.ModelDef, list[tuple[int, Blob]]]:
    """Return the message of a model and its other partitions."""
    _check_inline_bytes(model)
    plan = plan_memory(model)
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


def _header(model: OmModelSpec) -> ModelFileHeader:
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
