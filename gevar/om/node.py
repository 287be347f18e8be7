"""One operator of a model: its names, offsets, attributes and tensor descriptions, restored when they are asked for."""

from collections.abc import Callable, Mapping

from google.protobuf.message import DecodeError

from gevar.errors import ModelFileError
from gevar.om.attr_names import MARK, AttrNames
from gevar.om.model_def import StoredBytes
from gevar.proto import ge_ir, ge_ir_outline
from gevar.proto.tensor_descriptor import tensor_desc_from_proto
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

    __slots__ = ("_apart", "_attrs", "_fail", "_names", "_op_def", "_outline", "_outputs", "graph_name", "type")

    def __init__(
        self,
        outline: ge_ir_outline.OpDef,
        graph_name: str,
        names: AttrNames,
        apart: Mapping[str, StoredBytes],
        fail: Callable[[str], ModelFileError],
    ) -> None:
        self._outline = outline
        self.type = outline.type
        self._names = names
        self._apart = apart
        self._fail = fail
        self.graph_name = graph_name
        self._op_def: ge_ir.OpDef | None = None
        self._attrs: Mapping[str, ge_ir.AttrDef] | None = None
        self._outputs: tuple[TensorDesc, ...] | None = None

    def __repr__(self) -> str:
        return f"<OmNode {self.name} ({self.type}) of graph {self.graph_name}>"

    @property
    def _op(self) -> ge_ir.OpDef:
        """All of the operator, decoded at the first question for more than its names and type."""
        if self._op_def is None:
            try:
                self._op_def = ge_ir.OpDef.FromString(self._outline.SerializeToString())
            except (DecodeError, RecursionError) as error:
                raise self._fail(f"node {self.name} does not decode: {error}") from error
        return self._op_def

    def check_decodes(self) -> None:
        """Decode all of the operator, and forget it.

        Raises
        ------
        ModelFileError
            It does not decode.
        """
        if self._op_def is None:
            _ = self._op
            self._op_def = None

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
        return self._names.find(self._op.attr, name)

    @property
    def attrs(self) -> Mapping[str, ge_ir.AttrDef]:
        """Attributes by plain name; do not change them. Inline tensor data of 32 KiB or more is left out.

        Raises
        ------
        ModelFileError
            A compressed name or value has no place in the model's table.
        """
        if self._attrs is None:
            self._attrs = self._names.restore(self._op.attr)
        return self._attrs

    @property
    def input_descs(self) -> tuple[TensorDesc, ...]:
        """Description of each input."""
        return tuple(self.tensor_desc(desc) for desc in self._op.input_desc)

    @property
    def output_descs(self) -> tuple[TensorDesc, ...]:
        """Description of each output; the first of a variable is the variable's."""
        if self._outputs is None:
            self._outputs = tuple(self.tensor_desc(desc, is_kept=True) for desc in self._op.output_desc)
        return self._outputs

    def data_apart(self, attr_name: str) -> StoredBytes | None:
        """Return the place of the tensor data that was left out of an attribute, in the MODEL_DEF partition."""
        for stored, place in self._apart.items():
            if self._names.name(stored) == attr_name:
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
        return max((self._names.rounds(stored) for attrs in maps for stored in attrs), default=0)

    def tensor_desc(self, stored: ge_ir.TensorDescriptor, *, is_kept: bool = False) -> TensorDesc:
        """Return a description of this operator, with plain attribute names.

        Raises
        ------
        ModelFileError
            A compressed name has no place in the tables, or a text is not UTF-8; or restored texts take too much, what
            is kept together.
        """
        desc = stored
        if any(name.startswith(MARK) for name in stored.attr):
            desc = ge_ir.TensorDescriptor()
            desc.CopyFrom(stored)
            self._names.restore_in_place(desc.attr, is_kept=is_kept)
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
            raise self._fail(f"node {self.name}: {error}") from error
