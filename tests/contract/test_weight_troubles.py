"""Trouble that people have had with weights in files of their own, while they are loaded."""

import json
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from acl_shim import Runtime
from gevar import Session, load_model, load_weights
from gevar.errors import LoadError, ModelFileError
from gevar.om.weight_digests import read_digests
from gevar.weights import value_bins
from tests.helpers.lasting_models import BASE, file_constant, write_model
from tests.helpers.weight_files import ARRAYS, weight_file

MIB = 1 << 20
BYTES = bytes(range(256))


@pytest.fixture
def session(runtime: Runtime) -> Iterator[Session]:
    with Session(runtime) as session:
        yield session


def test_a_location_that_climbs_out_is_refused_before_opening(session: Session, tmp_path: Path) -> None:
    (tmp_path / "secret.bin").write_bytes(BYTES)
    folder = tmp_path / "models" / "one"
    path = write_model(folder, [file_constant("w", BASE, 8, location="../../secret.bin", length=32)], {})
    with pytest.raises(LoadError, match="leads out"):
        load_model(path, session=session)


def test_unknown_keys_of_records_are_never_set(session: Session, tmp_path: Path) -> None:
    path = weight_file(tmp_path, "om2", {"kernel": ARRAYS["kernel"]})
    side = tmp_path / "weight" / "digests.json"
    document = json.loads(side.read_bytes())
    document["xxh3_128"][0] |= {"__class__": "Path", "__dict__": {"file": "../secret"}, "offset ": 7}
    side.write_text(json.dumps(document | {"__class__": 1}))
    with load_model(path, session=session, verify_digests=True) as loaded:
        assert loaded.upload.checked == 1
    [row] = read_digests(side)
    assert type(row).__name__ == "RegionDigest"
    assert value_bins('{"value_bins": [{"value_bin_id": "a", "value_bin_file": "b", "__class__": "c"}]}') == {"a": "b"}


def test_a_slice_behind_the_end_is_told_with_all_numbers(session: Session, tmp_path: Path) -> None:
    floats = 11534336 // 4
    ops = [
        file_constant("other", BASE, 8, location="b.bin", length=32),
        file_constant("w", BASE + 2048, floats, location="a.bin", length=11534336),
    ]
    path = write_model(tmp_path, ops, {"a.bin": b"", "b.bin": BYTES}, size=16 << 20)
    os.truncate(tmp_path / "weight" / "a.bin", 4194304)
    with pytest.raises(LoadError) as caught:
        load_model(path, session=session)
    error = caught.value
    assert (error.path, error.offset, error.wanted, error.got) == (
        str(tmp_path / "weight" / "a.bin"),
        0,
        11534336,
        4194304,
    )
    assert all(text in str(error) for text in ("a.bin", "11534336", "4194304", "weight w"))
    assert session.external_weights.device_bytes == 0


def test_slices_share_only_where_their_lengths_agree(session: Session, tmp_path: Path) -> None:
    ops = [
        file_constant("four", BASE, 4, location="a.bin", length=16),
        file_constant("eight", BASE + 2048, 8, location="a.bin", length=32),
        file_constant("again", BASE + 4096, 4, location="a.bin", length=16),
        file_constant("other", BASE + 6144, 4, location="b.bin", length=16),
    ]
    with load_model(write_model(tmp_path, ops, {"a.bin": BYTES, "b.bin": BYTES}), session=session) as loaded:
        rows = {row.name: row.dev_addr for row in loaded.rows}
        assert rows["four"] == rows["again"] != rows["eight"]
        assert loaded.read("eight").tobytes() == BYTES[:32]


@pytest.mark.parametrize("source", ["bytes", "path"])
def test_a_missing_file_is_named_with_its_path_and_the_weight(session: Session, tmp_path: Path, source: str) -> None:
    path = write_model(tmp_path, [file_constant("conv/kernel", BASE, 8, location="gone.bin")], {})
    model = path.read_bytes() if source == "bytes" else path
    with pytest.raises(LoadError) as caught:
        load_model(model, session=session, weight_dir=tmp_path / "weight")
    assert caught.value.path == str(tmp_path / "weight" / "gone.bin")
    assert "conv/kernel" in str(caught.value)


def test_an_index_names_the_part_that_is_missing(session: Session, tmp_path: Path) -> None:
    path = weight_file(tmp_path, "index")
    (tmp_path / "part1.safetensors").unlink()
    with pytest.raises(ModelFileError, match=r"part1\.safetensors.*cannot be opened"):
        load_weights(path, session=session)


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("kind", ["safetensors", "packed", "npz", "external", "om1", "om2"])
def test_host_memory_does_not_grow_with_the_weights(session: Session, tmp_path: Path, kind: str, share: bool) -> None:
    """64 MiB are loaded; what Python and numpy hold meanwhile is a few blocks."""
    if kind == "external":
        pytest.importorskip("onnx")
    path = weight_file(tmp_path, kind, {"w": np.zeros(16 * MIB, np.float32), "v": np.ones(3, np.float32)})
    load = load_model if path.suffix == ".om" else load_weights
    with load_weights(weight_file(tmp_path / "warm", "npz", {"w": np.ones(9)}), session=session):
        pass  # what is imported at the first load
    tracemalloc.start()
    try:
        with load(path, session=session, share_equal=share, workers=2) as loaded:
            assert loaded.upload.size_bytes >= 64 * MIB
            _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 24 * MIB
