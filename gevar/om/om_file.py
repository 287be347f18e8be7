"""OM files: opening, and the models inside.

A file holds one static model; or a sequence of models of which the first is the root (dynamic file); or a flow model,
whose sub-models are OM files of their own; or, when asked for, a bundle of OM files. Opening reads the header and the
partition tables, of nested OM files too; everything else is read when it is asked for. Weights are never touched.

Source: GE source, base/common/helper/om_file_helper.cc, model_helper.cc.
"""

import struct
from dataclasses import dataclass
from os import PathLike
from typing import Literal, Self, get_args

from gevar.errors import ModelFileError
from gevar.om.allowance import FileAllowance
from gevar.om.header import HEADER_BYTES, Dialect, read_header
from gevar.om.model import OmModel
from gevar.om.partition import (
    ALIGN_BYTES,
    MAX_FLOW_PARTITIONS,
    MAX_PARTITIONS,
    NARROW_TABLE,
    WIDE_TABLE,
    Partition,
    PartitionType,
    read_bundle_table,
    read_table,
)
from gevar.om.source import ByteSource
from gevar.om.wire import LENGTH_DELIMITED, read_text, walk_fields
from gevar.status import ACL_ERROR_INVALID_PARAM, FAILED

Kind = Literal["model", "bundle"]

MAX_MODELS = 16384
"""Most models of a dynamic file; GE sets no limit, this one bounds the work on a damaged file."""
MAX_DEPTH = 4
"""Deepest nesting of OM files in flow models; GE writes one level."""
MAX_NESTED = 16384
"""Most nested OM files of one file at all depths; bounds the work on a damaged file."""

_VARIABLE_SIZE = struct.Struct("<q")
_SUBMODEL_MODEL_NAME, _SUBMODEL_MODEL_TYPE, _SUBMODEL_OM_DATA, _SUBMODEL_OM_PATH = 1, 2, 3, 9
"""Field numbers of ge.flow_model.proto.SubmodelDef."""


@dataclass(frozen=True, slots=True)
class SubModel:
    """An OM file inside a flow model or a bundle.

    `om` is None where the flow model names a file (`om_data_file_path`) or has only a graph. In a bundle the name is
    that of the nested header and the type is "".
    """

    name: str
    model_type: str
    om: "OmFile | None"
    om_data_file_path: str = ""


class OmFile:
    """An opened OM file; close it with `close`, `with`, or by dropping it.

    Attributes
    ----------
    source : ByteSource
        The bytes of the file, or of the part that a nested OM takes.
    header : ModelFileHeader
        Every header field.
    models : list of OmModel
        One for a static file, the root and its sub-models for a dynamic one, none for a bundle.
    submodels : list of SubModel
        The OM files inside a flow model or a bundle.
    partitions : list of Partition
        Those of all tables of this file, in order, without those of nested files.
    bundle_variable_size : int or None
        Bytes of variable space that the models of a bundle share; None for other files.

    Thread safety: any thread may read; one may close when the others are done.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from gevar import OmBuilder, open_om
    >>> builder = OmBuilder("tiny")
    >>> builder.output(builder.const("w", np.ones((2, 3), np.float32)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     builder.write(f"{folder}/tiny.om")
    ...     with open_om(f"{folder}/tiny.om") as om:
    ...         print(om.dialect, [(const.name, const.size_bytes) for const in om.models[0].const_nodes()])
    G3 [('w', 24)]
    """

    def __init__(self, source: ByteSource, kind: Kind = "model", *, _outer: "OmFile | None" = None) -> None:
        if kind not in get_args(Kind):
            raise ValueError(f"kind is {kind!r}; give one of {', '.join(get_args(Kind))}")
        self.source = source
        self.header = read_header(source, bundle=kind == "bundle")
        self.models: list[OmModel] = []
        self.submodels: list[SubModel] = []
        self.partitions: list[Partition] = []
        self.bundle_variable_size: int | None = None
        self._depth: int = 0 if _outer is None else _outer._depth + 1
        self._outermost: OmFile = self if _outer is None else _outer._outermost
        self._nested_count = 0
        self._allowance: FileAllowance = FileAllowance(source.size_bytes) if _outer is None else _outer._allowance
        if kind == "bundle":
            self._read_bundle()
        else:
            self._read_models()

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, name: str = "<bytes>", *, kind: Kind = "model") -> Self:
        """Open an OM file that lies in memory, without a copy.

        Raises
        ------
        ModelFileError, ValueError
            As `open_om`; `name` stands for the file.
        """
        if not memoryview(data).nbytes:
            raise ModelFileError(name, 0, "magic", "an empty buffer", status=ACL_ERROR_INVALID_PARAM)
        return cls(ByteSource.of_bytes(data, name), kind)

    @property
    def path(self) -> str:
        """Path of the file, or the name of the bytes."""
        return self.source.name

    @property
    def size_bytes(self) -> int:
        """Size of the file, or of the nested OM."""
        return self.source.size_bytes

    @property
    def dialect(self) -> Dialect:
        """Form of header and table: G1, G2, G3 or M."""
        return self.header.dialect

    @property
    def is_bundle(self) -> bool:
        """Whether the file was opened as a bundle."""
        return self.bundle_variable_size is not None

    def close(self) -> None:
        """Close the file; a second call does nothing. What was decoded, and views of data, stay usable."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read_models(self) -> None:
        header = self.header
        if header.is_dynamic and not header.is_flow:
            self._read_sequence(header.model_num)
            return
        layout = WIDE_TABLE if header.has_wide_table else NARROW_TABLE
        max_num = MAX_FLOW_PARTITIONS if header.is_flow else MAX_PARTITIONS
        self.partitions = read_table(self.source, HEADER_BYTES, layout, max_num)
        self._check_end(padding_bytes=ALIGN_BYTES - 1)
        mobile = self.dialect == Dialect.M
        self.models = [
            OmModel(
                self.source,
                0,
                self.partitions,
                None,
                allowance=self._allowance,
                mobile=mobile,
                weights_elsewhere=header.is_flow,
            )
        ]
        if header.is_flow:
            self._read_submodels()

    def _read_sequence(self, count: int) -> None:
        """Read the tables of a dynamic file."""
        if not 1 <= count <= MAX_MODELS:
            raise self.source.error(156, "model_num", f"{count} models in a dynamic file, 1 to {MAX_MODELS} are read")
        layout = WIDE_TABLE if self.header.has_wide_table else NARROW_TABLE
        start = HEADER_BYTES
        for index in range(count):
            partitions = read_table(self.source, start, layout, MAX_PARTITIONS)
            root = self.models[0] if self.models else None
            elsewhere = index == 0 and count > 1
            model = OmModel(
                self.source, index, partitions, root, allowance=self._allowance, weights_elsewhere=elsewhere
            )
            self.models.append(model)
            self.partitions.extend(partitions)
            start = max(layout.table_bytes(len(partitions)) + start, *(part.end for part in partitions))
        self._check_end(padding_bytes=0)

    def _check_end(self, padding_bytes: int) -> None:
        """Refuse bytes behind the last partition, but for the padding of a writer that aligns."""
        end = max(partition.end for partition in self.partitions)
        left = self.source.size_bytes - end
        if left > padding_bytes:
            models = f"{self.header.model_num} models" if self.header.is_dynamic else "the model"
            reason = f"{left} B are left over after {models}"
            raise self.source.error(end, "partition table", reason, status=FAILED if self.header.is_dynamic else None)

    def _read_submodels(self) -> None:
        for partition in self.partitions:
            if partition.type == PartitionType.FLOW_SUBMODEL:
                part = self.source.range(partition.file_offset, partition.mem_size, "FLOW_SUBMODEL")
                self.submodels.append(self._submodel(part))

    def _submodel(self, part: ByteSource) -> SubModel:
        """Find the nested OM where it lies, without decoding the message around it."""
        texts = {_SUBMODEL_MODEL_NAME: "", _SUBMODEL_MODEL_TYPE: "", _SUBMODEL_OM_PATH: ""}
        om: OmFile | None = None
        for field in walk_fields(part, 0, part.size_bytes, "FLOW_SUBMODEL"):
            if field.wire_type != LENGTH_DELIMITED:
                continue
            if field.number in texts:
                texts[field.number] = read_text(part, field, "FLOW_SUBMODEL")
            elif field.number == _SUBMODEL_OM_DATA and field.end > field.value_start:
                om = self._nested(part.range(field.value_start, field.end - field.value_start, "om_data"))
        return SubModel(
            texts[_SUBMODEL_MODEL_NAME], texts[_SUBMODEL_MODEL_TYPE], om, texts[_SUBMODEL_OM_PATH]
        )  # fmt: skip

    def _nested(self, source: ByteSource) -> "OmFile":
        self._outermost._nested_count += 1
        if self._depth == MAX_DEPTH or self._outermost._nested_count > MAX_NESTED:
            reason = f"OM files nested deeper than {MAX_DEPTH} levels, or more than {MAX_NESTED} of them"
            raise source.error(0, "om_data", reason)
        return OmFile(source, _outer=self)

    def _read_bundle(self) -> None:
        self.partitions = read_bundle_table(self.source, HEADER_BYTES)
        self.bundle_variable_size = self._read_variable_size()
        models = [partition for partition in self.partitions if partition.type == PartitionType.BUNDLE_MODEL_INFO]
        if len(models) != self.header.model_num or not models:
            reason = f"{len(models)} models in the table, the header's model_num is {self.header.model_num}"
            raise self.source.error(HEADER_BYTES, "partition table", reason)
        for partition in models:
            om = self._nested(self.source.range(partition.file_offset, partition.mem_size, "BUNDLE_MODEL_INFO"))
            self.submodels.append(SubModel(om.header.name, "", om))

    def _read_variable_size(self) -> int:
        """Return what a bundle says of its variable space; 0 for the first bundles, which say nothing."""
        found = [part for part in self.partitions if part.type == PartitionType.BUNDLE_MODEL_VAR_INFO]
        if not found:
            return 0
        field, part = PartitionType.BUNDLE_MODEL_VAR_INFO.name, found[0]
        if part.mem_size != _VARIABLE_SIZE.size:
            raise self.source.error(part.file_offset, field, f"{part.mem_size} B, {_VARIABLE_SIZE.size} B expected")
        (size_bytes,) = _VARIABLE_SIZE.unpack(self.source.read(part.file_offset, part.mem_size, field))
        if size_bytes < 0:
            raise self.source.error(part.file_offset, field, f"a variable space of {size_bytes} B")
        return int(size_bytes)


def open_om(path: str | PathLike[str], *, kind: Kind = "model") -> OmFile:
    """Open an OM file for reading.

    Parameters
    ----------
    path
        The file; it is opened once and read where needed.
    kind
        "model" for every OM file but a bundle, "bundle" for a bundle only, as GE has separate functions for them.

    Raises
    ------
    ModelFileError
        The path cannot be opened; or the file is empty, too short, an OM2 package, of another kind or version,
        encrypted; or its lengths, tables or nested OM files contradict the file. Nothing stays open.
    ValueError
        `kind` is another one.

    Examples
    --------
    >>> from gevar.om import open_om
    >>> open_om("missing.om")
    Traceback (most recent call last):
    gevar.errors.ModelFileError: missing.om: file at offset 0: cannot be opened: ...
    """
    source = ByteSource.of_file(path)
    try:
        return OmFile(source, kind)
    except BaseException:
        source.close()
        raise
