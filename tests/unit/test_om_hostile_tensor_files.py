"""Files of tensors that state more than they have: refused before anything is made of it, in little time and memory."""

import io
import json
import struct
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from gevar.errors import ModelFileError
from gevar.om.json_fields import strict_json
from gevar.om.named_tensor import declared_bytes, read_tensors, write_tensors
from gevar.om.stored_bytes import chunks_of, read_all
from gevar.om.weight_source import TensorFile
from tests.contract.test_weight_file_counts import few_files
from tests.helpers.peak_memory import bounded_memory
from tests.unit.test_om_named_tensor import entry, named, npy_bytes, safetensors_bytes

MANY = 60


def npy_head(shape: str, *, dtype: str = "'<f4'", fortran: bool = False, version: tuple[int, int] = (1, 0)) -> bytes:
    text = f"{{'descr': {dtype}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + bytes(version) + len(text).to_bytes(2 if version == (1, 0) else 4, "little") + text


def archive(*members: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as made:
        for name, data in members:
            made.writestr(name, data)
    return file.getvalue()


def with_sizes(data: bytes, packed: int | None, unpacked: int) -> bytes:
    """The archive with other sizes in its list of files."""
    at = data.rindex(b"PK\x01\x02")
    packed = struct.unpack_from("<I", data, at + 20)[0] if packed is None else packed
    return data[: at + 20] + struct.pack("<II", packed, unpacked) + data[at + 28 :]


def header_of(text: bytes) -> bytes:
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text


BOMB_SHAPE = b'{"a":{"dtype":"F32","shape":[%s2],"data_offsets":[0,4]}}'

HOSTILE: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "many dimensions": ("safetensors", lambda: safetensors_bytes(BOMB_SHAPE % (b"2," * 500_000)), "takes more than"),
    "long numbers": ("safetensors", lambda: safetensors_bytes(BOMB_SHAPE % (b"9" * 4300 + b",") * 900), "is no JSON"),
    "one long number": (
        "safetensors",
        lambda: safetensors_bytes(BOMB_SHAPE % (b"9" * 4300 + b",")),
        "no number from 0",
    ),
    "a number too long": (
        "safetensors",
        lambda: safetensors_bytes(BOMB_SHAPE % (b"9" * 9999 + b",")),
        "Exceeds the limit",
    ),
    "deep": ("safetensors", lambda: safetensors_bytes(b'{"a":' * 50_000), "nested too deep"),
    "many values": (
        "safetensors",
        lambda: safetensors_bytes(b'{"__metadata__":[%s[]]}' % (b"[]," * 3_000_000)),
        "take",
    ),
    "a long name": ("safetensors", lambda: safetensors_bytes({"n" * 10**6: entry(dtype="X")}), "has type 'X'"),
    "a long shape": ("safetensors", lambda: safetensors_bytes({"a": entry(shape=[1] * 99 + [2])}), "of 100 dimensions"),
    "no parentheses": ("npy", lambda: header_of(b"{'descr': ("), "no header of numpy"),
    "deep parentheses": ("npy", lambda: header_of(b"(" * 9000), "no header of numpy"),
    "many signs": ("npy", lambda: header_of(b"-" * 9000 + b"1"), "no header of numpy"),
    "no type in a type": ("npy", lambda: npy_head("(2,)", dtype="()") + bytes(8), "no header of numpy"),
    "keys of two types": ("npy", lambda: header_of(b"{1: 2, 'a': 3}"), "no header of numpy"),
    "a key that is a list": ("npy", lambda: header_of(b"{[]: 2}"), "no header of numpy"),
    "two negative dimensions": ("npy", lambda: npy_head("(-1, -2)") + bytes(8), "shape is -1, no number"),
    "a truth for a dimension": ("npy", lambda: npy_head("(True, 2)") + bytes(8), "shape is True, no number"),
    "zero times more than there is": ("npy", lambda: npy_head(f"({1 << 63}, 0)"), "no number from 0"),
    "a long header": ("npy", lambda: npy_head(f"({'1,' * 9000})") + bytes(4), "has a header of 18"),
    "4 GiB of header": ("npy", lambda: b"\x93NUMPY\2\0\xff\xff\xff\xff", "has a header of 4294967295 B"),
    "4 GiB of packed header": (
        "npz",
        lambda: archive(("w.npy", b"\x93NUMPY\2\0\xff\xff\xff\xff" + bytes(1 << 22)), method=zipfile.ZIP_DEFLATED),
        "has a header of 4294967295 B",
    ),
    "8 TB": ("npz", lambda: archive(("w.npy", npy_head("(1000000, 1000000)"))), "takes 4000000000000 B, 0 B are there"),
    "4 GiB of 77 B": (
        "npz",
        lambda: with_sizes(archive(("w.npy", npy_head("(32768, 32768)", fortran=True))), None, (1 << 32) - 2),
        "4294967294 B of 77 B, more than a file of 185 B can hold",
    ),
    "more packed than the file": (
        "npz",
        lambda: with_sizes(archive(("w.npy", npy_head("(9, 9)"))), 1 << 31, 1 << 31),
        "more than a file of",
    ),
    "BZIP2": ("npz", lambda: archive(("w.npy", npy_bytes(np.zeros(9))), method=zipfile.ZIP_BZIP2), "than DEFLATE"),
    "LZMA": ("npz", lambda: archive(("w.npy", npy_bytes(np.zeros(9))), method=zipfile.ZIP_LZMA), "than DEFLATE"),
    "an array twice": ("npz", lambda: archive(*[(name, npy_bytes(np.zeros(9))) for name in ("w.npy", "w")]), "twice"),
    "other bytes in front": (
        "npz",
        lambda: b"MZ" + archive(("w.npy", npy_bytes(np.zeros(9)))),
        "as no zip archive does",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_stated_is_checked_before_it_is_made(tmp_path: Path, name: str) -> None:
    ending, make, reason = HOSTILE[name]
    data = make()
    (tmp_path / f"w.{ending}").write_bytes(data)
    with bounded_memory(len(data)), pytest.raises(ModelFileError, match=reason) as caught:
        read_tensors(tmp_path / f"w.{ending}")
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"weight_map": {"a": "one", "a": "two"}}', "has the name 'a' twice"),
        ('{"weight_map": {}, "weight_map": {}}', "has the name 'weight_map' twice"),
        ('{"weight_map": {"a": "\\ud800"}}', "surrogates not allowed"),
        ('{"weight_map": {"a": "loop"}}', "loop"),
        ('{"weight_map": %s}' % ("[" * 10**6), "take .* of memory|nested too deep"),
    ],
)
def test_indexes_that_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "m.safetensors.index.json").write_text(text)
    with pytest.raises(ModelFileError, match=reason):
        read_tensors(tmp_path / "m.safetensors.index.json")


def test_more_files_of_an_index_than_may_be_open(tmp_path: Path) -> None:
    for number in range(MANY):
        write_tensors(tmp_path / f"{number}.safetensors", [named(str(number), np.full(3, number))])
    places = {str(number): f"{number}.safetensors" for number in range(MANY)}
    (tmp_path / "m.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    with few_files(MANY // 3), TensorFile(tmp_path / "m.safetensors.index.json") as source:
        found = {tensor.name: read_all(tensor.data) for tensor in source.tensors()}
    assert found == {str(number): np.full(3, number).tobytes() for number in range(MANY)}


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("shape", [(), (1, 5, 1), (0, 3), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", ">c16"])
def test_every_version_and_order(tmp_path: Path, version: tuple[int, int], shape: tuple[int, ...], dtype: str) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    for number, order in enumerate((array, np.asfortranarray(array))):
        file = io.BytesIO()
        np.lib.format.write_array(file, order, version)
        for ending, data in (("npy", file.getvalue()), ("npz", archive((f"{number}.npy", file.getvalue())))):
            (tmp_path / f"{number}.{ending}").write_bytes(data)
            [tensor] = read_tensors(tmp_path / f"{number}.{ending}")
            assert (tensor.name, tensor.shape) == (str(number), order.shape)
            assert read_all(tensor.data) == array.astype(array.dtype.newbyteorder("=")).tobytes()


def test_arrays_are_turned_when_they_are_read(tmp_path: Path) -> None:
    array = np.asfortranarray(np.arange(6_000_000, dtype=np.float32).reshape(2000, 3000))
    for number in range(4):
        np.save(tmp_path / f"{number}.npy", array)
    with bounded_memory(0):
        kept = [read_tensors(tmp_path / f"{number}.npy") for number in range(4)]
    assert read_all(kept[3][0].data) == array.tobytes()


def test_a_large_packed_array_is_not_turned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = np.asfortranarray(np.zeros((30, 40), np.float32))
    np.savez_compressed(tmp_path / "w.npz", grid=grid, plain=np.zeros((30, 40), np.float32))
    monkeypatch.setattr("gevar.om.npz_file._MAX_PACKED_TURNED_BYTES", 4800)
    assert [read_all(tensor.data) for tensor in read_tensors(tmp_path / "w.npz")] == [bytes(4800)] * 2
    monkeypatch.setattr("gevar.om.npz_file._MAX_PACKED_TURNED_BYTES", 4799)
    with pytest.raises(ModelFileError, match=r"array grid.*takes 4800 B in the order of Fortran, 4799 B at most"):
        read_tensors(tmp_path / "w.npz")


def test_a_file_with_holes_is_not_turned(tmp_path: Path) -> None:
    with (tmp_path / "w.npy").open("wb") as file:
        file.write(npy_head("(1048577, 1024)", fortran=True))
        file.truncate(file.tell() + (1048577 << 12))
    with (
        bounded_memory(0),
        pytest.raises(ModelFileError, match="takes 4294971392 B in the order of Fortran, 4294967296 B"),
    ):
        read_tensors(tmp_path / "w.npy")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_of_an_archive_are_read_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: Callable[..., None]
) -> None:
    """By several threads, and in turns; the list of files is read once, however many arrays there are."""
    chance = np.random.default_rng(3)
    arrays = {str(number): chance.integers(0, 9, 30_000 + number, np.int32) for number in range(20)}
    save(tmp_path / "w.npz", **arrays)
    tensors = read_tensors(tmp_path / "w.npz")
    monkeypatch.setattr(zipfile, "ZipFile", None)
    monkeypatch.setattr("gevar.om.npz_file.CHUNK_BYTES", 1000)
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda tensor: read_all(tensor.data), tensors)) == [
            a.tobytes() for a in arrays.values()
        ]
    turns = [
        list(chunks) for chunks in zip(*(map(bytes, chunks_of(tensor.data)) for tensor in tensors[:3]), strict=False)
    ]
    for number, chunks in enumerate(zip(*turns, strict=True)):
        assert b"".join(chunks) == arrays[str(number)].tobytes()[: 1000 * len(turns)]


def test_an_archive_that_was_replaced(tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", a=np.arange(9))
    [tensor] = read_tensors(tmp_path / "w.npz")
    np.savez(tmp_path / "other.npz", a=np.zeros(9, np.int64))
    (tmp_path / "other.npz").replace(tmp_path / "w.npz")
    with pytest.raises(ModelFileError, match="changed since it was looked at"):
        read_all(tensor.data)


def test_members_that_are_no_arrays_are_left_out(tmp_path: Path) -> None:
    one = npy_bytes(np.arange(3))
    (tmp_path / "w.npz").write_bytes(archive(("readme", b"text"), ("empty", b""), ("a", one), ("../b.npy", one)))
    assert [tensor.name for tensor in read_tensors(tmp_path / "w.npz")] == ["a", "../b"]


@pytest.mark.parametrize("name", ["a\0b", "x" * 65532, "ü" * 40_000])
def test_names_that_an_archive_cannot_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"rename it or write \.safetensors"):
        write_tensors(tmp_path / "w.npz", [named(name, np.zeros(1, np.float32))])
    write_tensors(tmp_path / "w.safetensors", [named(name, np.zeros(1, np.float32))])
    assert [tensor.name for tensor in read_tensors(tmp_path / "w.safetensors")] == [name]


def test_more_dimensions_than_numpy_has_are_raw(tmp_path: Path) -> None:
    deep = named("deep", np.arange(2, dtype=np.float32))
    deep = type(deep)(deep.name, deep.dtype, (1,) * 64 + (2,), deep.data)
    assert set(write_tensors(tmp_path / "w.npz", [deep])) == {"deep"}
    with np.load(tmp_path / "w.npz") as found:
        assert found["deep"].tobytes() == bytes(deep.data)
    assert write_tensors(tmp_path / "w.safetensors", [deep]) == {}
    assert read_tensors(tmp_path / "w.safetensors")[0].shape == deep.shape


@pytest.mark.parametrize(
    ("shape", "size_bytes"),
    [((), 8), ((3, 4), 96), ((0, 1 << 62, 1 << 62), 0), (((1 << 60) - 1,), (1 << 63) - 8), ((1,) * 1000, 8)],
)
def test_declared_bytes(shape: tuple[int, ...], size_bytes: int) -> None:
    assert declared_bytes(shape, 8) == size_bytes


@pytest.mark.parametrize(
    "shape", [(-1,), (1 << 63, 0), (True,), (2.0,), ("2",), (None,), (1 << 60,), (1 << 40, 1 << 40)]
)
def test_shapes_that_have_no_bytes(shape: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match=r"its shape"):
        declared_bytes(shape, 8)


def test_strict_json_reads_what_others_read() -> None:
    value = {"ü": [1, -2.5, None, True, "\U0001f600"], "b": {}}
    assert strict_json(json.dumps(value).encode(), 1 << 20) == strict_json(
        json.dumps(value, ensure_ascii=False).encode(), 1 << 20
    )
    assert strict_json(json.dumps(value).encode(), 1 << 20) == value
    with pytest.raises(ValueError, match=r"take 256 B of memory, 100 B at most"):
        strict_json(b"[[[[]]]]", 100)
