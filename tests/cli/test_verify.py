"""`gevar verify`, and the commands that take weights from any file."""

import json
from pathlib import Path

import numpy as np
import pytest

from gevar.om import OmBuilder
from gevar.om.named_tensor import NamedTensor, write_tensors
from gevar.types import DataType
from tests.cli.test_commands import refused
from tests.cli.test_weight_commands import gevar

ARRAYS = {"kernel": np.arange(12, dtype=np.float32).reshape(3, 4), "bias": np.arange(300, dtype=np.float32)}


@pytest.fixture
def every(tmp_path: Path) -> list[Path]:
    """The same tensors in a file of each kind."""
    np.savez(tmp_path / "w.npz", **ARRAYS)
    tensors = [
        NamedTensor(name, DataType.DT_FLOAT, array.shape, memoryview(array.tobytes())) for name, array in ARRAYS.items()
    ]
    write_tensors(tmp_path / "w.safetensors", tensors)
    index = {"weight_map": dict.fromkeys(ARRAYS, "w.safetensors")}
    (tmp_path / "w.safetensors.index.json").write_text(json.dumps(index))
    for mode in (0, 1, 2):
        exported(tmp_path / f"w{mode}.om", mode)
    return [*sorted(tmp_path.glob("w*.om")), *tmp_path.glob("w.*")]


def exported(path: Path, mode: int) -> None:
    builder = OmBuilder("w")
    for name, array in ARRAYS.items():
        builder.const(name, array)
    builder.write(path, external_weight=mode)  # type: ignore[arg-type]


def test_every_kind_is_read_and_compared(every: list[Path], tmp_path: Path) -> None:
    assert len(every) == 6
    done = gevar("verify", *every)
    assert (done.returncode, done.stderr) == (0, "")
    assert "verified 12 of 12 sound" in done.stdout
    for file in every:
        done = gevar("diff", every[-1], file)
        assert (done.returncode, done.stdout) == (0, "equal\n")
        assert gevar("build", file, "-o", tmp_path / "out.om").returncode == 0
        assert gevar("extract", file, "-o", tmp_path / "out.npz").returncode == 0
        with np.load(tmp_path / "out.npz") as found:
            assert {name: array.tobytes() for name, array in found.items()} == {
                name: array.tobytes() for name, array in ARRAYS.items()
            }
    assert gevar("diff", tmp_path / "out.om", tmp_path / "w.npz").returncode == 0


def test_other_tensors_differ(every: list[Path], tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", kernel=ARRAYS["kernel"] + 1, more=np.zeros(3))
    done = gevar("diff", every[0], tmp_path / "other.npz")
    assert done.returncode == 1
    assert [line[:1] for line in done.stdout.splitlines()] == ["~", "-", "+", "3"]
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    assert gevar("diff", every[0], tmp_path / "bad.npz").returncode == 2
    assert gevar("diff", tmp_path / "bad.npz", tmp_path / "w.pt").returncode == 2


@pytest.mark.parametrize("mode", [1, 2])
def test_digests_find_damage(tmp_path: Path, mode: int) -> None:
    exported(tmp_path / "m.om", mode)
    side = tmp_path / "weight" / "digests.json"
    done = gevar("verify", tmp_path / "m.om", "--digests", side)
    assert (done.returncode, done.stdout.splitlines()[-1][:23]) == (0, "verified 4 of 4 sound, ")
    weights = sorted((tmp_path / "weight").glob("*weight_*"))
    done = gevar("verify", *weights, "--digests", side, "--json")
    assert json.loads(done.stdout) == {"checked": 2, "size_bytes": 1248, "damaged": []}
    with weights[0].open("r+b") as file:
        file.seek(8)
        file.write(b"\xff")
    done = gevar("verify", tmp_path / "m.om", "--digests", side)
    assert done.returncode == 1
    assert "is listed" in done.stdout
    assert "verified 3 of 4 sound" in done.stdout
    weights[0].unlink()
    done = gevar("verify", weights[0], "--digests", side, "--json")
    assert done.returncode == 1
    assert "cannot be opened" in json.loads(done.stdout)["damaged"][0]["reason"]


def test_digests_lead_nowhere(tmp_path: Path) -> None:
    folder = tmp_path / "weight"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    row = {"file": "link", "offset": 0, "length": 6, "digest": "00"}
    (folder / "digests.json").write_text(json.dumps({"xxh3_128": [row]}))
    done = gevar("verify", folder / "link", "--digests", folder / "digests.json")
    assert done.returncode == 1
    assert "is a symbolic link" in done.stdout
    (folder / "digests.json").write_text(json.dumps({"xxh3_128": [row | {"file": "../secret"}]}))
    refused(gevar("verify", folder / "link", "--digests", folder / "digests.json"), 1, "digests.json", "right form")


def test_lengths_are_checked_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"1234")
    row = {"file": "w", "offset": 2, "length": 2**62, "digest": "00"}
    (tmp_path / "digests.json").write_text(json.dumps({"xxh3_128": [row]}))
    done = gevar("verify", tmp_path / "w", "--digests", tmp_path / "digests.json")
    assert done.returncode == 1
    assert "do not lie inside the 4 B there are" in done.stdout


def test_damage_of_an_archive_is_a_finding(tmp_path: Path) -> None:
    bias = np.arange(500_000, dtype=np.float32)
    np.savez(tmp_path / "w.npz", kernel=ARRAYS["kernel"], bias=bias)
    data = bytearray((tmp_path / "w.npz").read_bytes())
    data[data.index(bias.tobytes()) + bias.nbytes - 40] ^= 1
    (tmp_path / "w.npz").write_bytes(data)
    done = gevar("verify", tmp_path / "w.npz")
    assert done.returncode == 1
    assert "bias" in done.stdout
    assert "verified 1 of 2 sound" in done.stdout
