"""What the builder takes and what it refuses, before anything is written."""

from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from gevar.errors import FormatError
from gevar.graph.attr_value import AttrValue, attr_from_proto
from gevar.om.attr_def import attr_def
from gevar.om.builder import OmBuilder
from gevar.om.weights_layout import SparseBytes
from gevar.types import DataType, Format, TensorDesc
from tests.helpers.om_bytes import take_apart

FLOATS = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (2, 3))


def test_type_and_shape_come_from_the_array() -> None:
    builder = OmBuilder("arrays")
    builder.const("w", np.zeros((2, 3), ml_dtypes.bfloat16), fmt=Format.FORMAT_NHWC)
    (node,) = builder.build().nodes
    desc = node.outputs[0]
    assert (desc.dtype, desc.format, desc.shape, desc.size) == (DataType.DT_BF16, Format.FORMAT_NHWC, (2, 3), 64)


@pytest.mark.parametrize(
    ("dtype", "shape", "data"),
    [
        (DataType.DT_BF16, (3,), np.array([0x7FC1, 0x8000, 0x3F80], np.uint16)),
        (DataType.DT_INT4, (5,), np.array([0x21, 0x43, 0x05], np.uint8)),
        (DataType.DT_FLOAT6_E2M3, (5,), bytes([1, 2, 3, 4])),
        (DataType.DT_BOOL, (2,), np.array([True, False])),
        (DataType.DT_DOUBLE, (), np.array(1.5)),
        (DataType.DT_DUAL, (2,), bytes(range(10))),
        (DataType.DT_FLOAT8_E5M2, (3,), np.array([1, 2, 3], ml_dtypes.float8_e5m2)),
        (DataType.DT_FLOAT, (2, 2), np.arange(8, dtype=np.float32).reshape(4, 2)[::2]),
        (DataType.DT_FLOAT, (2, 3), np.arange(6, dtype=np.float32).reshape(3, 2).T),
        (DataType.DT_INT32, (0, 4), np.zeros((0, 4), np.int32)),
    ],
)
def test_bytes_arrive_as_they_are(
    tmp_path: Path, dtype: DataType, shape: tuple[int, ...], data: np.ndarray | bytes
) -> None:
    desc = TensorDesc(dtype, Format.FORMAT_ND, shape)
    builder = OmBuilder("bytes")
    builder.const("w", data, desc)
    builder.constant("c", data, desc)
    builder.variable("v", desc, init=data)
    builder.write(tmp_path / "model.om")
    om = take_apart(tmp_path / "model.om")
    expected = data if isinstance(data, bytes) else data.tobytes()
    assert om.const_bytes("w") == expected
    assert om.ops["c"].attr["value"].t.data == expected
    assert om.ops["v"].output_desc[0].attr["_init_value"].t.data == expected


def refused() -> dict[str, tuple[Callable[[OmBuilder], object], type[Exception], str]]:
    """Return what a builder with a Data node "x" and a Variable "v" refuses: call, error and part of its message."""
    zeros = np.zeros((2, 3), np.float32)
    unknown = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (-1, 3))
    int4 = TensorDesc(DataType.DT_INT4, Format.FORMAT_ND, (2, 3))
    return {
        "name taken": (lambda b: b.const("x", zeros), ValueError, "node name 'x' is taken"),
        "name of the end": (lambda b: b.const("Node_Output", zeros), ValueError, "'Node_Output' is taken"),
        "no name": (lambda b: b.data("", FLOATS), ValueError, "the node needs a name"),
        "surrogate": (lambda b: b.data("a\udc80", FLOATS), ValueError, "is not UTF-8 text"),
        "type without name": (lambda b: b.node("", "n"), ValueError, "the operator type needs a name"),
        "unknown input": (lambda b: b.node("Add", "n", ["q"]), ValueError, "node 'q' is read before it was added"),
        "own input": (lambda b: b.node("Add", "n", ["n"]), ValueError, "node 'n' is read before"),
        "output beyond": (
            lambda b: b.node("Add", "n", [("x", 1)]),
            ValueError,
            "'x' has 1 outputs, output 1 is asked for",
        ),
        "output below": (lambda b: b.output(("x", -1)), ValueError, "output -1 is asked for"),
        "own method": (lambda b: b.node("Const", "n"), ValueError, "Const has a method of its own"),
        "assign beyond": (
            lambda b: b.node("Assign", "n", assigns={0: "v"}),
            ValueError,
            "by output 0, it has 0 outputs",
        ),
        "assign to data": (
            lambda b: b.node("Assign", "n", outputs=[FLOATS], assigns={0: "x"}),
            ValueError,
            "assigns to 'x', which is no variable",
        ),
        "too few bytes": (lambda b: b.const("n", bytes(20), FLOATS), ValueError, "takes 24 B, the data have 20 B"),
        "too many": (lambda b: b.variable("n", FLOATS, init=bytes(25)), ValueError, "24 B, the data have 25 B"),
        "sparse of another size": (lambda b: b.const("n", SparseBytes(8), FLOATS), ValueError, "the data have 8 B"),
        "another type": (
            lambda b: b.const("n", zeros.astype(np.int32), FLOATS),
            TypeError,
            "array of int32 for DT_FLOAT",
        ),
        "another byte order": (
            lambda b: b.const("n", zeros.astype(">f4"), FLOATS),
            TypeError,
            "array of >f4 for DT_FLOAT",
        ),
        "not packed": (
            lambda b: b.const("n", np.zeros((2, 3), ml_dtypes.int4), int4),
            TypeError,
            "DT_INT4 packs several elements into a byte",
        ),
        "no type of GE": (lambda b: b.const("n", np.zeros(2, "datetime64[s]")), TypeError, "GE has no data type"),
        "raw without description": (lambda b: b.const("n", b"12"), TypeError, "raw data need a description"),
        "unknown shape": (lambda b: b.variable("n", unknown), FormatError, "unknown shape"),
        "kernel taken": (lambda b: b.kernel("k", b""), ValueError, "kernel name 'k' is taken"),
    }


@pytest.mark.parametrize("case", refused())
def test_refused_and_nothing_changed(case: str) -> None:
    call, error, text = refused()[case]
    builder = OmBuilder("refuses")
    builder.data("x", FLOATS)
    builder.variable("v", FLOATS)
    builder.kernel("k", b"binary")
    before = builder.build()
    with pytest.raises(error) as caught:
        call(builder)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)
    assert builder.build() == before


@pytest.mark.parametrize(
    "data",
    [
        memoryview(b"a-b-c-d-")[::2],
        memoryview(b"dcba")[::-1],
        memoryview(b"abcd").cast("B", (2, 2)),
        bytearray(b"abcd"),
    ],
)
def test_raw_bytes_of_any_layout_arrive(tmp_path: Path, data: memoryview | bytearray) -> None:
    builder = OmBuilder("net")
    builder.const("w", data, TensorDesc(DataType.DT_UINT8, Format.FORMAT_ND, (4,)))
    builder.write(tmp_path / "m.om")
    assert b"abcd" in (tmp_path / "m.om").read_bytes()
    builder.write(tmp_path / "n.om", external_weight=2)
    assert (tmp_path / "weight" / "n_weight_combined").read_bytes() == b"abcd".ljust(512, b"\0")


@pytest.mark.parametrize("data", [np.float32(1), 1.0, [1.0], "abcd", None])
def test_what_is_no_data_is_refused(data: object) -> None:
    builder = OmBuilder("net")
    with pytest.raises(TypeError, match=f"'w': the data are {type(data).__name__}; give an array"):
        builder.const("w", data, TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, ()))  # type: ignore[arg-type]
    assert builder.build().nodes == ()


@pytest.mark.parametrize("name", ["", "a\0b", "a\udc80"])
def test_refused_model_names(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        OmBuilder(name)


@pytest.mark.parametrize(
    "value",
    [
        0,
        -5,
        1 << 62,
        True,
        False,
        0.5,
        "text",
        "",
        b"\xff\0",
        [],
        [1, -2],
        [True, False],
        [0.5],
        ["a", "é"],
        [[1, 2], []],
    ],
)
def test_attributes_are_read_back(value: AttrValue) -> None:
    back = attr_from_proto(attr_def(value))
    assert back == (
        tuple(tuple(row) if isinstance(row, list) else row for row in value) if isinstance(value, list) else value
    )
    assert type(back) is (tuple if isinstance(value, list) else type(value))


def test_attributes_of_a_node(tmp_path: Path) -> None:
    builder = OmBuilder("attrs")
    builder.node("Conv2D", "conv", attrs={"strides": [1, 1, 2, 2], "data_format": "NCHW", "groups": 1})
    builder.write(tmp_path / "model.om")
    attr = take_apart(tmp_path / "model.om").ops["conv"].attr
    assert list(attr["strides"].list.i) == [1, 1, 2, 2]
    assert (attr["data_format"].s, attr["groups"].i) == (b"NCHW", 1)


@pytest.mark.parametrize("value", [[1, "a"], [1, 0.5], [True, 1], None])
def test_attributes_of_no_single_kind_are_refused(value: AttrValue) -> None:
    with pytest.raises(TypeError):
        attr_def(value)


def test_an_attribute_beyond_64_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="range"):
        attr_def(1 << 63)
