"""External weights: what nodes say of them, where files may lie, and what must be in them."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from gevar.errors import LoadError, VariableError
from gevar.om.regular_file import file_state
from gevar.status import FAILED, PARAM_INVALID
from gevar.types import DataType, Format, TensorDesc
from gevar.var import VarOp
from gevar.weights import FileConstantInfo, FileRegion, WeightDirectory, file_constant_info, value_bins


def node(size: int = 64, shape: tuple[int, ...] = (4,), **attrs: int | str) -> VarOp:
    desc = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, shape, size=size)
    return VarOp("w", "FileConstant", (desc,), (1 << 37,), None, attrs)


def info_of(ids: Mapping[str, str] | None = None, **attrs: int | str) -> FileConstantInfo:
    return file_constant_info(node(**attrs), ids or {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "weight").mkdir()
    (tmp_path / "weight" / "w.bin").write_bytes(bytes(range(100)))
    (tmp_path / "secret.bin").write_bytes(b"secret")
    return tmp_path


@pytest.fixture
def directory(folder: Path) -> WeightDirectory:
    return WeightDirectory(None, folder / "m.om")


# --- what a node says -------------------------------------------------------------------------------------------------


def test_location_comes_first_and_brings_offset_and_length() -> None:
    info = info_of(location="a/w.bin", offset=32, length=16, file_path="p", file_id="i")
    assert (info.named_by, info.file, info.base_name) == ("location", "a/w.bin", "w.bin")
    assert (info.offset, info.length, info.tensor_bytes, info.size_bytes) == (32, 16, 16, 64)


def test_a_path_has_neither_offset_nor_length() -> None:
    info = info_of(location="", offset=32, length=16, file_path="p/w.bin", file_id="i")
    assert (info.named_by, info.file, info.offset, info.length) == ("file_path", "p/w.bin", 0, 0)


def test_an_id_is_looked_up() -> None:
    info = info_of({"i": "/data/w.bin"}, file_id="i", offset=7)
    assert (info.named_by, info.file, info.offset) == ("file_id", "/data/w.bin", 0)


@pytest.mark.parametrize(
    ("attrs", "words"),
    [({}, "names no file"), ({"file_id": "x"}, "has no file for its file_id 'x'"), ({"file_id": "empty"}, "no file")],
)
def test_no_file(attrs: dict[str, str], words: str) -> None:
    with pytest.raises(VariableError, match=words) as caught:
        info_of({"i": "w.bin", "empty": ""}, **attrs)
    assert caught.value.status == FAILED


@pytest.mark.parametrize("attrs", [{"offset": -1}, {"length": -1}, {"offset": "0"}, {"offset": -(2**63)}])
def test_edge_31_negative_numbers_are_refused(attrs: dict[str, int]) -> None:
    with pytest.raises(VariableError, match="w") as caught:
        info_of(location="w.bin", **attrs)
    assert caught.value.status == PARAM_INVALID


def test_a_name_that_is_no_text() -> None:
    with pytest.raises(VariableError, match="location is 3"):
        info_of(location=3)


@pytest.mark.parametrize(
    ("size", "shape", "length", "alloc", "needed"),
    [
        (64, (4,), 0, 64, 16),
        (64, (4,), 40, 64, 40),
        (64, (4,), 100, 100, 100),
        (8, (4,), 0, 16, 8),
        (64, (-1,), 0, 64, 64),
    ],
)
def test_sizes(size: int, shape: tuple[int, ...], length: int, alloc: int, needed: int) -> None:
    info = info_of(size=size, shape=shape, location="w.bin", length=length)
    assert (info.alloc_bytes, info.needed_bytes) == (alloc, needed)


# --- what is read -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offset", "length", "size", "expected"),
    [
        (0, 16, 64, (0, 16)),
        (32, 0, 64, (32, 64)),  # the stored size, which the file has
        (60, 0, 64, (60, 40)),  # all that is left, and the tensor is in it
        (84, 0, 64, (84, 16)),
        (84, 0, 0, (84, 16)),  # without a stored size it is that of the tensor
    ],
)
def test_the_region(
    directory: WeightDirectory, folder: Path, offset: int, length: int, size: int, expected: tuple[int, int]
) -> None:
    info = info_of(location="w.bin", offset=offset, length=length, size=size)
    path = (folder / "weight" / "w.bin").resolve()
    assert info.region(directory.find(info)) == FileRegion(path, *expected, file_state(path.stat()))


@pytest.mark.parametrize(("offset", "length", "got"), [(85, 0, 15), (96, 16, 4), (1000, 1, 0), (2**62, 16, 0)])
def test_edge_32_a_file_must_have_all_of_a_weight(
    directory: WeightDirectory, offset: int, length: int, got: int
) -> None:
    info = info_of(location="w.bin", offset=offset, length=length)
    with pytest.raises(LoadError, match=r"w\.bin.*weight w passes the end, there are 100 B") as caught:
        info.region(directory.find(info))
    assert (caught.value.offset, caught.value.wanted, caught.value.got) == (offset, length or 16, got)


def test_a_length_beyond_the_output_is_refused(directory: WeightDirectory) -> None:
    info = info_of(location="w.bin", length=65)
    with pytest.raises(VariableError, match="length of 65 B is larger than its output of 64 B") as caught:
        info.region(directory.find(info))
    assert caught.value.status == PARAM_INVALID


@pytest.mark.parametrize(
    ("length", "size", "words"),
    [(15, 64, "length of 15 B at 8 of .*w.bin"), (0, 15, "output of 15 B at 8 of"), (15, 15, "length of 15 B at 8 of")],
)
def test_fewer_bytes_than_the_tensor_has_are_refused(
    directory: WeightDirectory, length: int, size: int, words: str
) -> None:
    """GE copies what is asked for; the end of the tensor is then what was in memory before."""
    info = info_of(location="w.bin", offset=8, length=length, size=size)
    with pytest.raises(VariableError, match=f"{words}.* is smaller than its tensor of 16 B") as caught:
        info.region(directory.find(info))
    assert caught.value.status == PARAM_INVALID


def test_a_tensor_without_bytes(directory: WeightDirectory) -> None:
    info = info_of(location="w.bin", offset=100, shape=(0, 4), size=0)
    assert (info.alloc_bytes, info.region(directory.find(info)).size_bytes) == (0, 0)


@pytest.mark.parametrize(
    ("size", "shape", "words"),
    [
        (-1, (4,), "stored size of its output is -1 B"),
        (64, (1 << 40, 1 << 40), "product"),
        (64, (1 << 62,), "more than"),
    ],
)
def test_sizes_that_cannot_be(size: int, shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(VariableError, match=words) as caught:
        info_of(location="w.bin", size=size, shape=shape)
    assert caught.value.status == PARAM_INVALID


# --- where files may lie ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("location", ["w.bin", "./w.bin", "/export/stage/w.bin", "a/b/w.bin"])
def test_the_directory_of_a_location_does_not_count(directory: WeightDirectory, folder: Path, location: str) -> None:
    file = directory.find(info_of(location=location))
    assert (file.path, file.size_bytes) == ((folder / "weight" / "w.bin").resolve(), 100)


@pytest.mark.parametrize("location", ["../../secret.bin", "../secret.bin", "a/../w.bin", "..", "w\0.bin", ".", "a/"])
def test_a_location_that_climbs_out_is_refused_before_opening(directory: WeightDirectory, location: str) -> None:
    with pytest.raises(LoadError, match="weight w") as caught:
        directory.find(info_of(location=location))
    assert caught.value.status == FAILED
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("attr", ["location", "file_path"])
def test_a_link_that_leads_out_is_refused(directory: WeightDirectory, folder: Path, attr: str) -> None:
    outside = folder.parent / f"outside-{folder.name}"
    outside.write_bytes(b"secret")
    link = folder / "weight" / "link.bin"
    link.symlink_to(outside)
    with pytest.raises(LoadError, match="outside the directories"):
        directory.find(info_of(**{attr: str(link)}))


def test_a_link_that_stays_inside_is_followed(directory: WeightDirectory, folder: Path) -> None:
    (folder / "weight" / "link.bin").symlink_to("w.bin")
    assert directory.find(info_of(location="link.bin")).path == (folder / "weight" / "w.bin").resolve()


def test_a_missing_file_is_named_with_its_weight(directory: WeightDirectory, folder: Path) -> None:
    with pytest.raises(LoadError, match="the file of weight w cannot be opened") as caught:
        directory.find(info_of(location="none.bin"))
    assert str(folder / "weight" / "none.bin") in str(caught.value)
    assert caught.value.status == FAILED


def test_a_directory_is_no_file(directory: WeightDirectory, folder: Path) -> None:
    (folder / "weight" / "d").mkdir()
    with pytest.raises(LoadError, match="not a regular file"):
        directory.find(info_of(location="d"))


def test_a_given_directory_comes_in_place_of_the_model_s(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "w.bin").write_bytes(b"x")
    for model in (folder / "m.om", None):
        assert WeightDirectory(folder / "other", model).find(info_of(location="w.bin")).size_bytes == 1


def test_a_given_directory_must_be_there(folder: Path) -> None:
    for given in (folder / "none", folder / "secret.bin"):
        with pytest.raises(LoadError, match="weight directory is not there"):
            WeightDirectory(given, None)


def test_a_model_from_memory_needs_a_directory() -> None:
    with pytest.raises(LoadError, match="give weight_dir"):
        WeightDirectory(None, None).find(info_of(location="/etc/passwd"))


def test_the_model_s_real_directory_counts(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (folder / "m.om").write_bytes(b"")
    (elsewhere / "m.om").symlink_to(folder / "m.om")
    assert WeightDirectory(None, elsewhere / "m.om").find(info_of(location="w.bin")).size_bytes == 100


def test_a_path_counts_from_the_working_directory(
    directory: WeightDirectory, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    work = tmp_path_factory.mktemp("work")
    (work / "p.bin").write_bytes(b"abc")
    monkeypatch.chdir(work)
    assert directory.find(info_of(file_path="p.bin")).size_bytes == 3
    assert directory.find(info_of(file_path=str(folder / "weight" / "w.bin"))).size_bytes == 100
    with pytest.raises(LoadError, match="leads out"):
        directory.find(info_of(file_path="../p.bin"))
    with pytest.raises(LoadError, match="outside the directories"):
        directory.find(info_of(file_path=os.fspath(Path("/etc/passwd"))))


def test_a_file_of_the_option_may_lie_anywhere(
    directory: WeightDirectory, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("far") / "f.bin"
    file.write_bytes(b"abcd")
    assert directory.find(info_of({"i": str(file)}, file_id="i")).size_bytes == 4


def test_a_file_that_was_changed_is_another_one(directory: WeightDirectory, folder: Path) -> None:
    info = info_of(location="w.bin")
    before = directory.find(info)
    assert directory.find(info) is before
    file = folder / "weight" / "w.bin"
    file.write_bytes(bytes(100))
    os.utime(file, ns=(1, 1))
    assert directory.find(info) is before  # each file is looked at once
    assert WeightDirectory(None, folder / "m.om").find(info) != before


# --- the option -------------------------------------------------------------------------------------------------------


def test_every_list_of_the_option_is_read_and_the_first_id_counts() -> None:
    text = (
        '{"value_bins": [{"value_bin_id": "a", "value_bin_file": "1"}, {"value_bin_id": "a", "value_bin_file": "2"}],'
        ' "more": [{"value_bin_id": "b", "value_bin_file": "3", "else": 4}, {}]}'
    )
    assert value_bins(text) == {"a": "1", "b": "3", "": ""}
    assert value_bins("") == {}


@pytest.mark.parametrize(
    "text", ["{", "[]", '"a"', '{"a": 1}', '{"a": [1]}', '{"a": [{"value_bin_id": 1}]}', "[" * 100_000]
)
def test_edge_31_the_option_must_have_its_shape(text: str) -> None:
    with pytest.raises(ValueError, match=r"ge\.exec\.value_bins"):
        value_bins(text)
