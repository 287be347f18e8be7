"""Files that appear complete or not at all: modes, targets that are no files, what failed or killed writers leave."""

import fcntl
import os
import signal
import stat
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from gevar.om import OmBuilder
from gevar.om.atomic_file import make_draft, remove_drafts, write_atomically
from gevar.om.named_tensor import NamedTensor, write_tensors
from gevar.types import DataType

DRAFT = ".gevar-0123456789abcdef.tmp"


def put(data: bytes) -> Callable[[BinaryIO], None]:
    def write(file: BinaryIO) -> None:
        file.write(data)

    return write


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write_om(path: Path) -> None:
    builder = OmBuilder("net")
    builder.const("w", np.arange(600, dtype=np.float32))
    builder.write(path)


def write_weights(path: Path) -> None:
    write_tensors(path, [NamedTensor("a", DataType.DT_UINT8, (3,), memoryview(b"abc"))])


WRITERS: dict[str, Callable[[Path], None]] = {
    "m.om": write_om,
    "w.safetensors": write_weights,
    "w.npz": write_weights,
    "plain": partial(write_atomically, write=put(b"data")),
}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
@pytest.mark.parametrize("name", WRITERS)
def test_every_output_is_for_its_owner_only(tmp_path: Path, name: str, umask: int) -> None:
    (tmp_path / name).touch(mode=0o644)
    before = os.umask(umask)
    try:
        WRITERS[name](tmp_path / name)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert names(tmp_path) == [name]


@pytest.mark.parametrize("name", WRITERS)
def test_a_link_is_replaced_and_not_what_it_leads_to(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    for link in (os.symlink, os.link):
        link(tmp_path / "secret", tmp_path / name)
        WRITERS[name](tmp_path / name)
        assert (tmp_path / "secret").read_bytes() == b"secret"
        assert not (tmp_path / name).is_symlink()
        (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(tmp_path / "none")
    WRITERS[name](tmp_path / name)
    assert names(tmp_path) == sorted([name, "secret"])


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/null"), os.mkdir])
def test_a_target_that_is_no_file_stays(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "m.om"
    make(path)
    before = path.lstat()
    with pytest.raises(OSError, match=r"is a device, pipe or socket|is a directory"):
        write_om(path)
    assert os.path.samestat(path.lstat(), before)
    assert names(tmp_path) == ["m.om"]


def test_a_device_stays(tmp_path: Path) -> None:
    path = tmp_path / "null"
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes device files")
    with pytest.raises(OSError, match="is a device"):
        write_om(path)
    assert stat.S_ISCHR(path.stat().st_mode)


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("name", WRITERS)
def test_a_call_that_fails_leaves_what_was_there(
    tmp_path: Path, name: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(b"before")

    def fail(*_: object, **__: object) -> None:
        raise OSError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(OSError, match="the disk is gone"):
            WRITERS[name](tmp_path / name)
    assert names(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == b"before"


def test_an_interrupt_leaves_what_was_there(tmp_path: Path) -> None:
    def interrupted(file: BinaryIO) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "m", interrupted)
    with pytest.raises(ZeroDivisionError):
        write_atomically(tmp_path / "m", put(b"x"), before_naming=lambda: 1 // 0)  # type: ignore[arg-type]
    assert names(tmp_path) == []


@pytest.mark.parametrize("moment", ["before", "named", "synced", "after"])
def test_who_waits_for_the_name_learns_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """An interrupt that comes when the file has its name finds it told."""
    told, replace, fsync = [], os.replace, os.fsync

    def stop(at: str) -> None:
        if at == moment:
            raise KeyboardInterrupt

    def named(source: str, target: str, **folders: int) -> None:
        stop("before")
        replace(source, target, **folders)
        stop("named")

    def synced(fd: int) -> None:
        fsync(fd)
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            stop("synced")

    def tell() -> None:
        told.append((tmp_path / "m").read_bytes())
        if len(told) == 1:
            stop("after")

    monkeypatch.setattr(os, "replace", named)
    monkeypatch.setattr(os, "fsync", synced)
    (tmp_path / "m").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "m", put(b"new"), after_naming=tell)
    is_named = moment != "before"
    assert set(told) == ({b"new"} if is_named else set())
    assert (tmp_path / "m").read_bytes() == (b"new" if is_named else b"old")
    assert names(tmp_path) == ["m"]


def test_the_folder_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "no" / "m", tmp_path / "file" / "m"):
        with pytest.raises(FileNotFoundError, match="the folder to write to is not there"):
            write_atomically(path, put(b""))


def test_the_folder_is_that_which_was_opened(tmp_path: Path) -> None:
    """A folder that comes in the place of the first one, while the file is written, gets nothing."""
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()

    def swap() -> None:
        (tmp_path / "in").rename(tmp_path / "moved")
        (tmp_path / "in").symlink_to(tmp_path / "out")

    write_atomically(tmp_path / "in" / "m", put(b"data"), before_naming=swap)
    assert names(tmp_path / "out") == []
    assert (tmp_path / "moved" / "m").read_bytes() == b"data"


# --- what killed writers leave ----------------------------------------------------------------------------------------


def killed_writer(path: Path) -> None:
    """Kill a process in the middle of a file."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:

            def wait(file: BinaryIO) -> None:
                file.write(b"half")
                file.flush()
                os.write(writing, b"x")
                time.sleep(60)

            write_atomically(path, wait)
        finally:
            os._exit(1)
    os.close(writing)
    assert os.read(reading, 1) == b"x"
    os.close(reading)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


@pytest.mark.parametrize("name", WRITERS)
def test_the_next_writer_removes_what_a_killed_one_left(tmp_path: Path, name: str) -> None:
    killed_writer(tmp_path / "other")
    (left,) = names(tmp_path)
    assert left.startswith(".gevar-")
    WRITERS[name](tmp_path / name)
    assert names(tmp_path) == [name]


def test_a_draft_that_is_being_written_stays(tmp_path: Path) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow(file: BinaryIO) -> None:
        file.write(b"slow")
        started.set()
        assert go_on.wait(10)

    thread = threading.Thread(target=write_atomically, args=(tmp_path / "slow", slow))
    thread.start()
    assert started.wait(10)
    write_atomically(tmp_path / "quick", put(b"quick"))
    assert len(names(tmp_path)) == 2
    go_on.set()
    thread.join()
    assert names(tmp_path) == ["quick", "slow"]
    assert (tmp_path / "slow").read_bytes() == b"slow"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("secret")])
def test_only_files_count_as_drafts(tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    make(tmp_path / DRAFT)
    for name in (".gevar-0123.tmp", "gevar-0123456789abcdef.tmp", ".gevar-0123456789abcdef.tmp.bin"):
        (tmp_path / name).touch()
    before = names(tmp_path)
    write_atomically(tmp_path / "secret", put(b"new"))
    assert names(tmp_path) == before


def test_a_draft_that_is_taken_for_a_left_one_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between making a draft and locking it another writer may have been there."""
    folder = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    real_flock, first = fcntl.flock, [True]

    def quicker(fd: int, operation: int) -> None:
        if first:
            first.clear()
            remove_drafts(folder)
        real_flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", quicker)
    draft, fd = make_draft(folder)
    assert names(tmp_path) == [draft]
    os.close(fd)
    remove_drafts(folder)
    assert names(tmp_path) == []
    os.close(folder)


def test_large_content_is_whole(tmp_path: Path) -> None:
    data = np.arange(1 << 20, dtype=np.uint32).tobytes()
    write_atomically(tmp_path / "m", put(data))
    assert (tmp_path / "m").read_bytes() == data
