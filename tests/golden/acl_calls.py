"""Recorded calls of the ACL runtime: sequences of calls with the result of each, made again on the host runtime.

The file lists `sequences`, each with `steps`: a call (`fn`, `args`, `ret`, perhaps `out`) or an operation of the test
(`op`). Each sequence runs in a process of its own, on devices as the file's `profile` describes them.
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from acl_shim.loader import VARIABLE, host_library
from tests.golden import acl_deviations
from tests.golden.acl_compare import SequenceComparison, StepFacts
from tests.golden.acl_deviations import Deviations, strict_deviations
from tests.golden.acl_replay import replies
from tests.golden.facts import Json, Place, Report, State
from tests.helpers.shared import REPOSITORY

DOCUMENTATION = ("title", "schema", "driver_codes", "general")
PROFILE_TEXT = ("runtime", "driver", "simulated", "not_modelled")
SEQUENCE_TEXT = ("id", "group", "title", "note")
OPTIONS = {
    "devices": "DEVICES",
    "normal_pages_4k": "PAGES_4K",
    "huge_pages_2m": "PAGES_2M",
    "giant_pages_1g": "PAGES_1G",
}
"""Option of the host runtime for each number of a profile."""
SOC_NAME = re.compile(r"\bAscend\w+")
LIMIT_S = 20
"""Seconds after which a sequence counts as hanging."""
CLOSED = frozenset({"by_basis", "by_group", "by_code"})

Options = dict[str, str]


def matches(document: Json) -> bool:
    """Whether the document has the structure of recorded calls."""
    if not isinstance(document, Mapping) or not isinstance(document.get("sequences"), list):
        return False
    entries = document["sequences"]
    return any("fn" in step for entry in entries if isinstance(entry, Mapping) for step in walk(entry.get("steps")))


def walk(steps: Json) -> Iterator[Mapping[str, Json]]:
    """Yield every step, those of a thread after the step that starts it."""
    for step in steps if isinstance(steps, list) else []:
        if isinstance(step, Mapping):
            yield step
            yield from walk(step.get("steps"))


def check(document: Mapping[str, Json], folder: Path, report: Report, *, profile: str = "card") -> None:
    """Make every call of a file again and compare what it returns and writes.

    Under the strict profile the differences that the documentation lists are accepted, and must all occur.

    Raises
    ------
    ValueError
        The calls could not be made, or the documentation lists the deviations in no known form.
    """
    sequences: Sequence[Mapping[str, Json]] = document["sequences"]
    deviations = Deviations(strict_deviations(acl_deviations.PAGE) if profile == "strict" else ())
    _mark_head(document, report)
    _check_ids(sequences, report)
    base = {"HOSTACL_PROFILE": profile, **_device_options(document.get("profile", {}), report)}
    jobs = []
    for index, entry in enumerate(sequences):
        override = _options(entry.get("profile_override", {}), ("sequences", index, "profile_override"), report)
        jobs.append({"steps": entry["steps"], "environment": {**base, **override}})
    found, ends = run(jobs)
    for index, entry in enumerate(sequences):
        place = ("sequences", index)
        _mark(entry, place, SEQUENCE_TEXT, report)
        comparison = SequenceComparison(report, str(entry.get("id")), found[index], deviations)
        comparison.compare_steps(entry["steps"], place)
        comparison.compare_end(place, ends[index])
    for row in deviations.missing():
        report.differ((), f"the listed deviation {row.name} ({row.function}, {row.part}) did not occur")


def _mark(part: Mapping[str, Json], place: Place, keys: Sequence[str], report: Report) -> None:
    for key in keys:
        if key in part:
            report.mark((*place, key), part[key], State.DOCUMENTATION)


def _mark_head(document: Mapping[str, Json], report: Report) -> None:
    _mark(document, (), DOCUMENTATION, report)
    _mark(document.get("profile", {}), ("profile",), PROFILE_TEXT, report)
    if "counts" in document:
        report.compare(("counts",), document["counts"], counts(document["sequences"]), closed=CLOSED)


def _check_ids(sequences: Sequence[Mapping[str, Json]], report: Report) -> None:
    for name, count in Counter(entry.get("id") for entry in sequences).items():
        if count > 1 or not name:
            report.differ(("sequences",), f"{count} sequences have the id {name!r}")


def counts(sequences: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """Return the numbers that a file states about itself."""
    calls = [step for entry in sequences for step in walk(entry["steps"]) if "fn" in step]
    codes = [step.get("ret") for step in calls]
    return {
        "sequences": len(sequences),
        "calls": len(calls),
        "functions": len({step["fn"] for step in calls}),
        "by_basis": dict(Counter(str(step.get("basis")) for step in calls)),
        "by_group": dict(Counter(str(entry.get("group")) for entry in sequences)),
        "by_code": dict(Counter(str(code) if isinstance(code, int) else "text" for code in codes)),
    }


def _device_options(profile: Mapping[str, Json], report: Report) -> Options:
    """Return the options that make the host runtime's devices those of a recording."""
    memory = profile.get("memory_per_device", {})
    options = _options(profile, ("profile",), report) | _options(memory, ("profile", "memory_per_device"), report)
    if soc_name := SOC_NAME.search(json.dumps(profile)):
        options["HOSTACL_SOC_NAME"] = soc_name[0]
    return options


def _options(part: Mapping[str, Json], place: Place, report: Report) -> Options:
    """Return the options that a part of a profile states; a text that starts with none says that there are none."""
    options = {}
    for key, value in part.items():
        if key in OPTIONS:
            report.mark((*place, key), value, State.INPUT)
            options[f"HOSTACL_{OPTIONS[key]}"] = "none" if str(value).startswith("none") else str(value)
    return options


def library() -> Path:
    """Return the library to call: the one that the environment names by path, else the installed host runtime."""
    named = os.environ.get(VARIABLE, "")
    return Path(named).resolve() if os.sep in named else host_library()


def run(jobs: Sequence[Json]) -> tuple[list[dict[tuple[int, ...], StepFacts]], dict[int, str]]:
    """Run sequences in the worker; return what was found by step path, and how each sequence ended.

    Raises
    ------
    ValueError
        The worker ended before the last sequence.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden.acl_replay"],
        cwd=REPOSITORY,
        env={key: value for key, value in os.environ.items() if not key.startswith("HOSTACL_")},
        input=json.dumps({"library": str(library()), "limit_s": LIMIT_S, "sequences": jobs}),
        capture_output=True,
        text=True,
        check=False,
    )
    found: list[dict[tuple[int, ...], StepFacts]] = [{} for _ in jobs]
    ends = {}
    for index, path, facts in replies(done.stdout.splitlines()):
        if path is None:
            ends[index] = facts
        else:
            found[index][path] = facts
    if len(ends) != len(jobs):
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise ValueError(f"{len(ends)} of {len(jobs)} sequences were run with {library()}: {last[0]}")
    return found, ends
