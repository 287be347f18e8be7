"""Wrong options, names and files: one line on stderr that says what is wrong, the exit code, and nothing written."""

import os
from pathlib import Path

import numpy as np
import pytest

from gevar.cli.bench import _half_a_page_off
from gevar.om import OmBuilder, write_om
from gevar.om.composed_model import bundle
from gevar.om.named_tensor import write_tensors
from tests.cli.test_weight_commands import gevar
from tests.helpers.models import small_model
from tests.helpers.weight_files import named


def _refused(words: tuple[str | Path, ...], code: int, *parts: str) -> str:
    """Run a command that is refused; return its line."""
    done = gevar(*words)
    assert done.returncode == code, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("gevar: ")
    for part in parts:
        assert part in line
    return line


@pytest.fixture
def bundle_file(tmp_path: Path) -> Path:
    models = []
    for name in ("one", "two"):
        builder = OmBuilder(name)
        builder.output(builder.const(f"{name}/kernel", np.full(300, len(models), np.float32)))
        models.append(builder.build())
    write_om(tmp_path / "bundle.om", bundle(models))
    return tmp_path / "bundle.om"


@pytest.mark.parametrize(
    ("words", "said", "command"),
    [
        (("nothing",), "No such command 'nothing'", "gevar"),
        (("--nothing",), "No such option '--nothing'", "gevar"),
        (("load",), "Missing argument 'FILE…'", "gevar load"),
        (("inspect", "a.om", "b.om"), "unexpected extra argument (b.om)", "gevar inspect"),
        (("load", "a.om", "--device", "x"), "'x' is not a valid integer", "gevar load"),
        (("build", "a.npz"), "Missing option '-o'", "gevar build"),
        (("build", "a.npz", "-o", "b.om", "--as", "weight"), "'weight' is not one of", "gevar build"),
        (("relocate", "a.om", "-o", "b.om", "--as", "const", "--to-dir", "d"), "leave one out", "gevar relocate"),
        (
            ("build", "a.npz", "-o", "b.om", "--as", "variable", "--external-weight", "1"),
            "leave one out",
            "gevar build",
        ),
        (("diff", "a.om"), "Missing argument 'B.om'", "gevar diff"),
        (("passes", "a.om", "--option", "=1"), "has no name", "gevar passes"),
        (("passes", "a.om", "--option", "one"), "no value", "gevar passes"),
        (("bench", "copy", "--size", "8E"), "'8E' is no size", "gevar bench copy"),
        (("bench", "copy", "--size", str(1 << 63)), "more than 9223372036854775807 B", "gevar bench copy"),
        (("inspect", "a.om", "--debug=1"), "does not take a value", "gevar"),
    ],
)
def test_wrong_usage_is_one_line(words: tuple[str, ...], said: str, command: str) -> None:
    assert _refused(words, 2, said).endswith(f"; {command} --help tells what it takes")


def test_a_missing_command_shows_the_help() -> None:
    for words in ((), ("bench",)):
        done = gevar(*words)
        assert done.returncode == 2
        assert done.stderr.startswith(" ".join(("Usage: gevar", *words)))
        assert "Commands:" in done.stderr


def test_what_the_system_refuses_is_said_without_its_number(tmp_path: Path) -> None:
    model = tmp_path / "model.om"
    small_model(model)
    line = _refused(("relocate", model, "-o", tmp_path / "none" / "model.om"), 1)
    assert line == f"gevar: {tmp_path}/none/model.om: the folder to write to is not there"
    assert "Errno" not in _refused(("passes", tmp_path / "none.om"), 1, f"{tmp_path}/none.om: No such file")


def test_diff_shows_the_traceback_on_request(tmp_path: Path) -> None:
    words = ("diff", tmp_path / "one.om", tmp_path / "two.om")
    _refused(words, 2, "one.om")
    done = gevar(*words, "--debug")
    assert done.returncode == 2
    assert "Traceback" in done.stderr


@pytest.mark.parametrize("name", ["w.npz", "w.safetensors", "other.NPY", "weight_" + "0" * 64])
def test_a_model_takes_no_name_of_weights(tmp_path: Path, name: str) -> None:
    write_tensors(tmp_path / "w.npz", named({"a": np.ones(3, np.float32)}))
    write_tensors(tmp_path / "w.safetensors", named({"a": np.ones(3, np.float32)}))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for command in (("build", tmp_path / "w.safetensors"), ("relocate", tmp_path / "m.om")):
        _refused((*command, "-o", tmp_path / name), 2, name, "let it end in .om")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_every_command_reads_bundles(bundle_file: Path, tmp_path: Path) -> None:
    assert "verified 2 of 2 sound" in gevar("verify", bundle_file, "--bundle").stdout
    assert "read     2 tensors" in gevar("build", bundle_file, "-o", tmp_path / "out.om", "--bundle").stdout
    gevar("extract", bundle_file, "--bundle", "-o", tmp_path / "out.npz")
    done = gevar("diff", bundle_file, tmp_path / "out.npz", "--bundle")
    assert (done.returncode, done.stdout) == (0, "equal\n")
    for command in ("verify", "load", "inspect"):
        _refused((command, bundle_file), 1, "a bundle of 2 models", "--bundle")


def test_a_wrong_log_is_named_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    (tmp_path / "bytes.log").write_bytes(b"\xff\n")
    (tmp_path / "text.log").write_text("no request\n")
    (tmp_path / "half.log").write_text('{"action": "allocate", "result": "ok", "size_bytes": 1, "addr": 1}\n[]\n')
    os.mkfifo(tmp_path / "pipe.log")
    with (tmp_path / "giant.log").open("wb") as file:
        file.truncate(8 << 40)
    reasons = {
        "empty": "no request",
        "bytes": "no log of requests",
        "text": "line 1 of the log",
        "half": "line 2 of the log",
        "pipe": "not a regular file",
        "giant": "takes 8796093022208 B, 268435456 B at most are read",
        "none": "No such file",
    }
    for name, reason in reasons.items():
        _refused(("bench", "alloc", "--replay", tmp_path / f"{name}.log"), 1, f"{name}.log", reason)


def test_memory_that_the_host_does_not_have() -> None:
    _refused(("bench", "copy", "--size", str(1 << 62)), 3, "allocate")


@pytest.mark.parametrize("size", [1, 4096, 65536, 65551])
def test_the_reference_of_copies_lies_half_a_page_off(size: int) -> None:
    source = np.ones(size, np.uint8)
    target = _half_a_page_off(source)
    assert target.size == size
    assert (target.ctypes.data - source.ctypes.data) % 4096 == 2048
