"""What a recorded sequence expects, compared with what the replay found."""

import json
import re
from collections.abc import Mapping, Sequence

from tests.golden.acl_deviations import Deviations
from tests.golden.acl_headers import constants
from tests.golden.facts import Json, Place, Report, State

STEP_TEXT = ("basis", "source", "layer", "driver_code", "errno", "sim", "out_basis", "also", "note")
CALL_INPUT = ("fn", "args")
OP_INPUT = {
    "host_buffer": ("name", "size", "fill"),
    "host_fill": ("name", "size", "fill"),
    "host_check": ("name", "size", "offset", "equals"),
    "device_hold": (),
    "device_release": (),
    "sleep_ms": ("ms",),
    "thread": (),
}
MESSAGE_ID = re.compile(r"^(E[A-Z]\d{4})\b", re.MULTILINE)
SIGNS = {"positive": 1, "zero": 0, "negative": -1}
OTHER_CODE = "stated for another of the acceptable codes"
OWN_FIGURE = "figure of the recorded device, of which the change is compared"
REUSED = "reuse of an address is information only"

Path = tuple[int, ...]
StepFacts = Mapping[str, Json]


class SequenceComparison:
    """Compare one sequence step by step; variables keep the values that the replay found."""

    def __init__(self, report: Report, name: str, found: Mapping[Path, StepFacts], deviations: Deviations) -> None:
        self._report = report
        self._name = name
        self._found = found
        self._deviations = deviations
        self._values: dict[str, Json] = {}
        self._function = ""
        self._step = ""

    def compare_steps(self, steps: Sequence[Mapping[str, Json]], place: Place, path: Path = ()) -> None:
        """Compare the steps that were reached; the facts of others stay unknown."""
        for index, step in enumerate(steps):
            here = (*path, index)
            if here not in self._found:
                return
            at = (*place, "steps", index)
            self._step = f"{self._name}, step {'.'.join(map(str, here))}, {step.get('fn', step.get('op'))}"
            facts = self._found[here]
            if "stopped" in facts:
                self._differ(at, str(facts["stopped"]))
                return
            self._mark(at, step, STEP_TEXT, State.DOCUMENTATION)
            if "fn" in step:
                self._compare_call(step, at, facts)
            else:
                self._compare_op(step, at, facts)
            if step.get("op") == "thread":
                self.compare_steps(step["steps"], at, here)

    def compare_end(self, place: Place, end: str) -> None:
        """Record a sequence that did not end by itself."""
        if end != "exit 0":
            self._differ(place, f"{end} after this step" if self._step else end)

    def _differ(self, place: Place, text: str) -> None:
        self._report.differ(place, f"{self._step or self._name}: {text}")

    def _mark(self, place: Place, step: Mapping[str, Json], keys: Sequence[str], state: State) -> None:
        for key in keys:
            if key in step:
                self._report.mark((*place, key), step[key], state)

    def _compare(self, place: Place, expected: Json, what: str, found: Json, good: bool, part: str = "") -> bool:
        """Record a comparison that was made; return whether it is good or a difference that is listed."""
        self._report.mark(place, expected, State.COMPARED)
        if good:
            return True
        if listed := self._deviations.name_of(self._function, part, expected, found):
            self._report.accepted[listed] += 1
            return True
        self._differ(place, f"{what}: expected {json.dumps(expected)}, found {json.dumps(found)}")
        return False

    def _compare_op(self, step: Mapping[str, Json], place: Place, facts: StepFacts) -> None:
        self._mark(place, step, ("op", *OP_INPUT[str(step["op"])]), State.INPUT)
        self._function = str(step["op"])
        if step["op"] == "host_check":
            if "ok" in step:
                good = facts["ok"] is step["ok"]
                self._compare((*place, "ok"), step["ok"], "all bytes equal", facts["ok"], good, "bytes")
            else:
                self._differ(place, "the file states no ok")

    def _compare_call(self, step: Mapping[str, Json], place: Place, facts: StepFacts) -> None:
        self._mark(place, step, CALL_INPUT, State.INPUT)
        self._function = str(step["fn"])
        outs = facts["outs"]
        self._values |= {name: found.get("value", 0) for name, found in outs.items()}
        if "ret" not in step:
            self._differ(place, f"the file states no ret, found {json.dumps(facts['ret'])}")
            return
        accepted = self._compare_ret(step, place, facts["ret"])
        other_code = accepted and isinstance(step["ret"], int) and facts["ret"] != step["ret"]
        for name, form in step.get("out", {}).items():
            at = (*place, "out", name)
            if other_code:
                self._report.mark(at, form, State.DOCUMENTATION, OTHER_CODE)
            elif name in outs:
                self._compare_out(at, f"out {name}", form, outs[name])
            else:
                self._differ(at, f"{name} is no out argument of this call")
        for name, found in outs.items():
            if found["overrun"]:
                self._differ(place, f"out {name}: bytes behind the variable were written")

    def _compare_ret(self, step: Mapping[str, Json], place: Place, found: Json) -> bool:
        """Compare what was returned and return whether it is acceptable."""
        wanted = step["ret"]
        if "name" in step:
            self._compare_name((*place, "name"), step["name"], wanted)
        if isinstance(wanted, Mapping):
            self._compare_text((*place, "ret"), wanted, found)
            return True
        self._mark(place, step, ("ret_any",), State.COMPARED)
        good = found == wanted or found in step.get("ret_any", ())
        return self._compare((*place, "ret"), wanted, "ret", found, good, "ret")

    def _compare_text(self, place: Place, wanted: Mapping[str, Json], found: Json) -> None:
        """Compare what a function that returns text returned."""
        for key, value in wanted.items():
            if key == "message_ids":
                ids = MESSAGE_ID.findall(str(found or ""))
                self._compare((*place, key), value, "message ids", ids, ids == value)
            elif key == "profile_value":
                self._compare((*place, key), value, "ret", found, found == value)

    def _compare_name(self, place: Place, name: str, number: Json) -> None:
        self._compare(place, name, f"number of {name}", constants().get(name), constants().get(name) == number)

    def _compare_out(self, place: Place, what: str, form: Json, found: Mapping[str, Json]) -> None:
        value = found.get("value")
        if form == "unwritten":
            self._compare(place, form, what, value, not found["written"])
        elif form == "null":
            self._compare(place, form, what, value, found["written"] and value == 0)
        elif not isinstance(form, Mapping):
            self._differ(place, f"{what}: unknown form {json.dumps(form)}")
        elif not found["written"]:
            self._compare(place, form, what, "unwritten", False)
        elif isinstance(value, Mapping):
            self._compare_fields(place, what, form, value)
        else:
            self._compare_value(place, what, form, value)

    def _compare_fields(self, place: Place, what: str, form: Mapping[str, Json], value: Mapping[str, Json]) -> None:
        """Compare the fields of a struct that the file names; others stay free."""
        for key, wanted in form.items():
            at, part, found = (*place, key), f"{what}.{key}", value.get(key)
            if isinstance(wanted, Mapping) and isinstance(found, Mapping):
                self._compare_fields(at, part, wanted, found)
            elif key in value:
                self._compare(at, wanted, part, found, found == wanted)
            else:
                self._differ(at, f"{part}: the struct has no such field")

    def _compare_value(self, place: Place, what: str, form: Mapping[str, Json], value: int | float) -> None:
        """Compare a number or address with each property that the file states; unknown keys stay unknown."""
        for key, wanted in form.items():
            at = (*place, key)
            if key == "ptr":
                self._compare(at, wanted, what, value, wanted == "nonnull" and value != 0)
            elif key == "align":
                self._compare(at, wanted, f"{what}: multiple of", value, value % wanted == 0)
            elif key == "same_as":
                origin = self._values.get(wanted)
                good = origin is not None and value == origin + form.get("add", 0)
                self._compare(at, wanted, f"{what}: distance", None if origin is None else value - origin, good)
                self._mark(place, form, ("add",), State.COMPARED)
            elif key == "value":
                self._compare(at, wanted, what, value, value == wanted)
            elif key == "name" and "value" in form:
                self._compare_name(at, wanted, form["value"])
            elif key == "delta":
                origin = self._values.get(form.get("delta_from"))
                change = None if origin is None else value - origin
                self._compare(at, wanted, f"{what}: change", change, change == wanted, "change")
                self._mark(place, form, ("delta_from",), State.COMPARED)
            elif key == "profile_value" and "delta" not in form:
                self._compare(at, wanted, what, value, value == wanted, "figure")
            elif key == "profile_value":
                self._report.mark(at, wanted, State.DOCUMENTATION, OWN_FIGURE)
            elif key == "reused":
                self._report.mark(at, wanted, State.DOCUMENTATION, REUSED)
            elif key == "sign":
                self._compare(at, wanted, what, value, SIGNS.get(wanted) == (value > 0) - (value < 0))
            elif key == "nonzero":
                self._compare(at, wanted, what, value, (value != 0) is wanted)
