"""Recorded sequences of operations on variable managers, each step with the result that GE gave.

The file lists `constants`, `enums` and `sequences`, each with `steps` of an `op`, its `args` and its `result`. Every
sequence runs on a new pool, over simulated sources of memory. Where gevar's answer is not GE's, a block of
`docs/differences.md` must say so; `tests.golden.var.comparison` says how that is decided.
"""

from base64 import b64decode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gevar import align, status
from gevar.om import node
from gevar.types import DataType, MemType
from gevar.types.format import format_from_serial
from gevar.var import memory_config, var_op
from tests.golden.facts import Json, Place, Report, State
from tests.golden.var.comparison import Comparison, Judgement, Verdict
from tests.golden.var.differences import differences
from tests.golden.var.values import UnknownForm

DOCUMENTATION = ("schema_version", "title", "source", "schema")
SEQUENCE_TEXT = ("name", "topic", "notes")
STEP_KEYS = frozenset({"op", "args", "result"})


def matches(document: Json) -> bool:
    """Whether the document has the structure of recorded sequences of a variable manager."""
    if not isinstance(document, Mapping) or not isinstance(document.get("sequences"), list):
        return False
    sequences: Any = document["sequences"]
    steps = [step for entry in sequences if isinstance(entry, Mapping) for step in entry.get("steps", ())]
    return bool(steps) and all(isinstance(step, Mapping) and step.keys() >= STEP_KEYS for step in steps)


def check(document: Mapping[str, Any], folder: Path, report: Report) -> None:
    """Do every step of a file and compare its result.

    Raises
    ------
    ValueError
        The page of differences is not as it should be.
    """
    blocks = differences()
    for key in DOCUMENTATION:
        if key in document:
            report.mark((key,), document[key], State.DOCUMENTATION)
    if "constants" in document:
        report.compare(("constants",), document["constants"], constants())
    for name, members in document.get("enums", {}).items():
        report.compare(("enums", name), members, enum_members(name, members))
    for index, entry in enumerate(document["sequences"]):
        _check_sequence(entry, ("sequences", index), Comparison(_messages(entry), blocks), report)


def constants() -> dict[str, Json]:
    """Return the numbers that files state beside the sequences."""
    return {
        "logic_base_after_size_setup": memory_config.VAR_MEMORY_LOGIC_BASE,
        "logic_base_default": memory_config.MEMORY_VAR_LOGIC_BASE,
        "align": align.SESSION_MEM_ALIGN_BYTES,
        "guard_per_variable": align.var_block_bytes(0),
    }


def enum_members(name: str, members: Mapping[str, Json]) -> dict[str, Json]:
    """Return what gevar has under the names of one enumeration; a name that it does not know is left out."""
    known: dict[str, Mapping[str, Json]] = {
        "status": vars(status),
        "memory_type": {kind.name: int(kind) for kind in MemType},
        "op_type": {**vars(node), **vars(var_op)},
        "dtype": {kind.to_serial(): int(kind) for kind in DataType},
        "dtype_size_code": {kind.to_serial(): kind.size_code for kind in DataType},
    }
    if name == "format":
        return {member: format_from_serial(member) for member in members}
    return {member: known[name][member] for member in members if name in known and member in known[name]}


def _messages(entry: Mapping[str, Any]) -> Callable[[int], bytes]:
    """Return a function that gives the bytes of the message recorded at a step."""

    def recorded(index: int) -> bytes:
        steps = entry["steps"]
        if not 0 <= index < len(steps) or "bytes_b64" not in steps[index]["result"]:
            raise UnknownForm(f"step {index} has no message")
        return b64decode(steps[index]["result"]["bytes_b64"])

    return recorded


def _check_sequence(entry: Mapping[str, Any], place: Place, comparison: Comparison, report: Report) -> None:
    """Compare the steps of one sequence; what comes after a step that is not understood stays unknown."""
    for key in SEQUENCE_TEXT:
        if key in entry:
            report.mark((*place, key), entry[key], State.DOCUMENTATION)
    for index, step in enumerate(entry["steps"]):
        here = (*place, "steps", index)
        for key in ("op", "args"):
            report.mark((*here, key), step[key], State.INPUT)
        try:
            judgement = comparison.judge(str(step["op"]), step["args"], step["result"])
        except UnknownForm as error:
            report.differ(here, str(error))
            return
        _record(judgement, step, here, report, str(entry.get("name")))


def _record(judgement: Judgement, step: Mapping[str, Any], here: Place, report: Report, name: str) -> None:
    """Enter the verdict on one step into the report."""
    report.steps[judgement.verdict.value] += 1
    report.mark((*here, "result"), step["result"], State.COMPARED)
    for problem in judgement.problems:
        report.differ(here, f"{name}, {step['op']}: {problem}")
    if judgement.verdict is Verdict.DOCUMENTED:
        for block in judgement.matched:
            report.accepted[block.name] += 1
    elif judgement.verdict is Verdict.FOLLOWS:
        report.accepted[f"follows from {' and '.join(sorted(judgement.causes))}"] += 1
