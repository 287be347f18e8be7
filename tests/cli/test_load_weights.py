"""`gevar load` of files of tensors: the table, sharing, digests, and the bar on a terminal."""

import io
import json
import re
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from gevar.cli import load as load_module
from gevar.om.weight_digests import read_digests
from tests.cli.test_commands import refused
from tests.cli.test_weight_commands import gevar
from tests.helpers.weight_files import ARRAYS, KINDS, weight_file

HOST = ("--backend", "host")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_loaded_and_verified(tmp_path: Path, kind: str) -> None:
    if kind in ("onnx", "external"):
        pytest.importorskip("onnx")
    path = weight_file(tmp_path, kind)
    done = gevar("load", path, "--verify", *HOST)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{'model' if kind[:2] == 'om' else 'weights':<8} {path}" in done.stdout
    assert "verified 4 of 4 tensors equal" in done.stdout
    assert "DT_FLOAT16" in done.stdout
    facts = json.loads(gevar("load", path, "--json", *HOST).stdout)
    [file] = facts["files"]
    shapes = {re.sub(r"_[0-9a-f]{64}", "", row["name"]): tuple(row["shape"]) for row in file["tensors"]}
    assert shapes == {name: array.shape for name, array in ARRAYS.items()}
    assert file["size_bytes"] == sum(array.nbytes for array in ARRAYS.values())
    assert file["upload"]["gb_per_s"] > 0


def test_one_array_has_its_row(tmp_path: Path) -> None:
    np.save(tmp_path / "scale.npy", ARRAYS["kernel"])
    done = gevar("load", tmp_path / "scale.npy", *HOST)
    row = re.search(r"^ scale +FileConstant +DT_FLOAT +ND +3x4 +- +0x[0-9a-f]+ +48 *$", done.stdout, re.MULTILINE)
    assert row, done.stdout


def test_equal_weights_are_shared_on_request(tmp_path: Path) -> None:
    files = [weight_file(tmp_path / kind, kind) for kind in ("safetensors", "npz")]
    done = gevar("load", *files, "--share-equal", "--verify", *HOST)
    assert done.returncode == 0
    total, tied = sum(array.nbytes for array in ARRAYS.values()), ARRAYS["tied"].nbytes
    assert f"saved    {tied} B, these weights were there already" in done.stdout
    assert done.stdout.count("shared: equal weights") == 5
    facts = json.loads(gevar("load", *files, "--share-equal", "--json", *HOST).stdout)
    assert [file["saved_bytes"] for file in facts["files"]] == [tied, total]
    assert [file["device_bytes"] for file in facts["files"]] == [total - tied, 0]
    facts = json.loads(gevar("load", *files, "--json", *HOST).stdout)
    assert [file["saved_bytes"] for file in facts["files"]] == [0, 0]


def test_a_file_twice_in_one_session_is_read_once(tmp_path: Path) -> None:
    path = weight_file(tmp_path, "safetensors")
    facts = json.loads(gevar("load", path, path, "--one-session", "--json", *HOST).stdout)
    assert [file["upload"]["reads"] for file in facts["files"]] == [1, 0]
    assert {row["sharing"] for row in facts["files"][1]["tensors"] if row["size_bytes"]} == {"shared: same file slice"}


def test_digests_are_compared(tmp_path: Path) -> None:
    path = weight_file(tmp_path, "om1")
    done = gevar("load", path, "--digests", *HOST)
    assert done.returncode == 0
    assert "checked  3 digests" in done.stdout
    place = read_digests(tmp_path / "weight" / "digests.json")[0]
    with (tmp_path / "weight" / place.file).open("r+b") as file:
        file.write(b"\xff\xfe")
    refused(gevar("load", path, "--digests", *HOST), 1, place.file, place.digest, "the bytes are damaged")


def test_what_cannot_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "w.npz").write_bytes(b"no archive")
    refused(gevar("load", tmp_path / "w.npz", *HOST), 1, "w.npz", "zip")
    refused(gevar("load", weight_file(tmp_path, "safetensors"), "--digests", *HOST), 1, "digests.json", "export")


def test_onnx_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "w.onnx").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "onnx", None)
    done = gevar("load", tmp_path / "w.onnx", *HOST)
    assert (done.returncode, done.stderr) == (2, "gevar: reading ONNX needs the package onnx; install gevar[models]\n")


class Terminal(io.StringIO):
    """Standard error as a person has it."""

    def isatty(self) -> bool:
        return True


def test_a_bar_with_speed_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with load_module._progress("weights\x1b.npz") as on_progress:
        assert on_progress is not None
        for done in range(4):
            on_progress(done << 30, 8 << 30)
    seen = terminal.getvalue()
    assert "weights\\x1b.npz" in seen
    assert "3.0/8.0 GiB" in seen
    assert re.search(r"\d [kMGTPEZY]?B/s", seen)
    assert re.search(r"\d:\d\d:\d\d", seen)


@pytest.mark.parametrize("kind", ["safetensors", "npz", "om2"])
def test_the_bar_tells_of_every_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    path = weight_file(tmp_path, kind)
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(load_module, "_progress", lambda _: nullcontext(lambda *step: told.append(step)))
    assert gevar("load", path, *HOST).returncode == 0
    assert told[-1][0] == told[-1][1] > 0


def test_without_a_terminal_nothing_but_the_table_is_printed(tmp_path: Path) -> None:
    path = weight_file(tmp_path, "packed")
    done = gevar("load", path, *HOST)
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    json.loads(gevar("load", path, "--json", *HOST).stdout)


@pytest.mark.parametrize("kind", ["om1", "om2"])
def test_files_of_external_weights_by_themselves(tmp_path: Path, kind: str) -> None:
    weight_file(tmp_path, kind)
    files = sorted((tmp_path / "weight").glob("*weight_*"))
    done = gevar("load", *files, "--verify", "--digests", *HOST)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("FileConstant") == done.stdout.count("DT_UINT8") == 3
    assert "verified 3 of 3 sound" in gevar("verify", *files).stdout
    assert gevar("diff", files[0], files[0]).stdout == "equal\n"
    assert gevar("build", files[0], "-o", tmp_path / "out.om").returncode == 0
    with files[0].open("r+b") as file:
        file.write(b"\xff\xfe")
    done = gevar("verify", files[0])
    assert done.returncode == 1
    assert "it is damaged" in done.stdout
