"""Every way into the package that takes or finds a path of a file to read, against every attack on a path.

What is refused is refused by an error of one printable line that names the thing. Nothing waits, nothing of a file
outside is ever seen, and no size that a file claims is allocated.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
import xxhash

from acl_shim import Runtime
from acl_shim.device_model import query_model_size
from gevar import Session, load_model, load_weights, open_om
from gevar.cli.main import main
from gevar.compile.graph_file import read_graph_file
from gevar.compile.model_cache_files import CacheFiles
from gevar.compile.model_cache_load import read_model
from gevar.compile.model_cache_match import read_var_match_info
from gevar.errors import GevarError
from gevar.om import open_om2
from gevar.om.named_tensor import write_tensors
from gevar.om.regular_file import open_inside, read_whole
from gevar.om.stored_bytes import read_all
from gevar.om.weight_digests import read_digests
from gevar.session.relocation import relocate_model
from gevar.session.weight_sources import open_weights
from gevar.weights import FileRegion, UploadRequest, upload
from tests.helpers import om_builder as build
from tests.helpers.lasting_models import BASE, write_model
from tests.helpers.open_files import open_files
from tests.helpers.path_attacks import INSIDE, LEADING_OUT, ODD_FILES, ODD_NAMES, SECRET, patience
from tests.helpers.peak_memory import bounded_memory
from tests.helpers.weight_files import named

Read = Callable[[Runtime, Path], object]


def _load(runtime: Runtime, path: Path, load: Callable[..., AbstractContextManager[object]]) -> None:
    with Session(runtime) as session, load(path, session=session):
        pass


def _upload(runtime: Runtime, path: Path) -> None:
    device = runtime.device(0)
    with device.malloc(64) as block:
        upload(device, [UploadRequest(FileRegion(path, 0, 64), block.addr)])


ENTRIES: dict[str, tuple[str, Read]] = {
    "open_om": (".om", lambda _, path: open_om(path)),
    "open_om2": (".om", lambda _, path: open_om2(path)),
    "load_model": (".om", lambda runtime, path: _load(runtime, path, load_model)),
    "relocate_model": (".om", lambda _, path: relocate_model(path, path.parent / "out.om")),
    "graph of a model": (".om", lambda _, path: read_graph_file(path)),
    "graph": (".pb", lambda _, path: read_graph_file(path)),
    "graph as text": (".pbtxt", lambda _, path: read_graph_file(path)),
    "digests": (".json", lambda _, path: read_digests(path)),
    "cached model": (".om", lambda _, path: read_model(path)),
    "descriptions": (".rdcpkt", lambda _, path: read_var_match_info(path)),
    "upload": (".bin", _upload),
    "model of the runtime": (".om", lambda runtime, path: query_model_size(runtime, path)),
    **{
        f"load_weights {ending}": (ending, lambda runtime, path: _load(runtime, path, load_weights))
        for ending in (".om", ".safetensors", ".safetensors.index.json", ".npz", ".npy", ".onnx")
    },
}


GOOD = {("upload", "giant"), ("descriptions", "empty")}
"""Files that are what they should be: the region lies in the one, and nothing is a message without fields."""


def refused(error: BaseException) -> None:
    """Expect an error that names the thing, in one line that upsets no terminal."""
    assert isinstance(error, GevarError | OSError) or (type(error) is ValueError and "path " in str(error)), repr(error)
    assert str(error)
    assert str(error).isprintable()


def descriptors() -> int:
    """Return how many are open, those of dropped objects too; quicker than `open_files`, which collects these."""
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("attack", [*ODD_FILES, *ODD_NAMES])
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_file_that_the_caller_names(runtime: Runtime, tmp_path: Path, entry: str, attack: str) -> None:
    ending, read = ENTRIES[entry]
    if ending == ".onnx":
        pytest.importorskip("onnx")
    if attack in ODD_FILES:
        path = tmp_path / f"odd{ending}"
        ODD_FILES[attack](path)
    else:
        path = tmp_path / (ODD_NAMES[attack] + ending)
    with runtime.device(0).malloc(64):  # the first block opens the memory of the device
        before = descriptors()
    with patience(), bounded_memory(0):
        try:
            read(runtime, path)
        except Exception as error:
            refused(error)
        else:
            assert (entry, attack) in GOOD
    assert descriptors() <= before or open_files() <= before


@contextmanager
def as_nobody() -> Iterator[None]:
    """Be somebody for whom modes count, if this is root."""
    before = os.geteuid()
    if not before:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_file_that_may_not_be_read(runtime: Runtime, tmp_path: Path, entry: str) -> None:
    ending, read = ENTRIES[entry]
    if ending == ".onnx":
        pytest.importorskip("onnx")
    path = tmp_path / f"closed{ending}"
    path.touch(mode=0)
    with as_nobody(), pytest.raises((GevarError, OSError), match=r"Permission denied|cannot be opened") as caught:
        read(runtime, path)
    refused(caught.value)


# --- files that a file names ------------------------------------------------------------------------------------------

Found = Callable[[Runtime, Path, str], bytes]
FLOATS = len(INSIDE) // 4


def _model(folder: Path, **attrs: str) -> Path:
    """Write a model with a FileConstant that names its file in one of the ways."""
    (attr, name) = attrs.popitem()
    found = {attr: build.attr_s(name.encode(errors="surrogatepass"))}
    length = len(INSIDE) if attr == "location" else 0
    desc = build.tensor_desc((FLOATS,), size=len(INSIDE) + 32)
    numbers = {"offset": build.attr_i(0), "length": build.attr_i(length)}
    return write_model(folder, [build.op("w", "FileConstant", numbers | found, [desc], output_i=[BASE])], {})


def _loaded(runtime: Runtime, folder: Path, model: Path) -> bytes:
    with Session(runtime) as session, load_model(model, session=session) as loaded:
        return loaded.read("w").tobytes()


def _location(runtime: Runtime, folder: Path, name: str) -> bytes:
    return _loaded(runtime, folder, _model(folder.parent, location=name))


def _file_path(runtime: Runtime, folder: Path, name: str) -> bytes:
    here = name if name.startswith("/") or not name else f"{folder}/{name}"
    return _loaded(runtime, folder, _model(folder.parent, file_path=here))


def _tensors(path: Path) -> bytes:
    with open_weights(path) as source:
        return b"".join(read_all(tensor.data) for tensor in source.tensors())


def _relocated(runtime: Runtime, folder: Path, name: str) -> bytes:
    model, target = (
        _model(folder.parent, location=name),
        folder.parent.parent / "moved",
    )
    target.mkdir()
    try:
        relocate_model(model, target / "m.om")
    finally:
        seen = b"".join(path.read_bytes() for path in target.rglob("*") if path.is_file())
        assert SECRET not in seen
    return _tensors(target / "m.om")


def _back_to_const(runtime: Runtime, folder: Path, name: str) -> bytes:
    model = _model(folder.parent, location=name)
    relocate_model(model, folder.parent / "alone.om", kind="const")
    return _tensors(folder.parent / "alone.om")


def _external_data(_: Runtime, folder: Path, name: str) -> bytes:
    onnx = pytest.importorskip("onnx")
    stored = onnx.TensorProto(name="w", data_type=2, dims=(len(INSIDE),), data_location=onnx.TensorProto.EXTERNAL)
    try:
        stored.external_data.add(key="location", value=name)
    except (UnicodeEncodeError, ValueError):
        pytest.skip("a message has no such text")
    graph = onnx.helper.make_graph([], "main", [], [], initializer=[stored])
    (folder / "m.onnx").write_bytes(onnx.helper.make_model(graph).SerializeToString())
    return _tensors(folder / "m.onnx")


def _shard(_: Runtime, folder: Path, name: str) -> bytes:
    for path in (folder / "inside", folder.parent.parent / "outside" / "secret"):
        write_tensors(path.with_suffix(".safetensors"), named({"w": np.frombuffer(path.read_bytes(), np.uint8)}))
        path.write_bytes(path.with_suffix(".safetensors").read_bytes())
    (folder / "w.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": name}}))
    return _tensors(folder / "w.safetensors.index.json")


def _digests(_: Runtime, folder: Path, name: str) -> bytes:
    """What `gevar verify` compares: the digest of the secret would be found equal, if its file was read."""
    data = xxhash.xxh3_128(SECRET if name != "inside" else INSIDE).hexdigest()
    row = {"file": name, "offset": 0, "length": len(SECRET), "digest": data}
    (folder / "digests.json").write_text(json.dumps({"xxh3_128": [row]}))
    write_tensors(folder / "any.npz", [])
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(folder / "any.npz"), "--digests", str(folder / "digests.json"), "--json"])
    if ended.value.code:
        raise GevarError("refused")
    return INSIDE if name == "inside" else SECRET


def _cached(key: str) -> Found:
    """A model of a cache, or its descriptions, that the index names."""

    def find(_: Runtime, folder: Path, name: str) -> bytes:
        (folder / "m.om").write_bytes(b"")
        row = {"graph_key": "k", "cache_file_name": "m.om", key: name}
        (folder / "k.idx").write_text(json.dumps({"cache_file_list": [row]}))
        with closing(CacheFiles(folder, "k")) as files:
            (entry,) = files.entries
        path = entry.model if key == "cache_file_name" else entry.var_descs
        if path is None or not path.exists():
            raise GevarError("there are no descriptions: the entry is passed over")
        return read_whole(open_inside(path.parent, path), 1 << 20, path)

    return find


NAMED: dict[str, Found] = {
    "location": _location,
    "file_path": _file_path,
    "relocate": _relocated,
    "back to Const": _back_to_const,
    "tensors of a model": lambda _, folder, name: _tensors(_model(folder.parent, location=name)),
    "ONNX": _external_data,
    "index of safetensors": _shard,
    "digests": _digests,
    "model of a cache": _cached("cache_file_name"),
    "descriptions of a cache": _cached("var_desc_file_name"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of weights with a file, and another folder with a secret, which is not to be found."""
    for name, data in (("model/weight/inside", INSIDE), ("outside/secret", SECRET)):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    (tmp_path / "model" / "weight" / "sub").mkdir()
    return tmp_path / "model" / "weight"


@pytest.mark.parametrize("found_by", NAMED)
def test_a_file_in_the_folder_is_read(runtime: Runtime, folder: Path, found_by: str) -> None:
    assert INSIDE in NAMED[found_by](runtime, folder, "inside")


@pytest.mark.parametrize("attack", LEADING_OUT)
@pytest.mark.parametrize("found_by", NAMED)
def test_a_file_that_a_file_names(runtime: Runtime, folder: Path, found_by: str, attack: str) -> None:
    name = LEADING_OUT[attack](folder, folder.parent.parent / "outside")
    with patience():
        try:
            found = NAMED[found_by](runtime, folder, name)
        except (GevarError, OSError) as error:
            refused(error)
        else:
            assert (found, attack) == (b"", "empty"), f"{name!r} was read"  # a file in the folder, as good as any
