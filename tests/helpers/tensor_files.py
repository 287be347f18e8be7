"""Random files of tensors as the packages themselves write them, and what the packages say of any such file."""

import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import safetensors
import safetensors.numpy
import xxhash

from gevar.om.json_fields import strict_json

NUMPY_TYPES = (*"?bBhHiIlLefdFD", ">f4", ">i8", ">c16", ">f2", ">u2")
OTHER_TYPES = tuple(
    np.dtype(found)
    for found in (
        *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu),
        *(ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz, ml_dtypes.int4, ml_dtypes.uint4),
        *(ml_dtypes.float4_e2m1fn, ml_dtypes.int2, ml_dtypes.uint2),
    )
)
NO_TENSORS = ("O", "U3", "S4", "V2", "V5", "M8[ns]", "g", "f4,i2", [("a", "<f4"), ("b", "<U2")])
NAMES = ("w", "a/b.c", "ü", "layer.0.weight", "x.npy", "../up", "/root", " ", "n\n", "\x1b[2J")

Found = dict[str, tuple[tuple[int, ...], bytes]]
"""Shape and bytes, in the order of C and of the machine, by name."""


def shape(chance: random.Random) -> tuple[int, ...]:
    rank = chance.choice((0, 1, 1, 2, 2, 3, 5, 9))
    return tuple(chance.choice((0, 1, 1, 1, 2, 3, 5) if rank > 3 else (0, 1, 2, 3, 17)) for _ in range(rank))


def array(chance: random.Random, types: tuple[object, ...]) -> np.ndarray:
    """An array of a random type with random bytes, sometimes in the order of Fortran."""
    dtype = np.dtype(chance.choice(types))  # type: ignore[call-overload]
    sizes = shape(chance)
    if dtype.hasobject or dtype.kind in "US" or dtype.names:
        return np.zeros(sizes, dtype)
    count = int(np.prod(sizes, dtype=np.int64))
    data = chance.randbytes(count * dtype.itemsize)
    if dtype.kind == "b":
        data = bytes(byte & 1 for byte in data)
    found = np.frombuffer(data, dtype).reshape(sizes)
    return np.asfortranarray(found) if chance.random() < 0.3 else found


def arrays(chance: random.Random, types: tuple[object, ...]) -> dict[str, np.ndarray]:
    return {name: array(chance, types) for name in chance.sample(NAMES, chance.randrange(5))}


def plain(found: np.ndarray) -> np.ndarray:
    """The array in the order of C and of the machine, which is all that safetensors and ONNX take."""
    return np.array(found, dtype=found.dtype.newbyteorder("="), order="C", copy=True).reshape(found.shape)


# --- files as the packages write them ---------------------------------------------------------------------------------


def safetensors_file(chance: random.Random, folder: Path) -> Path:
    types = (*"?bBhHiIlLefdF", *OTHER_TYPES[:4])
    tensors = {name: plain(found) for name, found in arrays(chance, types).items()}
    texts = chance.choice((None, {"format": "pt", "ü": "{[,:"}))
    (folder / "w.safetensors").write_bytes(safetensors.numpy.save(tensors, texts))
    return folder / "w.safetensors"


def index_file(chance: random.Random, folder: Path) -> Path:
    """An index of two files, which may both have a tensor of one name."""
    places: dict[str, str] = {}
    for part in ("one.safetensors", "two.safetensors"):
        tensors = {name: plain(found) for name, found in arrays(chance, ("f", "l", "?")).items()}
        (folder / part).write_bytes(safetensors.numpy.save(tensors))
        places |= dict.fromkeys(tensors, part)
    index = {"metadata": {"total_size": 5}, "weight_map": places}
    (folder / "w.safetensors.index.json").write_text(json.dumps(index))
    return folder / "w.safetensors.index.json"


def some_types(chance: random.Random) -> tuple[object, ...]:
    """Types of tensors; sometimes with one that is none."""
    return (*NUMPY_TYPES, *([chance.choice(NO_TENSORS)] if chance.random() < 0.3 else []))


def npy_file(chance: random.Random, folder: Path) -> Path:
    file = io.BytesIO()
    version = chance.choice((None, (1, 0), (2, 0), (3, 0)))
    found = array(chance, some_types(chance))
    np.lib.format.write_array(file, found, version if found.dtype.names is None else None)
    (folder / "w.npy").write_bytes(file.getvalue())
    return folder / "w.npy"


def npz_file(chance: random.Random, folder: Path) -> Path:
    found = arrays(chance, some_types(chance))
    if chance.random() < 0.2:
        with zipfile.ZipFile(folder / "w.npz", "w") as archive:  # members without the ending, and one that is no array
            archive.writestr("readme", "no array")
            for name, one in found.items():
                file = io.BytesIO()
                np.save(file, one)
                archive.writestr(zipfile.ZipInfo(name + chance.choice((".npy", ""))), file.getvalue())
        return folder / "w.npz"
    (np.savez if chance.random() < 0.5 else np.savez_compressed)(folder / "w.npz", **found)  # type: ignore[operator]
    return folder / "w.npz"


def onnx_tensor(chance: random.Random, name: str) -> onnx.TensorProto:
    """A tensor in one of the forms: raw, or numbers in the field of its type."""
    others = OTHER_TYPES if chance.random() < 0.05 else OTHER_TYPES[:3]
    found = plain(array(chance, (*NUMPY_TYPES[:14], *others)))
    tensor = onnx.numpy_helper.from_array(found, name)
    if chance.random() < 0.4 and found.dtype.kind in "?bBhHiIlLefdFD":
        return onnx.helper.make_tensor(name, tensor.data_type, found.shape, found.reshape(-1))
    return tensor


def onnx_file(chance: random.Random, folder: Path) -> Path:
    """Initialisers, constants, those of inner graphs and functions, often with external data."""
    node, graph = onnx.helper.make_node, onnx.helper.make_graph
    tensors = [onnx_tensor(chance, name) for name in chance.sample(NAMES, chance.randrange(4))]
    inner = graph([constant(chance, "c")], "branch", [], [], initializer=[onnx_tensor(chance, "inner")])
    nodes = [constant(chance, "c"), node("If", ["x"], ["y"], then_branch=inner)]
    function = onnx.helper.make_function("d", "f", [], ["c"], [constant(chance, "of f")], [])
    model = onnx.helper.make_model(graph(nodes, "main", [], [], initializer=tensors), functions=[function])
    if chance.random() < 0.5:
        for file in ("w.bin", "sub/w.bin"):
            (folder / file).unlink(missing_ok=True)
        (folder / "sub").mkdir(exist_ok=True)
        location = chance.choice(("w.bin", "sub/w.bin"))
        onnx.external_data_helper.convert_model_to_external_data(
            model, location=location, size_threshold=0, convert_attribute=True
        )
    onnx.save_model(model, folder / "w.onnx")
    return folder / "w.onnx"


def constant(chance: random.Random, output: str) -> onnx.NodeProto:
    return onnx.helper.make_node("Constant", [], [output], value=onnx_tensor(chance, "value"))


def weight_file(chance: random.Random, folder: Path) -> Path:
    """A file of external weights with its side file, as rules say that an export writes them."""
    data, rows = b"", []
    for _ in range(chance.randrange(1, 5)):
        piece = chance.randbytes(chance.choice((1, 511, 512, 513, 2000)))
        digest = xxhash.xxh3_128_hexdigest(piece)
        rows.append({"file": "n_weight_combined", "offset": len(data), "length": len(piece), "digest": digest})
        data += piece.ljust(-(-len(piece) // 512) * 512, b"\0")
    (folder / "n_weight_combined").write_bytes(data)
    (folder / "digests.json").write_text(json.dumps({"xxh3_128": rows}))
    return folder / "n_weight_combined"


MAKERS: dict[str, Callable[[random.Random, Path], Path]] = {
    "safetensors": safetensors_file,
    "index": index_file,
    "npy": npy_file,
    "npz": npz_file,
    "onnx": onnx_file,
    "external weights": weight_file,
}


# --- what the packages say --------------------------------------------------------------------------------------------


def library_tensors(kind: str, path: Path) -> Found:
    """Read a file by the package it is of; raises whatever that raises."""
    return dict(READERS[kind](path))


def _safetensors(path: Path) -> Iterator[tuple[str, tuple[tuple[int, ...], bytes]]]:
    for name, entry in safetensors.deserialize(path.read_bytes()):
        yield name, (tuple(entry["shape"]), bytes(entry["data"]))


def _index(path: Path) -> Iterator[tuple[str, tuple[tuple[int, ...], bytes]]]:
    places = strict_json(path.read_bytes(), 1 << 30)
    assert isinstance(places, dict)
    for name, file in places["weight_map"].items():
        assert "/" not in file
        yield name, dict(_safetensors(path.parent / file))[name]


def _facts(found: np.ndarray) -> tuple[tuple[int, ...], bytes]:
    return found.shape, found.astype(found.dtype.newbyteorder("=")).tobytes()


def _npy(path: Path) -> Iterator[tuple[str, tuple[tuple[int, ...], bytes]]]:
    yield path.stem, _facts(np.load(path))


def _npz(path: Path) -> Iterator[tuple[str, tuple[tuple[int, ...], bytes]]]:
    with np.load(path) as archive:
        for name in archive.files:
            found = archive[name]
            if isinstance(found, np.ndarray):
                yield name, _facts(found)


def _onnx(path: Path) -> Iterator[tuple[str, tuple[tuple[int, ...], bytes]]]:
    """The tensors in their order, by numbers: names are not unique in a file."""
    model = onnx.load_model(path, load_external_data=False)
    tensors = [*onnx_tensors(model.graph)]
    for function in model.functions:
        tensors += onnx_tensors(function)
    for number, tensor in enumerate(tensors):
        if isinstance(tensor.name, bytes):  # no UTF-8; the name of a constant's own tensor says nothing
            tensor.name = ""
        yield str(number), _facts(onnx.numpy_helper.to_array(tensor, str(path.parent)))


def onnx_tensors(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.TensorProto]:
    yield from getattr(graph, "initializer", ())
    for node in graph.node:
        yield from (found.t for found in node.attribute if node.op_type == "Constant" and found.name == "value")
    for found in (found for node in graph.node for found in node.attribute):
        for inner in [found.g] if found.HasField("g") else found.graphs:
            yield from onnx_tensors(inner)


def _weights(path: Path) -> Iterator[tuple[str, tuple[tuple[int, ...], bytes]]]:
    data = path.read_bytes()
    rows = json.loads((path.parent / "digests.json").read_bytes())["xxh3_128"]
    rows = [row for row in rows if row["file"] == path.name]
    if not rows:
        yield path.name, ((len(data),), data)
    for row in sorted(rows, key=lambda row: row["offset"]):
        piece = data[row["offset"] : row["offset"] + row["length"]]
        assert len(piece) == row["length"]
        assert xxhash.xxh3_128_hexdigest(piece) == row["digest"].lower()
        yield f"{path.name}@{row['offset']}", ((len(piece),), piece)


READERS: dict[str, Callable[[Path], Iterator[tuple[str, tuple[tuple[int, ...], bytes]]]]] = {
    "safetensors": _safetensors,
    "index": _index,
    "npy": _npy,
    "npz": _npz,
    "onnx": _onnx,
    "external weights": _weights,
}
