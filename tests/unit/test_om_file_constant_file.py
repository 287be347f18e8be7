"""Files of external weights by themselves: their tensors, and damage that is found when they are read."""

import dataclasses
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import xxhash

from gevar.errors import ModelFileError
from gevar.om.file_constant_file import is_file_constant_file, read_file_constant_file
from gevar.om.named_tensor import is_tensor_file, read_tensors
from gevar.om.stored_bytes import read_all
from gevar.om.weight_digests import RegionDigest, digests_text, read_digests
from gevar.types import DataType
from tests.helpers.peak_memory import bounded_memory
from tests.helpers.weight_files import weight_file

ARRAYS = {"one": np.arange(100, dtype=np.float32), "two": np.arange(7), "tied": np.arange(7)}
HASH = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        (f"weight_{HASH}", True),
        ("weight_combined", True),
        ("net_weight_combined", True),
        (f"weight_{HASH[:32]}", True),
        (f"weight_{HASH[:31]}", False),
        (f"weight_{HASH}0", False),
        (f"weight_{HASH.upper()}", False),
        (f"weight_{HASH}.bin", False),
        ("myweight_combined", False),
        ("weight_combined.npz", False),
        ("meta.json", False),
    ],
)
def test_names(name: str, is_one: bool) -> None:
    assert is_file_constant_file(Path("folder") / name) is is_one
    assert is_tensor_file(name) is (is_one or name.endswith(".npz"))


def test_a_file_of_one_content(tmp_path: Path) -> None:
    weight_file(tmp_path, "om1", ARRAYS)
    files = sorted((tmp_path / "weight").glob("weight_*"))
    assert len(files) == 2
    seen = set()
    for file in files:
        [tensor] = read_tensors(file)
        data = read_all(tensor.data)
        assert (tensor.name, tensor.dtype, tensor.shape) == (file.name, DataType.DT_UINT8, (len(data),))
        assert hashlib.sha256(data).hexdigest() == file.name.removeprefix("weight_")
        seen.add(data)
    assert seen == {ARRAYS["one"].tobytes(), ARRAYS["two"].tobytes()}


def test_a_combined_file_has_the_regions_that_are_listed(tmp_path: Path) -> None:
    weight_file(tmp_path, "om2", ARRAYS)
    [file] = (tmp_path / "weight").glob("*weight_combined")
    tensors = read_tensors(file)
    assert [tensor.name for tensor in tensors] == [f"{file.name}@0", f"{file.name}@512"]
    assert {read_all(tensor.data) for tensor in tensors} == {ARRAYS["one"].tobytes(), ARRAYS["two"].tobytes()}
    (tmp_path / "weight" / "digests.json").unlink()
    [whole] = read_tensors(file)
    assert (whole.name, read_all(whole.data)) == (file.name, file.read_bytes())


@pytest.mark.parametrize("kind", ["om1", "om2"])
def test_damage_is_found(tmp_path: Path, kind: str) -> None:
    weight_file(tmp_path, kind, ARRAYS)
    for file in (tmp_path / "weight").glob("*weight_*"):
        good = file.read_bytes()
        for tensor in read_file_constant_file(file):
            source = tensor.data.source
            assert source is not None
            at = source.base + tensor.data.offset + tensor.data.nbytes - 1
            file.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
            damaged = [one for one in read_file_constant_file(file) if one.name == tensor.name]
            with pytest.raises(ModelFileError, match=r"has the digest [0-9a-f]+, not [0-9a-f]+: it is damaged"):
                read_all(damaged[0].data)
            others = [one for one in read_file_constant_file(file) if one.name != tensor.name]
            assert all(read_all(other.data) for other in others)


def test_a_list_that_leaves_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "weight_combined").write_bytes(b"1234")
    rows = [RegionDigest("weight_combined", 2, 3, "00"), RegionDigest("other", 0, 1 << 60, "00")]
    (tmp_path / "digests.json").write_bytes(digests_text(rows))
    with pytest.raises(ModelFileError, match="do not lie inside the 4 B"):
        read_file_constant_file(tmp_path / "weight_combined")
    (tmp_path / "digests.json").write_bytes(digests_text(rows[1:]))
    [tensor] = read_file_constant_file(tmp_path / "weight_combined")
    assert read_all(tensor.data) == b"1234"
    (tmp_path / "digests.json").write_bytes(b"[]")
    with pytest.raises(ModelFileError, match="xxh3_128"):
        read_file_constant_file(tmp_path / "weight_combined")


def test_the_list_may_be_in_any_order(tmp_path: Path) -> None:
    """Each region is there once, in the order of bytes; those at one place have a length in the name."""
    weight_file(tmp_path, "om2", ARRAYS)
    [file] = (tmp_path / "weight").glob("*weight_combined")
    side = tmp_path / "weight" / "digests.json"
    rows = json.loads(side.read_bytes())["xxh3_128"]
    upper = [row | {"digest": row["digest"].upper()} for row in rows]
    short = RegionDigest(file.name, 512, 8, xxhash.xxh3_128_hexdigest(file.read_bytes()[512:520]))
    side.write_text(json.dumps({"xxh3_128": [*reversed(upper), *rows, dataclasses.asdict(short)]}))
    tensors = read_tensors(file)
    assert [one.name.removeprefix(file.name) for one in tensors] == ["@0", "@512+8", f"@512+{rows[1]['length']}"]
    assert [read_all(one.data) for one in tensors] == [
        file.read_bytes()[at : at + size] for at, size in ((0, rows[0]["length"]), (512, 8), (512, rows[1]["length"]))
    ]


def test_two_digests_for_one_region_are_refused(tmp_path: Path) -> None:
    (tmp_path / "weight_combined").write_bytes(b"1234")
    rows = [RegionDigest("weight_combined", 0, 4, digest) for digest in ("00" * 16, "11" * 16)]
    (tmp_path / "digests.json").write_bytes(digests_text(rows))
    with pytest.raises(ModelFileError, match="two digests for 4 B at 0 of weight_combined"):
        read_digests(tmp_path / "digests.json")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"xxh3_128": [], "xxh3_128": []}', "has the name 'xxh3_128' twice"),
        ('{"sha256": []}', "is no list of xxh3_128 digests"),
        ("[" * 10**6, "nested too deep"),
        ('{"xxh3_128": [%s[]]}' % ("[]," * 20_000_000), "B of memory"),
        ('{"xxh3_128": [{"file": "w", "offset": 0.0, "length": 1, "digest": "00"}]}', "only 0 regions .* of 1"),
    ],
)
def test_lists_that_are_none(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "digests.json").write_text(text)
    with bounded_memory(len(text)), pytest.raises(ModelFileError, match=reason):
        read_digests(tmp_path / "digests.json")


@pytest.mark.parametrize("target", ["nothing", "../outside"])
def test_a_list_that_is_a_link_out_is_none(tmp_path: Path, target: str) -> None:
    """Bytes are not taken without their digests, which nobody can read."""
    folder = tmp_path / "weight"
    folder.mkdir()
    (tmp_path / "outside").write_bytes(digests_text([]))
    (folder / "weight_combined").write_bytes(b"1234")
    (folder / "digests.json").symlink_to(target)
    with pytest.raises(ModelFileError, match="symbolic link"):
        read_file_constant_file(folder / "weight_combined")
