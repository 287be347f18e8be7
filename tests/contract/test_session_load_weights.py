"""Files of tensors in device memory: every kind of file, sharing without reading, writing, damage, giving back."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gevar
from acl_shim import Runtime
from gevar import Session, load_weights
from gevar.errors import LoadError, ModelFileError, StateError, VariableError
from gevar.om.weight_source import TensorFile
from gevar.session import load_model
from tests.helpers.models import small_model
from tests.helpers.weight_files import ARRAYS, KINDS, CountingReader, named, weight_file

TOTAL = sum(array.nbytes for array in ARRAYS.values())


@pytest.fixture
def session(runtime: Runtime) -> Iterator[Session]:
    with Session(runtime) as session:
        yield session


def needs(kind: str) -> None:
    if kind in ("onnx", "external"):
        pytest.importorskip("onnx")


def live_blocks(session: Session) -> int:
    return session.memory_manager.counts.live_blocks


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file(session: Session, tmp_path: Path, kind: str) -> None:
    needs(kind)
    path = weight_file(tmp_path, kind)
    seen: list[tuple[int, int]] = []
    with load_weights(path, session=session, on_progress=lambda *step: seen.append(step)) as weights:
        assert {row.name: row.shape for row in weights.rows} == {name: array.shape for name, array in ARRAYS.items()}
        for name, array in ARRAYS.items():
            got = weights.read(name)
            assert (got.dtype, got.tolist()) == (array.dtype, array.tolist())
        assert {row.kind for row in weights.rows} == {"FileConstant"}
        assert all(row.logic_addr is None for row in weights.rows)
        assert (weights.tensor("none").dev_addr, weights.tensor("kernel").origin_format) == (None, 2)
        assert weights.statistics.size_bytes == TOTAL
        report = weights.verify(path)
        assert (report.tensors, report.differences) == (len(ARRAYS) - 1, ())
        assert seen[-1] == (weights.upload.size_bytes, weights.upload.size_bytes)
        assert seen == sorted(seen)
    assert live_blocks(session) == 0
    assert weights.closed


def test_a_file_of_one_array(session: Session, tmp_path: Path) -> None:
    for name, array in {"plain": ARRAYS["kernel"], "turned": np.asfortranarray(ARRAYS["kernel"])}.items():
        np.save(tmp_path / f"{name}.npy", array)
        with load_weights(tmp_path / f"{name}.npy", session=session) as weights:
            assert weights.read(name).tolist() == array.tolist()
            with load_weights(tmp_path / f"{name}.npy", session=session) as again:
                assert again.upload.size_bytes == 0
                assert again.verify(tmp_path / f"{name}.npy").differences == ()


@pytest.mark.parametrize("kind", KINDS)
def test_the_second_load_reads_no_weights(session: Session, tmp_path: Path, kind: str) -> None:
    needs(kind)
    path = weight_file(tmp_path, kind)
    CountingReader.start()
    with load_weights(path, session=session, open_file=CountingReader) as first:
        if kind in ("safetensors", "index", "external", "om", "om1", "om2"):
            assert CountingReader.read_bytes >= first.upload.size_bytes > 0
        blocks = live_blocks(session)
        CountingReader.start()
        with load_weights(path, session=session, open_file=CountingReader) as second:
            assert (CountingReader.reads, second.upload.reads, second.upload.size_bytes) == (0, 0, 0)
            assert [row.dev_addr for row in second.rows] == [row.dev_addr for row in first.rows]
            assert all(row.sharing == "shared: same file slice" for row in second.rows if row.size_bytes)
            assert live_blocks(session) == blocks
            assert (second.statistics.device_bytes, first.statistics.saved_bytes) == (0, 0)
            assert second.statistics.saved_bytes == first.statistics.device_bytes
            first.close()
            assert second.read("bias").tolist() == ARRAYS["bias"].tolist()
    assert live_blocks(session) == 0


def test_the_second_load_of_external_weights_reads_none(session: Session, tmp_path: Path) -> None:
    for kind in ("om1", "om2"):
        path = weight_file(tmp_path / kind, kind, {name: array for name, array in ARRAYS.items() if array.size})
        CountingReader.start()
        with load_model(path, session=session, open_file=CountingReader):
            assert CountingReader.read_bytes >= TOTAL - ARRAYS["tied"].nbytes
            CountingReader.start()
            with load_model(path, session=session, open_file=CountingReader) as second:
                assert (CountingReader.reads, second.upload.reads) == (0, 0)


def test_a_changed_file_is_another_file(session: Session, tmp_path: Path) -> None:
    path = weight_file(tmp_path, "safetensors")
    with load_weights(path, session=session) as first:
        weight_file(tmp_path, "safetensors", ARRAYS | {"bias": ARRAYS["bias"] + 1})
        with load_weights(path, session=session) as second:
            assert second.read("bias").tolist() == (ARRAYS["bias"] + 1).tolist()
            assert first.read("bias").tolist() == ARRAYS["bias"].tolist()
            assert [difference.name for difference in first.verify(path).differences] == ["bias"]


def test_weights_beside_the_variables_of_a_model(session: Session, tmp_path: Path) -> None:
    """They take no place in the variable space, in either order."""
    values = small_model(tmp_path / "m.om")
    path = weight_file(tmp_path, "safetensors", {"start": np.ones(5)})
    with (
        load_weights(path, session=session) as weights,
        load_model(tmp_path / "m.om", session=session) as model,
        load_weights(weight_file(tmp_path, "npz"), session=session) as more,
    ):
        assert weights.read("start").tolist() == [1.0] * 5
        assert np.array_equal(model.read("start"), values["start"])
        assert more.read("kernel").shape == (3, 4)
        session.var_manager.check()


def test_a_session_of_its_own(tmp_path: Path) -> None:
    path = weight_file(tmp_path, "npz")
    with gevar.load_weights(path, backend="host") as weights:
        session = weights.session
        assert repr(weights).startswith(f"<LoadedWeights {path}: 5 tensors, ")
    assert session.closed
    with pytest.raises(StateError, match="was closed; load it again"):
        weights.read("kernel")
    with pytest.raises(StateError, match="was closed"):
        weights.verify(path)


def test_an_open_source(session: Session, tmp_path: Path) -> None:
    path = weight_file(tmp_path, "index")
    with TensorFile(path) as source, load_weights(source, session=session) as weights:
        assert weights.path == str(path)
        assert weights.verify(source).differences == ()
        with load_weights(path, session=session) as again:
            assert again.upload.size_bytes == 0


def test_writing(session: Session, tmp_path: Path) -> None:
    """A weight that others use is not written; once written it is shared with nobody."""
    path = weight_file(tmp_path, "safetensors")
    with load_weights(path, session=session) as first:
        with load_weights(path, session=session) as second:
            with pytest.raises(StateError, match=r"kernel of .*2 tensors or models share") as caught:
                second.write("kernel", np.zeros((3, 4), np.float32))
            assert "without sharing" in str(caught.value)
            assert first.read("kernel").tolist() == second.read("kernel").tolist() == ARRAYS["kernel"].tolist()
        first.write("kernel", np.zeros((3, 4), np.float32))
        assert not first.read("kernel").any()
        with load_weights(path, session=session) as third:
            assert third.read("kernel").tolist() == ARRAYS["kernel"].tolist()
            assert [row.name for row in third.rows if row.size_bytes and not row.sharing] == ["kernel"]
            first.write("kernel", np.ones((3, 4), np.float32))
            assert third.read("kernel").tolist() == ARRAYS["kernel"].tolist()
    assert live_blocks(session) == 0


def test_another_device_has_blocks_of_its_own(runtime: Runtime, session: Session, tmp_path: Path) -> None:
    if runtime.device_count() < 2:
        pytest.skip("one device only")
    path = weight_file(tmp_path, "safetensors")
    with load_weights(path, session=session) as one, load_weights(path, session=session, device_id=1) as two:
        assert two.upload.size_bytes == one.upload.size_bytes
        assert two.read("bias").tolist() == ARRAYS["bias"].tolist()


def test_what_cannot_be_loaded_leaves_nothing(session: Session, tmp_path: Path) -> None:
    path = weight_file(tmp_path, "safetensors")
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(ModelFileError, match="the file has"):
        load_weights(path, session=session)
    (tmp_path / "w.pt").write_bytes(b"")
    with pytest.raises(ModelFileError, match=r"w\.pt.*empty file") as caught:
        load_weights(tmp_path / "w.pt", session=session)
    endings = ".safetensors, .safetensors.index.json, .npz, .npy, .onnx"
    assert caught.value.__notes__ == [f"files of tensors end in {endings}"]
    with pytest.raises(ModelFileError, match="cannot be opened"):
        load_weights(tmp_path / "missing.npy", session=session)
    assert live_blocks(session) == 0


def test_damage_of_an_archive_is_found_while_it_is_loaded(session: Session, tmp_path: Path) -> None:
    array = np.arange(3_000_000, dtype=np.float32)
    np.savez(tmp_path / "w.npz", first=ARRAYS["bias"], array=array)
    data = bytearray((tmp_path / "w.npz").read_bytes())
    data[data.index(array[-50:].tobytes())] ^= 1
    (tmp_path / "w.npz").write_bytes(data)
    with pytest.raises(ModelFileError, match=r"array array.*CRC"):
        load_weights(tmp_path / "w.npz", session=session)
    assert live_blocks(session) == 0


@pytest.mark.parametrize("kind", ["safetensors", "npz"])
def test_a_file_that_changes_while_it_is_loaded(session: Session, tmp_path: Path, kind: str) -> None:
    path = weight_file(tmp_path, kind)
    other = weight_file(tmp_path / "other", kind, ARRAYS | {"bias": ARRAYS["bias"] * 2})

    def replace(done: int, total: int) -> None:
        if other.exists():
            other.rename(path)

    with pytest.raises((LoadError, ModelFileError), match=r"changed|took its place"):
        load_weights(path, session=session, on_progress=replace)
    assert live_blocks(session) == 0


def test_verify_refuses_other_files(session: Session, tmp_path: Path) -> None:
    path = weight_file(tmp_path, "npz")
    other = weight_file(tmp_path / "other", "npz", {"kernel": ARRAYS["kernel"]})
    with load_weights(path, session=session) as weights:
        with pytest.raises(ModelFileError, match="load the file again"):
            weights.verify(other)
        with pytest.raises(VariableError, match="'kernel'"):
            weights.read("kernell")


def test_an_index_loads_only_what_it_names(session: Session, tmp_path: Path) -> None:
    path = weight_file(tmp_path, "index")
    places = json.loads(path.read_text())["weight_map"]
    path.write_text(json.dumps({"weight_map": {"bias": places["bias"]}}))
    with load_weights(path, session=session) as weights:
        assert weights.upload.size_bytes == ARRAYS["bias"].nbytes
        assert [row.name for row in weights.rows] == ["bias"]


def test_names_of_tensors_lead_nowhere(session: Session, tmp_path: Path) -> None:
    """Keys of a record are never set as attributes."""
    from gevar.om.named_tensor import write_tensors

    write_tensors(tmp_path / "w.safetensors", named({"__class__": np.ones(3), "../x": np.ones(2)}))
    with load_weights(tmp_path / "w.safetensors", session=session) as weights:
        assert type(weights.tensor("__class__")).__name__ == "LoadedTensor"
        assert weights.read("../x").tolist() == [1, 1]
