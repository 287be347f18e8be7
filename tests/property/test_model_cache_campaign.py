"""A share of the campaign that kills writers of the model cache, and many processes on one cache."""

import json
import random
from collections import Counter
from pathlib import Path

from tests.helpers import model_cache_campaign as campaign
from tests.helpers.child import talk_to_python

PROCESSES = 8
NUMBERS = range(12)


def test_campaign() -> None:
    seed = random.SystemRandom().randrange(1, 2**32)
    print(f"seed {seed}")
    seen = campaign.run(campaign.FULL_KILLS // campaign.SHARE, seed)
    assert seen.kills.total() == campaign.FULL_KILLS // campaign.SHARE


def test_killed_writers_leave_the_old_entries_and_sometimes_the_new_one() -> None:
    seen = campaign.run(24, seed_number=1)
    assert set(seen.kills) == {"line", "byte", "seconds"}
    assert seen.old > 0
    assert seen.survived < 12


def test_processes_share_one_directory(tmp_path: Path) -> None:
    plan = {"folder": str(tmp_path), "numbers": [*NUMBERS], "keys": 3, "processes": PROCESSES}
    with talk_to_python(campaign.SERVER, OPENBLAS_NUM_THREADS="1") as talk:
        answers = json.loads(talk(json.dumps(plan)))
    assert [code for _, code in answers] == [0] * PROCESSES
    told = Counter(line for lines, _ in answers for line in lines)
    # each model was compiled by the first process that wanted it, and all others loaded it whole
    assert told == {f"stored {n}": 1 for n in NUMBERS} | {f"loaded {n} True": PROCESSES - 1 for n in NUMBERS}
    for key in range(3):
        files = campaign.CacheFiles(tmp_path, f"k{key}")
        files.close()
        assert len(files.entries) == len(NUMBERS) / 3
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".tmp"]
