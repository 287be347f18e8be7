"""One operator of a model: its names, offsets, attributes and tensor descriptions, restored when they are asked for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import DecodeError

from gevar.errors import ModelFileError
from gevar.om.allowance import Allowance, Fail
from gevar.om.attr_names import MARK, AttrNames
from gevar.om.op_def import Apart, StoredBytes, check_decoded, read_places
from gevar.om.source import ByteSource
from gevar.proto import ge_ir, ge_ir_outline
from gevar.proto.decoded_size import decoded_bytes
from gevar.proto.tensor_descriptor import is_user_attr, tensor_desc_from_proto
from gevar.types.tensor_desc import TensorDesc

VARIABLE = "Variable"
CONSTANT = "Const"
CONSTANTOP = "Constant"
FILECONSTANT = "FileConstant"
CONSTPLACEHOLDER = "ConstPlaceHolder"
"""Operator types, by GE's constants for them."""
CONST_TYPES = (CONSTANT, CONSTANTOP)
VARIABLE_TYPES = (VARIABLE, CONSTANTOP, FILECONSTANT, CONSTPLACEHOLDER)
IS_INPUT_CONST_ATTR = "is_input_const"
_DESC_BYTES: Final = 800
_DIM_BYTES: Final = 40
_ATTR_BYTES: Final = 800
"""What a description takes, a dimension of it, and an attribute beside what is in it."""


@dataclass(slots=True)
class NodeReader:
    """What all operators of one model need to be read, and the one that was decoded last.

    An operator in memory takes many times its bytes, so no other is kept; it is mostly asked several things in a row.
    """

    source: ByteSource
    names: AttrNames
    allowance: Allowance
    fail: Fail
    last: "tuple[OmNode, ge_ir.OpDef] | None" = field(default=None, repr=False)


class _WithLarge(Mapping[str, ge_ir.AttrDef]):
    """Attributes of which some are large, and are decoded when they are asked for."""

    def __init__(self, attrs: Mapping[str, ge_ir.AttrDef], node: "OmNode") -> None:
        self._attrs = attrs
        self._node = node

    def __contains__(self, name: object) -> bool:
        return name in self._attrs  # asking a map of protobuf for an item puts it there

    def __getitem__(self, name: str) -> ge_ir.AttrDef:
        return self._node._large_attr(name) if name in self._node._apart.attrs else self._attrs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._attrs)

    def __len__(self) -> int:
        return len(self._attrs)


class OmNode:
    """An operator as stored in a graph of a model.

    Attributes
    ----------
    type : str
        Operator type, such as "Variable".
    graph_name : str
        Name of its graph.

    Thread safety: any thread may read.

    Source: GE source, graph_metadef/proto/ge_ir.proto, OpDef.
    """

    __slots__ = ("_apart", "_attrs", "_outline", "_outputs", "_reader", "graph_name", "type")

    def __init__(self, outline: ge_ir_outline.OpDef, graph_name: str, reader: NodeReader, apart: Apart) -> None:
        self._outline = outline
        self.type = outline.type
        self._reader = reader
        self._apart = apart
        self.graph_name = graph_name
        self._attrs: Mapping[str, ge_ir.AttrDef] | None = None
        self._outputs: tuple[TensorDesc, ...] | None = None

    def __repr__(self) -> str:
        return f"<OmNode {self.name} ({self.type}) of graph {self.graph_name}>"

    @property
    def _op(self) -> ge_ir.OpDef:
        """All of the operator but what was left out, decoded at a question for more than its names and type."""
        last = self._reader.last
        if last is not None and last[0] is self:
            return last[1]
        wire = self._outline.SerializeToString()
        try:
            check_decoded(wire, ge_ir.OpDef, self._reader.allowance, f"node {self.name}")
            op = ge_ir.OpDef.FromString(wire)
        except ModelFileError:
            raise
        except (DecodeError, ValueError, RecursionError) as error:
            raise self._reader.fail(f"node {self.name} does not decode: {error}") from error
        self._reader.last = self, op
        return op

    def check_decodes(self) -> None:
        """Decode all of the operator but its largest attributes, at which only is looked.

        Raises
        ------
        ModelFileError
            It does not decode.
        """
        _ = self._op
        for name, places in self._apart.attrs.items():
            try:
                decoded_bytes(read_places(self._reader.source, places), ge_ir.AttrDef.DESCRIPTOR)
            except ModelFileError:
                raise
            except ValueError as error:
                raise self._does_not_decode(name, error) from error

    def _large_attr(self, stored: str) -> ge_ir.AttrDef:
        """Decode an attribute that was left out, if it does not take too much."""
        wire = read_places(self._reader.source, self._apart.attrs[stored])
        try:
            check_decoded(wire, ge_ir.AttrDef, self._reader.allowance, f"attribute {stored!r} of node {self.name}")
            return ge_ir.AttrDef.FromString(wire)
        except ModelFileError:
            raise
        except (DecodeError, ValueError, RecursionError) as error:
            raise self._does_not_decode(stored, error) from error

    def _does_not_decode(self, stored: str, error: Exception) -> ModelFileError:
        return self._reader.fail(f"attribute {stored!r} of node {self.name} does not decode: {error}")

    @property
    def _stored_attrs(self) -> Mapping[str, ge_ir.AttrDef]:
        return _WithLarge(self._op.attr, self) if self._apart.attrs else self._op.attr

    @property
    def name(self) -> str:
        """Name of the operator; for a variable, of the variable."""
        return self._outline.name

    @property
    def inputs(self) -> tuple[str, ...]:
        """Producer of each input as ``node:output``, "" for one that is not linked, then ``node:-1`` control edges."""
        return tuple(self._op.input)

    @property
    def input_i(self) -> tuple[int, ...]:
        """Logical offset of each linked input, in bytes."""
        return tuple(self._op.input_i)

    @property
    def output_i(self) -> tuple[int, ...]:
        """Logical offset of each output, in bytes; for a variable the first is its logical address."""
        return tuple(self._op.output_i)

    @property
    def subgraph_names(self) -> tuple[str, ...]:
        """Names of the graphs this operator owns."""
        return tuple(self._outline.subgraph_name)

    @property
    def is_input_const(self) -> tuple[bool, ...]:
        """Which inputs lie in the weights partition; from the attribute where the field is empty."""
        attr = None if self._op.is_input_const else self.attr(IS_INPUT_CONST_ATTR)
        return tuple(self._op.is_input_const if attr is None else attr.list.b)

    def attr(self, name: str) -> ge_ir.AttrDef | None:
        """Return one attribute by its plain name, None without it; quicker than `attrs` for one or two.

        Raises
        ------
        ModelFileError
            A compressed name or value has no place in the model's table.
        """
        return self._reader.names.find(self._stored_attrs, name)

    @property
    def attrs(self) -> Mapping[str, ge_ir.AttrDef]:
        """Attributes by plain name; do not change them. Inline tensor data of 32 KiB or more is left out.

        Raises
        ------
        ModelFileError
            A compressed name or value has no place in the model's table; a large one takes too much memory.
        """
        if self._attrs is None:
            self._attrs = self._reader.names.restore(self._stored_attrs)
        return self._attrs

    @property
    def input_descs(self) -> tuple[TensorDesc, ...]:
        """Description of each input."""
        return tuple(self.tensor_desc(desc) for desc in self._op.input_desc)

    @property
    def output_descs(self) -> tuple[TensorDesc, ...]:
        """Description of each output; the first of a variable is the variable's.

        Raises
        ------
        ModelFileError
            As `tensor_desc`; or they take too much memory, together with those of other operators, since they are kept.
        """
        if self._outputs is None:
            allowance, stored = self._reader.allowance, self._op.output_desc
            allowance.take(sum(map(_kept_bytes, stored)), f"descriptions of node {self.name}")
            self._outputs = tuple(self._tensor_desc(desc, allowance) for desc in stored)
        return self._outputs

    def data_apart(self, attr_name: str) -> StoredBytes | None:
        """Return the place of the tensor data that was left out of an attribute, in the MODEL_DEF partition."""
        for stored, place in self._apart.data.items():
            if self._reader.names.name(stored) == attr_name:
                return place
        return None

    def attr_name_rounds(self) -> int:
        """Return the largest number of tables that any attribute name of this operator goes through.

        Raises
        ------
        ModelFileError
            A compressed name has no place in the tables.
        """
        descs = (*self._op.input_desc, *self._op.output_desc)
        maps = (self._op.attr, *(desc.attr for desc in descs))
        return max((self._reader.names.rounds(stored) for attrs in maps for stored in attrs), default=0)

    def tensor_desc(self, stored: ge_ir.TensorDescriptor) -> TensorDesc:
        """Return a description of this operator, with plain attribute names.

        Raises
        ------
        ModelFileError
            A compressed name has no place in the tables, or a text is not UTF-8; or restored texts take too much.
        """
        return self._tensor_desc(stored, self._reader.allowance.anew())

    def _tensor_desc(self, stored: ge_ir.TensorDescriptor, allowance: Allowance) -> TensorDesc:
        desc = stored
        if any(name.startswith(MARK) for name in stored.attr):
            desc = ge_ir.TensorDescriptor()
            desc.CopyFrom(stored)
            self._reader.names.restore_in_place(desc.attr, allowance)
        return self.value_desc(desc)

    def value_desc(self, stored: ge_ir.TensorDescriptor) -> TensorDesc:
        """Return a description in the attributes of this operator, whose names are never compressed.

        Raises
        ------
        ModelFileError
            A text is not UTF-8.
        """
        try:
            return tensor_desc_from_proto(stored)
        except ModelFileError as error:
            raise self._reader.fail(f"node {self.name}: {error}") from error


def _kept_bytes(stored: ge_ir.TensorDescriptor) -> int:
    """What a description takes, with copies of its attributes."""
    attrs = sum(_attr_bytes(stored.attr[name]) for name in stored.attr if is_user_attr(name))
    return _DESC_BYTES + _DIM_BYTES * len(stored.shape.dim) + attrs + len(stored.attr_groups.SerializeToString())


def _attr_bytes(attr: ge_ir.AttrDef) -> int:
    size_bytes = attr.ByteSize()
    if size_bytes < _ATTR_BYTES // 8:
        return _ATTR_BYTES
    return _ATTR_BYTES + decoded_bytes(attr.SerializeToString(), ge_ir.AttrDef.DESCRIPTOR)
