"""The commands as a person types them, each in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gevar.om import OmBuilder
from gevar.types import DataType, Format, TensorDesc
from tests.helpers.models import small_model
from tests.helpers.shared import REPOSITORY


def gevar(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from gevar.cli.main import main; main()", *map(str, words)]
    env = {**os.environ, "GEVAR_ACL": "host", **environment}
    return subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, np.ndarray]]:
    path = tmp_path_factory.mktemp("model") / "small.om"
    return path, small_model(path)


def refused(done: subprocess.CompletedProcess[str], code: int, *texts: str) -> None:
    """Expect one clear line on stderr, this exit code, and no traceback."""
    assert done.returncode == code, done
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("gevar: ")
    assert all(text in lines[0] for text in texts), lines[0]


def test_info() -> None:
    done = gevar("info")
    assert (done.returncode, done.stderr) == (0, "")
    assert "host runtime" in done.stdout
    assert "2 MiB pages" in done.stdout
    facts = json.loads(gevar("info", "--json", HOSTACL_DEVICES="3", HOSTACL_PAGES_1G="0").stdout)
    assert facts["backend"] == "host"
    assert len(facts["devices"]) == 3
    assert facts["devices"][2]["memory"]["1 GiB pages"] == [0, 0]


def test_inspect(model: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, values = model
    done = gevar("inspect", path)
    assert (done.returncode, done.stderr) == (0, "")
    for text in ("dialect   G3", "WEIGHTS_DATA", "kernel", "scale_again", "0x2000000000", "DT_BF16"):
        assert text in done.stdout
    facts = json.loads(gevar("inspect", path, "--json").stdout)
    (found,) = facts["models"]
    consts = {row["name"]: row for row in found["consts"]["list"]}
    assert consts["kernel"]["size"] == values["kernel"].nbytes
    variables = {row["name"]: row for row in found["variables"]}
    assert variables["start"]["shape"] == [3, 5]
    assert variables["scale"]["logic_addr"] == variables["scale_again"]["logic_addr"]


def test_load(model: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, values = model
    done = gevar("load", path, "--verify")
    assert (done.returncode, done.stderr) == (0, "")
    for text in ("backend  host", "GB/s", "kernel", "Constant", "verified 5 of 5 tensors equal"):
        assert text in done.stdout
    facts = json.loads(gevar("load", path, path, "--verify", "--json").stdout)
    assert [file["file"] for file in facts["files"]] == [str(path)] * 2
    tensors = {row["name"]: row for row in facts["files"][0]["tensors"]}
    assert tensors["kernel"]["size_bytes"] == values["kernel"].nbytes
    assert tensors["start"]["logic_addr"] >= 128 << 30
    assert tensors["start"]["dev_addr"] >= 16 << 40
    assert facts["files"][1]["verify"]["differences"] == []


def test_a_narrow_terminal_folds_no_cell(model: tuple[Path, dict[str, np.ndarray]]) -> None:
    narrow = gevar("load", model[0], COLUMNS="40")
    assert any("scale_again" in line and "DT_INT32" in line for line in narrow.stdout.splitlines())


@pytest.mark.parametrize("command", ["inspect", "load"])
def test_bad_files(command: str, tmp_path: Path, model: tuple[Path, dict[str, np.ndarray]]) -> None:
    text = tmp_path / "text.om"
    text.write_text("a text, not a model " * 100)
    cut = tmp_path / "cut.om"
    cut.write_bytes(model[0].read_bytes()[:-1])
    refused(gevar(command, tmp_path / "missing.om"), 1, "missing.om", "No such file")
    refused(gevar(command, tmp_path), 1, str(tmp_path), "not a regular file")
    refused(gevar(command, text), 1, str(text), "magic")
    refused(gevar(command, cut), 1, str(cut), "offset")


def test_bad_names_do_not_upset_the_message(tmp_path: Path) -> None:
    done = gevar("inspect", tmp_path / "two\nlines[red].om")
    refused(done, 1, "[red]")


def test_bad_devices_and_backends(model: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, _ = model
    refused(gevar("load", path, "--device", "9"), 3, "107001", "9")
    refused(gevar("load", path, "--device", "-1"), 3, "107001", "-1")
    refused(gevar("load", path, "--backend", "npu"), 3, "npu", "tried")
    refused(gevar("info", "--backend", "gpu"), 3, "gpu")
    refused(gevar("info", "--backend", "/nowhere/lib.so"), 3, "/nowhere/lib.so")
    refused(gevar("info", GEVAR_ACL="no-such-backend"), 3, "no-such-backend")


def test_out_of_memory_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "large.om"
    small_model(path, kernel_bytes=5 << 20)
    done = gevar("load", path, HOSTACL_PAGES_4K=str(1 << 20), HOSTACL_PAGES_2M=str(2 << 20), HOSTACL_PAGES_1G="0")
    refused(done, 3, "207001", "3145728")


def test_wrong_usage() -> None:
    for words in (["load"], ["nothing"], ["inspect"], ["load", "a.om", "--device", "x"]):
        done = gevar(*words)
        refused(done, 2, "--help")


def test_a_traceback_only_with_debug(tmp_path: Path) -> None:
    done = gevar("inspect", tmp_path / "missing.om", "--debug")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_a_reader_that_stops_is_no_error(model: tuple[Path, dict[str, np.ndarray]]) -> None:
    command = f"{sys.executable} -c 'from gevar.cli.main import main; main()' inspect {model[0]} --json | head -n 1"
    done = subprocess.run(
        ["bash", "-c", command], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("{\n", "")


def test_origin_and_padding_are_told_of_storage_formats(tmp_path: Path) -> None:
    builder = OmBuilder("net")
    stored = TensorDesc(
        DataType.DT_FLOAT16,
        Format.FORMAT_NC1HWC0,
        (1, 1, 2, 2, 16),
        origin_format=Format.FORMAT_NCHW,
        origin_shape=(1, 3, 2, 2),
    )
    builder.output(builder.variable("v", stored))
    builder.write(tmp_path / "net.om")
    for command in ("load", "inspect"):
        lines = gevar(command, tmp_path / "net.om").stdout.splitlines()
        assert any("origin" in line and "padding" in line for line in lines)
        assert any(" v " in line and "NCHW 1x3x2x2" in line and line.rstrip().endswith(" 104") for line in lines)
    (row,) = json.loads(gevar("load", tmp_path / "net.om", "--json").stdout)["files"][0]["tensors"]
    assert (row["origin_format"], row["origin_shape"], row["padding_bytes"]) == ("NCHW", [1, 3, 2, 2], 104)
    small_model(tmp_path / "plain.om")
    assert "origin " not in gevar("inspect", tmp_path / "plain.om").stdout
