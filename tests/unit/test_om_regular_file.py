"""Files in folders that others may write to: links, devices, pipes, and names that change while they are used."""

import errno
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gevar.errors import ModelFileError
from gevar.om.named_tensor import read_tensors
from gevar.om.om2_package import is_om2
from gevar.om.regular_file import (
    file_state,
    named_file,
    open_inside,
    open_named,
    open_regular,
    path_inside,
    read_whole,
)
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import read_all
from tests.helpers.open_files import open_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "sub" / "w.bin").write_bytes(b"weights")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "w.bin").write_bytes(b"secret!")
    return tmp_path / "in"


def content(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as file:
        return file.read()


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        here = Path.cwd()
        os.chdir(path.parent)  # a path of a socket is short
        try:
            one.bind(path.name)
        finally:
            os.chdir(here)


ODD: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "socket": make_socket,
    "directory": os.mkdir,
    "device": lambda path: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3)),
}


def make_odd(kind: str, path: Path) -> None:
    try:
        ODD[kind](path)
    except PermissionError:
        pytest.skip("only root makes device files")


def test_a_file_below_a_folder(folder: Path) -> None:
    before = open_files()
    assert content(open_inside(folder, folder / "sub" / "w.bin")) == b"weights"
    assert open_files() == before


@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_file_is_not_opened(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for a pipe, and no device hears of it."""
    make_odd(kind, folder / "odd")
    opened: list[str] = []
    real_open = os.open

    def noted(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        opened.append(os.fspath(path))
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", noted)
    before = open_files()
    with pytest.raises(OSError, match="not a regular file"):
        open_regular(folder / "odd", os.O_RDONLY)
    with pytest.raises(OSError, match="not a regular file"):
        open_inside(folder, folder / "odd")
    assert not [path for path in opened if path.endswith("odd")]
    assert open_files() == before


def test_the_folder_itself_is_no_file(folder: Path) -> None:
    with pytest.raises(IsADirectoryError):
        open_inside(folder, folder)


def test_a_link_is_not_followed(folder: Path) -> None:
    (folder / "link").symlink_to(folder / "sub" / "w.bin")
    (folder / "dangling").symlink_to(folder / "none")
    for name in ("link", "dangling"):
        with pytest.raises(OSError, match="is a symbolic link, which may lead out"):
            open_regular(folder / name, os.O_RDONLY)
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDWR | os.O_CREAT | os.O_EXCL):
        with pytest.raises(OSError, match="symbolic link"):
            open_regular("dangling", flags, dir_fd=os.open(folder, os.O_RDONLY | os.O_DIRECTORY))
    assert not (folder / "none").exists()


def test_a_folder_on_the_way_may_be_no_link(folder: Path) -> None:
    (folder / "way").symlink_to(folder.parent / "out")
    with pytest.raises(NotADirectoryError):
        open_inside(folder, folder / "way" / "w.bin")
    (folder.parent / "root").symlink_to(folder)
    with pytest.raises(NotADirectoryError):
        open_inside(folder.parent / "root", folder.parent / "root" / "sub" / "w.bin")


@pytest.mark.parametrize("names", [0, 1, 2])
def test_hard_links_lead_out_when_a_name_lies_elsewhere(folder: Path, names: int) -> None:
    """Two names in one folder are no way out; the count of links tells whether there is one more."""
    path = folder / "sub" / "w.bin"
    for number in range(names):
        os.link(path, folder / "sub" / f"twin{number}")
    assert content(open_inside(folder, path)) == b"weights"
    os.link(path, folder.parent / "out" / "other")
    with pytest.raises(OSError, match="has 1 names elsewhere"):
        open_inside(folder, path)
    with pytest.raises(OSError, match="hard links"):
        open_regular(path, os.O_RDWR, is_own=True)


class Swap:
    """Does something once, between looking at a name and opening it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, swap: Callable[[], None]) -> None:
        real_open, left = os.open, [swap]

        def swapping(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            if Path(path).name == name and left:
                left.pop()()
            return real_open(path, flags, mode, dir_fd=dir_fd)

        monkeypatch.setattr(os, "open", swapping)


@pytest.mark.parametrize("other", ["link", "pipe", "hard link"])
def test_a_file_that_is_swapped_between_look_and_open(
    folder: Path, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, secret = folder / "sub" / "w.bin", folder.parent / "out" / "w.bin"

    def swap() -> None:
        path.unlink()
        if other == "pipe":
            os.mkfifo(path)
        elif other == "link":
            path.symlink_to(secret)
        else:
            os.link(secret, path)

    Swap(monkeypatch, "w.bin", swap)
    before = open_files()
    with pytest.raises(OSError, match=r"symbolic links|not a regular file|names elsewhere"):
        open_inside(folder, path)
    assert open_files() == before


def after_opening(monkeypatch: pytest.MonkeyPatch, name: str, does: list[Callable[[], object]]) -> None:
    """Do something each time after a name was opened, before what was opened is looked at."""
    real_open = os.open

    def opening(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        fd = real_open(path, flags, mode, dir_fd=dir_fd)
        if Path(path).name == name and does:
            does.pop(0)()
        return fd

    monkeypatch.setattr(os, "open", opening)


def test_a_hard_link_that_is_taken_away_once_it_is_open(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The secret has but one name again when its names are counted; it is not the name that was opened."""
    path, secret = folder / "sub" / "w.bin", folder.parent / "out" / "w.bin"
    path.unlink()
    os.link(secret, path)

    def swap() -> None:
        path.unlink()
        path.write_bytes(b"inside!")

    after_opening(monkeypatch, "w.bin", [swap])
    before = open_files()
    assert content(open_inside(folder, path)) == b"inside!"
    assert open_files() == before


def test_a_hard_link_that_comes_back_in_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One name when names are counted, and the name that was opened when that is looked at: its time tells."""
    path, secret = folder / "sub" / "w.bin", folder.parent / "out" / "w.bin"
    path.unlink()
    os.link(secret, path)
    after_opening(monkeypatch, "w.bin", [path.unlink] * 9)
    real_stat, looks = os.stat, 0

    def stat_when_back(name: str, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        nonlocal looks
        looks += 1
        if not looks % 2:  # the second look of each try: the first one is before it is opened
            os.link(secret, path)
        return real_stat(name, dir_fd=dir_fd, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(os, "stat", stat_when_back)
    with pytest.raises(OSError, match="was changed while it was opened") as caught:
        open_inside(folder, path)
    assert caught.value.errno == errno.ESTALE
    assert looks > 2


def test_a_list_that_is_written_anew_is_opened_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "sub" / "w.bin"

    def replace() -> None:
        (folder / "new").write_bytes(b"renewed")
        (folder / "new").replace(path)

    after_opening(monkeypatch, "w.bin", [replace, replace])
    assert content(open_inside(folder, path)) == b"renewed"


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR])
def test_an_own_file_whose_name_is_gone_is_refused(folder: Path, flags: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path, secret = folder / "sub" / "w.bin", folder.parent / "out" / "w.bin"
    path.unlink()
    os.link(secret, path)

    def swap() -> None:
        path.unlink()
        path.write_bytes(b"inside!")

    after_opening(monkeypatch, "w.bin", [swap])
    with pytest.raises(OSError, match="was changed while it was opened"):
        open_regular(path, flags, is_own=True)


def test_a_whole_file_is_read_up_to_a_limit(folder: Path) -> None:
    path = folder / "sub" / "w.bin"
    assert read_whole(named_file(path), 7, path) == b"weights"
    with pytest.raises(OSError, match="takes 7 B, 6 B at most are read") as caught:
        read_whole(named_file(path), 6, path)
    assert caught.value.errno == errno.EFBIG
    kernel = Path("/proc/self/maps")  # says that it has no bytes
    with pytest.raises(OSError, match="takes 65 B, 64 B at most are read"):
        read_whole(named_file(kernel), 64, kernel)


@pytest.mark.parametrize("name", ["sub/w.bin", "./sub//w.bin", "sub/../sub/w.bin", "here"])
def test_names_that_stay_inside(folder: Path, name: str) -> None:
    (folder / "here").symlink_to("sub/w.bin")
    assert content(open_inside(folder, path_inside(folder, name))) == b"weights"


def test_a_folder_that_is_swapped_on_the_way(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def swap() -> None:
        (folder / "sub").rename(folder / "moved")
        (folder / "sub").symlink_to(folder.parent / "out")

    Swap(monkeypatch, "sub", swap)
    with pytest.raises(NotADirectoryError):
        open_inside(folder, folder / "sub" / "w.bin")


def test_a_folder_that_is_swapped_after_it_was_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way goes on in the folder that was opened, whatever has its name by now."""

    def swap() -> None:
        (folder / "sub").rename(folder / "moved")
        (folder / "sub").symlink_to(folder.parent / "out")

    Swap(monkeypatch, "w.bin", swap)
    assert content(open_inside(folder, folder / "sub" / "w.bin")) == b"weights"


@pytest.mark.parametrize("name", ["x.npz", "x.npy", "x.onnx", "x.safetensors", "x.safetensors.index.json"])
def test_no_reader_of_tensors_waits_for_a_pipe(tmp_path: Path, name: str) -> None:
    if name.endswith(".onnx"):
        pytest.importorskip("onnx")
    os.mkfifo(tmp_path / name)
    with pytest.raises(ModelFileError, match="not a regular file"):
        read_tensors(tmp_path / name)
    assert not is_om2(tmp_path / name)


def test_an_archive_that_is_another_one_when_its_bytes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "w.npz"
    np.savez(path, a=np.arange(5))
    (tensor,) = read_tensors(path)
    assert read_all(tensor.data) == np.arange(5).tobytes()
    path.unlink()
    np.savez(path, a=np.arange(5) + 1)
    with pytest.raises(ModelFileError, match="changed since it was looked at"):
        read_all(tensor.data)


def test_a_file_that_the_caller_names_may_be_a_link(folder: Path) -> None:
    (folder / "link").symlink_to(folder.parent / "out" / "w.bin")
    with open_named(folder / "link") as file:
        assert file.read() == b"secret!"
    for name in (folder / "none", ""):
        with pytest.raises(FileNotFoundError):
            open_named(name)


def test_a_source_keeps_the_file_that_was_opened(folder: Path) -> None:
    path = folder / "sub" / "w.bin"
    source = ByteSource.of_file_in(folder, path)
    path.unlink()
    path.symlink_to(folder.parent / "out" / "w.bin")
    assert source.read(0, 7, "all") == b"weights"
    source.close()
    with pytest.raises(ModelFileError, match="symbolic link"):
        ByteSource.of_file_in(folder, path)


def test_a_source_that_is_another_file_by_now(folder: Path) -> None:
    path = folder / "sub" / "w.bin"
    state = file_state(path.stat())
    ByteSource.of_file(path, state).close()
    before = open_files()
    for change in (lambda: os.utime(path, ns=(1, 1)), lambda: path.write_bytes(b"longer than before")):
        change()
        with pytest.raises(ModelFileError, match="changed since it was looked at"):
            ByteSource.of_file(path, state)
    assert open_files() == before
