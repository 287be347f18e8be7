"""Folders of exported weights by the text of their rules alone: what an export must make of a folder that is there.

gevar is not used. A folder is read as it lies, `exported` says what it must be after an export into it, and
`check_model` and `check_folder` hold what was written against that.
"""

import hashlib
import json
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xxhash

from tests.helpers.om_tree import Tree, file_trees

ALIGN_BYTES = 512
FILES, OFFSETS, DIGESTS = "hash_to_weight_file", "hash_to_weight_offset", "xxh3_128"
META, SIDE = "meta.json", "digests.json"
COMBINED = re.compile(r"(?s:.*_)?weight_combined")


@dataclass(frozen=True)
class Weight:
    """A constant of a model before it is exported; `dtype` is GE's number."""

    name: str
    op_type: str
    data: bytes
    dtype: int
    shape: tuple[int, ...]
    origin_shape: tuple[int, ...] = ()

    @property
    def sha256(self) -> str:
        """Digest of its bytes, two digits a byte."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass
class Folder:
    """A folder of weights: its files but for the lists, and what `meta.json` says, with its text where it is sound."""

    path: Path
    files: dict[str, bytes] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    meta: bytes = b""

    def region(self, sha256: str) -> tuple[str, int]:
        """Name of the file and offset that the list says of a content; -1 where it says none."""
        return self.paths.get(sha256, "").split("/")[-1], self.offsets.get(sha256, -1)

    def has(self, name: str, offset: int, data: bytes) -> bool:
        """Tell whether a file has bytes in a place."""
        return name in self.files and self.files[name][offset : offset + len(data)] == data


Places = dict[str, tuple[str, int, int]]
"""Location, offset and length by the name of a constant."""


def read_folder(path: Path) -> Folder:
    """Return a folder as it lies; a list that is no JSON object counts as empty, and so do entries of other types."""
    found = Folder(path)
    for file in sorted(path.iterdir()) if path.exists() else ():
        if file.name not in (META, SIDE) and file.is_file():
            found.files[file.name] = file.read_bytes()
    text = (path / META).read_bytes() if (path / META).exists() else b""
    try:
        stored = json.loads(text)
    except ValueError:
        return found
    sections = [stored.get(name) if isinstance(stored, dict) else None for name in (FILES, OFFSETS)]
    paths, offsets = (section if isinstance(section, dict) else {} for section in sections)
    found.paths = {key: value for key, value in paths.items() if isinstance(value, str)}
    found.offsets = {key: value for key, value in offsets.items() if type(value) is int}
    if sections == [found.paths, found.offsets]:
        found.meta = text
    return found


def exported(before: Folder, weights: Sequence[Weight], mode: int, prefix: str) -> tuple[Folder, Places]:
    """Return a folder after an export into it, and where each constant is; one without bytes is nowhere."""
    after = Folder(before.path, dict(before.files), dict(before.paths), dict(before.offsets))
    moved = [weight for weight in sorted(weights, key=lambda one: one.name.encode()) if weight.data] if mode else []
    if not moved:
        return before, {}
    places, new, anew = Places(), set[str](), dict[str, int]()
    for weight in moved:
        place = _individual(after, weight) if mode == 1 else _combined(after, weight, prefix, [*places.values()])
        location, offset, is_new = place
        places[weight.name] = location, offset, len(weight.data)
        if is_new:
            new.add(weight.sha256)
            anew.setdefault(location, offset)
            after.paths[weight.sha256] = str(before.path / location)
            after.offsets.pop(weight.sha256, None)
            if mode == 2:
                after.offsets[weight.sha256] = offset
    for sha256 in [*after.paths]:
        location, offset = after.region(sha256)
        if sha256 not in new and location in anew and max(offset, 0) >= anew[location]:
            del after.paths[sha256]
            after.offsets.pop(sha256, None)
    return after, places


def _individual(folder: Folder, weight: Weight) -> tuple[str, int, bool]:
    """A file of its own; used again where the list names it and it is there, whole."""
    name = f"weight_{weight.sha256}"
    is_new = folder.region(weight.sha256)[0] != name or folder.files.get(name) != weight.data
    folder.files[name] = weight.data
    return name, 0, is_new


def _combined(
    folder: Folder, weight: Weight, prefix: str, taken: Sequence[tuple[str, int, int]]
) -> tuple[str, int, bool]:
    """A piece of a file; used again where the list names one that has it, whichever model that was written for.

    A list that was damaged may name one that runs into a piece of another content.
    """
    (name, offset), size = folder.region(weight.sha256), len(weight.data)
    is_apart = not any(
        (name, offset, size) != other and name == other[0] and offset < sum(other[1:]) and other[1] < offset + size
        for other in taken
    )
    is_piece = COMBINED.fullmatch(name) and offset >= 0 and not offset % ALIGN_BYTES
    if is_piece and is_apart and folder.has(name, offset, weight.data):
        return name, offset, False
    name = f"{prefix}_weight_combined"
    padded = _padded(folder.files.get(name, b""))
    folder.files[name] = padded + _padded(weight.data)
    return name, len(padded), True


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGN_BYTES)


def check_folder(expected: Folder, places: Places, weights: Sequence[Weight]) -> None:
    """Hold a folder that was written against what it must be."""
    found, path = read_folder(expected.path), expected.path
    assert {name for name in found.files if found.files[name] != expected.files.get(name)} == set()
    assert found.files.keys() == expected.files.keys()
    if not places:
        return
    assert (found.paths, found.offsets) == (expected.paths, expected.offsets)
    assert json.dumps(json.loads(found.meta), indent=4).encode() == found.meta, "four spaces"
    assert list(json.loads(found.meta)) == [FILES, OFFSETS]
    for name in (META, SIDE, *(location for location, _, _ in places.values())):
        state = (path / name).lstat()
        assert stat.S_ISREG(state.st_mode)
        assert stat.S_IMODE(state.st_mode) == 0o600, f"{name} is for its owner"
        assert state.st_nlink == 1
    rows = json.loads((path / SIDE).read_bytes())[DIGESTS]
    listed = {(row["file"], row["offset"], row["length"]): row["digest"] for row in rows}
    assert len(listed) == len(rows)
    assert list(listed) == sorted(listed)
    for weight in weights:
        if weight.name in places:
            assert listed[places[weight.name]] == xxhash.xxh3_128_hexdigest(weight.data)
    for file, offset, length in listed:
        if file in {location for location, _, _ in places.values()}:
            assert offset + length <= len(found.files[file]), f"{file} ends before a region that is listed"


def check_model(path: Path, weights: Sequence[Weight], places: Places) -> None:
    """Hold the nodes of a model that was written against the constants that it had."""
    ((tree, _),) = file_trees(path.read_bytes())
    ops = {op["name"].decode(): op for graph in tree["graph"] for op in graph.get("op", [])}
    outputs = [op for op in ops.values() if op["type"] == b"NetOutput"]
    read = {ref.decode() for op in outputs for ref in op["input"]}
    for weight in weights:
        if weight.name not in places:
            assert ops[weight.name]["type"].decode() == weight.op_type
            assert f"{weight.name}:0" in read
            continue
        name = f"{weight.name}_{weight.sha256}"
        assert weight.name not in ops
        assert f"{name}:0" in read, "who reads it knows its new name"
        _check_node(ops[name], weight, places[weight.name])
    assert len([op for op in ops.values() if op["type"] == b"FileConstant"]) == len(places)


def _check_node(op: Tree, weight: Weight, place: tuple[str, int, int]) -> None:
    attrs = op["attr"]
    assert op["type"] == b"FileConstant"
    assert "value" not in attrs
    assert (
        _plain(attrs, "location", "s").decode(),
        _plain(attrs, "offset", "i"),
        _plain(attrs, "length", "i"),
    ) == place
    assert _plain(attrs, "dtype", "dt") == weight.dtype
    assert tuple(_plain(attrs, "shape", "list").get("i", [])) == weight.shape
    assert tuple(_plain(attrs, "original_shape", "list").get("i", [])) == weight.origin_shape


def _plain(attrs: Tree, name: str, kind: str) -> Any:
    """Return the value of an attribute that must be there; one of number 0 may be stored as nothing."""
    stored, value, unknown = attrs[name]
    assert not unknown
    assert stored == kind
    return value
