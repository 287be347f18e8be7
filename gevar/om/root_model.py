"""What an OM file holds, in parsed form: graphs to look at and change, and the bytes of everything else.

::

    GeRootModel          a file: header, and either models or nested files
    ├── models           one GeModel of a static file, root and sub-models of a dynamic one, the root of a flow model
    │   ├── model        graphs and attributes (`gevar.graph`), names plain
    │   └── partitions   everything beside MODEL_DEF: weights, kernels, tasks …
    └── nested           the files inside a flow model or a bundle

Source: GE source, base/common/model/ge_root_model.h and ge_model.h.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Self

from gevar.graph import Model
from gevar.om.header import Dialect, ModelFileHeader, ModelType
from gevar.om.mobile_model import to_server_numbers
from gevar.om.model import OmModel
from gevar.om.model_def import TASKS_ATTR
from gevar.om.om_file import OmFile
from gevar.om.op_def import WHAT, merge_piece
from gevar.om.partition import PartitionType, partition_type_name
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import Blob, StreamedBytes
from gevar.om.wire import LENGTH_DELIMITED, read_text, walk_fields
from gevar.proto import flow_model, ge_ir, task
from gevar.proto.parse import parse_message


@dataclass(slots=True)
class GeModel:
    """One model of a file.

    Attributes
    ----------
    model
        Its graphs and attributes. The names are plain; the lists that a compressed model keeps its names in stay
        among the attributes.
    partitions
        The type and bytes of every partition but MODEL_DEF.
    """

    model: Model
    partitions: list[tuple[int, Blob]] = field(default_factory=list)

    def partition(self, number: PartitionType) -> Blob:
        """Return the bytes of the first partition of a type; none for one that is not there."""
        return next((blob for kind, blob in self.partitions if kind == number), Blob(0, ()))

    def set_weights(self, weights: Blob) -> None:
        """Replace the weights partition; the sizes of it in the model and its task list follow.

        Constants keep their offsets: the new bytes must have the layout of the old ones.
        """
        kinds = [kind for kind, _ in self.partitions]
        if PartitionType.WEIGHTS_DATA in kinds:
            self.partitions[kinds.index(PartitionType.WEIGHTS_DATA)] = (PartitionType.WEIGHTS_DATA, weights)
        else:
            self.partitions.append((PartitionType.WEIGHTS_DATA, weights))
        self.model.attrs["weight_size"] = weights.size_bytes
        if PartitionType.TASK_INFO in kinds:
            index = kinds.index(PartitionType.TASK_INFO)
            tasks = parse_message(task.ModelTaskDef, self.partitions[index][1].read())
            tasks.weight_size = weights.size_bytes
            data = tasks.SerializeToString(deterministic=True)
            self.partitions[index] = (PartitionType.TASK_INFO, Blob.of(data))
            if TASKS_ATTR in self.model.attrs:
                self.model.attrs[TASKS_ATTR] = data


@dataclass(slots=True)
class NestedModel:
    """A file inside another: `message` is what a flow model says about it, without the file; empty in a bundle."""

    root: "GeRootModel | None"
    message: flow_model.SubmodelDef = field(default_factory=flow_model.SubmodelDef)


@dataclass(slots=True)
class GeRootModel:
    """An OM file in parsed form.

    Attributes
    ----------
    header
        Header of the file. The writer computes lengths, version and number of models; the rest is written as it is.
    models
        The models of the file, the root first; none for a bundle.
    nested
        The files inside a flow model or a bundle.
    is_compressed
        Whether attribute names are numbers in the file.
    bundle_variable_size
        Bytes of variable space that the models of a bundle share; None for other files.
    """

    header: ModelFileHeader
    models: list[GeModel] = field(default_factory=list)
    nested: list[NestedModel] = field(default_factory=list)
    is_compressed: bool = False
    bundle_variable_size: int | None = None

    @classmethod
    def from_om(cls, om: OmFile) -> Self:
        """Parse an opened file, which must stay open until the result was written: large parts stay in it.

        Raises
        ------
        ModelFileError
            Something is damaged; or the file has a form that the writer does not know: an executable OM, or mobile
            partitions that the other dialects do not have.
        GraphError
            A graph contradicts itself.
        """
        found = cls(om.header, bundle_variable_size=om.bundle_variable_size)
        mobile = om.dialect is Dialect.M
        for model in om.models:
            flow = om.header.is_flow
            found.models.append(_ge_model(model, mobile=mobile, skip=(PartitionType.FLOW_SUBMODEL,) if flow else ()))
        found.is_compressed = any(model.is_compressed for model in om.models)
        if mobile:
            found.header = replace(om.header, modeltype=ModelType.MODEL_TYPE_IR_MODEL)
        found.nested = list(_nested(om))
        return found


_UNKNOWN_FORMS = frozenset(
    {
        *(PartitionType.STATIC_TASK_DESC, PartitionType.DYNAMIC_TASK_DESC, PartitionType.TASK_PARAM),
        *(PartitionType.PRE_MODEL_DESC, PartitionType.PRE_MODEL_SQE, PartitionType.PRE_KERNEL_ARGS),
        PartitionType.PRE_MODEL_DESC_EXTEND,
    }
)


def _ge_model(model: OmModel, *, mobile: bool, skip: tuple[int, ...]) -> GeModel:
    found = GeModel(_model(model, mobile=mobile))
    for partition in model.partitions:
        name = partition_type_name(partition.type, mobile=mobile)
        if mobile and partition.type > PartitionType.TASK_INFO:
            reason = (
                f"a mobile model with the partition {name} is not written, the other dialects have no such partition"
            )
            raise model.source.error(partition.file_offset, name, reason)
        if partition.type in _UNKNOWN_FORMS:
            raise model.source.error(partition.file_offset, name, "an executable OM is not written; convert the model")
        if partition.type not in (PartitionType.MODEL_DEF, *skip):
            content = StreamedBytes.of_source(model.source, partition.file_offset, partition.mem_size, name)
            found.partitions.append((partition.type, Blob.of(content)))
    return found


def _model(model: OmModel, *, mobile: bool) -> Model:
    if mobile:
        message = model.model_def()
        to_server_numbers(message)
        found = Model.from_proto(message)
    else:
        found = model.graph_ir()
    source = model.partition_source(PartitionType.MODEL_DEF)
    if source is not None and (tasks := _tasks_attr(source)) is not None:
        found.attrs.set_proto(TASKS_ATTR, tasks)
    return found


def _tasks_attr(source: ByteSource) -> ge_ir.AttrDef | None:
    """Return the model attribute `tasks`, which decoding leaves out; `source` is the MODEL_DEF partition."""
    number = ge_ir.ModelDef.DESCRIPTOR.fields_by_name["attr"].number
    for item in walk_fields(source, 0, source.size_bytes, WHAT):
        if item.number != number or item.wire_type != LENGTH_DELIMITED:
            continue
        for part in walk_fields(source, item.value_start, item.end, WHAT):
            if part.number == 1 and read_text(source, part, WHAT) == TASKS_ATTR:
                message = ge_ir.ModelDef()
                merge_piece(message, source, item.start, item.end, WHAT)
                return message.attr[TASKS_ATTR]
    return None


def _nested(om: OmFile) -> Iterator[NestedModel]:
    """Yield the files inside a file, with what a flow model says about each."""
    messages: Iterator[flow_model.SubmodelDef | None] = iter(())
    if om.header.is_flow:
        parts = [part for part in om.partitions if part.type == PartitionType.FLOW_SUBMODEL]
        messages = (_submodel_def(om.source.read(part.file_offset, part.mem_size, "FLOW_SUBMODEL")) for part in parts)
    for submodel in om.submodels:
        root = None if submodel.om is None else GeRootModel.from_om(submodel.om)
        message = next(messages, None)
        yield NestedModel(root) if message is None else NestedModel(root, message)


def _submodel_def(data: bytes) -> flow_model.SubmodelDef:
    message = parse_message(flow_model.SubmodelDef, data)
    message.om_data = b""
    return message
