"""Killing the writer of the model cache at random points: no entry is ever torn, and none that was stored is lost."""

import json
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gevar.compile.model_cache_files import CacheEntry, CacheFiles
from gevar.compile.model_cache_load import read_model
from gevar.compile.model_cache_match import read_var_match_info
from tests.helpers.child import talk_to_python
from tests.helpers.model_cache_writer import WEIGHT_BYTES, weights_of

FULL_KILLS = 200
SHARE = 50
"""The tests kill one writer in so many of the full number."""
KILLS_PER_FOLDER = 25
LAST_LINES = 60
"""Half of the kills by line hit the last ones, where files get their names."""
SERVER = "from tests.helpers.model_cache_writer import serve; serve()"
KILLED = -9
Ask = Callable[[dict[str, Any]], list[tuple[list[str], int]]]


@dataclass
class Campaign:
    """What a campaign saw: writers that were killed, by kind, entries afterwards, and files that no index names."""

    kills: Counter[str] = field(default_factory=Counter)
    survived: int = 0
    old: int = 0
    new: int = 0
    left_over: int = 0


def run(count: int, seed_number: int) -> Campaign:
    """Kill as many writers, and look at the cache after each.

    Raises
    ------
    AssertionError
        An entry is torn or lost.
    """
    seen, chance = Campaign(), random.Random(seed_number)
    with talk_to_python(SERVER, OPENBLAS_NUM_THREADS="1") as talk:

        def ask(plan: dict[str, Any]) -> list[tuple[list[str], int]]:
            return [(lines, code) for lines, code in json.loads(talk(json.dumps(plan)))]

        lines = _lines_of_a_save(ask)
        while seen.kills.total() < count:
            with tempfile.TemporaryDirectory() as folder:
                _kill_in_folder(Path(folder), ask, chance, lines, seen, count)
    return seen


def _lines_of_a_save(ask: Ask) -> int:
    with tempfile.TemporaryDirectory() as folder:
        [(lines, _)] = ask({"folder": folder, "key": "k", "numbers": [0], "line": -1})
    return int(lines[0])


def _kill_in_folder(folder: Path, ask: Ask, chance: random.Random, lines: int, seen: Campaign, count: int) -> None:
    entries: dict[str, list[CacheEntry]] = {"a": [], "b-": []}
    number = 0
    for _ in range(min(KILLS_PER_FOLDER, count - seen.kills.total())):
        key, kind = chance.choice(list(entries)), chance.choice(("line", "line", "byte", "seconds"))
        numbers = list(range(number, number + chance.randint(1, 2)))
        number += len(numbers)
        at = {
            "line": chance.choice((chance.randint(1, lines), lines - chance.randrange(LAST_LINES))),
            "byte": chance.randint(0, WEIGHT_BYTES),
            "seconds": chance.random() / 50,
        }
        [(stored, code)] = ask({"folder": str(folder), "key": key, "numbers": numbers, kind: at[kind]})
        assert code in (KILLED, 0), f"the writer failed with {code}"
        seen.kills[kind] += 1
        seen.survived += code == 0
        entries[key] = _check(folder, key, entries[key], numbers, len(stored), seen)
    for known in entries.values():
        for entry in known:
            assert_whole(entry)
    named = {
        path.name for known in entries.values() for entry in known for path in (entry.model, entry.var_descs) if path
    }
    others = {path.name for path in folder.iterdir()} - named
    others -= {f"{key}{suffix}" for key in entries for suffix in (".lock", ".idx")}
    assert not any(name.endswith(".tmp") for name in others)
    seen.left_over += len(others)


def _check(
    folder: Path, key: str, before: list[CacheEntry], numbers: list[int], stored: int, seen: Campaign
) -> list[CacheEntry]:
    """Check the entries of a key: all that were there, those that the writer told, and at most the one it was at."""
    files = CacheFiles(folder, key)
    files.close()
    assert files.entries[: len(before)] == before
    new = files.entries[len(before) :]
    assert stored <= len(new) <= min(stored + 1, len(numbers))
    for entry, number in zip(new, numbers, strict=False):
        assert assert_whole(entry) == number
    seen.new += len(new) > stored
    seen.old += len(new) == stored < len(numbers)
    return files.entries


def assert_whole(entry: CacheEntry) -> int:
    """Check that an entry is whole, and return the number that it has."""
    [model] = read_model(entry.model).models
    number = int(model.model.name.removeprefix("model_"))
    assert model.partitions[0][1].read() == weights_of(number)
    assert entry.var_descs is not None
    before, after = read_var_match_info(entry.var_descs)
    assert (list(before.cur_descs), list(after.cur_descs)) == ([], [f"v{number}"])
    return number
