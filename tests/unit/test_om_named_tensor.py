"""Weights from safetensors, npz and ONNX files, and back into the first two; the packages themselves are the judges."""

import io
import json
import struct
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from gevar.errors import ModelFileError
from gevar.om.named_tensor import NamedTensor, read_tensors, write_tensors
from gevar.om.stored_bytes import StreamedBytes, read_all
from gevar.types import DataType

rng = np.random.default_rng(7)
ARRAYS: dict[str, np.ndarray] = {
    "f32": rng.random((3, 5), np.float32),
    "f64": rng.random(4),
    "f16": rng.random((2, 1, 3)).astype(np.float16),
    "i8": rng.integers(-128, 128, (7,), np.int8),
    "i64": rng.integers(-9, 9, (2, 2)),
    "u16": rng.integers(0, 9, (3,), np.uint16),
    "bool": rng.random(5) < 0.5,
    "scalar": np.array(2.5, np.float32),
    "empty": np.zeros((0, 4), np.float32),
    "a/b.c": np.arange(4, dtype=np.uint8),
}


def named(name: str, array: np.ndarray) -> NamedTensor:
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return NamedTensor(name, DataType.from_numpy(array.dtype), array.shape, data)


def as_arrays(tensors: list[NamedTensor]) -> dict[str, np.ndarray]:
    return {
        tensor.name: np.frombuffer(read_all(tensor.data), tensor.dtype.to_numpy()).reshape(tensor.shape)
        for tensor in tensors
    }


def same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert set(found) == set(expected) != set()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype, name
        assert found[name].shape == array.shape, name
        assert found[name].tobytes() == array.tobytes(), name


def test_safetensors_of_the_package_are_read(tmp_path: Path) -> None:
    save_file = pytest.importorskip("safetensors.numpy").save_file
    save_file(ARRAYS, tmp_path / "w.safetensors", metadata={"made": "by a test"})
    tensors = read_tensors(tmp_path / "w.safetensors")
    same(as_arrays(tensors), ARRAYS)
    assert all(isinstance(tensor.data, StreamedBytes) for tensor in tensors)


def test_the_package_reads_safetensors_that_are_written(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors")
    numpy_form = pytest.importorskip("safetensors.numpy")
    assert write_tensors(tmp_path / "w.safetensors", [named(*item) for item in ARRAYS.items()]) == {}
    same(numpy_form.load_file(tmp_path / "w.safetensors"), ARRAYS)
    same(as_arrays(read_tensors(tmp_path / "w.safetensors")), ARRAYS)
    other = {"bf16": np.arange(6).astype(ml_dtypes.bfloat16), "f8": np.arange(3).astype(ml_dtypes.float8_e4m3fn)}
    write_tensors(tmp_path / "o.safetensors", [named(*item) for item in other.items()])
    with safetensors.safe_open(tmp_path / "o.safetensors", "np") as file:
        assert {name: file.get_slice(name).get_dtype() for name in other} == {"bf16": "BF16", "f8": "F8_E4M3"}
    same(as_arrays(read_tensors(tmp_path / "o.safetensors")), other)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_of_numpy_are_read(tmp_path: Path, save: object) -> None:
    assert callable(save)
    save(tmp_path / "w.npz", **ARRAYS)
    same(as_arrays(read_tensors(tmp_path / "w.npz")), ARRAYS)


def test_arrays_in_other_orders_are_turned(tmp_path: Path) -> None:
    grid = rng.random((3, 4), np.float32)
    np.savez(
        tmp_path / "w.npz", columns=np.asfortranarray(grid), big=grid.astype(">f4"), row=np.asfortranarray(grid[0])
    )
    same(as_arrays(read_tensors(tmp_path / "w.npz")), {"columns": grid, "big": grid, "row": grid[0]})


def test_numpy_reads_npz_that_are_written(tmp_path: Path) -> None:
    assert write_tensors(tmp_path / "w.npz", [named(*item) for item in ARRAYS.items()]) == {}
    with np.load(tmp_path / "w.npz") as archive:
        same(dict(archive), ARRAYS)
    same(as_arrays(read_tensors(tmp_path / "w.npz")), ARRAYS)


def test_types_that_the_other_file_does_not_have_are_raw(tmp_path: Path) -> None:
    bf16 = named("bf16", np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3))
    int4 = NamedTensor("int4", DataType.DT_INT4, (3, 3), memoryview(b"\x01\x23\x45\x67\x89"))
    narrow = NamedTensor("narrow", DataType.DT_FLOAT, (8,), memoryview(bytes(8)))
    assert set(write_tensors(tmp_path / "w.npz", [bf16, int4, narrow])) == {"bf16", "int4", "narrow"}
    with np.load(tmp_path / "w.npz") as archive:
        assert archive["bf16"].tobytes() == bytes(bf16.data)
        assert archive["int4"].dtype == np.uint8
    assert set(write_tensors(tmp_path / "w.safetensors", [bf16, int4, narrow])) == {"int4", "narrow"}
    (length,) = struct.unpack_from("<Q", (tmp_path / "w.safetensors").read_bytes())
    header = json.loads((tmp_path / "w.safetensors").read_bytes()[8 : 8 + length])
    assert header["__metadata__"] == {"int4": "DT_INT4 [3, 3]", "narrow": "DT_FLOAT [8]"}
    assert header["int4"]["dtype"] == "U8"
    assert header["int4"]["shape"] == [5]


@pytest.mark.parametrize("shape", [(-1, 2), (-1, -2), (1 << 63,), (1 << 40, 1 << 40)])
def test_shapes_that_are_not_known_are_raw(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """As nodes of models may have them."""
    tensor = NamedTensor("w", DataType.DT_FLOAT, shape, memoryview(bytes(8)))
    for ending in ("npz", "safetensors"):
        assert set(write_tensors(tmp_path / f"w.{ending}", [tensor])) == {"w"}
        [found] = read_tensors(tmp_path / f"w.{ending}")
        assert (found.dtype, found.shape, read_all(found.data)) == (DataType.DT_UINT8, (8,), bytes(8))


def test_equal_tensors_give_equal_files(tmp_path: Path) -> None:
    for ending in ("npz", "safetensors"):
        for name in ("one", "two"):
            write_tensors(tmp_path / f"{name}.{ending}", [named(*item) for item in ARRAYS.items()])
        assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()


def test_wrong_endings_and_names(tmp_path: Path) -> None:
    one = named("w", np.zeros(1, np.float32))
    with pytest.raises(ValueError, match=r"none of \.safetensors,.* \.onnx"):
        read_tensors(tmp_path / "w.pt")
    with pytest.raises(ValueError, match=r"neither \.safetensors nor \.npz"):
        write_tensors(tmp_path / "w.onnx", [one])
    with pytest.raises(ValueError, match="two tensors are named 'w'"):
        write_tensors(tmp_path / "w.npz", [one, one])
    with pytest.raises(ValueError, match="no tensor named __metadata__"):
        write_tensors(tmp_path / "w.safetensors", [named("__metadata__", np.zeros(1, np.float32))])
    assert list(tmp_path.iterdir()) == []


def safetensors_bytes(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(begin: object = 0, end: object = 4, *, dtype: object = "F32", shape: object = (1,)) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no room"),
        (b"\1\0\0", "no room"),
        (safetensors_bytes({}, length=1 << 62), "are declared"),
        (safetensors_bytes({}, length=3), "are declared"),
        (safetensors_bytes(b"{"), "is no JSON"),
        (safetensors_bytes(b'{"a": {}, "a": {}}'), "twice"),
        (safetensors_bytes(b"[" * 100_000), "is no JSON"),
        (safetensors_bytes([]), "no object of objects"),
        (safetensors_bytes({"a": 5}), "no object of objects"),
        (safetensors_bytes({"a": {}}), "no data_offsets"),
        (safetensors_bytes({"a": entry("0")}, bytes(4)), "no data_offsets"),
        (safetensors_bytes({"a": entry(-4, 0)}, bytes(4)), "no data_offsets"),
        (safetensors_bytes({"a": entry(True, 4)}, bytes(4)), "no data_offsets"),
        (safetensors_bytes({"a": entry(dtype="F7")}, bytes(4)), "has type 'F7'"),
        (safetensors_bytes({"a": entry(dtype=None)}, bytes(4)), "has type None"),
        (safetensors_bytes({"a": entry(shape=[-1])}, bytes(4)), "dimension of its shape is -1, no number from 0 to"),
        (safetensors_bytes({"a": entry(shape="1")}, bytes(4)), "no list of sizes"),
        (safetensors_bytes({"a": entry(shape=[2])}, bytes(8)), "takes 8 B, its place has 4 B"),
        (safetensors_bytes({"a": entry(shape=[1 << 60, 4])}, bytes(8)), "takes more than 9223372036854775807 B"),
        (safetensors_bytes({"a": entry(shape=[1 << 63, 0])}, bytes(8)), "shape is 9223372036854775808, no number from"),
        (safetensors_bytes({"a": entry(shape=[1.0])}, bytes(4)), r"shape is 1\.0, no number from 0"),
        (safetensors_bytes({"a": entry(0, 1 << 64)}, bytes(4)), "no data_offsets"),
        (safetensors_bytes({"a": entry(4, 0)}, bytes(4)), "its place has -4 B"),
        (safetensors_bytes({"a": entry(), "__metadata__": {"x": 1}}, bytes(4)), "no object of texts"),
        (safetensors_bytes({"a": entry(), "__metadata__": []}, bytes(4)), "no object of texts"),
        (safetensors_bytes({"a": entry(), "__metadata__": {"x": float("nan")}}, bytes(4)), "NaN is no number"),
        (safetensors_bytes({"\ud800": entry()}, bytes(4)), "surrogates not allowed"),
        (safetensors_bytes(json.dumps({"a": entry()}).encode("utf-16"), bytes(4)), "is no JSON in UTF-8"),
        (safetensors_bytes(b"\xef\xbb\xbf" + json.dumps({"a": entry()}).encode(), bytes(4)), "BOM"),
        (safetensors_bytes({"a": entry(4, 8)}, bytes(8)), "begins at 4, 0 expected"),
        (safetensors_bytes({"a": entry(), "b": entry()}, bytes(8)), "begins at 0, 4 expected"),
        (safetensors_bytes({"a": entry()}, bytes(5)), "the file has"),
        (safetensors_bytes({"a": entry()}, bytes(3)), "the file has"),
    ],
)
def test_damaged_safetensors(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "w.safetensors").write_bytes(content)
    with pytest.raises(ModelFileError, match=reason):
        read_tensors(tmp_path / "w.safetensors")


def npz_bytes(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return file.getvalue()


def npy_bytes(array: np.ndarray, *, pickled: bool = False) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=pickled)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "zip"),
        (b"PK\3\4 and so on", "zip"),
        (npz_bytes(w=b"no array"), "magic"),
        (npz_bytes(w=b"\x93NUMPY\x04\x00\x02\x00{}"), r"version \(4, 0\)"),
        (npz_bytes(w=b"\x93NUMPY\x03\x00\x02\x00\x00\x00{}"), "has no header of numpy"),
        (npz_bytes(w=npy_bytes(np.array([{}], object), pickled=True)), "no tensor"),
        (npz_bytes(w=npy_bytes(np.zeros(2, [("a", "f4")]))), "no tensor"),
        (npz_bytes(w=npy_bytes(np.array(["text"]))), "no data type"),
        (npz_bytes(w=npy_bytes(np.zeros(2, "V2"))), "no tensor"),
        (npz_bytes(w=npy_bytes(np.zeros(2, "V5"))), "no tensor"),
        (npz_bytes(w=npy_bytes(np.zeros(1000, np.uint8))[:-1]), r"\[1000\] takes 1000 B, 999 B are there"),
        (npz_bytes(w=npy_bytes(np.zeros(1000, np.uint8)) + b"x"), r"\[1000\] takes 1000 B, 1001 B are there"),
    ],
)
def test_damaged_npz(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "w.npz").write_bytes(content)
    with pytest.raises(ModelFileError, match=reason):
        read_tensors(tmp_path / "w.npz")


def test_damage_that_shows_when_the_bytes_are_read(tmp_path: Path) -> None:
    data = bytearray(npz_bytes(w=npy_bytes(np.zeros(1000, np.uint8))))
    data[600] ^= 1
    (tmp_path / "crc.npz").write_bytes(data)
    with pytest.raises(ModelFileError, match="CRC"):
        read_all(read_tensors(tmp_path / "crc.npz")[0].data)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for ending in ("safetensors", "npz"):
        with pytest.raises(ModelFileError, match=r"No such file"):
            read_tensors(tmp_path / f"missing.{ending}")
