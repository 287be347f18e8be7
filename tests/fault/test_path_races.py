"""A thread that swaps files, links, pipes and folders, again and again, while they are opened thousands of times.

Whoever looks at a name first and uses it then loses such a race within moments; `test_the_race_can_be_lost` shows it.
"""

import itertools
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from gevar.errors import GevarError
from gevar.om import OmBuilder
from gevar.om.atomic_file import write_atomically
from gevar.om.regular_file import named_file, open_inside, path_inside, read_whole
from gevar.om.source import ByteSource
from gevar.om.weight_digests import read_digests
from gevar.weights import FileConstantInfo, FileRegion, WeightDirectory, open_region, read_region
from tests.helpers.open_files import open_files
from tests.helpers.path_attacks import INSIDE, SECRET, patience

OPENS, MOST_OPENS = 400, 20_000
"""How often a name is opened at least, and at most until it was both found and refused."""
REST = 1000
"""After so many swaps of a file it stays a moment."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, data in (("model/weight/w", INSIDE), ("outside/w", SECRET)):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(data)
    return tmp_path / "model"


def swap_file(folder: Path) -> Iterator[None]:
    """Let the name be that of the file, a link, a hard link, a pipe, a folder and of nothing, one after the other.

    Now and then the file stays a moment, so that it is found on busy machines, too.
    """
    path, outside = folder / "weight" / "w", folder.parent / "outside" / "w"
    makers: tuple[Callable[[Path], object], ...] = (
        lambda new: new.write_bytes(INSIDE),
        lambda new: new.symlink_to(outside),
        lambda new: new.write_bytes(INSIDE),
        lambda new: os.link(outside, new),
        os.mkfifo,
    )
    for number, make in zip(itertools.count(), itertools.cycle(makers), strict=False):
        new = folder / f"new{number}"
        make(new)
        new.replace(path)
        yield
        if make is makers[2] and number % REST == 2:
            time.sleep(0.02)
        if number % len(makers) == 0:
            with suppress(OSError):
                path.unlink()
                path.mkdir()
                yield
            path.rmdir()


def swap_folder(folder: Path) -> Iterator[None]:
    """Let the name of the folder be that of a link to another folder every other time."""
    path, aside, link, numbers = folder / "weight", folder / "aside", folder / "link", itertools.count()

    def name(what: Path) -> None:
        while True:
            try:
                what.rename(path)
                return
            except OSError:  # a writer has made a folder while there was none
                path.rename(folder / f"made{next(numbers)}")

    while True:
        path.rename(aside)
        link.symlink_to(folder.parent / "outside")
        name(link)
        yield
        path.unlink()
        name(aside)
        yield


@contextmanager
def swapping(swaps: Iterator[None]) -> Iterator[None]:
    """Swap in a thread, as fast as it can, until the block ends."""
    done, errors = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            while not done.is_set():
                next(swaps)
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert not errors, errors


def find_and_read(folder: Path) -> bytes:
    """Look at the file of a FileConstant, then open it again, as a load does."""
    file = WeightDirectory(None, folder / "m.om").find(FileConstantInfo("w", "location", "w", 0, 0, 64, 64))
    data = bytearray(len(INSIDE))
    with ExitStack() as stack:
        opened = open_region(FileRegion(file.path, 0, len(data), file.state), stack)
        read_region(opened, file.path, 0, memoryview(data))
    return bytes(data)


def inside(folder: Path) -> bytes:
    """Find a name in a folder, and open it there, as external data and files of a cache are."""
    return read_whole(open_inside(folder, path_inside(folder, "weight/w")), 1 << 20, folder)


def known(folder: Path) -> bytes:
    """Open a file, close it, and open it again when it is read, as files that are relocated are."""
    path = folder / "weight" / "w"
    opened = ByteSource.of_file_in(folder, path)
    opened.close()
    assert opened.state is not None
    return ByteSource.of_known_file(path, opened.state).read(0, len(INSIDE), "w")


READS: dict[str, Callable[[Path], bytes]] = {"look, then load": find_and_read, "inside": inside, "known": known}


@pytest.mark.parametrize("swap", [swap_file, swap_folder])
@pytest.mark.parametrize("read", READS)
def test_nothing_outside_is_ever_read(folder: Path, read: str, swap: Callable[[Path], Iterator[None]]) -> None:
    before, seen = open_files(), Counter[str]()
    with patience(), swapping(swap(folder)):
        while seen.total() < OPENS or (len(seen) < 2 and seen.total() < MOST_OPENS):
            try:
                found = READS[read](folder)
            except (GevarError, OSError):
                seen["refused"] += 1
            else:
                assert found == INSIDE
                seen["found"] += 1
    assert set(seen) == {"refused", "found"}
    assert open_files() == before


def test_the_race_can_be_lost(folder: Path) -> None:
    """Who looks at a path, and then opens it, reads the secret."""

    def careless() -> bytes:
        path = folder / "weight" / "w"
        if not Path(os.path.realpath(path)).is_relative_to(folder):
            raise PermissionError(path)
        return read_whole(named_file(path), 1 << 20, path)

    with patience(), swapping(swap_folder(folder)):
        for _ in range(MOST_OPENS // 2):
            with suppress(OSError):
                if careless() == SECRET:
                    return
    pytest.skip("the race was not lost on this machine")


def test_a_link_that_comes_and_goes_is_never_written_through(folder: Path) -> None:
    path, outside = folder / "weight" / "w", folder.parent / "outside" / "w"

    def swaps() -> Iterator[None]:
        for number in itertools.count():
            new = folder / f"new{number}"
            new.symlink_to(outside) if number % 2 else new.write_bytes(b"old")
            new.replace(path)
            yield

    def put(file: BinaryIO) -> None:
        file.write(b"data")

    with patience(), swapping(swaps()):
        for _ in range(OPENS // 4):
            write_atomically(path, put)
    assert outside.read_bytes() == SECRET
    assert sorted(one.name for one in path.parent.iterdir()) == ["w"]


def test_a_folder_that_comes_and_goes_is_never_exported_to(folder: Path) -> None:
    """What was written lies in the folder that was opened, whatever had its name by then."""
    seen = Counter[str]()
    with patience(), swapping(swap_folder(folder)):
        for number in range(OPENS // 10):
            builder = OmBuilder("net")
            builder.const("w", np.full(30, number, np.float32))
            try:
                builder.write(folder / "m.om", external_weight=1)
            except OSError:
                seen["refused"] += 1
            else:
                seen["written"] += 1
    assert [one.name for one in (folder.parent / "outside").iterdir()] == ["w"]
    assert seen.total() == OPENS // 10


def test_digests_that_come_and_go(folder: Path) -> None:
    """A list of another folder is never taken for that of the weights."""
    for path, name in ((folder / "weight", "inside"), (folder.parent / "outside", "outside")):
        row = f'{{"file": "{name}", "offset": 0, "length": 1, "digest": "00"}}'
        (path / "digests.json").write_text(f'{{"xxh3_128": [{row}]}}')
    with patience(), swapping(swap_folder(folder)):
        for _ in range(OPENS):
            with suppress(GevarError):
                (one,) = read_digests(folder / "weight" / "digests.json", folder / "weight")
                assert one.file == "inside"
