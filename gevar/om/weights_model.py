"""A model that holds weights and does nothing else: each tensor is a node, and all of them are outputs."""

from collections.abc import Sequence
from typing import Final, Literal

from gevar.om.builder import OmBuilder
from gevar.om.named_tensor import NamedTensor
from gevar.types.format import Format
from gevar.types.tensor_desc import TensorDesc

WeightKind = Literal["const", "constant", "variable"]
"""What a weight becomes: Const lies in the weights, Constant and Variable among the variables."""
KINDS: Final[tuple[WeightKind, ...]] = ("const", "constant", "variable")


def weights_model(name: str, tensors: Sequence[NamedTensor], kind: WeightKind = "const") -> OmBuilder:
    """Return a model with these tensors as nodes of one kind.

    Parameters
    ----------
    name
        Name of the model.
    tensors
        What it holds. They are read when the model is written.
    kind
        Type of the nodes; a Variable starts with the bytes of its tensor.

    Raises
    ------
    ValueError
        There is no tensor, a name is there twice or is empty, or the bytes of a tensor do not fit its shape.
    """
    if not tensors:
        raise ValueError(f"no weights for model {name!r}: the source has no tensor")
    net = OmBuilder(name)
    for tensor in tensors:
        desc = TensorDesc(tensor.dtype, Format.FORMAT_ND, tensor.shape)
        if kind == "variable":
            node = net.variable(tensor.name, desc, init=tensor.data)
        else:
            node = (net.const if kind == "const" else net.constant)(tensor.name, tensor.data, desc)
        net.output(node, tensor.name)
    return net
