"""Weights of ONNX files: initialisers, Constant nodes, inner graphs, external data."""

import builtins
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gevar.errors import ModelFileError
from gevar.om.named_tensor import read_tensors
from gevar.om.onnx_file import read_onnx
from gevar.om.stored_bytes import StreamedBytes, read_all
from gevar.types import DataType
from tests.contract.test_weight_file_counts import few_files
from tests.helpers.peak_memory import bounded_memory

onnx = pytest.importorskip("onnx")
helper, TensorProto, numpy_helper = onnx.helper, onnx.TensorProto, onnx.numpy_helper

KERNEL = np.arange(12, dtype=np.float32).reshape(3, 4)


def save(path: Path, tensors: list[object], nodes: list[object] | None = None) -> Path:
    """Write a model with these initialisers and nodes."""
    graph = helper.make_graph(nodes or [], "main", [], [], initializer=tensors)
    path.write_bytes(helper.make_model(graph).SerializeToString())
    return path


def tensor(name: str, array: np.ndarray) -> object:
    return numpy_helper.from_array(array, name)


def external(name: str, location: str, shape: tuple[int, ...] = (3, 4), **entries: str) -> object:
    found = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        found.external_data.add(key=key, value=value)
    return found


def test_every_type(tmp_path: Path) -> None:
    types = {
        "FLOAT": DataType.DT_FLOAT,
        "FLOAT16": DataType.DT_FLOAT16,
        "BFLOAT16": DataType.DT_BF16,
        "DOUBLE": DataType.DT_DOUBLE,
        "INT8": DataType.DT_INT8,
        "INT16": DataType.DT_INT16,
        "INT32": DataType.DT_INT32,
        "INT64": DataType.DT_INT64,
        "UINT8": DataType.DT_UINT8,
        "UINT16": DataType.DT_UINT16,
        "UINT32": DataType.DT_UINT32,
        "UINT64": DataType.DT_UINT64,
        "BOOL": DataType.DT_BOOL,
        "COMPLEX64": DataType.DT_COMPLEX64,
        "FLOAT8E4M3FN": DataType.DT_FLOAT8_E4M3FN,
        "FLOAT8E5M2": DataType.DT_FLOAT8_E5M2,
    }
    made = [helper.make_tensor(name, getattr(TensorProto, name), (3,), [0, 1, 1]) for name in types]
    found = {one.name: one for one in read_tensors(save(tmp_path / "m.onnx", made))}
    assert {name: one.dtype for name, one in found.items()} == types
    for name, dtype in types.items():
        expected = np.array([0, 1, 1]).astype(dtype.to_numpy())
        assert read_all(found[name].data) == expected.tobytes(), name
        assert found[name].shape == (3,)


def test_raw_and_typed_data_and_scalars(tmp_path: Path) -> None:
    made = [
        tensor("raw", KERNEL),
        helper.make_tensor("typed", TensorProto.FLOAT, KERNEL.shape, KERNEL.reshape(-1)),
        tensor("scalar", np.array(7, np.int64)),
        tensor("empty", np.zeros((0, 3), np.float32)),
    ]
    found = {one.name: one for one in read_onnx(save(tmp_path / "m.onnx", made))}
    assert read_all(found["raw"].data) == read_all(found["typed"].data) == KERNEL.tobytes()
    assert (found["scalar"].shape, read_all(found["scalar"].data)) == ((), np.int64(7).tobytes())
    assert (found["empty"].shape, found["empty"].data.nbytes) == ((0, 3), 0)


def test_constants_and_inner_graphs_have_unique_names(tmp_path: Path) -> None:
    def constant(value: int) -> object:
        return helper.make_node("Constant", [], ["c"], value=tensor("inside", np.array([value], np.int8)))

    inner = [helper.make_graph([constant(value)], "branch", [], []) for value in (2, 3)]
    nodes = [constant(1), helper.make_node("If", ["x"], ["y"], then_branch=inner[0], else_branch=inner[1])]
    nodes.append(helper.make_node("Constant", [], ["n"], value_int=5))
    found = read_onnx(save(tmp_path / "m.onnx", [tensor("w", KERNEL)], nodes))
    values = {one.name: read_all(one.data)[0] for one in found if one.name != "w"}
    assert values == {"c": 1, "branch/c": 3, "branch/c/2": 2}  # attributes lie in the order of their names


def test_external_data_are_streamed_from_their_place(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.bin").write_bytes(b"head" + KERNEL.tobytes() + b"tail")
    (tmp_path / "whole.bin").write_bytes(KERNEL.tobytes())
    made = [external("a", "sub/w.bin", offset="4", length="48"), external("b", "whole.bin")]
    found = read_onnx(save(tmp_path / "m.onnx", made))
    assert all(isinstance(one.data, StreamedBytes) for one in found)
    assert [read_all(one.data) for one in found] == [KERNEL.tobytes()] * 2


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: external("w", "../out.bin"), "do not lie in the folder"),
        (lambda: external("w", "/etc/hostname"), "do not lie in the folder"),
        (lambda: external("w", "link.bin"), "do not lie in the folder"),
        (lambda: external("w", ""), "do not lie in the folder"),
        (lambda: external("w", "missing.bin"), "No such file"),
        (lambda: external("w", "w.bin", offset="1"), "has 47 B"),
        (lambda: external("w", "w.bin", offset="49"), "leaves the 48 B"),
        (lambda: external("w", "w.bin", offset="1", length="48"), "leaves the 48 B"),
        (lambda: external("w", "long.bin"), "has 49 B"),
        (lambda: external("w", "loop.bin"), "symbolic link"),
        (lambda: external("w", "w.bin", offset="-1"), "leaves the 48 B"),
        (lambda: external("w", "w.bin", length="12"), "has 12 B"),
        (lambda: external("w", "w.bin", offset="x"), "is no number"),
        (lambda: helper.make_tensor("w", TensorProto.STRING, (1,), [b"text"]), r"type 8 \(STRING\) of ONNX"),
        (lambda: helper.make_tensor("w", TensorProto.INT4, (1,), [1]), r"type 22 \(INT4\) of ONNX"),
        (lambda: TensorProto(name="w", data_type=1, dims=(2,), raw_data=b"1234"), "has 4 B"),
        (lambda: TensorProto(name="w", data_type=1, dims=(2,), float_data=[1.0]), "tensor w"),
        (lambda: TensorProto(name="w", data_type=1, dims=(-1,), raw_data=b""), "shape is -1, no number"),
    ],
)
def test_tensors_that_cannot_be_taken(tmp_path: Path, make: Callable[[], object], reason: str) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    for path in (tmp_path / "out.bin", folder / "w.bin"):
        path.write_bytes(KERNEL.tobytes())
    (folder / "long.bin").write_bytes(KERNEL.tobytes() + b"x")
    (folder / "link.bin").symlink_to(tmp_path / "out.bin")
    (folder / "loop.bin").symlink_to("loop.bin")
    path = save(folder / "m.onnx", [make()])
    with pytest.raises(ModelFileError, match=reason):
        read_onnx(path)


def test_files_that_are_no_models(tmp_path: Path) -> None:
    for content in (b"", b"\xff" * 40, b"no model"):
        (tmp_path / "m.onnx").write_bytes(content)
        with pytest.raises(ModelFileError, match="ONNX model"):
            read_onnx(tmp_path / "m.onnx")
    with pytest.raises(ModelFileError, match="No such file"):
        read_onnx(tmp_path / "missing.onnx")


def test_sparse_initialisers_are_refused(tmp_path: Path) -> None:
    values = helper.make_tensor("s", TensorProto.FLOAT, (1,), [1.0])
    sparse = helper.make_sparse_tensor(values, helper.make_tensor("i", TensorProto.INT64, (1,), [0]), [4])
    graph = helper.make_graph([], "main", [], [], sparse_initializer=[sparse])
    (tmp_path / "m.onnx").write_bytes(helper.make_model(graph).SerializeToString())
    with pytest.raises(ModelFileError, match="is sparse"):
        read_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize("part", [b"thename", b"w.bin", b"output", b"ofgraph"])
def test_texts_that_are_not_utf8(tmp_path: Path, part: bytes) -> None:
    """Such texts come as bytes."""
    (tmp_path / "w.bin").write_bytes(KERNEL.tobytes())
    node = helper.make_node("Constant", [], ["output"], value=tensor("", KERNEL))
    inner = helper.make_graph([], "ofgraph", [], [], initializer=[tensor("thename", KERNEL)])
    nodes = [node, helper.make_node("If", ["x"], ["y"], then_branch=inner)]
    path = save(tmp_path / "m.onnx", [external("thename", "w.bin")], nodes)
    assert [one.name for one in read_onnx(path)] == ["thename", "output", "ofgraph/thename"]
    path.write_bytes(path.read_bytes().replace(part, b"\xff" + part[1:]))
    with pytest.raises(ModelFileError, match=r"(?i)utf-8"):
        read_onnx(path)


def test_constants_of_functions(tmp_path: Path) -> None:
    node = helper.make_node("Constant", [], ["c"], value=tensor("", KERNEL))
    function = helper.make_function("d", "f", [], ["c"], [node], [helper.make_opsetid("", 17)])
    model = helper.make_model(helper.make_graph([node], "main", [], []), functions=[function])
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert [(one.name, read_all(one.data)) for one in read_onnx(tmp_path / "m.onnx")] == [
        ("c", KERNEL.tobytes()),
        ("f/c", KERNEL.tobytes()),
    ]


def test_sparse_constants_and_segments_are_refused(tmp_path: Path) -> None:
    values = helper.make_tensor("s", TensorProto.FLOAT, (1,), [1.0])
    sparse = helper.make_sparse_tensor(values, helper.make_tensor("i", TensorProto.INT64, (1,), [0]), [4])
    node = helper.make_node("Constant", [], ["c"], sparse_value=sparse)
    with pytest.raises(ModelFileError, match="tensor c: is sparse"):
        read_onnx(save(tmp_path / "m.onnx", [], [node]))
    segment = tensor("w", KERNEL)
    segment.segment.end = 48
    with pytest.raises(ModelFileError, match="tensor w: is a segment of a tensor"):
        read_onnx(save(tmp_path / "m.onnx", [segment]))


def test_check_sums_of_external_data(tmp_path: Path) -> None:
    data = KERNEL.tobytes()
    (tmp_path / "w.bin").write_bytes(data + b"more")
    good = hashlib.sha1(data + b"more").hexdigest()
    for checksum in (good, good.upper()):
        made = [external(name, "w.bin", offset="0", length="48", checksum=checksum) for name in ("a", "b")]
        found = read_onnx(save(tmp_path / "m.onnx", made))
        assert [read_all(one.data) for one in found] == [data, data]
    for checksum in (hashlib.sha1(data).hexdigest(), "", "x" * 500):
        made = [external("a", "w.bin", offset="0", length="48", checksum=checksum)]
        [one] = read_onnx(save(tmp_path / "m.onnx", made))
        with pytest.raises(ModelFileError, match=f"tensor a.*has the SHA-1 {good}, not.*damaged"):
            read_all(one.data)


def test_more_external_files_than_may_be_open(tmp_path: Path) -> None:
    for number in range(60):
        (tmp_path / f"{number}.bin").write_bytes(np.full((3, 4), number, np.float32).tobytes())
    path = save(tmp_path / "m.onnx", [external(str(number), f"{number}.bin") for number in range(60)])
    with few_files(20):
        found = {one.name: np.frombuffer(read_all(one.data), np.float32) for one in read_onnx(path)}
    assert {name: set(array.tolist()) for name, array in found.items()} == {str(n): {n} for n in range(60)}


def test_many_tensors_of_one_name(tmp_path: Path) -> None:
    found = read_onnx(save(tmp_path / "m.onnx", [helper.make_tensor("w", TensorProto.INT8, (), [1])] * 20_000))
    assert [one.name for one in found[:3]] == ["w", "main/w", "main/w/2"]
    assert len({one.name for one in found}) == 20_000


def field(number: int, value: bytes) -> bytes:
    """A field of a message."""
    size, length = len(value), b""
    while size >= 0x80:
        length, size = length + bytes([size & 0x7F | 0x80]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + value


MANY = 1_000_000
BOMBS = {
    "tensors": field(7, field(5, b"") * MANY),
    "nodes": field(7, field(1, b"") * MANY),
    "attributes": field(7, field(1, field(5, b"") * MANY)),
    "tensors of an attribute": field(7, field(1, field(5, field(10, b"") * MANY))),
    "external data": field(7, field(5, field(13, b"") * MANY)),
    "functions": b"\xca\x01\0" * MANY,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_a_model_stands_for_is_limited(tmp_path: Path, bomb: str) -> None:
    (tmp_path / "m.onnx").write_bytes(BOMBS[bomb])
    with bounded_memory(len(BOMBS[bomb])), pytest.raises(ModelFileError, match=r"stand for more than \d+ B of memory"):
        read_onnx(tmp_path / "m.onnx")


def test_models_in_each_other(tmp_path: Path) -> None:
    """Too deep for protobuf, and for a stack."""
    data = b""
    for _ in range(5_000):
        data = field(1, field(5, field(6, data)))
    (tmp_path / "m.onnx").write_bytes(field(7, data) + field(2, bytes(1 << 19)))
    with pytest.raises(ModelFileError, match="ONNX model"):
        read_onnx(tmp_path / "m.onnx")


def test_a_large_model_is_in_order(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", [f"a{number}", "b"], [f"a{number + 1}"]) for number in range(20_000)]
    large = tensor("large", np.arange(1 << 20, dtype=np.float32))
    found = read_onnx(save(tmp_path / "m.onnx", [large, tensor("w", KERNEL)], nodes))
    assert [(one.name, one.data.nbytes) for one in found] == [("large", 4 << 20), ("w", 48)]


def test_a_model_larger_than_a_message_may_be(tmp_path: Path) -> None:
    with (tmp_path / "m.onnx").open("wb") as file:
        file.truncate(1 << 31)
    with (
        bounded_memory(0),
        pytest.raises(ModelFileError, match="2147483647 B at most are read; keep weights in external"),
    ):
        read_onnx(tmp_path / "m.onnx")


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "m.onnx", [tensor("w", KERNEL)])
    real = builtins.__import__

    def without_onnx(name: str, *rest: object) -> object:
        if name == "onnx":
            raise ModuleNotFoundError("No module named 'onnx'", name="onnx")
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.delitem(sys.modules, "onnx")
    monkeypatch.setattr(builtins, "__import__", without_onnx)
    with pytest.raises(ModuleNotFoundError, match="onnx"):
        read_tensors(path)


def test_external_data_with_another_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(KERNEL.tobytes())
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "data").hardlink_to(tmp_path / "secret")
    path = save(tmp_path / "model" / "m.onnx", [external("w", "data")])
    with pytest.raises(ModelFileError, match="hard links"):
        read_onnx(path)
