"""Names of the tensors of OM files whose models have equal names."""

from pathlib import Path

import numpy as np
import pytest

from gevar.om import OmBuilder, write_om
from gevar.om.composed_model import bundle
from gevar.om.stored_bytes import chunks_of, read_all
from gevar.session import weight_sources
from gevar.session.weight_sources import open_weights


def write_bundle(path: Path, values: list[tuple[str, dict[str, int]]]) -> Path:
    """Write a bundle of models by their names, each with constants by name."""
    models = []
    for name, constants in values:
        builder = OmBuilder(name)
        for constant, value in constants.items():
            builder.const(constant, np.full(4, value, np.int32))
        models.append(builder.build())
    write_om(path, bundle(models))
    return path


def values_of(path: Path) -> dict[str, int]:
    with open_weights(path, bundle=True) as source:
        tensors = source.tensors()
        found = {tensor.name: int(np.frombuffer(read_all(tensor.data), np.int32)[0]) for tensor in tensors}
    assert len(found) == len(tensors)
    return found


def test_names_are_unique_and_equal_tensors_are_there_once(tmp_path: Path) -> None:
    models = [
        ("m", {"c": 1, "d": 5}),
        ("m", {"c": 2, "d": 5}),
        ("n", {"c": 2}),
        ("m", {"c": 2}),
        ("m", {"c": 3}),
        ("m", {"c": 1}),
        ("m", {"c": 4}),
        ("n", {"c": 2, "m/c": 7}),
    ]
    expected = {"c": 1, "d": 5, "m/c": 2, "n/c": 2, "m/c/2": 3, "m/c/3": 4, "n/m/c": 7}
    assert values_of(write_bundle(tmp_path / "b.om", models)) == expected


def test_each_tensor_is_read_a_few_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many have its name."""
    count = 100
    path = write_bundle(tmp_path / "b.om", [("m", {"c": number}) for number in range(count)])
    reads = [0]

    def counted(data: object) -> object:
        reads[0] += 1
        return chunks_of(data)  # type: ignore[arg-type]

    monkeypatch.setattr("gevar.om.stored_bytes.chunks_of", counted)
    assert weight_sources.are_equal.__globals__["chunks_of"] is counted
    with open_weights(path, bundle=True) as source:
        assert len(source.tensors()) == count
    assert reads[0] <= 4 * count
