"""Cache directories, indexes and entries that cannot be: an error names the file, and nothing has changed."""

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gevar.compile.graph_rebuild_state_ctrl import GraphRebuildStateCtrl
from gevar.compile.model_cache import ModelCache
from gevar.errors import ModelFileError
from gevar.graph import OpDesc
from gevar.om import GeRootModel
from gevar.om.header import ModelFileHeader
from gevar.proto.var_manager import VarMatchInfo
from gevar.status import FAILED, PARAM_INVALID
from gevar.types import Format
from gevar.var import TransNodeInfo, VarManager
from gevar.var.var_info_writer import write_desc_info, write_descs
from tests.helpers.cached_models import NC1HWC0, NCHW, cache_of, model_graph, options, root_model, store
from tests.helpers.var_memory import FakeMemory, make_manager
from tests.helpers.var_states import state_bytes


@pytest.fixture
def vm() -> VarManager:
    vm = make_manager(FakeMemory())
    vm.assign_var_mem("w", None, NCHW)
    return vm


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of a cache but for the locks, which hold nothing."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.suffix != ".lock"}


def refuse(folder: Path, vm: VarManager, file: str, reason: str, *, of_reader: bool = False) -> None:
    """Look into the cache: an error must name the file, and cache and manager stay as they are.

    Errors of the reader of models have the status that they have without a cache.
    """
    before, state, ctrl = files_of(folder), state_bytes(vm), GraphRebuildStateCtrl()
    with pytest.raises(ModelFileError, match=reason) as caught, cache_of(folder, vm, model_graph({}), ctrl) as cache:
        cache.try_load_model_from_cache()
    error = caught.value
    assert error.file == str(folder / file)
    assert of_reader or error.status == FAILED
    assert "\n" not in str(error)
    assert (files_of(folder), state_bytes(vm)) == (before, state)
    assert ctrl.is_var_permit_to_change_formats("w")
    if (folder / "k.lock").is_file():
        with (folder / "k.lock").open("rb") as lock:  # it is free again
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_directory_that_is_none(tmp_path: Path, vm: VarManager, kind: str) -> None:
    folder = tmp_path / "cache"
    if kind == "file":
        folder.touch()
    with pytest.raises(ModelFileError, match="is no directory") as caught:
        cache_of(folder, vm, model_graph({}))
    assert (caught.value.file, caught.value.status) == (str(folder), PARAM_INVALID)


@pytest.mark.parametrize("name", ["a\0b", "a\ud800", "n" * 300, "/".join(["n" * 200] * 30)])
def test_a_directory_that_cannot_be(tmp_path: Path, vm: VarManager, name: str) -> None:
    with pytest.raises(ModelFileError, match="is no directory") as caught:
        cache_of(tmp_path / name, vm, model_graph({}))
    assert caught.value.status == PARAM_INVALID
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("key", ["a/b", "..", "a b", "k\n", "ü", "x" * 129, "k.om", "\0"])
def test_keys_that_begin_no_file_name(tmp_path: Path, vm: VarManager, key: str) -> None:
    with pytest.raises(ModelFileError, match=r"ge\.graph_key") as caught:
        ModelCache(model_graph({}), vm, GraphRebuildStateCtrl(), options(tmp_path, key))
    assert caught.value.status == PARAM_INVALID
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "cannot be read"),
        ("[]", "is a JSON list"),
        ('{"cache_debug_mode": "yes"}', "cache_debug_mode: is 'yes'"),
        ('{"cache_manual_check": 1}', "cache_manual_check: is 1"),
        ('{"cache_manual_check": null}', "is None"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_configurations(tmp_path: Path, vm: VarManager, text: str, reason: str) -> None:
    (tmp_path / "cache.conf").write_text(text)
    refuse(tmp_path, vm, "cache.conf", reason)


ROW = {"graph_key": "k", "cache_file_name": "m.om"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot be read"),
        ("\xff", "cannot be read"),
        ('{"cache_file_list": [', "cannot be read"),
        ("3", "is a JSON int"),
        ('{"other": 1}', "is no list"),
        ('{"cache_file_list": {}}', "is no list"),
        ('{"cache_file_list": [1]}', r"cache_file_list\[0\]: is no object"),
        ('{"cache_file_list": [{"graph_key": "k"}]}', r"\[0\]\.cache_file_name: is None"),
        ('{"cache_file_list": [{"graph_key": "k", "cache_file_name": ""}]}', r"\[0\]\.cache_file_name: is ''"),
        ('{"cache_file_list": [{"cache_file_name": "m"}]}', r"\[0\]\.graph_key: is None"),
        (json.dumps({"cache_file_list": [{**ROW, "var_desc_file_name": 3}]}), r"var_desc_file_name: is 3"),
        (json.dumps({"cache_file_list": [{**ROW, "cache_file_name": "a\0b"}]}), r"cache_file_name: is 'a"),
        (json.dumps({"cache_file_list": [ROW]}), "'m.om' is not there"),
        (json.dumps({"cache_file_list": [{**ROW, "cache_file_name": "sub/m.om"}]}), "'m.om' is not there"),
        (
            json.dumps({"cache_file_list": [{**ROW, "cache_file_name": "/nowhere/m.om"}]}),
            "leads to /nowhere/m.om, not to",
        ),
        (json.dumps({"cache_file_list": [{**ROW, "cache_file_name": "../m.om"}]}), "leads to .*m.om, not to a file in"),
        (json.dumps({"cache_file_list": [{**ROW, "cache_file_name": "."}]}), "'.' leads to"),
        (json.dumps({"cache_file_list": [{**ROW, "cache_file_name": "m\ud800"}]}), "is no name of a file"),
        (json.dumps({"cache_file_list": [{**ROW, "cache_file_name": "m" * 300}]}), "is not there"),
    ],
)
def test_indexes(tmp_path: Path, vm: VarManager, text: str, reason: str) -> None:
    (tmp_path / "k.idx").write_bytes(text.encode("latin-1"))
    refuse(tmp_path, vm, "k.idx", reason)


@pytest.mark.parametrize("name", ["k.idx", "k.lock", "cache.conf"])
def test_folders_in_the_place_of_files(tmp_path: Path, vm: VarManager, name: str) -> None:
    (tmp_path / name).mkdir()
    refuse(tmp_path, vm, name, "cannot be")


def entry(folder: Path, vm: VarManager) -> tuple[Path, Path]:
    """Store a model that is right for the manager; return its files."""
    path = store(folder, vm, root_model(model_graph({"w": NCHW})))
    return path, path.with_suffix(".rdcpkt")


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"", "empty file"), (b"x" * 1000, "magic"), (b"IMOD" + bytes(252), "headsize")],
)
def test_models_that_are_none(tmp_path: Path, vm: VarManager, data: bytes, reason: str) -> None:
    path, _ = entry(tmp_path, vm)
    path.write_bytes(data)
    refuse(tmp_path, vm, path.name, reason, of_reader=True)


def test_a_model_that_was_cut(tmp_path: Path, vm: VarManager) -> None:
    path, _ = entry(tmp_path, vm)
    data = path.read_bytes()
    for size in (len(data) - 1, 300, 100):
        path.write_bytes(data[:size])
        with pytest.raises(ModelFileError, match=path.name), cache_of(tmp_path, vm, model_graph({})) as cache:
            cache.try_load_model_from_cache()


def test_a_model_with_a_graph_that_contradicts_itself(tmp_path: Path, vm: VarManager) -> None:
    model = root_model(model_graph({}))
    graph = model.models[0].model.graph
    assert graph is not None
    graph.add_node(OpDesc("twin_a", "Relu"))
    graph.add_node(OpDesc("twin_b", "Relu"))
    path = store(tmp_path, vm, model)
    path.write_bytes(path.read_bytes().replace(b"twin_b", b"twin_a"))
    refuse(tmp_path, vm, path.name, "twin_a")


@pytest.mark.parametrize("models", [0, 1])
def test_a_model_without_a_graph(tmp_path: Path, vm: VarManager, models: int) -> None:
    model = root_model(model_graph({}))
    if models:
        model.models[0].model.graph = None
    else:
        model = GeRootModel(ModelFileHeader(modeltype=5), bundle_variable_size=0)
    path = store_any(tmp_path, vm, model)
    refuse(tmp_path, vm, path.name, "has no graph" if models else "bundle", of_reader=not models)


def nested(levels: int) -> bytes:
    """A message of descriptions inside attributes of descriptions."""

    def field(number: int, content: bytes) -> bytes:
        size, length = len(content), bytearray()
        while size > 127:
            length.append(size & 127 | 128)
            size >>= 7
        return bytes([number << 3 | 2]) + bytes(length) + bytes([size]) + content

    attr = b""
    for _ in range(levels // 3):  # the value of an attribute is a description, which has an attribute
        attr = field(11, field(5, field(1, b"a") + field(2, attr)))
    desc = field(5, field(1, b"a") + field(2, attr))
    return field(1, field(1, field(1, b"w") + field(2, desc)))


def store_any(folder: Path, vm: VarManager, model: GeRootModel) -> Path:
    with cache_of(folder, vm, model_graph({})) as cache:
        path = cache.try_cache_model(model)
    assert path is not None
    return path


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.write_bytes(b"\xff\xff\xff"), "cannot be read"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "cannot be read"),
        (lambda path: path.write_bytes(nested(10_000)), "cannot be read"),
        (lambda path: (path.unlink(), path.mkdir()), "cannot be read"),
        (lambda path: (path.unlink(), path.symlink_to("nothing")), "cannot be read"),
    ],
)
def test_descriptions(tmp_path: Path, vm: VarManager, damage: Callable[[Path], object], reason: str) -> None:
    _, descs = entry(tmp_path, vm)
    damage(descs)
    refuse(tmp_path, vm, descs.name, reason)


ROAD = (TransNodeInfo("TransData", NCHW, NC1HWC0),)


@pytest.mark.parametrize(
    ("roads", "after", "reason"),
    [
        ({}, {"w": NC1HWC0}, "changed variable 'w' has no conversions"),
        ({"w": ()}, {"w": NC1HWC0}, "changed variable 'w' has no conversions"),
        ({"w": ROAD}, {"v": NC1HWC0}, "changed variable 'w' has no description after"),
    ],
)
def test_changes_that_are_not_told_whole(
    tmp_path: Path, vm: VarManager, roads: dict[str, tuple[TransNodeInfo, ...]], after: object, reason: str
) -> None:
    info = VarMatchInfo(
        desc_info_before_compile=write_desc_info({"w": NCHW}, {}),
        desc_info_after_compile=write_desc_info(after, {"v": ROAD, **roads}),  # type: ignore[arg-type]
    )
    # the staged format and the variable that comes first are changed before the trouble is met
    info.desc_info_after_compile.changed_var_names.extend(["v", "w"])
    info.desc_info_after_compile.cur_var_tensor_desc_map["v"].CopyFrom(
        write_desc_info({"v": NCHW}, {}).cur_var_tensor_desc_map["v"]
    )
    write_descs(info.desc_info_after_compile.staged_var_tensor_desc_map, {"w": NCHW.replace(format=Format.FORMAT_NHWC)})
    _, descs = entry(tmp_path, vm)
    descs.write_bytes(info.SerializeToString())
    refuse(tmp_path, vm, descs.name, reason)


def test_variables_that_get_no_memory(tmp_path: Path, vm: VarManager) -> None:
    huge = NCHW.replace(shape=(1 << 40,))
    path = store(tmp_path, vm, root_model(model_graph({"huge": huge})))
    refuse(tmp_path, vm, path.name, "its variables get no memory: .*huge")


@pytest.mark.parametrize("name", [".k.om.tmp", ".k.rdcpkt.tmp", ".k.idx.tmp"])
def test_a_cache_that_cannot_be_written(tmp_path: Path, vm: VarManager, name: str) -> None:
    entry(tmp_path, vm)
    before = files_of(tmp_path)
    with cache_of(tmp_path, vm, model_graph({})) as cache:
        (tmp_path / name).mkdir()
        with pytest.raises(ModelFileError, match="cannot be written") as caught:
            cache.try_cache_model(root_model(model_graph({"w": NCHW})))
    assert caught.value.status == FAILED
    assert (caught.value.file or "").endswith(Path(name).suffixes[0])
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("damage", ["link", "hard link", "pipe", "link inside"])
@pytest.mark.parametrize("suffix", ["idx", "om", "rdcpkt"])
def test_files_of_a_cache_that_lead_out_of_it(tmp_path: Path, vm: VarManager, suffix: str, damage: str) -> None:
    """A file by the same bytes elsewhere is refused, a name for it inside is none; nothing waits for a pipe."""
    folder = tmp_path / "cache"
    folder.mkdir()
    model, descs = entry(folder, vm)
    path = {"idx": folder / "k.idx", "om": model, "rdcpkt": descs}[suffix]
    moved = (folder if damage == "link inside" else tmp_path) / "moved"
    path.rename(moved)
    if damage == "pipe":
        os.mkfifo(path)
    elif damage == "hard link":
        os.link(moved, path)
    else:
        path.symlink_to(moved)
    if damage == "link inside":
        with cache_of(folder, vm, model_graph({})) as cache:
            assert cache.try_load_model_from_cache() is not None
        return
    with (
        pytest.raises(ModelFileError, match=r"leads to|names elsewhere|not a regular file|is not there"),
        cache_of(folder, vm, model_graph({})) as cache,
    ):
        cache.try_load_model_from_cache()
    with (folder / "k.lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("target", ["elsewhere", "cache/here", "cache/none"])
def test_the_weight_directory_of_a_cache_may_be_no_link_out(tmp_path: Path, vm: VarManager, target: str) -> None:
    for name in ("cache/here", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    folder = tmp_path / "cache"
    (folder / "weight").symlink_to(tmp_path / target)
    if target == "cache/here":
        with cache_of(folder, vm, model_graph({})) as cache:
            assert cache.weight_dir == folder / "here"
        return
    with pytest.raises(ModelFileError, match=r"weight: .*(leads to|a link to nothing)"):
        cache_of(folder, vm, model_graph({}))
    with (folder / "k.lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    given = options(folder) | {"ge.externalWeightDir": str(folder / "weight")}  # who names it has looked at it
    with ModelCache(model_graph({}), vm, GraphRebuildStateCtrl(), given) as cache:
        assert cache.weight_dir == folder / "weight"


@pytest.mark.parametrize("name", ["k.idx", "cache.conf"])
def test_a_list_of_giant_size_is_refused_before_it_is_read(tmp_path: Path, vm: VarManager, name: str) -> None:
    with (tmp_path / name).open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ModelFileError, match="takes 1099511627776 B, 268435456 B at most are read"):
        cache_of(tmp_path, vm, model_graph({}))


@pytest.mark.parametrize("name", ["k.idx", "cache.conf", "k.lock"])
def test_a_pipe_in_the_place_of_a_file_is_refused_at_once(tmp_path: Path, vm: VarManager, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(ModelFileError, match="not a regular file"):
        cache_of(tmp_path, vm, model_graph({}))


def test_a_lock_that_is_a_link_makes_no_file_elsewhere(tmp_path: Path, vm: VarManager) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "k.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelFileError, match="symbolic link"):
        cache_of(tmp_path / "cache", vm, model_graph({}))
    assert not (tmp_path / "elsewhere").exists()


def test_an_index_that_was_damaged_meanwhile(tmp_path: Path, vm: VarManager) -> None:
    entry(tmp_path, vm)
    with cache_of(tmp_path, vm, model_graph({})) as cache:
        (tmp_path / "k.idx").write_text("{")
        before = files_of(tmp_path)
        with pytest.raises(ModelFileError, match="index"):
            cache.try_cache_model(root_model(model_graph({"w": NCHW})))
    assert files_of(tmp_path) == before


def test_a_model_that_cannot_be_written(tmp_path: Path, vm: VarManager) -> None:
    from gevar.om.stored_bytes import StreamedBytes

    entry(tmp_path, vm)
    before = files_of(tmp_path)
    with (
        cache_of(tmp_path, vm, model_graph({})) as cache,
        pytest.raises(ValueError, match="were to be read"),
    ):
        cache.try_cache_model(root_model(model_graph({}), weights=StreamedBytes(100, lambda: iter([b"x" * 99]))))
    assert files_of(tmp_path) == before
