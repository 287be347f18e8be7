"""Two graphs of a training step that share a variable, and the same step with plain numpy.

The first graph reads the variable as it is and predicts; the second one takes a gradient and writes the variable, in
whatever formats the caller wants it to compute in.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gevar.graph import ComputeGraph, GeTensor, Node, OpDesc
from gevar.types import DataType, Format, TensorDesc
from gevar.types.format import format_from_c0

F32 = DataType.DT_FLOAT
NCHW = Format.FORMAT_NCHW
SHAPE = (4, 20, 3, 3)
"""No multiple of 16, so that the other formats have padding."""
C0 = 16

W = TensorDesc(F32, NCHW, SHAPE, NCHW, SHAPE)
W5 = W.replace(format=format_from_c0(Format.FORMAT_NC1HWC0, 5), shape=(4, 2, 3, 3, C0))
WZ = W.replace(format=format_from_c0(Format.FORMAT_FRACTAL_Z, 5), shape=(18, 1, 16, C0))
FORMS: Mapping[str, TensorDesc] = {"NCHW": W, "NC1HWC0": W5, "FRACTAL_Z": WZ}
SCALAR = TensorDesc(F32, Format.FORMAT_ND, ())
STEP = TensorDesc(DataType.DT_INT32, Format.FORMAT_ND, (1,))
FEATURES = 20 * 3 * 3


def op(graph: ComputeGraph, name: str, kind: str, sources: Sequence[Node], desc: TensorDesc, **attrs: bool) -> Node:
    """Add a node that reads output 0 of others; the inputs of an Assign have names."""
    descs = [source.op_desc.output_desc(0) for source in sources]
    if kind.startswith("Assign"):
        made = OpDesc(
            name, kind, inputs=dict(zip(("ref", "value"), descs, strict=True)), outputs={"ref": desc}, attrs=attrs
        )
    else:
        made = OpDesc(name, kind, inputs=descs, outputs=[desc], attrs=attrs)
    node = graph.add_node(made)
    for index, source in enumerate(sources):
        source.out_data_anchor(0).link_to(node.in_data_anchor(index))
    return node


def variable(graph: ComputeGraph, name: str, desc: TensorDesc) -> Node:
    return graph.add_node(OpDesc(name, "Variable", outputs=[desc]))


def data(graph: ComputeGraph, name: str, index: int, desc: TensorDesc) -> Node:
    return graph.add_node(OpDesc(name, "Data", outputs=[desc], attrs={"index": index}))


def const(
    graph: ComputeGraph, name: str, value: npt.NDArray[np.generic], desc: TensorDesc, kind: str = "Const"
) -> Node:
    tensor = GeTensor(desc, value.tobytes())
    return graph.add_node(OpDesc(name, kind, outputs=[desc], attrs={"value": tensor}))


def outputs(graph: ComputeGraph, *nodes: Node) -> ComputeGraph:
    graph.set_outputs([node.out_data_anchor(0) for node in nodes])
    return graph


def predict() -> ComputeGraph:
    """`x` by the transposed weights, and a count of the runs; the sum keeps `w` from being read by trans ops alone."""
    graph = ComputeGraph("predict")
    w, x = variable(graph, "w", W), data(graph, "x", 0, TensorDesc(F32, Format.FORMAT_ND, (2, FEATURES)))
    doubled = op(graph, "doubled", "Add", [w, w], W)
    flat = op(graph, "flat", "Reshape", [doubled], TensorDesc(F32, Format.FORMAT_ND, (4, FEATURES)))
    y = op(graph, "y", "MatMul", [x, flat], TensorDesc(F32, Format.FORMAT_ND, (2, 4)), transpose_x2=True)
    count = op(
        graph,
        "count",
        "AssignAdd",
        [variable(graph, "step", STEP), const(graph, "one", np.ones(1, np.int32), STEP)],
        STEP,
    )
    return outputs(graph, y, count)


def update(forms: Sequence[str]) -> ComputeGraph:
    """`w -= (rate * gradient + decay * w)`, in the first of the forms; in each of the others `w + w` before that.

    The variable is read in the forms beyond the first by way of the first and NCHW, as an engine would insert them.
    """
    graph = ComputeGraph("update")
    first = FORMS[forms[0]]
    w, gradient = variable(graph, "w", W), data(graph, "gradient", 0, W)
    here = w if first is W else op(graph, "w_in", "TransData", [w], first)
    gradient_here = gradient if first is W else op(graph, "g_in", "TransData", [gradient], first)
    rate = const(graph, "rate", np.array(0.125, np.float32), SCALAR)
    decay = const(graph, "decay", np.array(0.25, np.float32), SCALAR, "Constant")
    scaled = op(graph, "scaled", "Mul", [gradient_here, rate], first)
    decayed = op(graph, "decayed", "Mul", [here, decay], first)
    change = op(graph, "change", "Add", [scaled, decayed], first)
    written = op(graph, "written", "AssignSub", [here, change], first)
    made = []
    if first is not W:  # what writes the variable, and the reference to it that says so
        back = op(graph, "w_out", "TransData", [written], W)
        ref = OpDesc("w_ref", "Variable", inputs=[W], outputs=[W], attrs={"ref_var_src_var_name": "w"})
        back.out_data_anchor(0).link_to(graph.add_node(ref).in_data_anchor(0))
    for form in forms[1:]:
        plain = here if first is W else op(graph, f"plain_{form}", "TransData", [here], W)
        other = op(graph, f"in_{form}", "TransData", [plain], FORMS[form])
        other.link_control_to(written)
        made.append(op(graph, f"made_{form}", "Add", [other, other], FORMS[form]))
    return outputs(graph, *(made or [change]))


class NumpyTraining:
    """The same step with plain numpy."""

    def __init__(self, w: npt.NDArray[np.float32]) -> None:
        self.w = w.copy()
        self.step = 0

    def predict(self, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        self.step += 1
        return x @ (self.w + self.w).reshape(4, FEATURES).T

    def update(self, gradient: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Write the variable; return what it was before."""
        before = self.w
        self.w = before - (gradient * np.float32(0.125) + before * np.float32(0.25))
        return before
