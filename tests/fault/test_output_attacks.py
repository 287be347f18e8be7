"""Every way to write files, against what may lie where it writes, names that no file can have, and disks that are full.

What is not replaced stays as it was, and after a refusal everything does: nothing that was begun is left.
"""

import os
import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from gevar.cli.main import main
from gevar.errors import GevarError
from gevar.om import OmBuilder
from gevar.om.named_tensor import write_tensors
from gevar.session.relocation import relocate_model
from tests.helpers.cached_models import NCHW, cache_of, model_graph, root_model
from tests.helpers.path_attacks import ODD_NAMES, SECRET, make_socket, patience
from tests.helpers.var_memory import FakeMemory, make_manager
from tests.helpers.weight_files import named

ARRAYS: dict[str, np.ndarray] = {"w": np.arange(300, dtype=np.float32), "v": np.arange(300, dtype=np.float64)}


def _model() -> OmBuilder:
    builder = OmBuilder("net")
    for name, array in ARRAYS.items():
        builder.output(builder.const(name, array))
    return builder


def _cache(path: Path) -> None:
    vm = make_manager(FakeMemory())
    vm.assign_var_mem("w", None, NCHW)
    with cache_of(path.parent, vm, model_graph({})) as cache:
        cache.try_cache_model(root_model(model_graph({"w": NCHW}), weights=bytes(2000)))


def _relocate(path: Path, **kind: str) -> None:
    relocate_model(path.parents[1] / "source" / "m.om", path, **kind)  # type: ignore[arg-type]


WRITERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "model": (".om", lambda path: _model().write(path)),
    "weights in files": (".om", lambda path: _model().write(path, external_weight=1)),
    "weights in one file": (".om", lambda path: _model().write(path, external_weight=2)),
    "safetensors": (".safetensors", lambda path: write_tensors(path, named(ARRAYS))),
    "npz": (".npz", lambda path: write_tensors(path, named(ARRAYS))),
    "relocated": (".om", _relocate),
    "back to Const": (".om", lambda path: _relocate(path, kind="const")),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder to write to, a model to relocate, and a file that nobody may write to."""
    for name in ("to", "source", "outside"):
        (tmp_path / name).mkdir()
    (tmp_path / "outside" / "secret").write_bytes(SECRET)
    _model().write(tmp_path / "source" / "m.om", external_weight=1)
    return tmp_path


def tree(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """What lies below a folder: kind and mode, number, content or target. Locks hold nothing, and stay."""
    found = {}
    for path in sorted(root.rglob("*")):
        state = path.lstat()
        is_file = stat.S_ISREG(state.st_mode)
        content = bytes(path.readlink()) if path.is_symlink() else path.read_bytes() if is_file else b""
        if path.suffix != ".lock":
            found[str(path)] = state.st_mode, 0 if is_file else state.st_ino, content
    return found


def refuse(root: Path, write: Callable[[], object]) -> None:
    """Expect an error of one line that is fit for a terminal, and everything as it was."""
    before = tree(root)
    with patience(), pytest.raises((GevarError, OSError, ValueError)) as caught:
        write()
    assert str(caught.value).isprintable()
    assert tree(root) == before


REPLACED: dict[str, Callable[[Path, Path], object]] = {
    "file": lambda path, _: path.write_bytes(b"old"),
    "file for all": lambda path, _: os.close(os.open(path, os.O_CREAT, 0o666)),
    "link": lambda path, secret: path.symlink_to(secret),
    "link to nothing": lambda path, secret: path.symlink_to(secret.with_name("new")),
    "hard link": lambda path, secret: os.link(secret, path),
    "nothing": lambda *_: None,
}


@pytest.mark.parametrize("there", REPLACED)
@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_is_replaced_and_nothing_it_leads_to(root: Path, writer: str, there: str) -> None:
    ending, write = WRITERS[writer]
    path, secret = root / "to" / f"m{ending}", root / "outside" / "secret"
    before = os.umask(0)
    try:
        REPLACED[there](path, secret)
        write(path)
    finally:
        os.umask(before)
    assert [(one.name, one.read_bytes()) for one in secret.parent.iterdir()] == [("secret", SECRET)]
    for one in (root / "to").rglob("*"):
        state = one.lstat()
        assert state.st_mode == (stat.S_IFDIR | 0o700 if one.is_dir() else stat.S_IFREG | 0o600), one
        assert one.is_dir() or state.st_nlink == 1
        assert not one.name.startswith(".")


KEPT: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": make_socket,
    "directory": os.mkdir,
    "device": lambda path: path.symlink_to("/dev/null"),
    "full device": lambda path: path.symlink_to("/dev/full"),
    "link to a directory": lambda path: path.symlink_to("../outside"),
}


@pytest.mark.parametrize("there", KEPT)
@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_no_file_is_not_replaced(root: Path, writer: str, there: str) -> None:
    ending, write = WRITERS[writer]
    path = root / "to" / f"m{ending}"
    KEPT[there](path)
    refuse(root, lambda: write(path))


BAD_NAMES = {
    kind: name for kind, name in ODD_NAMES.items() if kind not in ("missing", "byte that is no text", "terminal")
}
FOLDERS = {"missing folder": "none/m", "file as a folder": "../outside/secret/m", "pipe as a folder": "pipe/m"}


@pytest.mark.parametrize("name", [*BAD_NAMES, *FOLDERS])
@pytest.mark.parametrize("writer", WRITERS)
def test_names_and_folders_that_cannot_be(root: Path, writer: str, name: str) -> None:
    ending, write = WRITERS[writer]
    os.mkfifo(root / "to" / "pipe")
    path = root / "to" / (f"{BAD_NAMES[name]}{ending}" if name in BAD_NAMES else f"{FOLDERS[name]}{ending}")
    if writer in ("relocated", "back to Const"):
        kind = {"kind": "const"} if writer == "back to Const" else {}
        refuse(root, lambda: relocate_model(root / "source" / "m.om", path, **kind))  # type: ignore[arg-type]
    else:
        refuse(root, lambda: write(path))


@pytest.mark.parametrize("name", ["", ".", "..", "/"])
def test_a_path_without_a_name(root: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root / "to")
    for external_weight in (0, 1):
        refuse(root, lambda mode=external_weight: _model().write(name, external_weight=mode))  # type: ignore[misc]


@pytest.mark.parametrize("target", ["../outside", "../source/weight", "nothing"])
@pytest.mark.parametrize("writer", ["weights in files", "weights in one file", "relocated"])
def test_a_folder_of_weights_that_is_a_link(root: Path, writer: str, target: str) -> None:
    (root / "to" / "weight").symlink_to(target)
    refuse(root, lambda: WRITERS[writer][1](root / "to" / "m.om"))


@pytest.mark.parametrize("name", ["a\0b", "a\ud800", "n" * 300, "missing/weight", "m.om", "pipe", "/dev/null"])
def test_a_folder_of_weights_that_cannot_be(root: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root / "to")
    Path("m.om").write_bytes(b"old")
    os.mkfifo("pipe")
    write: list[Callable[[], object]] = [
        lambda: _model().write("m.om", external_weight=2, weight_dir=name),
        lambda: relocate_model(root / "source" / "m.om", "m.om", target_weight_dir=name),
    ]
    for one in write:
        refuse(root, one)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes folders for somebody else")
@pytest.mark.parametrize(("mode", "is_good"), [(0o777, True), (0o1777, False), (0o755, False), (0o733, False)])
@pytest.mark.parametrize("writer", ["model", "weights in one file", "npz"])
def test_folders_of_somebody_else(writer: str, mode: int, is_good: bool) -> None:
    """Where one may write, what others have begun stays; where one may not, everything does."""
    ending, write = WRITERS[writer]
    with TemporaryDirectory(dir="/dev/shm") as name:
        root, draft = Path(name), Path(name, "to", ".gevar-0123456789abcdef.tmp")
        (root / "to").mkdir()
        path = root / "to" / f"m{ending}"
        path.write_bytes(b"of root")
        draft.write_bytes(b"of root")
        root.chmod(0o755)
        (root / "to").chmod(mode)
        before = tree(root)
        os.seteuid(65534)
        try:
            if is_good:
                write(path)
            else:
                with pytest.raises(PermissionError, match=name):
                    write(path)
        finally:
            os.seteuid(0)
        assert draft.read_bytes() == b"of root"
        assert (tree(root) == before) != is_good


@contextmanager
def full_disk(most_bytes: int) -> Iterator[None]:
    """Let no file grow beyond a size: the write that would is cut, and the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("writer", [*WRITERS, "cache"])
def test_a_disk_that_is_full_at_any_byte(root: Path, writer: str) -> None:
    """The bytes that fit rise until all do; every time before everything is as it was."""
    ending, write = {**WRITERS, "cache": (".om", _cache)}[writer]
    path = root / "to" / f"m{ending}"
    path.write_bytes(b"old")
    failures = 0
    for most_bytes in range(0, 1 << 16, 211):
        before = tree(root)
        try:
            with full_disk(most_bytes):
                write(path)
        except (OSError, GevarError) as error:
            if "too large" not in str(error):
                raise
            assert tree(root) == before
            failures += 1
        else:
            break
    assert failures > 5
    assert tree(root) != before


@pytest.mark.parametrize("words", [("build",), ("build", "--external-weight", "2"), ("extract",), ("relocate",)])
def test_commands(root: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """A command that cannot write says so in one line, with exit code 1."""
    model, ending = root / "source" / "m.om", ".npz" if words[0] == "extract" else ".om"
    path = root / "to" / f"m{ending}"
    path.mkdir()

    def run() -> None:
        with pytest.raises(SystemExit) as ended:
            main([words[0], str(model), "-o", str(path), *words[1:]])
        assert ended.value.code == 1
        raise OSError("refused")

    refuse(root, run)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("gevar: ")
    assert "is a directory" in line
