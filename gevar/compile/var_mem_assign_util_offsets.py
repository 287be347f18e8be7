"""Offsets of outputs and inputs that nodes are to get: collected first, written when nothing can fail any more."""

from gevar.compile.var_mem_assign_util_ops import graph_error
from gevar.graph import Node
from gevar.status import FAILED, PARAM_INVALID


class NodeOffsets:
    """Offsets as they will be; what is not planned is what the nodes have.

    Thread safety: none.
    """

    def __init__(self) -> None:
        self._outputs: dict[Node, list[int]] = {}
        self._inputs: dict[Node, tuple[int, ...]] = {}

    def outputs(self, node: Node) -> list[int]:
        """Return the offsets of the outputs of a node, in bytes."""
        return self._outputs.get(node) or list(node.op_desc.output_i)

    def set_output(self, node: Node, index: int, offset: int) -> None:
        """Plan the offset of one output.

        Raises
        ------
        GraphError
            The node has no offsets (status PARAM_INVALID), or none for this output (status FAILED).
        """
        offsets = self.outputs(node)
        if not offsets:
            raise graph_error(node, "has no output offsets; give it one for each output", PARAM_INVALID)
        if index >= len(offsets):
            raise graph_error(node, f"output {index} gets an offset, it has {len(offsets)} output offsets", FAILED)
        offsets[index] = offset
        self._outputs[node] = offsets

    def set_inputs(self, node: Node, offsets: list[int]) -> None:
        """Plan the offsets of all inputs of a node."""
        self._inputs[node] = tuple(offsets)

    def write(self) -> None:
        """Give the nodes what was planned."""
        for node, offsets in self._outputs.items():
            node.op_desc.output_i = tuple(offsets)
        for node, inputs in self._inputs.items():
            node.op_desc.input_i = inputs
