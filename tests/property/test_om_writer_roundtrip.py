"""What the writer makes, the reader gives back, whatever the names, types, formats, shapes and data."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gevar import Session, load_model
from gevar.om import GeRootModel, open_om, write_om
from gevar.om.builder import OmBuilder
from gevar.om.external_weights_writer import ExternalWeightMode
from gevar.om.model import OmModel
from gevar.types import DataType, Format, TensorDesc
from gevar.types.format import format_from_c0, format_from_sub
from gevar.types.tensor_sizes import tensor_memory_size_with_auto_padding, tensor_size_in_bytes
from tests.helpers.om_bytes import TakenApart, take_apart
from tests.helpers.om_rules import check_file, check_sizes
from tests.helpers.runtime import host_runtime

SIZED_TYPES = [dtype for dtype in DataType if dtype.element_bits is not None]
FORMATS = [
    *(Format.FORMAT_ND, Format.FORMAT_NCHW, Format.FORMAT_NHWC, Format.FORMAT_HWCN, Format.FORMAT_NDHWC),
    format_from_c0(Format.FORMAT_NC1HWC0, 5),
    format_from_c0(format_from_sub(Format.FORMAT_FRACTAL_Z, 8), 5),
    format_from_sub(Format.FORMAT_FRACTAL_Z, 0xFFFF),
    Format.FORMAT_FRACTAL_NZ,
]

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
shapes = st.lists(st.integers(0, 5), max_size=5).map(tuple)
descs = st.builds(
    TensorDesc,
    st.sampled_from(SIZED_TYPES),
    st.sampled_from(FORMATS),
    shapes,
    origin_format=st.sampled_from(FORMATS),
    origin_shape=st.none() | shapes,
)


@dataclass
class Expected:
    """The plain model: what was put in, in order."""

    kinds: dict[str, str] = field(default_factory=dict)
    descs: dict[str, list[TensorDesc]] = field(default_factory=dict)
    data: dict[str, bytes] = field(default_factory=dict)
    inputs: dict[str, list[tuple[str, int]]] = field(default_factory=dict)


@st.composite
def models(draw: st.DrawFn) -> tuple[OmBuilder, Expected]:
    builder, expected = OmBuilder(draw(names.filter(lambda name: "\0" not in name))), Expected()
    blobs: list[bytes] = []

    def fitting(desc: TensorDesc) -> bytes:
        """Draw data of the size of a tensor, often data that were there before."""
        size = tensor_size_in_bytes(desc)
        known = [blob for blob in blobs if len(blob) == size]
        data = draw(st.sampled_from(known)) if known and draw(st.booleans()) else draw(st.randoms()).randbytes(size)
        blobs.append(data)
        return data

    for name in draw(st.lists(names, unique=True, max_size=10)):
        kind = draw(st.sampled_from(["Data", "Const", "Constant", "Variable", "Init", "Mul"]))
        outputs = [draw(descs) for _ in range(draw(st.integers(0, 3)) if kind == "Mul" else 1)]
        if kind in ("Const", "Constant", "Init"):
            expected.data[name] = fitting(outputs[0])
        if kind == "Data":
            builder.data(name, outputs[0])
        elif kind == "Const":
            builder.const(name, expected.data[name], outputs[0])
        elif kind == "Constant":
            builder.constant(name, expected.data[name], outputs[0])
        elif kind == "Mul":
            refs = [(known, i) for known, found in expected.descs.items() for i in range(len(found))]
            expected.inputs[name] = draw(st.lists(st.sampled_from(refs), max_size=4)) if refs else []
            builder.node(kind, name, expected.inputs[name], outputs)
        else:
            builder.variable(name, outputs[0], init=expected.data.get(name))
        expected.kinds[name] = "Variable" if kind == "Init" else kind
        expected.descs[name] = outputs
    refs = [(name, i) for name, found in expected.descs.items() for i in range(len(found))]
    for ref in draw(st.lists(st.sampled_from(refs), max_size=3)) if refs else []:
        builder.output(ref, draw(st.just("") | names))
        expected.inputs.setdefault("Node_Output", []).append(ref)
        expected.kinds["Node_Output"] = "NetOutput"
        expected.descs["Node_Output"] = []
    return builder, expected


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("written") / "model.om"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(made=models())
def test_read_back(path: Path, made: tuple[OmBuilder, Expected]) -> None:
    builder, expected = made
    builder.write(path)
    apart = take_apart(path)
    with open_om(path) as om:
        assert om.dialect == "G3"
        (model,) = om.models
        check_nodes(model, apart, expected)
        check_data(model, apart, expected)
        check_places(model, expected)
        assert model.model_def() == apart.model
        task_def = model.task_def()
        assert task_def is not None
        assert task_def.memory_size == model.int_attr("memory_size")


def check_nodes(model: OmModel, apart: TakenApart, expected: Expected) -> None:
    nodes = list(model.nodes())
    assert {node.name: node.type for node in nodes} == expected.kinds
    assert [node.name for node in nodes] == [op.name for op in apart.model.graph[0].op] == list(expected.kinds)
    for node in nodes:
        assert len(node.output_descs) == len(node.output_i) == len(expected.descs[node.name])
        for desc, wanted in zip(node.output_descs, expected.descs[node.name], strict=True):
            assert desc.replace(size=0, attrs={}) == wanted
            assert desc.size == tensor_memory_size_with_auto_padding(tensor_size_in_bytes(wanted))
        refs = expected.inputs.get(node.name, [])
        if node.type != "Data":
            assert list(node.is_input_const) == [expected.kinds[name] == "Const" for name, _ in refs]
            assert [desc.replace(data_offset=0).shape for desc in node.input_descs] == [
                expected.descs[name][index].shape for name, index in refs
            ]
            assert list(apart.ops[node.name].input) == [f"{name}:{index}" for name, index in refs]
    info = model.inout_info()
    inputs = [name for name, kind in expected.kinds.items() if kind == "Data"]
    results = expected.inputs.get("Node_Output", [])
    if inputs or results:
        assert info is not None
        assert [tensor.name for tensor in info.inputs] == inputs
        assert [tensor.dims for tensor in info.outputs] == [expected.descs[name][i].shape for name, i in results]
    else:
        assert info is None


def check_data(model: OmModel, apart: TakenApart, expected: Expected) -> None:
    consts = {const.name: const for const in model.const_nodes()}
    assert set(consts) == {name for name, kind in expected.kinds.items() if kind in ("Const", "Constant")}
    for name, const in consts.items():
        assert bytes(const.data()) == expected.data[name]
        if expected.kinds[name] == "Const":
            assert apart.const_bytes(name) == expected.data[name]
    for node in model.nodes():
        if node.type == "Variable":
            init = node.output_descs[0].init_value
            assert (None if init is None else init.data) == expected.data.get(node.name)


def check_places(model: OmModel, expected: Expected) -> None:
    """No two things share a place unless they are equal by the rules, and all lie inside."""
    base, room = model.int_attr("task_gen_variable_addr"), model.int_attr("variable_size")
    blocks: dict[int, tuple[int, tuple[int, bytes] | None]] = {}
    for node in model.variable_nodes():
        addr, size = node.output_i[0], node.output_descs[0].size
        assert base <= addr
        assert addr + size <= base + room
        width = node.output_descs[0].dtype.size_code
        content = (width, expected.data[node.name]) if node.type == "Constant" and expected.data[node.name] else None
        if addr in blocks:
            assert content is not None
            assert blocks[addr] == (size, content)
        blocks[addr] = (size, content)
    contents = [content for _, content in blocks.values() if content is not None]
    assert len(contents) == len(set(contents))
    ends = [addr + -(-size // 512) * 512 + 1024 for addr, (size, _) in sorted(blocks.items())]
    assert sorted(blocks)[1:] == ends[:-1]
    pieces: dict[int, bytes] = {}
    for const in model.const_nodes():
        if const.node.type == "Const" and const.size_bytes:
            assert const.offset is not None
            assert const.offset % 512 == 0
            assert pieces.setdefault(const.offset, expected.data[const.name]) == expected.data[const.name]
    assert len(set(pieces.values())) == len(pieces)
    spans = sorted((offset, offset + len(data)) for offset, data in pieces.items())
    starts = [512, *(-(-end // 512) * 512 for _, end in spans)]
    assert [start for start, _ in spans] == starts[:-1]
    weights = model.weights
    assert weights is not None
    end = spans[-1][1] if spans else 512
    assert weights.mem_size == model.int_attr("weight_size") == -(-(end + 32) // 512) * 512


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(made=models())
def test_names_as_numbers_and_parsed_forms(path: Path, made: tuple[OmBuilder, Expected]) -> None:
    """The same model with numbers for names; and from its parsed form, byte for byte."""
    builder, _ = made
    builder.write(path)
    with open_om(path) as om:
        plain = om.models[0].model_def()
    for compress in (False, True):
        builder.write(path, compress=compress)
        data = path.read_bytes()
        (checked,) = check_file(data)
        check_sizes(checked)
        with open_om(path) as om:
            model = om.models[0]
            assert model.is_compressed is compress
            message = model.model_def()
            for name in ("om_compress_version", "attr_name_enum", "attr_value_enum", "attrs_use_string_value"):
                message.attr.pop(name, None)
            assert message == plain
            root = GeRootModel.from_om(om)
            write_om(path.with_name("again.om"), root)
        assert path.with_name("again.om").read_bytes() == data


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(made=models(), mode=st.sampled_from([1, 2]))
def test_external_weights(path: Path, made: tuple[OmBuilder, Expected], mode: ExternalWeightMode) -> None:
    builder, expected = made
    builder.write(path, external_weight=mode)
    (checked,) = check_file(path.read_bytes(), path.parent / "weight")
    moved = {name for name, kind in expected.kinds.items() if kind in ("Const", "Constant") and expected.data[name]}
    found = {name[:-65]: op for name, op in checked.ops.items() if op.type == "FileConstant"}
    assert set(found) == moved
    kept = [name for name, op in checked.ops.items() if op.type != "FileConstant"]
    assert kept == [name for name in expected.kinds if name not in moved]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(made=models(), mode=st.sampled_from([0, 1, 2]), compress=st.booleans())
def test_what_is_written_loads(
    path: Path, made: tuple[OmBuilder, Expected], mode: ExternalWeightMode, compress: bool
) -> None:
    builder, expected = made
    builder.write(path, external_weight=mode, compress=compress)
    with Session(host_runtime()) as session, load_model(path, session=session) as model:
        assert model.verify(path).differences == ()
        for row in model.rows:
            name = row.name[:-65] if row.kind == "FileConstant" else row.name
            if name in expected.data and row.dev_addr is not None:
                value = model.read(row)
                assert (value if isinstance(value, bytes) else value.tobytes()) == expected.data[name]
        session.var_manager.check()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(made=models())
def test_written_twice_alike(path: Path, made: tuple[OmBuilder, Expected]) -> None:
    builder, _ = made
    builder.write(path)
    first = path.read_bytes()
    builder.write(path)
    assert path.read_bytes() == first


@settings(max_examples=60, deadline=None)
@given(arrays=st.lists(st.tuples(st.sampled_from(SIZED_TYPES), shapes, st.integers(0, 3)), max_size=6))
def test_arrays_come_back_by_their_own_type(path: Path, arrays: list[tuple[DataType, tuple[int, ...], int]]) -> None:
    builder = OmBuilder("arrays")
    wanted = {}
    for number, (dtype, shape, seed) in enumerate(arrays):
        if not dtype.is_packed:
            raw = np.random.default_rng(seed).bytes(int(np.prod(shape)) * dtype.to_numpy().itemsize)
            wanted[f"w{number}"] = np.frombuffer(raw, dtype.to_numpy()).reshape(shape)
            builder.const(f"w{number}", wanted[f"w{number}"], TensorDesc(dtype, Format.FORMAT_ND, shape))
    builder.write(path)
    with open_om(path) as om:
        for const in om.models[0].const_nodes():
            assert const.desc is not None
            found = np.frombuffer(const.data(), const.desc.dtype.to_numpy()).reshape(const.desc.shape)
            assert found.tobytes() == wanted[const.name].tobytes()
            assert found.shape == wanted[const.name].shape
