"""Damaging what says where external weights are: records of nodes, the option of ids, the lists of a folder.

Each example makes a folder with good files and traps, damages one of the texts, and looks at what gevar makes of it.
"""

import hashlib
import json
import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import xxhash

from gevar.errors import LoadError, ModelFileError, VariableError
from gevar.om import OmBuilder, open_om
from gevar.om.attr_value import plain_value
from gevar.om.weight_digests import read_digests
from gevar.status import FAILED, PARAM_INVALID
from gevar.types import DataType, Format, TensorDesc
from gevar.var import VarOp
from gevar.weights import FileRegion, WeightDirectory, file_constant_info, value_bins

FULL_EXAMPLES: Final = 50_000
EXPORTS: Final = 10
"""One example in so many is an export, which is slow."""
SECRET: Final = b"secret" * 100
NUMBERS: Final = (
    0,
    1,
    2,
    3,
    15,
    16,
    511,
    512,
    513,
    1024,
    4096,
    2**31 - 1,
    2**31,
    2**32,
    2**62,
    2**63 - 1,
    -1,
    -512,
    -(2**63),
)
NAMES: Final = ("a.bin", "b.bin", "link", "hard", "twin", "out", "pipe", "dir", "none", "circle", "empty")
FOLDERS: Final = (
    "",
    "./",
    "stage/",
    "/stage/",
    "../",
    "../../",
    "/",
    "dir/",
    "way/",
    "weight/",
    "a/../",
    "a//b/",
    "..",
)
TEXTS: Final = (
    "",
    ".",
    "..",
    "/",
    "\0",
    "a.bin\0",
    "a\nb",
    "x" * 300,
    "ü",
    "\udcff",
    "/dev/zero",
    "/dev/null",
    "/proc/self/mem",
)
DATA: Final = {"a": b"a" * 9, "b": b"b" * 700, "c": b"c" * 513}


@dataclass
class Campaign:
    """What a campaign saw: examples by kind and outcome."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)

    def saw(self, kind: str, outcome: str) -> None:
        self.outcomes.setdefault(kind, Counter())[outcome] += 1

    @property
    def examples(self) -> int:
        return sum(found.total() for found in self.outcomes.values())


def run(count: int, seed: int) -> Campaign:
    """Make so many examples.

    Raises
    ------
    AssertionError
        Something led out of its folder, a region leaves its file, a file outside was changed, or what a list or model
        names is not whole.
    Exception
        Whatever was raised that is not the error for such an input.
    """
    seen, chance = Campaign(), random.Random(seed)
    memory = Path("/dev/shm")  # where files need no disk, if there is such a place
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        root = Path(folder).resolve()
        make_traps(root)
        here = Path.cwd()
        os.chdir(root / "work")
        try:
            for number in range(count):
                if number % EXPORTS == 0:
                    export(root / f"export{number}", chance, seen)
                elif number % EXPORTS == 1:
                    option(chance, seen)
                else:
                    record(root, chance, seen)
        finally:
            os.chdir(here)
        assert (root / "secret").read_bytes() == SECRET
    return seen


def make_traps(root: Path) -> None:
    """Make a model's folder with good files, and others that lead out of it or are none."""
    weight = root / "model" / "weight"
    for path in (weight / "dir", root / "work", root / "elsewhere"):
        path.mkdir(parents=True)
    (root / "secret").write_bytes(SECRET)
    (root / "elsewhere" / "a.bin").write_bytes(SECRET)
    for path in (weight / "a.bin", root / "work" / "b.bin", root / "model" / "b.bin"):
        path.write_bytes(bytes(4096))
    (weight / "b.bin").write_bytes(bytes(600))
    (weight / "empty").touch()
    (weight / "link").symlink_to("a.bin")
    (weight / "twin").hardlink_to(weight / "b.bin")
    (weight / "out").symlink_to(root / "secret")
    (weight / "hard").hardlink_to(root / "secret")
    (weight / "circle").symlink_to("circle")
    (weight / "way").symlink_to(root / "elsewhere")
    (root / "model" / "way").symlink_to(root / "elsewhere")
    os.mkfifo(weight / "pipe")


# --- records of nodes -------------------------------------------------------------------------------------------------


def number(chance: random.Random) -> object:
    """A number that is often at the edge of something, and sometimes none."""
    if chance.random() < 0.05:
        return chance.choice(("0", "", 1.5, (1,), None))
    near = chance.choice(NUMBERS) + chance.choice((0, 0, 0, 1, -1))
    return near if chance.random() < 0.4 else chance.randrange(600)


def name(chance: random.Random, root: Path) -> object:
    """A name of a file, good or bad."""
    if chance.random() < 0.1:
        return chance.choice((*TEXTS, 3, (1, 2)))
    start = chance.choice(("", "", f"{root}/model/weight/", f"{root}/model/", f"{root}/"))
    return start + chance.choice((*FOLDERS, *[""] * 10)) + chance.choice(NAMES)


def record(root: Path, chance: random.Random, seen: Campaign) -> None:
    """Let a node name a file; what it gets lies inside the folders and inside the file."""
    shape = tuple(chance.choice((0, 1, 4, 16, 100, 1 << 40, -1)) for _ in range(chance.randrange(3)))
    dtype = chance.choice((DataType.DT_FLOAT, DataType.DT_INT8, DataType.DT_INT4, DataType.DT_STRING))
    size = chance.choice((0, 16, 64, 512, 4096, 1 << 40))
    attrs: dict[str, object] = {}
    for attr in ("location", "file_path", "file_id"):
        if chance.random() < {"location": 0.7, "file_path": 0.4, "file_id": 0.3}[attr]:
            attrs[attr] = name(chance, root)
    attrs |= {attr: number(chance) for attr in ("offset", "length") if chance.random() < 0.7}
    attrs["__class__"] = "unknown"
    op = VarOp("w", "FileConstant", (TensorDesc(dtype, Format.FORMAT_ND, shape, size=size),), (1 << 37,), None, attrs)  # type: ignore[arg-type]
    folder = chance.choice((None, root / "model" / "weight"))
    directory = WeightDirectory(folder, chance.choice((root / "model" / "m.om", None)))
    try:
        info = file_constant_info(op, {"a.bin": str(root / "elsewhere" / "a.bin")})
        region = info.region(directory.find(info))
    except (VariableError, LoadError) as error:
        check_refusal(error)
        seen.saw("records", type(error).__name__)
        return
    check_region(root, info.named_by, region)
    assert region.size_bytes >= (info.length or min(max(info.tensor_bytes, 0), info.size_bytes))
    seen.saw("records", "found")


def check_refusal(error: VariableError | LoadError) -> None:
    assert "\n" not in str(error)
    assert isinstance(error, LoadError) or error.status in (FAILED, PARAM_INVALID)


def check_region(root: Path, named_by: str, region: FileRegion) -> None:
    """Look at a region that a node got."""
    real = Path(os.path.realpath(region.path))
    assert real == region.path
    assert real.is_file()
    assert 0 <= region.offset <= region.offset + region.size_bytes <= max(real.stat().st_size, region.offset)
    if named_by != "file_id":
        assert any(real.is_relative_to(root / part) for part in ("model", "work")), f"{real} lies elsewhere"
        assert not real.samefile(root / "secret")
        assert SECRET not in real.read_bytes()


# --- JSON -------------------------------------------------------------------------------------------------------------


def leaf(chance: random.Random) -> object:
    return chance.choice((None, True, 0, -1, 1, 512, 2**63, 10**30, 1.5, "", "a.bin", "../secret", "aa", [], {}, [[1]]))


def damaged(value: object, chance: random.Random) -> object:
    """Change one place of a JSON value."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        key = chance.choice(list(value))
        kind, found = chance.choice(("inside", "inside", "drop", "rename", "add")), dict(value)
        if kind == "inside":
            found[key] = damaged(value[key], chance)
        elif kind == "drop":
            del found[key]
        elif kind == "rename":
            found[str(leaf(chance))] = found.pop(key)
        else:
            found["__class__"] = leaf(chance)
        return found
    if isinstance(value, list) and value and chance.random() < 0.8:
        at = chance.randrange(len(value))
        return [*value[:at], damaged(value[at], chance), *value[at + chance.choice((0, 1)) :]]
    return leaf(chance)


def damaged_text(value: object, chance: random.Random) -> bytes:
    """Change a JSON value at some places, then sometimes a few of its bytes."""
    for _ in range(chance.randrange(3)):
        value = damaged(value, chance)
    data = bytearray(json.dumps(value).encode())
    while data and chance.random() < 0.2:
        at = chance.randrange(len(data))
        data[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
    return b"[" * 100_000 if chance.random() < 0.002 else bytes(data)


def option(chance: random.Random, seen: Campaign) -> None:
    """Damage the text of the option of ids: it gives texts by texts, or `ValueError`."""
    records = [{"value_bin_id": f"i{n}", "value_bin_file": f"f{n}", "more": n} for n in range(chance.randrange(4))]
    text = damaged_text({"value_bins": records}, chance).decode(errors="replace")
    try:
        found = value_bins(text)
    except ValueError as error:
        if "ge.exec.value_bins" not in str(error):
            raise
        seen.saw("options", "refused")
        return
    assert all(type(key) is type(file) is str for key, file in found.items())
    seen.saw("options", "read")


# --- lists ------------------------------------------------------------------------------------------------------------


def net() -> OmBuilder:
    builder = OmBuilder("net")
    for key, data in DATA.items():
        builder.const(key, data, TensorDesc(DataType.DT_UINT8, Format.FORMAT_ND, (len(data),)))
    return builder


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def first_files(mode: int, folder: Path) -> dict[str, bytes]:
    """Return what an export of these weights leaves, as a start for damage."""
    names = {key: f"weight_{sha256(data)}" if mode == 1 else "m_weight_combined" for key, data in DATA.items()}
    offsets = {"a": 0, "b": 512, "c": 1536} if mode == 2 else dict.fromkeys(DATA, 0)
    files = {sha256(data): str(folder / names[key]) for key, data in DATA.items()}
    places = {sha256(data): offsets[key] for key, data in DATA.items()} if mode == 2 else {}
    rows = [
        {"file": names[key], "offset": offsets[key], "length": len(data), "digest": xxhash.xxh3_128_hexdigest(data)}
        for key, data in DATA.items()
    ]
    found = {"meta.json": json.dumps({"hash_to_weight_file": files, "hash_to_weight_offset": places}).encode()}
    found["digests.json"] = json.dumps({"xxh3_128": rows}).encode()
    if mode == 1:
        return found | {names[key]: data for key, data in DATA.items()}
    return found | {
        "m_weight_combined": b"".join(data.ljust(-(-len(data) // 512) * 512, b"\0") for data in DATA.values())
    }


def export(root: Path, chance: random.Random, seen: Campaign) -> None:
    """Damage what an export left, and export again: what model and lists name is whole then, or it is refused."""
    mode = chance.choice((1, 2))
    folder = root / "weight"
    folder.mkdir(parents=True)
    (root / "secret").write_bytes(SECRET)
    for file, data in first_files(chance.choice((1, 2)), folder).items():
        if file.endswith(".json") and chance.random() < 0.8:
            data = damaged_text(json.loads(data), chance)
        elif chance.random() < 0.3:
            data = damage_bytes(data, chance)
        (folder / file).write_bytes(data)
    trapped = chance.random() < 0.2 and set_trap(root, folder, chance)
    try:
        net().write(root / "m.om", external_weight=mode)  # type: ignore[arg-type]
    except OSError:
        if not trapped:
            raise
        seen.saw("exports", "refused")
    else:
        check_export(root, mode)
        seen.saw("exports", "written")
    assert (root / "secret").read_bytes() == SECRET
    assert not list(folder.glob("*.tmp"))


def damage_bytes(data: bytes, chance: random.Random) -> bytes:
    kinds: tuple[Callable[[], bytes], ...] = (
        lambda: b"",
        lambda: data[: chance.randrange(len(data))],
        lambda: data + b"x" * chance.randrange(1000),
        lambda: bytes([data[0] ^ 1]) + data[1:],
    )
    return chance.choice(kinds)()


def set_trap(root: Path, folder: Path, chance: random.Random) -> bool:
    """Put something else in the place of a file."""
    path = chance.choice(sorted(folder.iterdir()))
    path.unlink()
    chance.choice(
        (lambda: path.symlink_to(root / "secret"), lambda: path.hardlink_to(root / "secret"), lambda: os.mkfifo(path))
    )()
    return True


def check_export(root: Path, mode: int) -> None:
    """Look at a model that was written, and at the lists of its folder."""
    folder, found = root / "weight", {}
    with open_om(root / "m.om") as om:
        for node in om.models[0].variable_nodes():
            location, offset, length = (plain_value(node.attrs[key]) for key in ("location", "offset", "length"))
            assert isinstance(offset, int)
            assert isinstance(length, int)
            assert offset % 512 == 0 or mode == 1
            data = (folder / str(location)).read_bytes()[offset : offset + length]
            assert (folder / str(location)).lstat().st_nlink == 1, "a loader refuses a file that has other names"
            assert node.name == f"{node.name[0]}_{sha256(data)}"
            found[node.name[0]] = data
            listed = json.loads((folder / "meta.json").read_bytes())
            assert listed["hash_to_weight_file"][sha256(data)].endswith("/" + str(location))
            assert listed["hash_to_weight_offset"].get(sha256(data), 0) == offset
    assert found == DATA
    try:
        read_digests(folder / "digests.json")
    except ModelFileError:
        raise AssertionError("the digests that were written cannot be read") from None
