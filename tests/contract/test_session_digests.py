"""Weights are compared with the digests that lie beside them, on request, before a model counts as loaded."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import xxhash

from acl_shim import Runtime
from gevar import LoadedModel, LoadedWeights, Session, load_model, load_weights
from gevar.errors import LoadError, ModelFileError
from gevar.om.named_tensor import read_tensors
from gevar.om.stored_bytes import StreamedBytes
from gevar.om.weight_digests import RegionDigest, digests_text, read_digests
from tests.helpers.weight_files import ARRAYS, CountingReader, weight_file

MODES = ("om1", "om2")


@pytest.fixture
def session(runtime: Runtime) -> Iterator[Session]:
    with Session(runtime) as session:
        yield session


def exported(folder: Path, kind: str) -> Path:
    return weight_file(folder, kind, {name: array for name, array in ARRAYS.items() if array.size})


def damage(folder: Path, place: RegionDigest) -> None:
    """Change the last byte of a region."""
    with (folder / place.file).open("r+b") as file:
        file.seek(place.offset + place.length - 1)
        byte = file.read(1)[0]
        file.seek(place.offset + place.length - 1)
        file.write(bytes([byte ^ 1]))


def nothing_left(session: Session) -> bool:
    return session.memory_manager.counts.live_blocks == session.external_weights.device_bytes == 0


@pytest.mark.parametrize("load", [load_model, load_weights])
@pytest.mark.parametrize("kind", MODES)
def test_sound_weights_are_compared(session: Session, tmp_path: Path, kind: str, load: object) -> None:
    path = exported(tmp_path, kind)
    loaded = _load(load, path, session)
    with loaded:
        assert loaded.upload.checked == 3  # two of the four weights are equal, and lie in one place
        assert loaded.verify(path).differences == ()
    with load_model(path, session=session) as plain:
        assert plain.upload.checked == 0


def _load(load: object, path: Path, session: Session, **options: bool) -> LoadedModel | LoadedWeights:
    assert callable(load)
    loaded = load(path, session=session, verify_digests=True, **options)
    assert isinstance(loaded, LoadedModel | LoadedWeights)
    return loaded


@pytest.mark.parametrize("load", [load_model, load_weights])
@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("kind", MODES)
def test_damage_is_named_and_nothing_stays(
    session: Session, tmp_path: Path, kind: str, share: bool, load: object
) -> None:
    path = exported(tmp_path, kind)
    folder = tmp_path / "weight"
    for place in read_digests(folder / "digests.json"):
        damage(folder, place)
        data = (folder / place.file).read_bytes()[place.offset : place.offset + place.length]
        with pytest.raises(LoadError) as caught:
            _load(load, path, session, share_equal=share)
        error = caught.value
        assert (error.path, error.offset, error.wanted) == (str(folder / place.file), place.offset, place.length)
        assert place.digest in str(error)
        assert xxhash.xxh3_128_hexdigest(data) in str(error)
        assert nothing_left(session)
        damage(folder, place)
    with _load(load, path, session, share_equal=share) as loaded:
        assert loaded.verify(path).differences == ()


@pytest.mark.parametrize("kind", MODES)
def test_weights_without_digests_are_refused(session: Session, tmp_path: Path, kind: str) -> None:
    path = exported(tmp_path, kind)
    side = tmp_path / "weight" / "digests.json"
    rows = read_digests(side)
    side.write_bytes(digests_text(rows[1:]))
    with pytest.raises(LoadError, match="lists no digest for these bytes") as caught:
        load_model(path, session=session, verify_digests=True)
    assert (caught.value.offset, caught.value.wanted) == (rows[0].offset, rows[0].length)
    side.write_text("{}")
    with pytest.raises(ModelFileError, match="list of xxh3_128 digests"):
        load_model(path, session=session, verify_digests=True)
    side.write_bytes(digests_text([RegionDigest(one.file, one.offset, one.length, "no hex") for one in rows]))
    with pytest.raises(LoadError, match="'no hex' is no digest in hex"):
        load_model(path, session=session, verify_digests=True)
    side.unlink()
    with pytest.raises(LoadError, match=r"digests\.json.*there are no digests of .*weight_"):
        load_model(path, session=session, verify_digests=True)
    assert nothing_left(session)
    with load_model(path, session=session) as loaded:
        assert loaded.verify(path).differences == ()


def test_a_model_without_external_weights(session: Session, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="leave verify_digests out"):
        load_model(weight_file(tmp_path, "om"), session=session, verify_digests=True)
    assert nothing_left(session)


@pytest.mark.parametrize("kind", MODES)
@pytest.mark.parametrize("share", [False, True])
def test_weights_that_are_there_are_compared_on_the_device(
    runtime: Runtime, session: Session, tmp_path: Path, kind: str, share: bool
) -> None:
    path = exported(tmp_path, kind)
    with load_model(path, session=session, share_equal=share) as first:
        CountingReader.start()
        with load_model(path, session=session, share_equal=share, verify_digests=True, open_file=CountingReader):
            assert CountingReader.reads == 0
        row = next(row for row in first.rows if row.name.startswith("bias"))
        assert row.dev_addr is not None
        runtime.device(0).memcpy_in(row.dev_addr, 2, np.array([9], np.float16))
    with load_model(path, session=session, share_equal=share) as first:
        row = next(row for row in first.rows if row.name.startswith("bias"))
        assert row.dev_addr is not None
        runtime.device(0).memcpy_in(row.dev_addr, 2, np.array([9], np.float16))
        with pytest.raises(LoadError, match=r"its digest on the device is [0-9a-f]{32}, not [0-9a-f]{32}"):
            load_model(path, session=session, share_equal=share, verify_digests=True)
        assert first.read("tied_" + first_digest(first, "tied_")).tolist() == ARRAYS["tied"].tolist()
    assert nothing_left(session)


def first_digest(loaded: LoadedModel, prefix: str) -> str:
    return next(row.name.removeprefix(prefix) for row in loaded.rows if row.name.startswith(prefix))


def test_digests_of_any_file_may_be_listed(session: Session, tmp_path: Path) -> None:
    """A side file beside a safetensors file counts as well; an archive has no regions."""
    path = weight_file(tmp_path, "safetensors")
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    rows, at = [], start
    for size in (12 * 4, 12 * 4, 300 * 2, 3):  # as they lie in the file
        rows.append(RegionDigest(path.name, at, size, xxhash.xxh3_128_hexdigest(data[at : at + size])))
        at += size
    (tmp_path / "digests.json").write_bytes(digests_text(rows))
    with load_weights(path, session=session, verify_digests=True) as weights:
        assert weights.upload.checked == 4
    (tmp_path / "digests.json").write_bytes(digests_text(rows[:-1]))
    with pytest.raises(LoadError, match="lists no digest"):
        load_weights(path, session=session, verify_digests=True)
    with pytest.raises(LoadError, match="does not lie in the file as it is"):
        load_weights(weight_file(tmp_path, "npz"), session=session, verify_digests=True)
    assert nothing_left(session)


def test_regions_that_run_into_each_other(session: Session, tmp_path: Path) -> None:
    """Of listed regions that overlap the longest at the first place counts; what lies behind is read unchecked."""
    folder = tmp_path / "w"
    path = exported(folder, "om2")
    side = folder / "weight" / "digests.json"
    document = json.loads(side.read_bytes())
    row = document["xxh3_128"][0]
    document["xxh3_128"] += [row | {"offset": row["offset"] + 1, "digest": "00"}, row | {"length": 0, "digest": "00"}]
    side.write_text(json.dumps(document))
    with load_model(path, session=session, verify_digests=True) as loaded:
        assert loaded.upload.checked == 3
        assert loaded.verify(path).differences == ()


@pytest.mark.parametrize("kind", ["safetensors", "om1"])
def test_a_digest_of_more_than_is_brought_does_not_count(session: Session, tmp_path: Path, kind: str) -> None:
    """Its bytes could not be compared: those in front of a weight, or behind it, are not read."""
    path = exported(tmp_path, kind) if kind == "om1" else weight_file(tmp_path, kind)
    files = [path] if kind == "safetensors" else sorted((tmp_path / "weight").glob("weight_*"))
    rows = []
    for file in files:
        cuts = {0, 2}
        if kind == "om1":
            file.write_bytes(file.read_bytes() + bytes(8))
        else:
            tensors = [one.data.offset for one in read_tensors(file) if isinstance(one.data, StreamedBytes)]
            cuts = {0, *(start + at for start in tensors for at in (2, 3))}
        data = file.read_bytes()
        for at, end in pairwise(sorted({*cuts, len(data)})):
            rows.append(RegionDigest(file.name, at, end - at, xxhash.xxh3_128_hexdigest(data[at:end])))
    (files[0].parent / "digests.json").write_bytes(digests_text(rows))
    with pytest.raises(LoadError, match="lists no digest"):
        _load(load_weights if kind == "safetensors" else load_model, path, session, share_equal=False)
    assert nothing_left(session)
