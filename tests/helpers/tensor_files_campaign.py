"""Files of tensors, whole and damaged, read by gevar and by the packages they are of: equal, or refused."""

import json
import random
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from gevar.errors import ModelFileError
from gevar.om.named_tensor import NamedTensor, read_tensors
from gevar.om.stored_bytes import read_all
from gevar.types import DataType
from tests.helpers.peak_memory import bounded_memory
from tests.helpers.tensor_files import MAKERS, Found, library_tensors
from tests.helpers.weights_campaign import damaged_text

FULL_EXAMPLES: Final = 30_000
WHOLE: Final = 5
"""One example in so many is not damaged."""
NUMBERS: Final = (
    0,
    1,
    2,
    7,
    8,
    0x7F,
    0x80,
    0xFF,
    1 << 15,
    (1 << 31) - 1,
    (1 << 32) - 1,
    1 << 62,
    1 << 63,
    (1 << 64) - 1,
)
TEXTS: Final = (
    b"(",
    b"[[",
    b"{",
    b"-",
    b"9" * 30,
    b"L",
    b",,",
    b"'",
    b'"',
    b"\\ud800",
    b"NaN",
    b"1.0",
    b"\0",
    b"..",
    b"/",
)


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
        Gevar reads a file otherwise than its package, or one that the package refuses, or takes too much memory.
    Exception
        Whatever was raised that is not the error for such a file.
    """
    seen, chance = Campaign(), random.Random(seed)
    memory = Path("/dev/shm")  # where files need no disk, if there is such a place
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy warns of headers that Python 2 wrote
        for number in range(count):
            kind = chance.choice(list(MAKERS))
            place = Path(folder, str(number))
            place.mkdir()
            path = MAKERS[kind](chance, place)
            if number % WHOLE:
                damage(chance, kind, path)
                seen.saw(kind, damaged_outcome(kind, path))
            else:
                seen.saw(kind, whole_outcome(kind, path))
            shutil.rmtree(place)
    return seen


# --- damage -----------------------------------------------------------------------------------------------------------


def damage(chance: random.Random, kind: str, path: Path) -> None:
    """Change a file, or one that belongs to it."""
    files = [path, *(file for file in sorted(path.parent.rglob("*")) if file.is_file())]
    file = chance.choice(files) if kind in ("index", "onnx", "external weights") else path
    data = file.read_bytes()
    if file.suffix == ".json" and chance.random() < 0.7:
        file.write_bytes(damaged_text(json.loads(data), chance))
    elif kind == "safetensors" and chance.random() < 0.6:
        file.write_bytes(damaged_header(data, chance))
    else:
        for _ in range(chance.choice((1, 1, 2, 4))):
            data = damaged_bytes(data, chance)
        file.write_bytes(data)


def damaged_header(data: bytes, chance: random.Random) -> bytes:
    """Change the header of a safetensors file and correct its length, so that the change is reached."""
    end = 8 + int.from_bytes(data[:8], "little")
    text = damaged_text(json.loads(data[8:end]), chance)
    return len(text).to_bytes(8, "little") + text + data[end:]


def damaged_bytes(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(min(len(data), chance.choice((16, 128, 1 << 30))) + 1)
    at = chance.choice((at, at, max(len(data) - 1 - chance.randrange(16), 0)))
    number = (chance.choice(NUMBERS) + chance.choice((0, 0, 1, -1))) % (1 << 64)
    width = chance.choice((1, 2, 4, 8))
    kinds: tuple[Callable[[], bytes], ...] = (
        lambda: data[:at],
        lambda: data + chance.randbytes(chance.randrange(1, 9)),
        lambda: data[:at] + data[at + chance.randrange(1, 9) :],
        lambda: data[:at] + chance.choice(TEXTS) + data[at:],
        lambda: data[:at] + (word := chance.choice(TEXTS)) + data[at + len(word) :],
        lambda: data[:at] + number.to_bytes(8, "little")[:width] + data[at + width :],
        lambda: data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :] if at < len(data) else data,
        lambda: data[:at] + data[(start := chance.randrange(len(data) + 1)) : start + 40] + data[at:],
    )
    return chance.choice(kinds)()


# --- outcomes ---------------------------------------------------------------------------------------------------------


def damaged_outcome(kind: str, path: Path) -> str:
    """Read a damaged file; what is read is what the package reads."""
    try:
        found = gevar_tensors(kind, path)
    except ModelFileError as error:
        check_refusal(error)
        return "refused"
    try:
        expected = library_tensors(kind, path)
    except Exception as error:
        raise AssertionError(
            f"{kind}: read as {short(found)}; its package says {type(error).__name__} {error}"
        ) from error
    assert found == expected, f"{kind}: read as {short(found)}, by its package as {short(expected)}"
    return "read"


def whole_outcome(kind: str, path: Path) -> str:
    """Read a file as it was written: refused is only a type that GE does not have."""
    expected = library_or_none(kind, path)
    try:
        found = gevar_tensors(kind, path)
    except ModelFileError as error:
        check_refusal(error)
        check_is_of_another_type(error)
        return "of another type"
    assert expected is not None, f"{kind}: its package does not read what was read as {short(found)}"
    assert found == expected, f"{kind}: read as {short(found)}, by its package as {short(expected)}"
    return "whole"


def library_or_none(kind: str, path: Path) -> Found | None:
    """Return what a package reads; None for a pickle, which it does not."""
    try:
        return library_tensors(kind, path)
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        return None


def gevar_tensors(kind: str, path: Path) -> Found:
    """Read a file by gevar, with all bytes, in little memory."""
    size_bytes = sum(file.stat().st_size for file in path.parent.rglob("*") if file.is_file())
    with bounded_memory(size_bytes):
        tensors = read_tensors(path)
        found = {tensor.name: (tensor.shape, read_all(tensor.data)) for tensor in tensors}
    assert len(found) == len(tensors), f"{kind}: two tensors have one name: {short(found)}"
    for tensor in tensors:
        check_type(tensor)
    return {str(number): facts for number, facts in enumerate(found.values())} if kind == "onnx" else found


def check_type(tensor: NamedTensor) -> None:
    """The bytes are those of the type and shape."""
    assert tensor.dtype is not DataType.DT_UNDEFINED
    count = int(np.prod([*tensor.shape], dtype=object))
    assert tensor.dtype.element_bits is not None
    assert tensor.data.nbytes * 8 == count * tensor.dtype.element_bits


def check_refusal(error: ModelFileError) -> None:
    assert str(error).isprintable(), str(error)
    assert len(str(error)) < 1500, str(error)


def check_is_of_another_type(error: ModelFileError) -> None:
    assert any(words in str(error) for words in ("no data type", "no tensor", "no equal in GE")), str(error)


def short(found: Found) -> str:
    return str({name: (shape, len(data)) for name, (shape, data) in found.items()})[:300]
