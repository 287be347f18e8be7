"""Export and relocation with the n-th call of the system failing: everything is as before, and nothing is left open."""

import errno
import gc
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from gevar.errors import GevarError
from gevar.om import OmBuilder
from gevar.om.external_weights_writer import ExternalWeightMode
from gevar.om.named_tensor import NamedTensor, write_tensors
from gevar.session.relocation import ExternalWeightKind, relocate_model
from gevar.types import DataType
from tests.helpers.om_rules import check_file
from tests.helpers.open_files import open_files

CALLS = ("open", "fsync", "replace", "link", "unlink", "stat", "fstat", "mkdir", "dup")
MOST_CALLS = 200


def net(*seeds: int) -> OmBuilder:
    builder = OmBuilder("net")
    for seed in seeds:
        builder.const(f"c{seed}", np.random.default_rng(seed).random(300, np.float32))
    return builder


def files(folder: Path) -> dict[str, bytes | None]:
    """Return everything below a folder, but for drafts, which the next writer removes."""
    found = (path for path in sorted(folder.rglob("*")) if not path.name.startswith(".gevar-"))
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in found}


def check_open(before: int) -> None:
    """Fail where more files are open than before; fewer are where a test before had dropped some."""
    if open_files() > before:
        gc.collect()
    assert open_files() <= before


def fail_each(work: Callable[[], object], folder: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Do the work with the first, second, third … call of a function failing, until it passes; return their number."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # whose waiting for the disk is most of the time otherwise
    real = getattr(os, call)
    for number in range(1, MOST_CALLS):
        left, before, opened = [number], files(folder), open_files()

        def counted(*args: object, left: list[int] = left, **options: object) -> object:
            left[0] -= 1
            if left[0] == 0:
                raise OSError(errno.EIO, "the disk is gone")
            return real(*args, **options)

        with monkeypatch.context() as patch:
            patch.setattr(os, call, counted)
            try:
                work()
            except (OSError, GevarError):
                failed = True
            else:
                failed = False
        check_open(opened)
        if not failed and left[0] > 0:
            return number - 1
        if failed:
            if call == "unlink":  # a draft that cannot be removed stays, and its folder with it
                before |= {name: None for name, data in files(folder).items() if data is None}
            else:
                assert not list(folder.rglob(".gevar-*"))
            assert files(folder) == before, f"call {number} of {call} left something"
    raise AssertionError(f"{call} is called more than {MOST_CALLS} times")


@pytest.mark.parametrize("mode", [1, 2])
@pytest.mark.parametrize("call", CALLS)
def test_an_export(tmp_path: Path, mode: ExternalWeightMode, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net(1).write(tmp_path / "m.om", external_weight=mode)
    fail_each(lambda: net(1, 2, 3).write(tmp_path / "m.om", external_weight=mode), tmp_path, call, monkeypatch)
    check_file((tmp_path / "m.om").read_bytes(), tmp_path / "weight")


@pytest.mark.parametrize("mode", [1, 2])
@pytest.mark.parametrize("call", CALLS)
def test_an_export_to_a_new_folder(
    tmp_path: Path, mode: ExternalWeightMode, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = lambda: net(1, 2).write(tmp_path / "m.om", external_weight=mode)  # noqa: E731
    assert fail_each(work, tmp_path, call, monkeypatch) > 0
    check_file((tmp_path / "m.om").read_bytes(), tmp_path / "weight")


@pytest.mark.parametrize("kind", ["file", "const"])
@pytest.mark.parametrize("call", CALLS)
def test_a_relocation(tmp_path: Path, kind: ExternalWeightKind, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "new").mkdir()
    net(1, 2).write(tmp_path / "m.om", external_weight=2)
    target = tmp_path / "new" / "m.om"
    fail_each(lambda: relocate_model(tmp_path / "m.om", target, kind=kind), tmp_path, call, monkeypatch)
    check_file(target.read_bytes(), target.parent / "weight" if kind == "file" else None)


# --- a disk that is full ----------------------------------------------------------------------------------------------


@contextmanager
def largest_file(size_bytes: int) -> Iterator[None]:
    """Let every write behind so many bytes of a file fail, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def write_tensor_file(path: Path) -> None:
    write_tensors(path, [NamedTensor("a", DataType.DT_UINT8, (2000,), memoryview(bytes(range(250)) * 8))])


WORK: dict[str, Callable[[Path], object]] = {
    "export 0": lambda folder: net(1, 2).write(folder / "m.om"),
    "export 1": lambda folder: net(1, 2).write(folder / "m.om", external_weight=1),
    "export 2": lambda folder: net(1, 2).write(folder / "m.om", external_weight=2),
    "files": lambda folder: relocate_model(folder / "from" / "m.om", folder / "m.om"),
    "const": lambda folder: relocate_model(folder / "from" / "m.om", folder / "m.om", kind="const"),
    "safetensors": lambda folder: write_tensor_file(folder / "w.safetensors"),
    "npz": lambda folder: write_tensor_file(folder / "w.npz"),
}


@pytest.mark.parametrize("name", WORK)
def test_a_disk_that_is_full(tmp_path: Path, name: str) -> None:
    (tmp_path / "from").mkdir()
    net(3, 4).write(tmp_path / "from" / "m.om", external_weight=2)
    before, opened, refused = files(tmp_path), open_files(), 0
    for size_bytes in range(0, 20_000, 150):
        try:
            with largest_file(size_bytes):
                WORK[name](tmp_path)
        except OSError:
            refused += 1
            assert files(tmp_path) == before
            assert not list(tmp_path.rglob(".gevar-*"))
            check_open(opened)
        else:
            break
    assert refused >= 10
    assert files(tmp_path) != before
