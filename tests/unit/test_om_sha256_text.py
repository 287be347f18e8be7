"""SHA-256 in names of external weights, with two digits a byte and with one for those below 16."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from gevar.errors import ModelFileError
from gevar.om import OmBuilder, StreamedBytes, open_om, write_om
from gevar.om import external_weights_writer as writer
from gevar.om.external_weights_writer import ExternalWeightMode
from gevar.om.file_constant_file import is_file_constant_file, read_file_constant_file
from gevar.om.sha256_text import SHA256_TEXT, is_sha256_text, sha256_text
from gevar.session.tensor_contents import tensor_contents
from gevar.types import DataType, Format, TensorDesc

CONTENTS = {f"w{number}": bytes([number]) * 40 for number in range(20)}


def net() -> OmBuilder:
    builder = OmBuilder("net")
    for name, data in CONTENTS.items():
        builder.const(name, data, TensorDesc(DataType.DT_UINT8, Format.FORMAT_ND, (len(data),)))
    return builder


def bare(data: bytes) -> str:
    """Print a digest as GE's source has it."""
    return "".join(format(byte, "x") for byte in hashlib.sha256(data).digest())


@pytest.mark.parametrize(
    ("digest", "padded", "text"),
    [
        (bytes([0x12, 0x03, 0x00, 0xFF] * 8), True, "120300ff" * 8),
        (bytes([0x12, 0x03, 0x00, 0xFF] * 8), False, "1230ff" * 8),
        (bytes(32), False, "0" * 32),
        (bytes([0xAB] * 32), False, "ab" * 32),
    ],
)
def test_both_spellings(digest: bytes, padded: bool, text: str) -> None:
    assert sha256_text(digest, padded=padded) == text
    assert is_sha256_text(text, digest)
    assert re.fullmatch(SHA256_TEXT, text)
    assert not is_sha256_text(text, bytes(31) + b"\x77")
    assert not is_sha256_text(text[:-1], digest)


@pytest.mark.parametrize("mode", [1, 2])
def test_a_model_with_bare_digests_is_read_like_any(tmp_path: Path, mode: ExternalWeightMode) -> None:
    path = tmp_path / "m.om"
    net().write(path, external_weight=mode, padded_sha256=False)
    texts = {name: bare(data) for name, data in CONTENTS.items()}
    assert min(map(len, texts.values())) < 64, "no digest has a byte below 16"
    assert set(json.loads((tmp_path / "weight" / "meta.json").read_bytes())["hash_to_weight_file"]) == {*texts.values()}
    with open_om(path) as om:
        assert {node.name for node in om.models[0].variable_nodes()} == {f"{name}_{texts[name]}" for name in texts}
        found = {content.name: content.data for content in tensor_contents(om, None)}
    assert found.keys() == CONTENTS.keys()  # the digest is that of the bytes, so it is no part of the name
    if mode == 1:
        assert {file.name for file in (tmp_path / "weight").glob("weight_*")} == {
            f"weight_{text}" for text in texts.values()
        }


def test_nothing_is_written_twice_in_a_spelling(tmp_path: Path) -> None:
    for mode in (1, 2):
        folder = tmp_path / str(mode)
        for name in ("a.om", "b.om"):
            write_om(tmp_path / name, net().build(), external_weight=mode, weight_dir=folder, padded_sha256=False)  # type: ignore[arg-type]
        stored = sum(file.stat().st_size for file in folder.iterdir() if file.name not in ("meta.json", "digests.json"))
        assert stored == (40 if mode == 1 else 512) * len(CONTENTS)


def test_a_file_with_a_bare_digest_is_held_against_it(tmp_path: Path) -> None:
    data = next(data for data in CONTENTS.values() if len(bare(data)) < 64)
    file = tmp_path / f"weight_{bare(data)}"
    file.write_bytes(data)
    assert is_file_constant_file(file)
    [tensor] = read_file_constant_file(file)
    assert isinstance(tensor.data, StreamedBytes)
    assert b"".join(tensor.data.open()) == data
    file.write_bytes(data[::-1][:-1] + b"!")
    [tensor] = read_file_constant_file(file)
    assert isinstance(tensor.data, StreamedBytes)
    with pytest.raises(ModelFileError, match="it is damaged"):
        list(tensor.data.open())


def test_two_digests_of_one_text_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No such contents are known, so digests are given."""
    digests = iter((bytes([0x12, 0x03] + [0] * 30), bytes([0x01, 0x23] + [0] * 30)))
    monkeypatch.setattr(writer, "_digests_of", lambda data: (next(digests), "00" * 16))
    builder = OmBuilder("net")
    for name in ("a", "b"):
        builder.const(name, name.encode(), TensorDesc(DataType.DT_UINT8, Format.FORMAT_ND, (1,)))
    with pytest.raises(ValueError, match=r"two contents have the digest 1230+ .*; write it padded"):
        builder.write(tmp_path / "m.om", external_weight=1, padded_sha256=False)
    assert list(tmp_path.rglob("*")) == []
