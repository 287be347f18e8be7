"""An export that fails or is interrupted: the folder of weights is as it was, or has all that the model names."""

import errno
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from gevar.om import OmBuilder, StreamedBytes
from gevar.om.external_weights_writer import ExternalWeightMode
from gevar.types import DataType, Format, TensorDesc
from tests.helpers.om_rules import check_file


def net(**sizes: int) -> OmBuilder:
    builder = OmBuilder("net")
    for name, size in sizes.items():
        data = name.encode() * size
        builder.const(name, data, TensorDesc(DataType.DT_UINT8, Format.FORMAT_ND, (size,)))
    return builder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize("mode", [1, 2])
@pytest.mark.parametrize("last", ["meta.json", "digests.json", "m.om"])
def test_a_disk_that_stays_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: ExternalWeightMode, last: str, is_new: bool
) -> None:
    """Nothing needs room to be as it was; the folder itself goes, too, if it is new."""
    if not is_new:
        net(a=600).write(tmp_path / "m.om", external_weight=mode)
    before = files(tmp_path)
    is_full = False

    def check() -> None:
        if is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def replace(source: str, target: str, **folders: int) -> None:
        nonlocal is_full
        if target == last and not is_full:
            is_full = True
            check()
        real_replace(source, target, **folders)

    def make(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & os.O_CREAT:
            check()
        return real_open(path, flags, mode, dir_fd=dir_fd)

    real_replace, real_open = os.replace, os.open
    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(os, "open", make)
    with pytest.raises(OSError, match="No space left"):
        net(a=600, b=700).write(tmp_path / "m.om", external_weight=mode)
    assert files(tmp_path) == before
    assert (tmp_path / "weight").exists() is not is_new


@pytest.mark.parametrize(
    ("mode", "room", "name"),
    [(1, 0, "weight/meta.json"), (1, 200, "weight/weight_"), (2, 200, "weight/m_weight_combined"), (2, 1200, "m.om")],
)
def test_an_error_tells_the_path(tmp_path: Path, mode: ExternalWeightMode, room: int, name: str) -> None:
    """Not the name that the file has while it is written, or none."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            net(a=600).write(tmp_path / "m.om", external_weight=mode)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(caught.value.filename).startswith(str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("told", [None, "a file", "sub/m.om"])
def test_an_error_of_reading_stays(tmp_path: Path, told: str | None) -> None:
    def read() -> Iterator[bytes]:
        raise OSError(errno.EIO, "it is gone", *([] if told is None else [told]))
        yield b""

    builder = OmBuilder("net")
    builder.const("a", StreamedBytes(600, read), TensorDesc(DataType.DT_UINT8, Format.FORMAT_ND, (600,)))
    with pytest.raises(OSError, match="it is gone") as caught:
        builder.write(tmp_path / "m.om")
    assert caught.value.filename == told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [1, 2])
@pytest.mark.parametrize("is_named", [False, True])
def test_an_interrupt_leaves_all_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: ExternalWeightMode, is_named: bool
) -> None:
    """A model that has its name has its weights, whatever comes then."""
    net(a=600).write(tmp_path / "m.om", external_weight=mode)
    before = files(tmp_path)

    def replace(source: str, target: str, **folders: int) -> None:
        if target == "m.om" and not is_named:
            raise KeyboardInterrupt
        real_replace(source, target, **folders)
        if target == "m.om":
            raise KeyboardInterrupt

    real_replace = os.replace
    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        net(a=600, b=700).write(tmp_path / "m.om", external_weight=mode)
    assert (files(tmp_path) == before) is not is_named
    check_file((tmp_path / "m.om").read_bytes(), tmp_path / "weight")
    assert not [*tmp_path.rglob(".gevar-*")]


@pytest.mark.parametrize("fails", [False, True])
def test_one_file_comes_to_the_disk_once_before_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """However many pieces it has; when it does not come there, nothing is written."""
    synced: list[str] = []

    def fsync(fd: int) -> None:
        synced.append(Path(f"/proc/self/fd/{fd}").readlink().name)
        if fails and synced[-1] == "m_weight_combined":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real_fsync(fd)

    def replace(source: str, target: str, **folders: int) -> None:
        synced.append(target)
        real_replace(source, target, **folders)

    real_fsync, real_replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    builder = net(**{chr(ord("a") + number): number + 1 for number in range(20)})
    if fails:
        with pytest.raises(OSError, match="Input/output error"):
            builder.write(tmp_path / "m.om", external_weight=2)
        assert list(tmp_path.iterdir()) == []
        return
    builder.write(tmp_path / "m.om", external_weight=2)
    assert [name for name in synced if not name.endswith(".tmp")] == [
        *("m_weight_combined", "weight", "meta.json", "digests.json", "m.om", tmp_path.name)
    ]
