"""What a node does: type, attributes, tensor descriptions, and what the builder wrote about memory."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from gevar.errors import GraphError
from gevar.graph.attr_map import AttrMap
from gevar.graph.attr_value import AttrValue
from gevar.graph.op_wire import OpParts, take_apart
from gevar.graph.sharing import Sharing, StoredTensorDesc, stored_tensor_desc
from gevar.proto import ge_ir
from gevar.types.tensor_desc import TensorDesc

if TYPE_CHECKING:
    from gevar.graph.node import Node

T = TypeVar("T", int, str, bool)
Descs = Mapping[str, TensorDesc] | Sequence[TensorDesc]
"""Descriptions of inputs or outputs in index order, by name or without names."""


class _Stored(Generic[T]):
    """A list among the fields that are kept in wire form."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._field = name

    def __get__(self, op_desc: "OpDesc", owner: type | None = None) -> tuple[T, ...]:
        return tuple(getattr(ge_ir.OpDef.FromString(op_desc._rest), self._field))

    def __set__(self, op_desc: "OpDesc", values: Iterable[T]) -> None:
        message = ge_ir.OpDef.FromString(op_desc._rest)
        message.ClearField(self._field)
        getattr(message, self._field).extend(values)
        op_desc._rest = message.SerializeToString(deterministic=True)


class OpDesc:
    """Describe an operator.

    Parameters
    ----------
    name, type
        Name, unique in a graph, and GE's operator type.
    inputs, outputs
        Descriptions in index order: a mapping gives them names, a sequence leaves them without.
    attrs
        Attributes.

    Attributes
    ----------
    type : str
        Operator type.
    id : int
        Place in the topological order of the whole model.
    stream_id : int
        Stream it runs on.
    attrs : AttrMap
        Attributes. Those that hold the names of inputs and outputs are among them (`_input_name_key` and so on).

    Raises
    ------
    ValueError
        Name or type is not UTF-8 text, or the name is empty.

    Source: GE source, graph_metadef/graph/normal_graph/op_desc.cc, OpDesc.

    Examples
    --------
    >>> from gevar.types import DataType, Format
    >>> row = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (1, 4))
    >>> assign = OpDesc("write", "Assign", inputs={"ref": row, "value": row}, outputs={"ref": row})
    >>> assign.input_index("value"), assign.input_name(0), assign.input_desc("value").shape
    (1, 'ref', (1, 4))
    """

    __slots__ = (
        *("_inputs", "_name", "_node", "_outputs", "_rest", "_subgraph_names"),
        *("attrs", "id", "stream_id", "type"),
    )

    def __init__(
        self,
        name: str,
        type: str,
        *,
        inputs: Descs = (),
        outputs: Descs = (),
        attrs: Mapping[str, AttrValue] | None = None,
    ) -> None:
        _check_text("name", name)
        _check_text("type", type)
        self._name = name
        self._node: Node | None = None
        self._inputs: list[StoredTensorDesc] = []
        self._outputs: list[StoredTensorDesc] = []
        self._subgraph_names: tuple[str, ...] = ()
        self._rest = ge_ir.OpDef(has_out_attr=True).SerializeToString()
        self.type = type
        self.id = 0
        self.stream_id = 0
        self.attrs = AttrMap(attrs)
        self._add_all(inputs, self._inputs, "input")
        self._add_all(outputs, self._outputs, "output")

    @classmethod
    def from_proto(cls, op: ge_ir.OpDef, sharing: Sharing | None = None) -> Self:
        """Return what a message holds, without its edges."""
        return cls.from_parts(take_apart(op, sharing or Sharing()))

    @classmethod
    def from_parts(cls, parts: OpParts) -> Self:
        """Return what the parts of a message say, without its edges; the parts belong to it then."""
        found = cls.__new__(cls)
        found._name = parts.name
        found._node = None
        found._inputs = parts.input_descs
        found._outputs = parts.output_descs
        found._subgraph_names = parts.subgraph_names
        found._rest = parts.rest
        found.type = parts.type
        found.id = parts.id
        found.stream_id = parts.stream_id
        found.attrs = AttrMap.of_wires(parts.attrs)
        return found

    def write_to(self, op: ge_ir.OpDef) -> None:
        """Put everything but the edges into an empty message."""
        op.MergeFromString(self._rest)
        op.name = self._name
        op.type = self.type
        op.id = self.id
        op.stream_id = self.stream_id
        op.subgraph_name.extend(self._subgraph_names)
        self.attrs.write_to(op.attr)
        for stored in self._inputs:
            op.input_desc.add().MergeFromString(stored.wire)
        for stored in self._outputs:
            op.output_desc.add().MergeFromString(stored.wire)

    def copy(self, name: str) -> "OpDesc":
        """Return the same operator under another name, in no graph and without subgraphs; descriptions are shared."""
        copied = OpDesc(name, self.type)
        copied._inputs, copied._outputs = list(self._inputs), list(self._outputs)
        copied._rest = self._rest
        copied.id, copied.stream_id = self.id, self.stream_id
        copied.attrs = self.attrs.copy()
        return copied

    def __repr__(self) -> str:
        return f"<OpDesc {self._name} ({self.type})>"

    @property
    def name(self) -> str:
        """Name of the operator; `ComputeGraph.rename_node` changes that of a node."""
        return self._name

    @property
    def subgraph_instance_names(self) -> tuple[str, ...]:
        """Names of the graphs that it runs, such as the branches of an If."""
        return self._subgraph_names

    @property
    def input_descs(self) -> tuple[TensorDesc, ...]:
        """Description of each input."""
        return tuple(stored.desc for stored in self._inputs)

    @property
    def output_descs(self) -> tuple[TensorDesc, ...]:
        """Description of each output."""
        return tuple(stored.desc for stored in self._outputs)

    def input_desc(self, which: int | str) -> TensorDesc:
        """Return the description of one input, by index or name.

        Raises
        ------
        GraphError
            There is no such input.
        """
        return self._inputs[self._place(which, self._inputs, "input")].desc

    def output_desc(self, which: int | str) -> TensorDesc:
        """Return the description of one output, by index or name.

        Raises
        ------
        GraphError
            There is no such output.
        """
        return self._outputs[self._place(which, self._outputs, "output")].desc

    def update_input_desc(self, which: int | str, desc: TensorDesc) -> None:
        """Replace the description of one input; its name stays. Errors are those of `input_desc`."""
        place = self._place(which, self._inputs, "input")
        self._inputs[place] = self._inputs[place].replaced(desc)

    def update_output_desc(self, which: int | str, desc: TensorDesc) -> None:
        """Replace the description of one output; its name stays. Errors are those of `output_desc`."""
        place = self._place(which, self._outputs, "output")
        self._outputs[place] = self._outputs[place].replaced(desc)

    def add_input_desc(self, desc: TensorDesc, name: str = "") -> int:
        """Add an input behind the others, also to a node of a graph, and return its index.

        Raises
        ------
        GraphError
            The name is taken.
        """
        return self._add(desc, name, self._inputs, "input")

    def add_output_desc(self, desc: TensorDesc, name: str = "") -> int:
        """Add an output behind the others, also to a node of a graph, and return its index; errors as for an input."""
        return self._add(desc, name, self._outputs, "output")

    def input_index(self, name: str) -> int | None:
        """Return the index of a named input, None where there is none."""
        return self._names("input").get(name)

    def output_index(self, name: str) -> int | None:
        """Return the index of a named output, None where there is none."""
        return self._names("output").get(name)

    def input_name(self, index: int) -> str:
        """Return the name of an input, `__input<index>` for one without."""
        return self._name_of(index, "input")

    def output_name(self, index: int) -> str:
        """Return the name of an output, `__output<index>` for one without."""
        return self._name_of(index, "output")

    input_i = _Stored[int]("Logical offset of each linked input, in bytes; the builder writes it, no edit changes it.")
    output_i = _Stored[int]("Logical offset of each output, in bytes, as `input_i`; for a variable its address.")
    workspace = _Stored[int]("Logical offset of each workspace, in bytes, as `input_i`.")
    workspace_bytes = _Stored[int]("Size of each workspace, in bytes.")
    is_input_const = _Stored[bool]("Whether each input lies in the weights, as `input_i`.")
    src_name = _Stored[str]("Producer of each input when the model was built; edges are those of the node.")
    src_index = _Stored[int]("Output of that producer, as `src_name`.")
    dst_name = _Stored[str]("Consumers when the model was built, as `src_name`.")
    dst_index = _Stored[int]("Inputs of those consumers, as `src_name`.")

    def _place(self, which: int | str, descs: list[StoredTensorDesc], side: str) -> int:
        index = self._names(side).get(which, -1) if isinstance(which, str) else which
        if not 0 <= index < len(descs):
            raise self._error(f"{side} {which!r} is asked for, it has {len(descs)} {side}s")
        return index

    def _add(self, desc: TensorDesc, name: str, descs: list[StoredTensorDesc], side: str) -> int:
        names = self._names(side)
        if name in names:
            raise self._error(f"{side} name {name!r} is taken by {side} {names[name]}")
        _check_text("name", name or "unnamed")
        descs.append(stored_tensor_desc(desc))
        if name:
            self._write_names(side, names | {name: len(descs) - 1})
        if self._node is not None:
            self._node._grow()
        return len(descs) - 1

    def _add_all(self, descs: Descs, stored: list[StoredTensorDesc], side: str) -> None:
        if isinstance(descs, Mapping):
            stored.extend(map(stored_tensor_desc, descs.values()))
            if descs:
                self._write_names(side, {name: index for index, name in enumerate(descs)})
        else:
            stored.extend(map(stored_tensor_desc, descs))

    def _names(self, side: str) -> dict[str, int]:
        names = self.attrs.get_list(f"_{side}_name_key", str) or ()
        places = self.attrs.get_list(f"_{side}_name_value", int) or ()
        return dict(zip(names, places, strict=False))

    def _write_names(self, side: str, names: Mapping[str, int]) -> None:
        """Write the two lists of a name table; GE gives these no value type."""
        keys = ge_ir.AttrDef_ListValue(s=[name.encode() for name in names])
        self.attrs.set_proto(f"_{side}_name_key", ge_ir.AttrDef(list=keys))
        places = ge_ir.AttrDef_ListValue(i=names.values())
        self.attrs.set_proto(f"_{side}_name_value", ge_ir.AttrDef(list=places))

    def _name_of(self, index: int, side: str) -> str:
        found = (name for name, place in self._names(side).items() if place == index)
        return next(found, f"__{side}{index}")

    def _error(self, reason: str) -> GraphError:
        graph = self._node._graph if self._node is not None else None
        return GraphError(None if graph is None else graph.name, reason, node=self._name)


def _check_text(what: str, text: str) -> None:
    if not text:
        raise ValueError(f"an operator needs a {what}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"operator {what} {text!r} is not UTF-8 text") from error
