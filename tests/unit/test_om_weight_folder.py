"""The folder that external weights are written to: links in its place, other writers, lists that lead astray."""

import hashlib
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import xxhash

from gevar.om import OmBuilder, StreamedBytes
from gevar.om.external_weights_writer import ExternalWeightMode
from gevar.om.weight_digests import RegionDigest, read_digests
from gevar.om.weight_folder import WeightFolder
from gevar.om.weight_list import MAX_LIST_BYTES, META_FILE, FolderLists, WeightList, _runs_into
from gevar.types import DataType, Format, TensorDesc
from tests.helpers.child import talk_to_python
from tests.helpers.om_rules import check_file
from tests.helpers.peak_memory import bounded_memory
from tests.helpers.shared import REPOSITORY

SERVER = "from tests.helpers.export_writer import serve; serve()"
EMPTY = WeightList().to_bytes()


def net(**weights: bytes) -> OmBuilder:
    builder = OmBuilder("net")
    for name, data in weights.items():
        builder.const(name, data, TensorDesc(DataType.DT_UINT8, Format.FORMAT_ND, (len(data),)))
    return builder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# --- the folder -------------------------------------------------------------------------------------------------------


def test_a_folder_is_made_for_its_owner_and_taken_back(tmp_path: Path) -> None:
    folder = WeightFolder(tmp_path / "w")
    folder.open()
    assert stat.S_IMODE((tmp_path / "w").stat().st_mode) == 0o700
    assert files(tmp_path / "w") == {META_FILE: EMPTY}
    folder.write("a", memoryview(b"abc"))
    folder.append("b", memoryview(b"abc"))
    folder.replace("c", b"abc")
    assert names(tmp_path / "w") == ["a", "b", "c", META_FILE]
    folder.close()
    assert names(tmp_path) == []


@pytest.mark.parametrize("mode", [1, 2])
def test_the_folder_beside_a_model_may_be_no_link(tmp_path: Path, mode: ExternalWeightMode) -> None:
    """Who packs a link in its place would have the weights written elsewhere; a folder that is named may be one."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "weight").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="the folder of external weights is a link; name the folder that it leads to"):
        net(a=b"abc").write(tmp_path / "m.om", external_weight=mode)
    assert names(tmp_path / "elsewhere") == []
    assert names(tmp_path) == ["elsewhere", "weight"]
    net(a=b"abc").write(tmp_path / "m.om", external_weight=mode, weight_dir=tmp_path / "weight")
    check_file((tmp_path / "m.om").read_bytes(), tmp_path / "elsewhere")


@pytest.mark.parametrize("is_given", [True, False])
def test_a_link_to_nothing_ends_the_wait(tmp_path: Path, is_given: bool) -> None:
    (tmp_path / "weight").symlink_to(tmp_path / "none")
    with pytest.raises(OSError, match=r"No such file|is a link"):
        net(a=b"abc").write(tmp_path / "m.om", external_weight=1, weight_dir=tmp_path / "weight" if is_given else None)
    assert names(tmp_path) == ["weight"]


@pytest.mark.parametrize("make", [os.mkfifo, Path.touch])
def test_what_is_no_folder_is_refused_at_once(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "weight")
    with pytest.raises(NotADirectoryError):
        net(a=b"abc").write(tmp_path / "m.om", external_weight=1)
    assert names(tmp_path) == ["weight"]


@pytest.mark.parametrize("mode", [1, 2])
def test_a_folder_that_is_swapped_while_it_is_written(tmp_path: Path, mode: ExternalWeightMode) -> None:
    """What is written goes to the folder that was locked, and nothing to a link in its place."""
    (tmp_path / "weight").mkdir()
    (tmp_path / "elsewhere").mkdir()
    left = [True]

    def read() -> list[bytes]:
        if left:
            left.clear()
            (tmp_path / "weight").rename(tmp_path / "moved")
            (tmp_path / "weight").symlink_to(tmp_path / "elsewhere")
        return [b"abc"]

    builder = OmBuilder("net")
    data = StreamedBytes(3, lambda: iter(read()))
    builder.const("a", data, TensorDesc(DataType.DT_UINT8, Format.FORMAT_ND, (3,)))
    builder.write(tmp_path / "m.om", external_weight=mode)
    assert names(tmp_path / "elsewhere") == []
    check_file((tmp_path / "m.om").read_bytes(), tmp_path / "moved")


@pytest.mark.parametrize("name", ["meta.json", "digests.json"])
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_linked_list_changes_nothing_elsewhere(tmp_path: Path, name: str, link: Callable[[Path, Path], None]) -> None:
    (tmp_path / "weight").mkdir()
    (tmp_path / "secret").write_bytes(b"{}")
    link(tmp_path / "secret", tmp_path / "weight" / name)
    if link is os.symlink:
        with pytest.raises(OSError, match="symbolic link"):
            net(a=b"abc").write(tmp_path / "m.om", external_weight=1)
        assert not (tmp_path / "m.om").exists()
    else:
        net(a=b"abc").write(tmp_path / "m.om", external_weight=1)
        check_file((tmp_path / "m.om").read_bytes(), tmp_path / "weight")
    assert (tmp_path / "secret").read_bytes() == b"{}"


@pytest.mark.parametrize("name", ["meta.json", "digests.json"])
def test_a_list_that_is_too_long_is_not_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "weight").mkdir()
    (tmp_path / "weight" / name).touch()
    os.truncate(tmp_path / "weight" / name, MAX_LIST_BYTES + 1)
    with pytest.raises(OSError, match=f"{MAX_LIST_BYTES + 1} B, {MAX_LIST_BYTES} B at most are read"):
        net(a=b"abc").write(tmp_path / "m.om", external_weight=1)


# --- other writers ----------------------------------------------------------------------------------------------------


def test_eight_processes_make_one_folder(tmp_path: Path) -> None:
    """That another one was quicker is no failure, for any of them."""
    plans = [{"folder": str(tmp_path), "mode": 1 + n % 2, "number": n, "file": f"m{n}.om"} for n in range(8)]
    with talk_to_python(SERVER, OPENBLAS_NUM_THREADS="1") as talk:
        codes = [code for _, code in json.loads(talk(json.dumps(plans)))]
    assert codes == [0] * 8
    for number in range(8):
        check_file((tmp_path / f"m{number}.om").read_bytes(), tmp_path / "weight")
    assert not list((tmp_path / "weight").glob("*.tmp"))


@pytest.mark.parametrize("mode", [1, 2])
def test_an_export_gives_the_same_bytes_in_every_process(tmp_path: Path, mode: int) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.helpers.export_writer import export\n"
        f"export({{'folder': '.', 'mode': {mode}, 'number': 3, 'file': 'm.om'}}, len)"
    )
    found = []
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(REPOSITORY)}
        subprocess.run([sys.executable, "-c", program], cwd=folder, env=env, check=True)
        found.append(files(folder))
    assert found[0] == found[1]
    assert len(found[0]) == {1: 7, 2: 4}[mode]


def test_a_list_that_still_has_the_name_of_its_draft(tmp_path: Path) -> None:
    """Who is killed between the two names of a new list leaves both; the next writer removes the first."""
    net(a=b"abc").write(tmp_path / "m.om", external_weight=1)
    (tmp_path / "weight" / ".gevar-0123456789abcdef.tmp").hardlink_to(tmp_path / "weight" / META_FILE)
    net(b=b"abcd").write(tmp_path / "m.om", external_weight=1)
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_list_of_another_shape_is_mended(tmp_path: Path) -> None:
    """Also where the export itself adds nothing to it."""
    net(a=b"abc").write(tmp_path / "m.om", external_weight=1)
    sound = (tmp_path / "weight" / META_FILE).read_bytes()
    for damage in ({"hash_to_weight_offset": []}, {"hash_to_weight_offset": {"aa": "x"}}):
        (tmp_path / "weight" / META_FILE).write_text(json.dumps(json.loads(sound) | damage))
        net(a=b"abc").write(tmp_path / "m.om", external_weight=1)
        assert (tmp_path / "weight" / META_FILE).read_bytes() == sound


def test_digests_of_regions_that_are_no_more_are_dropped(tmp_path: Path) -> None:
    """A file that was cut, and grew again, has other bytes where the old regions were; damaged rows go, too."""
    net(a=bytes([1]) * 600, b=bytes([2]) * 600).write(tmp_path / "m.om", external_weight=2)
    os.truncate(tmp_path / "weight" / "m_weight_combined", 512)
    side = tmp_path / "weight" / "digests.json"
    rows = json.loads(side.read_bytes())
    rows["xxh3_128"].append({"file": "m_weight_combined", "offset": -1})
    side.write_text(json.dumps(rows))
    net(c=bytes([4]) * 2000).write(tmp_path / "n.om", external_weight=2, weight_dir=tmp_path / "weight")
    found = [(one.offset, one.length) for one in read_digests(side) if one.file == "m_weight_combined"]
    assert found == [(0, 600), (1024, 600)], "another file has no part in them"
    net(c=bytes([3]) * 2000).write(tmp_path / "m.om", external_weight=2)
    found = [(one.offset, one.length) for one in read_digests(side) if one.file == "m_weight_combined"]
    assert found == [(512, 2000)], "the first ran into it, the second began in it"


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (0, 512, False),
        (0, 513, True),
        (512, 0, True),
        (512, 100, True),
        (600, 1, True),
        (612, 5, False),
        (612, 9999, True),
    ],
)
def test_regions_that_run_into_others(offset: int, length: int, expected: bool) -> None:
    others = [RegionDigest("w", 512, 100, ""), RegionDigest("w", 1024, 100, "")]
    assert _runs_into(RegionDigest("w", offset, length, ""), others) is expected


def test_a_folder_that_goes_while_a_writer_waits(tmp_path: Path) -> None:
    first, second = WeightFolder(tmp_path / "w"), WeightFolder(tmp_path / "w")
    first.open()
    waiting = threading.Thread(target=second.open)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    first.close()
    waiting.join(10)
    assert files(tmp_path / "w") == {META_FILE: EMPTY}
    second.commit()
    second.close()
    assert files(tmp_path / "w") == {META_FILE: EMPTY}


# --- files in it ------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[WeightFolder]:
    found = WeightFolder(tmp_path / "w")
    found.open()
    yield found
    found.close()


def test_pieces_lie_at_multiples_of_512_with_zeros_between(folder: WeightFolder) -> None:
    assert [folder.append("c", memoryview(bytes([1]) * size)) for size in (1, 511, 513, 512)] == [0, 512, 1024, 2048]
    data = (folder.path / "c").read_bytes()
    assert data == (b"\1" + bytes(511) + b"\1" * 511 + bytes(1) + b"\1" * 513 + bytes(511) + b"\1" * 512)


def test_a_torn_end_is_left_behind(folder: WeightFolder) -> None:
    (folder.path / "c").write_bytes(b"x" * 700)
    assert folder.append("c", memoryview(b"abc")) == 1024
    assert (folder.path / "c").read_bytes() == b"x" * 700 + bytes(324) + b"abc" + bytes(509)


def test_a_file_that_has_another_name_is_written_again(tmp_path: Path) -> None:
    """A loader refuses it, so an export that used it again would be of no use."""
    net(a=b"abc").write(tmp_path / "m.om", external_weight=1)
    (path,) = (tmp_path / "weight").glob("weight_*")
    (tmp_path / "elsewhere").hardlink_to(path)
    net(a=b"abc").write(tmp_path / "m.om", external_weight=1)
    assert path.stat().st_nlink == 1
    assert (tmp_path / "elsewhere").read_bytes() == path.read_bytes() == b"abc"


def test_no_file_is_written_over(folder: WeightFolder) -> None:
    folder.write_new("a", memoryview(b"abc"))
    with pytest.raises(FileExistsError, match="other bytes"):
        folder.write_new("a", memoryview(b"xyz"))
    assert (folder.path / "a").read_bytes() == b"abc"


@pytest.mark.parametrize(
    ("offset", "size", "whole", "expected"),
    [(0, 3, True, True), (0, 3, False, True), (1, 2, False, False), (0, 4, False, False), (1 << 70, 3, False, False)],
)
def test_what_a_file_holds(folder: WeightFolder, offset: int, size: int, whole: bool, expected: bool) -> None:
    folder.write("a", memoryview(b"abc"))
    digest = hashlib.sha256(b"abc").digest()
    assert folder.holds("a", offset, size, digest, whole=whole) is expected
    folder.write("longer", memoryview(b"abcd"))
    assert folder.holds("longer", 0, 3, digest)
    assert not folder.holds("longer", 0, 3, digest, whole=True)
    os.mkfifo(folder.path / "pipe")
    (folder.path / "link").symlink_to("a")
    assert not any(folder.holds(name, 0, 3, digest) for name in ("pipe", "link", "none"))
    (folder.path / "twin").hardlink_to(folder.path / "a")
    assert not folder.holds("a", 0, 3, digest)


def test_entries_of_both_lists_are_added(folder: WeightFolder) -> None:
    lists = FolderLists(folder)
    lists.add("aa", "weight_aa")
    lists.add("bb", "c", 512)
    lists.write()
    lists = FolderLists(folder)
    assert lists.contents == WeightList(
        {"aa": str(folder.path / "weight_aa"), "bb": str(folder.path / "c")}, {"bb": 512}
    )
    lists.add("bb", "weight_bb")
    lists.write()
    assert FolderLists(folder).contents.offsets == {}


@pytest.mark.parametrize(
    ("path", "expected"), [("/a/weight_1", "weight_1"), ("../../w", "w"), ("w", "w"), ("a/", ""), ("", "")]
)
def test_only_the_name_of_a_listed_file_counts(path: str, expected: str) -> None:
    assert WeightList({"aa": path}).name("aa") == expected
    assert WeightList().name("aa") == ""


@pytest.mark.parametrize(
    "row",
    [
        {"offset": 0, "length": 4, "digest": "1" * 32},
        {"offset": 0, "length": 4, "digest": "1" * 32, "file": "\ud800"},
        {"offset": 0, "length": 4, "digest": "1" * 32, "again": "\udfff"},
    ],
)
def test_digests_can_be_read_after_an_export(tmp_path: Path, row: dict[str, object]) -> None:
    """Whatever was there: two digests for one region, or names that no file has."""
    known = {"file": "other", "offset": 0, "length": 4, "digest": "0" * 32}
    (tmp_path / "weight").mkdir()
    (tmp_path / "weight" / "digests.json").write_text(json.dumps({"xxh3_128": [known, known | row]}))
    net(a=bytes(9)).write(tmp_path / "m.om", external_weight=2)
    found = read_digests(tmp_path / "weight" / "digests.json")
    assert [(one.file, one.length) for one in found] == [("m_weight_combined", 9)]


@pytest.mark.parametrize("name", ["meta.json", "digests.json"])
def test_a_list_that_takes_much_memory_is_not_read(tmp_path: Path, name: str) -> None:
    """This one would take 28 times its size."""
    text = b'{"a": [' + b"[]," * (14 << 20) + b"[]]}"
    (tmp_path / "weight").mkdir()
    (tmp_path / "weight" / name).write_bytes(text)
    with bounded_memory(len(text)):
        net(a=bytes(9)).write(tmp_path / "m.om", external_weight=2)
    check_file((tmp_path / "m.om").read_bytes(), tmp_path / "weight")
    assert len((tmp_path / "weight" / name).read_bytes()) < 1000


@pytest.mark.parametrize("left_bytes", [0, 600])
def test_what_is_listed_of_a_file_that_began_anew_is_dropped(tmp_path: Path, left_bytes: int) -> None:
    """A combined file that is gone, or was cut: no list may say that it has more than it has."""
    data = {name: bytes([number]) * 600 for number, name in enumerate("abcd")}
    net(**data).write(tmp_path / "m.om", external_weight=2)
    combined = tmp_path / "weight" / "m_weight_combined"
    if left_bytes:
        os.truncate(combined, left_bytes)
    else:
        combined.unlink()
    net(b=data["b"]).write(tmp_path / "m.om", external_weight=2)
    kept = ["a", "b"] if left_bytes else ["b"]
    offsets = dict(zip(kept, (0, 1024), strict=False))
    meta = json.loads((tmp_path / "weight" / "meta.json").read_bytes())
    assert meta["hash_to_weight_file"].keys() == {hashlib.sha256(data[name]).hexdigest() for name in kept}
    assert sorted(meta["hash_to_weight_offset"].values()) == sorted(offsets.values())
    found = [(one.offset, one.digest) for one in read_digests(tmp_path / "weight" / "digests.json")]
    assert found == [(offsets[name], xxhash.xxh3_128_hexdigest(data[name])) for name in kept]


@pytest.mark.parametrize("offset", [0, 512])
def test_a_list_that_lets_pieces_overlap(tmp_path: Path, offset: int) -> None:
    """Both have their bytes where it says; each gets a place, and a digest, of its own."""
    net(a=b"a" * 516, b=b"aaaa").write(tmp_path / "m.om", external_weight=2)
    meta = tmp_path / "weight" / "meta.json"
    lists = json.loads(meta.read_bytes())
    lists["hash_to_weight_offset"][hashlib.sha256(b"aaaa").hexdigest()] = offset
    meta.write_text(json.dumps(lists))
    net(a=b"a" * 516, b=b"aaaa").write(tmp_path / "m.om", external_weight=2)
    found = read_digests(tmp_path / "weight" / "digests.json")
    assert [(one.offset, one.length) for one in found] == [(0, 516), (1024, 4), (1536, 4)]
    check_file((tmp_path / "m.om").read_bytes(), tmp_path / "weight")
