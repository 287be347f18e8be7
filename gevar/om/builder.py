"""Making a model by hand: nodes are added one by one, each after those it reads."""

import os
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gevar.graph.attr_value import AttrValue
from gevar.om.external_weights_writer import ExternalWeightMode
from gevar.om.model_spec import (
    DATA,
    NETOUTPUT,
    VAR_LOGIC_BASE,
    VAR_MEM_MAX_BYTES,
    NodeSpec,
    OmModelSpec,
    TensorRef,
)
from gevar.om.node import CONSTANT, CONSTANTOP, VARIABLE
from gevar.om.stored_bytes import Content, SparseBytes, StreamedBytes
from gevar.om.writer import write_om
from gevar.types.addresses import LogicAddr
from gevar.types.data_type import DataType
from gevar.types.format import Format
from gevar.types.tensor_desc import TensorDesc
from gevar.types.tensor_sizes import tensor_memory_size_with_auto_padding, tensor_size_in_bytes

Source = str | TensorRef
"""What a node reads: the name of a node, for its first output, or (name, output index)."""
Data = npt.NDArray[np.generic] | bytes | memoryview | StreamedBytes | SparseBytes
"""Bytes of a constant: an array of the element type, or raw: bytes, an array of unsigned integers, zeros, a stream."""


class OmBuilder:
    """Collects the nodes of one static model.

    Arrays are not copied: they are read when the model is written and must not change before.

    Parameters
    ----------
    name
        Name of the model.
    logic_base
        Logical address of the first variable.
    variable_size_bytes
        Room for variables.

    Raises
    ------
    ValueError
        The name is empty, is not UTF-8 or holds a NUL.

    Thread safety: none; one builder belongs to one thread.

    Examples
    --------
    >>> from gevar.types import DataType, Format, TensorDesc
    >>> row = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (1, 4))
    >>> builder = OmBuilder("tiny")
    >>> x = builder.data("x", row)
    >>> w = builder.const("w", np.ones((4, 4), np.float32))
    >>> b = builder.variable("b", row, init=np.zeros((1, 4), np.float32))
    >>> y = builder.node("MatMulV2", "y", inputs=[x, w, b], outputs=[row])
    >>> builder.output(y)
    >>> [(node.name, node.type) for node in builder.build().nodes][:2]
    [('x', 'Data'), ('w', 'Const')]
    """

    def __init__(
        self, name: str, *, logic_base: LogicAddr = VAR_LOGIC_BASE, variable_size_bytes: int = VAR_MEM_MAX_BYTES
    ) -> None:
        _check_name("model", name)
        if "\0" in name:
            raise ValueError(f"model name {name!r} holds a NUL, where the file header would end it")
        self._name = name
        self._logic_base = logic_base
        self._variable_size_bytes = variable_size_bytes
        self._nodes: dict[str, NodeSpec] = {}
        self._results: list[tuple[TensorRef, str]] = []
        self._kernels: dict[str, bytes] = {}

    def data(self, name: str, desc: TensorDesc) -> str:
        """Add an input of the model and return its name.

        Raises
        ------
        ValueError
            The name is taken or no UTF-8 text; the size of the description is not known.
        """
        return self._add(NodeSpec(name, DATA, outputs=(_sized(desc),)))

    def const(self, name: str, data: Data, desc: TensorDesc | None = None, *, fmt: int = Format.FORMAT_ND) -> str:
        """Add a Const, whose bytes lie in the weights of the model, and return its name.

        Parameters
        ----------
        name
            Name of the node.
        data
            Its bytes.
        desc
            Its description; by default type and shape are those of the array.
        fmt
            Format for a description made from the array.

        Raises
        ------
        ValueError
            As `data`; or the bytes are not as many as the description needs.
        TypeError
            An array is of another type than the description; or there is no description and no array of a type of GE.
        """
        return self._add_constant(CONSTANT, name, data, desc, fmt)

    def constant(self, name: str, data: Data, desc: TensorDesc | None = None, *, fmt: int = Format.FORMAT_ND) -> str:
        """Add a Constant, which lies among the variables and whose bytes are inside the message; return its name.

        Parameters and errors are those of `const`; `SparseBytes` are refused on writing.
        """
        return self._add_constant(CONSTANTOP, name, data, desc, fmt)

    def variable(self, name: str, desc: TensorDesc, *, init: Data | None = None) -> str:
        """Add a variable, with the bytes it starts with or without, and return its name.

        Errors are those of `const`; `SparseBytes` are refused on writing.
        """
        data = None if init is None else _bytes_of(name, init, desc)
        return self._add(NodeSpec(name, VARIABLE, outputs=(_sized(desc),), data=data))

    def node(
        self,
        op_type: str,
        name: str,
        inputs: Sequence[Source] = (),
        outputs: Sequence[TensorDesc] = (),
        *,
        assigns: Mapping[int, str] | None = None,
        attrs: Mapping[str, AttrValue] | None = None,
    ) -> str:
        """Add an operator and return its name.

        Parameters
        ----------
        op_type, name
            GE's operator type, and the name of the node.
        inputs
            What it reads.
        outputs
            Descriptions of its outputs.
        assigns
            Output index -> name of the variable that this output writes.
        attrs
            Attributes of the operator.

        Raises
        ------
        ValueError
            As `data`; an input or variable does not exist; the type is one that has a method of its own.
        """
        if op_type in (DATA, NETOUTPUT, CONSTANT, CONSTANTOP, VARIABLE):
            raise ValueError(f"node {name!r}: {op_type} has a method of its own in the builder")
        _check_name("operator type", op_type)
        for index, variable in (assigns or {}).items():
            if not 0 <= index < len(outputs):
                raise ValueError(f"node {name!r} assigns by output {index}, it has {len(outputs)} outputs")
            if variable not in self._nodes or self._nodes[variable].type != VARIABLE:
                raise ValueError(f"node {name!r} assigns to {variable!r}, which is no variable added before")
        refs = tuple(self._ref(source) for source in inputs)
        descs = tuple(map(_sized, outputs))
        return self._add(NodeSpec(name, op_type, refs, descs, assigns=dict(assigns or {}), attrs=dict(attrs or {})))

    def output(self, source: Source, name: str = "") -> None:
        """Make an output of a node an output of the model; `name` is the framework's name of it.

        Raises
        ------
        ValueError
            There is no such output.
        """
        self._results.append((self._ref(source), name))

    def kernel(self, name: str, binary: bytes) -> None:
        """Add a kernel to the model's kernel store.

        Raises
        ------
        ValueError
            The name is taken or no UTF-8 text.
        """
        _check_name("kernel", name)
        if name in self._kernels:
            raise ValueError(f"kernel name {name!r} is taken")
        self._kernels[name] = binary

    def build(self) -> OmModelSpec:
        """Return the model as it is now."""
        nodes = list(self._nodes.values())
        if self._results:
            nodes.append(NodeSpec("Node_Output", NETOUTPUT, tuple(ref for ref, _ in self._results)))
        return OmModelSpec(
            self._name,
            tuple(nodes),
            output_names=tuple(name for _, name in self._results),
            kernels=dict(self._kernels),
            logic_base=self._logic_base,
            variable_size_bytes=self._variable_size_bytes,
        )

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        compress: bool = False,
        external_weight: ExternalWeightMode = 0,
        weight_dir: str | os.PathLike[str] | None = None,
        padded_sha256: bool = True,
    ) -> None:
        """Write the model as an OM file; see `write_om`."""
        write_om(
            path,
            self.build(),
            compress=compress,
            external_weight=external_weight,
            weight_dir=weight_dir,
            padded_sha256=padded_sha256,
        )

    def _add(self, node: NodeSpec) -> str:
        _check_name("node", node.name)
        if node.name in self._nodes or node.name == "Node_Output":
            raise ValueError(f"node name {node.name!r} is taken")
        self._nodes[node.name] = node
        return node.name

    def _add_constant(self, op_type: str, name: str, data: Data, desc: TensorDesc | None, fmt: int) -> str:
        if desc is None:
            if not isinstance(data, np.ndarray):
                raise TypeError(f"{op_type} {name!r}: raw data need a description; give desc")
            desc = TensorDesc(DataType.from_numpy(data.dtype), fmt, data.shape)
        stored = _bytes_of(name, data, desc)
        size = stored.nbytes if desc.dtype == DataType.DT_STRING else None
        return self._add(NodeSpec(name, op_type, outputs=(_sized(desc, size),), data=stored))

    def _ref(self, source: Source) -> TensorRef:
        name, index = (source, 0) if isinstance(source, str) else source
        if name not in self._nodes:
            raise ValueError(f"node {name!r} is read before it was added")
        count = len(self._nodes[name].outputs)
        if not 0 <= index < count:
            raise ValueError(f"node {name!r} has {count} outputs, output {index} is asked for")
        return name, index


def _check_name(what: str, name: str) -> None:
    if not name:
        raise ValueError(f"the {what} needs a name")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{what} name {name!r} is not UTF-8 text") from error


def _sized(desc: TensorDesc, size_bytes: int | None = None) -> TensorDesc:
    """Return the description with its stored size: the padded one unless given."""
    if size_bytes is None:
        size_bytes = tensor_memory_size_with_auto_padding(tensor_size_in_bytes(desc))
    return desc.replace(size=size_bytes)


def _bytes_of(name: str, data: Data, desc: TensorDesc) -> Content | SparseBytes:
    """Return the bytes of a constant, checked against its description."""
    stored: Content | SparseBytes
    if isinstance(data, np.ndarray):
        stored = _array_bytes(name, data, desc.dtype)
    elif isinstance(data, bytes | bytearray | memoryview):
        view = memoryview(data)
        stored = view if view.c_contiguous else memoryview(bytes(view))
    elif isinstance(data, StreamedBytes | SparseBytes):
        stored = data
    else:
        raise TypeError(f"{name!r}: the data are {type(data).__name__}; give an array, bytes, a stream or zeros")
    if desc.dtype != DataType.DT_STRING and stored.nbytes != tensor_size_in_bytes(desc):
        raise ValueError(
            f"{name}: {desc.dtype.name} of shape {desc.shape} takes {tensor_size_in_bytes(desc)} B, "
            f"the data have {stored.nbytes} B"
        )
    return stored


def _array_bytes(name: str, array: npt.NDArray[np.generic], dtype: DataType) -> memoryview:
    """Return the bytes of an array of the element type, or of unsigned integers, which count as raw bytes."""
    raw = array.dtype.kind == "u" and array.dtype.isnative
    if not raw and dtype.is_packed:
        raise TypeError(f"{name!r}: {dtype.name} packs several elements into a byte; give the packed bytes")
    if not raw and array.dtype != dtype.to_numpy():
        raise TypeError(f"{name!r}: an array of {array.dtype} for {dtype.name}; convert it, or give raw bytes")
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
