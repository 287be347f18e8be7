"""`gevar verify`, and the commands that take weights from any file."""

import dataclasses
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
import xxhash

from gevar.om import OmBuilder
from gevar.om.named_tensor import NamedTensor, read_tensors, write_tensors
from gevar.om.weight_digests import RegionDigest, digests_text, read_digests
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


def listed(path: Path, *regions: tuple[int, int], name: str = "digests.json") -> Path:
    """Write a side file beside a file, with the digests of regions of it."""
    data = path.read_bytes()
    rows = [RegionDigest(path.name, at, size, xxhash.xxh3_128_hexdigest(data[at : at + size])) for at, size in regions]
    (path.parent / name).write_bytes(digests_text(rows))
    return path.parent / name


def damaged(*words: object) -> list[str]:
    """Return what `gevar verify` finds, by file and name."""
    done = gevar("verify", *words, "--json")
    assert done.stderr == ""
    found = json.loads(done.stdout)["damaged"]
    assert done.returncode == (1 if found else 0)
    assert found == [] or f"damaged  {found[0]['file']}" in gevar("verify", *words).stdout
    return [f"{Path(one['file']).name}: {one['name']}: {one['reason']}" for one in found]


@pytest.mark.parametrize("mode", [1, 2])
def test_external_weights_must_be_listed(tmp_path: Path, mode: int) -> None:
    """A list that has lost an entry, and the list of another model."""
    exported(tmp_path / "m.om", mode)
    side = tmp_path / "weight" / "digests.json"
    rows = read_digests(side)
    side.write_bytes(digests_text(rows[1:]))
    [finding] = damaged(tmp_path / "m.om", "--digests", side)
    assert re.fullmatch(rf"m\.om: (kernel|bias): {side} lists no digest for its {rows[0].length} B at .*again", finding)
    (tmp_path / "other").mkdir()
    exported(tmp_path / "other" / "m.om", mode)
    other = tmp_path / "other" / "weight" / "digests.json"
    assert [one.split(":")[1] for one in damaged(tmp_path / "m.om", "--digests", other)] == [" kernel", " bias"]
    assert damaged(tmp_path / "other" / "m.om", "--digests", other) == []
    assert damaged(tmp_path / "other" / "m.om", tmp_path / "m.om", "--digests", other) != []


def test_tensors_beside_the_list_must_be_listed(tmp_path: Path) -> None:
    """Regions may be cut otherwise than tensors; each byte must be in one. Files elsewhere are only read."""
    np.savez(tmp_path / "w.npz", **ARRAYS)
    gevar("extract", tmp_path / "w.npz", "-o", tmp_path / "w.safetensors")
    path = tmp_path / "w.safetensors"
    start = path.stat().st_size - 1248
    sizes = [tensor.data.nbytes for tensor in read_tensors(path)]
    for regions in (
        [(start, 1248)],
        [(0, start + 7), (start + 7, 1241)],
        [(start, sizes[0]), (start + sizes[0], sizes[1])],
    ):
        assert damaged(path, "--digests", listed(path, *regions)) == []
    for regions in ([(start, sizes[0])], [(0, 8)], [(start, 1000), (start + 1001, 247)]):
        [*findings] = damaged(path, "--digests", listed(path, *regions))
        assert findings
        assert all("lists no digest for its" in one for one in findings)
    done = gevar("verify", path, "--digests", listed(path, (start, sizes[0])), "--json")
    assert json.loads(done.stdout)["checked"] == 2, "a tensor that is a region is looked at once"
    assert any("cannot list it" in one for one in damaged(tmp_path / "w.npz", "--digests", tmp_path / "digests.json"))
    (tmp_path / "sub").mkdir()
    (tmp_path / "w.npz").rename(tmp_path / "sub" / "w.npz")
    assert damaged(tmp_path / "sub" / "w.npz", "--digests", listed(path, (0, 8))) == []


def test_a_list_of_another_hash_or_name(tmp_path: Path) -> None:
    exported(tmp_path / "m.om", 2)
    side = tmp_path / "weight" / "digests.json"
    rows = read_digests(side)
    for wrong in ("00" * 16, hashlib.sha256(b"").hexdigest(), "", "no hex"):
        side.write_bytes(digests_text([dataclasses.replace(rows[0], digest=wrong), rows[1]]))
        assert any(f"{wrong} is listed" in one for one in damaged(tmp_path / "m.om", "--digests", side))
    document = {"xxh3_128": [{**dataclasses.asdict(row), "digest": row.digest.upper()} for row in reversed(rows)]}
    side.write_text(json.dumps(document))
    assert damaged(tmp_path / "m.om", "--digests", side) == []
    side.rename(side.with_name("other name"))
    assert damaged(tmp_path / "m.om", "--digests", side.with_name("other name")) == []
    side.write_text(json.dumps({"sha256": document["xxh3_128"]}))
    refused(gevar("verify", tmp_path / "m.om", "--digests", side), 1, "digests.json", "xxh3_128")


def test_models_of_any_name(tmp_path: Path) -> None:
    """What is no file of tensors by its name is a model to every command."""
    exported(tmp_path / "model", 0)
    np.savez(tmp_path / "w.npz", **ARRAYS)
    assert "verified 2 of 2" in gevar("verify", tmp_path / "model").stdout
    assert gevar("diff", tmp_path / "model", tmp_path / "w.npz").stdout == "equal\n"
    for command in ("build", "extract"):
        assert (
            gevar(
                command, tmp_path / "model", "-o", tmp_path / f"out.{'om' if command == 'build' else 'npz'}"
            ).returncode
            == 0
        )
    (tmp_path / "w.pt").write_bytes(b"PK")
    for words in (("verify",), ("extract", "-o", tmp_path / "x.npz"), ("build", "-o", tmp_path / "x.om"), ("load",)):
        refused(gevar(words[0], tmp_path / "w.pt", *words[1:]), 1, "w.pt", "not a model")
    refused(gevar("verify", tmp_path / "w.pt"), 1, "files of tensors end in .safetensors")
