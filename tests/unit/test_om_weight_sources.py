"""Files of tensors behind one face: an index of several safetensors files, and npy files."""

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gevar.errors import ModelFileError
from gevar.om.named_tensor import NamedTensor, read_tensors, write_tensors
from gevar.om.stored_bytes import read_all
from gevar.om.weight_source import TensorFile
from gevar.types import DataType

INDEX = "m.safetensors.index.json"


def named(name: str, array: np.ndarray) -> NamedTensor:
    data = memoryview(array.tobytes())
    return NamedTensor(name, DataType.from_numpy(array.dtype), array.shape, data)


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A folder with two files and their index; each file has a tensor that the index does not name there."""
    folder = tmp_path / "model"
    folder.mkdir()
    write_tensors(folder / "one.safetensors", [named("a", np.arange(4)), named("x", np.zeros(2))])
    write_tensors(folder / "two.safetensors", [named("b", np.arange(5, dtype=np.float32)), named("a", np.ones(9))])
    write_index(folder, {"b": "two.safetensors", "a": "one.safetensors"})
    return folder


def write_index(folder: Path, places: object) -> None:
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 52}, "weight_map": places}))


def test_an_index_names_tensors_of_several_files(shards: Path) -> None:
    with TensorFile(shards / INDEX) as source:
        assert source.path == shards / INDEX
        found = {tensor.name: read_all(tensor.data) for tensor in source.tensors()}
    assert list(found) == ["b", "a"]
    assert found == {"a": np.arange(4).tobytes(), "b": np.arange(5, dtype=np.float32).tobytes()}


@pytest.mark.parametrize("file", ["", ".", "..", "../secret.safetensors", "/secret.safetensors", "a\0b", "sub/x"])
def test_an_index_never_leads_out_of_its_folder(shards: Path, file: str) -> None:
    write_tensors(shards.parent / "secret.safetensors", [named("a", np.arange(4))])
    write_index(shards, {"a": file})
    with pytest.raises(ModelFileError, match="does not lie in the folder"):
        read_tensors(shards / INDEX)


def test_an_index_follows_no_link(shards: Path) -> None:
    write_tensors(shards.parent / "secret.safetensors", [named("a", np.arange(4))])
    (shards / "link.safetensors").symlink_to(shards.parent / "secret.safetensors")
    write_index(shards, {"a": "link.safetensors"})
    with pytest.raises(ModelFileError, match="does not lie in the folder"):
        read_tensors(shards / INDEX)


def test_an_index_of_a_pipe_does_not_wait(shards: Path) -> None:
    os.mkfifo(shards / "pipe.safetensors")
    write_index(shards, {"a": "pipe.safetensors"})
    with pytest.raises(ModelFileError, match="not a regular file"):
        read_tensors(shards / INDEX)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "no object of file names"),
        ('{"weight_map": {"a": 1}}', "no object of file names"),
        ('{"weight_map": {"c": "one.safetensors"}}', "tensor c is not in one.safetensors"),
        ('{"weight_map": {"c": "three.safetensors"}}', "cannot be opened"),
    ],
)
def test_damaged_index(shards: Path, text: str, reason: str) -> None:
    (shards / INDEX).write_text(text)
    with pytest.raises(ModelFileError, match=reason):
        read_tensors(shards / INDEX)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.arange(6, dtype=">i4"),
        np.zeros((0, 3)),
        np.asfortranarray(np.zeros((0, 3))),
        np.array(5.0),
        np.zeros(0, ">f8"),
    ],
)
def test_npy_of_numpy_is_read(tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "w.npy", array)
    [tensor] = read_tensors(tmp_path / "w.npy")
    native = array.astype(array.dtype.newbyteorder("="))
    assert (tensor.name, tensor.shape, tensor.dtype) == ("w", array.shape, DataType.from_numpy(native.dtype))
    assert read_all(tensor.data) == native.tobytes()


@pytest.mark.parametrize("change", [b"longer", None])
def test_npy_of_another_size_is_refused(tmp_path: Path, change: bytes | None) -> None:
    np.save(tmp_path / "w.npy", np.arange(6))
    data = (tmp_path / "w.npy").read_bytes()
    (tmp_path / "w.npy").write_bytes(data[:-1] if change is None else data + change)
    with pytest.raises(ModelFileError, match="takes 48 B"):
        read_tensors(tmp_path / "w.npy")


def test_npy_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w.npy").write_bytes(b"\x93NUMPY\x09\x00")
    with pytest.raises(ModelFileError, match="version"):
        read_tensors(tmp_path / "w.npy")
    np.save(tmp_path / "o.npy", np.array([None]), allow_pickle=True)
    with pytest.raises(ModelFileError, match="no tensor"):
        read_tensors(tmp_path / "o.npy")


def test_a_turned_array_that_is_not_there_is_not_allocated(tmp_path: Path) -> None:
    """Its header says 8 TB; the archive has the bytes of the header alone."""
    with (tmp_path / "w.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": True, "shape": (10**6, 10**6)})
    head = (tmp_path / "w.npy").read_bytes()
    with pytest.raises(ModelFileError, match="takes 8000000000000 B"):
        read_tensors(tmp_path / "w.npy")
    with zipfile.ZipFile(tmp_path / "w.npz", "w") as archive:
        archive.writestr("w.npy", head)
    with pytest.raises(ModelFileError, match="takes 8000000000000 B"):
        read_tensors(tmp_path / "w.npz")


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
def test_a_file_without_tensors(tmp_path: Path, ending: str) -> None:
    write_tensors(tmp_path / f"none{ending}", [])
    assert read_tensors(tmp_path / f"none{ending}") == []
