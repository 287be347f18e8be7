"""Each kernel of the host against plain numpy, without a runtime, and what each refuses."""

from collections.abc import Mapping, Sequence

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gevar.errors import GraphError
from gevar.formats import cast, transfer
from gevar.graph import ComputeGraph, OpDesc
from gevar.session.host_kernels import HOST_KERNELS, SOURCE_TYPES, check_nodes, host_kernel
from gevar.status import UNSUPPORTED
from gevar.types import DataType, Format, TensorDesc
from gevar.types.format import format_from_c0

Array = npt.NDArray[np.generic]
F32 = DataType.DT_FLOAT
TYPES = [F32, DataType.DT_FLOAT16, DataType.DT_BF16, DataType.DT_INT32, DataType.DT_INT64, DataType.DT_UINT8]


def _desc(shape: Sequence[int], dtype: DataType = F32, fmt: int = Format.FORMAT_ND) -> TensorDesc:
    return TensorDesc(dtype, fmt, tuple(shape))


def _graph(
    kind: str, inputs: Sequence[TensorDesc], target: TensorDesc, attrs: Mapping[str, bool] | None = None
) -> ComputeGraph:
    graph = ComputeGraph("main")
    node = graph.add_node(OpDesc("it", kind, inputs=inputs, outputs=[target], attrs=dict(attrs or {})))
    for index, desc in enumerate(inputs):
        source = graph.add_node(OpDesc(f"x{index}", "Data", outputs=[desc]))
        source.out_data_anchor(0).link_to(node.in_data_anchor(index))
    return graph


def _run(kind: str, arrays: Sequence[Array], inputs: Sequence[TensorDesc], target: TensorDesc, **attrs: bool) -> Array:
    node = _graph(kind, inputs, target, attrs)["it"]
    result = host_kernel(node).run(node.op_desc, arrays)
    assert result.size == np.prod(target.shape, dtype=int)
    assert result.dtype == target.dtype.to_numpy()
    return result


def _values(shape: Sequence[int], dtype: DataType, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 9, tuple(shape)).astype(dtype.to_numpy())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("Add", np.add),
        ("Sub", np.subtract),
        ("Mul", np.multiply),
        ("AssignAdd", np.add),
        ("AssignSub", np.subtract),
        ("Assign", lambda first, second: second + np.zeros_like(first)),
    ],
)
@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((2, 3), ()), ((2, 3), (3,)), ((0, 3), (0, 3)), ((), ())])
def test_elements(kind: str, function: np.ufunc, dtype: DataType, shapes: tuple[tuple[int, ...], ...]) -> None:
    arrays = [_values(shape, dtype, seed) for seed, shape in enumerate(shapes)]
    descs = [_desc(shape, dtype) for shape in shapes]
    assert np.array_equal(_run(kind, arrays, descs, descs[0]), function(*arrays))


@given(
    rows=st.integers(0, 4), inner=st.integers(0, 4), columns=st.integers(0, 4), flags=st.tuples(*[st.booleans()] * 3)
)
def test_matrices(rows: int, inner: int, columns: int, flags: tuple[bool, bool, bool]) -> None:
    first, second, has_bias = flags
    left, right = _values((rows, inner), F32), _values((inner, columns), F32, 1)
    arrays = [left.T.copy() if first else left, right.T.copy() if second else right]
    arrays += [_values((columns,), F32, 2)] if has_bias else []
    descs = [_desc(array.shape) for array in arrays]
    for kind in ("MatMul", "MatMulV2"):
        got = _run(kind, arrays, descs, _desc((rows, columns)), transpose_x1=first, transpose_x2=second)
        wanted = np.matmul(left, right)
        assert np.array_equal(got, wanted + arrays[2] if has_bias else wanted)


@pytest.mark.parametrize(
    "kind", ["Identity", "Reshape", "ReFormat", "Squeeze", "SqueezeV2", "UnsqueezeV2", "ExpandDims", "UnsqueezeV3"]
)
@pytest.mark.parametrize("dtype", [F32, DataType.DT_BF16, DataType.DT_BOOL])
def test_copies(kind: str, dtype: DataType) -> None:
    value = _values((2, 1, 6), dtype)
    got = _run(kind, [value], [_desc(value.shape, dtype)], _desc((3, 4), dtype))
    assert got.tobytes() == value.tobytes()


@pytest.mark.parametrize("fmt", [Format.FORMAT_NC1HWC0, Format.FORMAT_FRACTAL_Z])
def test_formats_there_and_back(fmt: Format) -> None:
    plain = _desc((4, 20, 3, 3), F32, Format.FORMAT_NCHW)
    shape = (4, 2, 3, 3, 16) if fmt is Format.FORMAT_NC1HWC0 else (18, 1, 16, 16)
    stored, value = _desc(shape, F32, format_from_c0(fmt, 5)), _values((4, 20, 3, 3), F32)
    there = _run("TransData", [value], [plain], stored)
    assert np.array_equal(there, transfer(value, plain, stored))
    assert np.array_equal(_run("TransData", [there], [stored], plain), value)
    assert np.array_equal(_run("TransData", [value], [plain], plain), value)
    last = plain.replace(format=Format.FORMAT_NHWC, shape=(4, 3, 3, 20))
    assert np.array_equal(_run("TransposeD", [value], [plain], last), value.transpose(0, 2, 3, 1))


def test_casts_are_those_of_the_formats() -> None:
    value = np.array([1.5, -2.25, 1e6, np.inf], np.float32)
    got = _run("Cast", [value], [_desc((4,))], _desc((4,), DataType.DT_FLOAT16))
    assert np.array_equal(got, cast(value, F32, DataType.DT_FLOAT16)[0])
    assert np.array_equal(_run("Cast", [value], [_desc((4,))], _desc((4,))), value)
    wide = _run("Cast", [value.astype(ml_dtypes.bfloat16)], [_desc((4,), DataType.DT_BF16)], _desc((4,)))
    assert wide.tolist() == [1.5, -2.25, 999424.0, np.inf]


# -- refusals


def test_a_gap_between_inputs_is_refused() -> None:
    graph = _graph("Add", [_desc((2,))] * 2, _desc((2,)))
    graph["it"].in_data_anchor(0).unlink()
    with pytest.raises(GraphError, match=r"inputs \[1\] are linked") as caught:
        check_nodes(graph)
    assert (caught.value.graph, caught.value.node, caught.value.status) == ("main", "it", UNSUPPORTED)


@pytest.mark.parametrize("kind", sorted(HOST_KERNELS))
def test_every_kernel_refuses_other_descriptions(kind: str) -> None:
    """Two rows of other types and sizes fit none of them, and neither does nothing at all."""
    for inputs in ([_desc((2,)), _desc((3,), DataType.DT_INT8)], []):
        graph = _graph(kind, inputs, _desc((5,), DataType.DT_COMPLEX64))
        with pytest.raises(GraphError, match=f"'it': {kind}"):
            check_nodes(graph)


@pytest.mark.parametrize("kind", sorted(SOURCE_TYPES))
def test_sources_need_whole_elements_and_known_shapes(kind: str) -> None:
    graph = ComputeGraph("main")
    node = graph.add_node(OpDesc("it", kind, outputs=[_desc((2, 2))]))
    check_nodes(graph)
    for desc in (_desc((2, -1)), _desc((2,), DataType.DT_INT4), _desc((2,), DataType.DT_STRING)):
        node.op_desc.update_output_desc(0, desc)
        with pytest.raises(GraphError, match=f"'it': {kind}"):
            check_nodes(graph)


def test_the_message_says_what_is_known() -> None:
    with pytest.raises(GraphError, match="no host kernel for Conv2D; known are Add, Assign, AssignAdd"):
        check_nodes(_graph("Conv2D", [_desc((2,))], _desc((2,))))


def test_a_bias_that_does_not_fit_is_refused() -> None:
    square = _desc((2, 2))
    with pytest.raises(GraphError, match=r"a bias \[3\] does not fit the product \[2, 2\]"):
        check_nodes(_graph("MatMul", [square, square, _desc((3,))], square))


def test_what_is_assigned_keeps_the_shape_of_its_target() -> None:
    wide, row = _desc((2, 3)), _desc((3,))
    check_nodes(_graph("AssignAdd", [wide, row], wide))
    with pytest.raises(GraphError, match=r"\[2, 3\] is to be assigned to \[3\]"):
        check_nodes(_graph("AssignAdd", [row, wide], wide))


@pytest.mark.parametrize("kind", ["Sub", "AssignSub"])
def test_truth_values_have_no_difference(kind: str) -> None:
    desc = _desc((2,), DataType.DT_BOOL)
    check_nodes(_graph("Add", [desc, desc], desc))
    with pytest.raises(GraphError, match="no difference of truth values"):
        check_nodes(_graph(kind, [desc, desc], desc))
