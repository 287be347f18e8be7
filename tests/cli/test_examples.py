"""Each example is short and does what its first line says."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.models import small_model
from tests.helpers.shared import REPOSITORY
from tests.helpers.weight_files import weight_file

EXAMPLES = sorted((REPOSITORY / "scripts" / "examples").glob("*.py"))


def run(script: str, *words: str | int | Path) -> str:
    command = [sys.executable, str(REPOSITORY / "scripts" / "examples" / script), *map(str, words)]
    environment = {**os.environ, "GEVAR_ACL": "host"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_what_it_does(path: Path) -> None:
    text = path.read_text()
    assert text.startswith('"""')
    assert len(text.splitlines()) < 40
    assert path.name in text.splitlines()[0], "the first line says how to run it"
    known = {"giant_pages", "load_a_model", "share_variables", "sleep_and_wake", "build_from_weights"}
    known |= {"inspect_a_model", "change_a_model", "compare_models", "train_two_graphs", "share_weights"}
    assert path.stem in known, "an example needs a test below"


def test_load_a_model(tmp_path: Path) -> None:
    build = [sys.executable, str(REPOSITORY / "scripts" / "build_model.py"), str(tmp_path / "model.om")]
    subprocess.run(build, check=True, timeout=60)
    output = run("load_a_model.py", tmp_path / "model.om")
    assert "ge_global_step is now [1]" in output
    assert "layer_0/kernel" in output


def test_share_variables(tmp_path: Path) -> None:
    small_model(tmp_path / "one.om")
    small_model(tmp_path / "two.om", seed=2)
    output = run("share_variables.py", tmp_path / "one.om", tmp_path / "two.om")
    assert output.splitlines() == ["start is shared", "empty is shared"]


def test_share_weights(tmp_path: Path) -> None:
    one = weight_file(tmp_path, "safetensors", {"a": np.arange(5), "b": np.arange(6)})
    two = weight_file(tmp_path, "npz", {"c": np.arange(5), "d": np.arange(7)})
    assert run("share_weights.py", one, two).splitlines() == [
        "c shared: equal weights",
        "d has a block of its own",
        "40 B saved",
    ]


def test_giant_pages() -> None:
    """The default device of the host runtime has four pages of 1 GiB."""
    lines = run("giant_pages.py", 700, 3000, 700, 100_000).splitlines()
    assert [line.split(": ")[1] for line in lines[:3]] == [
        "1 pages of 1 GiB and 0 of 2 MiB so far",
        "4 pages of 1 GiB and 0 of 2 MiB so far",
        "4 pages of 1 GiB and 152 of 2 MiB so far",
    ]
    assert lines[3].startswith("out of memory on device 0: 97.66 GiB")
    assert any("held by 'block 1'" in line for line in lines)


def test_sleep_and_wake() -> None:
    assert run("sleep_and_wake.py").splitlines() == [
        "2097152 bytes of physical memory are free",
        "the address is the same: True",
        "the values are the same: True",
    ]


def test_build_from_weights(tmp_path: Path) -> None:
    np.savez(tmp_path / "weights.npz", kernel=np.ones((3, 4), np.float32), bias=np.zeros(4, np.int8))
    lines = run("build_from_weights.py", tmp_path / "weights.npz", tmp_path / "model.om").splitlines()
    assert [line.split() for line in lines[:-1]] == [["kernel", "DT_FLOAT", "48"], ["bias", "DT_INT8", "4"]]
    assert lines[-1] == "2 of 2 tensors on the device are those of the file"
    assert (tmp_path / "weight" / "model_weight_combined").exists()


def test_inspect_a_model(tmp_path: Path) -> None:
    small_model(tmp_path / "small.om")
    output = run("inspect_a_model.py", tmp_path / "small.om")
    for text in ("dialect G3, 1 models", "'Variable': 2", "data_offset", "start                at 0x2000000600"):
        assert text in output


def test_change_and_compare_models(tmp_path: Path) -> None:
    one, two, same = (tmp_path / f"{name}.om" for name in ("one", "two", "same"))
    small_model(one)
    small_model(same)
    assert run("change_a_model.py", one, two) == "inserted a node before Node_Output\n"
    assert run("compare_models.py", one, same) == "equal\n"
    output = run("compare_models.py", one, two)
    assert "node added small_0/inserted" in output
    assert "inputs from ['mul:0'] to ['inserted:0']" in output
    assert output.endswith("2 changes\n")


def test_train_two_graphs(tmp_path: Path) -> None:
    for start in (1, 2):
        lines = run("train_two_graphs.py", tmp_path).splitlines()
        found = f"as in numpy: True found in the cache: {start == 2}"
        assert lines == [f"{step} {found}" for step in range(5)]
