"""Files that are swapped or changed between the look at them and their bytes: an error, and no memory left behind."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from acl_shim import Runtime
from gevar import Session, load_model
from gevar.errors import LoadError, VariableError
from gevar.om import OmBuilder
from gevar.session import ExternalWeightAddress
from gevar.weights import PreadReader
from tests.helpers import om_builder as build
from tests.helpers.lasting_models import BASE, file_constant, lasting_model, write_model

BYTES = bytes(range(256))


@pytest.fixture
def session(runtime: Runtime) -> Iterator[Session]:
    with Session(runtime) as session:
        yield session
        assert session.memory_manager.counts.live_blocks == 0
        assert session.external_weights.device_bytes == 0


def put_time_back(path: Path, before: os.stat_result) -> None:
    """Give a file the time of writing that it had, when the clock of the file system has gone on."""
    while path.stat().st_ctime_ns == before.st_ctime_ns:
        path.touch()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def same_size_and_time(path: Path, secret: Path) -> None:
    """Another file that says the same of itself; it may even get the number of the first."""
    before = path.stat()
    path.unlink()
    path.write_bytes(secret.read_bytes())
    put_time_back(path, before)


def same_time(path: Path, _: Path) -> None:
    """The same file with more bytes, and its time put back."""
    before = path.stat()
    with path.open("ab") as file:
        file.write(b"more")
    put_time_back(path, before)


def link(path: Path, secret: Path) -> None:
    path.unlink()
    path.symlink_to(secret)


def hard_link(path: Path, secret: Path) -> None:
    path.unlink()
    path.hardlink_to(secret)


def pipe(path: Path, _: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder_link(path: Path, secret: Path) -> None:
    path.parent.rename(path.parent.parent / "moved")
    path.parent.symlink_to(secret.parent)


def refusal(swap: Callable[[Path, Path], None]) -> str:
    """What is said of a file that was swapped: a pipe is not opened, another file is compared."""
    return "is not a regular file" if swap is pipe else "changed since it was looked at"


SWAPS = (link, hard_link, pipe, folder_link, same_size_and_time, same_time)
Swap = Callable[[Path, Path], None]


def swapping(path: Path, do: Callable[[], None]) -> Callable[[Path, bool], PreadReader]:
    """Open files as a load does, after something was done once, before the first read of `path`."""
    left = [do]

    def open_file(file: Path, past_cache: bool) -> PreadReader:
        if file == path and left:
            left.pop()()
        return PreadReader(file, past_cache)

    return open_file


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("combined", [True, False])
def test_a_weight_file_that_is_swapped_between_look_and_read(
    session: Session, tmp_path: Path, swap: Swap, combined: bool
) -> None:
    names = ["w.bin", "w.bin" if combined else "v.bin"]
    ops = [file_constant(f"c{i}", BASE + 2048 * i, 8, location=name, length=32) for i, name in enumerate(names)]
    path = write_model(tmp_path / "model", ops, dict.fromkeys(names, BYTES[:32]))
    (tmp_path / "secret").mkdir()
    for name in names:
        (tmp_path / "secret" / name).write_bytes(BYTES[32:64])
    target = tmp_path / "model" / "weight" / "w.bin"
    hook = swapping(target, lambda: swap(target, tmp_path / "secret" / "w.bin"))
    with pytest.raises(LoadError, match=refusal(swap)) as caught:
        load_model(path, session=session, open_file=hook)
    assert caught.value.path == str(target)
    assert (caught.value.offset, caught.value.wanted, caught.value.got) == (0, 32, 0)
    assert session.memory_manager.counts.live_blocks == 0


@pytest.mark.parametrize("swap", [link, hard_link, pipe, same_size_and_time, same_time])
def test_a_model_file_that_is_swapped_between_look_and_read(session: Session, tmp_path: Path, swap: Swap) -> None:
    """The graph of one file never gets the weights of another."""
    target = tmp_path / "model" / "m.om"
    target.parent.mkdir()
    for path, value in ((target, 1), (tmp_path / "secret", 2)):
        builder = OmBuilder("net")
        builder.output(builder.const("w", np.full(600, value, np.float32)))
        builder.write(path)
    with pytest.raises(LoadError, match=refusal(swap)):
        load_model(target, session=session, open_file=swapping(target, lambda: swap(target, tmp_path / "secret")))
    assert session.memory_manager.counts.live_blocks == 0


def test_a_file_that_stays_is_loaded_through_the_hook(session: Session, tmp_path: Path) -> None:
    path = write_model(tmp_path, [file_constant("c", BASE, 8, location="w.bin", length=32)], {"w.bin": BYTES[:32]})
    target, done = tmp_path / "weight" / "w.bin", list[str]()
    with load_model(path, session=session, open_file=swapping(target, lambda: done.append("asked"))) as loaded:
        assert loaded.read("c").tobytes() == BYTES[:32]
    assert done == ["asked"]


def test_verify_reads_no_other_file(session: Session, tmp_path: Path) -> None:
    path = write_model(tmp_path, [file_constant("c", BASE, 8, location="w.bin", length=32)], {"w.bin": BYTES[:32]})
    with load_model(path, session=session) as loaded:
        assert loaded.verify(path).differences == ()
        (tmp_path / "weight" / "w.bin").write_bytes(BYTES[:31] + b"!")
        with pytest.raises(LoadError, match="changed since it was looked at"):
            loaded.verify(path)


def test_memory_of_the_caller_s_for_two_files_of_one_name(session: Session) -> None:
    """Memory goes by the name of a file without its folder: two files would be one."""
    ops = [
        file_constant("a", BASE, 8, file_path=build.attr_s("one/w.bin")),
        file_constant("b", BASE + 2048, 8, file_path=build.attr_s("two/w.bin")),
    ]
    given = {"w.bin": ExternalWeightAddress(1 << 40, 64)}
    with pytest.raises(VariableError, match=r"memory is given for w\.bin, and there are two .* in one and in two"):
        load_model(lasting_model(ops), session=session, external_weights=given)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ({"location": "w.bin"}, {"file_path": "w.bin"}, "the weight directory and in the working directory"),
        ({"location": "one/w.bin"}, {"file_path": "one/w.bin"}, "in the weight directory and in one"),
        ({"file_path": "one/w.bin"}, {"location": "w.bin"}, "in one and in the weight directory"),
        ({"location": "one/w.bin"}, {"location": "two/w.bin"}, "in one and in two"),
        ({"location": "w.bin"}, {"location": "two/w.bin"}, ""),
        ({"file_path": "./w.bin"}, {"file_path": "one/../w.bin"}, ""),
        ({"file_path": "./w.bin"}, {"file_path": "w.bin"}, ""),
        ({"location": "w.bin"}, {"file_path": "{weights}/w.bin"}, ""),
    ],
)
def test_memory_of_the_caller_s_and_what_is_another_file(
    session: Session, tmp_path: Path, first: dict[str, str], second: dict[str, str], words: str
) -> None:
    names = [{key: text.format(weights=tmp_path) for key, text in one.items()} for one in (first, second)]
    ops = [
        file_constant(f"c{number}", BASE + 2048 * number, 8, location=one["location"])
        if "location" in one
        else file_constant(f"c{number}", BASE + 2048 * number, 8, file_path=build.attr_s(one["file_path"]))
        for number, one in enumerate(names)
    ]
    given = {"w.bin": ExternalWeightAddress(1 << 40, 64)}
    if words:
        with pytest.raises(VariableError, match=f"memory is given for w.bin.*{words}"):
            load_model(lasting_model(ops), session=session, external_weights=given, weight_dir=tmp_path)
        return
    with load_model(lasting_model(ops), session=session, external_weights=given, weight_dir=tmp_path) as loaded:
        assert [row.dev_addr for row in loaded.rows] == [1 << 40] * 2
