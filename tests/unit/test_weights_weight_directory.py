"""Where files of weights may lie: links of every kind, the folder itself, names that two files have."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gevar.errors import LoadError
from gevar.om.regular_file import file_state, open_inside
from gevar.status import FAILED
from gevar.types import DataType, Format, TensorDesc
from gevar.var import VarOp
from gevar.weights import FileConstantInfo, WeightDirectory, file_constant_info, weight_directory


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = tmp_path / "model"
    (model / "weight" / "sub").mkdir(parents=True)
    (model / "weight" / "w.bin").write_bytes(bytes(64))
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "w.bin").write_bytes(b"secret")
    return model


def info(name: str = "w", ids: dict[str, str] | None = None, /, **attrs: str) -> FileConstantInfo:
    desc = TensorDesc(DataType.DT_FLOAT, Format.FORMAT_ND, (4,), size=64)
    return file_constant_info(VarOp(name, "FileConstant", (desc,), (1 << 37,), None, attrs), ids or {})


def refused(directory: WeightDirectory, one: FileConstantInfo, words: str) -> None:
    with pytest.raises(LoadError, match=words) as caught:
        directory.find(one)
    assert caught.value.status == FAILED
    assert one.name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_told_is_of_the_file(folder: Path) -> None:
    found = WeightDirectory(None, folder / "m.om").find(info(location="w.bin"))
    assert found.path == folder / "weight" / "w.bin"
    assert found.state == file_state((folder / "weight" / "w.bin").stat())
    assert found.size_bytes == 64


def test_files_are_looked_at_anew_after_forget(folder: Path) -> None:
    directory = WeightDirectory(None, folder / "m.om")
    before = directory.find(info(location="a/w.bin"))
    (folder / "weight" / "w.bin").write_bytes(bytes(65))
    assert directory.find(info(location="a/w.bin")) is before
    directory.forget()
    assert directory.find(info(location="b/w.bin")).size_bytes == 65


# --- the folder beside the model --------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["secret", "model/other"])
def test_the_folder_beside_the_model_may_not_lead_out(folder: Path, target: str) -> None:
    """A model that somebody packed with a link for its folder reads nothing elsewhere."""
    (folder / "weight").rename(folder / "other")
    (folder / "weight").symlink_to(folder.parent / target)
    directory = WeightDirectory(None, folder / "m.om")
    if target == "secret":
        refused(directory, info(location="w.bin"), "outside the directories of the weights")
        given = WeightDirectory(folder / "weight", folder / "m.om")
        assert given.find(info(location="w.bin")).path == folder.parent / "secret" / "w.bin"
    else:
        assert directory.find(info(location="w.bin")).path == folder / "other" / "w.bin"


def test_a_folder_that_becomes_a_link_after_the_directory_was_given(folder: Path) -> None:
    directory = WeightDirectory(folder / "weight", None)
    (folder / "weight").rename(folder / "moved")
    (folder / "weight").symlink_to(folder.parent / "secret")
    refused(directory, info(location="w.bin"), "outside the directories")


def test_a_folder_that_becomes_a_link_while_it_is_looked_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The swap comes after the path was followed and found inside."""
    real_open = open_inside

    def swap_then_open(root: Path, path: Path) -> int:
        (folder / "weight").rename(folder / "moved")
        (folder / "weight").symlink_to(folder.parent / "secret")
        return real_open(root, path)

    for directory in (WeightDirectory(None, folder / "m.om"), WeightDirectory(folder / "weight", None)):
        with monkeypatch.context() as patch:
            patch.setattr(weight_directory, "open_inside", swap_then_open)
            refused(directory, info(location="w.bin"), "cannot be opened: Not a directory")
        (folder / "weight").unlink()
        (folder / "moved").rename(folder / "weight")


@pytest.mark.parametrize("link", [os.symlink, os.link, lambda _, path: os.mkfifo(path)])
def test_a_file_that_is_swapped_while_it_is_looked_at(
    folder: Path, link: Callable[[Path, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    real_open = open_inside

    def swap_then_open(root: Path, path: Path) -> int:
        path.unlink()
        link(folder.parent / "secret" / "w.bin", path)
        return real_open(root, path)

    monkeypatch.setattr(weight_directory, "open_inside", swap_then_open)
    refused(WeightDirectory(None, folder / "m.om"), info(location="w.bin"), "symbolic link|hard links|not a regular")


# --- links ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attr", ["location", "file_path"])
def test_hard_links(folder: Path, attr: str) -> None:
    """Names in the folder are no way out, one elsewhere is; an id is the caller's own word."""
    path = folder / "weight" / "w.bin"
    (folder / "weight" / "twin").hardlink_to(path)
    directory = WeightDirectory(None, folder / "m.om")
    assert directory.find(info(**{attr: str(path)})).size_bytes == 64
    (folder / "weight" / "link.bin").hardlink_to(folder.parent / "secret" / "w.bin")
    one = info(**{attr: str(folder / "weight" / "link.bin")})
    refused(directory, one, "has 1 names elsewhere .hard links., which may lead out; copy the file")
    assert directory.find(info("w", {"i": one.file}, file_id="i")).size_bytes == 6


def test_a_folder_in_the_middle_of_a_path_may_not_lead_out(folder: Path) -> None:
    (folder / "way").symlink_to(folder.parent / "secret")
    directory = WeightDirectory(None, folder / "m.om")
    refused(directory, info(file_path=str(folder / "way" / "w.bin")), "outside the directories")
    (folder / "inner").symlink_to(folder / "weight" / "sub")
    (folder / "weight" / "sub" / "v.bin").write_bytes(bytes(16))
    found = directory.find(info(file_path=str(folder / "inner" / "v.bin")))
    assert found.path == folder / "weight" / "sub" / "v.bin"


def test_links_in_a_circle(folder: Path) -> None:
    (folder / "weight" / "a").symlink_to("b")
    (folder / "weight" / "b").symlink_to("a")
    refused(WeightDirectory(None, folder / "m.om"), info(location="a"), "symbolic link")


@pytest.mark.parametrize("attr", ["location", "file_path"])
def test_what_is_no_file_is_refused_at_once(folder: Path, attr: str) -> None:
    os.mkfifo(folder / "weight" / "pipe")
    directory = WeightDirectory(None, folder / "m.om")
    refused(directory, info(**{attr: str(folder / "weight" / "pipe")}), "not a regular file")
    refused(directory, info("w", {"i": str(folder / "weight" / "pipe")}, file_id="i"), "not a regular file")
    refused(directory, info("w", {"i": "/dev/null"}, file_id="i"), "not a regular file")
    refused(directory, info(**{attr: str(folder / "weight" / "sub")}), "not a regular file")


def test_the_root_of_the_file_system_is_no_directory_of_weights(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service often works there, or has its model there, and every file of the machine lies in it."""
    monkeypatch.chdir("/")
    outside, inside = str(folder.parent / "secret" / "w.bin"), str(folder / "weight" / "w.bin")
    for model in (folder / "m.om", Path("/m.om")):
        for path in (outside, outside.removeprefix("/")):
            refused(WeightDirectory(None, model), info(file_path=path), "outside the directories of the weights")
    assert WeightDirectory(None, folder / "m.om").find(info(file_path=inside)).size_bytes == 64
    at_root = WeightDirectory(None, Path("/m.om"))
    assert at_root.path == Path("/weight")
    refused(at_root, info(location="no such file"), "cannot be opened: No such file")


@pytest.mark.parametrize("given", ["", "none", "a\0b", "a\ud800", "x" * 300, "/".join(["x" * 200] * 30)])
def test_a_directory_that_is_given_and_is_none(folder: Path, given: str) -> None:
    with pytest.raises(LoadError, match="the weight directory is not there") as caught:
        WeightDirectory(given, folder / "m.om")
    assert caught.value.status == FAILED


# --- one name for two files -------------------------------------------------------------------------------------------


def test_two_folders_with_a_file_of_one_name(folder: Path) -> None:
    directory = WeightDirectory(None, folder / "m.om")
    for location in ("w.bin", "./w.bin", "stage/w.bin", "stage/./w.bin", "stage//w.bin"):
        directory.find(info(location=location))
    for location in ("other/w.bin", "/stage/w.bin", "stage/deep/w.bin"):
        refused(directory, info("second", location=location), "has the name of one in stage")
    directory.find(info(file_path=str(folder / "weight" / "w.bin")))


@pytest.mark.parametrize("file", ["", "w\0.bin", "a" * 300, "w" + "/x" * 3000, "ü\udcff"])
def test_names_that_no_file_has(folder: Path, file: str) -> None:
    one = FileConstantInfo("w", "location", file, 0, 0, 64, 16)
    refused(WeightDirectory(None, folder / "m.om"), one, "weight w")


@pytest.mark.parametrize(
    ("file", "expected"),
    [("w", ""), ("./w", ""), ("a/w", "a"), ("a//b/./w", "a/b"), ("/w", "/"), ("/a/w", "/a"), ("a/", "a")],
)
def test_the_folder_of_a_name(file: str, expected: str) -> None:
    assert FileConstantInfo("w", "location", file, 0, 0, 64, 16).folder == expected
