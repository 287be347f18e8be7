"""Each example is short and does what its first line says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.models import small_model
from tests.helpers.shared import REPOSITORY

EXAMPLES = sorted((REPOSITORY / "scripts" / "examples").glob("*.py"))


def run(script: str, *words: str | Path) -> str:
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
    assert path.stem in {"load_a_model", "share_variables"}, "an example needs a test below"


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
