"""`gevar relocate` as a person types it."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.test_commands import refused
from tests.cli.test_weight_commands import gevar, same


@pytest.fixture
def model(tmp_path: Path) -> Path:
    arrays = {"kernel": np.arange(600, dtype=np.float32), "bias": np.arange(7, dtype=np.float16)}
    np.savez(tmp_path / "w.npz", **arrays)
    (tmp_path / "new").mkdir()
    assert gevar("build", tmp_path / "w.npz", "-o", tmp_path / "m.om", "--external-weight", "2").returncode == 0
    return tmp_path / "m.om"


def weights(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as found:
        return dict(found)


def test_files_go_along(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "n.om"
    done = gevar("relocate", model, "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 external weights in files of 3.00 KiB (3072 B)" in done.stdout
    assert gevar("extract", out, "-o", tmp_path / "back.npz").returncode == 0
    same(tmp_path / "back.npz", weights(tmp_path / "w.npz"))
    assert gevar("verify", out, "--digests", out.parent / "weight" / "digests.json").returncode == 0
    assert gevar("diff", model, out).returncode == 0


@pytest.mark.parametrize("kind", ["const", "constant"])
def test_bytes_go_inside(model: Path, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "new" / "n.om"
    done = gevar("relocate", model, "-o", out, "--as", kind, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout) == {
        "file": str(model),
        "output": str(out),
        "weights": 2,
        "files": [],
        "size_bytes": 0,
    }
    for path in (tmp_path / "weight").iterdir():
        path.unlink()
    with_hashes = gevar("extract", out, "-o", tmp_path / "back.npz")
    assert with_hashes.returncode == 0
    found = {name.partition("_")[0]: array for name, array in weights(tmp_path / "back.npz").items()}
    assert {name: array.tobytes() for name, array in found.items()} == {
        name: array.tobytes() for name, array in weights(tmp_path / "w.npz").items()
    }


def test_folders(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "n.om"
    (tmp_path / "weight").rename(tmp_path / "moved")
    refused(gevar("relocate", model, "-o", out), 1, "weight", "No such file")
    done = gevar(
        "relocate", model, "-o", out, "--weight-dir", tmp_path / "moved", "--to-dir", tmp_path / "far", "--json"
    )
    assert json.loads(done.stdout)["files"] == [str(tmp_path / "far" / "m_weight_combined")]
    done = gevar("relocate", model, "-o", out, "--as", "const", "--to-dir", tmp_path)
    assert done.returncode == 2
    assert "--to-dir is for files" in done.stderr
