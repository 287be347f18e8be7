"""Two processes that export weights to one folder, one of them killed or interrupted: what is named must be whole."""

import hashlib
import json
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xxhash

from gevar.om import open_om
from gevar.om.attr_value import plain_value
from gevar.om.weight_digests import read_digests
from tests.helpers.child import talk_to_python
from tests.helpers.export_writer import INTERRUPTED, weights_of

FULL_KILLS = 100
KILLS_PER_FOLDER = 10
LINES = 1_000_000
"""A line that no export comes to."""
SERVER = "from tests.helpers.export_writer import serve; serve()"
KILLED = -9
Ask = Callable[[list[dict[str, Any]]], list[tuple[list[str], int]]]


@dataclass
class Campaign:
    """What a campaign saw: kills by kind, writers that ended before theirs, models and regions that were looked at."""

    kills: Counter[str] = field(default_factory=Counter)
    survived: int = 0
    models: int = 0
    regions: int = 0


def run(count: int, seed_number: int) -> Campaign:
    """Kill or interrupt as many writers, each beside another in the same folder, and look at the folder after each.

    Raises
    ------
    AssertionError
        A model, a region that a list names, or a list is torn; or the other writer failed.
    """
    seen, chance = Campaign(), random.Random(seed_number)
    with talk_to_python(SERVER, OPENBLAS_NUM_THREADS="1") as talk:

        def ask(plans: list[dict[str, Any]]) -> list[tuple[list[str], int]]:
            return [(lines, code) for lines, code in json.loads(talk(json.dumps(plans)))]

        while seen.kills.total() < count:
            with tempfile.TemporaryDirectory() as folder:
                mode = chance.choice((1, 2))
                for number in range(min(KILLS_PER_FOLDER, count - seen.kills.total())):
                    _kill(Path(folder), mode, number, ask, chance, seen)
    return seen


def _kill(folder: Path, mode: int, number: int, ask: Ask, chance: random.Random, seen: Campaign) -> None:
    """Export two models, the first by a process that is killed; the folder is new for the first pair."""
    pair = [{"folder": str(folder), "mode": mode, "number": number * 2 + i, "file": f"m{i}.om"} for i in range(2)]
    kind = chance.choice(("line", "interrupt", "seconds"))
    with tempfile.TemporaryDirectory() as other:
        [(told, _)] = ask([pair[0] | {"folder": other, "line": LINES}])
    line = chance.randint(1, int(told[0]))
    at = {"line": line, "interrupt": line, "seconds": chance.random() / 50}
    (_, first), (_, second) = ask([pair[0] | {kind: at[kind]}, pair[1]])
    assert first in (KILLED if kind != "interrupt" else INTERRUPTED, 0), f"the writer failed with {first}"
    assert second == 0, f"the writer beside the one that was killed failed with {second}"
    seen.kills[kind] += 1
    seen.survived += first == 0
    assert _check(folder, seen)["m1.om"] == number * 2 + 1
    ask([pair[1]])
    assert not [*folder.rglob("*.tmp")], "a writer leaves what a killed one had begun"
    _check(folder, seen)


def _check(folder: Path, seen: Campaign) -> dict[str, int]:
    """Check models and lists of a folder, and return the number that each model has."""
    weight = folder / "weight"
    meta = json.loads((weight / "meta.json").read_bytes())
    known = {path.name: path.read_bytes() for path in weight.iterdir()}
    for digest, file in meta["hash_to_weight_file"].items():
        offset, data = meta["hash_to_weight_offset"].get(digest, 0), known[Path(file).name]
        assert any(_sha256(data[offset:end]) == digest for end in _ends(offset, len(data))), "a listed region is torn"
        seen.regions += 1
    if "digests.json" in known:
        for one in read_digests(weight / "digests.json"):
            found = known[one.file][one.offset : one.offset + one.length]
            assert xxhash.xxh3_128_hexdigest(found) == one.digest
    return {path.name: _number(path, known, seen) for path in folder.glob("*.om")}


def _ends(offset: int, size: int) -> list[int]:
    """Where a region may end: the lists of GE do not say how long it is."""
    return [size, *(offset + len(data) for data in weights_of(0).values())]


def _number(path: Path, files: dict[str, bytes], seen: Campaign) -> int:
    """Check the weights of a model and return its number."""
    found = {}
    with open_om(path) as om:
        for node in om.models[0].variable_nodes():
            location, offset, length = (plain_value(node.attrs[name]) for name in ("location", "offset", "length"))
            assert isinstance(offset, int)
            assert isinstance(length, int)
            data = files[str(location)][offset : offset + length]
            name, _, digest = node.name.rpartition("_")
            assert _sha256(data) == digest
            found[name] = data
    seen.models += 1
    number = found["w700"][0] - 1 + 251 * found["w700"][1]
    assert found == weights_of(number)
    return number


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
