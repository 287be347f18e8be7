"""Files that the writer makes keep the rules of the format, as a reader sees it that shares nothing with gevar."""

import struct
from pathlib import Path

import numpy as np
import pytest

from gevar.om import OmBuilder, open_om, write_om
from gevar.om.composed_model import bundle, dynamic
from gevar.om.external_weights_writer import ExternalWeightMode
from gevar.om.model_spec import OmModelSpec
from gevar.types import DataType, Format, TensorDesc
from tests.helpers.om_fields import first
from tests.helpers.om_rules import check_bundle, check_file, check_padding, check_sizes, const_place

F32, ND = DataType.DT_FLOAT, Format.FORMAT_ND
ROW = TensorDesc(F32, ND, (4,))


def net(name: str, seed: int = 1, *, variables: bool = True) -> OmModelSpec:
    """Return a model with every kind of node the writer knows."""
    rng = np.random.default_rng(seed)
    builder = OmBuilder(name)
    inputs = [builder.data("x", ROW), builder.const("kernel", rng.random((7, 19), np.float32))]
    inputs += [builder.const("kernel_again", rng.random(3, np.float32)), builder.const("byte", np.ones(1, np.int8))]
    if variables:
        inputs += [builder.variable("shared", ROW, init=np.ones(4, np.float32)), builder.variable(f"own_{name}", ROW)]
        inputs += [builder.constant("scale", rng.random(9, np.float32))]
    attrs = {"mode": "SAME", "names": ["a", "b", "a"], "axes": [1, 2], "keep": True, "_op_slice_info": "dropped"}
    y = builder.node("Concat", "op", inputs, [ROW], attrs=attrs)
    builder.output(builder.node("Relu", "relu", [y], [ROW], attrs={"mode": "VALID"}), "result")
    builder.kernel("kernel_of_op", b"\x7fELF" * 9)
    return builder.build()


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("external_weight", [0, 1, 2])
def test_a_static_file(tmp_path: Path, compress: bool, external_weight: ExternalWeightMode) -> None:
    path = tmp_path / "m.om"
    write_om(path, net("static"), compress=compress, external_weight=external_weight)
    (model,) = check_file(path.read_bytes(), tmp_path / "weight")
    check_sizes(model)
    check_padding(model)
    assert ("om_compress_version" in model.attrs) is compress
    assert first(model.ops["op"].attrs["mode"], 2, b"") == b"SAME"
    assert ("_op_slice_info" in model.ops["op"].attrs) is not compress
    kinds = [op.type for op in model.ops.values()]
    assert kinds.count("FileConstant") == (4 if external_weight else 0)
    if not external_weight:
        offset, size, _ = const_place(model.ops["kernel"])
        expected = np.random.default_rng(1).random((7, 19), np.float32)
        assert model.parts[1][offset : offset + size] == expected.tobytes()


def test_a_model_without_constants_has_1024_bytes_of_weights(tmp_path: Path) -> None:
    builder = OmBuilder("bare")
    builder.output(builder.node("Relu", "relu", [builder.data("x", ROW)], [ROW]))
    builder.write(tmp_path / "m.om")
    (model,) = check_file((tmp_path / "m.om").read_bytes())
    check_sizes(model)
    assert model.parts[1] == bytes(1024)


@pytest.mark.parametrize("compress", [False, True])
def test_a_dynamic_file(tmp_path: Path, compress: bool) -> None:
    write_om(tmp_path / "m.om", dynamic("root", [net("one", 1), net("two", 2)], compress=compress))
    root, one, two = check_file((tmp_path / "m.om").read_bytes())
    assert list(root.parts) == [8, 0, 2]
    assert list(one.parts) == list(two.parts) == [0, 1, 3, 2]
    assert list(root.graphs) == ["root_0", "one", "two"]
    assert [list(model.graphs) for model in (one, two)] == [["one"], ["two"]]
    assert "om_compress_version" not in one.attrs, "one table serves all"
    for model in (one, two):
        check_sizes(model)
    assert one.ops["shared"].output_i == two.ops["shared"].output_i
    assert one.ops["own_one"].output_i != two.ops["own_two"].output_i


def test_a_dynamic_file_whose_root_is_not_partitioned_by_shape_is_compressed_twice(tmp_path: Path) -> None:
    file = dynamic("root", [net("one"), net("two", 2)], compress=True)
    graph = file.models[0].model.graph
    assert graph is not None
    del graph.attrs["_dynamic_shape_partitioned"]
    write_om(tmp_path / "m.om", file)
    models = check_file((tmp_path / "m.om").read_bytes())
    assert all("om_compress_version" in model.attrs for model in models)
    with open_om(tmp_path / "m.om") as om:
        assert [model.attr_name_rounds() for model in om.models] == [1, 2, 2]


def test_a_bundle(tmp_path: Path) -> None:
    write_om(tmp_path / "m.om", bundle([net("one"), net("two", 2)]))
    (one,), (two,) = check_bundle((tmp_path / "m.om").read_bytes())
    assert one.ops["shared"].output_i == two.ops["shared"].output_i == [128 << 30]
    for model in (one, two):
        check_sizes(model)


@pytest.mark.parametrize(
    ("offset", "value", "reason"),
    [
        (184, struct.pack("<Q", 1), None),
        (12, b"\1", None),
        (260, b"\1", None),
        (264 + 8, b"\1", "running sum"),
        (264 + 24, struct.pack("<I", 3), "order of partitions"),
    ],
)
def test_the_checks_can_fail(tmp_path: Path, offset: int, value: bytes, reason: str | None) -> None:
    write_om(tmp_path / "m.om", net("static"))
    data = bytearray((tmp_path / "m.om").read_bytes())
    data[offset : offset + len(value)] = value
    with pytest.raises(AssertionError, match=reason):
        check_file(bytes(data))
