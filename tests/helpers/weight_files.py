"""Files of every kind with the same tensors, and readers that count what is read of them."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gevar.om import OmBuilder
from gevar.om.named_tensor import NamedTensor, write_tensors
from gevar.types import DataType
from gevar.weights import PreadReader

ARRAYS = {
    "kernel": np.arange(12, dtype=np.float32).reshape(3, 4),
    "bias": np.arange(300, dtype=np.float16),
    "mask": np.array([True, False, True]),
    "tied": np.arange(12, dtype=np.float32),
    "none": np.zeros((0, 4), np.int64),
}
"""`kernel` and `tied` have equal bytes, `none` has none."""
KINDS = ("safetensors", "index", "npz", "packed", "onnx", "external", "om", "om1", "om2")


def named(arrays: Mapping[str, np.ndarray]) -> list[NamedTensor]:
    return [
        NamedTensor(name, DataType.from_numpy(array.dtype), array.shape, memoryview(array.tobytes()))
        for name, array in arrays.items()
    ]


def weight_file(folder: Path, kind: str, arrays: Mapping[str, np.ndarray] = ARRAYS) -> Path:
    """Write the tensors as a file of a kind; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "safetensors":
        write_tensors(folder / "w.safetensors", named(arrays))
        return folder / "w.safetensors"
    if kind == "index":
        places = {name: f"part{number % 2}.safetensors" for number, name in enumerate(arrays)}
        for part in set(places.values()):
            write_tensors(folder / part, named({name: arrays[name] for name in arrays if places[name] == part}))
        (folder / "w.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
        return folder / "w.safetensors.index.json"
    if kind in ("npz", "packed"):
        save = np.savez if kind == "npz" else np.savez_compressed
        save(folder / "w.npz", **arrays)
        return folder / "w.npz"
    if kind in ("onnx", "external"):
        return _onnx_file(folder, arrays, is_external=kind == "external")
    builder = OmBuilder("w")
    for name, array in arrays.items():
        builder.const(name, array)
    mode = {"om": 0, "om1": 1, "om2": 2}[kind]
    builder.write(folder / "w.om", external_weight=mode)  # type: ignore[arg-type]
    return folder / "w.om"


def _onnx_file(folder: Path, arrays: Mapping[str, np.ndarray], *, is_external: bool) -> Path:
    import onnx

    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = onnx.helper.make_graph([], "main", [], [], initializer=tensors)
    model = onnx.helper.make_model(graph)
    path = folder / "w.onnx"
    onnx.save_model(
        model, path, save_as_external_data=is_external, all_tensors_to_one_file=True, location="w.bin", size_threshold=0
    )
    return path


class CountingReader(PreadReader):
    """Reads a file and counts what comes through the protocol: every read, since it gives no descriptor away."""

    descriptor = None
    reads = read_bytes = 0

    def read_into(self, offset: int, view: memoryview) -> int:
        got = super().read_into(offset, view)
        CountingReader.reads += 1
        CountingReader.read_bytes += got
        return got

    @classmethod
    def start(cls) -> None:
        """Count from 0."""
        cls.reads = cls.read_bytes = 0
